//go:build linux

package realnode_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
	"github.com/windows-op-readiness/windows-op-readiness/test/nodetest"
	"github.com/windows-op-readiness/windows-op-readiness/test/realnode"
)

// scene is two real nodes, with a pod of each name on each: one that says its name,
// and one with the rights of its node's root.
type scene struct {
	*testing.T
	bed    *realnode.Bed
	client kubernetes.Interface
}

const (
	near, far = "near", "far"
	root      = "-root"
	port      = 8080
)

func TestTwoNodes(t *testing.T) {
	bed := nodetest.Up(t, func(o *realnode.Options) { o.Nodes = 2 })
	s := &scene{T: t, bed: bed, client: kwoktest.Client(t, bed.Cluster)}
	for i, name := range []string{near, far} {
		s.run(bed.Nodes[i], name, false)
		s.run(bed.Nodes[i], name+root, true)
		s.serve(name)
	}
	for _, name := range []string{near, near + root, far, far + root} {
		s.answers(name)
	}
	for _, step := range []struct {
		name string
		run  func(*scene)
	}{
		{"pods and addresses of the other node are reached", (*scene).otherNode},
		{"names of Services are resolved", (*scene).names},
		{"a kube-proxy that is stopped learns nothing", (*scene).proxy},
		{"the kubelet is configured anew", (*scene).configure},
		{"a node that is told to shut down for a reboot does so", (*scene).shutdown},
		{"both nodes restart at once, also by the kernel's own call", (*scene).both},
		{"a node does not come back as it was", (*scene).crippled},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			step.run(&scene{T: t, bed: s.bed, client: s.client})
		}) {
			return // what comes next needs both nodes as they were
		}
	}
}

func (s *scene) otherNode() {
	s.Helper()
	s.dials(near, s.pod(far).Status.PodIP, far)
	s.dials(far, s.pod(near).Status.PodIP, near)
	for i, from := range []string{near, far} {
		there := fmt.Sprintf("/agnhost connect %s:10250 --timeout 2s && echo there", s.bed.Nodes[1-i].Address)
		s.expect(from, "there", there)
		s.expect(from+root, "there", there)
	}
	// What comes from a node comes from its address, whichever way it goes.
	s.until("the node is known by its address", func(context.Context) (string, error) {
		said := s.dial(near+root, s.pod(far).Status.PodIP, "clientip")
		if address, _, _ := net.SplitHostPort(said); address != s.bed.Nodes[0].Address {
			return said, nil
		}
		return "", nil
	})
}

func (s *scene) names() {
	s.Helper()
	for _, name := range []string{far, far + ".default", far + ".default.svc.cluster.local"} {
		s.dials(near, name, far)
		s.dials(far, name, far)
	}
	for _, name := range []string{"no-such", "no-such.default.svc.cluster.local", "www.kubernetes.io"} {
		if said := s.dial(near, name, "hostname"); !strings.Contains(said, "no such host") {
			s.Errorf("%s: %s", name, said)
		}
	}
}

func (s *scene) proxy() {
	node := s.bed.Nodes[0]
	s.must(node.Stop(s.Context(), realnode.KubeProxy))
	s.must(node.Stop(s.Context(), realnode.KubeProxy)) // nothing to do
	_, err := s.client.CoreV1().Services("default").Create(s.Context(), service("new", far), metav1.CreateOptions{})
	s.must(err)
	s.dials(far, "new", far)
	if said := s.dial(near, "new", "hostname"); said == far {
		s.Error("the node's Services are still kept up to date")
	}
	s.dials(near, far, far) // what it knew stays
	s.must(node.Start(s.Context(), realnode.KubeProxy))
	s.dials(near, "new", far)
}

func (s *scene) configure() {
	node := s.bed.Nodes[0]
	for _, want := range []bool{false, true} {
		var change realnode.Config
		if !want {
			change = realnode.Config{"cpuCFSQuota": false}
		}
		s.must(node.Configure(s.Context(), realnode.Kubelet, change))
		said, err := s.client.CoreV1().RESTClient().Get().Resource("nodes").Name(node.Name).SubResource("proxy", "configz").DoRaw(s.Context())
		s.must(err)
		if !strings.Contains(string(said), fmt.Sprintf(`"cpuCFSQuota":%t`, want)) {
			s.Errorf("after %v: %s", change, said)
		}
	}
	if err := node.Configure(s.Context(), realnode.Containerd, nil); err == nil {
		s.Error("containerd took a configuration")
	}
	s.answers(near)
}

