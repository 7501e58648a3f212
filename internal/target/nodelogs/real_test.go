package nodelogs_test

import (
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/nodelogs"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/scratch"
	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
)

func TestMain(m *testing.M) { os.Exit(kwoktest.Main(m)) }

// A real API server tells of its objects; nothing runs on simulated nodes, and
// nobody waits for it.
func TestOnASimulatedCluster(t *testing.T) {
	made := kwoktest.Shared(t)
	client := kwoktest.Client(t, made)
	in := client.CoreV1()
	if _, err := in.Secrets("kube-system").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "nodelogs"}, StringData: map[string]string{"x": "hidden-in-a-secret"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "nodelogs"}, Data: map[string]string{"settings": "size: 12\npassword: hidden-in-a-map\n"}}
	if _, err := in.ConfigMaps("kube-system").Create(t.Context(), config, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "nodelogs", Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"x":"hidden-in-an-annotation"}`}},
		Spec: corev1.PodSpec{NodeName: "windows-1", Containers: []corev1.Container{{Name: "c", Image: "x", Env: []corev1.EnvVar{
			{Name: "API_PASSWORD", Value: "hidden-in-a-variable"}, {Name: "SIZE", Value: "seen"},
		}}}},
	}
	if _, err := in.Pods("kube-system").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	files, missing := collect(t, nodelogs.Options{Target: cluster.Target{Kubeconfig: made.Kubeconfig}, PerNode: time.Minute})
	has(t, missing,
		"nodes/linux-1: simulated: nothing runs there\n", "nodes/windows-2: simulated: nothing runs there\n",
		"pods/kube-system/nodelogs: its node windows-1 is simulated or gone: nothing runs there\n")
	has(t, files["objects/nodes.yaml"], "name: windows-2\n", "operatingSystem: windows\n")
	has(t, files["objects/kube-system/configmaps.yaml"], "size: 12\n", "password: [REDACTED]\n")
	has(t, files["objects/kube-system/pods.yaml"], "value: seen\n", "name: API_PASSWORD\n")
	has(t, files["objects/kube-system/statefulsets.yaml"], "# there are none\n")
	for path, text := range files {
		if strings.Contains(text, "hidden-in") {
			t.Errorf("%s tells a secret:\n%s", path, text)
		}
	}
	left, err := in.Namespaces().List(t.Context(), metav1.ListOptions{LabelSelector: scratch.Label("logs")})
	if err != nil || len(left.Items) > 0 {
		t.Errorf("namespaces were made: %v, %v", left, err)
	}
}
