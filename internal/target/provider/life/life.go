// Package life takes clusters through their life, whoever makes them: it is the only
// code that calls what makes and removes them.
//
// It promises:
//
//   - The ledger names a cluster, its expiry and each step before the step is done, so
//     that after a kill at any moment Down finds everything that can exist.
//   - Up can be repeated: a healthy cluster of the same shape is used again, a dead or
//     half-made one is removed and made again, one of another shape is left alone.
//   - What Up could not finish is removed, also when its context ended.
//   - Down returns when nothing is left, and says by name what is. That there is
//     nothing is no error.
//   - What does not carry our tags is never touched.
package life

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kubeconfig"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/ledger"
)

// Clusters are those of one ledger, and those that the providers find.
type Clusters struct {
	Ledger    *ledger.Ledger
	Providers []provider.Provider
	// Progress is told what takes time; nothing is told when it is nil.
	Progress io.Writer
	// Now is time.Now unless set.
	Now func() time.Time

	telling sync.Mutex
}

// Names are those of the providers.
func (c *Clusters) Names() []string {
	var names []string
	for _, p := range c.Providers {
		names = append(names, p.Name())
	}
	return names
}

// Provider returns the one of that name. The error is a [verdict.UsageError].
func (c *Clusters) Provider(name string) (provider.Provider, error) {
	for _, p := range c.Providers {
		if p.Name() == name {
			return p, nil
		}
	}
	return nil, verdict.UsageErrorf("unknown provider %q: use %s", name, strings.Join(c.Names(), ", "))
}

// Plan says what Up would make, and makes nothing. Most errors are a [verdict.UsageError].
func (c *Clusters) Plan(ctx context.Context, by string, r provider.Request) (*provider.Plan, error) {
	p, err := c.Provider(by)
	if err != nil {
		return nil, err
	}
	if !r.Expires.After(c.now()) {
		return nil, verdict.UsageErrorf("a cluster that expires at %s would be gone at once", r.Expires.Format(time.RFC3339))
	}
	plan, err := p.Plan(ctx, r)
	if err != nil && ctx.Err() == nil {
		return nil, verdict.UsageErrorf("%w", err)
	}
	return plan, err
}

// Render returns the objects of a plan, as YAML.
func (c *Clusters) Render(plan *provider.Plan) ([]byte, error) {
	p, err := c.Provider(plan.Provider)
	if err != nil {
		return nil, err
	}
	return p.Render(plan)
}

// UpOptions say what Up does beside making the cluster.
type UpOptions struct {
	// Kubeconfig, when set, is a file of the user's that gets the cluster's context too,
	// as its current one; what else is in the file stays.
	Kubeconfig string
	// KeepOnFailure, unless 0, is how long a cluster that could not be made stays, to
	// be looked at.
	KeepOnFailure time.Duration
}

// Up makes sure that the cluster of plan is there and ready, and returns it.
func (c *Clusters) Up(ctx context.Context, plan *provider.Plan, o UpOptions) (*provider.Cluster, error) {
	p, err := c.Provider(plan.Provider)
	if err != nil {
		return nil, err
	}
	if err := kubeconfig.Check(o.Kubeconfig); err != nil {
		return nil, verdict.UsageErrorf("%w", err)
	}
	h, err := c.lock(ctx, plan.Name)
	if err != nil {
		return nil, err
	}
	defer h.Unlock()
	made, err := c.reuse(ctx, p, h, plan)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", plan.Name, err)
	}
	if made == nil {
		if made, err = c.create(ctx, p, h, plan, o.KeepOnFailure); err != nil {
			return nil, fmt.Errorf("making cluster %s: %w", plan.Name, err)
		}
	}
	if o.Kubeconfig != "" {
		if err := publish(h, made, o.Kubeconfig); err != nil {
			return nil, fmt.Errorf("cluster %s: %w", plan.Name, err)
		}
		made.Kubeconfig = o.Kubeconfig
	}
	return made, nil
}

