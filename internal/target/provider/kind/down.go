package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/folder"
)

// Down implements [provider.Provider].
func (p *Provider) Down(ctx context.Context, e *provider.Entry) error {
	c, err := p.cluster(e.Plan.Name)
	if err != nil {
		return err
	}
	engines, err := p.enginesOf(ctx, e)
	if err != nil {
		return err
	}
	if err := c.seenBy(engines); err != nil {
		return err
	}
	if err := c.endProcesses(ctx); err != nil {
		return err
	}
	for _, engine := range engines {
		if err := p.removeFrom(ctx, engine, c); err != nil {
			return err
		}
	}
	if err := c.Remove(); err != nil {
		return err
	}
	// The tags go last: while anything is there, they say whose.
	for _, engine := range engines {
		tagged, err := engine.of(ctx, c.Name)
		if err != nil {
			return err
		}
		for _, t := range tagged {
			if err := engine.removeVolumes(ctx, t.volume); err != nil {
				return err
			}
		}
	}
	return nil
}

// seenBy returns an error when the cluster was made with another daemon or store of its
// engine, in which these would find nothing.
func (c *cluster) seenBy(engines []*engine) error {
	r, err := c.Read()
	if err == nil && r.Where != "" && !slices.ContainsFunc(engines, func(e *engine) bool { return e.store == r.Where }) {
		return fmt.Errorf("it is in another %s (%s): set what leads there, such as DOCKER_HOST or CONTAINERS_STORAGE_CONF; where that is no more, remove the folder %s", r.Plan.Set[Engine], r.Where, c.Dir)
	}
	return nil // without a record, tags have to do
}

// enginesOf returns the engines that a cluster is, or can be, in: the one that its plan
// names, or else all in which it has its tags.
func (p *Provider) enginesOf(ctx context.Context, e *provider.Entry) ([]*engine, error) {
	if name := e.Plan.Set[Engine]; name != "" {
		one, err := p.choose(ctx, name)
		if err != nil {
			return nil, err
		}
		return []*engine{one}, nil
	}
	all, err := p.working(ctx)
	if err != nil {
		return nil, err
	}
	var having []*engine
	for _, engine := range all {
		tagged, err := engine.of(ctx, e.Plan.Name)
		if err != nil {
			return nil, err
		}
		if len(tagged) > 0 {
			having = append(having, engine)
		}
	}
	return having, nil
}

// removeFrom removes a cluster's containers, and what kind made for them, from an engine,
// and sees that they are gone.
func (p *Provider) removeFrom(ctx context.Context, e *engine, c *cluster) error {
	nodes, err := e.nodes(ctx, c.Name)
	if err != nil {
		return err
	}
	if len(nodes) > 0 {
		p.tellf("cluster %s: removing %s", c.Name, strings.Join(nodes, ", "))
		if err := os.MkdirAll(c.Dir, 0o700); err != nil { // kind locks the kubeconfig there
			return err
		}
		err := p.call(ctx, c, &call{Call: callDelete, Engine: e.name, Name: c.Name, Kubeconfig: c.Kubeconfig()}, nil)
		if err != nil {
			return fmt.Errorf("kind: %w", err)
		}
	}
	if err := e.removeRemains(ctx, c); err != nil {
		return err
	}
	if nodes, err = e.nodes(ctx, c.Name); err == nil && len(nodes) > 0 {
		err = fmt.Errorf("%s: still there", strings.Join(nodes, ", "))
	}
	return err
}

