package cluster

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/windows-op-readiness/windows-op-readiness/internal/result"
)

// NodeFacts returns what a run depends on of a node that was read elsewhere.
func NodeFacts(n *corev1.Node) result.Node { return nodeFacts(n) }
