package cluster

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
)

// NodeFacts returns what a run depends on of a node that was read elsewhere.
func NodeFacts(n *corev1.Node) result.Node { return nodeFacts(n) }

// kwokAnnotation is on the nodes that kwok plays.
const kwokAnnotation = "kwok.x-k8s.io/node"

// simulated reports whether no containers ever run on a node: kwok plays it, or
// nothing is behind it. A kubelet reports the id of its machine, of its system
// and of its boot; it may miss one of them, but not all.
func simulated(n *corev1.Node) bool {
	_, played := n.Annotations[kwokAnnotation]
	info := &n.Status.NodeInfo
	return played || n.Labels["type"] == "kwok" || info.MachineID == "" && info.SystemUUID == "" && info.BootID == ""
}
