package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/config"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/jobs"
)

type generateProwOptions struct {
	generateOptions
	Dir    string
	Cost   bool
	Output string
}

func newGenerateProwCommand(s *Surroundings) *cobra.Command {
	var o generateProwOptions
	cmd := &cobra.Command{
		Use:   "prow",
		Short: "Make Prow jobs: presubmits, a periodic per cell, the image's postsubmit",
		Long: `Make Prow's jobs from op-readiness.yaml: a presubmit of the whole plan and one a
category, a periodic job per cell of the matrix, spread over the day, and the
postsubmit that builds the image. They are Prow's own types, taken by its strict
loader.

One file for each kind is written into the folder jobs beside op-readiness.yaml.
What an earlier configuration left there, and this one does not make, is removed.

What the jobs are expected to cost is printed; above
prow.budgetMachineHoursPerWeek nothing is written. --cost shows each job's.`,
		Example: `  op-readiness generate prow
  op-readiness generate prow --verify
  op-readiness generate prow --cost
  op-readiness generate prow --dir - | less`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return o.run(s) },
	}
	o.addFlags(cmd.Flags())
	cmd.Flags().StringVar(&o.Dir, "dir", "", "folder to write to; - is standard output (default "+jobs.Folder+" beside the configuration)")
	cmd.Flags().BoolVar(&o.Cost, "cost", false, "write nothing; print what each job is expected to cost")
	cmd.Flags().StringVarP(&o.Output, "output", "o", string(report.FormatTable), "format of --cost: table, json, markdown or csv")
	return cmd
}

// Validate reports every flag that is wrong.
func (o *generateProwOptions) Validate() error {
	switch {
	case o.Dir == "-" && (o.Verify || o.Diff):
		return errNoFolder
	case o.Cost && (o.Verify || o.Diff || o.Dir != ""):
		return errors.New("--cost writes nothing: leave --verify, --diff and --dir out")
	}
	return errors.Join(o.generateOptions.Validate(), validateOutput(o.Output))
}

func (o *generateProwOptions) run(s *Surroundings) error {
	if err := usage(o.Validate()); err != nil {
		return err
	}
	c, err := loadConfig(s, o.Config)
	if err != nil {
		return err
	}
	files, err := jobs.Render(c)
	if err != nil {
		return configError(o.Config, err)
	}
	cost, err := jobs.CostOf(c)
	if err != nil {
		return err
	}
	tooMuch := cost.Check(c)
	if o.Cost {
		if err := cost.Table().Write(s.Stdout, report.Format(o.Output)); err != nil {
			return err
		}
	}
	if tooMuch != nil {
		return configError(o.Config, tooMuch)
	}
	fmt.Fprintf(s.Stderr, "%s, %s a week by themselves, %s%s\n", text.Count(len(cost.Jobs), "Prow job"), text.Count(int(cost.RunsPerWeek+0.5), "run"),
		text.Count(int(cost.MachineHoursPerWeek+0.5), "machine-hour"), ofBudget(cost))
	if o.Cost {
		return nil
	}
	return o.emitInto(s, "prow", o.Dir, jobs.Folder, files)
}

// configError is the usage error of a configuration in which only a generator
// found something wrong.
func configError(path string, err error) error {
	var problems config.Problems
	var problem config.Problem
	switch {
	case errors.As(err, &problems):
		return usageErrorf("%s in %s:\n%w", text.Count(len(problems), "problem"), path, problems)
	case errors.As(err, &problem):
		return usageErrorf("1 problem in %s:\n%w", path, problem)
	}
	return err
}

func ofBudget(cost *jobs.Cost) string {
	if cost.Budget == 0 {
		return ""
	}
	return fmt.Sprintf(" of %d", cost.Budget)
}
