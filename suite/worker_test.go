package suite

import (
	"context"
	"fmt"

	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	e2eskipper "k8s.io/kubernetes/test/e2e/framework/skipper"
	admissionapi "k8s.io/pod-security-admission/api"

	"github.com/windows-op-readiness/windows-op-readiness/suite/judge"
)

var _ = describe(func() {
	f := framework.NewDefaultFramework("defender")
	f.NamespacePodSecurityLevel = admissionapi.LevelPrivileged

	framework.It("Microsoft Defender should exclude containerd on every Windows node", func(ctx context.Context) {
		windows := target(ctx, f.ClientSet)
		if windows.os != v1.Windows {
			e2eskipper.Skipf("no %s node has Microsoft Defender", windows.os)
		}
		pods := make([]*v1.Pod, len(windows.nodes))
		for i := range windows.nodes {
			pod := named(windows.hostPod(&windows.nodes[i]), fmt.Sprintf("defender-%d", i))
			pods[i] = create(ctx, f, windows.scripted(pod, "defender", nil))
		}
		var problems []string
		for i := range windows.nodes {
			node := windows.nodes[i].Name
			said, err := judge.ReadDefender(logWhenEnded(ctx, f, pods[i]))
			framework.ExpectNoError(err, "asking node %s", node)
			how, problem := said.LeavesContainerd()
			if problem != "" {
				problems = append(problems, "node "+node+": "+problem)
				continue
			}
			measured("defender on node "+node, how)
		}
		gomega.Expect(problems).To(gomega.BeEmpty(), "nodes on which Microsoft Defender does not leave containerd alone")
	})
})
