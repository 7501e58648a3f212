package suite

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/test/e2e/framework"
	admissionapi "k8s.io/pod-security-admission/api"

	"github.com/windows-op-readiness/windows-op-readiness/suite/judge"
)

var _ = describe(func() {
	f := framework.NewDefaultFramework("worker")
	f.NamespacePodSecurityLevel = admissionapi.LevelPrivileged

	framework.It("Nodes should ping each other", func(ctx context.Context) {
		windows, linux := target(ctx, f.ClientSet), opposite(ctx, f)
		all := unique(append(windows.nodes, linux.nodes...))
		env := map[string]string{"TARGETS": judge.PingTargets(all)}
		started := map[string]*v1.Pod{}
		start := func(s *system, nodes []v1.Node) {
			for i := range nodes {
				if started[nodes[i].Name] == nil {
					pod := s.scripted(named(s.hostPod(&nodes[i]), "ping-"+nodes[i].Name), "ping", env)
					started[nodes[i].Name] = create(ctx, f, pod)
				}
			}
		}
		start(windows, windows.nodes)
		start(linux, linux.nodes[:min(1, len(linux.nodes))])
		var problems []string
		for i := range all {
			from := all[i].Name
			if started[from] == nil {
				continue
			}
			answers, bad := judge.Pings(from, all, logWhenEnded(ctx, f, started[from]))
			measured("pings from "+from, answers)
			problems = append(problems, bad...)
		}
		gomega.Expect(problems).To(gomega.BeEmpty(), "pings between %d nodes", len(all))
	})

	const reachWithin = 2 * time.Minute

	framework.It("Nodes should reach TCP and UDP NodePorts through their own proxy", func(ctx context.Context) {
		windows, linux := target(ctx, f.ClientSet), opposite(ctx, f)
		serve := func(s *system, name string) string {
			pod := named(s.netexec(), name)
			pod.Labels = map[string]string{"app": "served"}
			return waitServing(ctx, f, create(ctx, f, pod)).Name
		}
		names := []string{serve(windows, "served-1"), serve(windows, "served-2"), serve(linux, "served-other")}
		service, err := f.ClientSet.CoreV1().Services(f.Namespace.Name).Create(ctx, &v1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "served"},
			Spec: v1.ServiceSpec{
				Type: v1.ServiceTypeNodePort, Selector: map[string]string{"app": "served"},
				Ports: []v1.ServicePort{
					{Name: "http", Port: 80, TargetPort: intstr.FromInt32(netexecPort)},
					{Name: "udp", Port: 80, TargetPort: intstr.FromInt32(netexecUDPPort), Protocol: v1.ProtocolUDP},
				},
			},
		}, metav1.CreateOptions{})
		framework.ExpectNoError(err, "creating the Service")
		asker := client(ctx, f, linux, "asker")

		var nodes []v1.Node
		proxies := map[string]address{} // where a node's own netexec answers
		listen := func(s *system) {
			for _, node := range untainted(s.nodes) {
				if _, there := proxies[node.Name]; !there {
					nodes = append(nodes, node)
					proxies[node.Name] = s.listen(ctx, f, &node, "on-"+node.Name)
				}
			}
		}
		listen(windows)
		listen(linux)
		for i := range nodes {
			own, next := &nodes[i], &nodes[(i+1)%len(nodes)]
			for _, port := range service.Spec.Ports {
				to := address{internalIP(own), port.NodePort}
				if own.Labels[v1.LabelOSStable] != string(v1.Windows) {
					reachesBy(ctx, f, asker, proxies[own.Name], port.Name, to, names, reachWithin, "the node's own NodePort")
				} else {
					d, err := dialBy(ctx, f, asker, proxies[own.Name], port.Name, to, 1)
					measuredOwnNodePort(own, "the node", port.Name, d, err)
				}
				if next.Name != own.Name {
					reachesBy(ctx, f, asker, proxies[own.Name], port.Name, address{internalIP(next), port.NodePort}, names, reachWithin, "the NodePort of node "+next.Name)
				}
			}
		}
	})
})

// measuredOwnNodePort records whether a Windows node's own NodePort answers there. It
// need not: https://kubernetes.io/docs/concepts/services-networking/windows-networking/#limitations
func measuredOwnNodePort(node *v1.Node, from, protocol string, d *judge.Dialled, err error) {
	measured(fmt.Sprintf("own NodePort of node %s (%s) answers %s", node.Name, strings.ToUpper(protocol), from), err == nil && d.Failed == 0)
}

// unique returns each node once.
func unique(nodes []v1.Node) []v1.Node {
	var once []v1.Node
	seen := map[string]bool{}
	for i := range nodes {
		if !seen[nodes[i].Name] {
			seen[nodes[i].Name] = true
			once = append(once, nodes[i])
		}
	}
	return once
}
