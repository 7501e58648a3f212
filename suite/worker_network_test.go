package suite

import (
	"context"
	"slices"
	"time"

	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
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
		server := func(s *system, name string) string {
			pod := named(s.netexec(), name)
			pod.Labels = map[string]string{"app": "served"}
			return waitServing(ctx, f, create(ctx, f, pod)).Name
		}
		names := []string{server(windows, "served-1"), server(windows, "served-2"), server(linux, "served-other")}
		service := serve(ctx, f, f.Namespace.Name, "served", "served", v1.ServiceSpec{Type: v1.ServiceTypeNodePort, Ports: []v1.ServicePort{
			{Name: "http", Port: servicePort, TargetPort: intstr.FromInt32(netexecPort)},
			{Name: "udp", Port: servicePort, TargetPort: intstr.FromInt32(netexecUDPPort), Protocol: v1.ProtocolUDP},
		}})
		asker := client(ctx, f, linux, "asker")

		ports := nodesWithPorts(windows, linux).nodes
		proxies := map[string]address{} // where a node's own netexec answers
		for _, s := range []*system{windows, linux} {
			for _, own := range s.nodes[:min(mostNodes, len(s.nodes))] {
				if _, there := proxies[own.Name]; there {
					continue // both systems are Linux
				}
				by := s.listen(ctx, f, &own, "on-"+own.Name)
				proxies[own.Name] = by
				for _, port := range service.Spec.Ports {
					reached := 0
					for _, to := range ownAndAnother(ports, own.Name) {
						at := address{internalIP(&to), port.NodePort}
						if to.Name == own.Name && s.os == v1.Windows {
							d, err := dialBy(ctx, f, asker, by, port.Name, at, 1)
							measuredOwnNodePort(&own, "the node", port.Name, d, err)
							continue
						}
						reachesBy(ctx, f, asker, by, port.Name, at, names, reachWithin, "the NodePort of node "+to.Name)
						reached++
					}
					if reached == 0 {
						framework.Failf("node %s has no other node whose NodePort it could connect to", own.Name)
					}
				}
			}
		}
	})
})

// mostNodes is how many nodes of a system dial.
const mostNodes = 10

// ownAndAnother returns, of nodes, the one of that name, if it is there, and the one after
// it, or the first.
func ownAndAnother(nodes []v1.Node, own string) []v1.Node {
	at := slices.IndexFunc(nodes, func(n v1.Node) bool { return n.Name == own })
	if at < 0 {
		return nodes[:1]
	}
	return unique([]v1.Node{nodes[at], nodes[(at+1)%len(nodes)]})
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
