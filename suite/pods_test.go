package suite

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	imageutils "k8s.io/kubernetes/test/utils/image"
	"k8s.io/utils/ptr"

	"github.com/windows-op-readiness/windows-op-readiness/suite/judge"
)

// podStart is how long a pod may take to start, with an image to pull.
const podStart = 10 * time.Minute

// pause returns a pod of the system that does nothing, with no name yet.
func (s *system) pause() *v1.Pod {
	return &v1.Pod{Spec: v1.PodSpec{
		OS:                            &v1.PodOS{Name: s.os},
		NodeSelector:                  map[string]string{v1.LabelOSStable: string(s.os)},
		Tolerations:                   s.tolerations,
		TerminationGracePeriodSeconds: ptr.To[int64](5),
		Containers:                    []v1.Container{{Name: "pause", Image: imageutils.GetPauseImageName()}},
	}}
}

// named gives the pod a name.
func named(pod *v1.Pod, name string) *v1.Pod {
	pod.Name = name
	return pod
}

// on lets the pod go to one node only.
func on(pod *v1.Pod, node *v1.Node) *v1.Pod {
	pod.Spec.NodeSelector[v1.LabelHostname] = node.Labels[v1.LabelHostname]
	return pod
}

// create makes a pod in the test's namespace. Where the cluster's admission
// refuses it the test fails, and says so: it is no finding about Windows.
func create(ctx context.Context, f *framework.Framework, pod *v1.Pod) *v1.Pod {
	ginkgo.GinkgoHelper()
	return createIn(ctx, f, f.Namespace.Name, pod)
}

// createIn is create for another of the test's namespaces.
func createIn(ctx context.Context, f *framework.Framework, namespace string, pod *v1.Pod) *v1.Pod {
	ginkgo.GinkgoHelper()
	made, err := f.ClientSet.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	if apierrors.IsForbidden(err) {
		framework.Failf("the cluster's admission refuses pod %s, without which the test cannot be run: %v", pod.Name, err)
	}
	framework.ExpectNoError(err, "creating pod %s", pod.Name)
	return made
}

// waitRunning returns the pods when all of them run.
func waitRunning(ctx context.Context, f *framework.Framework, pods ...*v1.Pod) []v1.Pod {
	ginkgo.GinkgoHelper()
	running := make([]v1.Pod, len(pods))
	gomega.Eventually(ctx, func(ctx context.Context) (string, error) {
		for i, pod := range pods {
			now, err := f.ClientSet.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			if now.Status.Phase != v1.PodRunning {
				return stateOf(now), nil
			}
			running[i] = *now
		}
		return "", nil
	}).WithTimeout(within(podStart)).WithPolling(min(framework.Poll, long(framework.Poll))).Should(gomega.BeEmpty(), "pods that do not run")
	return running
}

// waitServing returns the pod when it is ready.
func waitServing(ctx context.Context, f *framework.Framework, pod *v1.Pod) *v1.Pod {
	ginkgo.GinkgoHelper()
	var now *v1.Pod
	gomega.Eventually(ctx, func(ctx context.Context) (string, error) {
		var err error
		if now, err = f.ClientSet.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{}); err != nil || judge.Ready(now) {
			return "", err
		}
		return stateOf(now), nil
	}).WithTimeout(within(podStart)).WithPolling(min(framework.Poll, long(framework.Poll))).Should(gomega.BeEmpty(), func() string { return "pods that are not ready" + logsOf(ctx, f, pod) })
	return now
}

// stateOf says what a pod that does not run waits for.
func stateOf(pod *v1.Pod) string {
	text := fmt.Sprintf("pod %s is %s", pod.Name, pod.Status.Phase)
	for _, c := range pod.Status.Conditions {
		if c.Status == v1.ConditionFalse && c.Message != "" {
			text += fmt.Sprintf("; %s: %s", c.Reason, c.Message)
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil {
			text += fmt.Sprintf("; container %s: %s %s", c.Name, w.Reason, w.Message)
		}
	}
	return text
}

// folder returns the path of a folder in a container of the system.
func (s *system) folder(name string) string {
	if s.os == v1.Windows {
		return `C:\` + name
	}
	return "/" + name
}

// hostFolder returns the path of a folder of nodes for the tests of a namespace, or of
// that with all such folders.
func (s *system) hostFolder(namespace ...string) string {
	folder, separator := "/var/lib/op-readiness", "/"
	if s.os == v1.Windows {
		folder, separator = `C:\op-readiness`, `\`
	}
	return strings.Join(append([]string{folder}, namespace...), separator)
}
