package verdict_test

import (
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

func TestSimulatedWindowsIsNeverReady(t *testing.T) {
	// A case that only asks the API server and the scheduler passes there.
	p := planOf(t, result.Selection{Cases: []string{"core-scheduling-insufficient-pending"}}, 1)
	run := ideal(t, p, 1)
	ready(t, "on real nodes", run)
	one := false
	for i := range run.Manifest.Cluster.Nodes {
		if n := &run.Manifest.Cluster.Nodes[i]; n.OS == specs.Windows && !one {
			n.Simulated, one = true, true
		}
	}
	ready(t, "with one simulated node beside a real one", run)
	for i := range run.Manifest.Cluster.Nodes {
		run.Manifest.Cluster.Nodes[i].Simulated = true
	}
	j := verdict.Judge(run)
	if got := outcomeOf(t, j, "core-scheduling-insufficient-pending"); got.Outcome != verdict.Passed {
		t.Errorf("the case is %s: %s", got.Outcome, got.Reason)
	}
	if j.Verdict != verdict.Inconclusive || !strings.Contains(strings.Join(j.Reasons, "\n"), "simulated") {
		t.Errorf("%s: %q", j.Verdict, j.Reasons)
	}
}
