package judge

import (
	"math"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Messages that the scheduler of Kubernetes v1.36.3 has given, on clusters of two
// Linux nodes and three or four Windows nodes.
const (
	allShort = "0/5 nodes are available: 2 node(s) didn't match Pod's node affinity/selector, 3 Insufficient cpu. " +
		"no new claims to deallocate, preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling."
	both = "0/5 nodes are available: 2 node(s) didn't match Pod's node affinity/selector, 3 Insufficient cpu, 3 Insufficient memory. " +
		"no new claims to deallocate, preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling."
	gpu = "0/5 nodes are available: 2 node(s) didn't match Pod's node affinity/selector, 3 Insufficient nvidia.com/gpu. " +
		"no new claims to deallocate, preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling."
	tainted = "0/6 nodes are available: 2 node(s) didn't match Pod's node affinity/selector, 4 node(s) had untolerated taint(s). " +
		"no new claims to deallocate, preemption: 0/6 nodes are available: 6 Preemption is not helpful for scheduling."
)

// Messages in the same form, with which preemption counts nodes that are short, too.
const (
	someShort = "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match Pod's node affinity/selector. " +
		"preemption: 0/3 nodes are available: 1 Insufficient cpu, 2 Preemption is not helpful for scheduling."
	shortInPreemption = "0/4 nodes are available: 4 node(s) had untolerated taint(s). preemption: 0/4 nodes are available: 4 Insufficient cpu."
)

func TestShortOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		message string
		of      v1.ResourceName
		want    int
	}{
		{allShort, v1.ResourceCPU, 3},
		{allShort, v1.ResourceMemory, 0},
		{someShort, v1.ResourceCPU, 1},
		{shortInPreemption, v1.ResourceCPU, 0},
		{both, v1.ResourceCPU, 3},
		{both, v1.ResourceMemory, 3},
		{tainted, v1.ResourceCPU, 0},
		{gpu, "nvidia.com/gpu", 3},
		{gpu, v1.ResourceCPU, 0},
		{"0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", "nvidia.com/gpu", 3},
		{"0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", "nvidia.com", 0},
		{"0/3 nodes are available: 3 Insufficient ephemeral-storage.", v1.ResourceEphemeralStorage, 3},
		{"0/3 nodes are available: 3 Insufficient hugepages-2Mi.", "hugepages-2Mi", 3},
		{"0/3 nodes are available: 3 Insufficient cpus.", v1.ResourceCPU, 0},
		{"0/3 nodes are available: 3 insufficient cpu.", v1.ResourceCPU, 0},
		{"0/3 nodes are available: 3 Too many pods.", v1.ResourcePods, 0},
		{"0/3 nodes are available: Insufficient cpu.", v1.ResourceCPU, 0},
		{"no nodes available to schedule pods", v1.ResourceCPU, 0},
		{"", v1.ResourceCPU, 0},
		{"4 Insufficient cpu", "", 0},
		{"007 Insufficient cpu", v1.ResourceCPU, 7},
		{"-4 Insufficient cpu", v1.ResourceCPU, 4},
		{"9223372036854775807 Insufficient cpu", v1.ResourceCPU, math.MaxInt64},
		{"9223372036854775808 Insufficient cpu", v1.ResourceCPU, 0},
		{strings.Repeat("9", 1<<20) + " Insufficient cpu", v1.ResourceCPU, 0},
	} {
		if n := shortOf(c.message, c.of); n != c.want {
			t.Errorf("%.120q: %d nodes are short of %q, and it should be %d", c.message, n, c.of, c.want)
		}
	}
}

// pending is a pod of which the scheduler says that.
func pending(message string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Status: v1.PodStatus{Phase: v1.PodPending, Conditions: []v1.PodCondition{
			{Type: v1.PodReady, Status: v1.ConditionFalse, Reason: "ContainersNotReady"},
			{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: v1.PodReasonUnschedulable, Message: message},
		}},
	}
}

