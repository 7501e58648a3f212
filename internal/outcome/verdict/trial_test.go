package verdict_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// However the test of a trial ends, and whatever fails beside it, all that is said
// of the cluster is what it would be without it.
func TestATrialDecidesNothing(t *testing.T) {
	without := ready(t, "without trials", ideal(t, planOf(t, result.Selection{}, 1), 1))
	p := planOf(t, result.Selection{Trial: true}, 1)
	base := ideal(t, p, 1)
	onTrial := p.OnTrial()
	if len(onTrial) == 0 || len(onTrial) != len(p.Tests)-len(planOf(t, result.Selection{}, 1).Tests) {
		t.Fatalf("%d of %d tests are on trial", len(onTrial), len(p.Tests))
	}
	for id := range onTrial {
		for what, change := range testChanges {
			what = p.Test(id).Name + " " + what
			run := copyOf(base)
			change.change(run, id)
			for i := range run.Attempts[id] {
				run.Attempts[id][i].Batch = "of trials"
			}
			run.Suites = []result.Suite{{Batch: "of trials", Node: "BeforeSuite", Message: "no"}, {Batch: "of trials", Node: "its report", Contradiction: true}}
			if len(run.Attempts[id]) == 0 {
				run.Suites = nil // of whose tests nothing is known, its failure counts
			}
			j := ready(t, what, run)
			if j.RerunHelps(run) {
				t.Errorf("%s: another attempt is said to help", what)
			}
			if j.Counts != without.Counts || !maps.Equal(j.Outcomes, without.Outcomes) || j.Scope.Kind != verdict.ScopeCluster {
				t.Errorf("%s: %v of %s, %v; without it %v, %v", what, j.Counts, j.Scope, j.Outcomes, without.Counts, without.Outcomes)
			}
			for i, c := range j.Categories {
				if c.Verdict != without.Categories[i].Verdict || c.Counts != without.Categories[i].Counts {
					t.Errorf("%s: %s is %s, and without it %s", what, c.Category, c.Verdict, without.Categories[i].Verdict)
				}
			}
			if c := outcomeOf(t, j, p.Test(id).Cases[0]); c.Outcome != change.outcome || j.Trials[change.outcome] == 0 {
				t.Errorf("%s: its case is %s, want %s; trials %v", what, c.Outcome, change.outcome, j.Trials)
			}
		}
	}
}

// A batch in which one test counts is not excused by another that is on trial.
func TestAFailureBesideATrialAndAnotherTestCounts(t *testing.T) {
	p := planOf(t, result.Selection{Trial: true}, 1)
	run := copyOf(ideal(t, p, 1))
	for i := range p.Tests {
		for k := range run.Attempts[p.Tests[i].ID] {
			run.Attempts[p.Tests[i].ID][k].Batch = "all"
		}
	}
	run.Suites = []result.Suite{{Batch: "all", Node: "AfterSuite", Message: "no"}}
	for i := range run.Batches {
		run.Batches[i].ID = "all"
	}
	inconclusive(t, "a failure of a batch of both", run)
}

// The pods of our own tests say of which system they are; those of Kubernetes' tests
// do not, and need not.
func TestOwnTestsArePassedByPodsThatNameTheirSystem(t *testing.T) {
	p := planOf(t, result.Selection{Trial: true}, 1)
	run := copyOf(ideal(t, p, 1))
	for i := range run.Pods {
		run.Pods[i].PodOS = ""
	}
	of := map[specs.Kind]int{}
	for _, c := range ready(t, "without spec.os", run).Cases {
		nameless := strings.Contains(c.Reason, "ran on Windows without spec.os")
		if nameless {
			of[c.Case.Kind]++
		}
		if c.Case.Kind == specs.Trial && nameless != (c.Outcome == verdict.Unproven) {
			t.Errorf("%s is %s: %s", c.Case.ID, c.Outcome, c.Reason)
		}
	}
	if len(of) != 1 || of[specs.Trial] != len(trialsOf(p)) {
		t.Errorf("cases with such pods: %v, of %d trials", of, len(trialsOf(p)))
	}
}

// What is on trial is not missing.
func TestACaseWithoutATestNamesItsTrial(t *testing.T) {
	const id = "core-network-distinct-pod-ips"
	with, without := planOf(t, result.Selection{Trial: true}, 1), planOf(t, result.Selection{}, 1)
	if got := outcomeOf(t, verdict.Judge(ideal(t, with, 1)), id); got.Outcome != verdict.NotImplemented || got.Reason != "no test that counts yet: "+id+"-trial is on trial" {
		t.Errorf("with trials it is %s: %s", got.Outcome, got.Reason)
	}
	if got := outcomeOf(t, verdict.Judge(ideal(t, without, 1)), id); got.Outcome != verdict.NotImplemented || got.Reason != caseOf(without, id).Missing {
		t.Errorf("without, it is %s: %s", got.Outcome, got.Reason)
	}
}

