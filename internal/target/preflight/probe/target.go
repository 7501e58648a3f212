package probe

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Target is a kind of node that is probed on one of its nodes.
type Target struct {
	OS specs.OS `json:"os"`
	// Build is the Windows build, such as "10.0.20348"; "" for Linux, and where
	// nodes do not say.
	Build string `json:"build,omitempty"`

	nodes       []string
	tolerations []corev1.Toleration
}

// Targets returns what can be probed among nodes: Linux workers that tests can
// use, and each build of Windows. Simulated nodes, cordoned ones and those that
// are not ready are left out. Taints of Windows nodes that people put on are
// tolerated, as tests are made to when they are steered there.
func Targets(nodes []result.Node) []Target {
	var targets []Target
	for i := range nodes {
		n := &nodes[i]
		t := Target{OS: n.OS}
		switch {
		case n.Simulated || !n.Ready || n.Unschedulable:
			continue
		case n.OS == specs.Linux && !n.ControlPlane && len(n.Taints) == 0:
		case n.OS == specs.Windows && !slices.ContainsFunc(n.Taints, unwell):
			t.Build = n.WindowsBuild
		default:
			continue
		}
		at := slices.IndexFunc(targets, func(other Target) bool { return other.OS == t.OS && other.Build == t.Build })
		if at < 0 {
			targets = append(targets, t)
			at = len(targets) - 1
		}
		targets[at].add(n)
	}
	slices.SortFunc(targets, func(a, b Target) int {
		return cmp.Or(strings.Compare(string(a.OS), string(b.OS)), strings.Compare(a.Build, b.Build))
	})
	return targets
}

// unwell says that a taint, as "key=value:effect", is Kubernetes' own sign that
// something is wrong with a node.
func unwell(taint string) bool { return strings.HasPrefix(taint, "node.kubernetes.io/") }

func (t *Target) add(n *result.Node) {
	t.nodes = append(t.nodes, n.Name)
	slices.Sort(t.nodes)
	for _, taint := range n.Taints {
		key, effect, _ := strings.Cut(taint, ":")
		key, value, _ := strings.Cut(key, "=")
		toleration := corev1.Toleration{Key: key, Operator: corev1.TolerationOpEqual, Value: value, Effect: corev1.TaintEffect(effect)}
		if !slices.Contains(t.tolerations, toleration) {
			t.tolerations = append(t.tolerations, toleration)
		}
	}
}

// name is fit for a pod's name.
func (t *Target) name() string {
	if t.Build == "" {
		return string(t.OS)
	}
	return string(t.OS) + "-" + strings.ToLower(strings.NewReplacer(".", "-", "_", "-").Replace(t.Build))
}
