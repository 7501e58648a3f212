package result

import (
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// The predicates here are what preflight and verdict both decide from.

// RealWindows reports whether the node is a Windows node on which containers run.
func (n *Node) RealWindows() bool { return n.OS == specs.Windows && !n.Simulated }

// Is returns a predicate for nodes of one operating system; for [specs.AnyOS],
// of whatever one.
func Is(os specs.OS) func(*Node) bool {
	return func(n *Node) bool { return os == specs.AnyOS || n.OS == os }
}

// Simulated counts the simulated nodes among those for which keep holds.
func (f *Facts) Simulated(keep func(*Node) bool) int {
	return f.Count(func(n *Node) bool { return n.Simulated && keep(n) })
}

// Usable reports whether tests would put a pod without tolerations on a node of
// that system; control planes do not count as Linux nodes that tests can use.
func Usable(os specs.OS) func(*Node) bool {
	return func(n *Node) bool {
		return n.OS == os && n.Schedulable() && (os != specs.Linux || !n.ControlPlane)
	}
}

// Counting reports whether a node counts for the standard's number of nodes: it
// is real and can be scheduled to.
func Counting(os specs.OS) func(*Node) bool {
	return func(n *Node) bool { return n.OS == os && n.Schedulable() && !n.Simulated }
}

// MinimumNodes is how many nodes of each operating system the standard asks for.
const MinimumNodes = 2

// Stack is of how many families the addresses of pods are.
type Stack int

// The stacks.
const (
	// UnknownStack says that some nodes have no pod CIDR, as where a network
	// gives addresses in its own way.
	UnknownStack Stack = iota
	// SingleStack says that every node has pod CIDRs of one family.
	SingleStack
	// MixedStack says that only some nodes have them of two families.
	MixedStack
	// DualStack says that every node has them of two families.
	DualStack
)

// families counts the node's pod CIDRs, of which there is one of each family.
func (n *Node) families() int {
	return len(slices.DeleteFunc(slices.Clone(n.PodCIDRs), func(cidr string) bool { return cidr == "" }))
}

// Stack tells from the nodes' pod CIDRs whether the cluster is dual-stack.
// Simulated nodes count: it is the control plane that gives them.
func (f *Facts) Stack() Stack {
	single := f.Count(func(n *Node) bool { return n.families() == 1 })
	switch double := f.Count(HasTwoFamilies); {
	case double > 0 && double == len(f.Nodes):
		return DualStack
	case double > 0:
		return MixedStack
	case single > 0 && single == len(f.Nodes):
		return SingleStack
	}
	return UnknownStack
}

// HasNoFamily reports whether the node has no pod CIDR.
func HasNoFamily(n *Node) bool { return n.families() == 0 }

// HasTwoFamilies reports whether the node has pod CIDRs of two families.
func HasTwoFamilies(n *Node) bool { return n.families() > 1 }

// Groups of the API that features are known by.
const (
	GMSAGroup    = "windows.k8s.io"
	MetricsGroup = "metrics.k8s.io"
)

// Lacks reports whether the API server is known not to serve a group; an API
// server that is said to serve none was not asked.
func (f *Facts) Lacks(group string) bool {
	return len(f.APIGroups) > 0 && !slices.Contains(f.APIGroups, group)
}

// Containerd reports whether the node runs containerd, of whatever version.
func (n *Node) Containerd() bool { return strings.HasPrefix(n.ContainerRuntime, "containerd://") }

// LacksHostProcess reports whether it is known that no Windows node can run
// HostProcess containers: none has containerd. Simulated nodes run nothing, so
// what they claim neither grants nor excuses it.
func (f *Facts) LacksHostProcess() bool {
	windows := f.Count((*Node).RealWindows)
	other := f.Count(func(n *Node) bool { return n.RealWindows() && n.ContainerRuntime != "" && !n.Containerd() })
	return windows > 0 && other == windows
}

// LacksHyperV reports whether it is known that there is no runtime class of
// Hyper-V isolation.
func (f *Facts) LacksHyperV() bool {
	return f.RuntimeClasses != nil && !slices.Contains(f.RuntimeClasses, specs.HyperVClass)
}
