package realnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kwok"
	"github.com/windows-op-readiness/windows-op-readiness/test/images"
	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
	"github.com/windows-op-readiness/windows-op-readiness/test/program"
)

// running is what of a bed is running.
type running struct {
	shared
	options  Options
	programs map[binaries.Name]string
	client   kubernetes.Interface
	unlock   func()
	// joining is held by whoever makes or ends a box, or the ways between them.
	joining sync.Mutex
	// watching are those who wait for a node to be told to reboot, until stop.
	watching sync.WaitGroup
	stop     context.CancelFunc
	faults   faults
}

// covered are the folders whose place is fixed in what a node runs, and in which
// each node has its own files.
var covered = []string{"/var/log", "/var/lib/cni", "/var/lib/kubelet"}

// startTimeout is how long the programs of nodes may take to become ready.
const startTimeout = 3 * time.Minute

// Up makes the cluster and its real nodes, and waits until these are ready. It
// returns an [*UnfitError] when this machine cannot have one. Without error,
// the caller ends with [Bed.Down].
func Up(ctx context.Context, o Options) (_ *Bed, err error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if err := Check(ctx); err != nil {
		return nil, err
	}
	programs, err := o.Binaries.Get(ctx, o.Cluster.KubernetesVersion, Needs()...)
	if err != nil {
		return nil, err
	}
	unlock, err := lock(ctx, o.Progress)
	if err != nil {
		return nil, err
	}
	b := &Bed{running: running{shared: shared{StateDir}, options: o, programs: programs, unlock: unlock, stop: func() {}}}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("making a real node: %w", err), b.Down())
		}
	}()
	if err := clean(ctx); err != nil {
		return nil, fmt.Errorf("removing what an earlier one left: %w", err)
	}
	if err := b.makeBoxes(ctx); err != nil {
		return nil, err
	}
	if err := b.makeCluster(ctx); err != nil {
		return nil, err
	}
	names := []string{string(Containerd), string(Kubelet), string(KubeProxy)}
	if o.CoreDNS != "" {
		names = slices.Insert(names, 2, string(CoreDNS))
	}
	tell(o.Progress, "starting %s and %s (usually 5 to 20 seconds)", strings.Join(names[:len(names)-1], ", "), names[len(names)-1])
	limited, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %s", startTimeout))
	defer cancel()
	starting, limited := errgroup.WithContext(limited)
	for _, n := range b.Nodes {
		starting.Go(func() error { return n.begin(limited) })
	}
	if err := starting.Wait(); err != nil {
		return nil, err
	}
	if err := os.Remove(b.archive()); err != nil {
		return nil, err
	}
	b.watch(ctx)
	return b, nil
}

// makeBoxes makes the nodes' folders and their boxes.
func (b *Bed) makeBoxes(ctx context.Context) error {
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return err
	}
	var made []string
	for _, dir := range covered {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			made = append(made, dir)
			if err := os.WriteFile(b.made(), []byte(strings.Join(made, "\n")), 0o600); err != nil {
				return err
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
		}
	}
	for i := range b.options.Nodes {
		n := newNode(b, i)
		b.Nodes = append(b.Nodes, n)
		if err := n.makeFolders(); err != nil {
			return err
		}
		if err := n.makeBox(ctx); err != nil {
			return err
		}
	}
	return nil
}

// makeCluster makes the simulated part, and all that the nodes are told of it.
func (b *Bed) makeCluster(ctx context.Context) error {
	o := b.options.Cluster
	o.Set = map[string]string{kwok.BindAddress: "0.0.0.0", kwok.JoinAddress: hostAddress}
	clusters := &kwok.Provider{Binaries: b.options.Binaries, Dir: b.clusters(), Progress: b.options.Progress}
	var err error
	if b.Cluster, err = kwoktest.Make(ctx, clusters, o); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", b.Cluster.Kubeconfig)
	if err != nil {
		return err
	}
	if b.client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if err := b.makeImages(ctx); err != nil {
		return err
	}
	if err := b.writeKubeconfig(); err != nil {
		return err
	}
	if b.options.CoreDNS == "" {
		return nil
	}
	return b.makeDNS(ctx)
}

// makeImages writes the archive of the nodes' images.
func (b *Bed) makeImages(ctx context.Context) error {
	list, err := program.Output(exec.CommandContext(ctx, b.programs[binaries.E2ETest], "--list-images"))
	if err != nil {
		return err
	}
	if b.Images, err = images.Pick(list); err != nil {
		return err
	}
	box, err := busybox()
	if err != nil {
		return err
	}
	commands, err := program.Output(exec.CommandContext(ctx, box, "--list"))
	if err != nil {
		return err
	}
	all, err := images.ForTests(b.Images, b.programs[binaries.Agnhost], box, strings.Fields(commands))
	if err != nil {
		return err
	}
	return images.Write(b.archive(), all)
}

// Down removes the cluster and its nodes, and all that is theirs. Its error also
// says where a node did not come back from a reboot as it was to.
func (b *Bed) Down() error {
	defer b.unlock()
	b.stop()
	b.watching.Wait()
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Minute, errors.New("not done within a minute"))
	defer cancel()
	for _, n := range b.Nodes {
		n.end()
	}
	if err := clean(ctx); err != nil {
		return errors.Join(b.faults.all(), fmt.Errorf("removing the real node: %w", err))
	}
	return b.faults.all()
}

// Clean removes what killed processes have left of a real node. While there
// is one, it waits.
func Clean(ctx context.Context, progress io.Writer) error {
	if os.Geteuid() != 0 {
		return errors.New("removing a real node takes root")
	}
	unlock, err := lock(ctx, progress)
	if err != nil {
		return err
	}
	defer unlock()
	return clean(ctx)
}

// clean removes everything of a bed. The caller has the lock.
func clean(ctx context.Context) error {
	s := shared{StateDir}
	if err := endLeftBoxes(ctx, s.dir); err != nil {
		return err
	}
	var faults []error
	clusters := &kwok.Provider{Dir: s.clusters()}
	if _, err := os.Stat(s.clusters()); err == nil {
		left, err := clusters.List(ctx)
		faults = append(faults, err)
		for _, c := range left {
			faults = append(faults, kwoktest.Remove(ctx, clusters, c.Name))
		}
	}
	for i, device := range hostDevices {
		faults = append(faults, removeDevice(ctx, device), removeCgroups(nodeCgroup(i)))
	}
	made, _ := os.ReadFile(s.made())
	for _, dir := range strings.Fields(string(made)) {
		// Whoever else has put something there keeps it.
		_ = os.Remove(dir)
	}
	if err := errors.Join(faults...); err != nil {
		return err // the folder is what knows of the rest
	}
	return os.RemoveAll(s.dir)
}

// lock waits until this process alone may have real nodes on this machine.
// The lock is a name of the kernel's: it leaves no file, and goes with the
// process.
func lock(ctx context.Context, progress io.Writer) (unlock func(), err error) {
	for told := false; ; told = true {
		listener, err := net.Listen("unix", "@op-readiness-node")
		if err == nil {
			return func() { listener.Close() }, nil
		}
		if !told {
			tell(progress, "waiting for another process that has this machine's only one")
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for this machine's only real node: %w", context.Cause(ctx))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func tell(progress io.Writer, format string, args ...any) {
	if progress != nil {
		fmt.Fprintf(progress, "real node: "+format+"\n", args...)
	}
}

// faults are what nobody was there to be told of.
type faults struct {
	mu   sync.Mutex
	seen []error
}

func (f *faults) add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, err)
}

func (f *faults) all() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.seen...)
}
