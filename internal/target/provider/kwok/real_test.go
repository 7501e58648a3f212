//go:build unix

package kwok_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kwok"
	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
)

// realStore returns the user's own cache of binaries.
func realStore() (*binaries.Store, error) {
	dir, err := binaries.DefaultDir(os.Getenv)
	return &binaries.Store{Dir: dir, Progress: os.Stderr}, err
}

// needReal returns the user's cache with everything of names in it. Obtaining
// them takes minutes, so without OP_READINESS_TEST_BUILD the test is skipped
// when something is missing.
func needReal(t *testing.T, names ...binaries.Name) *binaries.Store {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes a cluster")
	}
	store, err := realStore()
	if err != nil {
		t.Fatal(err)
	}
	missing, err := store.Missing(t.Context(), binaries.Pinned, names...)
	if err != nil {
		t.Fatal(err)
	}
	if len(missing) == 0 {
		return store
	}
	if os.Getenv("OP_READINESS_TEST_BUILD") == "" {
		t.Skipf("not in the cache: %v: run op-readiness e2e fetch with these names, or set OP_READINESS_TEST_BUILD=1", missing)
	}
	if _, err := store.Get(t.Context(), binaries.Pinned, names...); err != nil {
		t.Fatal(err)
	}
	return store
}

// newReal returns a provider with the real binaries and a folder of its own.
func newReal(t *testing.T) *kwok.Provider {
	t.Helper()
	store := needReal(t, kwok.Needs()...)
	p := &kwok.Provider{Binaries: store, Dir: tempDir(t), Progress: testLog{t}}
	t.Cleanup(func() {
		clusters, err := p.List(context.Background())
		for _, c := range clusters {
			err = errors.Join(err, kwoktest.Remove(context.Background(), p, c.Name))
		}
		if err != nil {
			t.Error(err)
		}
		if left := processesUnder(t, p.Dir); len(left) > 0 {
			t.Errorf("processes left behind:\n%s", strings.Join(left, "\n"))
		}
	})
	return p
}

// tempDir is t.TempDir as processes spell it.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// processesUnder returns the processes that have dir in their arguments.
func processesUnder(t *testing.T, dir string) []string {
	t.Helper()
	out, err := exec.Command("ps", "-A", "-ww", "-o", "pid=,stat=,args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, line := range strings.Split(string(out), "\n") {
		fields := strings.Fields(line)
		if len(fields) > 2 && !strings.HasPrefix(fields[1], "Z") && strings.Contains(line, dir+"/") {
			found = append(found, line)
		}
	}
	return found
}

func clientOf(t *testing.T, c *provider.Cluster) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func assertGone(t *testing.T, p *kwok.Provider, name string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(p.Dir, name)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the cluster's folder is still there: %v", err)
	}
	if left := processesUnder(t, filepath.Join(p.Dir, name)); len(left) > 0 {
		t.Errorf("processes left behind:\n%s", strings.Join(left, "\n"))
	}
}

func TestNodesAndPodsAreAsTestsWantThem(t *testing.T) {
	p := newReal(t)
	r := provider.DefaultRequest()
	r.WindowsVersion = "ltsc2025"
	made, err := kwoktest.Make(t.Context(), p, r)
	if err != nil {
		t.Fatal(err)
	}
	want := provider.Cluster{
		Name: r.Name, Provider: "kwok", KubernetesVersion: binaries.Pinned, LinuxNodes: 2, WindowsNodes: 2,
		WindowsVersion: "ltsc2025", State: provider.Running,
		Kubeconfig: filepath.Join(p.Dir, r.Name, "kubeconfig"), Context: "kwok-" + r.Name,
	}
	if *made != want {
		t.Errorf("made %+v, want %+v", *made, want)
	}
	if info, err := os.Stat(made.Kubeconfig); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("kubeconfig: %v %v, want mode 0600", info, err)
	}
	checkNodes(t, clientOf(t, made))
	checkPods(t, clientOf(t, made))
	logs := t.TempDir()
	missing, err := p.Logs(t.Context(), &provider.Entry{Plan: provider.Plan{Request: r}}, logs)
	if err != nil || len(missing) > 0 {
		t.Errorf("logs: %v, missing %v", err, missing)
	}
	if text, err := os.ReadFile(filepath.Join(logs, "kube-apiserver.log")); err != nil || len(text) == 0 {
		t.Errorf("the API server's log: %d bytes, %v", len(text), err)
	}
}

