package result_test

import (
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// nodes are two Linux and two Windows nodes, changed.
func nodes(change ...func(n *result.Node)) *result.Facts {
	f := &result.Facts{}
	for _, n := range []result.Node{{Name: "l1", OS: specs.Linux}, {Name: "l2", OS: specs.Linux}, {Name: "w1", OS: specs.Windows}, {Name: "w2", OS: specs.Windows}} {
		n.Ready, n.ContainerRuntime, n.PodCIDRs = true, "containerd://2.1.4", []string{"10.0.0.0/24"}
		for _, c := range change {
			c(&n)
		}
		f.Nodes = append(f.Nodes, n)
	}
	return f
}

// only changes the node of that name.
func only(name string, change func(n *result.Node)) func(n *result.Node) {
	return func(n *result.Node) {
		if n.Name == name {
			change(n)
		}
	}
}

func TestWhetherHostProcessContainersCanRun(t *testing.T) {
	docker := func(n *result.Node) { n.ContainerRuntime = "docker://27.0.0" }
	mute := func(n *result.Node) { n.ContainerRuntime = "" }
	simulated := func(n *result.Node) { n.Simulated = n.OS == specs.Windows }
	for what, c := range map[string]struct {
		facts *result.Facts
		lacks bool
	}{
		"containerd everywhere":                   {nodes(), false},
		"no containerd on Windows":                {nodes(docker), true},
		"containerd on one Windows node":          {nodes(only("w1", docker)), false},
		"a node that does not say":                {nodes(docker, only("w2", mute)), false},
		"only a simulated node claims containerd": {nodes(only("w1", docker), only("w2", simulated)), true},
		"only a simulated node is without":        {nodes(only("w1", func(n *result.Node) { docker(n); n.Simulated = true })), false},
		"simulated nodes excuse nothing":          {nodes(docker, simulated), false},
		"no node":                                 {&result.Facts{}, false},
	} {
		if got := c.facts.LacksHostProcess(); got != c.lacks {
			t.Errorf("%s: lacks %t, want %t", what, got, c.lacks)
		}
	}
}

func TestNodesThatCount(t *testing.T) {
	for what, c := range map[string]struct {
		facts            *result.Facts
		windows, linux   int // that the standard counts
		usableW, usableL int // that tests can use
	}{
		"four nodes":       {nodes(), 2, 2, 2, 2},
		"a simulated node": {nodes(only("w1", func(n *result.Node) { n.Simulated = true })), 1, 2, 2, 2},
		"a cordoned node":  {nodes(only("w1", func(n *result.Node) { n.Unschedulable = true })), 1, 2, 1, 2},
		"a tainted node":   {nodes(only("l1", func(n *result.Node) { n.Taints = []string{"a:NoSchedule"} })), 2, 1, 2, 1},
		"a node down":      {nodes(only("l1", func(n *result.Node) { n.Ready = false })), 2, 1, 2, 1},
		"a control plane":  {nodes(only("l1", func(n *result.Node) { n.ControlPlane = true })), 2, 2, 2, 1},
		"of no system":     {nodes(only("w1", func(n *result.Node) { n.OS = "" })), 1, 2, 1, 2},
	} {
		for i, got := range []int{c.facts.Count(result.Counting(specs.Windows)), c.facts.Count(result.Counting(specs.Linux)), c.facts.Count(result.Usable(specs.Windows)), c.facts.Count(result.Usable(specs.Linux))} {
			if want := []int{c.windows, c.linux, c.usableW, c.usableL}[i]; got != want {
				t.Errorf("%s: number %d is %d, want %d", what, i+1, got, want)
			}
		}
	}
}

func TestStack(t *testing.T) {
	double := func(n *result.Node) { n.PodCIDRs = []string{"10.0.0.0/24", "fd00::/64"} }
	for what, c := range map[string]struct {
		facts *result.Facts
		want  result.Stack
	}{
		"one CIDR a node":          {nodes(), result.SingleStack},
		"two a node":               {nodes(double), result.DualStack},
		"two on one node":          {nodes(only("w1", double)), result.MixedStack},
		"two, one node is mute":    {nodes(double, only("w1", func(n *result.Node) { n.PodCIDRs = nil })), result.MixedStack},
		"none":                     {nodes(func(n *result.Node) { n.PodCIDRs = nil }), result.UnknownStack},
		"empty ones":               {nodes(func(n *result.Node) { n.PodCIDRs = []string{""} }), result.UnknownStack},
		"one, one node is mute":    {nodes(only("w1", func(n *result.Node) { n.PodCIDRs = nil })), result.UnknownStack},
		"simulated nodes have one": {nodes(func(n *result.Node) { n.Simulated = true }), result.SingleStack},
		"no node":                  {&result.Facts{}, result.UnknownStack},
	} {
		if got := c.facts.Stack(); got != c.want {
			t.Errorf("%s: stack %d, want %d", what, got, c.want)
		}
	}
}

func TestWhatTheAPIServerLacks(t *testing.T) {
	for what, c := range map[string]struct {
		groups      []string
		classes     []string
		gmsa, hyper bool
	}{
		"nothing is known": {nil, nil, false, false},
		"both are there":   {[]string{"apps", "windows.k8s.io"}, []string{"runhcs-wcow-hypervisor"}, false, false},
		"none is there":    {[]string{"apps"}, []string{}, true, true},
		"others are there": {[]string{"apps", "windows.k8s.io.example"}, []string{"runhcs-wcow-process"}, true, true},
		"no group at all":  {[]string{}, []string{"gvisor"}, false, true},
	} {
		f := &result.Facts{APIGroups: c.groups, RuntimeClasses: c.classes}
		if got := f.Lacks(result.GMSAGroup); got != c.gmsa {
			t.Errorf("%s: lacks gMSA %t", what, got)
		}
		if got := f.LacksHyperV(); got != c.hyper {
			t.Errorf("%s: lacks Hyper-V %t", what, got)
		}
	}
}
