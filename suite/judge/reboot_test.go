package judge

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRebootAsked(t *testing.T) {
	for log, want := range map[string]string{
		`op-readiness: {"asked": true}`:  "",
		`op-readiness: {"asked": false}`: "script reboot: the node was not told to reboot",
		"Access is denied.(5)":           `script reboot: it gives no answer, but says "Access is denied.(5)"`,
	} {
		got := ""
		if err := RebootAsked(log); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", log, got, want)
		}
	}
}

func nodeOf(boot string, ready v1.ConditionStatus, change ...func(*v1.Node)) v1.Node {
	var n v1.Node
	n.Name, n.UID = "w", "1"
	n.Status.NodeInfo.BootID = boot
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: ready, Message: "Kubelet stopped posting node status."}}
	n.Spec.Taints = []v1.Taint{{Key: "os", Effect: v1.TaintEffectNoSchedule}}
	for _, c := range change {
		c(&n)
	}
	return n
}

func TestRebooted(t *testing.T) {
	before := []v1.Node{nodeOf("3", v1.ConditionTrue)}
	for what, c := range map[string]struct {
		now  []v1.Node
		want string
	}{
		"rebooted":        {[]v1.Node{nodeOf("4", v1.ConditionTrue)}, ""},
		"not rebooted":    {[]v1.Node{nodeOf("3", v1.ConditionTrue)}, `node w was not rebooted: its boot id is still "3"`},
		"without boot id": {[]v1.Node{nodeOf("", v1.ConditionTrue)}, `node w was not rebooted: its boot id is still ""`},
		"not ready":       {[]v1.Node{nodeOf("4", v1.ConditionUnknown)}, "node w is not ready: Kubelet stopped posting node status."},
		"gone":            {nil, "node w is gone"},
		"joined anew":     {[]v1.Node{nodeOf("4", v1.ConditionTrue, func(n *v1.Node) { n.UID = "2" })}, "node w has left the cluster and joined it anew"},
		"cordoned":        {[]v1.Node{nodeOf("4", v1.ConditionTrue, func(n *v1.Node) { n.Spec.Unschedulable = true })}, "node w is cordoned"},
		"tainted": {[]v1.Node{nodeOf("4", v1.ConditionTrue, func(n *v1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: "full", Effect: v1.TaintEffectNoSchedule})
		})}, "node w has the taint full, which it did not have before"},
	} {
		if got := strings.Join(Rebooted(before, c.now), "; "); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

func TestRecovered(t *testing.T) {
	pod := func(name string, change ...func(*v1.Pod)) v1.Pod {
		p := v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "a"}}}
		p.Spec.NodeName = "w"
		p.Status.Phase = v1.PodRunning
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
		p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "c", ContainerID: "containerd://new-" + name}}
		for _, c := range change {
			c(&p)
		}
		return p
	}
	unready := func(p *v1.Pod) { p.Status.Conditions = nil }
	old := func(p *v1.Pod) { p.Status.ContainerStatuses[0].ContainerID = "containerd://old" }
	ended := func(p *v1.Pod) { p.Status.Phase, p.Status.Conditions = v1.PodFailed, nil }
	leaving := func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{} }
	unknown := func(p *v1.Pod) { p.Status.Phase, p.Status.Conditions = v1.PodUnknown, nil }
	of := func(app string) func(*v1.Pod) { return func(p *v1.Pod) { p.Labels["app"] = app } }
	for what, c := range map[string]struct {
		pods []v1.Pod
		want string
	}{
		"all are back":                    {[]v1.Pod{pod("1"), pod("2")}, ""},
		"one was made anew":               {[]v1.Pod{pod("1"), pod("2", ended), pod("3")}, ""},
		"others do not count":             {[]v1.Pod{pod("1"), pod("2"), pod("3", of("b"), unready)}, ""},
		"one is not ready":                {[]v1.Pod{pod("1"), pod("2", unready)}, "1 of 2 pods of a are ready; pod 2 on node w is Running and not ready"},
		"one is unknown":                  {[]v1.Pod{pod("1"), pod("2", unknown)}, "1 of 2 pods of a are ready; pod 2 on node w is Unknown and not ready"},
		"one is stuck":                    {[]v1.Pod{pod("1"), pod("2"), pod("3", leaving)}, "pod 3 on node w is still terminating"},
		"one is gone":                     {[]v1.Pod{pod("1")}, "1 of 2 pods of a are ready"},
		"one too many":                    {[]v1.Pod{pod("1"), pod("2"), pod("3")}, "3 of 2 pods of a are ready"},
		"one never stopped":               {[]v1.Pod{pod("1"), pod("2", old)}, "a container of pod 2 on node w has run since before the reboot"},
		"nothing is there":                {nil, "0 of 2 pods of a are ready"},
		"the ended one counts for nobody": {[]v1.Pod{pod("1", ended), pod("2", ended)}, "0 of 2 pods of a are ready"},
	} {
		got := strings.Join(Recovered(map[string]int{"a": 2}, map[string]bool{"containerd://old": true}, c.pods), "; ")
		if got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}
