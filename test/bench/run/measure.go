//go:build linux || darwin

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
)

// help measures what --help costs, as the medians of the wall time of many
// starts, the two programs by turns.
func (b *bench) help(ctx context.Context) ([]row, error) {
	const rounds = 20
	var ours, theirs []time.Duration
	tell("op-readiness --help, %d times", rounds)
	for range rounds {
		for _, program := range []struct {
			took *[]time.Duration
			args []string
		}{{&ours, []string{b.tool, "--help"}}, {&theirs, []string{b.empty}}} {
			began := time.Now()
			if _, err := output(ctx, []int{0}, program.args[0], program.args[1:]...); err != nil {
				return nil, err
			}
			*program.took = append(*program.took, time.Since(began))
		}
	}
	more := median(ours) - median(theirs)
	milliseconds := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond)) }
	return []row{{
		what: "--help, against an empty Go program", ours: milliseconds(median(ours)), theirs: milliseconds(median(theirs)),
		ratio: "+" + milliseconds(more), target: fmt.Sprintf("< +%v", wantHelp), ok: more < wantHelp,
	}}, nil
}

func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}

// dryRun measures resolving and dry-running the whole standard.
func (b *bench) dryRun(ctx context.Context) ([]row, error) {
	var plan result.Plan
	tell("the standard, resolved and dry-run by op-readiness")
	ours, err := b.measure(func() error {
		out, err := output(ctx, []int{verdict.ExitReady}, b.tool, "run", "--dry-run", "--e2e-binary", b.e2e, "-o", "json")
		if err == nil {
			err = json.Unmarshal([]byte(out), &plan)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	cases := slices.DeleteFunc(plan.Cases, func(c result.PlannedCase) bool { return len(c.TestIDs) == 0 })
	tell("the %d cases that have tests, one process each; about 3 s a case", len(cases))
	theirs, err := b.measure(func() error {
		for i := range cases {
			args := append(b.focus(&cases[i]), "--ginkgo.dry-run", "--report-dir="+filepath.Join(b.dir, "dry"), "--report-prefix="+cases[i].ID)
			if _, err := output(ctx, []int{0}, b.e2e, args...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	wall := compare(fmt.Sprintf("dry run of %d cases: wall time", len(cases)), ours.wall, theirs.wall)
	wall.target, wall.ok = fmt.Sprintf(">= %.0fx", wantDryRun), theirs.wall.Seconds() >= wantDryRun*ours.wall.Seconds()
	return []row{wall, processes("dry run: e2e.test processes", ours.starts, theirs.starts)}, nil
}

// focus is how the reference implementation selects the tests of a case.
func (b *bench) focus(c *result.PlannedCase) []string {
	var focus, skip []string
	for _, s := range c.Tests {
		focus = append(focus, s.Focus)
		if s.Skip != "" {
			skip = append(skip, s.Skip)
		}
	}
	args := []string{"--node-os-distro=windows", "--provider=skeleton", "--kubeconfig=" + b.kube, "--ginkgo.v", "--ginkgo.no-color", "--ginkgo.focus=" + strings.Join(focus, "|")}
	if len(skip) > 0 {
		args = append(args, "--ginkgo.skip="+strings.Join(skip, "|"))
	}
	return args
}

// quick are additional cases that ask only the API server, and take less than
// 15 s each.
var quick = []string{
	"extra-network-endpointslice-objects",
	"extra-network-service-status",
	"extra-concurrent-deployment-lifecycle",
	"extra-concurrent-deployment-rolling-update",
	"extra-concurrent-deployment-recreate",
	"extra-concurrent-replicaset",
	"extra-concurrent-daemonset",
	"extra-scheduling-gates",
	"extra-scheduling-disruption-budget",
}

// real measures a run on the simulated cluster.
func (b *bench) real(ctx context.Context) ([]row, error) {
	dir := filepath.Join(b.dir, "results")
	tell("%d cases on a simulated cluster, by op-readiness; about a minute", len(quick))
	ours, err := b.measure(func() error {
		_, err := output(ctx, []int{verdict.ExitInconclusive}, // no requirement is among them
			b.tool, "run", "--kubeconfig", b.kube, "--e2e-binary", b.e2e, "--report-dir", dir, "--case", strings.Join(quick, ","))
		return err
	})
	if err != nil {
		return nil, err
	}
	done, err := result.Load(dir)
	if err != nil {
		return nil, err
	}
	oursInTests, err := inTests(done)
	if err != nil {
		return nil, err
	}
	tell("the same, one process a case; about a minute and a half")
	var theirsInTests time.Duration
	theirs, err := b.measure(func() error {
		for i := range done.Plan.Cases {
			c := &done.Plan.Cases[i]
			out, err := output(ctx, []int{0}, b.e2e, append(b.focus(c), "--report-dir="+filepath.Join(b.dir, "real"), "--report-prefix="+c.ID)...)
			if err != nil {
				return err
			}
			heard := passes{}
			o := e2e.NewOutput(names(done.Plan, c), &heard)
			_, _ = o.Write([]byte(out)) // never fails
			o.Close()
			if heard.count != len(c.TestIDs) {
				return fmt.Errorf("%s: %d of %d tests passed", c.ID, heard.count, len(c.TestIDs))
			}
			theirsInTests += heard.took
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	outside := compare("run: time outside tests", ours.wall-oursInTests, theirs.wall-theirsInTests)
	outside.target, outside.ok = "less", ours.wall-oursInTests < theirs.wall-theirsInTests
	count := processes("run: e2e.test processes", ours.starts, theirs.starts)
	count.target, count.ok = "fewer", ours.starts < theirs.starts
	return []row{
		compare(fmt.Sprintf("run of %d cases: wall time", len(quick)), ours.wall, theirs.wall),
		compare("run: time in tests", oursInTests, theirsInTests),
		outside,
		count,
	}, nil
}

// inTests is how long the tests of a run took, all of which must have passed.
func inTests(run *result.Run) (time.Duration, error) {
	var total time.Duration
	for i := range run.Plan.Tests {
		t := &run.Plan.Tests[i]
		attempts := run.Attempts[t.ID]
		if len(attempts) != 1 || attempts[0].State != result.TestPassed {
			return 0, fmt.Errorf("%s did not pass at once: %+v", t.Name, attempts)
		}
		total += time.Duration(attempts[0].Seconds * float64(time.Second))
	}
	return total, nil
}

func names(p *result.Plan, c *result.PlannedCase) []string {
	var out []string
	for _, id := range c.TestIDs {
		out = append(out, p.Test(id).Name)
	}
	return out
}

// passes is an [e2e.Listener] that counts tests that passed.
type passes struct {
	count int
	took  time.Duration
}

func (p *passes) Finished(f e2e.Finished) {
	if f.State == result.TestPassed {
		p.count++
		p.took += time.Duration(f.Seconds * float64(time.Second))
	}
}

func (p *passes) Started(string)              {}
func (p *passes) SuiteRun(string)             {}
func (p *passes) Destroyed(string, time.Time) {}
func (p *passes) SuiteFailed(string, string)  {}
