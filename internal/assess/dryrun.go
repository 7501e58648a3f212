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
	// Tests are those that would run.
	Tests []*result.PlannedTest
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
	dry.Tests = dry.tests(max(r.Shard, 1))
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

// bySuite returns the names of tests of e2e.test and of op-readiness.test, each once.
func bySuite(tests []*result.PlannedTest) (upstream, own []string) {
	for _, t := range tests {
		names := &upstream
		if specs.SuiteOf(t.Name) == specs.OpReadiness {
			names = &own
		}
		if !slices.Contains(*names, t.Name) {
			*names = append(*names, t.Name)
		}
	}
	return upstream, own
}

// tests are those of a shard of which a case is not excused.
func (d *Dry) tests(shard int) (tests []*result.PlannedTest) {
	testable := map[string]bool{}
	for i := range d.Plan.Cases {
		testable[d.Plan.Cases[i].ID] = d.Excuse(&d.Plan.Cases[i]) == ""
	}
	for i := range d.Plan.Tests {
		t := &d.Plan.Tests[i]
		if t.Shard == shard && slices.ContainsFunc(t.Cases, func(id string) bool { return testable[id] }) {
			tests = append(tests, t)
		}
	}
	return tests
}
