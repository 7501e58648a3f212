package kwok

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/folder"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/simulated"
)

// ProviderName is how this provider is called on the command line.
const ProviderName = "kwok"

// What a request may set.
const (
	// BindAddress is where the API server listens. With the default, 127.0.0.1, only
	// this machine reaches it; pods of a real node need 0.0.0.0. All other servers
	// listen on 127.0.0.1 only.
	BindAddress = "bind-address"
	// JoinAddress is an IP address of this machine at which real nodes and their pods
	// reach the API server: its certificate holds it, and the Service kubernetes leads
	// there. The bind address must include it.
	JoinAddress = "join-address"
	// Commands is a folder with commands, and says that somebody else plays pods that
	// are for Windows: they wait for [simulated.PlayedAnnotation] before they run. Their
	// logs and their exec are what objects Logs and Exec of kwok say; a command is
	// looked for in this folder first.
	Commands = "commands"
)

// The steps of a cluster.
const (
	stepFolder       = "folder"
	stepControlPlane = "control-plane"
	stepNodes        = "nodes"
)

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

// Provider implements [provider.Provider].
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

const loopback = "127.0.0.1"

// Name implements [provider.Provider].
func (p *Provider) Name() string { return ProviderName }

// Plan implements [provider.Provider].
func (p *Provider) Plan(_ context.Context, r provider.Request) (*provider.Plan, error) {
	r.KubernetesVersion = cmp.Or(r.KubernetesVersion, binaries.Pinned)
	faults := []error{r.Validate(simulated.MaxNodes), simulated.CheckWindows(r.WindowsVersion)}
	known := []string{BindAddress, Commands, JoinAddress}
	for _, key := range slices.Sorted(maps.Keys(r.Set)) {
		value := r.Set[key]
		switch {
		case !slices.Contains(known, key):
			faults = append(faults, fmt.Errorf("unknown setting %q: kwok has %s", key, strings.Join(known, ", ")))
		case key != Commands && net.ParseIP(value) == nil:
			faults = append(faults, fmt.Errorf("%s %q: use an IP address of this machine, such as %s", key, value, loopback))
		case key == Commands && !filepath.IsAbs(value):
			faults = append(faults, fmt.Errorf("%s %q: use the absolute path of a folder", key, value))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	r.KubernetesVersion, _ = binaries.ParseVersion(r.KubernetesVersion)
	return &provider.Plan{
		Provider: ProviderName,
		Request:  r,
		Steps:    []string{stepFolder, stepControlPlane, stepNodes},
		Objects: []string{
			"folder " + filepath.Join(p.Dir, r.Name),
			"processes " + strings.Join(components, ", "),
			fmt.Sprintf("simulated nodes: %d Linux, %d Windows (%s)", r.LinuxNodes, r.WindowsNodes, r.WindowsVersion),
		},
		Teardown: time.Minute,
	}, nil
}

// Render implements [provider.Provider]: the nodes.
func (p *Provider) Render(plan *provider.Plan) ([]byte, error) {
	return simulated.Render(nodesOf(plan))
}

// Up implements [provider.Provider].
func (p *Provider) Up(ctx context.Context, plan *provider.Plan, j provider.Journal) (*provider.Cluster, error) {
	paths, err := p.Binaries.Get(ctx, plan.KubernetesVersion, Needs()...)
	if err != nil {
		return nil, err
	}
	c, err := p.cluster(plan.Name)
	if err != nil {
		return nil, err
	}
	for _, s := range []struct {
		name string
		act  func() error
	}{
		{stepFolder, func() error { return c.Make(&folder.Record{Plan: *plan}) }},
		{stepControlPlane, func() error { return p.startControlPlane(ctx, c, plan, paths) }},
		{stepNodes, func() error { return p.addNodes(ctx, c, plan) }},
	} {
		if err := j.Step(s.name, s.act); err != nil {
			return nil, err
		}
	}
	found := c.describe(ctx)
	return &found.Cluster, ctx.Err()
}

// startControlPlane starts it, with other ports where somebody took one meanwhile.
func (p *Provider) startControlPlane(ctx context.Context, c *cluster, plan *provider.Plan, paths map[binaries.Name]string) error {
	for attempt := 1; ; attempt++ {
		p.tellf("cluster %s: starting Kubernetes %s (usually 5 to 10 seconds)", c.Name, plan.KubernetesVersion)
		err := p.start(ctx, c, plan, paths)
		if !errors.Is(err, errPortTaken) || attempt == 3 {
			return err
		}
		p.tellf("cluster %s: %v: trying others", c.Name, errPortTaken)
		if err := c.endProcesses(ctx); err != nil {
			return err
		}
		if err := os.RemoveAll(c.kwokWorkDir()); err != nil {
			return err
		}
	}
}

// addNodes adds the nodes, and says in the record that the cluster is whole.
func (p *Provider) addNodes(ctx context.Context, c *cluster, plan *provider.Plan) error {
	p.tellf("cluster %s: adding %d Linux and %d Windows nodes (%s)", c.Name, plan.LinuxNodes, plan.WindowsNodes, plan.WindowsVersion)
	client, err := c.Client(0)
	if err != nil {
		return err
	}
	limited, cancel := p.limit(ctx)
	defer cancel()
	nodes := nodesOf(plan)
	if err := simulated.Add(limited, client, nodes); err != nil {
		return err
	}
	if err := simulated.Await(limited, client, nodes); err != nil {
		return err
	}
	return c.Write(&folder.Record{Plan: *plan, Ready: true})
}

func nodesOf(p *provider.Plan) []*corev1.Node { return simulated.Nodes(p.LinuxNodes, p.Request) }

// limit bounds ctx by the time a cluster may take to become ready.
func (p *Provider) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := p.StartTimeout
	if limit == 0 {
		limit = 3 * time.Minute
	}
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("not ready after %s", limit))
}

