package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/windows-op-readiness/windows-op-readiness/internal/assess"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/plan"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

func newReportCommand(s *Surroundings) *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use:   "report DIR",
		Short: "Judge a results folder again, and render it",
		Long: `Judge a results folder again, and render it: the verdict with its scope and the
count against the standard, a row per category, a row per case. The exit code is
that of the verdict, as 'run' has it.

Judged are the cases that the run had planned. With --specs current, or with
--spec-dir, they are those of the standard as this op-readiness has it, or of
your spec files: what ran and was observed is audited against what these ask,
the report says so and lists the outcomes that are others, and what the results
cannot show, because a test did not run or ran under other conditions, is not
tested. The results folder stays as it is.`,
		Example: `  op-readiness report results
  op-readiness report results -o markdown
  op-readiness report results --specs current
  op-readiness report results --spec-dir specs`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(cmd.Flags().Changed("specs")); err != nil {
				return err
			}
			return o.run(s, args[0])
		},
	}
	cmd.Flags().StringVarP(&o.Output, "output", "o", string(report.FormatTable), "table, json, markdown or csv")
	cmd.Flags().StringVar(&o.Specs, "specs", specsRecorded, "cases to judge: recorded (by the run) or current (of this op-readiness)")
	addSpecDirFlag(cmd.Flags(), &o.SpecDir)
	cmd.Flags().Lookup("spec-dir").Usage = "folder of spec files whose cases are judged in place of the recorded ones"
	return cmd
}

// The values of --specs.
const (
	specsRecorded = "recorded"
	specsCurrent  = "current"
)

type reportOptions struct {
	Output  string
	Specs   string
	SpecDir string
}

func (o *reportOptions) validate(specsGiven bool) error {
	if err := report.ValidFormat(report.Format(o.Output)); err != nil {
		return usageErrorf("--output: %w", err)
	}
	if o.Specs != specsRecorded && o.Specs != specsCurrent {
		return usageErrorf("--specs: unknown value %q: use %s, %s; a folder is named with --spec-dir", o.Specs, specsRecorded, specsCurrent)
	}
	if specsGiven && o.SpecDir != "" {
		return usageErrorf("--specs and --spec-dir both say which cases to judge: leave one out")
	}
	return nil
}

func (o *reportOptions) run(s *Surroundings, dir string) error {
	run, err := result.Load(dir)
	if err != nil {
		return usageErrorf("%w", err)
	}
	results := report.Results{Run: run, Judgement: verdict.Judge(run), Width: terminalWidth(s)}
	if o.SpecDir != "" || o.Specs == specsCurrent {
		if err := o.respecify(s, &results); err != nil {
			return err
		}
	}
	if err := results.Write(s.Stdout, report.Format(o.Output)); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return exitWith(results.Judgement.ExitCode())
}

// specs are the cases to judge with. Those of a folder are checked by themselves:
// which tests there were to run, the results do not tell.
func (o *reportOptions) specs(s *Surroundings) (*specs.Set, error) {
	if o.SpecDir == "" {
		return specs.Embedded()
	}
	return assess.LintedSpecs(o.SpecDir, nil, s.Stderr)
}

// respecify judges the results with other cases than those of their plan.
func (o *reportOptions) respecify(s *Surroundings, r *report.Results) error {
	recorded := r.Run.Plan
	set, err := o.specs(s)
	if err != nil {
		return err
	}
	standard, err := set.For(recorded.KubernetesVersion)
	if err != nil {
		return usageErrorf("plan.json: %w", err)
	}
	selected, err := plan.Select(standard, &recorded.Selection)
	if err != nil {
		return usageErrorf("the run had selected what these specs do not have: %w", err)
	}
	run, err := verdict.Respecify(r.Run, standard, selected, o.SpecDir)
	if err != nil {
		return usageErrorf("%w", err)
	}
	with := &report.JudgedWith{Specs: "the standard of op-readiness " + toolVersion(), Was: r.Judgement.Verdict}
	if o.SpecDir != "" {
		with.Specs = "the spec files of " + o.SpecDir
	}
	now := verdict.Judge(run)
	with.Changes = verdict.Changes(r.Judgement, now)
	r.Run, r.Judgement, r.JudgedWith = run, now, with
	fmt.Fprintf(s.Stderr, "judged with %s, not with the cases that the run had planned\n", with.Specs)
	return nil
}