// reuse returns the cluster if it is there and as the plan has it, and nil where it is
// to be made. One that is dead or half made is removed.
func (c *Clusters) reuse(ctx context.Context, p provider.Provider, h *ledger.Held, plan *provider.Plan) (*provider.Cluster, error) {
	e, err := h.Read()
	if err != nil {
		return nil, err
	}
	if e == nil || e.Life == provider.Removed {
		return nil, c.free(ctx, p, plan.Name)
	}
	if e.Plan.Provider != plan.Provider {
		return nil, verdict.UsageErrorf("it is one of %s: choose another --name, or remove it first: op-readiness cluster down %s", e.Plan.Provider, plan.Name)
	}
	found, err := c.find(ctx, p, plan.Name)
	if err != nil {
		return nil, err
	}
	why := "half made"
	switch {
	case found == nil:
		why = "gone"
	case e.Life == provider.Up && found.State != provider.Running:
		why = fmt.Sprintf("%s (%s)", found.State, found.Problem)
	case e.Life == provider.Up:
		if d := difference(&e.Plan, plan); d != "" {
			return nil, verdict.UsageErrorf("it exists with %s: choose another --name, or remove it first: op-readiness cluster down %s", d, plan.Name)
		}
		c.tellf("cluster %s: already running; it expires %s", plan.Name, e.Plan.Expires.Format(time.RFC3339))
		return &found.Cluster, nil
	}
	c.tellf("cluster %s: %s: removing it and making it again", plan.Name, why)
	return nil, c.remove(ctx, p, h.Write, e)
}

// free returns an error unless nothing has the name.
func (c *Clusters) free(ctx context.Context, p provider.Provider, name string) error {
	found, err := c.find(ctx, p, name)
	if err != nil {
		return err
	}
	if found != nil {
		return verdict.UsageErrorf("it exists, and the ledger %s does not know of it: choose another --name, or remove it first: op-readiness cluster down %s", c.Ledger.Dir, name)
	}
	foreign, err := p.Foreign(ctx, name)
	if err != nil {
		return err
	}
	if foreign != "" {
		return verdict.UsageErrorf("the name is taken by what op-readiness did not make (%s): choose another --name", foreign)
	}
	return nil
}

// find returns the cluster of that name that p knows by its tags, or nil.
func (c *Clusters) find(ctx context.Context, p provider.Provider, name string) (*provider.Found, error) {
	all, err := p.List(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("listing the clusters of %s: %w", p.Name(), err)
	}
	if len(all) == 0 {
		return nil, nil
	}
	return &all[0], nil
}

// difference says how what is there differs from what is asked for, or "".
func difference(have, ask *provider.Plan) string {
	var all []string
	part := func(what string, have, ask any) {
		if have != ask {
			all = append(all, fmt.Sprintf("%s %v instead of %v", what, have, ask))
		}
	}
	part("Kubernetes version", have.KubernetesVersion, ask.KubernetesVersion)
	part("Linux nodes", have.LinuxNodes, ask.LinuxNodes)
	part("Windows nodes", have.WindowsNodes, ask.WindowsNodes)
	part("Windows version", have.WindowsVersion, ask.WindowsVersion)
	keys := maps.Clone(have.Set)
	if keys == nil {
		keys = map[string]string{}
	}
	maps.Copy(keys, ask.Set)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		part(key, or(have.Set[key], "its default"), or(ask.Set[key], "its default"))
	}
	return strings.Join(all, ", ")
}

