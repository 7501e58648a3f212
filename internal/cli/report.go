package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/windows-op-readiness/windows-op-readiness/internal/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/verdict"
)

func newReportCommand(s *Surroundings) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "report DIR",
		Short: "Judge a results folder again, and render it",
		Long: `Judge a results folder again, and render it: the verdict with its scope and the
count against the standard, a row a category, a row a case. The exit code is
that of the verdict, as 'run' has it.`,
		Example: `  op-readiness report results
  op-readiness report results -o markdown`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := report.ValidFormat(report.Format(output)); err != nil {
				return usageErrorf("--output: %w", err)
			}
			run, err := result.Read(args[0])
			if err != nil {
				return usageErrorf("%w", err)
			}
			results := report.Results{Run: run, Judgement: verdict.Judge(run), Width: terminalWidth(s)}
			if err := results.Write(s.Stdout, report.Format(output)); err != nil {
				return fmt.Errorf("writing the report: %w", err)
			}
			return exitWith(results.Judgement.ExitCode())
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", string(report.FormatTable), "table, json, markdown or csv")
	return cmd
}
