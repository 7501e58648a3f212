package suite

import (
	"context"
	"strconv"

	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	imageutils "k8s.io/kubernetes/test/utils/image"
	admissionapi "k8s.io/pod-security-admission/api"
	"k8s.io/utils/ptr"

	"github.com/windows-op-readiness/windows-op-readiness/suite/judge"
)

var _ = describe(func() {
	f := framework.NewDefaultFramework("run-as")
	f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

	framework.It("Containers should run as the user that the pod names", func(ctx context.Context) {
		windows := target(ctx, f.ClientSet)
		forPod, forContainer := windows.users()
		pod := named(windows.sayingUser(), "run-as-pod")
		windows.runAs(pod, forPod)
		override := named(windows.sayingUser(), "run-as-container")
		windows.runAs(override, forPod)
		windows.runContainerAs(override, forContainer)
		// That the image has another user by itself shows that the fields make the difference.
		image := named(windows.sayingUser(), "run-as-image")

		var logs []string
		for _, p := range []*v1.Pod{pod, override, image} {
			logs = append(logs, logWhenEnded(ctx, f, create(ctx, f, p)))
		}
		gomega.Expect(judge.Users(forPod, forContainer, logs[0], logs[1], logs[2])).To(gomega.BeEmpty(), "users that containers run as")
	})
})

// users returns two users that agnhost's image has: one that it does not run as by
// itself, and another.
func (s *system) users() (one, other string) {
	if s.os == v1.Windows {
		return "ContainerUser", "ContainerAdministrator"
	}
	return "1000", "2000"
}

// sayingUser returns a pod that says whom it runs as; it has no name yet.
func (s *system) sayingUser() *v1.Pod {
	pod := s.pause()
	pod.Spec.RestartPolicy = v1.RestartPolicyNever
	command := []string{"id", "-u"}
	if s.os == v1.Windows {
		command = []string{"cmd", "/C", "echo %USERNAME%"}
	}
	pod.Spec.Containers = []v1.Container{{Name: "user", Image: imageutils.GetE2EImage(imageutils.Agnhost), Command: command}}
	return pod
}

// runAs names the user of all containers of a pod.
func (s *system) runAs(pod *v1.Pod, user string) {
	if s.os == v1.Windows {
		pod.Spec.SecurityContext = &v1.PodSecurityContext{WindowsOptions: &v1.WindowsSecurityContextOptions{RunAsUserName: ptr.To(user)}}
		return
	}
	id, err := strconv.ParseInt(user, 10, 64)
	framework.ExpectNoError(err)
	pod.Spec.SecurityContext = &v1.PodSecurityContext{RunAsUser: ptr.To(id)}
}

// runContainerAs names the user of a pod's container.
func (s *system) runContainerAs(pod *v1.Pod, user string) {
	if s.os == v1.Windows {
		pod.Spec.Containers[0].SecurityContext = &v1.SecurityContext{WindowsOptions: &v1.WindowsSecurityContextOptions{RunAsUserName: ptr.To(user)}}
		return
	}
	id, err := strconv.ParseInt(user, 10, 64)
	framework.ExpectNoError(err)
	pod.Spec.Containers[0].SecurityContext = &v1.SecurityContext{RunAsUser: ptr.To(id)}
}
