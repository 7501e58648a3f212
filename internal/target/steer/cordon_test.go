package steer_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/steer"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
)

// cordoned lists the nodes that are unschedulable; those with a mark have a "*".
func cordoned(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	list, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	var out []string
	for _, n := range list.Items {
		name := n.Name
		if _, ok := n.Annotations[cluster.CordonAnnotation]; ok {
			name += "*"
		}
		if n.Spec.Unschedulable || strings.HasSuffix(name, "*") {
			out = append(out, name)
		}
	}
	return strings.Join(out, " ")
}

func patchNode(t *testing.T, client kubernetes.Interface, name, patch string) {
	t.Helper()
	_, err := client.CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	must(t, err)
}

func TestCordon(t *testing.T) {
	made := kwoktest.Up(t, func(o *provider.Request) { o.LinuxNodes = 5 })
	client := kwoktest.Client(t, made)
	c, err := cluster.Connect(cluster.Target{Kubeconfig: made.Kubeconfig, Context: made.Context})
	must(t, err)
	// linux-1 is a control plane, linux-2 a tainted worker, linux-3 cordoned by
	// somebody else; linux-4 and linux-5, a control plane without taint, would
	// take the pods of tests.
	patchNode(t, client, "linux-1", `{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":""}},"spec":{"taints":[{"key":"node-role.kubernetes.io/control-plane","effect":"NoSchedule"}]}}`)
	patchNode(t, client, "linux-2", `{"spec":{"taints":[{"key":"dedicated","value":"db","effect":"NoSchedule"}]}}`)
	patchNode(t, client, "linux-3", `{"spec":{"unschedulable":true}}`)
	patchNode(t, client, "linux-5", `{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":""}}}`)
	of := func(m steer.Member) *steer.Cordon {
		s, err := steer.NewCordon(t.Context(), client, c.Dynamic(), m)
		must(t, err)
		return s
	}
	expect := func(when, want string) {
		t.Helper()
		if got := cordoned(t, client); got != want {
			t.Errorf("%s, cordoned are %q, want %q", when, got, want)
		}
	}

	one := of(member("run", 1))
	must(t, one.Apply(t.Context(), toWindows))
	expect("steered to Windows", "linux-3 linux-4* linux-5*")
	node, err := client.CoreV1().Nodes().Get(t.Context(), "linux-4", metav1.GetOptions{})
	must(t, err)
	if facts := cluster.NodeFacts(node); !facts.Schedulable() {
		t.Errorf("what a run has cordoned counts as not schedulable: %+v", facts)
	}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "suite"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		if where := placed(t, client, "suite", string(rune('a'+i))); !strings.HasPrefix(where, "windows-") {
			t.Errorf("a pod that says nothing went to %s", where)
		}
	}
	must(t, one.Apply(t.Context(), toLinux))
	expect("steered to Linux", "linux-3 windows-1* windows-2*")
	if where := placed(t, client, "suite", "linux"); where != "linux-4" && where != "linux-5" {
		t.Errorf("a pod that says nothing went to %s", where)
	}
	must(t, one.Apply(t.Context(), asIs))
	expect("steered nowhere", "linux-3")

	for what, conditions := range map[string]result.RunConditions{
		"some pods only":  {Steer: specs.Windows, SteerPods: "^a$"},
		"a runtime class": {Steer: specs.Windows, RuntimeClass: "x"},
	} {
		if err := one.Apply(t.Context(), conditions); err == nil {
			t.Errorf("%s: no error", what)
		}
	}

	// Two shards.
	alive := living{"run-1", "run-2"}
	first, second := member("run", 1), member("run", 2)
	first.Peers, second.Peers = alive.peersOf(first.ID), alive.peersOf(second.ID)
	a, b := of(first), of(second)
	must(t, a.Apply(t.Context(), toWindows))
	must(t, b.Apply(t.Context(), toWindows))
	must(t, a.Remove(t.Context()))
	expect("one of two shards gone", "linux-3 linux-4* linux-5*")
	alive = alive[1:]
	must(t, b.Remove(t.Context()))
	expect("both gone", "linux-3")

	// What a killed run left is restored by the next, whatever its way; also
	// where somebody uncordoned a node meanwhile, and not what is nobody's.
	for what, next := range map[string]interface {
		Apply(ctx context.Context, c result.RunConditions) error
	}{"cordon": of(member("next", 1)), "off": none(t, client, c, "next"), "policy": policy(t, client, c, "next")} {
		must(t, of(member("killed", 1)).Apply(t.Context(), toWindows))
		patchNode(t, client, "linux-4", `{"spec":{"unschedulable":null}}`)
		must(t, next.Apply(t.Context(), asIs))
		expect("the next run with "+what, "linux-3")
	}
	must(t, of(member("killed", 1)).Apply(t.Context(), toWindows))
	stranger := of(member("next", 1))
	must(t, stranger.Remove(t.Context()))
	expect("a run that has not the lock went", "linux-3 linux-4* linux-5*")
	resumed := member("killed", 1)
	resumed.ID, resumed.Dead = "again", []string{resumed.ID}
	must(t, of(resumed).Remove(t.Context()))
	expect("the killed run went on, with nothing to do", "linux-3")

	patchNode(t, client, "linux-4", `{"metadata":{"annotations":{"`+cluster.CordonAnnotation+`":"\u0000garbage"}},"spec":{"unschedulable":true}}`)
	must(t, one.Apply(t.Context(), asIs))
	expect("a mark that cannot be read", "linux-3")
}

func none(t *testing.T, client kubernetes.Interface, c *cluster.Cluster, run string) *steer.None {
	n, err := steer.NewNone(t.Context(), client, c.Dynamic(), member(run, 1))
	must(t, err)
	return n
}

func policy(t *testing.T, client kubernetes.Interface, c *cluster.Cluster, run string) *steer.Policy {
	p, err := steer.New(t.Context(), client, c.Dynamic(), member(run, 1))
	must(t, err)
	return p
}

// placed makes a pod that says nothing about its node, and returns where the
// scheduler puts it.
func placed(t *testing.T, client kubernetes.Interface, namespace, name string) string {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "agnhost"}}}}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if _, err := client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil && !strings.Contains(err.Error(), "already exists") && !strings.Contains(err.Error(), "serviceaccount") {
			t.Fatal(err)
		}
		if got, err := client.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{}); err == nil && got.Spec.NodeName != "" {
			return got.Spec.NodeName
		}
	}
	t.Fatalf("pod %s was never placed", name)
	return ""
}