// Down implements [provider.Provider].
func (p *Provider) Down(ctx context.Context, e *provider.Entry) error {
	c, err := p.cluster(e.Plan.Name)
	if err != nil {
		return err
	}
	// Even without a folder: a process may have outlived it.
	return c.destroy(ctx)
}

// List implements [provider.Provider].
func (p *Provider) List(ctx context.Context, names ...string) ([]provider.Found, error) {
	all, err := folder.All(p.Dir)
	if err != nil {
		return nil, err
	}
	var clusters []provider.Found
	for _, f := range all {
		if c := (&cluster{f}); len(names) == 0 || slices.Contains(names, f.Name) {
			clusters = append(clusters, c.describe(ctx))
		}
	}
	return clusters, ctx.Err()
}

// Foreign implements [provider.Provider].
func (p *Provider) Foreign(_ context.Context, name string) (string, error) {
	c, err := p.cluster(name)
	if err != nil {
		return "", err
	}
	return c.Foreign()
}

// Extend implements [provider.Provider].
func (p *Provider) Extend(_ context.Context, e *provider.Entry, expires time.Time) error {
	c, err := p.cluster(e.Plan.Name)
	if err != nil {
		return err
	}
	r, err := c.Read()
	if err != nil {
		return err
	}
	r.Plan.Expires = expires
	return c.Write(r)
}

// Logs implements [provider.Provider]: it copies the logs of the control plane.
func (p *Provider) Logs(_ context.Context, e *provider.Entry, dir string) ([]provider.Missing, error) {
	c, err := p.cluster(e.Plan.Name)
	if err != nil {
		return nil, err
	}
	var missing []provider.Missing
	for _, name := range components {
		if err := folder.KeepLog(c.log(name), filepath.Join(dir, name+".log")); err != nil {
			missing = append(missing, provider.Missing{What: "the log of " + name, Reason: err.Error()})
		}
	}
	return missing, nil
}

// cluster returns the one of that name, which need not exist.
func (p *Provider) cluster(name string) (*cluster, error) {
	f, err := folder.In(p.Dir, name)
	return &cluster{f}, err
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
