package verdict_test

import (
	"maps"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
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
