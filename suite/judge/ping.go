package judge

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// PingTargets returns what the script ping is to ping on nodes: each internal address,
// with the port of the kubelet behind it.
func PingTargets(nodes []v1.Node) string {
	var targets []string
	for i := range nodes {
		for _, a := range nodes[i].Status.Addresses {
			if a.Type == v1.NodeInternalIP {
				targets = append(targets, fmt.Sprintf("%s,%d", a.Address, nodes[i].Status.DaemonEndpoints.KubeletEndpoint.Port))
			}
		}
	}
	return strings.Join(targets, " ")
}

// Pings returns, by the log of script ping on one node, how many of three pings each of
// the nodes has answered, and which have answered none. A node whose kubelet can be
// connected to is there, and the pings are blocked.
func Pings(from string, to []v1.Node, log string) (answers string, problems []string) {
	var said struct {
		Pings map[string]struct {
			Answers  int  `json:"answers"`
			Connects bool `json:"connects"`
		} `json:"pings"`
	}
	if err := answer(log, &said); err != nil {
		return "", []string{fmt.Sprintf("node %s: script ping: %v", from, err)}
	}
	var row []string
	for i := range to {
		found := false
		for _, a := range to[i].Status.Addresses {
			if a.Type != v1.NodeInternalIP {
				continue
			}
			found = true
			ping := said.Pings[a.Address]
			row = append(row, fmt.Sprintf("%s %d of 3", to[i].Name, ping.Answers))
			switch {
			case ping.Answers > 0:
			case ping.Connects:
				problems = append(problems, fmt.Sprintf("node %s gets no answer to its pings of node %s at %s, whose kubelet can be connected to: ICMP is blocked", from, to[i].Name, a.Address))
			default:
				problems = append(problems, fmt.Sprintf("node %s gets no answer to its pings of node %s at %s, and cannot connect to its kubelet either", from, to[i].Name, a.Address))
			}
		}
		if !found {
			problems = append(problems, fmt.Sprintf("node %s has no internal address to ping", to[i].Name))
		}
	}
	return strings.Join(row, ", "), problems
}
