package verdict_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
)

// inBatch changes the batch in which a test ran, for a run of its own.
func inBatch(run *result.Run, id string, change func(b *result.Batch)) string {
	attempts := run.Attempts[id]
	batch := attempts[len(attempts)-1].Batch
	run.Batches = slices.Clone(run.Batches)
	change(&run.Batches[slices.IndexFunc(run.Batches, func(b result.Batch) bool { return b.ID == batch })])
	return batch
}

// again gives a test a further attempt that passed, in a batch of its own that is
// sound.
func again(run *result.Run, id string) {
	n := len(run.Attempts[id]) + 1
	batch := result.Batch{ID: "again-" + id, Exit: "exit code 0", Reconciled: true}
	run.Batches = append(slices.Clone(run.Batches), batch)
	run.Attempts[id] = append(slices.Clone(run.Attempts[id]), result.TestRun{ID: id, Attempt: n, Batch: batch.ID, State: result.TestPassed})
	for _, p := range run.Pods {
		if p.Test == id {
			p.Attempt = n
			run.Pods = append(run.Pods, p)
		}
	}
}

func TestAPassOfABatchThatIsNotSoundIsVoid(t *testing.T) {
	p := planOf(t, result.Selection{}, 1)
	base := ideal(t, p, 1)
	test := firstGating(t, p, 1)
	for what, c := range map[string]struct {
		spoil  func(run *result.Run)
		reason string
		heals  bool
	}{
		"no report":       {func(run *result.Run) { inBatch(run, test.ID, func(b *result.Batch) { b.Reconciled = false }) }, "left no report", true},
		"it never ended":  {func(run *result.Run) { inBatch(run, test.ID, func(b *result.Batch) { b.Exit = "" }) }, "left no report", true},
		"AfterSuite fell": {func(run *result.Run) { fail(run, test.ID, false) }, "AfterSuite of its batch failed: no space", true},
		"a contradiction": {func(run *result.Run) { fail(run, test.ID, true) }, "AfterSuite of its batch failed: no space", false},
	} {
		run := copyOf(base)
		c.spoil(run)
		j := inconclusive(t, what, run)
		if got := outcomeOf(t, j, test.Cases[0]); got.Outcome != verdict.Error || !strings.Contains(got.Reason, c.reason) {
			t.Errorf("%s: the case is %s: %s", what, got.Outcome, got.Reason)
		}
		var tests []string
		for id, attempts := range run.Attempts {
			if attempts[0].Batch == run.Attempts[test.ID][0].Batch {
				tests = append(tests, id)
			}
		}
		// Of what ran in the batch, all has to run again.
		for i, id := range tests {
			again(run, id)
			if last := i+1 == len(tests); !last || !c.heals {
				inconclusive(t, what+", and not all ran again", run)
			} else {
				ready(t, what+", and all ran again", run)
			}
		}
	}
}

// fail adds a failure outside of any test to the batch in which a test ran.
func fail(run *result.Run, id string, contradiction bool) {
	batch := inBatch(run, id, func(*result.Batch) {})
	run.Suites = []result.Suite{{Batch: batch, Node: "AfterSuite", Message: "no space", Contradiction: contradiction}}
}

func TestAFailureIsNotUndoneByAVoidPass(t *testing.T) {
	p := planOf(t, result.Selection{}, 1)
	test := firstGating(t, p, 1)
	run := copyOf(ideal(t, p, 1))
	finished(result.TestFailed, result.TestPassed)(run, test.ID)
	inBatch(run, test.ID, func(b *result.Batch) { b.Reconciled = false })
	want(t, "failed, and then passed in vain", run, verdict.NotReady, verdict.ExitNotReady)
}

// The verdict that was recorded when a run ended is held against its results.
func TestResultsThatHaveBecomeReadySinceWereChanged(t *testing.T) {
	p := planOf(t, result.Selection{}, 1)
	for was, says := range map[string]string{"not-ready": "says that the run ended not-ready", "inconclusive": "says that the run ended inconclusive", "nonsense": "nonsense"} {
		run := copyOf(ideal(t, p, 1))
		run.Manifest.Verdict = was
		if got := strings.Join(inconclusive(t, was, run).Reasons, "\n"); !strings.Contains(got, says) {
			t.Errorf("%s: %s", was, got)
		}
	}
	run := copyOf(ideal(t, p, 1))
	run.Manifest.Verdict = "ready"
	ready(t, "as it was recorded", run)
}

