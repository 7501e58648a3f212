package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/windows-op-readiness/windows-op-readiness/internal/assess"
	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/config"
	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/prow"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/testgrid"
)

type publishOptions struct {
	testgrid.Publication
	Config string
	Bucket string
	bucketOptions
	Parallel int
	Replace  bool
	DryRun   bool
	Output   string
}

func newPublishCommand(s *Surroundings) *cobra.Command {
	var o publishOptions
	cmd := &cobra.Command{
		Use:   "publish DIR...",
		Short: "Publish results where TestGrid, Deck and Spyglass read them",
		Long: `Publish the results folders of a run, one or one for each of its shards, as a
build of a job in a bucket, laid out as Prow does. The build passed when the run
as a whole is ready. Its URL is printed.

What is published is planned first; --dry-run prints the plan, and sends
nothing. finished.json is sent last, when everything else has arrived. A
publication that was interrupted or killed goes on where it was when the same
command is given again.

A build's id comes from when the run started and from the run's id. Where
results come long after that, TestGrid may know newer builds by then, and would
never list this one: use 'publish start' before such runs, and 'publish finish'
after them.

Credentials are those that the providers' own tools use. A Prow job does not
publish: its sidecar does.`,
		Example: `  op-readiness publish results --bucket gs://my-results --job windows-readiness-ltsc2022
  op-readiness publish results --bucket file:///tmp/bucket --job windows-readiness --dry-run
  op-readiness publish shard-1 shard-2 --bucket gs://my-results --job pull-windows-readiness \
    --type presubmit --org kubernetes --repo kubernetes --pull 123`,
		Args: someResults,
		RunE: func(cmd *cobra.Command, args []string) error { return o.finish(cmd, s, args) },
	}
	f := cmd.Flags()
	o.addFlags(f)
	o.addFinishFlags(f)
	f.IntVar(&o.Attempt, "attempt", 0, "publish the run again, as this attempt (2 or more): a build of now")
	cmd.AddCommand(newPublishStartCommand(s), newPublishFinishCommand(s))
	return cmd
}

func newPublishStartCommand(s *Surroundings) *cobra.Command {
	o := publishOptions{Publication: testgrid.Publication{Part: testgrid.OnlyStart}}
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Show a run that begins now as a running build",
		Long: `Make a build that TestGrid shows as running, and print its id. Call it before a
run, and 'publish finish' with the run's results and the same flags afterwards.`,
		Example: `  id=$(op-readiness publish start --bucket gs://my-results --job windows-readiness)
  op-readiness run --report-dir results
  op-readiness publish finish results --build-id "$id" --bucket gs://my-results --job windows-readiness`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.start(cmd, s) },
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func newPublishFinishCommand(s *Surroundings) *cobra.Command {
	o := publishOptions{Publication: testgrid.Publication{Part: testgrid.OnlyFinish}}
	cmd := &cobra.Command{
		Use:   "finish DIR...",
		Short: "Publish the results of a build that was started",
		Long: `Publish results as 'publish' does, into a build that 'publish start' made. Without
--build-id it is the build that these results have begun to finish, else the only
one of the job that was started, up to a day before the run, and is not finished.
--dry-run looks for it, too.`,
		Example: `  op-readiness publish finish results --bucket gs://my-results --job windows-readiness`,
		Args:    someResults,
		RunE:    func(cmd *cobra.Command, args []string) error { return o.finish(cmd, s, args) },
	}
	o.addFlags(cmd.Flags())
	o.addFinishFlags(cmd.Flags())
	return cmd
}

// someResults wants the results folders to be named.
func someResults(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usageErrorf("which results? Name the folder that 'run --report-dir' wrote, such as: %s results --job NAME", cmd.CommandPath())
	}
	return nil
}

