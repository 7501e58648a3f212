package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/prow"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/actions"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/github"
)

type commentOptions struct {
	Repo    string
	Pull    int
	Commit  string
	Run     uint64
	Attempt int
	// WorkflowRun is the run whose artifacts are the results.
	WorkflowRun uint64
	ID          string
	Base        []string
	Links       []string
	API         string
	TokenFile   string
	Author      string
	Settle      time.Duration
	DryRun      bool
	Summary     bool
	Annotate    bool

	bucket bucketOptions
	// baseNotes say what of the base there is not.
	baseNotes []string
	// reporter says whose workflow reports, where it is not the repository's own.
	reporter string
	// triggering is the workflow run that the results are of, where it is another.
	triggering *github.Triggering
	// readOnly says why the token cannot write, where nobody can help it.
	readOnly string
}

func newCommentCommand(s *Surroundings) *cobra.Command {
	o := &commentOptions{}
	cmd := &cobra.Command{
		Use:   "comment [[NAME=]DIR...]",
		Short: "Comment a per-category summary on a pull request",
		Long: `Keep one comment on a pull request that says what results came to: the verdict,
a row per category, what changed against the base, the first failures with their
evidence. DIR is a results folder; several become the columns of one table, each
under its NAME.

In GitHub Actions and in Prow, repository, pull request, commit, run and attempt
are taken from the environment. The token is $GITHUB_TOKEN or that of
--token-file; it needs "pull-requests: write". For a pull request from a fork, or
of Dependabot, the token of the workflow is read-only: nothing is posted then,
which is not a failure. The same holds for a conversation that is locked.

In a workflow that "workflow_run" triggers, the results are those of the run that
triggered it; elsewhere --workflow-run names one. Without DIR, its artifacts
"op-readiness-NAME-merged-attempt-N" are downloaded, which needs "actions: read";
several names become the columns. They are read as what they are, data from
somebody else: they must be for the commit that was tested, the pull request must
be open with that commit as its head, and the comment says whose workflow
reported. A run that left no results is reported as such.

The base can lie in a bucket, as gs://, s3:// or file://: a build, or a job, of
which the newest finished build is taken. Where there is none, or it cannot be
read, that is noted, nothing is compared, and the comment is as good.

Results that are older than those of the comment never overwrite it, and nothing
is posted once the pull request has another head.`,
		Example: `  # What would be posted
  op-readiness comment merged --dry-run

  # In a workflow; the environment says the rest
  op-readiness comment merged --link "artifacts=$ARTIFACTS_URL"

  # In a workflow that workflow_run triggers: the results of that run
  op-readiness comment

  # What would be posted for a run, by hand
  op-readiness comment --repo o/r --workflow-run 17123456789 --dry-run

  # Two cells of a matrix, against the base branch
  op-readiness comment ltsc2022=a ltsc2025=b --base ltsc2022=main-a --base ltsc2025=main-b

  # Against the newest build of a periodic job
  op-readiness comment merged --base gs://my-bucket/logs/ci-windows-op-readiness`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args, s) },
	}
	f := cmd.Flags()
	f.StringVar(&o.Repo, "repo", "", "repository of the pull request, as owner/name")
	f.IntVar(&o.Pull, "pull", 0, "number of the pull request")
	f.StringVar(&o.Commit, "commit", "", "hash of the commit that was tested")
	f.Uint64Var(&o.Run, "run", 0, "number of the run, which grows with time")
	f.IntVar(&o.Attempt, "attempt", 0, "which attempt at the run it is")
	f.Uint64Var(&o.WorkflowRun, "workflow-run", 0, "id of the run of a GitHub workflow whose artifacts are the results (default the one that triggered this)")
	f.StringVar(&o.ID, "comment-id", "readiness", "which comment to keep, where a pull request has several")
	f.StringArrayVar(&o.Base, "base", nil, "results of the base branch to compare with, as [NAME=]DIR or [NAME=]URL of a build or a job in a bucket; may be repeated")
	o.bucket.addFlags(f)
	f.StringArrayVar(&o.Links, "link", nil, "a link to show, as TEXT=URL; may be repeated")
	f.StringVar(&o.API, "api", "", "address of GitHub's API (default $GITHUB_API_URL, or "+github.DefaultAPI+")")
	f.StringVar(&o.TokenFile, "token-file", "", "file with the token (default the content of $GITHUB_TOKEN)")
	f.StringVar(&o.Author, "author", "", "login that the token belongs to; only its comments are looked at (default GitHub is asked; "+github.ActionsBot+" for a workflow's token)")
	f.DurationVar(&o.Settle, "settle", github.DefaultSettle, "how long after a write to look whether somebody else wrote at the same moment")
	f.BoolVar(&o.DryRun, "dry-run", false, "print the comment, and post nothing")
	f.BoolVar(&o.Summary, "summary", false, "add the report to the job summary, too ($GITHUB_STEP_SUMMARY)")
	f.BoolVar(&o.Annotate, "annotate", false, "print annotations for GitHub Actions, too")
	return cmd
}

