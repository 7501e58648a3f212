package prepull

import (
	"cmp"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// system is a kind of node: Linux workers, or a build of Windows.
type system struct {
	os    specs.OS
	build string
	// nodes are those that pull; simulated ones, which do not, are only counted.
	nodes     []string
	simulated int
}

// systems returns those of nodes on which tests may be: control planes, nodes that
// are not ready or cordoned, and tainted Linux nodes are left out. People taint
// Windows nodes, and tests are steered there all the same.
func systems(nodes []result.Node) []system {
	var all []system
	for i := range nodes {
		n := &nodes[i]
		out := !n.Ready || n.Unschedulable || slices.ContainsFunc(n.Taints, unwell)
		if out || n.OS != specs.Windows && (n.OS != specs.Linux || n.ControlPlane || len(n.Taints) > 0) {
			continue
		}
		at := slices.IndexFunc(all, func(s system) bool { return s.os == n.OS && s.build == n.WindowsBuild })
		if at < 0 {
			at = len(all)
			all = append(all, system{os: n.OS, build: n.WindowsBuild})
		}
		if n.Simulated {
			all[at].simulated++
		} else {
			all[at].nodes = append(all[at].nodes, n.Name)
		}
	}
	slices.SortFunc(all, func(a, b system) int {
		return cmp.Or(strings.Compare(string(a.os), string(b.os)), strings.Compare(a.build, b.build))
	})
	return all
}

// unwell says that a taint, as "key=value:effect", is Kubernetes' own sign that
// something is wrong with a node.
func unwell(taint string) bool { return strings.HasPrefix(taint, "node.kubernetes.io/") }
