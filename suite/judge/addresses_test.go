package judge

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// windows is the node of these tests.
const windows = "windows-1"

// node has the internal address 10.0.0.4, and hands out addresses of the ranges.
func node(ranges ...string) *v1.Node {
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: windows},
		Spec:       v1.NodeSpec{PodCIDRs: ranges},
		Status: v1.NodeStatus{Addresses: []v1.NodeAddress{
			{Type: v1.NodeHostName, Address: windows},
			{Type: v1.NodeInternalIP, Address: "10.0.0.4"},
			{Type: v1.NodeInternalIP, Address: "fd00::4"},
		}},
	}
}

// pod is on a node, and has the addresses.
func pod(name, node string, addresses ...string) v1.Pod {
	p := v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PodSpec{NodeName: node}}
	for _, a := range addresses {
		p.Status.PodIPs = append(p.Status.PodIPs, v1.PodIP{IP: a})
	}
	return p
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	const v4, v6 = "10.244.1.0/24", "fd00:10:244:1::/64"
	for name, c := range map[string]struct {
		node   *v1.Node
		pods   []v1.Pod
		wanted int
		want   []string
	}{
		"distinct": {
			node: node(v4), wanted: 2,
			pods: []v1.Pod{pod("a", windows, "10.244.1.2"), pod("b", windows, "10.244.1.3")},
		},
		"distinct, of two families": {
			node: node(v4, v6), wanted: 2,
			pods: []v1.Pod{pod("a", windows, "10.244.1.2", "fd00:10:244:1::2"), pod("b", windows, "10.244.1.3", "fd00:10:244:1::3")},
		},
		"of a node that names no ranges": {
			node: node(), wanted: 1,
			pods: []v1.Pod{pod("a", windows, "10.244.1.2")},
		},
		"of a node with ranges that are none": {
			node: node("", "10.244.1.0", "everything"), wanted: 1,
			pods: []v1.Pod{pod("a", windows, "10.244.1.2")},
		},
		"of a node without a readable address": {
			node: &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: windows}, Status: v1.NodeStatus{Addresses: []v1.NodeAddress{{}, {Address: "10.0.0"}}}}, wanted: 1,
			pods: []v1.Pod{pod("a", windows, "10.244.1.2")},
		},
		"a pod too few": {
			node: node(v4), wanted: 2,
			pods: []v1.Pod{pod("a", windows, "10.244.1.2")},
			want: []string{"1 pod is there, and 2 were made"},
		},
		"a pod too many": {
			node: node(v4), wanted: 1,
			pods: []v1.Pod{pod("a", windows, "10.244.1.2"), pod("b", windows, "10.244.1.3")},
			want: []string{"2 pods are there, and 1 were made"},
		},
		"no pods": {
			node: node(v4), wanted: 2,
			want: []string{"0 pods are there, and 2 were made"},
		},
		"no address": {
			node: node(v4), wanted: 1,
			pods: []v1.Pod{pod("a", windows)},
			want: []string{"pod a has no address"},
		},
		"no address, in the old field alone": {
			node: node(v4), wanted: 1,
			pods: []v1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1.PodSpec{NodeName: windows}, Status: v1.PodStatus{PodIP: "10.244.1.2"}}},
			want: []string{"pod a has no address"},
		},
		"an empty address": {
			node: node(v4), wanted: 1,
			pods: []v1.Pod{pod("a", windows, "")},
			want: []string{`pod a has the address "", which is none`, "pod a has no address"},
		},
		"garbage": {
			node: node(v4), wanted: 2,
			pods: []v1.Pod{pod("a", windows, "10.244.1"), pod("b", windows, "10.244.1.3/24", "10.244.1.3")},
			want: []string{`pod a has the address "10.244.1", which is none`, "pod a has no address", `pod b has the address "10.244.1.3/24", which is none`},
		},
		"two pods have one": {
			node: node(v4), wanted: 2,
			pods: []v1.Pod{pod("a", windows, "10.244.1.2"), pod("b", windows, "10.244.1.2")},
			want: []string{"pod b has the address 10.244.1.2 of pod a"},
		},
		"three pods have one": {
			node: node(v4), wanted: 3,
			pods: []v1.Pod{pod("a", windows, "10.244.1.2"), pod("b", windows, "10.244.1.2"), pod("c", windows, "10.244.1.2")},
			want: []string{"pod b has the address 10.244.1.2 of pod a", "pod c has the address 10.244.1.2 of pod b"},
		},
		"one, mapped into IPv6": {
			node: node(v4), wanted: 2,
			pods: []v1.Pod{pod("a", windows, "10.244.1.2"), pod("b", windows, "::ffff:10.244.1.2")},
			want: []string{"pod b has the address 10.244.1.2 of pod a"},
		},
		"one, spelled in two ways": {
			node: node(v6), wanted: 2,
			pods: []v1.Pod{pod("a", windows, "fd00:10:244:1::2"), pod("b", windows, "FD00:10:244:1:0:0:0:2")},
			want: []string{"pod b has the address fd00:10:244:1::2 of pod a"},
		},
		"a pod has one twice": {
			node: node(v4), wanted: 1,
			pods: []v1.Pod{pod("a", windows, "10.244.1.2", "10.244.1.2")},
			want: []string{"pod a has the address 10.244.1.2 of pod a"},
		},
		"that of the node": {
			node: node(v4), wanted: 2,
			pods: []v1.Pod{pod("a", windows, "10.0.0.4"), pod("b", windows, "::ffff:a00:4")},
			want: []string{"pod a has the address 10.0.0.4 of node windows-1", "pod b has the address 10.0.0.4 of pod a"},
		},
		"that of the node, which says it mapped into IPv6": {
			node: &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: windows}, Status: v1.NodeStatus{Addresses: []v1.NodeAddress{{Address: "::ffff:10.0.0.4"}}}}, wanted: 1,
			pods: []v1.Pod{pod("a", windows, "10.0.0.4")},
			want: []string{"pod a has the address 10.0.0.4 of node windows-1"},
		},
		"that of the node, of the second family": {
			node: node(v4, v6), wanted: 1,
			pods: []v1.Pod{pod("a", windows, "10.244.1.2", "fd00::4")},
			want: []string{"pod a has the address fd00::4 of node windows-1"},
		},
		"the second family is missing": {
			node: node(v4, v6), wanted: 2,
			pods: []v1.Pod{pod("a", windows, "10.244.1.2"), pod("b", windows, "10.244.1.3", "fd00:10:244:1::3")},
			want: []string{"pod a has no IPv6 address, and its node hands them out (10.244.1.0/24, fd00:10:244:1::/64)"},
		},
		"the first family is missing": {
			node: node(v4, v6), wanted: 1,
			pods: []v1.Pod{pod("a", windows, "fd00:10:244:1::2")},
			want: []string{"pod a has no IPv4 address, and its node hands them out (10.244.1.0/24, fd00:10:244:1::/64)"},
		},
		"an IPv4 address in the clothes of IPv6 stands in for none": {
			node: node(v4, v6), wanted: 1,
			pods: []v1.Pod{pod("a", windows, "10.244.1.2", "::ffff:10.244.1.3")},
			want: []string{"pod a has no IPv6 address, and its node hands them out (10.244.1.0/24, fd00:10:244:1::/64)"},
		},
		"another node": {
			node: node(v4), wanted: 2,
			pods: []v1.Pod{pod("a", "linux-1", "10.244.2.2"), pod("b", "", "10.244.1.2")},
			want: []string{`pod a is on node "linux-1", not on windows-1`, `pod b is on node "", not on windows-1`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			same(t, Addresses(c.node, c.pods, c.wanted), c.want)
		})
	}
}

func same(t *testing.T, is, want []string) {
	t.Helper()
	if !slices.Equal(is, want) {
		t.Errorf("it is\n\t%s\nand should be\n\t%s", strings.Join(is, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// What is read as an address is one pod's, and whatever it is, a second pod with the
// same does not pass.
func FuzzAddresses(f *testing.F) {
	for _, a := range []string{"", "10.244.1.2", "::ffff:10.244.1.2", "fd00::1", "fe80::1%eth0", "::", "0.0.0.0", "10.0.0.4", "10.244.1", "010.1.1.1", "\x00"} {
		f.Add(a, "10.244.1.0/24")
	}
	f.Add("10.244.1.2", "/")
	f.Fuzz(func(t *testing.T, address, podRange string) {
		node := node(podRange)
		one := Addresses(node, []v1.Pod{pod("a", windows, address)}, 1)
		if _, err := netip.ParseAddr(address); err != nil && len(one) == 0 {
			t.Errorf("%q is no address, and passes", address)
		}
		two := Addresses(node, []v1.Pod{pod("a", windows, address), pod("b", windows, address)}, 2)
		if len(two) <= len(one) {
			t.Errorf("%q of two pods has no more problems than of one: %q and %q", address, two, one)
		}
	})
}