func (o *commentOptions) run(cmd *cobra.Command, args []string, s *Surroundings) error {
	if o.WorkflowRun != 0 && len(args) > 0 {
		return usageErrorf("--workflow-run: the results are the artifacts of that run, or those in %s: give one of the two", args[0])
	}
	if err := o.checkBases(); err != nil {
		return err
	}
	report, err := o.report(args)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return interrupted(cmd.Context(), o.runOfWorkflow(cmd.Context(), s, report))
	}
	if err := o.complete(s); err != nil {
		return err
	}
	for _, c := range report.Cells {
		if err := o.about().Check(c.Run, c.Run.Dir); err != nil {
			return usageErrorf("%w", err)
		}
	}
	bases, err := o.bases(cmd.Context(), s)
	if err != nil {
		return err
	}
	for i := range report.Cells {
		report.Cells[i].Base = bases[report.Cells[i].Name]
	}
	report.Commit, report.Reporter, report.Notes = o.Commit, o.reporter, o.baseNotes
	if err := o.tellActions(report, s); err != nil {
		return err
	}
	body := report.Markdown(o.room())
	if o.DryRun {
		_, err := io.WriteString(s.Stdout, body)
		return err
	}
	return interrupted(cmd.Context(), o.post(cmd.Context(), s, body))
}

func (o *commentOptions) marker() github.Marker {
	return github.Marker{ID: o.ID, Head: o.Commit, Run: o.Run, Attempt: o.Attempt}
}

// room is how long a comment's body may be.
func (o *commentOptions) room() int { return github.MaxComment - len(o.marker().String()) }

// about is what the comment is about.
func (o *commentOptions) about() github.Subject {
	about := github.Subject{Repository: o.Repo, Commit: o.Commit}
	if o.triggering != nil {
		about.Run = o.triggering.Run
	}
	return about
}

// report reads and judges the results in folders, and makes a report of them
// that may have no cell yet.
func (o *commentOptions) report(args []string) (*github.Report, error) {
	if err := github.ValidID(o.ID); err != nil {
		return nil, usageErrorf("--comment-id: %w", err)
	}
	r := &github.Report{}
	for _, arg := range args {
		name, dir := nameAndDir(arg)
		if slices.ContainsFunc(r.Cells, func(c github.Cell) bool { return c.Name == name }) {
			return nil, usageErrorf("two results are named %q: name each, as NAME=DIR", name)
		}
		run, err := result.Load(dir)
		if err != nil {
			return nil, usageErrorf("%w", err)
		}
		r.Cells = append(r.Cells, github.Cell{Name: name, Run: run, Judgement: verdict.Judge(run)})
	}
	for _, b := range o.Base {
		name, _ := nameAndSource(b)
		if len(args) > 0 && !slices.ContainsFunc(r.Cells, func(c github.Cell) bool { return c.Name == name }) {
			return nil, usageErrorf("--base: no results are named %q", name)
		}
	}
	for _, l := range o.Links {
		text, address, ok := strings.Cut(l, "=")
		if !ok || text == "" || !github.ValidLink(address) {
			return nil, usageErrorf("--link: %q is not TEXT=URL with an address of http or https", l)
		}
		r.Links = append(r.Links, github.Link{Text: text, URL: address})
	}
	return r, nil
}