func TestANewestAttemptWithoutAResultIsAnError(t *testing.T) {
	p, dirs := shardFolders(t)
	test := firstGating(t, p, 2)
	empty := withEvents(t, p, 2, 2, result.Event{Time: began, Type: result.RunFinished})
	j := inconclusive(t, "the newest attempt ran nothing", merged(t, append(slices.Clone(dirs), empty)...))
	if c := outcomeOf(t, j, test.Cases[0]); c.Outcome != verdict.Error || c.Reason != "attempt 2 of its shard ended and has no result of it" {
		t.Errorf("%s is %s: %s", c.Case.ID, c.Outcome, c.Reason)
	}
}

func TestAFailureOutsideOfTestsStaysWithTheAttemptThatCounts(t *testing.T) {
	p, dirs := shardFolders(t)
	run, err := result.Load(dirs[1])
	if err != nil {
		t.Fatal(err)
	}
	// The batches of attempt 1, in each of which something failed.
	var spoilt []result.Event
	for _, e := range eventsIn(t, dirs[1]) {
		if e.Type == result.BatchFinished {
			spoilt = append(spoilt, result.Event{Time: began, Type: result.SuiteFailed, Suite: &result.Suite{Batch: e.Batch.ID, Node: "AfterSuite", Message: "no space"}})
		}
		if e.Type != result.RunStarted {
			spoilt = append(spoilt, e)
		}
	}
	first := withEvents(t, p, 2, 1, spoilt...)
	inconclusive(t, "something failed beside the tests", merged(t, dirs[0], first, dirs[2], dirs[3]))
	// The second attempt was killed before it had run anything: the first counts.
	killed := withEvents(t, p, 2, 2)
	j := inconclusive(t, "the second attempt was killed", merged(t, dirs[0], first, killed, dirs[2], dirs[3]))
	if len(j.Suites) != len(run.Batches) {
		t.Errorf("%d failures outside of tests stand, of %d", len(j.Suites), len(run.Batches))
	}
	// It ran all of them: only it counts.
	editManifest(t, dirs[1], func(m *result.Manifest) { m.Attempt = 2 })
	ready(t, "all ran again", merged(t, dirs[0], first, dirs[1], dirs[2], dirs[3]))
}

func TestShardsThatAreUnlike(t *testing.T) {
	for what, c := range map[string]struct {
		change func(m *result.Manifest)
		says   string
		note   bool
	}{
		"another version of op-readiness": {func(m *result.Manifest) { m.ToolVersion = "v0.0.9" }, "was made by op-readiness v0.0.9", false},
		"another Windows": {func(m *result.Manifest) {
			for i := range m.Cluster.Nodes {
				if m.Cluster.Nodes[i].WindowsBuild != "" {
					m.Cluster.Nodes[i].WindowsBuild = "10.0.17763"
				}
			}
		}, "not of one kind: what Windows nodes run", false},
		"declared away":        {func(m *result.Manifest) { m.Declared.Without = []string{"gmsa"} }, "not of one kind: what was declared", false},
		"another steering":     {func(m *result.Manifest) { m.Steering = result.SteeringCordon }, "not of one kind: how pods are steered", false},
		"another e2e.test":     {func(m *result.Manifest) { m.E2EVersion = "v1.36.2" }, "not of one kind: the version of e2e.test", false},
		"a commit of its own":  {func(m *result.Manifest) { m.Source.Commit = "c1" }, "does not say which commit it tested, and others do", false},
		"more API groups":      {func(m *result.Manifest) { m.Cluster.APIGroups = append(m.Cluster.APIGroups, "x.io") }, "the set of API groups", true},
		"other names of nodes": {func(m *result.Manifest) { m.Cluster.Nodes = append(m.Cluster.Nodes, m.Cluster.Nodes[3]) }, "", true},
	} {
		_, dirs := shardFolders(t)
		editManifest(t, dirs[1], c.change)
		run := merged(t, dirs...)
		j := verdict.Judge(run)
		said := strings.Join(j.Reasons, "\n")
		if c.note {
			said = strings.Join(j.Beside, "\n")
		}
		if (j.Verdict == verdict.Ready) != c.note || !strings.Contains(said, c.says) {
			t.Errorf("%s: %s; reasons %q, beside %q", what, j.Verdict, j.Reasons, j.Beside)
		}
	}
}
