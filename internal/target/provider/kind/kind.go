package kind

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/folder"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/simulated"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
)

// ProviderName is how this provider is called on the command line.
const ProviderName = "kind"

// What a request may set.
const (
	// Engine is the container engine: docker, podman or nerdctl. The default is what
	// the variable KIND_EXPERIMENTAL_PROVIDER says, or else the first that answers.
	Engine = "engine"
	// Image is the image of nodes. The default is the one that kind published for the
	// version of Kubernetes.
	Image = "image"
	// Config is a file of kind's own configuration, without name and nodes.
	Config = "config"
)

// The steps of a cluster.
const (
	stepVolume    = "volume"
	stepCluster   = "cluster"
	stepSimulated = "simulated"
)

// maxNodes is how many workers, or Windows nodes, there may be: a cluster of kind has
// ranges of pod addresses for 256 nodes.
const maxNodes = 100

// Binaries hands out the program that plays nodes; a [binaries.Store] does.
type Binaries interface {
	Get(ctx context.Context, kubernetesVersion string, names ...binaries.Name) (map[binaries.Name]string, error)
}

// Provider implements [provider.Provider].
type Provider struct {
	Binaries Binaries
	// Dir holds one folder for each cluster; an absolute path.
	Dir string
	// Self is this program and its arguments before [Command].
	Self []string
	// Progress is told what takes time; nothing is told when it is nil.
	Progress io.Writer
	// Environ is the environment of child processes, os.Environ() unless set.
	Environ []string
	// CreateTimeout limits how long kind may take to make a cluster, with the download
	// of its image: 15 minutes unless set. StartTimeout limits how long nodes may then
	// take to be ready: 3 minutes unless set. LogTimeout limits how long kind may collect
	// logs: 1 minute unless set.
	CreateTimeout, StartTimeout, LogTimeout time.Duration

	// askWithin is how long an engine may take to answer: 10 seconds unless set.
	askWithin time.Duration
	asking    sync.Mutex
	answers   []answer
	telling   sync.Mutex
}

// Name implements [provider.Provider].
func (p *Provider) Name() string { return ProviderName }