func (o *publishOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Config, "config", "", "configuration whose 'results' say where to publish (default op-readiness.yaml, where there is no --bucket)")
	f.StringVar(&o.Bucket, "bucket", "", "where to publish: gs://NAME, s3://NAME, each with a path if need be, or file:///FOLDER")
	f.StringVar(&o.Job.Name, "job", "", "name of the job whose build it is")
	f.StringVar(&o.Job.Type, "type", testgrid.Periodic, "type of the job: periodic, postsubmit, presubmit or batch")
	f.StringVar(&o.Job.Org, "org", "", "organisation of the pull request")
	f.StringVar(&o.Job.Repo, "repo", "", "repository of the pull request")
	f.IntVar(&o.Job.Pull, "pull", 0, "number of the pull request")
	f.StringVar(&o.Job.Strategy, "path-strategy", testgrid.StrategyExplicit, "how Prow names a repository's folder: explicit, legacy or single")
	f.StringVar(&o.Job.DefaultOrg, "default-org", "", "organisation that paths leave out (legacy, single)")
	f.StringVar(&o.Job.DefaultRepo, "default-repo", "", "repository that paths leave out (legacy, single)")
	f.StringVar(&o.Build, "build-id", "", "id of the build (default made from the run)")
	f.StringVar(&o.Commit, "commit", "", "commit that was tested; TestGrid's column header (default the one that the run knows)")
	o.bucketOptions.addFlags(f)
	f.BoolVar(&o.DryRun, "dry-run", false, "print the plan, and send nothing")
	f.StringVarP(&o.Output, "output", "o", string(report.FormatTable), "table or json")
}

func (o *publishOptions) addFinishFlags(f *pflag.FlagSet) {
	f.BoolVar(&o.Replace, "replace", false, "put the build in the place of one that is there already")
	f.StringToStringVar(&o.Metadata, "metadata", nil, "further metadata of the build, as KEY=VALUE")
	f.StringToStringVar(&o.Links, "link", nil, "link that Deck shows beside the build, as NAME=URL")
	f.IntVar(&o.Parallel, "parallel", 16, "how many objects are sent at a time")
}

// configure takes from the configuration what the flags do not say.
func (o *publishOptions) configure(f *pflag.FlagSet) error {
	file := o.Config
	if _, err := os.Stat(config.DefaultPath); err == nil && file == "" && o.Bucket == "" {
		file = config.DefaultPath
	}
	if file == "" {
		return nil
	}
	c, err := config.Load(file)
	if err != nil {
		return usageErrorf("%w", err)
	}
	r := &c.Results
	if o.Bucket == "" && r.Bucket != "" {
		o.Bucket = strings.TrimSuffix(r.Bucket, "/")
		if r.PathPrefix != "" {
			o.Bucket += "/" + r.PathPrefix
		}
	}
	for flag, field := range map[string]struct {
		to   *string
		from string
	}{
		"path-strategy": {&o.Job.Strategy, r.PathStrategy},
		"default-org":   {&o.Job.DefaultOrg, r.DefaultOrg},
		"default-repo":  {&o.Job.DefaultRepo, r.DefaultRepo},
	} {
		if !f.Changed(flag) && field.from != "" {
			*field.to = field.from
		}
	}
	return nil
}

