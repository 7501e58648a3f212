package suite

import (
	"context"
	"time"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	e2epod "k8s.io/kubernetes/test/e2e/framework/pod"
	admissionapi "k8s.io/pod-security-admission/api"

	"github.com/windows-op-readiness/windows-op-readiness/suite/judge"
)

var _ = describe(func() {
	f := framework.NewDefaultFramework("hpc")
	f.NamespacePodSecurityLevel = admissionapi.LevelPrivileged

	framework.It("HostProcess pods should share the address of their node", func(ctx context.Context) {
		windows := target(ctx, f.ClientSet)
		node := windows.nodes[0]
		pod := create(ctx, f, windows.scripted(named(windows.hostPod(&node), "hpc-server"), "interfaces", nil))
		seen, err := judge.ReadInterfaces(logWhenEnded(ctx, f, pod))
		framework.ExpectNoError(err, "asking node %s", node.Name)
		pod, err = f.ClientSet.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		framework.ExpectNoError(err)
		gomega.Expect(judge.SharesAddress(&node, pod, seen)).To(gomega.BeEmpty(), "addresses of a HostProcess pod on node %s", node.Name)
	})

	const (
		answersWithin = 2 * time.Minute
		silentWithin  = time.Minute
	)

	framework.It("HostProcess pods should bind to the interfaces of their node", func(ctx context.Context) {
		windows, other := target(ctx, f.ClientSet), opposite(ctx, f)
		node := windows.nodes[0]
		seen := interfaces(ctx, f, windows, &node, "hpc-look")
		at := address{internalIP(&node), seen.Free(portsFrom)}
		letIn(ctx, f, windows, &node, at.port)

		from := client(ctx, f, other, "hpc-client")
		ordinary := named(on(windows.netexecAt(at.port), &node), "hpc-beside")
		beside := waitServing(ctx, f, create(ctx, f, ordinary))
		besideAt := address{beside.Status.PodIP, at.port}

		for _, name := range []string{"hpc-server", "hpc-server-again"} {
			server := waitServing(ctx, f, create(ctx, f, named(windows.listener(&node, at.port), name)))
			reaches(ctx, f, from, at, []string{seen.Hostname}, answersWithin, "where pod "+name+" listens")
			reaches(ctx, f, from, besideAt, []string{beside.Name}, answersWithin, "where an ordinary pod of the node listens")
			// By UDP it listens at that address of the node alone.
			reachesBy(ctx, f, from, at, "udp", at, []string{seen.Hostname}, answersWithin, "where pod "+name+" listens")
			loopback := address{"127.0.0.1", at.port}
			d, err := dialBy(ctx, f, from, at, "udp", loopback, 1)
			framework.ExpectNoError(err)
			gomega.Expect(d.Answers).To(gomega.BeEmpty(), "answers at %s, where pod %s does not listen by UDP", loopback, name)

			framework.ExpectNoError(e2epod.DeletePodWithWait(ctx, f.ClientSet, server), "deleting pod %s", name)
			gomega.Eventually(ctx, func(ctx context.Context) (map[string]int, error) {
				d, err := dial(ctx, f, from, at.host, at.port, 1)
				if err != nil {
					return nil, err
				}
				return d.Answers, nil
			}).WithTimeout(within(silentWithin)).Should(gomega.BeEmpty(), "answers at %s after pod %s was deleted", at, name)
			// So it is not the client that fell silent.
			reaches(ctx, f, from, besideAt, []string{beside.Name}, answersWithin, "after pod "+name+" was deleted")
		}
	})
})
