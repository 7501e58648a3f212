package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	Config    string
	Group     string
	Days      int
	Job       string
	Endpoint  string
	Anonymous bool
}

func (o *gridSource) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Config, "config", "", "TestGrid configuration, a file or a folder, as 'generate testgrid' writes it (default: a tab for each job that is found)")
	f.StringVar(&o.Group, "group", "", "only this test group of the configuration")
	f.IntVar(&o.Days, "days", 0, "for how many days back builds are read (default: as configured; else 14 in a bucket, and 3 years in a folder)")
	f.StringVar(&o.Job, "job", "op-readiness", "name of the job, for a results folder")
	f.StringVar(&o.Endpoint, "endpoint", "", "URL of a GCS emulator or of a store that speaks S3 (default $STORAGE_EMULATOR_HOST for gs://)")
	f.BoolVar(&o.Anonymous, "anonymous", false, "use no credentials")
}

// folderDays is how far back builds in folders are read: they are kept there
// to be looked at.
const folderDays = 3 * 365

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
	isURL := strings.Contains(name, "://")
	if !isURL && grid.IsResults(name) {
		return o.openResults(name)
	}
	if !isURL {
		switch info, err := os.Stat(name); {
		case err != nil:
			return nil, nil, usageErrorf("%w; name a folder, gs://BUCKET or s3://BUCKET", err)
		case !info.IsDir():
			return nil, nil, usageErrorf("%s is a file: name the folder of a bucket, of a job or of results", name)
		}
	}
	if o.Endpoint == "" && strings.HasPrefix(name, bucket.GCS+"://") {
		o.Endpoint = s.Getenv("STORAGE_EMULATOR_HOST")
	}
	if o.Endpoint != "" && !strings.Contains(o.Endpoint, "://") {
		o.Endpoint = "http://" + o.Endpoint
	}
	source, err := grid.Open(ctx, name, bucket.Options{Endpoint: o.Endpoint, Anonymous: o.Anonymous})
	if errors.Is(err, bucket.ErrURL) || errors.Is(err, grid.ErrBuild) {
		return nil, nil, usageErrorf("%w", err)
	}
	if err != nil {
		return nil, nil, err
	}
	cfg, err := o.configuration(ctx, source)
	if err != nil {
		narrateSkipped(s, source)
		source.Close()
		return nil, nil, unread(source, err)
	}
	return source, cfg, nil
}

