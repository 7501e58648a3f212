package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/windows-op-readiness/windows-op-readiness/internal/actions"
	"github.com/windows-op-readiness/windows-op-readiness/internal/github"
	"github.com/windows-op-readiness/windows-op-readiness/internal/prow"
	"github.com/windows-op-readiness/windows-op-readiness/internal/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/verdict"
)

type commentOptions struct {
	Repo      string
	Pull      int
	Commit    string
	Run       uint64
	Attempt   int
	ID        string
	Base      []string
	Links     []string
	API       string
	TokenFile string
	Author    string
	Settle    time.Duration
	DryRun    bool
	Summary   bool
	Annotate  bool

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
		Use:   "comment [NAME=]DIR...",
		Short: "Comment a per-category summary on a pull request",
		Long: `Keep one comment on a pull request that says what results came to: the verdict,
a row a category, what changed against the base, the first failures with their
evidence. DIR is a results folder; several become the columns of one table, each
under its NAME.

In GitHub Actions and in Prow, repository, pull request, commit, run and attempt
are taken from the environment. The token is $GITHUB_TOKEN or that of
--token-file; it needs "pull-requests: write". For a pull request from a fork, or
of Dependabot, the token of the workflow is read-only: nothing is posted then,
which is no failure. The same holds for a conversation that is locked.

In a workflow that "workflow_run" triggers, the results are those of the run that
triggered it. They are read as what they are, data from somebody else: they must
be for the commit that was tested, and the comment says whose workflow reported.

Results that are older than those of the comment never overwrite it, and nothing
is posted once the pull request has another head.`,
		Example: `  # What would be posted
  op-readiness comment merged --dry-run

  # In a workflow; the environment says the rest
  op-readiness comment merged --link "artifacts=$ARTIFACTS_URL"

  # Two cells of a matrix, against the base branch
  op-readiness comment ltsc2022=a ltsc2025=b --base ltsc2022=main-a --base ltsc2025=main-b`,
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args, s) },
	}
	f := cmd.Flags()
	f.StringVar(&o.Repo, "repo", "", "repository of the pull request, as owner/name")
	f.IntVar(&o.Pull, "pull", 0, "number of the pull request")
	f.StringVar(&o.Commit, "commit", "", "hash of the commit that was tested")
	f.Uint64Var(&o.Run, "run", 0, "number of the run, which grows with time")
	f.IntVar(&o.Attempt, "attempt", 0, "which attempt at the run it is")
	f.StringVar(&o.ID, "comment-id", "readiness", "which comment to keep, where a pull request has several")
	f.StringArrayVar(&o.Base, "base", nil, "results of the base branch to compare with, as [NAME=]DIR; may be repeated")
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
	report, err := o.report(args)
	if err != nil {
		return err
	}
	if err := o.complete(s); err != nil {
		return err
	}
	for _, c := range report.Cells {
		if err := o.belongs(c.Run); err != nil {
			return err
		}
	}
	report.Commit, report.Reporter = o.Commit, o.reporter
	if err := o.tellActions(report, s); err != nil {
		return err
	}
	marker := github.Marker{ID: o.ID, Head: o.Commit, Run: o.Run, Attempt: o.Attempt}
	body := report.Markdown(github.MaxComment - len(marker.String()))
	if o.DryRun {
		_, err := io.WriteString(s.Stdout, body)
		return err
	}
	return o.post(cmd, s, marker, body)
}

// belongs returns an error when results are not for what the comment is about.
// Where another workflow made them, they must say that they are.
func (o *commentOptions) belongs(run *result.Run) error {
	source := run.Manifest.Source
	whose := "this is about"
	if o.triggering != nil {
		whose = "the workflow run that triggered this was for"
	}
	if o.Commit != "" && source.Commit != o.Commit && (o.triggering != nil || source.Commit != "") {
		return usageErrorf("%s: the results are for commit %q, and %s %s: take the results of that commit", run.Dir, result.Cut(source.Commit, 100), whose, o.Commit)
	}
	if o.triggering != nil && !strings.EqualFold(source.Repository, o.Repo) {
		return usageErrorf("%s: the results are for repository %q, and this is about %s: take the results of that repository", run.Dir, result.Cut(source.Repository, 100), o.Repo)
	}
	return nil
}