// imageName is what an image may be called
// (https://github.com/distribution/reference/blob/main/regexp.go); above all, it is no
// flag.
var imageName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._:/@-]{0,400}$`)

// Plan implements [provider.Provider]. Without a version of Kubernetes it takes
// [DefaultVersion].
func (p *Provider) Plan(ctx context.Context, r provider.Request) (*provider.Plan, error) {
	r.KubernetesVersion = cmp.Or(r.KubernetesVersion, DefaultVersion())
	faults := []error{r.Validate(maxNodes), simulated.CheckWindows(r.WindowsVersion)}
	r.KubernetesVersion, _ = binaries.ParseVersion(r.KubernetesVersion)
	r.Set = maps.Clone(r.Set)
	if r.Set == nil {
		r.Set = map[string]string{}
	}
	known := []string{Config, Engine, Image}
	for _, key := range slices.Sorted(maps.Keys(r.Set)) {
		if !slices.Contains(known, key) {
			faults = append(faults, fmt.Errorf("unknown setting %q: kind has %s", key, strings.Join(known, ", ")))
		}
	}
	for _, tag := range []struct{ what, value string }{{"owner", r.Owner}, {"run", r.Run}} {
		if !validTag(tag.value) {
			faults = append(faults, fmt.Errorf("%s %q: use one line of at most 255 bytes", tag.what, text.Cut(tag.value, 80)))
		}
	}
	faults = append(faults, setImage(&r), setConfig(&r))
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	e, err := p.choose(ctx, r.Set[Engine])
	if err != nil {
		return nil, err
	}
	r.Set[Engine] = e.name
	return &provider.Plan{
		Provider: ProviderName,
		Request:  r,
		Steps:    []string{stepVolume, stepCluster, stepSimulated},
		Objects:  p.objects(&r),
		Teardown: 2 * time.Minute,
	}, nil
}

// setImage chooses the image of nodes, unless the request does.
func setImage(r *provider.Request) error {
	image, given := r.Set[Image]
	switch {
	case given && !imageName.MatchString(image):
		return fmt.Errorf("%s %q: use the name of an image, such as %s", Image, text.Cut(image, 80), images[DefaultVersion()])
	case given, r.KubernetesVersion == "":
		return nil
	}
	image, err := imageOf(r.KubernetesVersion)
	r.Set[Image] = image
	return err
}

// setConfig checks kind's configuration, and makes its path absolute.
func setConfig(r *provider.Request) error {
	path, given := r.Set[Config]
	if !given {
		return nil
	}
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = readConfig(path)
	}
	r.Set[Config] = path
	if err != nil {
		return fmt.Errorf("%s: %w", Config, err)
	}
	return nil
}

// objects are what a cluster is made of.
func (p *Provider) objects(r *provider.Request) []string {
	plan := &provider.Plan{Request: *r}
	of := r.Set[Engine]
	return []string{
		of + " volume " + volumeName(r.Name),
		fmt.Sprintf("%s containers %s: a control plane and %s, of %s", of, strings.Join(nodeNames(plan), ", "), text.Count(r.LinuxNodes, "worker"), r.Set[Image]),
		of + " network kind, which stays",
		"folder " + filepath.Join(p.Dir, r.Name),
		"process kwok",
		fmt.Sprintf("simulated nodes: %d Windows (%s)", r.WindowsNodes, r.WindowsVersion),
	}
}

// Render implements [provider.Provider]: kind's configuration, and the simulated nodes.
func (p *Provider) Render(plan *provider.Plan) ([]byte, error) {
	config, err := configOf(plan)
	if err != nil {
		return nil, err
	}
	asYAML, err := yaml.Marshal(config)
	if err != nil {
		return nil, err
	}
	nodes, err := simulated.Render(simulatedNodes(plan))
	return slices.Concat(asYAML, nodes), err
}

// Up implements [provider.Provider].
func (p *Provider) Up(ctx context.Context, plan *provider.Plan, j provider.Journal) (*provider.Cluster, error) {
	c, err := p.cluster(plan.Name)
	if err != nil {
		return nil, err
	}
	e, err := p.choose(ctx, plan.Set[Engine])
	if err != nil {
		return nil, err
	}
	config, err := configOf(plan)
	if err != nil {
		return nil, err
	}
	asYAML, err := yaml.Marshal(config)
	if err != nil {
		return nil, err
	}
	if _, err := p.kwok(ctx, plan); err != nil { // before anything is made
		return nil, err
	}
	r := &folder.Record{Plan: *plan, Where: e.store, NoNetwork: config.Networking.DisableDefaultCNI}
	for _, s := range []struct {
		name string
		act  func() error
	}{
		{stepVolume, func() error { return e.tag(ctx, volumeName(plan.Name), &plan.Request) }},
		{stepCluster, func() error { return p.create(ctx, e, c, r, string(asYAML), j) }},
		{stepSimulated, func() error { return p.addNodes(ctx, e, c, r) }},
	} {
		if err := j.Step(s.name, s.act); err != nil {
			return nil, err
		}
	}
	found := c.describe(ctx, e, tags{})
	return &found.Cluster, ctx.Err()
}

// create makes the folder, and has kind make the cluster.
func (p *Provider) create(ctx context.Context, e *engine, c *cluster, r *folder.Record, config string, j provider.Journal) error {
	if c.Exists() { // of a cluster whose volume is gone
		if err := c.Remove(); err != nil {
			return err
		}
	}
	if err := c.Make(r); err != nil {
		return err
	}
	p.tellf("cluster %s: %s makes Kubernetes %s on %s (usually 1 to 2 minutes, more where the image must be fetched)", c.Name, e.name, r.Plan.KubernetesVersion, text.Count(r.Plan.LinuxNodes+1, "node"))
	limit := cmp.Or(p.CreateTimeout, 15*time.Minute)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not made within %s", limit))
	defer cancel()
	err := p.call(ctx, c, &call{Call: callCreate, Engine: e.name, Name: c.Name, Kubeconfig: c.Kubeconfig(), Config: config}, j.Child)
	if err != nil {
		return fmt.Errorf("kind: %w", err)
	}
	return nil
}

// kwok returns the program that plays nodes, "" where there are none to play.
func (p *Provider) kwok(ctx context.Context, plan *provider.Plan) (string, error) {
	if plan.WindowsNodes == 0 {
		return "", nil
	}
	paths, err := p.Binaries.Get(ctx, plan.KubernetesVersion, binaries.Kwok)
	return paths[binaries.Kwok], err
}

// limit bounds ctx by the time that nodes may take to become ready.
func (p *Provider) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := cmp.Or(p.StartTimeout, 3*time.Minute)
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("not ready after %s", limit))
}

// cluster returns the one of that name, which need not exist.
func (p *Provider) cluster(name string) (*cluster, error) {
	f, err := folder.In(p.Dir, name)
	return &cluster{f}, err
}

// environ is the environment of child processes, without what would lead them to the
// user's clusters.
func (p *Provider) environ() []string {
	environ := p.Environ
	if environ == nil {
		environ = os.Environ()
	}
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		return strings.HasPrefix(entry, "KUBECONFIG=") || strings.HasPrefix(entry, "KWOK_")
	})
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
