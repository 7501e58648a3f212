// Package judge decides, from what tests have observed, whether it is what a
// requirement asks for. It asks no cluster.
package judge

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Addresses returns what is wrong with the addresses of the pods of a node, of
// which there must be as many as wanted: each pod has one of each family that the
// node hands out, which neither another pod has nor the node. None is none.
func Addresses(node *v1.Node, pods []v1.Pod, wanted int) []string {
	var problems []string
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if len(pods) != wanted {
		bad("%s there, and %d were made", are(len(pods), "pod"), wanted)
	}
	families := families(node.Spec.PodCIDRs)
	owner := map[netip.Addr]string{}
	for _, a := range node.Status.Addresses {
		if ip, err := netip.ParseAddr(a.Address); err == nil {
			owner[ip.Unmap()] = "node " + node.Name
		}
	}
	for i := range pods {
		pod := &pods[i]
		if pod.Spec.NodeName != node.Name {
			bad("pod %s is on node %q, not on %s", pod.Name, pod.Spec.NodeName, node.Name)
		}
		var has []string
		for _, a := range pod.Status.PodIPs {
			ip, err := netip.ParseAddr(a.IP)
			if err != nil {
				bad("pod %s has the address %q, which is none", pod.Name, a.IP)
				continue
			}
			ip = ip.Unmap()
			has = append(has, family(ip))
			if other, taken := owner[ip]; taken {
				bad("pod %s has the address %s of %s", pod.Name, ip, other)
			}
			owner[ip] = "pod " + pod.Name
		}
		if len(has) == 0 {
			bad("pod %s has no address", pod.Name)
		}
		for _, f := range families {
			if len(has) > 0 && !slices.Contains(has, f) {
				bad("pod %s has no %s address, and its node hands them out (%s)", pod.Name, f, strings.Join(node.Spec.PodCIDRs, ", "))
			}
		}
	}
	return problems
}

// families returns those of address ranges.
func families(ranges []string) []string {
	var found []string
	for _, r := range ranges {
		if prefix, err := netip.ParsePrefix(r); err == nil {
			found = append(found, family(prefix.Addr()))
		}
	}
	return found
}

func family(ip netip.Addr) string {
	if ip.Is4() {
		return "IPv4"
	}
	return "IPv6"
}
