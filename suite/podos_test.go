package suite

import (
	"context"
	"time"

	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	admissionapi "k8s.io/pod-security-admission/api"
	"k8s.io/utils/ptr"

	"github.com/windows-op-readiness/windows-op-readiness/suite/judge"
)

var _ = describe(func() {
	f := framework.NewDefaultFramework("pod-os")
	f.NamespacePodSecurityLevel = admissionapi.LevelPrivileged

	const refusedWithin = 2 * time.Minute

	framework.It("Pod.OS should be enforced by the kubelet and the API", func(ctx context.Context) {
		windows := target(ctx, f.ClientSet)
		node := windows.nodes[0]
		// No scheduler reads the field, so the pods are put on the node by name.
		onNode := func(name string, os v1.OSName) *v1.Pod {
			pod := named(windows.pause(), name)
			pod.Spec.NodeSelector, pod.Spec.NodeName = nil, node.Name
			pod.Spec.OS = &v1.PodOS{Name: os}
			return create(ctx, f, pod)
		}
		own := onNode("os-own", windows.os)
		foreign := onNode("os-foreign", windows.foreign())
		waitRunning(ctx, f, own)
		gomega.Eventually(ctx, func(ctx context.Context) (string, error) {
			now, err := f.ClientSet.CoreV1().Pods(foreign.Namespace).Get(ctx, foreign.Name, metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			return judge.RefusedForOS(now), nil
		}).WithTimeout(within(refusedWithin)).Should(gomega.BeEmpty(), "a pod of system %s on node %s", windows.foreign(), node.Name)

		linuxOnly := &v1.PodSecurityContext{RunAsUser: ptr.To[int64](1000)}
		windowsOnly := &v1.PodSecurityContext{WindowsOptions: &v1.WindowsSecurityContextOptions{RunAsUserName: ptr.To("ContainerUser")}}
		for _, c := range []struct {
			os      v1.OSName
			context *v1.PodSecurityContext
			taken   bool
			what    string
		}{
			{v1.Windows, windowsOnly, true, "with a field of Windows"},
			{v1.Windows, linuxOnly, false, "with a field of Linux"},
			{v1.Linux, linuxOnly, true, "with a field of Linux"},
			{v1.Linux, windowsOnly, false, "with a field of Windows"},
		} {
			pod := named(windows.pause(), "os-fields")
			pod.Spec.OS, pod.Spec.SecurityContext = &v1.PodOS{Name: c.os}, c.context
			_, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil && !apierrors.IsInvalid(err) {
				framework.ExpectNoError(err, "asking for a pod of system %s %s", c.os, c.what)
			}
			if taken := err == nil; taken != c.taken {
				framework.Failf("the API server takes a pod of system %s %s: %v, and %v is expected (%v)", c.os, c.what, taken, c.taken, err)
			}
		}
	})
})

// foreign returns the operating system that is not the system's.
func (s *system) foreign() v1.OSName {
	if s.os == v1.Windows {
		return v1.Linux
	}
	return v1.Windows
}