// trialsOf are the ids of the cases of a plan that are on trial.
func trialsOf(p *result.Plan) []string {
	var ids []string
	for i := range p.Cases {
		if p.Cases[i].Kind == specs.Trial {
			ids = append(ids, p.Cases[i].ID)
		}
	}
	return ids
}

// wantAlike judges a run as another: what is on trial aside, and what is noted
// beside the verdict.
func wantAlike(t *testing.T, what string, run, other *result.Run) {
	t.Helper()
	got, want := verdict.Judge(run), verdict.Judge(other)
	if got.Verdict != want.Verdict || got.ExitCode() != want.ExitCode() || got.Scope.String() != want.Scope.String() || got.Counts != want.Counts ||
		!maps.Equal(got.Outcomes, want.Outcomes) || !slices.Equal(got.Reasons, want.Reasons) {
		t.Errorf("%s: %s of %s (%v), exit code %d, %v, %q\nwithout trials: %s of %s (%v), exit code %d, %v, %q", what,
			got.Verdict, got.Scope, got.Counts, got.ExitCode(), got.Outcomes, got.Reasons,
			want.Verdict, want.Scope, want.Counts, want.ExitCode(), want.Outcomes, want.Reasons)
	}
	if len(got.Trials) == 0 || len(want.Trials) > 0 {
		t.Errorf("%s: trials %v, and without %v", what, got.Trials, want.Trials)
	}
}

// shardsOf writes the folders of all shards of a plan, with failures of cases.
func shardsOf(t *testing.T, p *result.Plan, failing ...string) []string {
	t.Helper()
	var dirs []string
	for shard := 1; shard <= p.Shards; shard++ {
		dirs = append(dirs, idealFolder(t, p, shard))
	}
	for _, id := range failing {
		fails(t, dirs[caseOf(p, id).Shard-1], id)
	}
	return dirs
}

func TestTrialsDecideNothingInAMerge(t *testing.T) {
	const gating = "core-network-nodeport-win-to-linux"
	for _, shards := range []int{1, 4, 60} {
		with, without := planOf(t, result.Selection{Trial: true}, shards), planOf(t, result.Selection{}, shards)
		trials := trialsOf(with)
		wantAlike(t, "all trials fail", merged(t, shardsOf(t, with, trials...)...), merged(t, shardsOf(t, without)...))
		wantAlike(t, "all trials pass, and a case fails", merged(t, shardsOf(t, with, gating)...), merged(t, shardsOf(t, without, gating)...))
		// Where a shard is left to trials, it is as if it were empty.
		alone := 0
		for shard := 1; shard <= shards; shard++ {
			of := func(c result.PlannedCase) bool { return c.Shard == shard && c.Kind != specs.Trial }
			if with.EmptyShard(shard) || slices.ContainsFunc(with.Cases, of) {
				continue
			}
			alone++
			dir := idealFolder(t, with, shard)
			for _, id := range trials {
				if caseOf(with, id).Shard == shard {
					fails(t, dir, id)
				}
			}
			run, err := result.Load(dir)
			if err != nil {
				t.Fatal(err)
			}
			if j := want(t, "a shard of trials", run, verdict.NotAsked, verdict.ExitReady); len(j.Reasons) != 1 || !strings.Contains(j.Reasons[0], "trials") {
				t.Errorf("it says %q", j.Reasons)
			}
			run.Problems = []string{"a line is odd"}
			inconclusive(t, "a shard of trials with a problem", run)
		}
		if (alone > 0) != (shards == 60) {
			t.Errorf("%d of %d shards hold trials alone", alone, shards)
		}
	}
}

