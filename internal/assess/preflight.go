package assess

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/lease"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/preflight"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// gather reads the facts that the run depends on, and those that tell whether it
// can work. It fails where it cannot, unless that is only to be a warning.
func (p *Prepared) gather(ctx context.Context) error {
	r := &p.req
	var err error
	if r.Preflight == PreflightOff {
		p.facts, err = preflight.GatherForRun(ctx, p.cluster)
		return err
	}
	if p.facts, err = preflight.Gather(ctx, p.cluster); err != nil {
		return err
	}
	facts, steer := p.facts, p.settings.Steer
	facts.Kubectl, facts.Provider = p.Manifest.Kubectl, r.provider()
	facts.Steer = steer
	facts.RuntimeClass = r.RuntimeClass
	facts.Declared, facts.RunID, facts.Catalogues = p.Manifest.Declared, p.Manifest.RunID, specs.Catalogues()
	for purpose, needed := range map[preflight.Purpose]bool{
		preflight.ForAdditional: r.Selection.Additional,
		preflight.ForSteering:   steer == SteerAuto || steer == SteerPolicy,
		preflight.ForLock:       !p.settings.Unlocked,
	} {
		if !needed {
			facts.NotNeeded = append(facts.NotNeeded, purpose)
		}
	}
	if err := AddStandard(facts, &r.Planning); err != nil {
		return err
	}
	if r.Preflight == PreflightRefuse {
		// Before minutes go by for a binary, and before the lock is taken.
		if found := preflight.ReportOf(p.cluster.Server, facts); len(found.Refusing()) > 0 {
			return p.found(found)
		}
	}
	return nil
}

// AddStandard adds the cases that findings are held against.
func AddStandard(facts *preflight.Facts, from *Planning) error {
	set, err := from.specs()
	if err != nil {
		return err
	}
	version := facts.Version.Value
	if _, err := specs.ParseVersion(version); err != nil {
		version = NewestVersion()
	}
	if facts.Standard, err = set.For(version); err != nil {
		return fmt.Errorf("choosing the standard's cases for Kubernetes %s: %w", version, err)
	}
	return nil
}

// inspect lets pods find out what the API does not show, says what was found,
// and returns it for the results folder; nil where there is no preflight. The
// cluster lock is held: probes do not meet the tests of others.
func (p *Prepared) inspect(ctx context.Context) (*preflight.Report, error) {
	r := &p.req
	if r.Preflight == PreflightOff {
		return nil, nil
	}
	if !r.NoProbe && p.needsContainers() {
		err := preflight.RunProbes(ctx, p.cluster.Client(), p.facts, preflight.Probing{
			ID: p.Manifest.RunID, Images: p.binary, RepoList: p.settings.RepoList, Credentials: p.settings.DockerConfig != "",
			DNSDomain: p.settings.DNSDomain, Limit: r.ProbeLimit, Wants: p.needs, Class: r.RuntimeClass, Note: r.note,
		})
		if err != nil {
			return nil, err
		}
	}
	if !p.settings.Unlocked {
		// The run has it by now, and whoever was seen before is gone.
		p.facts.Held = preflight.Read[*lease.HeldError]{}
	}
	found := preflight.ReportOf(p.cluster.Server, p.facts)
	return found, p.found(found)
}

// found hands findings on; the error says that the run is refused.
func (p *Prepared) found(found *preflight.Report) error {
	if p.req.Found != nil {
		if err := p.req.Found(found); err != nil {
			return err
		}
	}
	refusing := found.Refusing()
	if len(refusing) == 0 || p.req.Preflight != PreflightRefuse {
		return nil
	}
	var ids []string
	for i := range refusing {
		ids = append(ids, refusing[i].ID)
	}
	return fmt.Errorf("the run cannot work on this cluster, for %s: fix that, see 'op-readiness preflight' for all findings, or run all the same with --preflight=%s", strings.Join(ids, ", "), PreflightWarn)
}

// ofShard reports whether f holds for a case of which tests are in the shard.
func (p *Prepared) ofShard(f func(*result.PlannedCase) bool) bool {
	mine := map[string]bool{}
	for i := range p.Plan.Tests {
		if p.Plan.Tests[i].Shard == p.Manifest.Shard {
			for _, id := range p.Plan.Tests[i].Cases {
				mine[id] = true
			}
		}
	}
	return slices.ContainsFunc(p.Plan.Cases, func(c result.PlannedCase) bool { return mine[c.ID] && f(&c) })
}

func (p *Prepared) needsContainers() bool {
	return p.ofShard(func(c *result.PlannedCase) bool { return c.NeedsContainers() })
}

func (p *Prepared) needs(capability string) bool {
	return p.ofShard(func(c *result.PlannedCase) bool {
		return slices.Contains(c.Needs.Condition, capability) || slices.Contains(c.Needs.Means, capability)
	})
}
