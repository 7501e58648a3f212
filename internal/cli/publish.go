package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
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
	Job    testgrid.Job
	Config string
	Bucket string
	bucketOptions
	Parallel int
	Build    string
	Attempt  int
	Replace  bool
	Commit   string
	Metadata map[string]string
	Links    map[string]string
	DryRun   bool
	Output   string

	at bucket.Location
	// verb is which of the commands it is.
	verb publishVerb
}

type publishVerb int

const (
	publishAll publishVerb = iota
	publishStart
	publishFinish
)

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
	o := publishOptions{verb: publishStart}
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
	o := publishOptions{verb: publishFinish}
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
	o.at = at
	problems = append(problems, o.Job.Validate())
	if o.Build != "" {
		if _, err := testgrid.ParseBuildID(o.Build); err != nil {
			problems = append(problems, fmt.Errorf("--build-id: %w", err))
		}
	}
	if o.verb != publishStart && (o.Parallel < 1 || o.Parallel > 256) {
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
	if at, err := testgrid.BuildTime(o.Build); err == nil && at.After(time.Now().Add(clockSkew)) {
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

func (o *publishOptions) planOptions(build string) *testgrid.Options {
	return &testgrid.Options{Job: o.Job, Build: build, URL: o.at.URL, Compress: o.at.Decompresses(), Links: o.Links}
}

// publisher connects to the bucket.
func (o *publishOptions) publisher(ctx context.Context, s *Surroundings) (*testgrid.Publisher, error) {
	note := func(text string) { fmt.Fprintf(s.Stderr, "publish: %s\n", text) }
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
	build := o.Build
	if build == "" {
		var err error
		if build, err = testgrid.BuildID(now, assess.NewRunID(now)); err != nil {
			return err
		}
	}
	plan, err := testgrid.PlanStart(o.planOptions(build), testgrid.NewStarted(&o.Job, now, o.Commit))
	if err != nil {
		return usageErrorf("%w", err)
	}
	if o.DryRun {
		return o.show(s.Stdout, plan)
	}
	p, err := o.publisher(ctx, s)
	if err != nil {
		return err
	}
	defer p.Bucket.Close()
	sent, err := p.Publish(ctx, plan)
	if err != nil {
		return o.failed(ctx, build, err)
	}
	fmt.Fprintf(s.Stderr, "publish: started %s\n", plan.URL)
	return o.published(s.Stdout, plan, sent, build)
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
	now := time.Now()
	// A plan is made without the bucket, but for the id of a build that only the
	// bucket knows.
	var p *testgrid.Publisher
	if !o.DryRun || o.Build == "" && (o.verb == publishFinish || o.Attempt != 0) {
		switch p, err = o.publisher(ctx, s); {
		case o.DryRun && errors.Is(err, bucket.ErrNoBucket):
			p = nil // a folder that is yet to be made
		case err != nil:
			return err
		default:
			defer p.Bucket.Close()
		}
	}
	build, err := o.build(ctx, s, p, results, now)
	if err != nil {
		return err
	}
	plan, err := o.plan(results, build, now)
	if err != nil {
		return err
	}
	for _, skipped := range plan.Skipped {
		fmt.Fprintf(s.Stderr, "publish: %s is left out: %s\n", skipped.File, skipped.Reason)
	}
	if o.DryRun {
		return o.show(s.Stdout, plan)
	}
	sent, err := p.Publish(ctx, plan)
	if err != nil {
		return o.failed(ctx, build, err)
	}
	fmt.Fprintf(s.Stderr, "publish: build %s of %s: %d objects sent (%s), %d were there; %s\n",
		build, o.Job.Name, sent.Sent, mebibytes(sent.Bytes), sent.Kept, results.Judgement.Words())
	return o.published(s.Stdout, plan, sent, plan.URL)
}

// build is the id of the build that the results become. p is nil where the
// bucket is not there, or need not be asked.
func (o *publishOptions) build(ctx context.Context, s *Surroundings, p *testgrid.Publisher, r *testgrid.Results, now time.Time) (string, error) {
	attempt, start := r.Attempt()
	switch {
	case o.verb == publishFinish:
		return o.startedBuild(ctx, p, r, now)
	case o.Attempt != 0 && o.Attempt < attempt:
		return "", usageErrorf("--attempt %d: the run itself is attempt %d; say %d or more", o.Attempt, attempt, attempt)
	case o.Build != "":
		return o.Build, nil
	case o.Attempt != 0:
		return o.attemptedBuild(ctx, s, p, r, now)
	case start.After(now.Add(clockSkew)):
		// Such a build would keep all others from being listed until then.
		return "", usageErrorf("the run says that it started at %s, which is in the future: correct the clock of this machine, or of the one that ran it; --attempt %d publishes the run as a build of now", start.Format(time.RFC3339), attempt+1)
	}
	build, err := r.BuildID()
	if err != nil {
		return "", usageErrorf("%w", err)
	}
	if p != nil {
		switch other, err := p.Elsewhere(ctx, &o.Job, r, now); {
		case err != nil:
			return "", o.failed(ctx, "", err)
		case other != "":
			return other, nil
		}
	}
	return build, nil
}

// clockSkew is how far in the future a build may be, by its id.
const clockSkew = time.Hour

// startedBuild is the id of the build that 'publish start' made for the run.
func (o *publishOptions) startedBuild(ctx context.Context, p *testgrid.Publisher, r *testgrid.Results, now time.Time) (string, error) {
	build := o.Build
	if p == nil && build != "" {
		return build, nil
	}
	if p == nil {
		return "", o.failed(ctx, "", fmt.Errorf("%w: there is no folder %s", testgrid.ErrNotStarted, o.at.Dir))
	}
	if build == "" {
		var err error
		if build, err = p.Find(ctx, &o.Job, r, now); err != nil {
			return "", o.failed(ctx, "", err)
		}
	}
	_, start := r.Attempt()
	if err := p.Began(ctx, &o.Job, build, start); err != nil {
		return "", o.failed(ctx, "", err)
	}
	return build, nil
}

// attemptedBuild is the id of the build that --attempt makes: a new one, or the
// one that an earlier try has begun.
func (o *publishOptions) attemptedBuild(ctx context.Context, s *Surroundings, p *testgrid.Publisher, r *testgrid.Results, now time.Time) (string, error) {
	if p != nil {
		build, finished, err := p.Attempted(ctx, &o.Job, r, o.Attempt, now)
		switch {
		case err != nil:
			return "", o.failed(ctx, "", err)
		case finished:
			return "", usageErrorf("publishing: attempt %d of this run is published already: %s; say --attempt %d, or put it in the place of that one with --build-id %s --replace",
				o.Attempt, o.at.URL(o.Job.BuildDir(build)), o.Attempt+1, build)
		case build != "":
			fmt.Fprintf(s.Stderr, "publish: attempt %d was begun as build %s, which goes on\n", o.Attempt, build)
			return build, nil
		}
	}
	return testgrid.BuildID(now, r.Run.Manifest.RunID)
}

func (o *publishOptions) plan(r *testgrid.Results, build string, now time.Time) (*testgrid.UploadPlan, error) {
	further := map[string]string{}
	for k, v := range o.Metadata {
		further[k] = v
	}
	if o.Commit != "" {
		further["Commit"] = o.Commit
	}
	if o.Attempt != 0 {
		further["attempt"] = fmt.Sprint(o.Attempt)
	}
	var log strings.Builder
	text := report.Results{Run: r.Run, Judgement: r.Judgement}
	if err := text.Write(&log, report.FormatTable); err != nil {
		return nil, err
	}
	options := o.planOptions(build)
	options.Log = []byte(log.String())
	started, finished := r.Started(&o.Job, o.Commit), r.Finished(further, now)
	if o.Attempt != 0 {
		// A build of now: with the run's own times TestGrid could take it for too
		// old to be read.
		began, err := testgrid.BuildTime(build)
		if err != nil {
			return nil, usageErrorf("--build-id: %w", err)
		}
		finished.Metadata["run-started"] = time.Unix(started.Timestamp, 0).UTC().Format(time.RFC3339)
		started.Metadata["attempt"] = further["attempt"]
		started.Timestamp, finished.Timestamp = began.Unix(), new(now.Unix())
	}
	plan, err := testgrid.NewUploadPlan(options, r, started, finished)
	if err != nil {
		return nil, usageErrorf("%w", err)
	}
	return plan, nil
}

// refusals are what the bucket's state or the results forbid.
var refusals = []error{testgrid.ErrHeld, testgrid.ErrTaken, testgrid.ErrBackwards, testgrid.ErrNotStarted, testgrid.ErrOlder, testgrid.ErrSeveral}

// failed gives an error its exit code, and says how to go on.
func (o *publishOptions) failed(ctx context.Context, build string, err error) error {
	code := verdict.ExitInconclusive
	var incomplete *testgrid.IncompleteError
	partly := errors.As(err, &incomplete)
	switch {
	case ctx.Err() != nil:
		code = verdict.ExitInterrupted
		if !partly {
			err = errors.New("interrupted before anything was sent")
		}
	case slices.ContainsFunc(refusals, func(e error) bool { return errors.Is(err, e) }):
		code = verdict.ExitUsage
	}
	if partly {
		if code == verdict.ExitInterrupted {
			incomplete.Cause = errors.New("interrupted")
		}
		err = fmt.Errorf("%w\nThe same command%s goes on where this one stopped", err, o.again(build))
	} else if fix := o.fix(err); fix != "" {
		err = fmt.Errorf("%w; %s", err, fix)
	}
	return &exitError{code: code, cause: fmt.Errorf("publishing: %w", err)}
}

// again is what the same command needs to find the build again.
func (o *publishOptions) again(build string) string {
	if o.Build == "" && (o.verb == publishStart || o.Attempt != 0) {
		return " with --build-id " + build
	}
	return ""
}

// fix says how to go on after a refusal, with the flags that the command has.
func (o *publishOptions) fix(err error) string {
	var backwards *testgrid.BackwardsError
	switch {
	case errors.As(err, &backwards):
		now := time.Now()
		at, err := testgrid.BuildTime(backwards.Newest)
		switch {
		case err == nil && at.After(now.Add(clockSkew)):
			return fmt.Sprintf("by its id that one is of %s, so no build of now comes after it: Prow's ids are that large, and then this needs a --job of its own; else remove that build", at.UTC().Format(time.DateOnly))
		case err == nil && at.After(now):
			return fmt.Sprintf("by its id that one is of %s, which this machine's clock has yet to reach: set the clock that is wrong, or try again then", at.UTC().Format(time.RFC3339))
		case o.verb == publishStart && o.Build != "":
			return "without --build-id the build is one of now"
		case o.verb == publishAll && o.Build != "":
			return "without --build-id, --attempt N publishes the run as a build of now"
		case o.verb == publishStart, o.Attempt != 0:
			return "the same command again makes a build of now"
		case o.verb == publishAll:
			return "--attempt N publishes the run as a build of now"
		}
	case errors.Is(err, testgrid.ErrHeld), errors.Is(err, testgrid.ErrTaken):
		switch o.verb {
		case publishStart:
			return "without --build-id the build gets an id of its own"
		case publishFinish:
			return "--replace puts these results in the place of what is there"
		case publishAll:
			without := ""
			if o.Build != "" {
				without = ", without --build-id,"
			}
			return "--attempt N" + without + " publishes the run as a build of now; --replace puts it in the place of what is there"
		}
	}
	return ""
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

// show prints a plan.
func (o *publishOptions) show(w io.Writer, plan *testgrid.UploadPlan) error {
	t := report.Table{Header: []string{"Step", "Object", "Bytes", "Type", "Encoding", "Metadata", "From"}, Value: plan}
	for i := range plan.Objects {
		object := &plan.Objects[i]
		var metadata []string
		for k, v := range object.Metadata {
			metadata = append(metadata, k+"="+v)
		}
		slices.Sort(metadata)
		t.Rows = append(t.Rows, []string{
			string(object.Step), object.Key, fmt.Sprint(object.Size), object.ContentType, object.ContentEncoding, strings.Join(metadata, " "), object.Source,
		})
	}
	return t.Write(w, report.Format(o.Output))
}
