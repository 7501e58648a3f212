package preflight

import (
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// What preflight says of a feature before a run, the verdict says after it.
func TestPreflightAndVerdictAgree(t *testing.T) {
	windows := func(change func(*Node)) func(*Facts) { return eachNode(specs.Windows, change) }
	for _, tt := range []struct {
		name    string
		change  func(*Facts)
		feature string
		finding string
		says    string // of what is absent
		absent  bool
	}{
		{"containerd", nil, "hpc", "host-process", "not asked", false},
		{"no containerd", windows(func(n *Node) { n.ContainerRuntime = "docker://27" }), "hpc", "host-process", "not asked", true},
		{"containerd on a simulated node only", windows(func(n *Node) {
			if n.ContainerRuntime = "docker://27"; n.Name == "windows-1" {
				n.ContainerRuntime, n.Simulated = "containerd://2.1.4", true
			}
		}), "hpc", "host-process", "not asked", true},
		{"only simulated nodes, without containerd", windows(func(n *Node) { n.ContainerRuntime, n.Simulated = "docker://27", true }), "hpc", "host-process", "not asked", false},
		{"one pod CIDR", nil, "dual-stack", "dual-stack", "is not asked", true},
		{"empty pod CIDRs", func(f *Facts) {
			for i := range f.Nodes.Value {
				f.Nodes.Value[i].PodCIDRs = []string{""}
			}
		}, "dual-stack", "dual-stack", "is not asked", false},
		{"no gMSA", nil, "gmsa", "gmsa", "not asked", true},
		{"gMSA", func(f *Facts) { f.APIGroups = value([]string{"apps", "windows.k8s.io"}) }, "gmsa", "gmsa", "not asked", false},
		{"no groups at all", func(f *Facts) { f.APIGroups = value([]string{}) }, "gmsa", "gmsa", "not asked", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := goodCluster(t)
			if tt.change != nil {
				tt.change(f)
			}
			facts, err := f.ForRun()
			if err != nil {
				t.Fatal(err)
			}
			c := &result.PlannedCase{Case: specs.Case{Kind: specs.Requirement, Proof: specs.ProofFull, Needs: specs.Needs{Condition: []string{tt.feature}}}}
			outcome, reason := verdict.Decide(c, &result.Manifest{Cluster: *facts})
			if absent := outcome == verdict.NotApplicable; absent != tt.absent {
				t.Errorf("the verdict says %s: %s", outcome, reason)
			}
			found := finding(Check(f), tt.finding)
			if absent := strings.Contains(found.Found, tt.says); absent != tt.absent || found.ID == "" {
				t.Errorf("preflight says %+v", found)
			}
		})
	}
}