func TestTrialsDecideNothingBesideOtherRuns(t *testing.T) {
	trials := trialsOf(planOf(t, result.Selection{Trial: true}, 1))
	of := func(name string, minutes int, sel result.Selection, failing ...string) string {
		dir := runOf(t, name, minutes, sel)
		for _, id := range failing {
			fails(t, dir, id)
		}
		return dir
	}
	load := func(dirs ...string) *result.Run {
		run, err := combined(t, dirs...)
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	whole, network := result.Selection{}, only(specs.CoreNetwork)
	for what, with := range map[string][2]string{
		"a newer run of trials":      {of("whole", 0, whole), of("trials", 1, result.Selection{Cases: trials, Trial: true}, trials...)},
		"an older run of trials":     {of("trials", 0, result.Selection{Cases: trials, Trial: true}, trials...), of("whole", 1, whole)},
		"a newer run that has them":  {of("whole", 0, whole), of("all", 1, result.Selection{Trial: true}, trials...)},
		"an older run that has them": {of("all", 0, result.Selection{Trial: true}, trials...), of("whole", 1, whole)},
		"two runs that have them":    {of("first", 0, result.Selection{Trial: true}, trials...), of("second", 1, result.Selection{Trial: true})},
	} {
		wantAlike(t, what, load(with[0], with[1]), load(of("whole", 0, whole)))
	}
	wantAlike(t, "a category, and trials of others", load(of("network", 0, network), of("trials", 1, result.Selection{Cases: trials, Trial: true}, trials...)), load(of("network", 0, network)))
	alone := verdict.Judge(load(of("first", 0, result.Selection{Cases: trials[:1], Trial: true}), of("second", 1, result.Selection{Cases: trials[1:], Trial: true})))
	if alone.Scope.Kind != verdict.ScopeCases || alone.Verdict != verdict.Inconclusive {
		t.Errorf("runs of nothing but trials are %s of %s", alone.Verdict, alone.Scope)
	}
	wantAlike(t, "a category, and one with trials", load(of("network", 0, network), of("again", 1, result.Selection{Categories: network.Categories, Trial: true}, trials[0])), load(of("network", 0, network)))
}

// Executions whose own tests are of different sources, or were given different
// arguments, are not of one kind, whoever stands between them; one without such
// tests is of any.
func TestSuitesThatDifferAreAProblem(t *testing.T) {
	p := planOf(t, result.Selection{Trial: true}, 4)
	for hashes, differ := range map[[4]string]bool{
		{"a", "a", "a", "a"}: false, {"", "", "", ""}: false, {"", "a", "a", ""}: false, {"a", "", "", "a"}: false,
		{"a", "a", "a", "b"}: true, {"b", "a", "a", "a"}: true, {"a", "b", "", ""}: true, {"", "a", "b", ""}: true,
	} {
		dirs := shardsOf(t, p)
		for i, dir := range dirs {
			editManifest(t, dir, func(m *result.Manifest) { m.SuiteHash = hashes[i] })
		}
		run := merged(t, dirs...)
		if !differ {
			ready(t, strings.Join(hashes[:], ","), run)
			continue
		}
		j := inconclusive(t, strings.Join(hashes[:], ","), run)
		if !strings.Contains(strings.Join(j.Reasons, "\n"), "not of one kind: the hash of op-readiness.test's sources is ") {
			t.Errorf("%q: the reasons are %q", hashes, j.Reasons)
		}
	}
	short := []string{"--readiness.shorten=10"}
	for what, of := range map[string]struct {
		hashes [2]string
		differ bool
	}{"both have such tests": {[2]string{"a", "a"}, true}, "one has none": {[2]string{"a", ""}, false}} {
		dirs := shardsOf(t, planOf(t, result.Selection{Trial: true}, 2))
		for i, dir := range dirs {
			editManifest(t, dir, func(m *result.Manifest) {
				if m.SuiteHash = of.hashes[i]; i == 0 {
					m.Settings.SuiteArgs = short
				}
			})
		}
		run := merged(t, dirs...)
		if !of.differ {
			ready(t, what, run)
			continue
		}
		j := inconclusive(t, what, run)
		if want := "what op-readiness.test is given (--suite-arg) is --readiness.shorten=10 in shard 1 (attempt 1), and nothing in shard 2 (attempt 1)"; !strings.Contains(strings.Join(j.Reasons, "\n"), want) {
			t.Errorf("%s: the reasons are %q", what, j.Reasons)
		}
	}
}

// What e2e.test is given besides changes no test: that shards differ in it is only
// to be known.
func TestArgumentsOfE2ETestThatDifferAreNoted(t *testing.T) {
	dirs := shardsOf(t, planOf(t, result.Selection{}, 2))
	editManifest(t, dirs[1], func(m *result.Manifest) { m.Settings.E2EArgs = []string{"--prepull-images=true"} })
	run := merged(t, dirs...)
	ready(t, "other arguments of e2e.test", run)
	if notes := strings.Join(run.Manifest.Notes, "\n"); !strings.Contains(notes, "(--e2e-arg) is nothing in shard 1 (attempt 1), and --prepull-images=true in shard 2") {
		t.Errorf("the notes are %q", notes)
	}
}
