package suite

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	admissionapi "k8s.io/pod-security-admission/api"
)

var _ = describe(func() {
	f := framework.NewDefaultFramework("nodeport")
	f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

	const (
		backends    = 2
		reachWithin = 2 * time.Minute // for each node
	)

	// everyNode dials the NodePort of every node, of a Service whose pods are of one system,
	// from a pod of the other.
	everyNode := func(ctx context.Context, servers, from *system, nodes *nodePorts) {
		var pods []*v1.Pod
		var names []string
		for i := range backends {
			pod := named(servers.netexec(), fmt.Sprintf("nodeport-server-%d", i))
			pod.Labels = map[string]string{"app": "nodeport-server"}
			pods, names = append(pods, create(ctx, f, pod)), append(names, pod.Name)
		}
		service := serve(ctx, f, f.Namespace.Name, "nodeport", "nodeport-server", v1.ServiceSpec{Type: v1.ServiceTypeNodePort})
		dialling := client(ctx, f, from, "nodeport-client")
		waitRunning(ctx, f, pods...)
		for _, to := range nodes.of(ctx, f, service, dialling) {
			reaches(ctx, f, dialling, to, names, reachWithin, fmt.Sprintf("which is the NodePort of node %s", nodes.at(to)))
		}
		measured("nodes whose NodePort was connected to", len(nodes.nodes))
	}

	framework.It("NodePort should reach Linux pods from Windows pods on every node", func(ctx context.Context) {
		windows, linux := target(ctx, f.ClientSet), opposite(ctx, f)
		everyNode(ctx, linux, windows, nodesWithPorts(windows, linux))
	})

	framework.It("NodePort should reach Windows pods from Linux pods on every node", func(ctx context.Context) {
		windows, linux := target(ctx, f.ClientSet), opposite(ctx, f)
		everyNode(ctx, windows, linux, nodesWithPorts(windows, linux))
	})
})
