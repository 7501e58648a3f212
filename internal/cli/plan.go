package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/windows-op-readiness/windows-op-readiness/internal/assess"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/plan"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/actions"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Output formats of 'plan' beside those of lists.
const (
	formatGitHubMatrix = "github-matrix"
	formatCommand      = "command"
)

type planCommandOptions struct {
	planOptions
	Output string

	// forRun takes the flags of 'run', which are only checked.
	forRun runOptions
}

func newPlanCommand(s *Surroundings) *cobra.Command {
	var o planCommandOptions
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show what a run would do, or cut it into shards",
		Long: `Show what a run would do: the cases of the standard, resolved to the exact
tests of e2e.test, in the order in which they would run, cut into shards by how
long they are expected to take. No cluster is needed.

For a Kubernetes version whose list of tests comes with this program, e2e.test
is not needed either.

Outputs: table, json (the plan, as a run stores it), markdown, csv,
github-matrix (for strategy.matrix), command (the command lines of the test
binaries that run the plan by hand).

All flags of 'run' are taken, so that the same command line can be looked at first;
those that change neither the plan nor what is expected of it are only checked. Exit code 3 means that the
plan has no test.`,
		Example: `  op-readiness plan --category Core.Network
  op-readiness plan --shards 4 -o github-matrix
  op-readiness plan --kubernetes-version v1.35.4 -o command`,
		Args: flagForArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			if err := o.checkRun(); err != nil {
				return err
			}
			formats := []string{string(report.FormatTable), string(report.FormatJSON), string(report.FormatMarkdown), string(report.FormatCSV), formatGitHubMatrix, formatCommand}
			if !slices.Contains(formats, o.Output) {
				return usageErrorf("--output: unknown format %q: use %s", o.Output, strings.Join(formats, ", "))
			}
			p, err := o.make(cmd, s)
			if err != nil {
				return err
			}
			if o.Output == formatCommand {
				err = o.writeCommands(s.Stdout, p)
			} else {
				err = writePlan(s.Stdout, p, o.Output, o.forRun.Procs)
			}
			if err != nil || len(p.Tests) > 0 {
				return err
			}
			return exitWith(report.WriteIdle(s.Stderr, p, 1, func(*result.PlannedCase) string { return "" }))
		},
	}
	o.addFlags(cmd, binaries.Pinned)
	cmd.Flags().StringVarP(&o.Output, "output", "o", string(report.FormatTable), "table, json, markdown, csv, github-matrix or command")
	o.addRunFlags(cmd)
	return cmd
}

// addRunFlags adds the flags of 'run' that 'plan' has no use for, hidden.
func (o *planCommandOptions) addRunFlags(cmd *cobra.Command) {
	run := &cobra.Command{}
	o.forRun.addFlags(run)
	run.Flags().VisitAll(func(f *pflag.Flag) {
		if cmd.Flags().Lookup(f.Name) == nil {
			f.Hidden = f.Name != "procs"
			cmd.Flags().AddFlag(f)
		}
	})
}

// checkRun checks what the flags of 'run' say.
func (o *planCommandOptions) checkRun() error {
	o.forRun.planOptions = o.planOptions
	if o.forRun.Shard.number > 0 {
		if err := o.forRun.cut(); err != nil {
			return err
		}
		o.Shards = o.forRun.Shards
	}
	err := o.forRun.validate()
	o.Shared = o.forRun.Shared
	return err
}

// make makes the plan: with the binary that was named, else from the lists
// that come with this program, else with a binary from the cache.
func (o *planCommandOptions) make(cmd *cobra.Command, s *Surroundings) (*result.Plan, error) {
	if o.E2EBinary != "" && !cmd.Flags().Changed("kubernetes-version") {
		o.KubernetesVersion = ""
	}
	planning, err := o.planning(s)
	if err != nil {
		return nil, err
	}
	if err := planning.Lint(cmd.Context()); err != nil {
		return nil, interrupted(cmd.Context(), err)
	}
	if o.E2EBinary == "" && slices.Contains(specs.Catalogues(), o.KubernetesVersion) {
		tests, err := specs.Catalogue(o.KubernetesVersion)
		if err != nil {
			return nil, err
		}
		return planning.Plan(tests)
	}
	_, made, err := planning.Resolve(cmd.Context(), o.KubernetesVersion)
	return made, interrupted(cmd.Context(), err)
}

// writeCommands writes the command lines that run the plan by hand.
func (o *planCommandOptions) writeCommands(w io.Writer, p *result.Plan) error {
	named := map[specs.Suite]string{specs.Kubernetes: absolute(o.E2EBinary), specs.OpReadiness: absolute(o.SuiteBinary)}
	return e2e.WriteCommands(w, p, named, func(suite specs.Suite) []string {
		version := p.KubernetesVersion
		if suite == specs.OpReadiness {
			version = assess.SuiteVersion(version)
		}
		fetch := []string{"op-readiness", "e2e", "fetch", "--kubernetes-version", version}
		if o.Source != string(binaries.Auto) {
			fetch = append(fetch, "--source", o.Source)
		}
		if o.CacheDir != "" {
			fetch = append(fetch, "--cache-dir", absolute(o.CacheDir))
		}
		return append(fetch, suite.Program())
	})
}

// writePlan writes a plan, and how long it is expected to take with so many tests at a
// time in each shard; 0 is what fits the cluster, between one and the most.
func writePlan(w io.Writer, p *result.Plan, format string, procs int) error {
	if format == formatGitHubMatrix {
		return actions.WriteMatrix(w, p)
	}
	t := report.Plan(p)
	if err := t.Write(w, report.Format(format)); err != nil || format != string(report.FormatTable) {
		return err
	}
	own := 0
	for i := range p.Tests {
		if specs.SuiteOf(p.Tests[i].Name) == specs.OpReadiness {
			own++
		}
	}
	fmt.Fprintf(w, "\n%s, %s of e2e.test %s", text.Count(len(p.Cases), "case"), text.Count(len(p.Tests)-own, "test"), p.KubernetesVersion)
	if own > 0 {
		fmt.Fprintf(w, " and %d of op-readiness.test", own)
	}
	fmt.Fprintln(w)
	for i, load := range plan.Loads(p) {
		if p.EmptyShard(i + 1) {
			fmt.Fprintf(w, "shard %d of %d: empty, with nothing to run\n", i+1, p.Shards)
			continue
		}
		fmt.Fprintf(w, "shard %d of %d: %v of tests\n", i+1, p.Shards, load.Round(time.Second))
	}
	one := *p
	one.Shards, one.Tests = 1, slices.Clone(p.Tests)
	for i := range one.Tests {
		one.Tests[i].Shard = 1
	}
	where := ""
	switch {
	case p.Shared:
		where = fmt.Sprintf(" in %d shards that share a cluster and steer by policy", p.Shards)
	case p.Shards > 1:
		where = fmt.Sprintf(" in %d shards with a cluster each", p.Shards)
	}
	ways := []int{procs}
	if procs == 0 {
		ways = []int{1, assess.MaxProcs}
	}
	for _, procs := range ways {
		fmt.Fprintf(w, "expected with %s at a time: %v%s", text.Count(procs, "test"), plan.Wall(p, procs).Round(time.Second), where)
		if p.Shards > 1 {
			fmt.Fprintf(w, ", %v in one", plan.Wall(&one, procs).Round(time.Second))
		}
		fmt.Fprintln(w)
	}
	return nil
}
