package suite

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	e2epod "k8s.io/kubernetes/test/e2e/framework/pod"
	admissionapi "k8s.io/pod-security-admission/api"

	"github.com/windows-op-readiness/windows-op-readiness/suite/judge"
)

const (
	// rebootDelay is between asking for a reboot and the reboot.
	rebootDelay = 45 * time.Second
	// rebootWithin is how long nodes may take to reboot, and recoverWithin how long
	// their pods may take from then on: "a few minutes".
	rebootWithin  = 15 * time.Minute
	recoverWithin = 5 * time.Minute
	// perNode is how many pods of the Deployment there are for each node.
	perNode = 2
)

var _ = describe(func() {
	f := framework.NewDefaultFramework("reboot")
	f.NamespacePodSecurityLevel = admissionapi.LevelPrivileged

	framework.It("Windows nodes should all be rebooted and their pods recover", framework.WithSerial(), framework.WithDisruptive(), framework.WithSlow(), func(ctx context.Context) {
		windows := target(ctx, f.ClientSet)
		b := serveOn(ctx, f, windows, windows.nodes)
		b.reboot(ctx)
		b.recover(ctx)
	})

	framework.It("A Windows node should take part again after a reboot", framework.WithSerial(), framework.WithDisruptive(), framework.WithSlow(), func(ctx context.Context) {
		windows := target(ctx, f.ClientSet)
		b := serveOn(ctx, f, windows, windows.nodes[:1])
		b.reboot(ctx, func(ctx context.Context) {
			b.waitDown(ctx, &windows.nodes[0])
			b.serve(ctx, "late")
		})
		returned := b.recover(ctx)
		b.waitLease(ctx, windows.nodes[0].Name)
		if len(windows.nodes) > 1 {
			other := waitServing(ctx, f, create(ctx, f, named(on(windows.netexec(), &windows.nodes[1]), "reboot-neighbour")))
			reaches(ctx, f, returned[0], address{other.Status.PodIP, netexecPort}, []string{other.Name}, recoverWithin, "after the node's reboot")
		}
	})
})

// rebooting is nodes that are rebooted while pods serve on them.
type rebooting struct {
	f     *framework.Framework
	s     *system
	nodes []v1.Node
	// client is where is dialled from, and services are what is dialled.
	client   *v1.Pod
	services []*v1.Service
	// wanted is how many pods of each app there are to be, and before are the containers
	// that they had before the reboot.
	wanted map[string]int
	before map[string]bool
}

// serveOn has a DaemonSet and a Deployment serve on nodes of a system, and returns when
// all of their pods are reached.
func serveOn(ctx context.Context, f *framework.Framework, s *system, nodes []v1.Node) *rebooting {
	ginkgo.GinkgoHelper()
	b := &rebooting{f: f, s: s, nodes: nodes}
	refuseOwnNode(ctx, f, nodes)
	b.client = client(ctx, f, opposite(ctx, f), "reboot-client")
	spec := s.netexec().Spec
	hosts := v1.NodeSelectorRequirement{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn}
	for i := range nodes {
		hosts.Values = append(hosts.Values, nodes[i].Labels[v1.LabelHostname])
	}
	spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
		NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{hosts}}},
	}}}
	labels := map[string]string{"app": "reboot-server", "served": "yes"}
	_, err := f.ClientSet.AppsV1().DaemonSets(f.Namespace.Name).Create(ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "reboot-server"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}, metav1.CreateOptions{})
	framework.ExpectNoError(err, "creating DaemonSet reboot-server")
	deployOf(ctx, f, "reboot-deployed", int32(perNode*len(nodes)), spec, map[string]string{"served": "yes"})
	b.wanted = map[string]int{"reboot-server": len(nodes), "reboot-deployed": perNode * len(nodes)}
	b.serve(ctx, "served")
	b.reached(ctx, b.waitReady(ctx, podStart, "before the reboot"), "before the reboot", b.client)
	pods, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).List(ctx, metav1.ListOptions{})
	framework.ExpectNoError(err, "listing the pods")
	b.before = judge.Containers(pods.Items)
	return b
}

// serve makes a Service of all pods that serve.
func (b *rebooting) serve(ctx context.Context, name string) {
	ginkgo.GinkgoHelper()
	made := serve(ctx, b.f, b.f.Namespace.Name, name, "", v1.ServiceSpec{Selector: map[string]string{"served": "yes"}})
	b.services = append(b.services, made)
}

// waitReady returns the names of all pods that serve, when as many as are wanted are
// ready, in other containers than before.
func (b *rebooting) waitReady(ctx context.Context, limit time.Duration, when string) []string {
	ginkgo.GinkgoHelper()
	var names []string
	gomega.Eventually(ctx, func(ctx context.Context) ([]string, error) {
		pods, err := b.f.ClientSet.CoreV1().Pods(b.f.Namespace.Name).List(ctx, metav1.ListOptions{LabelSelector: "served=yes"})
		if err != nil {
			return nil, err
		}
		names = nil
		for i := range pods.Items {
			if judge.Ready(&pods.Items[i]) {
				names = append(names, pods.Items[i].Name)
			}
		}
		return judge.Recovered(b.wanted, b.before, pods.Items), nil
	}).WithTimeout(within(limit)).Should(gomega.BeEmpty(), "pods of %d nodes, %s", len(b.nodes), when)
	return names
}

