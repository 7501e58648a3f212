package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/intake"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/actions"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/github"
	"github.com/windows-op-readiness/windows-op-readiness/internal/tempdir"
)

// What is read of the artifacts of one run, in bytes.
const (
	maxArchive  = 256 << 20 // of one, as it is downloaded
	maxUnpacked = 512 << 20 // of all together
	// What is read into memory, of all together, grows there: an empty test of two
	// bytes to a kilobyte. A plan of the whole standard has less than 100 kB.
	maxDescribed = 8 << 20   // plan.json and run.json
	maxEvents    = 128 << 20 // results.jsonl
)

// budget is what may still be read into memory.
type budget struct{ described, events int64 }

// spend takes a results folder's files off. It returns an error when they are too
// many bytes.
func (b *budget) spend(dir string) error {
	for _, file := range []struct {
		name string
		left *int64
		of   int64
	}{{result.PlanFile, &b.described, maxDescribed}, {result.ManifestFile, &b.described, maxDescribed}, {result.EventsFile, &b.events, maxEvents}} {
		info, err := os.Stat(filepath.Join(dir, file.name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if *file.left -= info.Size(); *file.left < 0 {
			return usageErrorf("%s has %d bytes, and of all results of a run at most %d are read", file.name, info.Size(), file.of)
		}
	}
	return nil
}

// onlyCell is what the reusable workflow calls results that it was given no name
// for.
const onlyCell = "readiness"

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
	if err := errors.Join(errs...); err != nil {
		return usageErrorf("%w", err)
	}
	return nil
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
	if err := o.about(run); err != nil {
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
	report.Notes = o.baseNotes
	if err := o.take(ctx, s, client, run, artifacts, report, bases); err != nil {
		return err
	}
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

// about takes over what GitHub says of the run.
func (o *commentOptions) about(run *github.WorkflowRun) error {
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

// take downloads artifacts, and makes a cell of each.
func (o *commentOptions) take(ctx context.Context, s *Surroundings, client *github.API, run *github.WorkflowRun, artifacts []github.Artifact, report *github.Report, bases map[string]*verdict.Judgement) error {
	temp, err := tempdir.New()
	if err != nil {
		return err
	}
	defer temp.RemoveAll()
	limits := intake.Limits{Archive: maxArchive, File: maxUnpacked / int64(len(artifacts)), Total: maxUnpacked / int64(len(artifacts))}
	left := &budget{maxDescribed, maxEvents}
	var expired error
	for i, a := range artifacts {
		fmt.Fprintf(s.Stderr, "Reading %s (%d bytes)\n", a.Name, a.Size)
		results, err := o.takeOne(ctx, client, run, a, filepath.Join(temp.Path, fmt.Sprint(i)), limits, left)
		if errors.Is(err, github.ErrExpired) {
			expired = err
			report.Notes = append(report.Notes, fmt.Sprintf("%s: the results have expired and are not shown", a.Of))
			fmt.Fprintf(s.Stderr, "%v\n", err)
			continue
		}
		if err != nil {
			return err
		}
		if a.Attempt != run.Attempt {
			report.Notes = append(report.Notes, fmt.Sprintf("%s: the results are of attempt %d of the workflow run, and attempt %d left none", a.Of, a.Attempt, run.Attempt))
		}
		name, base := a.Of, bases[a.Of]
		if len(artifacts) == 1 {
			if name == onlyCell {
				name = ""
			}
			if base == nil {
				base = bases[""]
			}
		}
		report.Cells = append(report.Cells, github.Cell{Name: name, Run: results, Judgement: verdict.Judge(results), Base: base})
	}
	if len(report.Cells) == 0 {
		return fmt.Errorf("%w: run the workflow again", expired)
	}
	return nil
}

// takeOne downloads an artifact, and reads the one results folder in it.
func (o *commentOptions) takeOne(ctx context.Context, client *github.API, run *github.WorkflowRun, a github.Artifact, dir string, limits intake.Limits, left *budget) (*result.Run, error) {
	if a.Expired {
		return nil, fmt.Errorf("%s: %w on %s", a.Name, github.ErrExpired, a.Expires.UTC().Format("2006-01-02"))
	}
	archive, err := os.Create(dir + ".zip")
	if err != nil {
		return nil, err
	}
	defer os.Remove(archive.Name())
	defer archive.Close()
	if err := client.Download(ctx, run, a, archive, limits.Archive); err != nil {
		return nil, err
	}
	info, err := archive.Stat()
	if err != nil {
		return nil, err
	}
	if _, err := intake.Zip(ctx, archive, info.Size(), a.Name, dir, limits); err != nil {
		if errors.Is(err, intake.ErrRefused) || errors.Is(err, intake.ErrNoResults) {
			return nil, usageErrorf("%w", err)
		}
		return nil, err
	}
	found, err := result.Find([]string{dir})
	if err != nil {
		return nil, usageErrorf("%s: %w", a.Name, err)
	}
	if len(found) != 1 {
		return nil, usageErrorf("%s holds %d results folders, and merged results are one: upload what op-readiness merge wrote", a.Name, len(found))
	}
	if err := left.spend(found[0]); err != nil {
		return nil, fmt.Errorf("%s: %w", a.Name, err)
	}
	results, err := result.Load(found[0])
	if err != nil {
		return nil, usageErrorf("%s: %s", a.Name, strings.ReplaceAll(err.Error(), found[0], ""))
	}
	return results, o.belongs(results, a.Name)
}

// quiet are conclusions of runs that did not mean to test: they make no comment
// where there is none.
var quiet = []string{"success", "neutral", "skipped", "cancelled", "stale", "action_required"}

// tellNoResults says what a run came to that left no results. Nothing is claimed
// of the commit.
func (o *commentOptions) tellNoResults(ctx context.Context, s *Surroundings, client *github.API, run *github.WorkflowRun, pulls []github.PullRequest) error {
	fmt.Fprintf(s.Stderr, "%s came to %s, and left no artifact op-readiness-NAME-merged-attempt-N\n", run, result.Cut(run.Conclusion, 100))
	body := run.NoResults(o.reporter)
	if o.Summary {
		path := s.Getenv("GITHUB_STEP_SUMMARY")
		if path == "" {
			return usageErrorf("--summary: $GITHUB_STEP_SUMMARY is not set: this is not a step of a workflow")
		}
		if err := actions.WriteSummary(path, body); err != nil {
			return err
		}
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
