package judge

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestRefusedForOS(t *testing.T) {
	ran := []v1.ContainerStatus{{Name: "c", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}}
	again := []v1.ContainerStatus{{Name: "c", RestartCount: 1}}
	for what, c := range map[string]struct {
		status v1.PodStatus
		want   string
	}{
		"refused":            {v1.PodStatus{Phase: v1.PodFailed, Reason: "PodOSNotSupported"}, ""},
		"pending":            {v1.PodStatus{Phase: v1.PodPending}, `pod p is Pending with reason "": the kubelet has not refused it with PodOSNotSupported`},
		"of another reason":  {v1.PodStatus{Phase: v1.PodFailed, Reason: "OutOfpods"}, `pod p is Failed with reason "OutOfpods": the kubelet has not refused it with PodOSNotSupported`},
		"it runs":            {v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: ran}, "container c of pod p has run"},
		"it ran, and failed": {v1.PodStatus{Phase: v1.PodFailed, Reason: "PodOSNotSupported", ContainerStatuses: again}, "container c of pod p has run"},
	} {
		pod := &v1.Pod{Status: c.status}
		pod.Name = "p"
		if got := RefusedForOS(pod); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}