func (s *scene) shutdown() {
	node := s.bed.Nodes[1]
	for _, wrong := range []string{"shutdown now", "shutdown -r 20:00", "shutdown -h"} {
		if said, err := node.Run(s.Context(), strings.Fields(wrong)...); err == nil {
			s.Errorf("%s: %s", wrong, said)
		}
	}
	_, err := node.Run(s.Context(), "touch", "/run/in-memory", "/var/lib/kubelet/on-disk")
	s.must(err)
	s.rebooting(func() { s.tell(far+root, "nsenter -t 1 -m shutdown -r now") }, 1)
	_, err = node.Run(s.Context(), "sh", "-c", "[ ! -e /run/in-memory ] && [ -e /var/lib/kubelet/on-disk ]")
	s.must(err)
	s.otherNode()
	s.names()
}

// both ends also the first node, on which the cluster's DNS is.
func (s *scene) both() {
	s.rebooting(func() {
		_, err := s.bed.Nodes[1].Run(s.Context(), "reboot")
		s.must(err)
		s.tell(near+root, "reboot -f")
	}, 0, 1)
	s.otherNode()
	s.names()
}

func (s *scene) crippled() {
	node := s.bed.Nodes[1]
	before := s.info(node)
	node.NextBoot(realnode.Boot{SameID: true, Without: []realnode.Program{realnode.KubeProxy}, Network: realnode.NetworkBroken})
	s.must(node.Reboot(s.Context()))
	if after := s.info(node); after.BootID != before.BootID {
		s.Errorf("the boot id was %s and is %s", before.BootID, after.BootID)
	}
	s.until("no pod gets a network", func(ctx context.Context) (string, error) {
		events, err := s.client.CoreV1().Events("default").List(ctx, metav1.ListOptions{FieldSelector: "reason=FailedCreatePodSandBox"})
		if err != nil {
			return "", err
		}
		for i := range events.Items {
			if strings.Contains(events.Items[i].Message, `type="ptp" failed (add)`) {
				return "", nil
			}
		}
		return fmt.Sprintf("%d events", len(events.Items)), nil
	})
	if conn, err := net.DialTimeout("tcp", node.Address+":10249", time.Second); err == nil {
		conn.Close()
		s.Error("kube-proxy runs")
	}
	node.NextBoot(realnode.Boot{Without: []realnode.Program{realnode.Kubelet}})
	s.must(node.Reboot(s.Context()))
	if conn, err := net.DialTimeout("tcp", node.Address+":10250", time.Second); err == nil {
		conn.Close()
		s.Error("the kubelet runs")
	}
	s.must(node.Start(s.Context(), realnode.Kubelet))
	s.answers(far)
	s.dials(near, far, far)
	if after := s.info(node); after.BootID == before.BootID {
		s.Errorf("the boot id is %s, as before", after.BootID)
	}
}

// rebooting does what reboots nodes, and waits until each has another boot id and
// its pods have been started again.
func (s *scene) rebooting(do func(), indexes ...int) {
	s.Helper()
	ids, restarts := map[int]string{}, map[string]int32{}
	for _, i := range indexes {
		ids[i] = s.info(s.bed.Nodes[i]).BootID
		for _, pod := range s.on(i) {
			restarts[pod] = s.pod(pod).Status.ContainerStatuses[0].RestartCount
		}
	}
	do()
	for _, i := range indexes {
		s.until("the boot id changes", func(context.Context) (string, error) {
			if s.info(s.bed.Nodes[i]).BootID == ids[i] {
				return "it is the one before", nil
			}
			return "", nil
		})
		for _, pod := range s.on(i) {
			s.until("the kubelet starts the container of "+pod+" again", func(context.Context) (string, error) {
				if status := s.pod(pod).Status.ContainerStatuses[0]; status.RestartCount == restarts[pod] || !status.Ready {
					return fmt.Sprintf("started again %d times, ready %t", status.RestartCount-restarts[pod], status.Ready), nil
				}
				return "", nil
			})
			s.answers(pod)
		}
	}
}

// on returns the pods of a node.
func (s *scene) on(index int) []string {
	name := []string{near, far}[index]
	return []string{name, name + root}
}

