package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/intake"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/tempdir"
)

type mergeOptions struct {
	ReportDir  string
	AcrossRuns bool
	Logs       bool
	Output     string
	bucket     bucketOptions
}

func newMergeCommand(s *Surroundings) *cobra.Command {
	o := &mergeOptions{}
	cmd := &cobra.Command{
		Use:   "merge DIR|URL...",
		Short: "Make one results folder of shards, attempts and builds",
		Long: `Make one results folder of the folders of a run's shards, and judge it. DIR is a
results folder, or holds some, up to two levels down, as artifacts that were
downloaded together do. URL is a build in a bucket: gs://, s3:// or file://, with
its results in artifacts/, or up to two levels below. What comes from a bucket is
taken in as hostile input, without its logs; --logs takes them, too.

Where a shard was run again, the newest attempt of each test counts, and what
passed only then is flaky. Every case must be accounted for by exactly one shard
of the same run: otherwise the verdict is inconclusive and names what is
missing. Folders of another run are refused, also with the same plan.

With --across-runs, builds of different runs get one verdict: those of Prow's
jobs for a category each. They must be of one commit, pull request and standard;
what is not of one kind in their clusters and versions is named, and makes the
verdict inconclusive. Of a case that several runs tested, the newest run counts:
what failed in an older one and passes in the newest is flaky, and what is
replaced is said. Categories that no run covers are named, and are not in the
verdict's scope.

A build without finished.json, or with one that contradicts its results, makes
the verdict inconclusive.`,
		Example: `  op-readiness merge shard-1 shard-2 shard-3 --report-dir merged

  # Everything that a workflow's artifacts were downloaded to
  op-readiness merge artifacts --report-dir merged -o markdown

  # What '/test pull-windows-op-readiness-core-network pull-windows-op-readiness-core-storage' came to
  op-readiness merge --across-runs --report-dir merged \
    gs://my-bucket/pr-logs/pull/org_repo/12/pull-windows-op-readiness-core-network/1836712345678901248 \
    gs://my-bucket/pr-logs/pull/org_repo/12/pull-windows-op-readiness-core-storage/1836712345678901249`,
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args, s) },
	}
	f := cmd.Flags()
	f.StringVar(&o.ReportDir, "report-dir", "", "folder for the merged results (default $ARTIFACTS)")
	f.BoolVar(&o.AcrossRuns, "across-runs", false, "combine different runs of one commit, such as the jobs of several categories")
	f.BoolVar(&o.Logs, "logs", false, "take the logs out of buckets, too")
	o.bucket.addFlags(f)
	f.StringVarP(&o.Output, "output", "o", string(report.FormatTable), "table, json, markdown or csv")
	return cmd
}

func (o *mergeOptions) run(ctx context.Context, args []string, s *Surroundings) error {
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
	temp, err := tempdir.New()
	if err != nil {
		return err
	}
	defer temp.RemoveAll()
	runs, err := intake.Read(ctx, args, o.bucket.options(s), filepath.Join(temp.Path, "builds"), intake.Limits{Logs: o.Logs})
	if err != nil {
		return sourceError(ctx, err)
	}
	for _, run := range runs {
		m := run.Manifest
		fmt.Fprintf(s.Stderr, "shard %d of %d, attempt %d: %s\n", m.Shard, run.Plan.Shards, m.Attempt, cmp.Or(run.Name, run.Dir))
	}
	whole, err := result.Merge(runs, o.AcrossRuns)
	if errors.Is(err, result.ErrOtherRun) && !o.AcrossRuns {
		err = fmt.Errorf("%w; --across-runs combines different runs of one commit", err)
	}
	if err != nil {
		return usageErrorf("%w", err)
	}
	folder, err := whole.Save(dir)
	if err != nil {
		return usageErrorf("%w", err)
	}
	defer folder.Close()
	run, err := result.Load(folder.Dir())
	if err != nil {
		return err
	}
	judgement := verdict.Judge(run)
	if err := report.WriteFolder(folder, run, judgement, run.Manifest.Finished); err != nil {
		return err
	}
	return conclude(s, folder.Dir(), run, judgement, o.Output)
}

// conclude hands on what a results folder has come to, and reports it.
func conclude(s *Surroundings, dir string, run *result.Run, judgement *verdict.Judgement, output string) error {
	if err := deliver(s, dir); err != nil {
		return err
	}
	if err := tellOutputs(s, run, judgement); err != nil {
		return err
	}
	results := report.Results{Run: run, Judgement: judgement, Width: terminalWidth(s)}
	if err := results.Write(s.Stdout, report.Format(output)); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	fmt.Fprintf(s.Stderr, "Results: %s\n", dir)
	return exitWith(judgement.ExitCode())
}
