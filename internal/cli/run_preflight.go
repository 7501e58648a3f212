package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/lease"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/preflight"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/preflight/probe"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// What --preflight can be.
const (
	preflightRefuse = "refuse"
	preflightWarn   = "warn"
	preflightOff    = "off"
)

// gather reads the facts that the run depends on, and those that tell whether it
// can work. It fails where it cannot, unless that is only to be a warning.
func (o *runOptions) gather(ctx context.Context, s *Surroundings, c *cluster.Cluster, m *result.Manifest) (*preflight.Facts, error) {
	if o.Preflight == preflightOff {
		return preflight.GatherForRun(ctx, c)
	}
	facts, err := preflight.Gather(ctx, c)
	if err != nil {
		return nil, err
	}
	facts.Kubectl, facts.Provider = m.Kubectl, o.Provider
	facts.Steer = o.Steer
	facts.RuntimeClass = o.RuntimeClass
	facts.Declared, facts.RunID, facts.Catalogues = m.Declared, m.RunID, specs.Catalogues()
	for purpose, needed := range map[preflight.Purpose]bool{
		preflight.ForAdditional: o.Additional,
		preflight.ForSteering:   o.Steer == steerAuto || o.Steer == steerPolicy,
		preflight.ForLock:       o.Lock,
	} {
		if !needed {
			facts.NotNeeded = append(facts.NotNeeded, purpose)
		}
	}
	if err := addStandard(s, facts, o.SpecDir); err != nil {
		return nil, err
	}
	if o.Preflight == preflightRefuse {
		// Before minutes go by for a binary, and before the lock is taken.
		if r := reportOf(c, facts); len(r.Refusing()) > 0 {
			return nil, o.tell(s, r)
		}
	}
	return facts, nil
}

// addStandard adds the cases that findings are held against.
func addStandard(s *Surroundings, facts *preflight.Facts, dir string) error {
	set, err := loadSpecs(s, dir)
	if err != nil {
		return err
	}
	version := facts.Version.Value
	if _, err := specs.ParseVersion(version); err != nil {
		version = newestVersion()
	}
	if facts.Standard, err = set.For(version); err != nil {
		return fmt.Errorf("choosing the standard's cases for Kubernetes %s: %w", version, err)
	}
	return nil
}

func reportOf(c *cluster.Cluster, facts *preflight.Facts) *preflight.Report {
	r := preflight.NewReport(c.Server, preflight.Check(facts))
	r.Time, r.Probes = facts.Now, facts.Probes.Results
	return r
}

// inspect lets pods find out what the API does not show, says what was found,
// and returns it for the results folder; nil where there is no preflight. The
// cluster lock is held: probes do not meet the tests of others.
func (o *runOptions) inspect(ctx context.Context, s *Surroundings, c *cluster.Cluster, facts *preflight.Facts, binary *e2e.Binary, p *result.Plan, m *result.Manifest) (*preflight.Report, error) {
	if o.Preflight == preflightOff {
		return nil, nil
	}
	if o.Probe && needsContainers(p, o.Shard.number) {
		err := runProbes(ctx, s, c, facts, probing{
			id: m.RunID, binary: binary, repoList: o.RepoList, credentials: o.DockerConfig != "",
			dnsDomain: o.DNSDomain, limit: o.ProbeTimeout,
			wants: func(capability string) bool { return planNeeds(p, o.Shard.number, capability) }, class: o.RuntimeClass,
		})
		if err != nil {
			return nil, err
		}
	}
	if o.Lock {
		// The run has it by now, and whoever was seen before is gone.
		facts.Held = preflight.Read[*lease.HeldError]{}
	}
	r := reportOf(c, facts)
	return r, o.tell(s, r)
}