// nameAndDir takes [NAME=]DIR apart. A folder of that very name is meant where
// there is one.
func nameAndDir(arg string) (name, dir string) {
	if _, err := os.Stat(arg); err == nil {
		return "", arg
	}
	if name, dir, ok := strings.Cut(arg, "="); ok {
		return name, dir
	}
	return "", arg
}

// complete fills in from the environment what was not given.
func (o *commentOptions) complete(s *Surroundings) error {
	job, err := prow.FromEnvironment(s.Getenv)
	if err != nil {
		return usageErrorf("%w", err)
	}
	workflow, err := github.FromEnvironment(s.Getenv)
	if err != nil {
		return usageErrorf("%w", err)
	}
	switch {
	case workflow != nil:
		o.fromWorkflow(workflow)
	case job != nil:
		source := job.Source()
		o.Repo, o.Commit, o.Pull = cmp.Or(o.Repo, source.Repository), cmp.Or(o.Commit, source.Commit), cmp.Or(o.Pull, source.Pull)
		if o.Run == 0 {
			o.Run, _ = strconv.ParseUint(job.BuildID(), 10, 64)
		}
	}
	o.API, o.Attempt = cmp.Or(o.API, s.Getenv("GITHUB_API_URL"), github.DefaultAPI), max(o.Attempt, 1)
	if o.DryRun {
		return nil
	}
	var errs []error
	errs = append(errs, o.checkRepo())
	if o.Pull < 1 && o.triggering == nil {
		errs = append(errs, errors.New("--pull: which pull request? The environment does not say: give its number, or run this for pull requests only"))
	}
	if o.Commit == "" {
		errs = append(errs, errors.New("--commit: which commit was tested? The environment does not say: give its whole hash"))
	} else if err := github.ValidCommit(o.Commit); err != nil {
		errs = append(errs, fmt.Errorf("--commit: %w", err))
	}
	if o.Run == 0 {
		errs = append(errs, errors.New("--run: which run? It keeps older results from overwriting newer ones: give a number that grows with time"))
	}
	return usage(errs...)
}

func (o *commentOptions) checkRepo() error {
	if o.Repo == "" {
		return errors.New("--repo: which repository? The environment does not say: give owner/name")
	}
	if !github.ValidRepository(o.Repo) {
		return fmt.Errorf("--repo: %q is not a repository: give owner/name", o.Repo)
	}
	return nil
}

func (o *commentOptions) fromWorkflow(w *github.Environment) {
	o.Repo, o.Commit = cmp.Or(o.Repo, w.Repository), cmp.Or(o.Commit, w.Head)
	o.Pull, o.readOnly = cmp.Or(o.Pull, w.Pull), w.ReadOnly()
	if t := w.Triggering; t != nil {
		o.reportsOn(t)
		return
	}
	o.Run, o.Attempt = cmp.Or(o.Run, w.Run), cmp.Or(o.Attempt, w.Attempt)
}

// reportsOn says that the results are of another workflow run. The order of runs
// is that of those that tested, not of those that report.
func (o *commentOptions) reportsOn(t *github.Triggering) {
	o.triggering, o.Run, o.Attempt = t, cmp.Or(o.Run, t.Run), cmp.Or(o.Attempt, t.Attempt)
	o.reporter = fmt.Sprintf("%s of %s", cmp.Or(t.Workflow, "a workflow"), cmp.Or(t.HeadRepo, "a repository that is gone"))
}

// summarize adds to the job summary, if that is asked for.
func (o *commentOptions) summarize(s *Surroundings, markdown string) error {
	path := s.Getenv("GITHUB_STEP_SUMMARY")
	switch {
	case !o.Summary:
		return nil
	case path == "":
		return usageErrorf("--summary: $GITHUB_STEP_SUMMARY is not set: this is not a step of a workflow")
	}
	return actions.WriteSummary(path, markdown)
}

