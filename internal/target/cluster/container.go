package cluster

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
)

// neverRan are the reasons with which a runtime says of a container that has
// ended that it could not be started: containerd's, and Docker's.
// Docker gives it the time at which it was made for the one at which it started.
var neverRan = []string{"StartError", "ContainerCannotRun"}

// Ran reports whether a container runs, or has run, as far as the kubelet tells.
func Ran(c *corev1.ContainerStatus) bool {
	return ran(&c.State) || ran(&c.LastTerminationState)
}

func ran(s *corev1.ContainerState) bool {
	if s.Running != nil {
		return actual(s.Running.StartedAt)
	}
	return s.Terminated != nil && actual(s.Terminated.StartedAt) && !slices.Contains(neverRan, s.Terminated.Reason)
}

// actual reports whether a time is one. Of a container that never started, a
// kubelet passes on the runtime's 0, which is the beginning of 1970.
func actual(at metav1.Time) bool { return at.Unix() > 0 }

// Trouble says what keeps a pod from starting; "" where nothing is known to.
func Trouble(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return Said(c.Reason + ": " + c.Message)
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil && w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return Said(w.Reason + ": " + w.Message)
		}
		if t := c.State.Terminated; t != nil && !Ran(&c) {
			return Said(t.Reason + ": " + t.Message)
		}
	}
	return ""
}

// Said makes a short line of what comes from a cluster.
func Said(s string) string {
	return text.Cut(strings.TrimSpace(strings.TrimSuffix(shown.Line(s), ":")), 400)
}
