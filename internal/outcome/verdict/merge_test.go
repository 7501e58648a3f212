package verdict_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
)

const shards = 4

// merged merges folders, in an order that must not matter, and reads the result.
func merged(t *testing.T, dirs ...string) *result.Run {
	t.Helper()
	run, err := merge(t, dirs...)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func merge(t *testing.T, dirs ...string) (*result.Run, error) {
	t.Helper()
	return mergeThem(t, false, dirs...)
}

// mergeThem merges folders, and writes what they make together: in memory and
// read back it is judged the same.
func mergeThem(t *testing.T, acrossRuns bool, dirs ...string) (*result.Run, error) {
	t.Helper()
	var runs []*result.Run
	for _, dir := range slices.Backward(dirs) {
		run, err := result.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run)
	}
	inMemory, err := result.Merge(runs, acrossRuns)
	if err != nil {
		return nil, err
	}
	folder, err := inMemory.Save(filepath.Join(t.TempDir(), "merged"))
	if err != nil {
		t.Fatal(err)
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	onDisk, err := result.Load(folder.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if a, b := verdict.Judge(inMemory), verdict.Judge(onDisk); a.Verdict != b.Verdict || a.Counts != b.Counts || !reflect.DeepEqual(a.Outcomes, b.Outcomes) || !slices.Equal(a.Reasons, b.Reasons) {
		t.Errorf("in memory %s %v %v %q, and read back %s %v %v %q", a.Verdict, a.Counts, a.Outcomes, a.Reasons, b.Verdict, b.Counts, b.Outcomes, b.Reasons)
	}
	return onDisk, nil
}

// shardFolders writes an ideal folder for each shard of one run.
func shardFolders(t *testing.T) (*result.Plan, []string) {
	t.Helper()
	p := planOf(t, result.Selection{Additional: true}, shards)
	var dirs []string
	for shard := 1; shard <= shards; shard++ {
		dirs = append(dirs, idealFolder(t, p, shard))
	}
	return p, dirs
}

// editManifest changes the run.json of a folder.
func editManifest(t *testing.T, dir string, change func(m *result.Manifest)) {
	t.Helper()
	path := filepath.Join(dir, result.ManifestFile)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var m result.Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	change(&m)
	if data, err = json.Marshal(m); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// withEvents makes a folder of one attempt of a shard that holds these events.
func withEvents(t *testing.T, p *result.Plan, shard, attempt int, events ...result.Event) string {
	t.Helper()
	dir := t.TempDir()
	m := manifestOf(p, shard)
	m.Attempt = attempt
	folder, err := result.Create(dir, p, m)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if err := folder.Append(append([]result.Event{{Time: began, Type: result.RunStarted}}, events...)...); err != nil {
		t.Fatal(err)
	}
	return dir
}

// firstGating returns a test of a shard that serves a case that gates.
func firstGating(t *testing.T, p *result.Plan, shard int) *result.PlannedTest {
	t.Helper()
	for i := range p.Tests {
		if p.Tests[i].Shard == shard && gates(p, &p.Tests[i]) {
			return &p.Tests[i]
		}
	}
	t.Fatalf("shard %d has no gating test", shard)
	return nil
}

func TestMergedShardsJudgeAsOneRun(t *testing.T) {
	_, dirs := shardFolders(t)
	got := ready(t, "all shards", merged(t, dirs...))
	whole := verdict.Judge(ideal(t, planOf(t, result.Selection{Additional: true}, 1), 1))
	if got.Counts != whole.Counts || !reflect.DeepEqual(got.Outcomes, whole.Outcomes) || got.Scope.Kind != whole.Scope.Kind {
		t.Errorf("merged: %v %v %v, one run: %v %v %v", got.Scope, got.Counts, got.Outcomes, whole.Scope, whole.Counts, whole.Outcomes)
	}
	for i := range whole.Cases {
		c := outcomeOf(t, got, whole.Cases[i].Case.ID)
		if c.Outcome != whole.Cases[i].Outcome || c.Evidence != whole.Cases[i].Evidence {
			t.Errorf("%s is %s (%s), and in one run %s (%s)", c.Case.ID, c.Outcome, c.Evidence, whole.Cases[i].Outcome, whole.Cases[i].Evidence)
		}
	}
}

func TestEachMissingShardIsNamed(t *testing.T) {
	p, dirs := shardFolders(t)
	for i := range dirs {
		run := merged(t, slices.Delete(slices.Clone(dirs), i, i+1)...)
		j := inconclusive(t, "a shard is missing", run)
		named := false
		for _, r := range j.Reasons {
			named = named || strings.Contains(r, "shard "+string(rune('1'+i))+" of 4 has no results: nothing accounts for ")
		}
		if !named {
			t.Errorf("shard %d is missing, and the reasons do not say so: %q", i+1, j.Reasons)
		}
		for k := range p.Cases {
			c := &p.Cases[k]
			if c.Shard == i+1 && len(c.TestIDs) > 0 {
				if o := outcomeOf(t, j, c.ID).Outcome; o != verdict.NotTested {
					t.Errorf("shard %d is missing, and its case %s is %s", i+1, c.ID, o)
				}
			}
		}
	}
}

func TestAKilledShardKeepsWhatItHas(t *testing.T) {
	p, dirs := shardFolders(t)
	test := firstGating(t, p, 2)
	start := result.Event{Time: began, Type: result.TestStarted, Test: &result.TestRun{ID: test.ID, Name: test.Name, Attempt: 1, Batch: "01"}}
	dirs[1] = withEvents(t, p, 2, 1, start)
	j := inconclusive(t, "a killed shard", merged(t, dirs...))
	if !slices.Contains(j.Reasons, "shard 2 (attempt 1) was killed, or is still going on") {
		t.Errorf("the reasons do not name the shard: %q", j.Reasons)
	}
	if c := outcomeOf(t, j, test.Cases[0]); c.Outcome != verdict.Error || c.Reason != "it was running when the run was killed" {
		t.Errorf("the test that ran is %s: %s", c.Outcome, c.Reason)
	}
}

func TestARerunHealsVisibly(t *testing.T) {
	p, dirs := shardFolders(t)
	test := firstGating(t, p, 3)
	batch := result.Batch{ID: "01", Phase: test.Phase, Conditions: test.Conditions}
	ended := batch
	ended.Exit = "exit code 1"
	first := withEvents(t, p, 3, 1,
		result.Event{Time: began, Type: result.BatchStarted, Batch: &batch},
		result.Event{Time: began, Type: result.TestFinished, Test: &result.TestRun{ID: test.ID, Name: test.Name, Attempt: 1, Batch: "01", State: result.TestFailed, Message: "boom"}},
		result.Event{Time: began, Type: result.SuiteFailed, Suite: &result.Suite{Batch: "01", Node: "BeforeSuite", Message: "no"}},
		result.Event{Time: began, Type: result.BatchFinished, Batch: &ended},
	)
	want(t, "before the rerun", merged(t, dirs[0], dirs[1], first, dirs[3]), verdict.NotReady, verdict.ExitNotReady)

	editManifest(t, dirs[2], func(m *result.Manifest) { m.Attempt = 2 })
	j := ready(t, "after the rerun", merged(t, append(slices.Clone(dirs), first)...))
	c := outcomeOf(t, j, test.Cases[0])
	if c.Outcome != verdict.Flaky || !strings.Contains(c.Reason, "passed in attempt 2, after: boom") {
		t.Errorf("what the rerun healed is %s: %s", c.Outcome, c.Reason)
	}
	if c.Evidence == "" {
		t.Error("the evidence of the second attempt is lost")
	}
}

func TestAPassIsNotLostWhenTheRerunIsKilled(t *testing.T) {
	p, dirs := shardFolders(t)
	test := firstGating(t, p, 2)
	killed := withEvents(t, p, 2, 2)
	j := inconclusive(t, "the rerun was killed", merged(t, append(dirs, killed)...))
	if c := outcomeOf(t, j, test.Cases[0]); c.Outcome != verdict.Passed {
		t.Errorf("%s is %s: %s", c.Case.ID, c.Outcome, c.Reason)
	}
}

func TestAnInterruptedShardIsInconclusiveNotAnInterruptedMerge(t *testing.T) {
	p, dirs := shardFolders(t)
	dirs[3] = withEvents(t, p, 4, 1, result.Event{Time: began, Type: result.RunFinished, Interrupted: true})
	j := inconclusive(t, "an interrupted shard", merged(t, dirs...))
	if !slices.Contains(j.Reasons, "shard 4 (attempt 1) was interrupted") {
		t.Errorf("the reasons do not name the shard: %q", j.Reasons)
	}
}

func TestWhatDoesNotBelongTogetherIsRefused(t *testing.T) {
	_, dirs := shardFolders(t)
	_, others := shardFolders(t)
	editManifest(t, others[1], func(m *result.Manifest) { m.RunID = "another" })
	if _, err := merge(t, dirs[0], others[1]); !errors.Is(err, result.ErrOtherRun) || !strings.Contains(err.Error(), others[1]) {
		t.Errorf("another run with the same plan: %v", err)
	}
	smaller := idealFolder(t, planOf(t, result.Selection{}, shards), 2)
	if _, err := merge(t, dirs[0], smaller); !errors.Is(err, result.ErrOtherRun) {
		t.Errorf("another plan: %v", err)
	}
	if _, err := merge(t, dirs[0], others[0]); !errors.Is(err, result.ErrTwice) {
		t.Errorf("the same shard and attempt twice: %v", err)
	}
	path := filepath.Join(dirs[2], result.PlanFile)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(data), `"proof": "full"`, `"proof": "part"`, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := merge(t, dirs...); !errors.Is(err, result.ErrOtherRun) || !strings.Contains(err.Error(), "was changed") {
		t.Errorf("a plan that was changed: %v", err)
	}
}

func TestShardsOnUnlikeClustersAreInconclusive(t *testing.T) {
	_, dirs := shardFolders(t)
	editManifest(t, dirs[1], func(m *result.Manifest) { m.Cluster.ServerVersion = "v1.36.4" })
	inconclusive(t, "another version of the API server", merged(t, dirs...))

	_, dirs = shardFolders(t)
	editManifest(t, dirs[2], func(m *result.Manifest) { m.Cluster.Nodes = m.Cluster.Nodes[:3] })
	j := want(t, "one Windows node", merged(t, dirs...), verdict.NotReady, verdict.ExitNotReady)
	if !slices.ContainsFunc(j.Cases, func(c verdict.CaseResult) bool {
		return c.Outcome == verdict.Failed && strings.HasPrefix(c.Reason, "the cluster of shard 3: ")
	}) {
		t.Errorf("no rule names the cluster of shard 3: %q", j.Reasons)
	}
}

func TestResultsOfAnotherShardsTestsAreNotTaken(t *testing.T) {
	p, dirs := shardFolders(t)
	test := firstGating(t, p, 2)
	forged := result.TestRun{ID: test.ID, Name: test.Name, Attempt: 2, Batch: "01", State: result.TestPassed}
	events, err := os.OpenFile(filepath.Join(dirs[2], result.EventsFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(events).Encode(result.Event{Time: time.Now(), Type: result.TestFinished, Test: &forged}); err != nil {
		t.Fatal(err)
	}
	events.Close()
	run := merged(t, dirs...)
	if n := len(run.Attempts[test.ID]); n != 1 {
		t.Errorf("the test has %d attempts, and its own shard recorded 1", n)
	}
	inconclusive(t, "a shard with results of another one's test", run)
}

func TestFindLooksWhereArtifactsAreDownloaded(t *testing.T) {
	_, dirs := shardFolders(t)
	parent := t.TempDir()
	for i, dir := range dirs[:2] {
		if err := os.CopyFS(filepath.Join(parent, "readiness-"+string(rune('1'+i))), os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(parent, "other"), 0o755); err != nil {
		t.Fatal(err)
	}
	found, err := result.Find([]string{parent, dirs[3], dirs[3]})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 3 || !slices.Contains(found, dirs[3]) {
		t.Errorf("found %q", found)
	}
	if _, err := result.Find([]string{filepath.Join(parent, "other")}); err == nil || !strings.Contains(err.Error(), "holds no results folder") {
		t.Errorf("a folder without results: %v", err)
	}
}

// eventsIn are the events of a folder.
func eventsIn(t *testing.T, dir string) []result.Event {
	t.Helper()
	file, err := os.Open(filepath.Join(dir, result.EventsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var events []result.Event
	for dec := json.NewDecoder(file); dec.More(); {
		var e result.Event
		if err := dec.Decode(&e); err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

// measures has a test record a figure in a folder of one attempt.
func measures(t *testing.T, dir, id, figure string) {
	t.Helper()
	path := filepath.Join(dir, result.EventsFile)
	var out []byte
	for _, e := range eventsIn(t, dir) {
		events := []result.Event{e}
		if e.Type == result.TestFinished && e.Test.ID == id {
			test := result.TestRun{ID: id, Name: e.Test.Name, Attempt: 1, Batch: e.Test.Batch, Measured: []result.Measurement{{What: "median", Figure: figure}}}
			events = append(events, result.Event{Time: e.Time, Type: result.TestMeasured, Test: &test})
		}
		for _, e := range events {
			line, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			out = append(append(out, line...), '\n')
		}
	}
	if err := os.WriteFile(path, out, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestFiguresStayWithTheirAttemptsInAMerge(t *testing.T) {
	p, dirs := shardFolders(t)
	test := firstGating(t, p, 2)
	first := idealFolder(t, p, 2)
	editManifest(t, dirs[1], func(m *result.Manifest) { m.Attempt = 2 })
	measures(t, first, test.ID, "1s")
	measures(t, dirs[1], test.ID, "2s")
	figures := func(run *result.Run, id string) []string {
		var out []string
		for _, a := range run.Attempts[id] {
			text := "none"
			if len(a.Measured) > 0 {
				text = a.Measured[0].String()
			}
			out = append(out, text)
		}
		return out
	}
	run := merged(t, append(slices.Clone(dirs), first)...)
	ready(t, "two attempts with figures", run)
	if got := figures(run, test.ID); !slices.Equal(got, []string{"median: 1s", "median: 2s"}) {
		t.Errorf("attempts of a shard have %q", got)
	}

	older, newer := runOf(t, "older", 0, result.Selection{}), runOf(t, "newer", 1, result.Selection{})
	id := caseOf(planOf(t, result.Selection{}, 1), test.Cases[0]).TestIDs[0]
	fails(t, older, test.Cases[0])
	measures(t, older, id, "1s")
	measures(t, newer, id, "2s")
	run, err := combined(t, older, newer)
	if err != nil {
		t.Fatal(err)
	}
	// Of an older run, a failure is all that is taken.
	if got := figures(run, id); !slices.Equal(got, []string{"none", "median: 2s"}) {
		t.Errorf("attempts of two runs have %q, problems %q", got, run.Problems)
	}
}
