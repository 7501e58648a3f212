package assess

import (
	"context"
	"slices"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/preflight"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Dry is what a run would do.
type Dry struct {
	Plan *result.Plan
	// Tests are the names of those that would run.
	Tests []string
	// Excuse says why a case that has tests would not be tested; "" where it would.
	Excuse func(*result.PlannedCase) string
}

// DryRun resolves the plan of a new run, and asks e2e.test whether it would run
// just the tests of the shard that the declarations leave. Only with look, a
// cluster is read: for its version, and what a preflight finds.
func DryRun(ctx context.Context, req Request, look bool) (*Dry, error) {
	p := &Prepared{req: req, settings: req.Settings, Manifest: &result.Manifest{RunID: req.RunID, Declared: req.Declared}}
	r := &p.req
	if err := r.Lint(ctx); err != nil {
		return nil, err
	}
	version := r.KubernetesVersion
	if look && r.Preflight != PreflightOff {
		if err := p.connect(ctx); err != nil {
			return nil, err
		}
		if err := p.found(preflight.ReportOf(p.cluster.Server, p.facts)); err != nil {
			return nil, err
		}
		if v, err := specs.ParseVersion(p.Manifest.Cluster.ServerVersion); version == "" && err == nil {
			version = "v" + v.String()
		}
	}
	if version == "" {
		version = "v" + NewestVersion()
	}
	binary, made, err := r.Resolve(ctx, version)
	if err != nil {
		return nil, err
	}
	dry := &Dry{Plan: made, Excuse: func(c *result.PlannedCase) string { return verdict.Declared(c, &req.Declared) }}
	dry.Tests = dry.names(max(r.Shard, 1))
	upstream, own := bySuite(dry.Tests)
	if len(upstream) > 0 {
		if err := binary.DryRun(ctx, upstream); err != nil {
			return dry, err
		}
	}
	if len(own) > 0 {
		binary, err := r.OwnBinary(ctx, binary.Version)
		if err != nil {
			return dry, err
		}
		return dry, binary.DryRun(ctx, own)
	}
	return dry, nil
}

// bySuite parts names of tests into those of e2e.test and of op-readiness.test.
func bySuite(names []string) (upstream, own []string) {
	for _, name := range names {
		if specs.SuiteOf(name) == specs.OpReadiness {
			own = append(own, name)
		} else {
			upstream = append(upstream, name)
		}
	}
	return upstream, own
}

// names are those of the tests of a shard of which a case is not excused.
func (d *Dry) names(shard int) (names []string) {
	testable := map[string]bool{}
	for i := range d.Plan.Cases {
		testable[d.Plan.Cases[i].ID] = d.Excuse(&d.Plan.Cases[i]) == ""
	}
	for i := range d.Plan.Tests {
		t := &d.Plan.Tests[i]
		if t.Shard == shard && !slices.Contains(names, t.Name) && slices.ContainsFunc(t.Cases, func(id string) bool { return testable[id] }) {
			names = append(names, t.Name)
		}
	}
	return names
}