// complete checks the flags, and what they do not say takes from the
// configuration and the environment.
func (o *publishOptions) complete(s *Surroundings, f *pflag.FlagSet) error {
	if err := o.configure(f); err != nil {
		return err
	}
	var problems []error
	at, err := bucket.ParseURL(o.Bucket)
	if o.Bucket == "" {
		err = errors.New("it is missing; say gs://NAME, s3://NAME or file:///FOLDER, or results.bucket in " + config.DefaultPath)
	}
	if err != nil {
		problems = append(problems, fmt.Errorf("--bucket: %w", err))
	}
	o.At = at
	problems = append(problems, o.Job.Validate())
	if o.Build != "" {
		if _, err := testgrid.ParseBuildID(o.Build); err != nil {
			problems = append(problems, fmt.Errorf("--build-id: %w", err))
		}
	}
	if o.Part != testgrid.OnlyStart && (o.Parallel < 1 || o.Parallel > 256) {
		problems = append(problems, fmt.Errorf("--parallel %d: must be 1 to 256", o.Parallel))
	}
	if f.Changed("attempt") && o.Attempt < 2 {
		problems = append(problems, fmt.Errorf("--attempt %d: the run itself is attempt 1; say 2 or more", o.Attempt))
	}
	if o.Attempt != 0 && o.Replace && o.Build == "" {
		problems = append(problems, errors.New("--attempt makes a build of its own, and --replace takes the place of one: use one of them, or say with --build-id which build the attempt is to replace"))
	}
	problems = append(problems, testgrid.ValidateLinks(o.Links))
	if f := report.Format(o.Output); f != report.FormatTable && f != report.FormatJSON {
		problems = append(problems, fmt.Errorf("--output %q: must be table or json", o.Output))
	}
	o.Endpoint = endpointOf(s, o.Endpoint, o.Bucket)
	if u, err := url.Parse(o.Endpoint); o.Endpoint != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		problems = append(problems, fmt.Errorf("--endpoint %q: it is not a URL of a server; say http://HOST:PORT or https://HOST", o.Endpoint))
	}
	if err := errors.Join(problems...); err != nil {
		return usageErrorf("%w", err)
	}
	job, err := prow.FromEnvironment(s.Getenv)
	if err != nil {
		return usageErrorf("%w", err)
	}
	if job != nil && job.Decorated() && !o.DryRun && at.Scheme != bucket.File {
		return usageErrorf("this is a Prow job: its sidecar publishes what lies in $ARTIFACTS (%s) when the job ends, and both would write the same build. Run with --report-dir \"$ARTIFACTS\", and leave 'publish' out", s.Getenv("ARTIFACTS"))
	}
	if at := o.Ahead(time.Now()); !at.IsZero() {
		fmt.Fprintf(s.Stderr, "publish: by its id, build %s is of %s: until then, whatever else this job publishes needs a larger --build-id, or is refused\n", o.Build, at.UTC().Format(time.DateOnly))
	}
	if o.Links == nil {
		o.Links = map[string]string{}
	}
	if id := s.Getenv("GITHUB_RUN_ID"); id != "" && s.Getenv("GITHUB_ACTIONS") == "true" && o.Links["workflow-run"] == "" {
		o.Links["workflow-run"] = fmt.Sprintf("%s/%s/actions/runs/%s", s.Getenv("GITHUB_SERVER_URL"), s.Getenv("GITHUB_REPOSITORY"), id)
	}
	return nil
}

func publishNote(s *Surroundings) func(string) {
	return func(text string) { fmt.Fprintf(s.Stderr, "publish: %s\n", text) }
}

