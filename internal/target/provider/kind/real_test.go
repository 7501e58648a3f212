//go:build unix

package kind_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/process"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kind"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/ledger"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/life"
	"github.com/windows-op-readiness/windows-op-readiness/test/kindtest"
)

// TestMain lets this test binary stand in for the program that makes one call of kind,
// and for another op-readiness, one that is killed while it makes a cluster.
func TestMain(m *testing.M) {
	var err error
	switch dir := os.Getenv("KIND_TEST_UP"); {
	case len(os.Args) > 1 && os.Args[1] == kind.Command:
		err = kind.Child(os.Stdin, os.Stdout)
	case dir != "":
		_ = os.Unsetenv("KIND_TEST_UP")
		c := clustersIn(dir, os.Stdout)
		c.Providers[0] = dying{c.Providers[0], os.Getenv("KIND_TEST_DIES")}
		_, err = up(context.Background(), c, request("killed"))
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// These say what kind clusters are made of on this machine.
const (
	engineVariable  = "KIND_EXPERIMENTAL_PROVIDER"
	imageVariable   = "KIND_TEST_IMAGE"
	versionVariable = "KIND_TEST_VERSION"
)

// dying is a provider whose process dies at a moment of Up, such as "before volume".
type dying struct {
	provider.Provider
	moment string
}

func (d dying) Up(ctx context.Context, p *provider.Plan, j provider.Journal) (*provider.Cluster, error) {
	return d.Provider.Up(ctx, p, dyingJournal{j, d.moment})
}

type dyingJournal struct {
	provider.Journal
	moment string
}

func (d dyingJournal) Step(name string, act func() error) error {
	die := func(moment string) {
		if moment == d.moment {
			_ = process.Kill(os.Getpid())
			select {}
		}
	}
	return d.Journal.Step(name, func() error {
		die("before " + name)
		err := act()
		if err == nil {
			die("after " + name)
		}
		return err
	})
}

// clustersIn are clusters of kind with ledger and folders in dir.
func clustersIn(dir string, progress interface{ Write([]byte) (int, error) }) *life.Clusters {
	cache, err := binaries.DefaultDir(os.Getenv)
	if err != nil {
		panic(err)
	}
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return &life.Clusters{
		Ledger: &ledger.Ledger{Dir: filepath.Join(dir, "ledger")},
		Providers: []provider.Provider{&kind.Provider{
			Binaries: &binaries.Store{Dir: cache, Progress: progress}, Dir: filepath.Join(dir, "clusters"),
			Self: []string{self}, Progress: progress,
		}},
		Progress: progress,
	}
}

// request is a cluster of one real node and one simulated one.
func request(name string) provider.Request {
	r := provider.DefaultRequest()
	r.Name, r.LinuxNodes, r.WindowsNodes = name, 0, 1
	r.Owner, r.Run = "octo/app", "8123-1-2"
	r.ExpireAfter(time.Hour)
	r.KubernetesVersion = os.Getenv(versionVariable)
	r.Set = map[string]string{kind.Engine: os.Getenv(engineVariable), kind.Image: os.Getenv(imageVariable)}
	return r
}

func up(ctx context.Context, c *life.Clusters, r provider.Request) (*provider.Cluster, error) {
	plan, err := c.Plan(ctx, kind.ProviderName, r)
	if err != nil {
		return nil, err
	}
	return c.Up(ctx, plan, life.UpOptions{})
}

type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// bed is a folder for ledger and clusters on a machine with an engine.
type bed struct {
	t   *testing.T
	dir string
}

// newBed returns one whose clusters, by these names, are gone after the test.
func newBed(t *testing.T, names ...string) *bed {
	t.Helper()
	machine := kindtest.All(t)
	for variable, value := range map[string]string{
		engineVariable: machine.Engine.Name, imageVariable: machine.Image, versionVariable: machine.KubernetesVersion,
	} {
		t.Setenv(variable, value) // for the processes that stand in for others, too
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{t, dir}
	t.Cleanup(func() {
		for _, name := range names {
			if err := b.clusters().Down(context.Background(), name); err != nil {
				t.Error(err)
			}
			b.assertGone(name)
		}
	})
	return b
}

func (b *bed) clusters() *life.Clusters { return clustersIn(b.dir, testLog{b.t}) }

// engine returns what a command of the engine prints, in fields.
func (b *bed) engine(args ...string) []string {
	b.t.Helper()
	out, err := exec.Command(os.Getenv(engineVariable), args...).Output()
	if err != nil {
		b.t.Errorf("%v: %v", args, err)
	}
	return strings.Fields(string(out))
}

func (b *bed) containers(name string) []string {
	return b.engine("ps", "--all", "--quiet", "--filter", "label=io.x-k8s.kind.cluster="+name)
}

// volumes are those that belong to a cluster: its tags, and its nodes'.
func (b *bed) volumes(name string) []string {
	return append(b.engine("volume", "ls", "--quiet", "--filter", "name=op-readiness-"+name),
		b.engine("volume", "ls", "--quiet", "--filter", "label="+name+"-control-plane")...)
}

// processes are those that have the bed's folder in their arguments, or make a container
// of the cluster.
func (b *bed) processes(name string) []string {
	b.t.Helper()
	all, err := process.List()
	if err != nil {
		b.t.Fatal(err)
	}
	var found []string
	for _, p := range all {
		if strings.Contains(p.Command, b.dir+"/") || strings.Contains(p.Command, "--label io.x-k8s.kind.cluster="+name+" ") {
			found = append(found, p.Command)
		}
	}
	return found
}

func (b *bed) assertGone(name string) {
	b.t.Helper()
	for what, left := range map[string][]string{"containers": b.containers(name), "volumes": b.volumes(name), "processes": b.processes(name)} {
		if len(left) > 0 {
			b.t.Errorf("%s are left: %v", what, left)
		}
	}
	left, err := filepath.Glob(filepath.Join(b.dir, "clusters", "*"))
	hidden, _ := filepath.Glob(filepath.Join(b.dir, "clusters", ".*"))
	if err != nil || len(left)+len(hidden) > 0 {
		b.t.Errorf("folders are left: %v %v, %v", left, hidden, err)
	}
}

// only returns the one cluster that is listed, without a ledger.
func (b *bed) only() life.Known {
	b.t.Helper()
	if err := os.RemoveAll(filepath.Join(b.dir, "ledger")); err != nil {
		b.t.Fatal(err)
	}
	all, err := b.clusters().List(b.t.Context())
	if err != nil || len(all) != 1 {
		b.t.Fatalf("listed %+v, %v, want one cluster", all, err)
	}
	return all[0]
}

func TestLifeOfACluster(t *testing.T) {
	b := newBed(t, "life")
	home := t.TempDir()
	mine := filepath.Join(home, "kubeconfig")
	cache, err := binaries.DefaultDir(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("OP_READINESS_CACHE", cache)
	t.Setenv("HOME", home)
	t.Setenv("KUBECONFIG", mine)
	r := request("life")
	made, err := up(t.Context(), b.clusters(), r)
	if err != nil {
		t.Fatal(err)
	}
	want := provider.Cluster{
		Name: "life", Provider: "kind", KubernetesVersion: r.KubernetesVersion, WindowsNodes: 1, WindowsVersion: "ltsc2022",
		State: provider.Running, Kubeconfig: filepath.Join(b.dir, "clusters", "life", "kubeconfig"), Context: "kind-life",
	}
	if *made != want {
		t.Errorf("made %+v, want %+v", *made, want)
	}
	if info, err := os.Stat(made.Kubeconfig); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("kubeconfig: %v %v, want mode 0600", info, err)
	}
	for _, path := range []string{mine, filepath.Join(home, ".kube")} {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is the user's: %v", path, err)
		}
	}
	checkSimulated(t, b, made)

	before := b.containers("life")
	if again, err := up(t.Context(), b.clusters(), r); err != nil || *again != want || !slices.Equal(b.containers("life"), before) {
		t.Errorf("the second Up returned %+v, %v, with containers %v, before %v", again, err, b.containers("life"), before)
	}

	if err := b.clusters().Keep(t.Context(), "life", 4*time.Hour); err != nil {
		t.Fatal(err)
	}
	if volumes := b.engine("volume", "ls", "--quiet", "--filter", "label=op-readiness-run="+r.Run); len(volumes) != 1 {
		t.Errorf("the tags are in volumes %v, want one", volumes)
	}
	checkLogs(t, b)

	listed := b.only() // and from here on there is no ledger
	if listed.Cluster != want || listed.Owner != r.Owner || listed.Run != r.Run || !listed.Expires.After(r.Expires.Add(2*time.Hour)) {
		t.Errorf("listed %+v, want %+v of %s, extended", listed, want, r.Owner)
	}
	endKwok(t, b)
	b.await("the loss of kwok shows", func() bool {
		listed = b.only()
		return listed.State == provider.Broken && strings.Contains(listed.Problem, "kwok")
	})
	for range 2 { // the second time there is nothing left to do
		if err := b.clusters().Down(t.Context(), "life"); err != nil {
			t.Fatal(err)
		}
		b.assertGone("life")
	}
}

// checkSimulated checks that a Windows node is played beside the real one, that a real
// node can have a route to its pods, and that nobody answers for its kubelet.
func checkSimulated(t *testing.T, b *bed, made *provider.Cluster) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", made.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	node, err := client.CoreV1().Nodes().Get(t.Context(), "windows-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	address := node.Status.Addresses[0].Address
	if out := b.engine("exec", made.Name+"-control-plane", "ip", "route", "get", address); !slices.Contains(out, "eth0") || slices.Contains(out, "via") {
		t.Errorf("the way to %s is %v: kindnetd takes no gateway that is not near", address, out)
	}
	pods := client.CoreV1().Pods("default")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "played"},
		Spec:       corev1.PodSpec{NodeName: "windows-1", Containers: []corev1.Container{{Name: "c", Image: "example.com/none"}}},
	}
	b.await("a pod can be created", func() bool { // the service account comes a moment after its namespace
		_, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
		return err == nil || apierrors.IsAlreadyExists(err)
	})
	b.await("the pod is played", func() bool {
		pod, err := pods.Get(t.Context(), "played", metav1.GetOptions{})
		return err == nil && pod.Status.Phase == corev1.PodRunning
	})
	said, err := pods.GetLogs("played", &corev1.PodLogOptions{}).Do(t.Context()).Raw()
	if err == nil || !strings.Contains(string(said), "connection refused") {
		t.Errorf("its logs: %s, %v, want that the connection is refused", said, err)
	}
	_, err = client.CoreV1().RESTClient().Get().Resource("nodes").Name("windows-1").SubResource("proxy").Suffix("configz").DoRaw(t.Context())
	if err == nil {
		t.Error("some other kubelet answers for the simulated node")
	}
}

