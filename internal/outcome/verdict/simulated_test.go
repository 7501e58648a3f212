package verdict_test

import (
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
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

func TestAClusterWithoutWindowsIsNeverReady(t *testing.T) {
	// What passed there asked nothing of a node.
	p := planOf(t, result.Selection{Cases: []string{"core-scheduling-insufficient-pending"}}, 1)
	run := ideal(t, p, 1)
	run.Manifest.Cluster.Nodes = run.Manifest.Cluster.Nodes[:2]
	j := inconclusive(t, "with Linux nodes only", run)
	if !strings.Contains(strings.Join(j.Reasons, "\n"), "no Windows node") {
		t.Errorf("%q", j.Reasons)
	}
}

func TestAPassOnSimulatedNodesProvesNothing(t *testing.T) {
	p := planOf(t, result.Selection{Cases: []string{"core-scheduling-insufficient-pending"}}, 1)
	run := ideal(t, p, 1)
	if before := verdict.Judge(run); before.Counts.Proven+before.Counts.Parts != 1 {
		t.Fatalf("on real nodes: %v", before.Counts)
	}
	// There is a real Windows node, too; the pods were not there.
	for i := range run.Pods {
		run.Pods[i].Simulated = true
	}
	j := inconclusive(t, "its pods on simulated nodes", run)
	if c := outcomeOf(t, j, "core-scheduling-insufficient-pending"); c.Outcome != verdict.Passed || !c.Simulated {
		t.Errorf("the case is %s, simulated %v", c.Outcome, c.Simulated)
	}
	if j.Counts.Proven+j.Counts.Parts != 0 {
		t.Errorf("it counts: %v", j.Counts)
	}
	for _, c := range j.Categories {
		if c.Verdict == verdict.Ready {
			t.Errorf("%s is ready", c.Category)
		}
	}
}

func TestAWindowsNodeThatTakesNoPodsIsNone(t *testing.T) {
	p := planOf(t, result.Selection{Cases: []string{"core-scheduling-insufficient-pending"}}, 1)
	for what, change := range map[string]func(*result.Node){
		"cordoned":  func(n *result.Node) { n.Unschedulable = true },
		"not ready": func(n *result.Node) { n.Ready = false },
	} {
		run := copyOf(ideal(t, p, 1))
		for i := range run.Manifest.Cluster.Nodes {
			if n := &run.Manifest.Cluster.Nodes[i]; n.OS == specs.Windows {
				change(n)
			}
		}
		j := verdict.Judge(run)
		if !strings.Contains(strings.Join(j.Reasons, "\n"), "nothing here shows that Windows works") {
			t.Errorf("%s: %s for %q", what, j.Verdict, j.Reasons)
		}
	}
}