// publisher connects to the bucket.
func (o *publishOptions) publisher(ctx context.Context, s *Surroundings) (*testgrid.Publisher, error) {
	note := publishNote(s)
	b, err := bucket.Open(ctx, o.Bucket, bucket.Options{
		Endpoint:    o.Endpoint,
		Anonymous:   o.Anonymous,
		Connections: o.Parallel,
		Existing:    o.DryRun,
		Retry: bucket.Retry{Note: func(what string, err error, wait time.Duration) {
			note(fmt.Sprintf("%s: %v; trying again in %s", what, err, wait.Round(100*time.Millisecond)))
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("--bucket: %w", err)
	}
	return &testgrid.Publisher{Bucket: b, Parallel: o.Parallel, Replace: o.Replace, Note: note, Progress: o.progress(s)}, nil
}

// progress shows how far a publication is: a live line in a terminal, else a
// line now and then.
func (o *publishOptions) progress(s *Surroundings) func(testgrid.Progress) {
	live := widthOf(s.Stderr) > 0
	every := 10 * time.Second
	if live {
		every = 100 * time.Millisecond
	}
	shown := time.Now()
	return func(p testgrid.Progress) {
		done := p.Sent+p.Kept == p.Total
		if now := time.Now(); now.Sub(shown) >= every || live && done {
			shown = now
			text := fmt.Sprintf("publish: %d of %d objects, %s sent", p.Sent+p.Kept, p.Total, mebibytes(p.Bytes))
			switch {
			case live && !done:
				fmt.Fprintf(s.Stderr, "\r\x1b[K%s", text)
			case live:
				fmt.Fprint(s.Stderr, "\r\x1b[K")
			default:
				fmt.Fprintln(s.Stderr, text)
			}
		}
	}
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

func (o *publishOptions) start(cmd *cobra.Command, s *Surroundings) error {
	ctx := cmd.Context()
	if err := o.complete(s, cmd.Flags()); err != nil {
		return err
	}
	now := time.Now()
	plan, err := o.PlanStart(assess.NewRunID(now), now)
	if err != nil {
		return err
	}
	if o.DryRun {
		return plan.Table().Write(s.Stdout, report.Format(o.Output))
	}
	p, err := o.publisher(ctx, s)
	if err != nil {
		return err
	}
	defer p.Bucket.Close()
	sent, err := p.Publish(ctx, plan)
	if err != nil {
		return o.failed(ctx, plan.Build, err)
	}
	fmt.Fprintf(s.Stderr, "publish: started %s\n", plan.URL)
	return o.published(s.Stdout, plan, sent, plan.Build)
}

func (o *publishOptions) finish(cmd *cobra.Command, s *Surroundings, dirs []string) error {
	ctx := cmd.Context()
	if err := o.complete(s, cmd.Flags()); err != nil {
		return err
	}
	results, err := testgrid.ReadResults(dirs)
	if err != nil {
		return usageErrorf("%w", err)
	}
	for _, f := range results.Folders {
		// Its end would come when TestGrid no longer reads the build.
		if !o.DryRun && result.InUse(f.Dir) {
			return usageErrorf("publishing %s: a run still writes there: publish it when that has ended; until then 'testgrid preview' shows what it has", f.Dir)
		}
	}
	if !results.Run.Finished {
		fmt.Fprintln(s.Stderr, "publish: the run did not come to its end: what it has is published as its result")
	}
	if have, all := len(results.Run.Manifests()), results.Run.Plan.Shards; have < all {
		fmt.Fprintf(s.Stderr, "publish: these are the results of %d of %d shards, so the build is not a success; name the folders of all shards\n", have, all)
	}
	if o.Commit == "" && results.Run.Manifest.Source.Commit == "" {
		fmt.Fprintln(s.Stderr, "publish: no commit is known, and TestGrid's first column header will say \"missing\"; name it with --commit")
	}
	// A plan is made without the bucket, but for the id of a build that only the
	// bucket knows.
	var p *testgrid.Publisher
	if !o.DryRun || o.Asks() {
		switch p, err = o.publisher(ctx, s); {
		case o.DryRun && errors.Is(err, bucket.ErrNoBucket):
			p = nil // a folder that is yet to be made
		case err != nil:
			return err
		default:
			defer p.Bucket.Close()
		}
	}
	plan, err := o.Plan(ctx, p, results, time.Now(), publishNote(s))
	if err != nil {
		return o.failed(ctx, "", err)
	}
	for _, skipped := range plan.Skipped {
		fmt.Fprintf(s.Stderr, "publish: %s is left out: %s\n", skipped.File, skipped.Reason)
	}
	if o.DryRun {
		return plan.Table().Write(s.Stdout, report.Format(o.Output))
	}
	sent, err := p.Publish(ctx, plan)
	if err != nil {
		return o.failed(ctx, plan.Build, err)
	}
	fmt.Fprintf(s.Stderr, "publish: build %s of %s: %d objects sent (%s), %d were there; %s\n",
		plan.Build, o.Job.Name, sent.Sent, mebibytes(sent.Bytes), sent.Kept, results.Judgement.Words())
	return o.published(s.Stdout, plan, sent, plan.URL)
}

// failed gives an error its exit code, and says how to go on.
func (o *publishOptions) failed(ctx context.Context, build string, err error) error {
	if usage := (*verdict.UsageError)(nil); errors.As(err, &usage) {
		return err
	}
	code := verdict.ExitInconclusive
	var incomplete *testgrid.IncompleteError
	switch {
	case ctx.Err() != nil:
		code = verdict.ExitInterrupted
		if errors.As(err, &incomplete) {
			incomplete.Cause = errors.New("interrupted")
		} else {
			err = errors.New("interrupted before anything was sent")
		}
	case testgrid.Refused(err):
		code = verdict.ExitUsage
	}
	return &exitError{code: code, cause: fmt.Errorf("publishing: %w", o.Advise(build, err))}
}

// published prints what a command has as its result.
func (o *publishOptions) published(w io.Writer, plan *testgrid.UploadPlan, sent testgrid.Progress, text string) error {
	if report.Format(o.Output) != report.FormatJSON {
		_, err := fmt.Fprintln(w, text)
		return err
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Build   string             `json:"build"`
		URL     string             `json:"url"`
		Sent    int                `json:"sent"`
		Kept    int                `json:"kept"`
		Bytes   int64              `json:"bytes"`
		Skipped []testgrid.Skipped `json:"skipped,omitempty"`
	}{plan.Build, plan.URL, sent.Sent, sent.Kept, sent.Bytes, plan.Skipped})
}