// tellActions writes what belongs beside the workflow run.
func (o *commentOptions) tellActions(report *github.Report, s *Surroundings) error {
	if err := o.summarize(s, report.Markdown(github.MaxSummary)); err != nil {
		return err
	}
	if o.Annotate {
		return annotate(s, s.Stdout, func(w io.Writer) error { return actions.Annotate(w, report.Annotations()) })
	}
	return nil
}

// token returns the token; "" where there is none.
func (o *commentOptions) token(s *Surroundings) (string, error) {
	from, token := "$GITHUB_TOKEN", s.Getenv("GITHUB_TOKEN")
	if o.TokenFile != "" {
		data, err := os.ReadFile(o.TokenFile)
		if err != nil {
			return "", usageErrorf("--token-file: %w", err)
		}
		from, token = "--token-file: "+o.TokenFile, string(data)
	}
	token = strings.TrimSpace(token)
	switch {
	case token == "" && o.TokenFile != "":
		return "", usageErrorf("%s is empty: put the token into it", from)
	case github.ValidToken(token) != nil:
		return "", usageErrorf("%s: %w", from, github.ValidToken(token))
	}
	return token, nil
}

// tellReadOnly says why nothing is posted.
func (o *commentOptions) tellReadOnly(s *Surroundings) {
	fmt.Fprintf(s.Stderr, "Nothing is posted: %s. A workflow that workflow_run triggers can post; --summary shows the report here\n", o.readOnly)
}

// client makes a client of GitHub's API; nil where there is no token, and nobody
// can help it.
func (o *commentOptions) client(s *Surroundings, without string) (*github.API, error) {
	token, err := o.token(s)
	if err != nil {
		return nil, err
	}
	if token == "" {
		if o.readOnly != "" {
			return nil, nil
		}
		return nil, usageErrorf("there is no token: set $GITHUB_TOKEN, or give --token-file; %s", without)
	}
	client, err := github.NewClient(o.API, token, "op-readiness/"+toolVersion(), s.Stderr)
	if err != nil {
		return nil, usageErrorf("--api: %w", err)
	}
	return client, nil
}

// post posts body on the pull request, or, for another workflow run, on the open
// ones that it is for.
func (o *commentOptions) post(ctx context.Context, s *Surroundings, body string) error {
	client, err := o.client(s, "--dry-run needs none")
	if err != nil {
		return err
	}
	if client == nil {
		o.tellReadOnly(s)
		return nil
	}
	owner, name, _ := strings.Cut(o.Repo, "/")
	pulls := []github.PullRequest{{Owner: owner, Repo: name, Number: o.Pull}}
	if o.Pull == 0 {
		var why string
		if pulls, why, err = github.Resolve(ctx, client, owner, name, o.triggering.HeadRepo, o.triggering.HeadBranch, o.Commit); err != nil {
			return err
		}
		if len(pulls) == 0 {
			fmt.Fprintf(s.Stderr, "Nothing is posted: %s\n", why)
		}
	}
	return o.postOn(ctx, s, client, pulls, body, false)
}

// postOn posts body on pull requests; with updateOnly, on those that have such a
// comment.
func (o *commentOptions) postOn(ctx context.Context, s *Surroundings, client *github.API, pulls []github.PullRequest, body string, updateOnly bool) error {
	if len(pulls) == 0 {
		return nil
	}
	if o.Author == "" {
		author, err := github.Author(ctx, client)
		if err != nil {
			return err
		}
		o.Author = author
	}
	poster := github.Poster{Client: client, Author: o.Author, OpenOnly: o.triggering != nil, UpdateOnly: updateOnly, Settle: o.Settle, Narration: s.Stderr}
	for _, pull := range pulls {
		done, url, err := poster.Post(ctx, pull, o.marker(), body)
		if errors.Is(err, github.ErrPermission) && o.readOnly != "" {
			o.tellReadOnly(s)
			continue
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(s.Stderr, "%s: comment %s\n", pull, strings.TrimSpace(string(done)+" "+url))
	}
	return nil
}
