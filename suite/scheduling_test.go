package suite

import (
	"context"
	"fmt"
	"time"

	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	admissionapi "k8s.io/pod-security-admission/api"

	"github.com/windows-op-readiness/windows-op-readiness/suite/judge"
)

var _ = describe(func() {
	f := framework.NewDefaultFramework("pending")
	f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

	const pending = 3 * time.Minute

	for _, request := range []struct {
		resource v1.ResourceName
		called   string
		more     string
		little   string
	}{
		{v1.ResourceCPU, "CPU", "1", "10m"},
		{v1.ResourceMemory, "memory", "1Gi", "10Mi"},
	} {
		framework.It(fmt.Sprintf("Pods that request more %s than a node has should stay pending", request.called), func(ctx context.Context) {
			windows := target(ctx, f.ClientSet)
			asking := func(name string, quantity resource.Quantity) *v1.Pod {
				pod := named(windows.pause(), name)
				pod.Spec.Containers[0].Resources.Requests = v1.ResourceList{request.resource: quantity}
				return pod
			}
			tooMuch := judge.Largest(windows.nodes, request.resource)
			tooMuch.Add(resource.MustParse(request.more))

			pod := create(ctx, f, asking("pending", tooMuch))
			why := func(ctx context.Context) (string, error) {
				now, err := f.ClientSet.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
				if err != nil {
					return "", err
				}
				return judge.Insufficient(now, request.resource, len(windows.nodes)), nil
			}
			gomega.Eventually(ctx, why).WithTimeout(within(time.Minute)).Should(gomega.BeEmpty(),
				"a pod that requests %s of %s, more than any of %d nodes has", tooMuch.String(), request.resource, len(windows.nodes))
			// Meanwhile a pod that asks for nothing runs: it is the request that keeps
			// the other pending.
			waitRunning(ctx, f, create(ctx, f, named(windows.pause(), "pending-control")))
			gomega.Consistently(ctx, why).WithTimeout(long(pending)).Should(gomega.BeEmpty(),
				"a pod that requests %s of %s, after it was pending", tooMuch.String(), request.resource)
			// And the scheduler has not stopped: the same pod, asking for less, runs.
			waitRunning(ctx, f, create(ctx, f, asking("pending-control-less", resource.MustParse(request.little))))
		})
	}
})
