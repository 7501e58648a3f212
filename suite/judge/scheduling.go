package judge

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Largest returns the most of a resource that any of the nodes can give to pods.
func Largest(nodes []v1.Node, of v1.ResourceName) resource.Quantity {
	var largest resource.Quantity
	for i := range nodes {
		if q := nodes[i].Status.Allocatable[of]; q.Cmp(largest) > 0 {
			largest = q.DeepCopy()
		}
	}
	return largest
}

// Insufficient returns what a pod is other than pending because none of as many
// nodes has enough of a resource; "" if it is just that. The scheduler's message
// counts nodes and names none: "0/3 nodes are available: 1 Insufficient cpu, …".
func Insufficient(pod *v1.Pod, of v1.ResourceName, nodes int) string {
	if pod.Spec.NodeName != "" {
		return fmt.Sprintf("pod %s was put on node %s", pod.Name, pod.Spec.NodeName)
	}
	if pod.Status.Phase != v1.PodPending {
		return fmt.Sprintf("pod %s is %s, not Pending", pod.Name, pod.Status.Phase)
	}
	for _, c := range pod.Status.Conditions {
		if c.Type != v1.PodScheduled {
			continue
		}
		if c.Status != v1.ConditionFalse || c.Reason != v1.PodReasonUnschedulable {
			return fmt.Sprintf("pod %s is not unschedulable: PodScheduled is %s, %s: %s", pod.Name, c.Status, c.Reason, c.Message)
		}
		if n := shortOf(c.Message, of); n != nodes {
			return fmt.Sprintf("pod %s is pending, but %d of %d nodes are said to have insufficient %s: %s", pod.Name, n, nodes, of, c.Message)
		}
		return ""
	}
	return fmt.Sprintf("the scheduler has not looked at pod %s", pod.Name)
}

var insufficient = regexp.MustCompile(`(\d+) Insufficient ([A-Za-z0-9._/-]+)`)

// shortOf reads from the scheduler's message how many nodes have too little of a
// resource. What follows "preemption:" counts nodes once more.
func shortOf(message string, of v1.ResourceName) int {
	message, _, _ = strings.Cut(message, "preemption:")
	for _, m := range insufficient.FindAllStringSubmatch(message, -1) {
		if strings.TrimRight(m[2], ".") == string(of) {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				return 0
			}
			return n
		}
	}
	return 0
}