// report reads and judges the results.
func (o *commentOptions) report(args []string) (*github.Report, error) {
	if err := github.ValidID(o.ID); err != nil {
		return nil, usageErrorf("--comment-id: %w", err)
	}
	bases := map[string]*verdict.Judgement{}
	for _, b := range o.Base {
		name, dir := nameAndDir(b)
		if _, twice := bases[name]; twice {
			return nil, usageErrorf("--base: two are named %q", name)
		}
		run, err := result.Read(dir)
		if err != nil {
			return nil, usageErrorf("--base: %w", err)
		}
		bases[name] = verdict.Judge(run)
	}
	r := &github.Report{}
	for _, arg := range args {
		name, dir := nameAndDir(arg)
		if slices.ContainsFunc(r.Cells, func(c github.Cell) bool { return c.Name == name }) {
			return nil, usageErrorf("two results are named %q: name each, as NAME=DIR", name)
		}
		run, err := result.Read(dir)
		if err != nil {
			return nil, usageErrorf("%w", err)
		}
		r.Cells = append(r.Cells, github.Cell{Name: name, Run: run, Judgement: verdict.Judge(run), Base: bases[name]})
		delete(bases, name)
	}
	for name := range bases {
		return nil, usageErrorf("--base: no results are named %q", name)
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
	if owner, name, ok := strings.Cut(o.Repo, "/"); !ok || owner == "" || name == "" || strings.Contains(name, "/") {
		errs = append(errs, fmt.Errorf("--repo: %q is not a repository: give owner/name", o.Repo))
	}
	if o.Pull < 1 && o.triggering == nil {
		errs = append(errs, errors.New("--pull: which pull request? The environment does not say: give its number, or run this for pull requests only"))
	}
	if err := github.ValidCommit(o.Commit); err != nil {
		errs = append(errs, fmt.Errorf("--commit: %w", err))
	}
	if o.Run == 0 {
		errs = append(errs, errors.New("--run: which run? It keeps older results from overwriting newer ones: give a number that grows with time"))
	}
	if len(errs) > 0 {
		return usageErrorf("%w", errors.Join(errs...))
	}
	return nil
}

func (o *commentOptions) fromWorkflow(w *github.Environment) {
	o.Repo, o.Commit = cmp.Or(o.Repo, w.Repository), cmp.Or(o.Commit, w.Head)
	o.Pull, o.readOnly = cmp.Or(o.Pull, w.Pull), w.ReadOnly()
	if t := w.Triggering; t != nil {
		// The order of runs is that of those that tested, not of those that report.
		o.triggering, o.Run, o.Attempt = t, cmp.Or(o.Run, t.Run), cmp.Or(o.Attempt, t.Attempt)
		o.reporter = fmt.Sprintf("%s of %s", t.Workflow, t.HeadRepo)
		return
	}
	o.Run, o.Attempt = cmp.Or(o.Run, w.Run), cmp.Or(o.Attempt, w.Attempt)
}

// tellActions writes what belongs beside the workflow run.
func (o *commentOptions) tellActions(report *github.Report, s *Surroundings) error {
	if o.Summary {
		path := s.Getenv("GITHUB_STEP_SUMMARY")
		if path == "" {
			return usageErrorf("--summary: $GITHUB_STEP_SUMMARY is not set: this is no step of a workflow")
		}
		if err := actions.WriteSummary(path, report.Markdown(github.MaxSummary)); err != nil {
			return err
		}
	}
	if o.Annotate {
		return actions.Annotate(s.Stdout, report.Annotations())
	}
	return nil
}

func (o *commentOptions) token(s *Surroundings) (string, error) {
	if o.TokenFile == "" {
		return strings.TrimSpace(s.Getenv("GITHUB_TOKEN")), nil
	}
	data, err := os.ReadFile(o.TokenFile)
	if err != nil {
		return "", usageErrorf("--token-file: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// tellReadOnly says why nothing is posted.
func (o *commentOptions) tellReadOnly(s *Surroundings) {
	fmt.Fprintf(s.Stderr, "Nothing is posted: %s. A workflow that workflow_run triggers can post; --summary shows the report here\n", o.readOnly)
}

func (o *commentOptions) post(cmd *cobra.Command, s *Surroundings, marker github.Marker, body string) error {
	token, err := o.token(s)
	if err != nil {
		return err
	}
	if token == "" {
		if o.readOnly != "" {
			o.tellReadOnly(s)
			return nil
		}
		return usageErrorf("there is no token: set $GITHUB_TOKEN, or give --token-file; --dry-run needs none")
	}
	client, err := github.NewClient(o.API, token, "op-readiness/"+toolVersion(), s.Stderr)
	if err != nil {
		return usageErrorf("--api: %w", err)
	}
	owner, name, _ := strings.Cut(o.Repo, "/")
	pulls := []github.PullRequest{{Owner: owner, Repo: name, Number: o.Pull}}
	if o.Pull == 0 {
		if pulls, err = github.Resolve(cmd.Context(), client, owner, name, o.triggering.HeadRepo, o.triggering.HeadBranch, o.Commit); err != nil {
			return interrupted(cmd.Context(), err)
		}
		if len(pulls) == 0 {
			fmt.Fprintf(s.Stderr, "No open pull request of %s has %s of %s as its head: nothing is posted\n", o.Repo, o.Commit, o.triggering.HeadRepo)
		}
	}
	if o.Author == "" && len(pulls) > 0 {
		if o.Author, err = github.Author(cmd.Context(), client); err != nil {
			return interrupted(cmd.Context(), err)
		}
	}
	poster := github.Poster{Client: client, Author: o.Author, Settle: o.Settle, Narration: s.Stderr}
	for _, pull := range pulls {
		done, url, err := poster.Post(cmd.Context(), pull, marker, body)
		if errors.Is(err, github.ErrPermission) && o.readOnly != "" {
			o.tellReadOnly(s)
			continue
		}
		if err != nil {
			return interrupted(cmd.Context(), err)
		}
		fmt.Fprintf(s.Stderr, "%s: comment %s\n", pull, strings.TrimSpace(string(done)+" "+url))
	}
	return nil
}