func TestInsufficient(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pod   *v1.Pod
		nodes int
		want  string
	}{
		"all nodes are short":                     {pending(allShort), 3, ""},
		"one node is not":                         {pending(allShort), 4, "pod a is pending, but 3 of 4 nodes are said to have insufficient cpu: " + allShort},
		"more nodes than there are":               {pending(allShort), 2, "pod a is pending, but 3 of 2 nodes are said to have insufficient cpu: " + allShort},
		"another reason":                          {pending(tainted), 4, "pod a is pending, but 0 of 4 nodes are said to have insufficient cpu: " + tainted},
		"another reason, and short in preemption": {pending(shortInPreemption), 4, "pod a is pending, but 0 of 4 nodes are said to have insufficient cpu: " + shortInPreemption},
		"no message":                              {pending(""), 4, "pod a is pending, but 0 of 4 nodes are said to have insufficient cpu: "},
		"on a node": {func() *v1.Pod {
			p := pending(allShort)
			p.Spec.NodeName = windows
			return p
		}(), 4, "pod a was put on node windows-1"},
		"running": {func() *v1.Pod {
			p := pending(allShort)
			p.Status.Phase = v1.PodRunning
			return p
		}(), 4, "pod a is Running, not Pending"},
		"no phase": {&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, 4, "pod a is , not Pending"},
		"not looked at": {func() *v1.Pod {
			p := pending(allShort)
			p.Status.Conditions = p.Status.Conditions[:1]
			return p
		}(), 4, "the scheduler has not looked at pod a"},
		"gated": {func() *v1.Pod {
			p := pending("Scheduling is blocked due to non-empty scheduling gates")
			p.Status.Conditions[1].Reason = v1.PodReasonSchedulingGated
			return p
		}(), 4, "pod a is not unschedulable: PodScheduled is False, SchedulingGated: Scheduling is blocked due to non-empty scheduling gates"},
		"the scheduler failed": {func() *v1.Pod {
			p := pending(allShort)
			p.Status.Conditions[1].Reason = v1.PodReasonSchedulerError
			return p
		}(), 4, "pod a is not unschedulable: PodScheduled is False, SchedulerError: " + allShort},
		"scheduled, and says why not": {func() *v1.Pod {
			p := pending(allShort)
			p.Status.Conditions[1].Status = v1.ConditionTrue
			return p
		}(), 4, "pod a is not unschedulable: PodScheduled is True, Unschedulable: " + allShort},
	} {
		if is := Insufficient(c.pod, v1.ResourceCPU, c.nodes); is != c.want {
			t.Errorf("%s: it is %q, and should be %q", name, is, c.want)
		}
	}
}

func TestLargest(t *testing.T) {
	t.Parallel()
	has := func(cpu string) v1.Node {
		return v1.Node{Status: v1.NodeStatus{
			Capacity:    v1.ResourceList{v1.ResourceCPU: resource.MustParse("64")},
			Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)},
		}}
	}
	for want, nodes := range map[string][]v1.Node{
		"0":    nil,
		"8":    {has("4"), has("8"), has("7900m")},
		"500m": {{}, has("500m"), has("0")},
	} {
		largest := Largest(nodes, v1.ResourceCPU)
		if largest.Cmp(resource.MustParse(want)) != 0 {
			t.Errorf("the largest is %s, and should be %s", largest.String(), want)
		}
		largest.Add(resource.MustParse("1")) // it is the caller's own
	}
	if n := Largest([]v1.Node{has("4")}, v1.ResourceMemory); !n.IsZero() {
		t.Errorf("a node without the resource has %s of it", n.String())
	}
	nodes := []v1.Node{has("4")}
	largest := Largest(nodes, v1.ResourceCPU)
	largest.Add(resource.MustParse("1"))
	if q := nodes[0].Status.Allocatable[v1.ResourceCPU]; q.Cmp(resource.MustParse("4")) != 0 {
		t.Errorf("what was added to the largest is the node's: %s", q.String())
	}
}

// Whatever the scheduler says, it is a count, and a pod passes only where the words
// are there.
func FuzzInsufficient(f *testing.F) {
	for _, message := range []string{allShort, both, gpu, tainted, someShort, shortInPreemption, "", "99999999999999999999 Insufficient cpu", "preemption:4 Insufficient cpu", "4 Insufficient cpu.."} {
		f.Add(message, "cpu", 4)
	}
	f.Add("3 Insufficient nvidia.com/gpu.", "nvidia.com/gpu", 3)
	f.Fuzz(func(t *testing.T, message, of string, nodes int) {
		n := shortOf(message, v1.ResourceName(of))
		if n < 0 {
			t.Errorf("%d nodes are short of %q", n, of)
		}
		why := Insufficient(pending(message), v1.ResourceName(of), nodes)
		if (why == "") != (n == nodes) {
			t.Errorf("%d of %d nodes are short of %q, and it says %q", n, nodes, of, why)
		}
		if n > 0 && !strings.Contains(message, " Insufficient "+of) {
			t.Errorf("%d nodes are short of %q, which nobody has said", n, of)
		}
	})
}
