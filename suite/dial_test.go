package suite

import (
	"context"
	"fmt"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/test/e2e/framework"
	e2epod "k8s.io/kubernetes/test/e2e/framework/pod"
	imageutils "k8s.io/kubernetes/test/utils/image"

	"github.com/windows-op-readiness/windows-op-readiness/suite/judge"
)

// netexecPort is where netexec serves.
const netexecPort = 8080

// netexec returns a pod of the system that answers with its name, and can be told to
// dial others; it has no name yet.
func (s *system) netexec() *v1.Pod {
	pod := s.pause()
	pod.Spec.Containers = []v1.Container{{
		Name: "netexec", Image: imageutils.GetE2EImage(imageutils.Agnhost),
		Args:  []string{"netexec", fmt.Sprintf("--http-port=%d", netexecPort)},
		Ports: []v1.ContainerPort{{ContainerPort: netexecPort}},
		ReadinessProbe: &v1.Probe{ProbeHandler: v1.ProbeHandler{
			HTTPGet: &v1.HTTPGetAction{Path: "/hostname", Port: intstr.FromInt32(netexecPort)},
		}},
	}}
	return pod
}

// dial asks a pod of netexec to dial an address so many times, and returns how often
// each has answered.
func dial(ctx context.Context, f *framework.Framework, from *v1.Pod, host string, port int32, times int) (*judge.Dialled, error) {
	const most = 20 // with one request; netexec forgets all answers where the last dial fails
	sum := &judge.Dialled{}
	for times > 0 {
		n := min(times, most)
		times -= n
		url := fmt.Sprintf("http://127.0.0.1:%d/dial?request=hostname&protocol=http&host=%s&port=%d&tries=%d", netexecPort, host, port, n)
		said, _, err := e2epod.ExecWithOptionsContext(ctx, f, e2epod.ExecOptions{
			Command:   []string{"wget", "-q", "-O", "-", url},
			Namespace: from.Namespace, PodName: from.Name, ContainerName: from.Spec.Containers[0].Name,
			CaptureStdout: true, CaptureStderr: true, Quiet: true,
		})
		if err != nil {
			return nil, fmt.Errorf("running wget in pod %s: %w", from.Name, err)
		}
		if err := sum.Add([]byte(said)); err != nil {
			return nil, fmt.Errorf("what pod %s says of its dials: %w", from.Name, err)
		}
	}
	return sum, nil
}

// address is one at which a Service answers.
type address struct {
	host string
	port int32
}

// reaches returns when the pod has reached all of those names at the address, and
// nobody else.
func reaches(ctx context.Context, f *framework.Framework, from *v1.Pod, to address, names []string, limit time.Duration, when string) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func(ctx context.Context) ([]string, error) {
		d, err := dial(ctx, f, from, to.host, to.port, dialsEach*len(names))
		if err != nil {
			return nil, err
		}
		return d.Reached(names), nil
	}).WithTimeout(within(limit)).Should(gomega.BeEmpty(), "pods that pod %s on node %s reaches at %s:%d, %s", from.Name, from.Spec.NodeName, to.host, to.port, when)
}

// dialsEach is how often an address is dialled for each pod that is to answer there:
// that one of ten is missed by chance happens once in ten thousand times.
const dialsEach = 10

// client makes a pod from which is dialled, on a node of the system.
func client(ctx context.Context, f *framework.Framework, s *system, name string) *v1.Pod {
	ginkgo.GinkgoHelper()
	if len(s.nodes) == 0 {
		framework.Failf("no %s node is ready and takes pods, and the test dials from there, too", s.os)
	}
	running := waitRunning(ctx, f, create(ctx, f, named(s.netexec(), name)))
	return &running[0]
}

// opposite finds the nodes of the system that is beside Windows, Linux; also with Linux
// under test.
func opposite(ctx context.Context, f *framework.Framework) *system {
	return findSystem(ctx, f.ClientSet, v1.Linux)
}

// ready returns the names of the ready pods with that label.
func ready(ctx context.Context, f *framework.Framework, app string) ([]string, error) {
	pods, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range pods.Items {
		if p := &pods.Items[i]; p.DeletionTimestamp == nil && judge.Ready(p) {
			names = append(names, p.Name)
		}
	}
	return names, nil
}