// tell writes a short report; the error says that the run is refused.
func (o *runOptions) tell(s *Surroundings, r *preflight.Report) error {
	if err := r.WriteShort(s.Stderr); err != nil {
		return fmt.Errorf("writing the preflight's findings: %w", err)
	}
	if s.Getenv("GITHUB_ACTIONS") == "true" {
		if err := annotate(s, s.Stderr, func(w io.Writer) error { return annotateFindings(w, r) }); err != nil {
			return fmt.Errorf("writing annotations: %w", err)
		}
	}
	refusing := r.Refusing()
	if len(refusing) == 0 || o.Preflight != preflightRefuse {
		return nil
	}
	var ids []string
	for i := range refusing {
		ids = append(ids, refusing[i].ID)
	}
	return fmt.Errorf("the run cannot work on this cluster, for %s: fix that, see 'op-readiness preflight' for all findings, or run all the same with --preflight=%s", strings.Join(ids, ", "), preflightWarn)
}

// ofShard calls f for the cases of which tests are in the shard.
func ofShard(p *result.Plan, shard int, f func(*result.PlannedCase) bool) bool {
	mine := map[string]bool{}
	for i := range p.Tests {
		if p.Tests[i].Shard == shard {
			for _, id := range p.Tests[i].Cases {
				mine[id] = true
			}
		}
	}
	return slices.ContainsFunc(p.Cases, func(c result.PlannedCase) bool { return mine[c.ID] && f(&c) })
}

func needsContainers(p *result.Plan, shard int) bool {
	return ofShard(p, shard, func(c *result.PlannedCase) bool { return c.NeedsContainers() })
}

func planNeeds(p *result.Plan, shard int, capability string) bool {
	return ofShard(p, shard, func(c *result.PlannedCase) bool {
		return slices.Contains(c.Needs.Condition, capability) || slices.Contains(c.Needs.Means, capability)
	})
}

// probing says what pods are to find out.
type probing struct {
	id          string
	binary      *e2e.Binary
	repoList    string
	credentials bool
	dnsDomain   string
	limit       time.Duration
	// wants reports whether it matters that there is a capability, class is a
	// runtime class that does; "" stands for none.
	wants func(capability string) bool
	class string
}

// probePatience is how long a pod may be without a node or an image: longer than
// it takes a kubelet to try a pull three times.
const probePatience = time.Minute

// runProbes adds to the facts what pods find out. The error is that of an
// interrupt; what else goes wrong becomes unknown.
func runProbes(ctx context.Context, s *Surroundings, c *cluster.Cluster, facts *preflight.Facts, o probing) error {
	facts.Probes = preflight.Probes{Made: true, Credentials: o.credentials}
	targets := facts.ProbeTargets()
	if len(targets) == 0 {
		return nil
	}
	images, err := o.binary.Images(ctx, o.repoList)
	if ctx.Err() != nil {
		return interrupted(ctx, err)
	}
	var chosen probe.Images
	if err == nil {
		chosen, err = probe.Choose(images)
	}
	if facts.Probes.Err = err; err != nil {
		return nil //nolint:nilerr // a finding tells it
	}
	without := func(capability string) bool {
		return slices.Contains(facts.Declared.Without, capability) || !o.wants(capability)
	}
	options := probe.Options{
		ID: o.id, Targets: targets, Images: chosen,
		// With a dot at the end no search domain is tried, which Windows and
		// Linux do in different ways.
		Name:          "kubernetes.default.svc." + strings.TrimSuffix(cmp.Or(o.dnsDomain, "cluster.local"), ".") + ".:443",
		HostProcess:   !without("hpc"),
		NetworkPolicy: !without("netpol"),
		Limit:         o.limit,
		Patience:      probePatience,
		Note:          func(text string) { fmt.Fprintln(s.Stderr, text) },
	}
	if !facts.Declared.AirGapped && !without("internet") {
		options.Outside = probe.Outside
	}
	for _, class := range facts.IsolationClasses() {
		if class == o.class || o.class == "" && (class != specs.HyperVClass || !without("hyperv")) {
			options.RuntimeClasses = append(options.RuntimeClasses, class)
		}
	}
	results, err := probe.Run(ctx, c.Client(), options)
	if ctx.Err() != nil {
		return interrupted(ctx, err)
	}
	facts.Probes.Results, facts.Probes.Err = results, err
	return nil
}