// checkNodes checks that nodes are what preflight and the upstream tests ask.
func checkNodes(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	for system, build := range map[string]string{"linux": "", "windows": "10.0.26100"} {
		nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: "kubernetes.io/os=" + system})
		if err != nil {
			t.Fatal(err)
		}
		if len(nodes.Items) != 2 {
			t.Fatalf("%d %s nodes, want 2", len(nodes.Items), system)
		}
		for _, node := range nodes.Items {
			info := node.Status.NodeInfo
			if info.OperatingSystem != system || node.Labels["node.kubernetes.io/windows-build"] != build ||
				info.KubeletVersion != binaries.Pinned || !strings.HasPrefix(info.ContainerRuntimeVersion, "containerd://") ||
				node.Labels["kubernetes.io/hostname"] != node.Name {
				t.Errorf("node %s: labels %v, info %+v", node.Name, node.Labels, info)
			}
			if node.Spec.PodCIDR == "" || len(node.Spec.Taints) > 0 || node.Spec.Unschedulable {
				t.Errorf("node %s: spec %+v, want a range of pod addresses and no taints", node.Name, node.Spec)
			}
		}
	}
}

// checkPods checks that a pod on each system runs, has an address, and goes.
func checkPods(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	pods := client.CoreV1().Pods("default")
	for _, system := range []string{"linux", "windows"} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: system},
			Spec: corev1.PodSpec{
				NodeSelector: map[string]string{"kubernetes.io/os": system},
				Containers:   []corev1.Container{{Name: "c", Image: "example.com/none"}},
			},
		}
		if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		await(t, system+" pod ready with an address", func() (bool, error) {
			pod, err := pods.Get(t.Context(), system, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			return pod.Status.Phase == corev1.PodRunning && pod.Status.PodIP != "" && podReady(pod) &&
				strings.HasPrefix(pod.Spec.NodeName, system), nil
		})
		if err := pods.Delete(t.Context(), system, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		await(t, system+" pod gone", func() (bool, error) {
			_, err := pods.Get(t.Context(), system, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return true, nil
			}
			return false, err
		})
	}
}

func podReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// await waits until ok says true; the test's own time limit is the only one.
func await(t *testing.T, what string, ok func() (bool, error)) {
	t.Helper()
	for i := 0; ; i++ {
		done, err := ok()
		if err != nil {
			t.Fatalf("waiting for %s: %v", what, err)
		}
		if done {
			return
		}
		if i%1000 == 999 {
			t.Logf("still waiting for %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestPortTakenMeanwhileLeadsToAnotherTry(t *testing.T) {
	p := newReal(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	p.TakePortsFirst(taken.Addr().(*net.TCPAddr).Port)
	var told bytes.Buffer
	p.Progress = &told
	if _, err := kwoktest.Make(t.Context(), p, provider.DefaultRequest()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(told.String(), "trying others") {
		t.Errorf("told only:\n%s", told.String())
	}
}

// Only the API server can be made to listen beyond this machine: etcd lets
// everybody in.
func TestOnlyTheAPIServerListensBeyondThisMachine(t *testing.T) {
	p := newReal(t)
	o := provider.DefaultRequest()
	o.Set = map[string]string{kwok.BindAddress: "0.0.0.0"}
	if _, err := kwoktest.Make(t.Context(), p, o); err != nil {
		t.Fatal(err)
	}
	var wide []string
	for _, line := range processesUnder(t, filepath.Join(p.Dir, o.Name, "kwok")) {
		if strings.Contains(line, "0.0.0.0") {
			wide = append(wide, filepath.Base(strings.Fields(line)[2]))
		}
	}
	if len(wide) != 1 || wide[0] != "kube-apiserver" {
		t.Errorf("listening on 0.0.0.0: %q, want kube-apiserver alone", wide)
	}
}

// The real e2e.test finds what it needs and does not wait.
func TestUpstreamTestPasses(t *testing.T) {
	store := needReal(t, append(kwok.Needs(), binaries.E2ETest)...)
	p := newReal(t)
	made, err := kwoktest.Make(t.Context(), p, provider.DefaultRequest())
	if err != nil {
		t.Fatal(err)
	}
	paths, err := store.Get(t.Context(), binaries.Pinned, binaries.E2ETest)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), paths[binaries.E2ETest],
		"--kubeconfig", made.Kubeconfig, "--provider", "skeleton", "--node-os-distro", "windows",
		"--ginkgo.no-color", "--ginkgo.focus", `EndpointSlice should create Endpoints and EndpointSlices for Pods matching a Service`,
	).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "1 Passed") {
		t.Errorf("e2e.test: %v\n%s", err, out)
	}
}
