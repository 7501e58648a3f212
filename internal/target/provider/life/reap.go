package life

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/ledger"
)

// teardown is how long the removal of a cluster may take of which no plan is known.
const teardown = 30 * time.Minute

// Known is a cluster as ledger and tags together tell of it.
type Known struct {
	provider.Found
	// Life is what the ledger says, "" where it does not know the cluster.
	Life provider.Life `json:"life,omitempty"`
	// Step is the last one that was begun, of a cluster that is not up.
	Step string `json:"step,omitempty"`
	// Kept says that somebody wants to look at it until it expires.
	Kept bool `json:"kept,omitempty"`
	// Tagged says that the cluster was found by its tags.
	Tagged bool `json:"tagged"`
}

// List returns the clusters of the providers, of all where none is named, that the
// ledger knows or that carry our tags, sorted by name. An error joins what could not be
// read or asked; the other clusters are there.
func (c *Clusters) List(ctx context.Context, by ...string) ([]Known, error) {
	entries, err := c.Ledger.Entries()
	faults := []error{err}
	known := map[string]*Known{}
	wanted := func(name string) bool { return len(by) == 0 || slices.Contains(by, name) }
	for _, p := range c.Providers {
		if !wanted(p.Name()) {
			continue
		}
		all, err := p.List(ctx)
		if err != nil {
			faults = append(faults, fmt.Errorf("listing the clusters of %s: %w", p.Name(), err))
		}
		for _, f := range all {
			known[f.Name] = &Known{Found: f, Tagged: true}
		}
	}
	for _, e := range entries {
		k := known[e.Plan.Name]
		if k == nil && (e.Life == provider.Removed || !wanted(e.Plan.Provider)) {
			continue
		}
		if k == nil {
			k = &Known{Found: foundOf(e)}
			known[e.Plan.Name] = k
		}
		k.Life, k.Kept = e.Life, e.Kept
		if expires := e.Plan.Expires; k.Expires.IsZero() || !expires.IsZero() && expires.Before(k.Expires) {
			k.Expires = expires
		}
		if e.Life != provider.Up && len(e.Steps) > 0 {
			k.Step = e.Steps[len(e.Steps)-1].Name
		}
	}
	var all []Known
	for _, k := range known {
		if k.State != provider.Running && c.Ledger.Busy(k.Name) {
			k.State, k.Problem = provider.Starting, "another op-readiness is making or removing it"
		}
		all = append(all, *k)
	}
	slices.SortFunc(all, func(a, b Known) int { return strings.Compare(a.Name, b.Name) })
	return all, errors.Join(faults...)
}

// foundOf is a cluster of which only the ledger knows.
func foundOf(e *provider.Entry) provider.Found {
	p := &e.Plan
	return provider.Found{
		Cluster: provider.Cluster{
			Name: p.Name, Provider: p.Provider, KubernetesVersion: p.KubernetesVersion, LinuxNodes: p.LinuxNodes,
			WindowsNodes: p.WindowsNodes, WindowsVersion: p.WindowsVersion, State: provider.Gone,
			Problem: "nothing carries its tags", Kubeconfig: e.Kubeconfig, Context: e.Context,
		},
		Owner: p.Owner, Run: p.Run, Expires: p.Expires,
	}
}

// Expired returns the clusters of the providers, of all where none is named, that
// expired at least so long ago.
func (c *Clusters) Expired(ctx context.Context, by []string, ago time.Duration) ([]Known, error) {
	all, err := c.List(ctx, by...)
	now := c.now()
	return slices.DeleteFunc(all, func(k Known) bool { return k.Expires.IsZero() || k.Expires.Add(ago).After(now) }), err
}

// Reap removes a cluster of [Clusters.Expired]. One that somebody is making or removing
// at this moment is left to them.
func (c *Clusters) Reap(ctx context.Context, k *Known) error {
	h, err := c.Ledger.TryLock(k.Name)
	if err != nil {
		return err
	}
	if h == nil {
		c.tellf("cluster %s: another op-readiness is making or removing it", k.Name)
		return nil
	}
	defer h.Unlock()
	c.tellf("cluster %s: it expired %s: removing it", k.Name, k.Expires.Format(time.RFC3339))
	ctx, cancel := context.WithTimeoutCause(ctx, teardown, fmt.Errorf("not gone after %s", teardown))
	defer cancel()
	e, err := h.Read()
	if err == nil && e != nil && e.Life != provider.Removed {
		return c.removeBy(ctx, h.Write, e)
	}
	write := h.Write
	if errors.Is(err, ledger.ErrNewer) {
		// What it knows beside this cluster is not ours to forget.
		write = func(*provider.Entry) error { return nil }
	}
	return c.downByTags(ctx, k.Name, write, err)
}

// Logs writes what only the cluster's provider can reach into dir, and returns what it
// did not get, with the cluster.
func (c *Clusters) Logs(ctx context.Context, name, dir string) (*Known, []provider.Missing, error) {
	all, err := c.List(ctx)
	i := slices.IndexFunc(all, func(k Known) bool { return k.Name == name && k.State != provider.Gone })
	if i < 0 {
		return nil, nil, errors.Join(verdict.UsageErrorf("cluster %s: there is none; 'op-readiness cluster list' lists what there is", name), err)
	}
	p, err := c.Provider(all[i].Provider)
	if err != nil {
		return nil, nil, err
	}
	missing, err := p.Logs(ctx, c.entryOf(p, &all[i].Found), dir)
	return &all[i], missing, err
}

// Sweep removes what has expired of the providers' clusters, and forgets what has been
// gone for long. It says what it could not remove, and goes on.
func (c *Clusters) Sweep(ctx context.Context, by ...string) {
	expired, err := c.Expired(ctx, by, 0)
	faults := []error{err}
	for i := range expired {
		faults = append(faults, c.Reap(ctx, &expired[i]))
	}
	if err := errors.Join(append(faults, c.forget())...); err != nil {
		c.tellf("warning: clusters that have expired: %v", err)
	}
}

// forget drops entries of clusters that have been gone for long.
func (c *Clusters) forget() error {
	entries, _ := c.Ledger.Entries() // whoever lists them says what cannot be read
	var faults []error
	for _, e := range entries {
		if e.Life != provider.Removed {
			continue
		}
		h, err := c.Ledger.TryLock(e.Plan.Name)
		if h != nil {
			err = h.Forget(c.now())
			h.Unlock()
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}
