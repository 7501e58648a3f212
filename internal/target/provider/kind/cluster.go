package kind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/simulated"
	"github.com/windows-op-readiness/windows-op-readiness/internal/whole"
)

// cluster is one cluster's folder.
type cluster struct {
	name string
	dir  string
}

func (c *cluster) context() string    { return "kind-" + c.name }
func (c *cluster) recordFile() string { return filepath.Join(c.dir, "cluster.json") }
func (c *cluster) kubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }
func (c *cluster) stagesFile() string { return filepath.Join(c.dir, "kwok.yaml") }
func (c *cluster) kwokLog() string    { return filepath.Join(c.dir, "kwok.log") }

// newFolder is where the folder is made; its name can name no cluster.
func (c *cluster) newFolder() string { return filepath.Join(filepath.Dir(c.dir), ".new-"+c.name) }

// record is what cluster.json says.
type record struct {
	Schema int           `json:"schema"`
	Plan   provider.Plan `json:"plan"`
	// Networked says that kind set up the network of pods, so that nodes are ready.
	Networked bool `json:"networked"`
	// Ready is set last of all: without it the cluster is half made.
	Ready bool `json:"ready"`
}

const recordSchema = 1

func (c *cluster) readRecord() (*record, error) {
	data, err := os.ReadFile(c.recordFile())
	if err != nil {
		return nil, err
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", c.recordFile(), err)
	}
	if r.Schema != recordSchema || r.Plan.Name != c.name {
		return nil, fmt.Errorf("%s: it is of another op-readiness, or of another cluster", c.recordFile())
	}
	return &r, nil
}

func (c *cluster) writeRecord(r *record) error {
	r.Schema = recordSchema
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return whole.WriteFile(c.recordFile(), append(data, '\n'), 0o600)
}

// makeFolder makes the folder with the record in it, both at once. One of a cluster that
// is no more makes way.
func (c *cluster) makeFolder(r *record) error {
	temp := &cluster{name: c.name, dir: c.newFolder()}
	err := os.RemoveAll(temp.dir)
	if err == nil && c.ours() {
		err = os.RemoveAll(c.dir)
	}
	if err == nil {
		err = os.Mkdir(temp.dir, 0o700)
	}
	if err == nil {
		err = temp.writeRecord(r)
	}
	if err == nil {
		err = os.Rename(temp.dir, c.dir)
	}
	if err != nil {
		return fmt.Errorf("making the cluster's folder: %w", err)
	}
	return nil
}

// ours tells whether the folder is that of a cluster.
func (c *cluster) ours() bool {
	_, err := os.Stat(c.recordFile())
	return err == nil
}

// inTheWay tells whether something else than a cluster has the folder's place.
func (c *cluster) inTheWay() (bool, error) {
	if c.ours() {
		return false, nil
	}
	entries, err := os.ReadDir(c.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return len(entries) > 0, err
}

func (c *cluster) removeFolder() error {
	return errors.Join(os.RemoveAll(c.newFolder()), os.RemoveAll(c.dir))
}

// client returns a client of the cluster; timeout limits each request, 0 not at all.
func (c *cluster) client(timeout time.Duration) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's kubeconfig: %w", err)
	}
	config.Timeout = timeout
	config.QPS, config.Burst = 500, 1000
	return kubernetes.NewForConfig(config)
}

// describe returns the cluster as users see it.
func (c *cluster) describe(ctx context.Context, e *engine, t tags) provider.Found {
	found := provider.Found{
		Cluster: provider.Cluster{Name: c.name, Provider: ProviderName, Kubeconfig: c.kubeconfig(), Context: c.context()},
		Owner:   t.owner, Run: t.run, Expires: t.expires,
	}
	if r, err := c.readRecord(); err == nil {
		p := &r.Plan
		found.KubernetesVersion, found.WindowsVersion = p.KubernetesVersion, p.WindowsVersion
		found.LinuxNodes, found.WindowsNodes = p.LinuxNodes, p.WindowsNodes
	}
	found.State, found.Problem = c.inspect(ctx, e)
	return found
}

// inspectTimeout limits each question to a cluster that may be dead.
const inspectTimeout = 5 * time.Second

// inspect says how the cluster is, and what is wrong unless it is running.
func (c *cluster) inspect(ctx context.Context, e *engine) (provider.State, string) {
	all, err := e.nodes(ctx, c.name)
	if err != nil {
		return provider.Broken, err.Error()
	}
	running, err := e.nodes(ctx, c.name, "--filter", "status=running")
	if err != nil {
		return provider.Broken, err.Error()
	}
	r, err := c.readRecord()
	if err != nil {
		return provider.Broken, "half made: " + err.Error()
	}
	switch {
	case !r.Ready || len(all) == 0:
		return provider.Broken, "half made"
	case len(running) == 0:
		return provider.Stopped, "none of its containers runs"
	}
	for _, name := range nodeNames(&r.Plan) {
		if !slices.Contains(running, name) {
			return provider.Broken, "container " + name + " does not run"
		}
	}
	if playing, err := c.played(); err != nil {
		return provider.Broken, err.Error()
	} else if !playing && r.Plan.WindowsNodes > 0 {
		return provider.Broken, "kwok, which plays its simulated nodes, does not run"
	}
	if problem := c.problem(ctx, r); problem != "" {
		return provider.Broken, problem
	}
	return provider.Running, ""
}

// problem says what the cluster's API server finds wrong, or "".
func (c *cluster) problem(ctx context.Context, r *record) string {
	client, err := c.client(inspectTimeout)
	if err != nil {
		return err.Error()
	}
	if _, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
		return "its API server is not ready: " + err.Error()
	}
	if problem := realProblem(ctx, client, r); problem != "" {
		return problem
	}
	return simulated.Problem(ctx, client, simulatedNodes(&r.Plan))
}

// nodes returns the names of a cluster's containers.
func (e *engine) nodes(ctx context.Context, name string, more ...string) ([]string, error) {
	args := append([]string{"ps", "--all", "--format", "{{.Names}}", "--filter", "label=" + clusterLabel + "=" + name}, more...)
	return e.lines(ctx, args...)
}

// clusterLabel is kind's, on each container of a cluster.
const clusterLabel = "io.x-k8s.kind.cluster"

// nodeNames are what kind calls the nodes of a cluster, and their containers.
func nodeNames(p *provider.Plan) []string {
	names := []string{p.Name + "-control-plane"}
	for i := range p.LinuxNodes {
		name := p.Name + "-worker"
		if i > 0 {
			name = fmt.Sprintf("%s%d", name, i+1)
		}
		names = append(names, name)
	}
	return names
}

// isNodeName tells whether kind can have given name to a node of the cluster.
func (c *cluster) isNodeName(name string) bool {
	role, ok := strings.CutPrefix(name, c.name+"-")
	role = strings.TrimRight(role, "0123456789")
	return ok && (role == "control-plane" || role == "worker")
}
