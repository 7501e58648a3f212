package cli

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/windows-op-readiness/windows-op-readiness/internal/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/verdict"
)

type mergeOptions struct {
	ReportDir string
	Output    string
}

func newMergeCommand(s *Surroundings) *cobra.Command {
	o := &mergeOptions{}
	cmd := &cobra.Command{
		Use:   "merge DIR...",
		Short: "Make one results folder of shards and attempts",
		Long: `Make one results folder of the folders of a run's shards, and judge it. DIR is a
results folder, or holds some, up to two levels down, as artifacts that were
downloaded together do.

Where a shard was run again, the newest attempt of each test counts, and what
passed only then is flaky. Every case must be accounted for by exactly one shard
of the same run: otherwise the verdict is inconclusive and names what is
missing. Folders of another run are refused, also with the same plan.`,
		Example: `  op-readiness merge shard-1 shard-2 shard-3 --report-dir merged

  # Everything that a workflow's artifacts were downloaded to
  op-readiness merge artifacts --report-dir merged -o markdown`,
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error { return o.run(args, s) },
	}
	f := cmd.Flags()
	f.StringVar(&o.ReportDir, "report-dir", "", "folder for the merged results (default $ARTIFACTS)")
	f.StringVarP(&o.Output, "output", "o", string(report.FormatTable), "table, json, markdown or csv")
	return cmd
}

func (o *mergeOptions) run(args []string, s *Surroundings) error {
	dir := cmp.Or(o.ReportDir, s.Getenv("ARTIFACTS"))
	if dir == "" {
		return usageErrorf("--report-dir: name the folder that is to hold the merged results")
	}
	if err := report.ValidFormat(report.Format(o.Output)); err != nil {
		return usageErrorf("--output: %w", err)
	}
	if err := result.CheckNew(dir); err != nil {
		return usageErrorf("%w", err)
	}
	if err := checkWritable(dir); err != nil {
		return usageErrorf("%w", err)
	}
	found, err := result.Find(args)
	if err != nil {
		return usageErrorf("%w", err)
	}
	var runs []*result.Run
	for _, f := range found {
		run, err := result.Read(f)
		if err != nil {
			return usageErrorf("%w", err)
		}
		m := run.Manifest
		fmt.Fprintf(s.Stderr, "shard %d of %d, attempt %d: %s\n", m.Shard, run.Plan.Shards, m.Attempt, f)
		runs = append(runs, run)
	}
	folder, err := result.Merge(dir, runs)
	if err != nil {
		return usageErrorf("%w", err)
	}
	defer folder.Close()
	return judgeFolder(folder, s, o.Output, func(run *result.Run) time.Time { return run.Manifest.Finished })
}

// judgeFolder judges what a folder holds, writes what belongs beside it, and
// shows the report. finished tells when the run ended.
func judgeFolder(folder *result.Folder, s *Surroundings, output string, finished func(*result.Run) time.Time) error {
	run, err := result.Read(folder.Dir())
	if err != nil {
		return err
	}
	judgement := verdict.Judge(run)
	if err := report.WriteFolder(folder, run, judgement, finished(run)); err != nil {
		return err
	}
	if err := deliver(s, folder.Dir()); err != nil {
		return err
	}
	results := report.Results{Run: run, Judgement: judgement, Width: terminalWidth(s)}
	if err := results.Write(s.Stdout, report.Format(output)); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	fmt.Fprintf(s.Stderr, "Results: %s\n", folder.Dir())
	return exitWith(judgement.ExitCode())
}
