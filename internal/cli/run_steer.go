package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/run"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/lease"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/steer"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// steering finds out how pods can be put where cases want them, and notes it
// in the manifest. Also where they cannot, what a killed run left in force is
// taken away.
func (o *runOptions) steering(ctx context.Context, s *Surroundings, c *cluster.Cluster, m *result.Manifest, l *lease.Lock) (run.Steering, error) {
	m.Steering = ""
	member := steer.Member{
		RunID: m.RunID, Shard: m.Shard, ID: m.RunID + "/" + randomHex(),
		Note: func(text string) { fmt.Fprintln(s.Stderr, text) },
		// Without the lock, too, what a run beside this one needs stays.
		Peers: func(ctx context.Context) ([]string, error) { return lease.Living(ctx, c.Client(), time.Now()) },
	}
	if l != nil {
		member.ID, member.Dead, member.Peers = l.ID(), l.Dead, l.Peers
	}
	var way run.Steering
	var err error
	switch o.Steer {
	case steerCordon:
		m.Steering = result.SteeringCordon
		way, err = steer.NewCordon(ctx, c.Client(), c.Dynamic(), member)
	case steerOff:
		way, err = steer.NewNone(ctx, c.Client(), c.Dynamic(), member)
	default:
		var policy *steer.Policy
		policy, err = steer.New(ctx, c.Client(), c.Dynamic(), member)
		switch {
		case errors.Is(err, steer.ErrNotServed) && o.Steer == steerAuto:
			way, err = steer.NewNone(ctx, c.Client(), c.Dynamic(), member)
		case errors.Is(err, steer.ErrNotServed):
			return nil, usageErrorf("--steer=%s: %w; --steer=%s does without, for some of the cases", o.Steer, err, steerCordon)
		case err == nil:
			way, m.Steering = policy, policy.String()
		}
	}
	if err != nil {
		return nil, err
	}
	o.warnOfSteering(s, m)
	return way, nil
}

// warnOfSteering says beforehand what pods will miss that no policy steers.
func (o *runOptions) warnOfSteering(s *Surroundings, m *result.Manifest) {
	if m.Steering == "" && o.Steer == steerAuto {
		fmt.Fprintf(s.Stderr, "warning: pods are not steered: %v: cases that need it are not tested; --steer=%s does without, for some of them\n", steer.ErrNotServed, steerCordon)
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
		fmt.Fprintf(s.Stderr, "warning: every Windows node is tainted (%s), and without the admission policy pods get no toleration: cases whose pods select Windows are not tested. Use --steer=%s (Kubernetes 1.36), or take the taint off while the run goes on\n",
			strings.Join(slices.Compact(taints), ", "), steerPolicy)
	}
}

// nonBlockingTaints are the keys of taints of nodes that the suite does not wait
// for: also that of nodes which the run itself cordons, and those that pods
// tolerate by its policy.
func (o *runOptions) nonBlockingTaints(way run.Steering) []string {
	keys := slices.Clone(o.NonBlockingTaints)
	var own []string
	switch way := way.(type) {
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
