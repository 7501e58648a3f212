package node_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/nodelogs"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/scratch"
	"github.com/windows-op-readiness/windows-op-readiness/test/nodetest"
	"github.com/windows-op-readiness/windows-op-readiness/test/realnode"
)

// What reaches the nodes themselves, beside tests: images that they pull, and logs of a
// kubelet that answers queries, of one that does not, and of one that is gone.
func TestARealNodeBesideTests(t *testing.T) {
	bed := nodetest.Up(t)
	node, client := bed.Nodes[0], connect(t, bed)
	if out, err := node.Run(t.Context(), "sh", "-c", "echo 'node log, password: hidden-in-a-log' >/var/log/kubelet.log"); err != nil {
		t.Fatal(err, out)
	}
	speak(t, client, bed.Images.Agnhost)
	const kubelet, containerd = "nodes/" + realnode.NodeName + "/kubelet.log", "nodes/" + realnode.NodeName + "/containerd.log"

	t.Run("images are pulled", func(t *testing.T) { pullImages(t, bed, client) })

	t.Run("logs by a privileged pod", func(t *testing.T) {
		got := collectLogs(t, bed)
		got.is(t, kubelet, "node log, password: [REDACTED]\n")
		got.is(t, "pods/kube-system/speaker/agnhost.log", "I spoke\n")
		got.misses(t, containerd+": the kubelet answers no log queries; there is no journal of containerd.service, and no file containerd.log below /var/log\n")
		got.misses(t, "nodes/windows-1: simulated: nothing runs there\n")
		got.noted(t, "a pod on "+realnode.NodeName+" prints kubelet and containerd")
		left, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{LabelSelector: scratch.Label("logs")})
		if err != nil || len(left.Items) > 0 {
			t.Errorf("left: %v, %v", left.Items, err)
		}
	})

	t.Run("logs by a log query", func(t *testing.T) {
		if err := node.Configure(t.Context(), realnode.Kubelet, realnode.Config{"enableSystemLogQuery": true}); err != nil {
			t.Fatal(err)
		}
		got := collectLogs(t, bed)
		got.is(t, kubelet, "node log, password: [REDACTED]\n")
		got.misses(t, containerd+": the kubelet says: log not found for containerd; there is no journal of containerd.service, ")
		got.noted(t, "the kubelet of "+realnode.NodeName+" gave the log of kubelet")
		got.noted(t, "a pod on "+realnode.NodeName+" prints containerd")
	})

	t.Run("no logs without a kubelet", func(t *testing.T) {
		if err := node.Stop(t.Context(), realnode.Kubelet); err != nil {
			t.Fatal(err)
		}
		got := collectLogs(t, bed)
		got.misses(t, kubelet+": asking the kubelet: ")
		got.misses(t, "pods/kube-system/speaker/agnhost.log: ")
	})
}

// speak makes a pod in kube-system, and waits until it has said something.
func speak(t *testing.T, client kubernetes.Interface, image string) {
	t.Helper()
	pods := client.CoreV1().Pods("kube-system")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "speaker"}, Spec: corev1.PodSpec{
		NodeName: realnode.NodeName, RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{Name: "agnhost", Image: image, Command: []string{"echo", "I spoke"}}},
	}}
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for since := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		now, err := pods.Get(t.Context(), "speaker", metav1.GetOptions{})
		if err == nil && now.Status.Phase == corev1.PodSucceeded {
			return
		}
		if time.Since(since) > 2*time.Minute {
			t.Fatalf("it is %+v, %v", now, err)
		}
	}
}

// collected is a folder of logs, and what was told meanwhile.
type collected struct {
	dir   string
	notes []string
}

func collectLogs(t *testing.T, bed *realnode.Bed) *collected {
	t.Helper()
	c := &collected{dir: t.TempDir()}
	_, err := nodelogs.Collect(t.Context(), nodelogs.Options{
		Target: cluster.Target{Kubeconfig: bed.Cluster.Kubeconfig}, Dir: c.dir,
		Note: func(text string) { c.notes = append(c.notes, text) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *collected) read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(c.dir, path))
	if err != nil {
		t.Error(err)
	}
	return string(data)
}

func (c *collected) is(t *testing.T, path, want string) {
	t.Helper()
	if got := c.read(t, path); got != want {
		t.Errorf("%s is %q, want %q; missing is:\n%s", path, got, want, c.read(t, "missing.txt"))
	}
}

func (c *collected) misses(t *testing.T, want string) {
	t.Helper()
	if got := c.read(t, "missing.txt"); !strings.Contains(got, want) {
		t.Errorf("missing.txt does not say %q:\n%s", want, got)
	}
}

func (c *collected) noted(t *testing.T, want string) {
	t.Helper()
	if got := strings.Join(c.notes, "\n"); !strings.Contains(got, want) {
		t.Errorf("%q was not noted:\n%s", want, got)
	}
}
