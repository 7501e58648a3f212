package kwok

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
)

// ProviderName is how this provider is called on the command line.
const ProviderName = "kwok"

// Binaries hands out the programs that a cluster is made of; a
// [binaries.Store] does.
type Binaries interface {
	Get(ctx context.Context, kubernetesVersion string, names ...binaries.Name) (map[binaries.Name]string, error)
}

// Needs are the binaries that a cluster is made of.
func Needs() []binaries.Name {
	return []binaries.Name{
		binaries.Etcd, binaries.APIServer, binaries.ControllerManager, binaries.Scheduler,
		binaries.Kubectl, binaries.Kwok, binaries.Kwokctl,
	}
}

// Provider makes, finds and removes clusters.
type Provider struct {
	Binaries Binaries
	// Dir holds one folder for each cluster; an absolute path.
	Dir string
	// Progress is told what takes time; nothing is told when it is nil.
	Progress io.Writer
	// Environ is the environment of child processes, os.Environ() unless set.
	Environ []string
	// StartTimeout limits how long a cluster may take to become ready once its
	// binaries are there: 3 minutes unless set.
	StartTimeout time.Duration

	// choosePorts is freePorts unless set.
	choosePorts func(bindAddress string) (ports, error)
	telling     sync.Mutex
}

// Options is the shape of a cluster, and where its kubeconfig goes.
type Options struct {
	Name              string
	KubernetesVersion string
	LinuxNodes        int
	WindowsNodes      int
	// WindowsVersion is one of [WindowsVersions].
	WindowsVersion string
	// BindAddress is where the API server listens. With the default,
	// 127.0.0.1, only this machine reaches it; pods of a real node need
	// 0.0.0.0. All other servers listen on 127.0.0.1 only.
	BindAddress string
	// JoinAddress, when set, is an IP address of this machine at which real
	// nodes and their pods reach the API server: its certificate holds it, and
	// the Service kubernetes leads there. BindAddress must include it.
	JoinAddress string
	// Kubeconfig, when set, is a file that gets the cluster's context too, as
	// its current one; what else is in the file stays.
	Kubeconfig string
	// Commands, when set, is a folder with commands, and somebody else plays pods
	// that are for Windows: they wait for [PlayedAnnotation] before they run. Their
	// logs and their exec are what objects Logs and Exec of kwok say; a command is
	// looked for in this folder first.
	Commands string
}

// DefaultOptions is the smallest cluster that the standard allows, at the
// newest pinned version.
func DefaultOptions() Options {
	return Options{
		Name:              "op-readiness",
		KubernetesVersion: binaries.Pinned,
		LinuxNodes:        2,
		WindowsNodes:      2,
		WindowsVersion:    "ltsc2022",
		BindAddress:       loopback,
	}
}

const (
	maxNodes = 100
	loopback = "127.0.0.1"
)

var validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$`)

// ValidateName returns an error unless name can name a cluster.
func ValidateName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("cluster name %q: use 1 to 40 lower-case letters, digits and inner hyphens", name)
	}
	return nil
}

// Validate returns every fault of o, joined.
func (o Options) Validate() error {
	var faults []error
	if err := ValidateName(o.Name); err != nil {
		faults = append(faults, err)
	}
	if _, err := binaries.ParseVersion(o.KubernetesVersion); err != nil {
		faults = append(faults, err)
	}
	for _, count := range []struct {
		system string
		nodes  int
	}{{"Linux", o.LinuxNodes}, {"Windows", o.WindowsNodes}} {
		if count.nodes < 0 || count.nodes > maxNodes {
			faults = append(faults, fmt.Errorf("%d %s nodes: choose 0 to %d", count.nodes, count.system, maxNodes))
		}
	}
	if _, ok := windowsRelease(o.WindowsVersion); !ok {
		faults = append(faults, fmt.Errorf("version %q of Windows: use %s", o.WindowsVersion, strings.Join(WindowsVersions(), ", ")))
	}
	if o.BindAddress != "" && net.ParseIP(o.BindAddress) == nil {
		faults = append(faults, fmt.Errorf("bind address %q: use an IP address such as %s or 0.0.0.0", o.BindAddress, loopback))
	}
	if o.JoinAddress != "" && net.ParseIP(o.JoinAddress) == nil {
		faults = append(faults, fmt.Errorf("address for real nodes %q: use an IP address of this machine", o.JoinAddress))
	}
	if o.Commands != "" && !filepath.IsAbs(o.Commands) {
		faults = append(faults, fmt.Errorf("folder of commands %q: use an absolute path", o.Commands))
	}
	return errors.Join(faults...)
}

// Up makes sure that the cluster that o describes is there and ready, and
// returns it. See the package comment for what it does with what it finds.
func (p *Provider) Up(ctx context.Context, o Options) (*provider.Cluster, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.KubernetesVersion, _ = binaries.ParseVersion(o.KubernetesVersion)
	if o.BindAddress == "" {
		o.BindAddress = loopback
	}
	if err := checkKubeconfig(o.Kubeconfig); err != nil {
		return nil, err
	}
	c, unlock, err := p.lock(ctx, o.Name)
	if err != nil {
		return nil, err
	}
	defer unlock()

	reused, err := p.reuse(ctx, c, o)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", o.Name, err)
	}
	if !reused {
		if err := p.create(ctx, c, o); err != nil {
			return nil, fmt.Errorf("making cluster %s: %w", o.Name, err)
		}
	}
	found := c.describe(ctx)
	if o.Kubeconfig != "" {
		found.Kubeconfig = o.Kubeconfig
	}
	return &found, nil
}

// reuse tells whether the cluster in c can be used as the one that o
// describes. One that is dead or half made is removed.
func (p *Provider) reuse(ctx context.Context, c *cluster, o Options) (bool, error) {
	if _, err := os.Stat(c.dir); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	state, problem := c.inspect(ctx)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if state != provider.Running {
		p.tellf("cluster %s: %s (%s): removing it and making it again", o.Name, state, problem)
		return false, c.destroy(ctx)
	}
	record, err := c.readRecord()
	if err != nil {
		return false, err
	}
	if difference := record.difference(o); difference != "" {
		return false, fmt.Errorf("it exists with %s: choose another --name, or remove it first: op-readiness cluster down %s", difference, o.Name)
	}
	p.tellf("cluster %s: already running", o.Name)
	return true, c.publishKubeconfig(o.Kubeconfig)
}

// create makes a cluster where there is none, or leaves nothing.
func (p *Provider) create(ctx context.Context, c *cluster, o Options) (err error) {
	paths, err := p.Binaries.Get(ctx, o.KubernetesVersion, Needs()...)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			// The context may have ended; what it began must go all the same.
			cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			defer cancel()
			err = errors.Join(err, c.destroy(cleanup))
		}
	}()
	for attempt := 1; ; attempt++ {
		p.tellf("cluster %s: starting Kubernetes %s (usually 5 to 10 seconds)", o.Name, o.KubernetesVersion)
		err = p.start(ctx, c, o, paths)
		if !errors.Is(err, errPortTaken) || attempt == 3 {
			break
		}
		p.tellf("cluster %s: %v: trying others", o.Name, errPortTaken)
		if err := c.destroy(ctx); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	p.tellf("cluster %s: adding %d Linux and %d Windows nodes (%s)", o.Name, o.LinuxNodes, o.WindowsNodes, o.WindowsVersion)
	client, err := c.client(0)
	if err != nil {
		return err
	}
	limited, cancel := p.limit(ctx)
	defer cancel()
	if err := addNodes(limited, client, o); err != nil {
		return err
	}
	if err := awaitNodes(limited, client, o); err != nil {
		return err
	}
	if err := c.publishKubeconfig(o.Kubeconfig); err != nil {
		return err
	}
	record, err := c.readRecord()
	if err != nil {
		return err
	}
	record.Ready = true
	return c.writeRecord(record)
}

// limit bounds ctx by the time a cluster may take to become ready.
func (p *Provider) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := p.StartTimeout
	if limit == 0 {
		limit = 3 * time.Minute
	}
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("not ready after %s", limit))
}

// Down removes the named cluster: its processes, its folder, and its context
// from the kubeconfigs that Up wrote. It is not an error when there is none.
func (p *Provider) Down(ctx context.Context, name string) error {
	if err := ValidateName(name); err != nil {
		return err
	}
	c, unlock, err := p.lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(c.dir); errors.Is(err, fs.ErrNotExist) {
		p.tellf("cluster %s: there is none", name)
	}
	// Even without a folder: a process may have outlived it.
	if err := c.destroy(ctx); err != nil {
		return fmt.Errorf("removing cluster %s: %w", name, err)
	}
	return nil
}

// List returns all clusters, sorted by name.
func (p *Provider) List(ctx context.Context) ([]provider.Cluster, error) {
	dir, err := p.folder()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var clusters []provider.Cluster
	for _, entry := range entries {
		if !entry.IsDir() || ValidateName(entry.Name()) != nil {
			continue
		}
		c := &cluster{name: entry.Name(), dir: filepath.Join(dir, entry.Name())}
		found := c.describe(ctx)
		if found.State != provider.Running && p.locked(dir, c.name) {
			found.State, found.Problem = provider.Starting, "another op-readiness is making or removing it"
		}
		clusters = append(clusters, found)
	}
	sort.Slice(clusters, func(i, j int) bool { return clusters[i].Name < clusters[j].Name })
	return clusters, ctx.Err()
}

// folder makes Dir and returns it without symbolic links, so that it is
// spelled the same in the arguments of every process.
func (p *Provider) folder() (string, error) {
	if !filepath.IsAbs(p.Dir) {
		return "", fmt.Errorf("the folder of clusters must be an absolute path, not %q", p.Dir)
	}
	if err := os.MkdirAll(filepath.Join(p.Dir, lockFolder), 0o700); err != nil {
		return "", fmt.Errorf("making the folder of clusters: %w", err)
	}
	return filepath.EvalSymlinks(p.Dir)
}

// lockFolder keeps the locks apart from the clusters' own folders, which go
// away while a lock is held.
const lockFolder = ".locks"

func lockPath(dir, name string) string { return filepath.Join(dir, lockFolder, name) }

// lock waits until this process alone may change the named cluster.
func (p *Provider) lock(ctx context.Context, name string) (*cluster, func(), error) {
	dir, err := p.folder()
	if err != nil {
		return nil, nil, err
	}
	lock := flock.New(lockPath(dir, name))
	held, err := lock.TryLock()
	if err == nil && !held {
		p.tellf("cluster %s: waiting for another op-readiness that is making or removing it", name)
		_, err = lock.TryLockContext(ctx, 200*time.Millisecond)
	}
	if err != nil {
		lock.Close()
		return nil, nil, fmt.Errorf("waiting for the lock on cluster %s: %w", name, err)
	}
	return &cluster{name: name, dir: filepath.Join(dir, name)}, func() { lock.Unlock() }, nil
}

// locked tells whether somebody is changing the named cluster at this moment.
func (p *Provider) locked(dir, name string) bool {
	lock := flock.New(lockPath(dir, name))
	defer lock.Close()
	held, err := lock.TryRLock()
	return err == nil && !held
}

func (p *Provider) environ() []string {
	if p.Environ != nil {
		return p.Environ
	}
	return os.Environ()
}

// tellf writes one line of narration.
func (p *Provider) tellf(format string, args ...any) {
	if p.Progress == nil {
		return
	}
	p.telling.Lock()
	defer p.telling.Unlock()
	fmt.Fprintf(p.Progress, format+"\n", args...)
}