// removeRemains removes what a kill of kind, or of podman, can leave without the label by
// which kind deletes: podman's volumes for nodes that were not made yet, and containers
// of which only its storage knows.
func (e *engine) removeRemains(ctx context.Context, c *cluster) error {
	if e.name != "podman" {
		return nil
	}
	volumes, err := e.nodeVolumes(ctx, c)
	if err != nil {
		return err
	}
	if err := e.removeVolumes(ctx, volumes...); err != nil {
		return err
	}
	external, err := e.external(ctx)
	if err != nil {
		return err
	}
	var faults []error
	for _, name := range external {
		if c.isNodeName(name) {
			_, err := e.output(ctx, "rm", "--force", name)
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// nodeVolumes returns the volumes that kind makes for nodes with podman: each has the
// node's name as the key of a label.
func (e *engine) nodeVolumes(ctx context.Context, c *cluster) ([]string, error) {
	volumes, err := e.volumes(ctx)
	var names []string
	for _, v := range volumes {
		for label := range v.Labels {
			if c.isNodeName(label) {
				names = append(names, v.Name)
			}
		}
	}
	return names, err
}

// external returns the names of the containers of which only podman's storage knows.
func (e *engine) external(ctx context.Context) ([]string, error) {
	known, err := e.lines(ctx, "ps", "--all", "--format", "{{.Names}}")
	if err != nil {
		return nil, err
	}
	all, err := e.lines(ctx, "ps", "--all", "--external", "--format", "{{.Names}}")
	return slices.DeleteFunc(all, func(name string) bool { return slices.Contains(known, name) }), err
}

// List implements [provider.Provider]. Where no engine answers there are no clusters,
// unless a folder tells of some.
func (p *Provider) List(ctx context.Context, names ...string) ([]provider.Found, error) {
	wanted := func(name string) bool { return len(names) == 0 || slices.Contains(names, name) }
	engines, err := p.working(ctx)
	if errors.Is(err, errNoEngine) {
		return nil, p.unseen(wanted, err)
	}
	if err != nil {
		return nil, err
	}
	var found []provider.Found
	for _, e := range engines {
		tagged, err := e.tagged(ctx)
		if err != nil {
			return nil, err
		}
		// The first of a cluster's tags expires first, and counts.
		tagged = slices.CompactFunc(tagged, func(a, b tags) bool { return a.name == b.name })
		for _, t := range tagged {
			if !wanted(t.name) {
				continue
			}
			c, err := p.cluster(t.name)
			if err != nil {
				return nil, err
			}
			found = append(found, c.describe(ctx, e, t))
		}
	}
	return found, ctx.Err()
}

// unseen returns why no cluster is seen where there is one.
func (p *Provider) unseen(wanted func(name string) bool, why error) error {
	all, err := folder.All(p.Dir)
	for _, f := range all {
		if wanted(f.Name) {
			return fmt.Errorf("cluster %s cannot be seen: %w: start its container engine", f.Name, why)
		}
	}
	return err
}

// Foreign implements [provider.Provider].
func (p *Provider) Foreign(ctx context.Context, name string) (string, error) {
	c, err := p.cluster(name)
	if err != nil {
		return "", err
	}
	var all []string
	if foreign, err := c.Foreign(); err != nil {
		return "", err
	} else if foreign != "" {
		all = append(all, foreign)
	}
	engines, err := p.working(ctx)
	if err != nil && !errors.Is(err, errNoEngine) {
		return "", err
	}
	for _, e := range engines {
		of, err := e.foreign(ctx, name)
		if err != nil {
			return "", err
		}
		all = append(all, of...)
	}
	return strings.Join(all, ", "), nil
}

// foreign names what an engine has of a cluster that does not carry our tags.
func (e *engine) foreign(ctx context.Context, name string) ([]string, error) {
	tagged, err := e.of(ctx, name)
	if err != nil || len(tagged) > 0 {
		return nil, err
	}
	var all []string
	nodes, err := e.nodes(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, node := range nodes {
		all = append(all, e.name+" container "+node)
	}
	volumes, err := e.lines(ctx, "volume", "ls", "--quiet")
	if slices.Contains(volumes, volumeName(name)) {
		all = append(all, e.name+" volume "+volumeName(name))
	}
	return all, err
}

// Extend implements [provider.Provider].
func (p *Provider) Extend(ctx context.Context, e *provider.Entry, expires time.Time) error {
	engines, err := p.enginesOf(ctx, e)
	if err != nil {
		return err
	}
	r := e.Plan.Request
	r.Expires = expires
	for _, engine := range engines {
		if err := engine.retag(ctx, &r); err != nil {
			return err
		}
	}
	return nil
}
