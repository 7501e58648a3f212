package judge

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// podOSNotSupported is the kubelet's reason: pkg/kubelet/lifecycle/predicate.go.
const podOSNotSupported = "PodOSNotSupported"

// RefusedForOS returns what is other than that the kubelet has refused a pod for the
// operating system that it names; "" for nothing.
func RefusedForOS(pod *v1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Running != nil || c.LastTerminationState.Terminated != nil || c.RestartCount > 0 {
			return fmt.Sprintf("container %s of pod %s has run", c.Name, pod.Name)
		}
	}
	if pod.Status.Phase != v1.PodFailed || pod.Status.Reason != podOSNotSupported {
		return fmt.Sprintf("pod %s is %s with reason %q: the kubelet has not refused it with %s", pod.Name, pod.Status.Phase, pod.Status.Reason, podOSNotSupported)
	}
	return ""
}
