package suite

import (
	"context"

	"github.com/onsi/gomega"
	"k8s.io/kubernetes/test/e2e/framework"
	admissionapi "k8s.io/pod-security-admission/api"

	"github.com/windows-op-readiness/windows-op-readiness/suite/judge"
)

var _ = describe(func() {
	f := framework.NewDefaultFramework("privileged")
	f.NamespacePodSecurityLevel = admissionapi.LevelPrivileged

	framework.It("HostProcess pods should use privileged system interfaces", func(ctx context.Context) {
		windows := target(ctx, f.ClientSet)
		node := windows.nodes[0]
		// So there is something of the runtime's to be seen.
		waitRunning(ctx, f, create(ctx, f, named(on(windows.pause(), &node), "privileged-beside")))
		name := "op-readiness-" + f.Namespace.Name
		env := map[string]string{"NAME": name}

		host, err := judge.ReadAttempts(onHost(ctx, f, windows, &node, "privileged-host", "privileged", env))
		framework.ExpectNoError(err, "in a HostProcess pod on node %s", node.Name)
		gomega.Expect(host.Privileged(windows.os, &node, name)).To(gomega.BeEmpty(), "what a HostProcess pod is to do on node %s, and did not", node.Name)

		ordinary := create(ctx, f, windows.scripted(named(on(windows.pause(), &node), "privileged-control"), "privileged", env))
		container, err := judge.ReadAttempts(logWhenEnded(ctx, f, ordinary))
		framework.ExpectNoError(err, "in an ordinary pod on node %s", node.Name)
		gomega.Expect(container.Confined(windows.os)).To(gomega.BeEmpty(), "what an ordinary pod on node %s is to fail in, too", node.Name)
	})
})
