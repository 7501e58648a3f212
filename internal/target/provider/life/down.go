package life

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/process"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kubeconfig"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/ledger"
)

// A LeftError says that something of a cluster is left.
type LeftError struct {
	Name string
	// Left names what, or is empty where that is not known.
	Left string
	Err  error
}

func (e *LeftError) Error() string {
	what := "is left behind"
	if e.Left != "" {
		what += " (" + e.Left + ")"
	}
	return fmt.Sprintf("cluster %s %s: %v; remove it: op-readiness cluster down %[1]s", e.Name, what, e.Err)
}

func (e *LeftError) Unwrap() error { return e.Err }

// Down removes the named cluster, and returns when nothing is left of it: by the ledger,
// or by its tags. It waits for an Up of it that runs. That there is none is no error;
// what is there of that name and is not ours is a [verdict.UsageError]; what is left is a
// [LeftError].
func (c *Clusters) Down(ctx context.Context, name string) error {
	h, err := c.lock(ctx, name)
	if err != nil {
		return err
	}
	defer h.Unlock()
	e, err := h.Read()
	switch {
	case errors.Is(err, ledger.ErrNewer):
		return verdict.UsageErrorf("%w", err)
	case err == nil && e != nil && e.Life != provider.Removed:
		return c.removeBy(ctx, h.Write, e)
	}
	return c.downByTags(ctx, name, h.Write, err)
}

// downByTags removes a cluster of which the ledger says nothing: unread is why, if it
// should.
func (c *Clusters) downByTags(ctx context.Context, name string, write func(*provider.Entry) error, unread error) error {
	e, err := c.adopt(ctx, name)
	switch {
	case err != nil:
		return errors.Join(unread, err)
	case e != nil:
		return c.removeBy(ctx, write, e)
	case unread != nil:
		return fmt.Errorf("%w: nothing of that name carries our tags, so the file can be removed", unread)
	}
	c.tellf("cluster %s: there is none", name)
	return nil
}

func (c *Clusters) removeBy(ctx context.Context, write func(*provider.Entry) error, e *provider.Entry) error {
	p, err := c.Provider(e.Plan.Provider)
	if err != nil {
		return err
	}
	return c.remove(ctx, p, write, e)
}

// DownRun removes all clusters of a run but those that are kept to be looked at.
func (c *Clusters) DownRun(ctx context.Context, run string) error {
	all, err := c.List(ctx)
	faults := []error{err}
	for _, k := range all {
		if k.Run == run && !k.Kept && k.State != provider.Gone {
			faults = append(faults, c.Down(ctx, k.Name))
		}
	}
	return errors.Join(faults...)
}

// adopt returns what the tags say of a cluster that no ledger knows, or nil where
// there is nothing. What is not ours is refused.
func (c *Clusters) adopt(ctx context.Context, name string) (*provider.Entry, error) {
	for _, p := range c.Providers {
		found, err := c.find(ctx, p, name)
		if err != nil {
			return nil, err
		}
		if found != nil {
			return c.entryOf(p, found), nil
		}
	}
	for _, p := range c.Providers {
		foreign, err := p.Foreign(ctx, name)
		if err != nil {
			return nil, err
		}
		if foreign != "" {
			return nil, verdict.UsageErrorf("cluster %s: op-readiness did not make what is there (%s), and leaves it alone", name, foreign)
		}
	}
	return nil, nil
}

// entryOf is what a ledger would say of a cluster that its tags tell of.
func (c *Clusters) entryOf(p provider.Provider, f *provider.Found) *provider.Entry {
	return &provider.Entry{
		Life: provider.Up, Created: c.now(), Kubeconfig: f.Kubeconfig, Context: f.Context,
		Plan: provider.Plan{
			Provider: p.Name(), Teardown: teardown,
			Request: provider.Request{
				Name: f.Name, Owner: f.Owner, Run: f.Run, Expires: f.Expires, KubernetesVersion: f.KubernetesVersion,
				LinuxNodes: f.LinuxNodes, WindowsNodes: f.WindowsNodes, WindowsVersion: f.WindowsVersion,
			},
		},
	}
}

// remove removes the cluster of e, and sees that it is gone; write keeps e.
func (c *Clusters) remove(ctx context.Context, p provider.Provider, write func(*provider.Entry) error, e *provider.Entry) error {
	e.Life = provider.Deleting
	if err := write(e); err != nil {
		return err
	}
	if child := e.Child; child != nil {
		if err := process.End(ctx, child.PID, child.Started); err != nil {
			return &LeftError{e.Plan.Name, "the process that makes it", err}
		}
	}
	if err := p.Down(ctx, e); err != nil {
		return c.left(ctx, e, err)
	}
	if found, err := c.find(ctx, p, e.Plan.Name); err != nil || found != nil {
		return c.left(ctx, e, errors.Join(err, errors.New("it is still there")))
	}
	for _, given := range e.Published {
		if err := kubeconfig.Withdraw(e.Context, given); err != nil {
			return &LeftError{e.Plan.Name, "its context in " + given.File, err}
		}
	}
	e.Life, e.Ended = provider.Removed, c.now()
	return write(e)
}

// left says what remains of a cluster that could not be removed.
func (c *Clusters) left(ctx context.Context, e *provider.Entry, err error) error {
	if ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	return &LeftError{e.Plan.Name, strings.Join(e.Plan.Objects, "; "), err}
}
