package mutants_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
	"github.com/windows-op-readiness/windows-op-readiness/test/nodetest"
	"github.com/windows-op-readiness/windows-op-readiness/test/realnode"
	"github.com/windows-op-readiness/windows-op-readiness/test/scripted"
)

// shorten divides the times for which tests observe.
const shorten = "--readiness.shorten=10"

// bed is a cluster, and op-readiness.test to be run on it.
type bed struct {
	*testing.T
	client  kubernetes.Interface
	dynamic dynamic.Interface
	flags   e2e.Flags
	binary  *e2e.Binary
	// patience is how long tests wait for what a fault keeps from happening. Without a
	// fault they wait as long as they do elsewhere: other tests keep the machine busy.
	patience time.Duration
	// nodes are those on which containers run.
	nodes []*realnode.Node
	// player plays the Windows pods, where they are scripted.
	player *scripted.Player
}

// simulated is a bed of nodes on which nothing runs.
func simulated(t *testing.T) *bed {
	t.Helper()
	return newBed(t, kwoktest.Up(t, func(o *provider.Request) { o.WindowsNodes = 4 }))
}

// real is a bed with two real Linux nodes, on which tests run with Linux in the place of
// Windows.
func real(t *testing.T) *bed {
	t.Helper()
	up := nodetest.Up(t, func(o *realnode.Options) { o.Nodes = 2 })
	b := newBed(t, up.Cluster)
	b.flags.Extra = append(b.flags.Extra, "--readiness.target-os=linux")
	b.nodes, b.patience = up.Nodes, 20*time.Second
	return b
}

// rebooted is the same, where nodes have the time to reboot.
func rebooted(t *testing.T) *bed {
	t.Helper()
	b := real(t)
	b.patience = 45 * time.Second
	return b
}

// played is a bed of nodes whose Windows pods answer from a script: it shows the flow of
// a test, and nothing of Windows.
func played(t *testing.T) *bed {
	t.Helper()
	cluster, player := scripted.Up(t, watched(t), commands, func(o *provider.Request) { o.WindowsNodes = 4 })
	b := newBed(t, cluster)
	b.player = player
	return b
}

func newBed(t *testing.T, cluster *provider.Cluster) *bed {
	t.Helper()
	dir, err := binaries.DefaultDir(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	store := &binaries.Store{Dir: dir, Progress: os.Stderr}
	paths, err := store.Get(t.Context(), binaries.Pinned, binaries.OpReadinessTest)
	if err != nil {
		t.Fatal(err)
	}
	binary, err := e2e.Open(t.Context(), paths[binaries.OpReadinessTest], binaries.Pinned)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &bed{
		T: t, client: kwoktest.Client(t, cluster), dynamic: dyn, binary: binary,
		flags:    e2e.Flags{Kubeconfig: cluster.Kubeconfig, Context: cluster.Context, Extra: []string{shorten}},
		patience: time.Minute,
	}
}

// named returns the name of the one test that has those words.
func (b *bed) named(words string) string {
	b.Helper()
	name := ""
	for _, test := range specs.OwnTests().Names() {
		if strings.Contains(test, words) {
			if name != "" {
				b.Fatalf("%q and %q both have the words %q", name, test, words)
			}
			name = test
		}
	}
	if name == "" {
		b.Fatalf("no test has the words %q", words)
	}
	return name
}

// broken is run where a fault is to make the test fail.
func (b *bed) broken(words string) string {
	b.Helper()
	impatient := *b
	impatient.flags.Extra = append(slices.Clone(b.flags.Extra), "--readiness.wait-at-most="+b.patience.String())
	return impatient.run(words)
}

// run runs the one test whose name has those words, and returns its failure; ""
// when it passed.
func (b *bed) run(words string) string {
	b.Helper()
	name := b.named(words)
	dir := b.TempDir()
	report := filepath.Join(dir, "report.json")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	p, err := b.binary.Start(b.flags.BatchArgs([]string{name}, 1, report, 10*time.Minute), os.Environ(), log)
	if err != nil {
		b.Fatal(err)
	}
	<-p.Done()
	said, err := e2e.ReadReport(report, []string{name})
	if err != nil {
		output, _ := os.ReadFile(log.Name())
		b.Fatalf("%v\n%s", err, output)
	}
	if len(said.SuiteFailures) > 0 {
		b.Fatalf("outside of the test: %+v", said.SuiteFailures)
	}
	if said.Tests[name].State == result.TestPassed {
		return ""
	}
	return strings.TrimSpace(string(said.Tests[name].State) + ": " + said.Tests[name].Message)
}

// onPods calls do for each pod, as it comes and changes, in a namespace that a test
// of the framework's base name makes from now on, until the function that it returns
// is called.
func (b *bed) onPods(base string, do func(ctx context.Context, pod *v1.Pod)) (stop func()) {
	ctx, cancel := context.WithCancel(b.Context())
	old := map[string]bool{}
	before, err := b.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	b.must(err)
	for i := range before.Items {
		old[before.Items[i].Name] = true
	}
	informer := informers.NewSharedInformerFactory(b.client, 0).Core().V1().Pods().Informer()
	handle := func(o any) {
		if pod, ok := o.(*v1.Pod); ok && strings.HasPrefix(pod.Namespace, base+"-") && !old[pod.Namespace] {
			do(ctx, pod)
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: handle, UpdateFunc: func(_, o any) { handle(o) }}); err != nil {
		b.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { informer.Run(ctx.Done()) })
	return func() {
		cancel()
		running.Wait()
	}
}

// must is for what a fault does; one that could not be made shows nothing.
func (b *bed) must(err error) {
	b.Helper()
	if err != nil && b.Context().Err() == nil {
		b.Error(err)
	}
}

// windows returns the Windows nodes.
func (b *bed) windows(ctx context.Context) []v1.Node {
	nodes, err := b.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/os=windows"})
	b.must(err)
	return nodes.Items
}

// until waits for something that takes the API server a moment.
func (b *bed) until(what string, done func(ctx context.Context) (bool, error)) {
	b.Helper()
	if err := wait.PollUntilContextTimeout(b.Context(), 100*time.Millisecond, time.Minute, true, done); err != nil {
		b.Fatalf("%s: %v", what, err)
	}
}
