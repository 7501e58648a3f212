package assess

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/run"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/lease"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/steer"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// lock is the cluster lock as the engine wants it.
type lock struct {
	*lease.Lock
	wait bool
	told bool // why it could not be released
}

// Release gives the lock up. Who calls it again tries again, and is not told once
// more why that fails.
func (l *lock) Release(ctx context.Context) error {
	err := l.Lock.Release(ctx)
	if err == nil || l.told {
		return nil
	}
	l.told = true
	return err
}

func (l *lock) Hold(ctx context.Context, phase specs.Phase, conditions result.RunConditions) error {
	return l.Acquire(ctx, lease.Group{Phase: phase, Conditions: conditions}, l.wait)
}

// take takes the cluster for the first tests of the run, before anything is
// written: a run that is refused leaves no results folder behind, and one that
// goes on stays as it was.
func (p *Prepared) take(ctx context.Context) error {
	if err := p.makeLock(); err != nil {
		return err
	}
	if err := p.steer(ctx); err != nil {
		return err
	}
	// Which tests can run depends on how pods are steered.
	if p.Due = run.Tests(p.Plan, p.Manifest); p.Previous != nil {
		p.Due = run.Due(p.Plan, p.Manifest, p.Previous, p.settings.Retries)
	}
	if p.lock == nil || len(p.Due) == 0 {
		return nil
	}
	return p.lock.Hold(ctx, p.Due[0].Phase, run.Everywhere(p.steering, p.Due[0].Conditions))
}

// makeLock makes the lock that keeps other runs off the cluster, where one is
// wanted, and notes in the manifest which member of it this is.
func (p *Prepared) makeLock() error {
	if p.settings.Unlocked {
		return nil
	}
	// A connection of its own: renewals must not queue behind other requests.
	beside, err := p.cluster.Beside()
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	m := p.Manifest
	holder := lease.Holder{RunID: m.RunID, Shard: fmt.Sprintf("%d/%d", m.Shard, p.Plan.Shards), Host: host}
	p.held = lease.New(beside.Client(), holder, lease.Options{
		Note: p.req.note,
		Dead: slices.Clone(m.Locks), // this execution has their results folder
	})
	m.Locks = append(m.Locks, p.held.ID())
	p.lock = &lock{Lock: p.held, wait: p.req.Wait}
	return nil
}

// release gives the lock up where the engine has not done so.
func (p *Prepared) release() {
	if p.lock == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := p.lock.Release(ctx); err != nil {
		p.req.note(err.Error())
	}
	p.lock = nil
}

// steer finds out how pods can be put where cases want them, and notes it in
// the manifest. Also where they cannot, what a killed run left in force is taken
// away.
func (p *Prepared) steer(ctx context.Context) error {
	m, c := p.Manifest, p.cluster
	m.Steering = ""
	member := steer.Member{
		RunID: m.RunID, ID: m.RunID + "/" + RandomHex(),
		Note: p.req.note,
		// Without the lock, too, what a run beside this one needs stays.
		Peers: func(ctx context.Context) ([]string, error) { return lease.Living(ctx, c.Client(), time.Now()) },
	}
	if member.Unlocked = p.held == nil; p.held != nil {
		member.ID, member.Dead, member.Peers = p.held.ID(), p.held.Dead, p.held.Peers
	}
	var err error
	switch way := p.settings.Steer; way {
	case SteerCordon:
		m.Steering = result.SteeringCordon
		p.steering, err = steer.NewCordon(ctx, c.Client(), c.Dynamic(), member)
	case SteerOff:
		p.steering, err = steer.NewNone(ctx, c.Client(), c.Dynamic(), member)
	default:
		var policy *steer.Policy
		policy, err = steer.New(ctx, c.Client(), c.Dynamic(), member)
		switch {
		case errors.Is(err, steer.ErrNotServed) && way == SteerAuto:
			p.steering, err = steer.NewNone(ctx, c.Client(), c.Dynamic(), member)
		case errors.Is(err, steer.ErrNotServed):
			return verdict.UsageErrorf("--steer=%s: %w; --steer=%s does without, for some of the cases", way, err, SteerCordon)
		case err == nil:
			p.steering, m.Steering = policy, policy.String()
		}
	}
	if err != nil {
		return err
	}
	p.warnOfSteering()
	return nil
}

// warnOfSteering says beforehand what pods will miss that no policy steers.
func (p *Prepared) warnOfSteering() {
	m := p.Manifest
	if m.Steering == "" && p.settings.Steer == SteerAuto {
		p.req.notef("warning: pods are not steered: %v: cases that need it are not tested; --steer=%s does without, for some of them", steer.ErrNotServed, SteerCordon)
	}
	if m.Steering != "" && m.Steering != result.SteeringCordon {
		return
	}
	var taints []string
	windows := m.Cluster.Count(func(n *result.Node) bool { return n.OS == specs.Windows })
	tainted := m.Cluster.Count(func(n *result.Node) bool {
		if n.OS == specs.Windows && len(n.Taints) > 0 {
			taints = append(taints, n.Taints...)
			return true
		}
		return false
	})
	if tainted == windows && windows > 0 {
		slices.Sort(taints)
		p.req.notef("warning: every Windows node is tainted (%s), and without the admission policy pods get no toleration: cases whose pods select Windows are not tested. Use --steer=%s (Kubernetes 1.36), or take the taint off while the run goes on",
			strings.Join(slices.Compact(taints), ", "), SteerPolicy)
	}
}

// nonBlockingTaints are the keys of taints of nodes that the suite does not wait
// for: also that of nodes which the run itself cordons, and those that pods
// tolerate by its policy.
func (p *Prepared) nonBlockingTaints() []string {
	keys := slices.Clone(p.settings.NonBlockingTaints)
	var own []string
	switch way := p.steering.(type) {
	case *steer.Cordon:
		own = []string{corev1.TaintNodeUnschedulable}
	case *steer.Policy:
		own = way.Tolerates()
	}
	for _, key := range own {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}