// checkLogs checks that the logs of nodes come, and the more so those of kind and kwok.
func checkLogs(t *testing.T, b *bed) {
	t.Helper()
	e, err := b.clusters().Ledger.Read("life")
	if err != nil || e == nil {
		t.Fatalf("the ledger says %v, %v", e, err)
	}
	dir := filepath.Join(t.TempDir(), "logs")
	missing, err := b.clusters().Providers[0].Logs(t.Context(), e, dir)
	if err != nil || len(missing) > 0 {
		t.Errorf("not had: %+v, %v", missing, err)
	}
	for file, part := range map[string]string{
		"kind-create.log":                   "Starting control-plane",
		"kwok.log":                          "windows-1",
		"life-control-plane/journal.log":    "kubelet",
		"life-control-plane/containerd.log": "containerd",
		"life-control-plane/inspect.json":   "io.x-k8s.kind.cluster",
		"life-control-plane/kubelet.log":    "life-control-plane",
	} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || !strings.Contains(string(text), part) {
			t.Errorf("%s: %v, %q is not in it", file, err, part)
		}
	}
}

func endKwok(t *testing.T, b *bed) {
	t.Helper()
	all, err := process.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if strings.Contains(p.Command, "--config="+b.dir) {
			if err := process.End(t.Context(), p.PID, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// await waits until ok says true; the test's own time limit is the only one.
func (b *bed) await(what string, ok func() bool) {
	b.t.Helper()
	for i := 1; !ok(); i++ {
		if i%200 == 0 {
			b.t.Logf("still waiting: %s", what)
		}
		select {
		case <-b.t.Context().Done():
			b.t.Fatalf("it never happened: %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// An op-readiness that is killed leaves no process that goes on, and what it leaves of a
// cluster is found by its tags, and removed with the ledger and without.
func TestKillAtEveryStep(t *testing.T) {
	ways := []struct {
		name   string
		remove func(b *bed, c *life.Clusters) error
	}{
		{"down", func(b *bed, c *life.Clusters) error { return c.Down(b.t.Context(), "killed") }},
		{"reap without the ledger", func(b *bed, c *life.Clusters) error {
			if err := os.RemoveAll(c.Ledger.Dir); err != nil {
				return err
			}
			expired, err := c.Expired(b.t.Context(), nil, 0)
			for i := range expired {
				err = errors.Join(err, c.Reap(b.t.Context(), &expired[i]))
			}
			return err
		}},
	}
	for i, test := range []struct {
		moment string
		// reached says that the moment has come, where it is not that of a step.
		reached func(*bed) bool
		found   provider.State // by its tags
	}{
		{moment: "before volume"},
		{moment: "after volume", found: provider.Broken},
		{moment: "before cluster", found: provider.Broken},
		{moment: "volumes for nodes", reached: func(b *bed) bool { return len(b.volumes("killed")) > 1 }, found: provider.Broken},
		{moment: "containers", reached: func(b *bed) bool { return len(b.containers("killed")) > 0 }, found: provider.Broken},
		{moment: "after cluster", found: provider.Broken},
		{moment: "before simulated", found: provider.Broken},
		{moment: "after simulated", found: provider.Running},
	} {
		t.Run(test.moment, func(t *testing.T) {
			b := newBed(t, "killed")
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), "KIND_TEST_UP="+b.dir, "KIND_TEST_DIES="+test.moment)
			cmd.Stdout, cmd.Stderr = testLog{t}, testLog{t}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if test.reached != nil {
				b.await("it gets that far", func() bool { return test.reached(b) })
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
				t.Fatalf("it ended with %v", err)
			}
			if test.found != provider.Running {
				b.await("what it has started ends by itself", func() bool { return len(b.processes("killed")) == 0 })
			}
			c := b.clusters()
			found, err := c.Providers[0].List(t.Context())
			switch {
			case test.found == "" && err == nil && len(found) == 0:
			case err != nil || len(found) != 1 || found[0].State != test.found || found[0].Owner != "octo/app" || found[0].Expires.IsZero():
				t.Errorf("its tags tell of %+v, %v, want one that is %s", found, err, test.found)
			}
			way := ways[i%len(ways)]
			t.Log("removed by", way.name)
			c.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
			if err := way.remove(b, c); err != nil {
				t.Error(err)
			}
			b.assertGone("killed")
		})
	}
}

func TestWhatKindRefusesIsSaidAndLeavesNothing(t *testing.T) {
	b := newBed(t, "faulty")
	config := filepath.Join(t.TempDir(), "kind.yaml")
	if err := os.WriteFile(config, []byte("kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnetworking: {podSubnet: here}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := request("faulty")
	r.Set[kind.Config] = config
	_, err := up(t.Context(), b.clusters(), r)
	wants(t, err, "step cluster", "kind:", "invalid pod subnet")
	b.assertGone("faulty")
}

// A cluster that somebody made with kind itself is nobody's to remove.
func TestAClusterOfSomebodyElseIsLeftAlone(t *testing.T) {
	b := newBed(t)
	engine := os.Getenv(engineVariable)
	r := request("foreign")
	if out, err := exec.Command(engine, "create", "--name", "foreign-control-plane", "--label", "io.x-k8s.kind.cluster=foreign", r.Set[kind.Image]).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { b.engine("rm", "--force", "foreign-control-plane") })
	_, err := up(t.Context(), b.clusters(), r)
	wants(t, err, "foreign-control-plane", "choose another --name")
	wants(t, b.clusters().Down(t.Context(), "foreign"), "foreign-control-plane", "leaves it alone")
	if all, err := b.clusters().List(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("listed %+v, %v", all, err)
	}
	if left := b.containers("foreign"); len(left) != 1 {
		t.Errorf("containers %v, want the one that was there", left)
	}
}
