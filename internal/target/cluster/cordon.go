package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// FieldManager is who wrote what this program writes, in the managedFields of an
// object: the API server takes it from the user agent.
const FieldManager = "op-readiness"

// CordonAnnotation is on nodes that a run of this program has cordoned, and
// will restore. A node with it counts as schedulable: so it is without the run.
const CordonAnnotation = "op-readiness/cordoned-by"

// cordonedByRun reports whether a run has cordoned the node.
func cordonedByRun(n *corev1.Node) bool {
	_, ok := n.Annotations[CordonAnnotation]
	return ok
}

// ownTaints are the node's taints, but for the one that says that it is
// cordoned where a run has done that.
func ownTaints(n *corev1.Node) []corev1.Taint {
	if !cordonedByRun(n) {
		return n.Spec.Taints
	}
	return slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable })
}