func or(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

// create makes a cluster where there is none, or leaves nothing.
func (c *Clusters) create(ctx context.Context, p provider.Provider, h *ledger.Held, plan *provider.Plan, keep time.Duration) (*provider.Cluster, error) {
	e := &provider.Entry{Life: provider.Creating, Plan: *plan, Created: c.now()}
	if err := h.Write(e); err != nil {
		return nil, err
	}
	made, err := p.Up(ctx, plan, &journal{held: h, entry: e, now: c.now})
	if err == nil {
		e.Life, e.Child, e.Kubeconfig, e.Context = provider.Up, nil, made.Kubeconfig, made.Context
		err = h.Write(e)
	}
	if err == nil {
		return made, nil
	}
	// The context may have ended; what it began must go all the same.
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), plan.Teardown)
	defer cancel()
	if keep > 0 {
		return nil, errors.Join(err, c.keep(cleanup, p, h, e, keep))
	}
	return nil, errors.Join(err, c.remove(cleanup, p, h.Write, e))
}

// Keep changes when a cluster expires to the given time from now, and says what
// removes it.
func (c *Clusters) Keep(ctx context.Context, name string, keep time.Duration) error {
	h, err := c.lock(ctx, name)
	if err != nil {
		return err
	}
	defer h.Unlock()
	e, err := h.Read()
	if err != nil {
		return err
	}
	if e == nil {
		return fmt.Errorf("cluster %s: the ledger %s does not know of it", name, c.Ledger.Dir)
	}
	p, err := c.Provider(e.Plan.Provider)
	if err != nil {
		return err
	}
	return c.keep(ctx, p, h, e, keep)
}

func (c *Clusters) keep(ctx context.Context, p provider.Provider, h *ledger.Held, e *provider.Entry, keep time.Duration) error {
	// Whichever of the two a kill leaves unwritten, the earlier time counts.
	e.Kept, e.Plan.Expires = true, c.now().Add(keep).UTC().Truncate(time.Second)
	err := errors.Join(h.Write(e), p.Extend(ctx, e, e.Plan.Expires))
	c.tellf("cluster %s: kept until %s; remove it: op-readiness cluster down %[1]s", e.Plan.Name, e.Plan.Expires.Format(time.RFC3339))
	return err
}

// publish gives the cluster's context to a file of the user's. What Down finds absent
// there does no harm, so the ledger says it first.
func publish(h *ledger.Held, made *provider.Cluster, path string) error {
	return kubeconfig.Publish(made.Kubeconfig, made.Context, path, func(given provider.Publication) error {
		e, err := h.Read()
		if err != nil {
			return err
		}
		known := slices.ContainsFunc(e.Published, func(p provider.Publication) bool { return p.File == path && p.Server == given.Server })
		if known {
			return nil
		}
		e.Published = append(e.Published, given)
		return h.Write(e)
	})
}

// journal writes steps to the ledger.
type journal struct {
	held  *ledger.Held
	entry *provider.Entry
	now   func() time.Time
}

// Step implements [provider.Journal].
func (j *journal) Step(name string, act func() error) error {
	j.entry.Steps = append(j.entry.Steps, provider.StepTaken{Name: name, Begun: j.now()})
	if err := j.held.Write(j.entry); err != nil {
		return err
	}
	if err := act(); err != nil {
		return fmt.Errorf("step %s: %w", name, err)
	}
	j.entry.Steps[len(j.entry.Steps)-1].Ended = j.now()
	return j.held.Write(j.entry)
}

// Child implements [provider.Journal].
func (j *journal) Child(pid int, started int64) error {
	j.entry.Child = &provider.Process{PID: pid, Started: started}
	return j.held.Write(j.entry)
}

// lock waits until this process alone may change the named cluster.
func (c *Clusters) lock(ctx context.Context, name string) (*ledger.Held, error) {
	return c.Ledger.Lock(ctx, name, func() {
		c.tellf("cluster %s: waiting for another op-readiness that is making or removing it", name)
	})
}

func (c *Clusters) now() time.Time {
	if c.Now != nil {
		return c.Now().UTC()
	}
	return time.Now().UTC()
}

// tellf writes one line of narration.
func (c *Clusters) tellf(format string, args ...any) {
	if c.Progress == nil {
		return
	}
	c.telling.Lock()
	defer c.telling.Unlock()
	fmt.Fprintf(c.Progress, format+"\n", args...)
}