// reached returns when each of the pods has reached all of those names by each Service.
func (b *rebooting) reached(ctx context.Context, names []string, when string, from ...*v1.Pod) {
	ginkgo.GinkgoHelper()
	for _, pod := range from {
		for _, s := range b.services {
			reaches(ctx, b.f, pod, clusterIP(s), names, recoverWithin, fmt.Sprintf("by Service %s, %s", s.Name, when))
		}
	}
}

// reboot reboots the nodes at once, and returns when they are back. What is to be done
// meanwhile is done when they have been told.
func (b *rebooting) reboot(ctx context.Context, meanwhile ...func(ctx context.Context)) {
	ginkgo.GinkgoHelper()
	env := map[string]string{"NAMESPACE": b.f.Namespace.Name, "DELAY": strconv.Itoa(max(2, int(long(rebootDelay).Seconds())))}
	began := time.Now()
	var pods []*v1.Pod
	for i := range b.nodes {
		pod := named(b.s.hostPod(&b.nodes[i]), fmt.Sprintf("reboot-host-%d", i))
		pods = append(pods, create(ctx, b.f, b.s.scripted(pod, "reboot", env)))
	}
	for i, pod := range pods {
		gomega.Eventually(ctx, func(ctx context.Context) error {
			log, err := e2epod.GetPodLogs(ctx, b.f.ClientSet, pod.Namespace, pod.Name, pod.Spec.Containers[0].Name)
			if err != nil {
				return err
			}
			return judge.RebootAsked(log)
		}).WithTimeout(within(podStart)).WithPolling(framework.Poll/4).Should(gomega.Succeed(), "telling node %s to reboot", b.nodes[i].Name)
	}
	for _, do := range meanwhile {
		do(ctx)
	}
	gomega.Eventually(ctx, func(ctx context.Context) ([]string, error) {
		now, err := b.f.ClientSet.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		return judge.Rebooted(b.nodes, now.Items), nil
	}).WithTimeout(within(rebootWithin)).Should(gomega.BeEmpty(), "nodes that were told to reboot")
	measured(fmt.Sprintf("%d nodes rebooted after", len(b.nodes)), time.Since(began).Round(time.Second))
}

// recover returns when all pods serve again, a new pod has started on each node, and that
// pod, too, reaches them through its own node's proxy. It returns the new pods.
func (b *rebooting) recover(ctx context.Context) []*v1.Pod {
	ginkgo.GinkgoHelper()
	const when = "after the reboot"
	began := time.Now()
	names := b.waitReady(ctx, recoverWithin, when)
	var fresh []*v1.Pod
	for i := range b.nodes {
		pod := named(on(b.s.netexec(), &b.nodes[i]), fmt.Sprintf("reboot-server-new-%d", i))
		fresh = append(fresh, waitServing(ctx, b.f, create(ctx, b.f, pod)))
	}
	// Where Linux is under test, the client, too, may be on a node that was rebooted.
	b.reached(ctx, names, when, append(fresh, waitServing(ctx, b.f, b.client))...)
	measured("pods recovered after another", time.Since(began).Round(time.Second))
	return fresh
}

// waitDown returns when a node is down: its kubelet does not answer, or it is up again
// already.
func (b *rebooting) waitDown(ctx context.Context, node *v1.Node) {
	ginkgo.GinkgoHelper()
	client := b.f.ClientSet.CoreV1()
	gomega.Eventually(ctx, func(ctx context.Context) (string, error) {
		now, err := client.Nodes().Get(ctx, node.Name, metav1.GetOptions{})
		if err != nil || now.Status.NodeInfo.BootID != node.Status.NodeInfo.BootID {
			return "", err
		}
		code := 0
		client.RESTClient().Get().Resource("nodes").Name(node.Name).SubResource("proxy").Suffix("healthz").Do(ctx).StatusCode(&code)
		if code == http.StatusOK {
			return "its kubelet answers", nil
		}
		return "", nil
	}).WithTimeout(within(rebootWithin)).WithPolling(framework.Poll/10).Should(gomega.BeEmpty(), "node %s does not go down", node.Name)
}

// waitLease returns when a node renews its lease.
func (b *rebooting) waitLease(ctx context.Context, node string) {
	ginkgo.GinkgoHelper()
	leases := b.f.ClientSet.CoordinationV1().Leases(v1.NamespaceNodeLease)
	renewed := func(ctx context.Context) (time.Time, error) {
		lease, err := leases.Get(ctx, node, metav1.GetOptions{})
		if err != nil || lease.Spec.RenewTime == nil {
			return time.Time{}, err
		}
		return lease.Spec.RenewTime.Time, nil
	}
	last, err := renewed(ctx)
	framework.ExpectNoError(err, "reading the lease of node %s", node)
	gomega.Eventually(ctx, renewed).WithTimeout(within(recoverWithin)).Should(gomega.BeTemporally(">", last), "the lease of node %s is renewed", node)
}

// refuseOwnNode fails the test where this program itself runs in a pod on one of nodes.
func refuseOwnNode(ctx context.Context, f *framework.Framework, nodes []v1.Node) {
	ginkgo.GinkgoHelper()
	namespace, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return // it runs in no pod
	}
	name, err := os.Hostname()
	framework.ExpectNoError(err)
	own, err := f.ClientSet.CoreV1().Pods(strings.TrimSpace(string(namespace))).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return // nor one of this cluster
	}
	for i := range nodes {
		if nodes[i].Name == own.Spec.NodeName {
			framework.Failf("this test reboots node %s, and runs in pod %s/%s there: run it elsewhere", own.Spec.NodeName, own.Namespace, own.Name)
		}
	}
}
