package suite

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
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

// Where netexec serves.
const (
	netexecPort    = 8080
	netexecUDPPort = 8081
)

// netexec returns a pod of the system that answers with its name, and can be told to
// dial others; it has no name yet.
func (s *system) netexec() *v1.Pod { return s.netexecAt(netexecPort) }

// netexecAt returns one that serves at another port.
func (s *system) netexecAt(port int32) *v1.Pod {
	pod := s.pause()
	pod.Spec.Containers = []v1.Container{{
		Name: "netexec", Image: imageutils.GetE2EImage(imageutils.Agnhost),
		Args:  []string{"netexec", fmt.Sprintf("--http-port=%d", port)},
		Ports: []v1.ContainerPort{{ContainerPort: port}},
		ReadinessProbe: &v1.Probe{ProbeHandler: v1.ProbeHandler{
			HTTPGet: &v1.HTTPGetAction{Path: "/hostname", Port: intstr.FromInt32(port)},
		}},
	}}
	return pod
}

// dial asks a pod of netexec to dial an address so many times, and returns how often
// each has answered. Where the first dial fails it is the only one.
func dial(ctx context.Context, f *framework.Framework, from *v1.Pod, host string, port int32, times int) (*judge.Dialled, error) {
	return dialBy(ctx, f, from, address{"127.0.0.1", netexecPort}, "http", address{host, port}, times)
}

// dialBy has whatever netexec answers at one address dial another, by http or udp. It is
// asked from a pod, in which wget is, as it is not in a HostProcess container.
func dialBy(ctx context.Context, f *framework.Framework, asker *v1.Pod, by address, protocol string, to address, times int) (*judge.Dialled, error) {
	const most = 20 // with one request; netexec forgets all answers where the last dial fails
	sum := &judge.Dialled{}
	for n := 1; times > 0 && sum.Failed == 0; n = min(times, most) {
		times -= n
		url := fmt.Sprintf("http://%s/dial?request=hostname&protocol=%s&host=%s&port=%d&tries=%d", by, protocol, to.host, to.port, n)
		said, problem, err := e2epod.ExecWithOptionsContext(ctx, f, e2epod.ExecOptions{
			Command:   []string{"wget", "-q", "-O", "-", url},
			Namespace: asker.Namespace, PodName: asker.Name, ContainerName: asker.Spec.Containers[0].Name,
			CaptureStdout: true, CaptureStderr: true, Quiet: true,
		})
		if err != nil && strings.Contains(problem, unresolved) {
			sum.Refuse(n, to.host+" cannot be resolved")
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("running wget in pod %s: %w: %s", asker.Name, err, problem)
		}
		if err := sum.Add([]byte(said)); err != nil {
			return nil, fmt.Errorf("what pod %s says of its connections: %w", asker.Name, err)
		}
	}
	return sum, nil
}

// unresolved is what wget says of the status with which netexec answers that it cannot
// resolve the name that it is to dial.
const unresolved = "HTTP/1.1 400"

// address is one at which something answers.
type address struct {
	host string
	port int32
}

func (a address) String() string { return net.JoinHostPort(a.host, strconv.Itoa(int(a.port))) }

// reaches returns when the pod has reached all of those names at the address, and
// nobody else.
func reaches(ctx context.Context, f *framework.Framework, from *v1.Pod, to address, names []string, limit time.Duration, when string) {
	ginkgo.GinkgoHelper()
	reachesBy(ctx, f, from, address{"127.0.0.1", netexecPort}, "http", to, names, limit, when)
}

// reachesBy returns when whatever dials for the pod has reached them, as dialBy does.
func reachesBy(ctx context.Context, f *framework.Framework, asker *v1.Pod, by address, protocol string, to address, names []string, limit time.Duration, when string) {
	ginkgo.GinkgoHelper()
	who := fmt.Sprintf("pod %s on node %s", asker.Name, asker.Spec.NodeName)
	if by.host != "127.0.0.1" {
		who = by.String()
	}
	gomega.Eventually(ctx, func(ctx context.Context) ([]string, error) {
		d, err := dialBy(ctx, f, asker, by, protocol, to, 1)
		if err == nil && d.Failed == 0 { // else many more would take minutes to say the same
			d, err = dialBy(ctx, f, asker, by, protocol, to, dialsEach*len(names))
		}
		if err != nil {
			return nil, err
		}
		return d.Reached(names), nil
	}).WithTimeout(within(limit)).Should(gomega.BeEmpty(), "pods that %s reaches at %s by %s, %s", who, to, protocol, when)
}

// dialsEach is how often an address is dialled for each pod that is to answer there:
// that one of ten is missed by chance happens once in ten thousand times.
const dialsEach = 10

// client makes a pod from which is dialled, on a node of the system.
func client(ctx context.Context, f *framework.Framework, s *system, name string) *v1.Pod {
	ginkgo.GinkgoHelper()
	running := waitRunning(ctx, f, create(ctx, f, named(s.netexec(), name)))
	return &running[0]
}

// opposite finds the nodes of the system that is beside Windows, Linux; also with Linux
// under test. Without any the test fails.
func opposite(ctx context.Context, f *framework.Framework) *system {
	ginkgo.GinkgoHelper()
	s := findSystem(ctx, f.ClientSet, v1.Linux)
	if len(s.nodes) == 0 {
		framework.Failf("no %s node is ready and takes pods, and the test has pods there, too", s.os)
	}
	return s
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
