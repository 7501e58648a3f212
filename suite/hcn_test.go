package suite

import (
	"context"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	e2eskipper "k8s.io/kubernetes/test/e2e/framework/skipper"
	admissionapi "k8s.io/pod-security-admission/api"

	"github.com/windows-op-readiness/windows-op-readiness/suite/judge"
)

var _ = describe(func() {
	f := framework.NewDefaultFramework("hcn")
	f.NamespacePodSecurityLevel = admissionapi.LevelPrivileged

	// What script hcn makes; its rules block TCP, which is protocol 6.
	const (
		subnet   = "192.0.2.0/28"
		endpoint = "192.0.2.5"
		rule     = "Block In 6 445"
		changed  = "Block In 6 139"
	)

	framework.It("HostProcess pods should create and manage host network rules", framework.WithSerial(), func(ctx context.Context) {
		windows := target(ctx, f.ClientSet)
		if windows.os != v1.Windows {
			e2eskipper.Skipf("no %s node has host compute networks", windows.os)
		}
		node := windows.nodes[0]
		name := "op-readiness-" + f.Namespace.Name
		env := func(action, port string) map[string]string {
			return map[string]string{"NAME": name, "ACTION": action, "PORT": port}
		}
		unready := watchUnready(ctx, f.ClientSet, []v1.Node{node})
		reachable := ordinaryPods(ctx, f, windows, &node)
		// do has a pod of the host do something, after which the others still run.
		do := func(ctx context.Context, pod, action, port string) *judge.HostNetworks {
			ginkgo.GinkgoHelper()
			seen, err := judge.ReadHostNetworks(onHost(ctx, f, windows, &node, pod, "hcn", env(action, port)))
			framework.ExpectNoError(err, "pod %s on node %s", pod, node.Name)
			reachable("after pod " + pod + " was run")
			return seen
		}
		has := func(seen *judge.HostNetworks, rule, who string) {
			ginkgo.GinkgoHelper()
			gomega.Expect(seen.Has(name, subnet, endpoint, rule)).To(gomega.BeEmpty(), "what %s sees on node %s", who, node.Name)
		}

		before := do(ctx, "hcn-before", "sweep", "")
		gomega.Expect(before.Swept("op-readiness-hcn-")).To(gomega.BeEmpty(), "before the test, on node %s", node.Name)
		ginkgo.DeferCleanup(func(ctx context.Context) {
			seen, err := judge.ReadHostNetworks(onHost(ctx, f, windows, &node, "hcn-cleanup", "hcn", env("remove", "")))
			framework.ExpectNoError(err, "removing network %s from node %s", name, node.Name)
			gomega.Expect(seen.Gone(name)).To(gomega.BeEmpty(), "what is left on node %s", node.Name)
		})
		has(do(ctx, "hcn-make", "make", "445"), rule, "the pod that makes the network")
		has(do(ctx, "hcn-read", "read", ""), rule, "another pod")
		has(do(ctx, "hcn-change", "change", "139"), changed, "the pod that changes the rule")
		has(do(ctx, "hcn-read-changed", "read", ""), changed, "another pod, after the change,")

		ordinary := create(ctx, f, windows.scripted(named(on(windows.pause(), &node), "hcn-control"), "hcn", env("read", "")))
		seen, err := judge.ReadHostNetworks(logWhenEnded(ctx, f, ordinary))
		framework.ExpectNoError(err, "in an ordinary pod on node %s", node.Name)
		gomega.Expect(seen.Refused()).To(gomega.BeEmpty(), "what an ordinary pod on node %s is to fail in", node.Name)

		gomega.Expect(do(ctx, "hcn-remove", "remove", "").Gone(name)).To(gomega.BeEmpty(), "what the pod that removes the network sees on node %s", node.Name)
		after := do(ctx, "hcn-after", "read", "")
		gomega.Expect(after.Gone(name)).To(gomega.BeEmpty(), "what another pod sees in the end on node %s", node.Name)
		gomega.Expect(after.Others(before, name)).To(gomega.BeEmpty(), "networks of others on node %s", node.Name)
		gomega.Expect(unready()).To(gomega.BeEmpty(), "nodes did not stay ready")
	})
})

// ordinaryPods starts a pod on the node, and one on another where there is one, which
// dials it. The function returns when that reaches it.
func ordinaryPods(ctx context.Context, f *framework.Framework, s *system, node *v1.Node) func(when string) {
	ginkgo.GinkgoHelper()
	elsewhere := node
	for i := range s.nodes {
		if s.nodes[i].Name != node.Name {
			elsewhere = &s.nodes[i]
		}
	}
	beside := waitServing(ctx, f, create(ctx, f, named(on(s.netexec(), node), "hcn-beside")))
	from := waitServing(ctx, f, create(ctx, f, named(on(s.netexec(), elsewhere), "hcn-client")))
	at := address{beside.Status.PodIP, netexecPort}
	return func(when string) {
		ginkgo.GinkgoHelper()
		reaches(ctx, f, from, at, []string{beside.Name}, time.Minute, when)
	}
}
