package prepull_test

import (
	"slices"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/prepull"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// named is some of what e2e.test v1.36.3 names, with another registry.
var named = []string{
	"gcr.io/k8s-authenticated-test/agnhost:2.6",
	"invalid.registry.k8s.io/invalid/alpine:3.1",
	"mirror.example:5000/e2e/agnhost:2.55", "mirror.example:5000/e2e/agnhost:2.63.0",
	"mirror.example:5000/e2e/busybox:1.36.1-1", "mirror.example:5000/e2e/busybox:1.37.0-1",
	"mirror.example:5000/e2e/ipc-utils:1.4", "mirror.example:5000/e2e/node-perf/npb-ep:1.6.0",
	"mirror.example:5000/e2e/nginx:1.15-4", "mirror.example:5000/e2e/nginx:1.27-0",
	"mirror.example:5000/e2e/nonroot:1.5", "mirror.example:5000/e2e/volume/nfs:1.6.0",
	"mirror.example:5000/e2e/agnhost:latest",
	"registry.k8s.io/pause:3.10.2",
}

func TestChoose(t *testing.T) {
	windows := []string{
		"mirror.example:5000/e2e/agnhost:2.63.0", "mirror.example:5000/e2e/agnhost:2.55",
		"mirror.example:5000/e2e/busybox:1.37.0-1", "mirror.example:5000/e2e/busybox:1.36.1-1",
		"mirror.example:5000/e2e/nginx:1.27-0", "mirror.example:5000/e2e/nginx:1.15-4", "registry.k8s.io/pause:3.10.2",
	}
	if got := prepull.Choose(named, specs.Windows); !slices.Equal(got, windows) {
		t.Errorf("on Windows: %q", got)
	}
	linux := prepull.Choose(named, specs.Linux)
	for _, image := range append(windows, "mirror.example:5000/e2e/ipc-utils:1.4", "mirror.example:5000/e2e/nonroot:1.5", "mirror.example:5000/e2e/volume/nfs:1.6.0") {
		if !slices.Contains(linux, image) {
			t.Errorf("on Linux, %s is not pulled, but %q", image, linux)
		}
	}
	if len(linux) != len(windows)+3 {
		t.Errorf("on Linux: %q", linux)
	}
}

// Nothing is asked of a cluster all of whose nodes are simulated, or out of use.
func TestSimulatedNodesPullNothing(t *testing.T) {
	node := func(name string, change func(*result.Node)) result.Node {
		n := result.Node{Name: name, OS: specs.Windows, WindowsBuild: "10.0.20348", Ready: true, Simulated: true}
		change(&n)
		return n
	}
	pulls, err := prepull.Pull(t.Context(), nil, prepull.Options{Images: named[len(named)-1:], Nodes: []result.Node{
		node("played-1", func(*result.Node) {}),
		node("played-2", func(n *result.Node) { n.Taints = []string{"os=windows:NoSchedule"} }),
		node("sick", func(n *result.Node) { n.Simulated, n.Ready = false, false }),
		node("cordoned", func(n *result.Node) { n.Simulated, n.Unschedulable = false, true }),
		node("under pressure", func(n *result.Node) {
			n.Simulated, n.Taints = false, []string{"node.kubernetes.io/disk-pressure:NoSchedule"}
		}),
		node("control plane", func(n *result.Node) { n.Simulated, n.OS, n.ControlPlane = false, specs.Linux, true }),
		node("tainted Linux", func(n *result.Node) { n.Simulated, n.OS, n.Taints = false, specs.Linux, []string{"a=b:NoSchedule"} }),
	}})
	want := result.Pull{Image: "registry.k8s.io/pause:3.10.2", OS: specs.Windows, WindowsBuild: "10.0.20348", Skipped: "2 simulated nodes, which pull nothing"}
	if err != nil || !slices.Equal(pulls, []result.Pull{want}) {
		t.Errorf("got %+v, %v", pulls, err)
	}
}
