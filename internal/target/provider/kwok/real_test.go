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
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/process"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kwok"
)

// TestMain lets this test binary stand in for another op-readiness, one that
// is killed while it makes a cluster.
func TestMain(m *testing.M) {
	if dir := os.Getenv("KWOK_TEST_UP"); dir != "" {
		store, err := realStore()
		if err == nil {
			p := &kwok.Provider{Binaries: store, Dir: dir, Progress: os.Stdout}
			_, err = p.Up(context.Background(), kwok.DefaultOptions())
		}
		if err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

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
			err = errors.Join(err, p.Down(context.Background(), c.Name))
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

// only returns the one cluster that p lists.
func only(t *testing.T, p *kwok.Provider) provider.Cluster {
	t.Helper()
	clusters, err := p.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(clusters) != 1 {
		t.Fatalf("listed %+v, want one cluster", clusters)
	}
	return clusters[0]
}

// pid returns the process id of a component of a cluster.
func pid(t *testing.T, p *kwok.Provider, name, component string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.Dir, name, "kwok", "clusters", name, "pids", component+".pid"))
	if err != nil {
		t.Fatal(err)
	}
	id, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return id
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

func TestLifeOfACluster(t *testing.T) {
	p := newReal(t)
	o := kwok.DefaultOptions()
	o.Name = "life"
	o.WindowsVersion = "ltsc2025"
	made, err := p.Up(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	want := provider.Cluster{
		Name: "life", Provider: "kwok", KubernetesVersion: binaries.Pinned, LinuxNodes: 2, WindowsNodes: 2,
		WindowsVersion: "ltsc2025", State: provider.Running,
		Kubeconfig: filepath.Join(p.Dir, "life", "kubeconfig"), Context: "kwok-life",
	}
	if *made != want {
		t.Errorf("made %+v, want %+v", *made, want)
	}
	if info, err := os.Stat(made.Kubeconfig); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("kubeconfig: %v %v, want mode 0600", info, err)
	}
	checkNodes(t, clientOf(t, made))
	checkPods(t, clientOf(t, made))

	// Again: the very same processes.
	server := pid(t, p, "life", "kube-apiserver")
	if _, err := p.Up(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if again := pid(t, p, "life", "kube-apiserver"); again != server {
		t.Errorf("the second Up made another API server: %d, was %d", again, server)
	}
	if listed := only(t, p); listed != want {
		t.Errorf("listed %+v, want %+v", listed, want)
	}

	// Another shape is refused and nothing changes.
	other := o
	other.WindowsNodes, other.WindowsVersion = 3, "ltsc2019"
	_, err = p.Up(t.Context(), other)
	if err == nil {
		t.Fatal("another shape was accepted")
	}
	for _, part := range []string{"Windows nodes 2 instead of 3", "ltsc2025 instead of ltsc2019", "op-readiness cluster down life"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %q", part, err)
		}
	}
	if again := pid(t, p, "life", "kube-apiserver"); again != server {
		t.Errorf("the refused Up changed the API server: %d, was %d", again, server)
	}

	// A dead API server: listed as broken, healed by Up.
	if err := process.Kill(server); err != nil {
		t.Fatal(err)
	}
	awaitEnd(server)
	if listed := only(t, p); listed.State != provider.Broken || !strings.Contains(listed.Problem, "kube-apiserver") {
		t.Errorf("listed %+v, want broken for want of kube-apiserver", listed)
	}
	healed, err := p.Up(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	checkNodes(t, clientOf(t, healed))

	// All dead, as after a reboot.
	for _, line := range processesUnder(t, filepath.Join(p.Dir, "life")) {
		id, _ := strconv.Atoi(strings.Fields(line)[0])
		if err := process.Kill(id); err != nil {
			t.Fatal(err)
		}
		awaitEnd(id)
	}
	if listed := only(t, p); listed.State != provider.Stopped {
		t.Errorf("listed %+v, want stopped", listed)
	}
	if _, err := p.Up(t.Context(), other); err != nil {
		t.Errorf("a stopped cluster may get another shape: %v", err)
	}

	for range 2 { // the second time there is nothing left to do
		if err := p.Down(t.Context(), "life"); err != nil {
			t.Fatal(err)
		}
		assertGone(t, p, "life")
	}
	if clusters, err := p.List(t.Context()); err != nil || len(clusters) > 0 {
		t.Errorf("listed %v, %v after Down", clusters, err)
	}
}

// awaitEnd waits until a process has ended, reaped or not.
func awaitEnd(id int) {
	for process.Alive(id, 0) {
		time.Sleep(5 * time.Millisecond)
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

func TestTwoUpsAtOnceMakeOneCluster(t *testing.T) {
	p := newReal(t)
	o := kwok.DefaultOptions()
	o.Name, o.LinuxNodes, o.WindowsNodes = "twice", 1, 1
	var group sync.WaitGroup
	for range 2 {
		second := &kwok.Provider{Binaries: p.Binaries, Dir: p.Dir, Progress: testLog{t}}
		group.Add(1)
		go func() {
			defer group.Done()
			if made, err := second.Up(t.Context(), o); err != nil || made.State != provider.Running {
				t.Errorf("%+v, %v", made, err)
			}
		}()
	}
	group.Wait()
	if running := processesUnder(t, filepath.Join(p.Dir, "twice", "kwok")); len(running) != 5 {
		t.Errorf("processes:\n%s\nwant 5", strings.Join(running, "\n"))
	}
}

func TestTwoClustersAtOnceDoNotDisturbEachOther(t *testing.T) {
	p := newReal(t)
	var group sync.WaitGroup
	for _, name := range []string{"one", "two"} {
		o := kwok.DefaultOptions()
		o.Name, o.LinuxNodes, o.WindowsNodes = name, 1, 1
		group.Add(1)
		go func() {
			defer group.Done()
			if _, err := p.Up(t.Context(), o); err != nil {
				t.Error(err)
			}
		}()
	}
	group.Wait()
	if err := p.Down(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	assertGone(t, p, "one")
	if left := only(t, p); left.Name != "two" || left.State != provider.Running {
		t.Errorf("left is %+v, want two, running", left)
	}
}

func TestInterruptedUpLeavesNothing(t *testing.T) {
	for _, at := range []string{"starting Kubernetes", "adding"} {
		t.Run("while "+at, func(t *testing.T) {
			p := newReal(t)
			ctx, cancel := context.WithCancel(t.Context())
			p.Progress = cancelAt{at, cancel}
			_, err := p.Up(ctx, kwok.DefaultOptions())
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("error %v, want context.Canceled", err)
			}
			assertGone(t, p, "op-readiness")
		})
	}
}

// cancelAt cancels as soon as a certain step is told.
type cancelAt struct {
	step   string
	cancel context.CancelFunc
}

func (c cancelAt) Write(p []byte) (int, error) {
	if strings.Contains(string(p), c.step) {
		c.cancel()
	}
	return len(p), nil
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
	if _, err := p.Up(t.Context(), kwok.DefaultOptions()); err != nil {
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
	o := kwok.DefaultOptions()
	o.BindAddress = "0.0.0.0"
	if _, err := p.Up(t.Context(), o); err != nil {
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

func TestUpAfterAKilledUp(t *testing.T) {
	p := newReal(t)
	first := exec.Command(os.Args[0])
	first.Env = append(os.Environ(), "KWOK_TEST_UP="+p.Dir)
	out, err := first.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	// Its first words come just before it starts the cluster.
	if _, err := out.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	await(t, "its first process", func() (bool, error) {
		return len(processesUnder(t, filepath.Join(p.Dir, "op-readiness"))) > 0, nil
	})
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(); err == nil {
		t.Fatal("it was done before it could be killed")
	}
	made, err := p.Up(t.Context(), kwok.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	if made.State != provider.Running {
		t.Errorf("made %+v, want it running", made)
	}
	if running := processesUnder(t, filepath.Join(p.Dir, "op-readiness", "kwok")); len(running) != 5 {
		t.Errorf("processes:\n%s\nwant 5", strings.Join(running, "\n"))
	}
}

func TestKubeconfigOfTheUserKeepsWhatIsInIt(t *testing.T) {
	p := newReal(t)
	file := filepath.Join(tempDir(t), "sub", "config")
	theirs := clientcmdapi.NewConfig()
	theirs.Clusters["mine"] = &clientcmdapi.Cluster{Server: "https://mine.example"}
	theirs.Contexts["mine"] = &clientcmdapi.Context{Cluster: "mine"}
	theirs.CurrentContext = "mine"
	if err := clientcmd.WriteToFile(*theirs, file); err != nil {
		t.Fatal(err)
	}
	o := kwok.DefaultOptions()
	o.Name, o.Kubeconfig = "merged", file
	for range 2 {
		made, err := p.Up(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if made.Kubeconfig != file {
			t.Errorf("kubeconfig %s, want %s", made.Kubeconfig, file)
		}
		if _, err := clientOf(t, made).Discovery().ServerVersion(); err != nil {
			t.Error(err)
		}
	}
	if err := p.Down(t.Context(), "merged"); err != nil {
		t.Fatal(err)
	}
	got, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Clusters) != 1 || got.Clusters["mine"] == nil || got.CurrentContext != "mine" {
		t.Errorf("left is %+v, want what was there before", got)
	}
}

func TestKubeconfigThatUpMadeGoesWithTheCluster(t *testing.T) {
	p := newReal(t)
	o := kwok.DefaultOptions()
	o.LinuxNodes, o.WindowsNodes = 0, 1
	o.Kubeconfig = filepath.Join(tempDir(t), "config")
	if _, err := p.Up(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(o.Kubeconfig); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("kubeconfig: %v %v, want mode 0600", info, err)
	}
	if err := p.Down(t.Context(), o.Name); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(o.Kubeconfig); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the kubeconfig is still there: %v", err)
	}
}

// The real e2e.test finds what it needs and does not wait.
func TestUpstreamTestPasses(t *testing.T) {
	store := needReal(t, append(kwok.Needs(), binaries.E2ETest)...)
	p := newReal(t)
	made, err := p.Up(t.Context(), kwok.DefaultOptions())
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
