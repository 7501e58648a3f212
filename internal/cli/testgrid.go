package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	configpb "github.com/GoogleCloudPlatform/testgrid/pb/config"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/grid"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/grid/check"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/grid/page"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/grid/text"
	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
)

func newTestGridCommand(s *Surroundings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "testgrid",
		Short: "See what TestGrid makes of builds, before it does",
		Args:  unknownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTestGridCheckCommand(s), newTestGridPreviewCommand(s))
	return cmd
}

// gridSource is what both commands read.
type gridSource struct {
	grid.Reading
	bucketOptions
}

func (o *gridSource) addFlags(f *pflag.FlagSet) {
	o.bucketOptions.addFlags(f)
	f.StringVar(&o.Config, "config", "", "TestGrid configuration, a file or a folder, as 'generate testgrid' writes it (default: a tab for each job that is found)")
	f.StringVar(&o.Group, "group", "", "only this test group of the configuration")
	f.IntVar(&o.Days, "days", 0, "for how many days back builds are read (default: as configured; else 14 in a bucket, and 3 years in a folder)")
	f.StringVar(&o.Job, "job", "op-readiness", "name of the job, for a results folder")
}

func (o *gridSource) validate() error {
	if o.Days < 0 || o.Days > 36500 {
		return usageErrorf("--days %d: must be 1 to 36500", o.Days)
	}
	if o.Group != "" && o.Config == "" {
		return usageErrorf("--group: it names a test group of --config, which is missing")
	}
	return nil
}

// open opens a source, and returns it with the configuration by which it is
// read.
func (o *gridSource) open(ctx context.Context, s *Surroundings, name string) (*grid.Source, *configpb.Configuration, error) {
	source, err := o.Open(ctx, name, bucket.Options{Endpoint: endpointOf(s, o.Endpoint, name), Anonymous: o.Anonymous})
	if err != nil {
		return nil, nil, err
	}
	cfg, err := o.Configuration(ctx, source)
	if err != nil {
		narrateSkipped(s, source)
		source.Close()
	}
	return source, cfg, err
}

// maxSkipped is how many skipped entries of a folder are narrated.
const maxSkipped = 10

// narrateSkipped says what in a folder was not read.
func narrateSkipped(s *Surroundings, source *grid.Source) {
	skipped := source.Skipped()
	names := slices.Sorted(maps.Keys(skipped))
	for _, name := range names[:min(len(names), maxSkipped)] {
		fmt.Fprintf(s.Stderr, "preview: not read: %s: %s\n", shown.Line(name), shown.Line(skipped[name]))
	}
	if more := len(names) - maxSkipped; more > 0 {
		fmt.Fprintf(s.Stderr, "preview: not read: %d more; 'testgrid check' names them\n", more)
	}
}

type testGridCheckOptions struct {
	gridSource
	Output string
}

func newTestGridCheckCommand(s *Surroundings) *cobra.Command {
	var o testGridCheckOptions
	cmd := &cobra.Command{
		Use:   "check SOURCE|CONFIG",
		Short: "Find what TestGrid would lose, refuse or show wrongly",
		Long: `Read builds as TestGrid does, by its own code, and say what it would lose, refuse
or show as something else, where, why, and how to fix it. SOURCE is what
'testgrid preview' reads.

CONFIG is a TestGrid configuration: a .yaml file, or a folder with nothing else.
It is checked as TestGrid does, and by the stricter rules for names that its
newest version and kubernetes/test-infra have.

The exit code is 0 when there is no error; warnings and notes do not count. It is
1 when there are errors in builds, 2 when there are errors in a configuration,
and 3 when builds cannot be read.`,
		Example: `  op-readiness testgrid check gs://my-results
  op-readiness testgrid check results -o markdown
  op-readiness testgrid check testgrid/dashboards.yaml`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), s, args[0]) },
	}
	f := cmd.Flags()
	o.addFlags(f)
	f.StringVarP(&o.Output, "output", "o", string(report.FormatTable), "table, json, markdown or csv")
	return cmd
}

func (o *testGridCheckOptions) run(ctx context.Context, s *Surroundings, name string) error {
	if err := report.ValidFormat(report.Format(o.Output)); err != nil {
		return usageErrorf("--output: %w", err)
	}
	if err := o.validate(); err != nil {
		return err
	}
	code := verdict.ExitNotReady
	r, err := o.checkConfigs(name)
	if r == nil && err == nil {
		r, err = o.checkBuilds(ctx, s, name)
	} else {
		code = verdict.ExitUsage
	}
	if err != nil {
		return unlessInterrupted(ctx, err)
	}
	if err := r.Write(s.Stdout, report.Format(o.Output), terminalWidth(s)); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if r.Count(check.Error) > 0 {
		return exitWith(code)
	}
	return nil
}

