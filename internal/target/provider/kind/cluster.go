package kind

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/folder"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/simulated"
)

// cluster is what there is of one cluster on this machine.
type cluster struct{ *folder.Folder }

func (c *cluster) context() string    { return "kind-" + c.Name }
func (c *cluster) stagesFile() string { return c.Path("kwok.yaml") }
func (c *cluster) kwokLog() string    { return c.Path("kwok.log") }

// describe returns the cluster as users see it.
func (c *cluster) describe(ctx context.Context, e *engine, t tags) provider.Found {
	found := c.Found(ProviderName, c.context())
	found.Owner, found.Run, found.Expires = t.owner, t.run, t.expires
	found.State, found.Problem = c.inspect(ctx, e)
	return found
}

// inspectTimeout limits each question to a cluster that may be dead.
const inspectTimeout = 5 * time.Second

// inspect says how the cluster is, and what is wrong unless it is running.
func (c *cluster) inspect(ctx context.Context, e *engine) (provider.State, string) {
	all, err := e.nodes(ctx, c.Name)
	if err != nil {
		return provider.Broken, err.Error()
	}
	running, err := e.nodes(ctx, c.Name, "--filter", "status=running")
	if err != nil {
		return provider.Broken, err.Error()
	}
	r, err := c.Read()
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
func (c *cluster) problem(ctx context.Context, r *folder.Record) string {
	client, err := c.Client(inspectTimeout)
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
	role, ok := strings.CutPrefix(name, c.Name+"-")
	role = strings.TrimRight(role, "0123456789")
	return ok && (role == "control-plane" || role == "worker")
}
