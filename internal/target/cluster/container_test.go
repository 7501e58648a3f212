package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRan(t *testing.T) {
	now, zero, epoch := metav1.Now(), metav1.Time{}, metav1.NewTime(time.Unix(0, 0))
	running := func(at metav1.Time) corev1.ContainerState {
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}
	}
	ended := func(reason string, at metav1.Time) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, StartedAt: at, FinishedAt: now}}
	}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	for what, c := range map[string]struct {
		state, last corev1.ContainerState
		want        bool
	}{
		"nothing is known":                           {corev1.ContainerState{}, corev1.ContainerState{}, false},
		"it waits":                                   {waiting, corev1.ContainerState{}, false},
		"it runs":                                    {running(now), corev1.ContainerState{}, true},
		"it runs since never":                        {running(zero), corev1.ContainerState{}, false},
		"it ended well":                              {ended("Completed", now), corev1.ContainerState{}, true},
		"it failed":                                  {ended("Error", now), corev1.ContainerState{}, true},
		"it was killed for memory":                   {ended("OOMKilled", now), corev1.ContainerState{}, true},
		"it waits to run again":                      {waiting, ended("Error", now), true},
		"containerd could not start it":              {ended("StartError", epoch), corev1.ContainerState{}, false},
		"StartError, with a time":                    {ended("StartError", now), corev1.ContainerState{}, false},
		"Docker could not start it":                  {ended("ContainerCannotRun", now), corev1.ContainerState{}, false},
		"it could not be started, and waits":         {waiting, ended("StartError", epoch), false},
		"it ran, and could not be started again":     {ended("StartError", epoch), ended("Error", now), true},
		"the kubelet lost it":                        {ended("ContainerStatusUnknown", zero), corev1.ContainerState{}, false},
		"an init container that the kubelet assumes": {ended("Completed", zero), corev1.ContainerState{}, false},
		"a runtime without a time":                   {ended("Error", metav1.NewTime(time.Unix(0, time.Time{}.UnixNano()))), corev1.ContainerState{}, false},
	} {
		if got := Ran(&corev1.ContainerStatus{State: c.state, LastTerminationState: c.last}); got != c.want {
			t.Errorf("%s: ran %t", what, got)
		}
	}
}

func TestSimulated(t *testing.T) {
	node := func(change func(n *corev1.Node)) *corev1.Node {
		n := &corev1.Node{Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{MachineID: "m", SystemUUID: "s", BootID: "b"}}}
		n.Labels, n.Annotations = map[string]string{}, map[string]string{}
		change(n)
		return n
	}
	ids := func(machine, system, boot string) *corev1.Node {
		return node(func(n *corev1.Node) {
			n.Status.NodeInfo = corev1.NodeSystemInfo{MachineID: machine, SystemUUID: system, BootID: boot}
		})
	}
	for what, c := range map[string]struct {
		node *corev1.Node
		want bool
	}{
		"a kubelet's":             {ids("m", "s", "b"), false},
		"without a machine id":    {ids("", "s", "b"), false},
		"without a system's UUID": {ids("m", "", "b"), false},
		"without a boot id":       {ids("m", "s", ""), false},
		"with a boot id alone":    {ids("", "", "b"), false},
		"without any id":          {ids("", "", ""), true},
		"kwok's annotation":       {node(func(n *corev1.Node) { n.Annotations[kwokAnnotation] = "fake" }), true},
		"kwok's label":            {node(func(n *corev1.Node) { n.Labels["type"] = "kwok" }), true},
		"another type":            {node(func(n *corev1.Node) { n.Labels["type"] = "virtual-kubelet" }), false},
	} {
		if got := nodeFacts(c.node).Simulated; got != c.want || simulated(c.node) != c.want {
			t.Errorf("%s: simulated %t", what, got)
		}
	}
}