func (s *scene) info(node *realnode.Node) corev1.NodeSystemInfo {
	s.Helper()
	n, err := s.client.CoreV1().Nodes().Get(s.Context(), node.Name, metav1.GetOptions{})
	s.must(err)
	return n.Status.NodeInfo
}

// run makes a pod that takes commands; as root of its node if it is to.
func (s *scene) run(node *realnode.Node, name string, asRoot bool) {
	s.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			NodeName:                      node.Name,
			TerminationGracePeriodSeconds: new(int64),
			Containers: []corev1.Container{{
				Name: "main", Image: s.bed.Images.Agnhost, Args: []string{"netexec", fmt.Sprintf("--http-port=%d", port)},
				SecurityContext: &corev1.SecurityContext{Privileged: &asRoot},
			}},
			HostPID: asRoot, HostNetwork: asRoot,
			EnableServiceLinks: new(bool), AutomountServiceAccountToken: new(bool),
		},
	}
	_, err := s.client.CoreV1().Pods("default").Create(s.Context(), pod, metav1.CreateOptions{})
	s.must(err)
}

func (s *scene) serve(name string) {
	s.Helper()
	_, err := s.client.CoreV1().Services("default").Create(s.Context(), service(name, name), metav1.CreateOptions{})
	s.must(err)
}

func service(name, app string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": app}, Ports: []corev1.ServicePort{{Port: port}}},
	}
}

func (s *scene) pod(name string) *corev1.Pod {
	s.Helper()
	pod, err := s.client.CoreV1().Pods("default").Get(s.Context(), name, metav1.GetOptions{})
	s.must(err)
	return pod
}

// dials waits until a pod reaches the pod want at host.
func (s *scene) dials(from, host, want string) {
	s.Helper()
	s.until(fmt.Sprintf("pod %s reaches %s at %s", from, want, host), func(context.Context) (string, error) {
		if said := s.dial(from, host, "hostname"); said != want {
			return said, nil
		}
		return "", nil
	})
}

// dial returns what a pod is answered at host, or why it is not.
func (s *scene) dial(from, host, request string) string {
	said, err := s.get(from, "/dial", map[string]string{"host": host, "port": fmt.Sprint(port), "request": request, "protocol": "http", "tries": "1"})
	if err != nil {
		return err.Error()
	}
	var answer struct{ Responses, Errors []string }
	if err := json.Unmarshal(said, &answer); err != nil {
		return err.Error()
	}
	return strings.Join(append(answer.Responses, answer.Errors...), "; ")
}

func (s *scene) get(pod, path string, parameters map[string]string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(s.Context(), 10*time.Second)
	defer cancel()
	said, err := s.client.CoreV1().Pods("default").ProxyGet("http", pod, fmt.Sprint(port), path, parameters).DoRaw(ctx)
	if err != nil {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return said, err
}

// answers waits until a pod takes commands.
func (s *scene) answers(name string) {
	s.Helper()
	s.expect(name, "here", "echo here")
}

// expect waits until a command in a pod says what it is to.
func (s *scene) expect(pod, want, command string) {
	s.Helper()
	s.until(fmt.Sprintf("pod %s says %q when it runs %s", pod, want, command), func(context.Context) (string, error) {
		said, err := s.sh(pod, command)
		if err == nil && said == want {
			return "", nil
		}
		return fmt.Sprintf("it said %q, %v", said, err), nil
	})
}

// sh runs a command in a pod and returns what it says.
func (s *scene) sh(pod, command string) (string, error) {
	said, err := s.get(pod, "/shell", map[string]string{"shellCommand": command})
	if err != nil {
		return "", err
	}
	var answer struct{ Output, Error string }
	if err := json.Unmarshal(said, &answer); err != nil {
		return "", fmt.Errorf("%w: %s", err, said)
	}
	if answer.Error != "" {
		return "", fmt.Errorf("%s: %s", answer.Error, answer.Output)
	}
	return strings.TrimSpace(answer.Output), nil
}

// tell runs a command that may end the pod before it answers.
func (s *scene) tell(pod, command string) {
	said, err := s.sh(pod, command)
	s.Logf("%s: %q, %v", command, said, err)
}

// until waits until done says nothing.
func (s *scene) until(what string, done func(context.Context) (string, error)) {
	s.Helper()
	var last string
	if err := wait.PollUntilContextTimeout(s.Context(), 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		var err error
		last, err = done(ctx)
		return last == "", err
	}); err != nil {
		s.Fatalf("%s: %v; at last: %s", what, err, last)
	}
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}