// unread says what kept builds from being read, and what reading them takes.
func unread(source *grid.Source, err error) error {
	if errors.Is(err, bucket.ErrNoBucket) {
		permission := "storage.objects.list"
		if strings.HasPrefix(source.Name, bucket.S3+"://") {
			permission = "s3:ListBucket"
		}
		return fmt.Errorf("reading %s: %w; fix its name, or use credentials that have %s", source.Name, bucket.ErrNoBucket, permission)
	}
	return fmt.Errorf("%s: %w", source.Name, source.Err(err))
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

func (o *gridSource) configuration(ctx context.Context, source *grid.Source) (*configpb.Configuration, error) {
	if o.Config != "" {
		return o.readConfig()
	}
	prefixes, err := grid.Find(ctx, source.Client, source.Prefix)
	if err != nil {
		return nil, err
	}
	days := o.Days
	if days == 0 && source.Kept {
		days = grid.DefaultDays
	}
	if days == 0 {
		days = folderDays
	}
	return grid.Standard(days, prefixes...), nil
}

func (o *gridSource) readConfig() (*configpb.Configuration, error) {
	cfg, err := grid.ReadConfig(o.Config)
	if err != nil {
		return nil, usageErrorf("--config: %w", err)
	}
	if o.Group != "" {
		if cfg, err = grid.Only(cfg, o.Group); err != nil {
			return nil, usageErrorf("--group: %w", err)
		}
	}
	if o.Days > 0 {
		for _, g := range cfg.GetTestGroups() {
			g.DaysOfResults = int32(o.Days)
		}
	}
	return cfg, nil
}

// openResults lays results out as the one group of the configuration would
// have them.
func (o *gridSource) openResults(name string) (*grid.Source, *configpb.Configuration, error) {
	job := o.Job
	var cfg *configpb.Configuration
	if o.Config != "" {
		var err error
		if cfg, err = o.readConfig(); err != nil {
			return nil, nil, err
		}
		if len(cfg.GetTestGroups()) != 1 {
			return nil, nil, usageErrorf("--config %s has %d test groups, and a results folder is one build of one of them: name it with --group", o.Config, len(cfg.GetTestGroups()))
		}
		job = cfg.GetTestGroups()[0].GetName()
	}
	source, err := grid.OpenResults(name, []string{name}, job)
	if err != nil {
		return nil, nil, usageErrorf("%w", err)
	}
	if cfg == nil {
		days := o.Days
		if days == 0 {
			days = folderDays
		}
		return source, grid.Standard(days, source.Prefix), nil
	}
	cfg.GetTestGroups()[0].ResultSource = nil
	cfg.GetTestGroups()[0].GcsPrefix = source.Prefix
	return source, cfg, nil
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
	if isConfig(name) {
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

// isConfig reports whether name is a YAML file, or a folder of them and
// nothing else.
func isConfig(name string) bool {
	isYAML := func(name string) bool { return slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(name)) }
	if strings.Contains(name, "://") {
		return false
	}
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() {
		return err == nil && isYAML(name)
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return false
	}
	found := false
	for _, e := range entries {
		if e.Name() == "run.json" || e.IsDir() {
			return false
		}
		found = found || isYAML(e.Name())
	}
	return found
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
		return nil, unread(source, err)
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
	dir := ""
	if o.HTML != "" {
		if dir, err = filepath.Abs(filepath.Dir(o.HTML)); err != nil {
			return usageErrorf("--html: %w", err)
		}
	}
	preview, err := grid.Make(ctx, source.Client, cfg, grid.Options{
		Source:   name,
		Ahead:    source.Kept,
		BuildURL: o.buildURL(source),
		Shown:    source.Told,
		Progress: func(group string, i, of int) {
			if of > 1 {
				fmt.Fprintf(s.Stderr, "preview: test group %d of %d: %s\n", i, of, group)
			}
		},
	})
	if err != nil {
		return unlessInterrupted(ctx, unread(source, err))
	}
	narrateSkipped(s, source)
	if o.HTML != "" {
		if err := writePage(o.HTML, dir, preview); err != nil {
			return err
		}
		fmt.Fprintf(s.Stderr, "preview: wrote %s; open %s\n", o.HTML, fileURL(filepath.Join(dir, filepath.Base(o.HTML))))
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

// buildURL says where builds are found: as --build-url has it, as the
// configuration has it (nil), or where they were read.
func (o *testGridPreviewOptions) buildURL(source *grid.Source) func(prefix, build string) string {
	switch {
	case o.BuildURL != "":
		return func(prefix, build string) string {
			return strings.NewReplacer("<gcs_prefix>", prefix, "<changelist>", build).Replace(o.BuildURL)
		}
	case o.Config != "":
		return nil
	}
	return func(prefix, build string) string {
		_, object, _ := strings.Cut(prefix, "/")
		at := source.URL(strings.TrimPrefix(object+"/"+build, "/"))
		if filepath.IsAbs(at) {
			return fileURL(at)
		}
		return at
	}
}

// unlessInterrupted is what ended a command: a signal, or else err.
func unlessInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &exitError{code: verdict.ExitInterrupted, cause: fmt.Errorf("interrupted: %w", err)}
	}
	return err
}

func fileURL(path string) string {
	p := filepath.ToSlash(path)
	if !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	return (&url.URL{Scheme: "file", Path: p}).String()
}

// writePage writes the HTML page. Builds in folders are linked to relative to
// it, so that both may move together.
func writePage(name, dir string, p *grid.Preview) error {
	for _, t := range p.Tabs() {
		for i := range t.Columns {
			u, err := url.Parse(t.Columns[i].URL)
			if err != nil || u.Scheme != "file" {
				continue
			}
			if rel, err := filepath.Rel(dir, filepath.FromSlash(u.Path)); err == nil {
				t.Columns[i].URL = (&url.URL{Path: filepath.ToSlash(rel) + "/"}).String()
			}
		}
	}
	file, err := os.Create(name)
	if err != nil {
		return usageErrorf("--html: %w", err)
	}
	if err := errors.Join(page.Write(file, p), file.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}