// checkConfigs checks what is a configuration, or with --config the one by which
// builds would be read; nil when there is none, or nothing wrong with that.
func (o *testGridCheckOptions) checkConfigs(name string) (*check.Report, error) {
	if check.IsConfig(name) {
		r, err := check.Config(name)
		if err != nil {
			return nil, usageErrorf("%w", err)
		}
		return r, nil
	}
	if o.Config == "" {
		return nil, nil
	}
	r, err := check.Config(o.Config)
	if err != nil {
		return nil, usageErrorf("--config: %w", err)
	}
	if r.Count(check.Error) == 0 {
		return nil, nil
	}
	return r, nil
}

func (o *testGridCheckOptions) checkBuilds(ctx context.Context, s *Surroundings, name string) (*check.Report, error) {
	source, cfg, err := o.open(ctx, s, name)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	shown := time.Now()
	r, err := check.Builds(ctx, check.Options{
		Source: source, Config: cfg, Now: shown,
		Progress: func(group string, i, of int) {
			if now := time.Now(); now.Sub(shown) > 5*time.Second {
				shown = now
				fmt.Fprintf(s.Stderr, "check: %s: build %d of %d\n", group, i, of)
			}
		},
	})
	if err != nil {
		return nil, source.Unread(err)
	}
	return r, nil
}

type testGridPreviewOptions struct {
	gridSource
	Output   string
	HTML     string
	BuildURL string
	Builds   int
}

// The formats of a preview.
const (
	previewTable = "table"
	previewJSON  = "json"
	previewHTML  = "html"
)

func newTestGridPreviewCommand(s *Surroundings) *cobra.Command {
	var o testGridPreviewOptions
	cmd := &cobra.Command{
		Use:   "preview SOURCE",
		Short: "Show the grid that TestGrid would",
		Long: `Show the very grid that TestGrid would: its own updater and summarizer read the
builds, here, and what they make is shown in the terminal, as JSON, or as one
HTML page that needs nothing else.

SOURCE is a bucket (gs://NAME, s3://NAME, file:///FOLDER, or a folder), or a
folder in it, laid out as Prow and 'publish' do; or a results folder of a run,
which is shown as publishing it would.`,
		Example: `  op-readiness testgrid preview results
  op-readiness testgrid preview gs://kubernetes-ci-logs/logs/ci-kubernetes-e2e-capz-master-windows --anonymous
  op-readiness testgrid preview /tmp/bucket --config testgrid/dashboards.yaml --html preview.html`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), s, args[0]) },
	}
	f := cmd.Flags()
	o.addFlags(f)
	f.StringVarP(&o.Output, "output", "o", previewTable, "table, json or html")
	f.StringVar(&o.HTML, "html", "", "also write the HTML page into this file")
	f.IntVar(&o.Builds, "builds", 0, "most builds to show in the table (default: as many as fit)")
	f.StringVar(&o.BuildURL, "build-url", "", "where a build is found; <gcs_prefix> and <changelist> stand for its job's folder and its id (default: as configured, else where it was read)")
	return cmd
}

func (o *testGridPreviewOptions) run(ctx context.Context, s *Surroundings, name string) error {
	if !slices.Contains([]string{previewTable, previewJSON, previewHTML}, o.Output) {
		return usageErrorf("--output: unknown format %q: use table, json, html", o.Output)
	}
	if o.Builds < 0 {
		return usageErrorf("--builds %d: must be 1 or more", o.Builds)
	}
	if err := o.validate(); err != nil {
		return err
	}
	source, cfg, err := o.open(ctx, s, name)
	if err != nil {
		return err
	}
	defer source.Close()
	var at func(prefix, build string) string // as the configuration has it
	if o.BuildURL != "" || o.Config == "" {
		at = source.BuildURL(o.BuildURL)
	}
	preview, err := grid.Make(ctx, source.Client, cfg, grid.Options{
		Source:   name,
		Ahead:    source.Kept,
		BuildURL: at,
		Shown:    source.Told,
		Progress: func(group string, i, of int) {
			if of > 1 {
				fmt.Fprintf(s.Stderr, "preview: test group %d of %d: %s\n", i, of, group)
			}
		},
	})
	if err != nil {
		return unlessInterrupted(ctx, source.Unread(err))
	}
	narrateSkipped(s, source)
	if o.HTML != "" {
		url, err := page.WriteFile(o.HTML, preview)
		if err != nil {
			return err
		}
		fmt.Fprintf(s.Stderr, "preview: wrote %s; open %s\n", o.HTML, url)
	}
	switch o.Output {
	case previewJSON:
		enc := json.NewEncoder(s.Stdout)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		err = enc.Encode(preview)
	case previewHTML:
		err = page.Write(s.Stdout, preview)
	default:
		err = text.Write(s.Stdout, preview, text.Options{
			Width: terminalWidth(s), Colour: terminalWidth(s) > 0 && s.Getenv("NO_COLOR") == "" && s.Getenv("TERM") != "dumb",
			Builds: o.Builds, Messages: 20,
		})
	}
	if err != nil {
		return fmt.Errorf("writing the preview: %w", err)
	}
	return nil
}

// unlessInterrupted is what ended a command: a signal, or else err.
func unlessInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &exitError{code: verdict.ExitInterrupted, cause: fmt.Errorf("interrupted: %w", err)}
	}
	return err
}
