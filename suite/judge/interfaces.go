package judge

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Interfaces is what a node says of its own network.
type Interfaces struct {
	Hostname  string   `json:"hostname"`
	Addresses []string `json:"addresses"`
	// TCP and UDP are the ports at which something listens.
	TCP []int32 `json:"tcp"`
	UDP []int32 `json:"udp"`
}

// ReadInterfaces reads it from the log of script interfaces. Hostnames of Windows come
// in capitals; that makes no difference there, and they are returned in small letters.
func ReadInterfaces(log string) (*Interfaces, error) {
	var i Interfaces
	if err := answer(log, &i); err != nil {
		return nil, fmt.Errorf("script interfaces: %w", err)
	}
	if i.Hostname == "" {
		return nil, fmt.Errorf("script interfaces: the node has no hostname")
	}
	i.Hostname = strings.ToLower(i.Hostname)
	return &i, nil
}

// Free returns the first port from that one on at which nothing listens, neither TCP
// nor UDP; 0 for none.
func (i *Interfaces) Free(from int32) int32 {
	const most = 65535
	for port := from; port <= most; port++ {
		if !slices.Contains(i.TCP, port) && !slices.Contains(i.UDP, port) {
			return port
		}
	}
	return 0
}

// has reports whether an address is one of the node's interfaces'.
func (i *Interfaces) has(want string) bool {
	address, err := netip.ParseAddr(want)
	return err == nil && slices.ContainsFunc(i.Addresses, func(text string) bool {
		is, err := netip.ParseAddr(text)
		return err == nil && is.WithZone("") == address
	})
}

// SharesAddress returns what is other than that a pod has the addresses of its node:
// those that the API names, which must be those of the interfaces that the pod's own
// process sees. None is none.
func SharesAddress(node *v1.Node, pod *v1.Pod, seen *Interfaces) []string {
	var internal, problems []string
	for _, a := range node.Status.Addresses {
		if a.Type == v1.NodeInternalIP {
			internal = append(internal, a.Address)
		}
	}
	nodes := fmt.Sprintf("node %s, which has %s", node.Name, strings.Join(internal, " and "))
	if !slices.Contains(internal, pod.Status.HostIP) {
		problems = append(problems, fmt.Sprintf("pod %s is said to be on host %q: that is not %s", pod.Name, pod.Status.HostIP, nodes))
	}
	ips := []string{pod.Status.PodIP}
	for _, ip := range pod.Status.PodIPs {
		if ip.IP != pod.Status.PodIP {
			ips = append(ips, ip.IP)
		}
	}
	for _, ip := range ips {
		if !slices.Contains(internal, ip) {
			problems = append(problems, fmt.Sprintf("pod %s has the address %q: that is not of %s", pod.Name, ip, nodes))
		}
		if !seen.has(ip) {
			problems = append(problems, fmt.Sprintf("the process of pod %s does not see the address %q among its interfaces: %s", pod.Name, ip, strings.Join(seen.Addresses, ", ")))
		}
	}
	return problems
}
