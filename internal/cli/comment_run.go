package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/github"
)

// completeRun fills in from the environment which workflow run it is about.
func (o *commentOptions) completeRun(s *Surroundings) error {
	workflow, err := github.FromEnvironment(s.Getenv)
	if err != nil {
		return usageErrorf("%w", err)
	}
	if workflow != nil {
		o.Repo, o.readOnly = cmp.Or(o.Repo, workflow.Repository), workflow.ReadOnly()
		if t := workflow.Triggering; t != nil && (o.WorkflowRun == 0 || o.WorkflowRun == t.Run) {
			o.WorkflowRun, o.Attempt = t.Run, cmp.Or(o.Attempt, t.Attempt)
		}
	}
	o.API = cmp.Or(o.API, s.Getenv("GITHUB_API_URL"), github.DefaultAPI)
	var errs []error
	if o.WorkflowRun == 0 {
		errs = append(errs, errors.New("which results? Give a results folder, or --workflow-run with the id of the run that has them"))
	} else {
		errs = append(errs, o.checkRepo())
	}
	if o.Run != 0 {
		errs = append(errs, errors.New("--run: the results are those of --workflow-run, and that is the run: leave it out"))
	}
	if o.Pull < 0 || o.Attempt < 0 {
		errs = append(errs, errors.New("--pull and --attempt: give a number from 1, or leave it out"))
	}
	if o.Commit != "" {
		if err := github.ValidCommit(o.Commit); err != nil {
			errs = append(errs, fmt.Errorf("--commit: %w", err))
		}
	}
	return usage(errs...)
}

// runOfWorkflow reports on a workflow run whose artifacts are the results.
// Whoever opened the pull request may have made them up.
func (o *commentOptions) runOfWorkflow(ctx context.Context, s *Surroundings, report *github.Report) error {
	if err := o.completeRun(s); err != nil {
		return err
	}
	client, err := o.client(s, `it reads the workflow run, which needs "actions: read"`)
	if err != nil {
		return err
	}
	if client == nil {
		o.tellReadOnly(s)
		return nil
	}
	owner, name, _ := strings.Cut(o.Repo, "/")
	run, err := github.ReadWorkflowRun(ctx, client, owner, name, o.WorkflowRun, o.Attempt)
	if err != nil {
		return err
	}
	if err := o.takeOver(run); err != nil {
		return err
	}
	pulls, err := o.pullsOf(ctx, s, client, run)
	if err != nil || len(pulls) == 0 && !o.DryRun {
		return err
	}
	artifacts, err := run.Results(ctx, client)
	if err != nil {
		return err
	}
	if len(artifacts) == 0 {
		return o.tellNoResults(ctx, s, client, run, pulls)
	}
	bases, err := o.bases(ctx, s)
	if err != nil {
		return err
	}
	var notes []string
	if report.Cells, notes, err = run.Cells(ctx, client, artifacts, o.about(), bases); err != nil {
		return err
	}
	report.Notes = slices.Concat(o.baseNotes, notes)
	report.Commit, report.Reporter, report.Conclusion = o.Commit, o.reporter, run.Conclusion
	report.Links = append([]github.Link{{Text: "workflow run", URL: run.URL}}, report.Links...)
	if err := o.tellActions(report, s); err != nil {
		return err
	}
	body := report.Markdown(o.room())
	if o.DryRun {
		return o.tellDry(s, pulls, body)
	}
	return o.postOn(ctx, s, client, meant(pulls, report), body, false)
}

// takeOver takes over what GitHub says of the run.
func (o *commentOptions) takeOver(run *github.WorkflowRun) error {
	switch {
	case run.Conclusion == "":
		return fmt.Errorf("%s has not completed: wait until it has", run)
	case o.Commit != "" && o.Commit != run.Head:
		return usageErrorf("--commit: %s was for commit %s, and not for %s", run, run.Head, o.Commit)
	}
	o.Commit, o.Attempt = run.Head, 0
	o.reportsOn(&github.Triggering{Run: run.Run, Attempt: run.Attempt, HeadRepo: run.HeadRepo, HeadBranch: run.HeadBranch, Workflow: run.Workflow})
	return nil
}

// pullsOf returns the open pull requests that the run is for, and says why there
// is none.
func (o *commentOptions) pullsOf(ctx context.Context, s *Surroundings, client *github.API, run *github.WorkflowRun) ([]github.PullRequest, error) {
	pulls, why, err := github.Resolve(ctx, client, run.Owner, run.Repo, run.HeadRepo, run.HeadBranch, run.Head)
	if err != nil {
		return nil, err
	}
	if o.Pull != 0 && len(pulls) > 0 {
		found := pulls
		pulls = slices.DeleteFunc(slices.Clone(found), func(p github.PullRequest) bool { return p.Number != o.Pull })
		why = fmt.Sprintf("%s was for %s, and not for --pull %d", run, found[0], o.Pull)
	}
	if len(pulls) == 0 {
		fmt.Fprintf(s.Stderr, "Nothing is posted: %s\n", why)
	}
	return pulls, nil
}

// meant are, of pull requests with the same head, the one that all results say
// they are of, or else all.
func meant(pulls []github.PullRequest, report *github.Report) []github.PullRequest {
	for _, pull := range pulls {
		if !slices.ContainsFunc(report.Cells, func(c github.Cell) bool { return c.Run.Manifest.Source.Pull != pull.Number }) {
			return []github.PullRequest{pull}
		}
	}
	return pulls
}

// quiet are conclusions of runs that did not mean to test: they make no comment
// where there is none.
var quiet = []string{"success", "neutral", "skipped", "cancelled", "stale", "action_required"}

// tellNoResults says what a run came to that left no results. Nothing is claimed
// of the commit.
func (o *commentOptions) tellNoResults(ctx context.Context, s *Surroundings, client *github.API, run *github.WorkflowRun, pulls []github.PullRequest) error {
	fmt.Fprintf(s.Stderr, "%s came to %s, and left no artifact op-readiness-NAME-merged-attempt-N\n", run, result.Cut(run.Conclusion, 100))
	body := run.NoResults(o.reporter)
	if err := o.summarize(s, body); err != nil {
		return err
	}
	if o.DryRun {
		return o.tellDry(s, pulls, body)
	}
	return o.postOn(ctx, s, client, pulls, body, slices.Contains(quiet, run.Conclusion))
}

// tellDry prints what would be posted.
func (o *commentOptions) tellDry(s *Surroundings, pulls []github.PullRequest, body string) error {
	for _, pull := range pulls {
		fmt.Fprintf(s.Stderr, "This would be posted on %s\n", pull)
	}
	_, err := io.WriteString(s.Stdout, body)
	return err
}
