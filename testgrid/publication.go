package testgrid

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
)

// Publication is what is to become a build, as 'publish' is told. What it says of
// what is wrong names the flags of that command.
type Publication struct {
	Job  Job
	Part Part
	// At is the place of the bucket.
	At bucket.Location
	// Build is the id of the build; "" is made from the run or found.
	Build string
	// Attempt publishes the run again, as this attempt, 2 or more: a build of now.
	// 0 does not.
	Attempt int
	// Commit is what was tested; "" is the one that the run knows.
	Commit          string
	Metadata, Links map[string]string
}

// Part is how much of a build is published.
type Part int

// A build is published as a whole, or started and then finished.
const (
	Whole Part = iota
	OnlyStart
	OnlyFinish
)

// clockSkew is how far in the future a build may be, by its id.
const clockSkew = time.Hour

// Ahead returns when the build began, by the id that was given, where that is too
// far in the future; else the zero time.
func (p *Publication) Ahead(now time.Time) time.Time {
	if at, err := BuildTime(p.Build); err == nil && at.After(now.Add(clockSkew)) {
		return at
	}
	return time.Time{}
}

func (p *Publication) options(build string) *Options {
	return &Options{Job: p.Job, Build: build, URL: p.At.URL, Compress: p.At.Decompresses(), Links: p.Links}
}

// PlanStart plans the start of the run with the given id.
func (p *Publication) PlanStart(run string, now time.Time) (*UploadPlan, error) {
	build := p.Build
	if build == "" {
		var err error
		if build, err = BuildID(now, run); err != nil {
			return nil, err
		}
	}
	plan, err := PlanStart(p.options(build), NewStarted(&p.Job, now, p.Commit))
	if err != nil {
		return nil, verdict.UsageErrorf("%w", err)
	}
	return plan, nil
}

// Asks reports whether the bucket has to be asked which build it is.
func (p *Publication) Asks() bool {
	return p.Build == "" && (p.Part == OnlyFinish || p.Attempt != 0)
}

// Plan plans the build that results become. publisher is nil where the bucket is
// not there, or need not be asked; note is told what to know beside. What is wrong
// with the flags or the results is a [verdict.UsageError], other errors are those of
// a [Publisher].
func (p *Publication) Plan(ctx context.Context, publisher *Publisher, r *Results, now time.Time, note func(string)) (*UploadPlan, error) {
	build, err := p.build(ctx, publisher, r, now, note)
	if err != nil {
		return nil, err
	}
	further := map[string]string{}
	maps.Copy(further, p.Metadata)
	if p.Commit != "" {
		further["Commit"] = p.Commit
	}
	if p.Attempt != 0 {
		further["attempt"] = fmt.Sprint(p.Attempt)
	}
	var log strings.Builder
	text := report.Results{Run: r.Run, Judgement: r.Judgement}
	if err := text.Write(&log, report.FormatTable); err != nil {
		return nil, err
	}
	options := p.options(build)
	options.Log = []byte(log.String())
	started, finished := r.Started(&p.Job, p.Commit), r.Finished(further, now)
	if p.Attempt != 0 {
		// A build of now: with the run's own times TestGrid could take it for too
		// old to be read.
		began, err := BuildTime(build)
		if err != nil {
			return nil, verdict.UsageErrorf("--build-id: %w", err)
		}
		finished.Metadata["run-started"] = time.Unix(started.Timestamp, 0).UTC().Format(time.RFC3339)
		started.Metadata["attempt"] = further["attempt"]
		started.Timestamp, finished.Timestamp = began.Unix(), new(now.Unix())
	}
	plan, err := NewUploadPlan(options, r, started, finished)
	if err != nil {
		return nil, verdict.UsageErrorf("%w", err)
	}
	return plan, nil
}

// build is the id of the build that the results become.
func (p *Publication) build(ctx context.Context, publisher *Publisher, r *Results, now time.Time, note func(string)) (string, error) {
	attempt, start := r.Attempt()
	switch {
	case p.Part == OnlyFinish:
		return p.startedBuild(ctx, publisher, r, now)
	case p.Attempt != 0 && p.Attempt < attempt:
		return "", verdict.UsageErrorf("--attempt %d: the run itself is attempt %d; say %d or more", p.Attempt, attempt, attempt)
	case p.Build != "":
		return p.Build, nil
	case p.Attempt != 0:
		return p.attemptedBuild(ctx, publisher, r, now, note)
	case start.After(now.Add(clockSkew)):
		// Such a build would keep all others from being listed until then.
		return "", verdict.UsageErrorf("the run says that it started at %s, which is in the future: correct the clock of this machine, or of the one that ran it; --attempt %d publishes the run as a build of now", start.Format(time.RFC3339), attempt+1)
	}
	build, err := r.BuildID()
	if err != nil {
		return "", verdict.UsageErrorf("%w", err)
	}
	if publisher == nil {
		return build, nil
	}
	other, err := publisher.Elsewhere(ctx, &p.Job, r, now)
	return cmp.Or(other, build), err
}

// startedBuild is the id of the build that 'publish start' made for the run.
func (p *Publication) startedBuild(ctx context.Context, publisher *Publisher, r *Results, now time.Time) (string, error) {
	build := p.Build
	if publisher == nil && build != "" {
		return build, nil
	}
	if publisher == nil {
		return "", fmt.Errorf("%w: there is no folder %s", ErrNotStarted, p.At.Dir)
	}
	if build == "" {
		var err error
		if build, err = publisher.Find(ctx, &p.Job, r, now); err != nil {
			return "", err
		}
	}
	_, start := r.Attempt()
	return build, publisher.Began(ctx, &p.Job, build, start)
}

// attemptedBuild is the id of the build that --attempt makes: a new one, or the
// one that an earlier try has begun.
func (p *Publication) attemptedBuild(ctx context.Context, publisher *Publisher, r *Results, now time.Time, note func(string)) (string, error) {
	if publisher != nil {
		build, finished, err := publisher.Attempted(ctx, &p.Job, r, p.Attempt, now)
		switch {
		case err != nil:
			return "", err
		case finished:
			return "", verdict.UsageErrorf("publishing: attempt %d of this run is published already: %s; say --attempt %d, or put it in the place of that one with --build-id %s --replace",
				p.Attempt, p.At.URL(p.Job.BuildDir(build)), p.Attempt+1, build)
		case build != "":
			note(fmt.Sprintf("attempt %d was begun as build %s, which goes on", p.Attempt, build))
			return build, nil
		}
	}
	return BuildID(now, r.Run.Manifest.RunID)
}

// refusals are what the bucket's state or the results forbid.
var refusals = []error{ErrHeld, ErrTaken, ErrBackwards, ErrNotStarted, ErrOlder, ErrSeveral}

// Refused reports whether the bucket's state or the results forbid a publication.
func Refused(err error) bool {
	return slices.ContainsFunc(refusals, func(e error) bool { return errors.Is(err, e) })
}

// Advise adds to an error of publishing a build how to go on, with the flags that
// the command has.
func (p *Publication) Advise(build string, err error) error {
	if incomplete := (*IncompleteError)(nil); errors.As(err, &incomplete) {
		again := ""
		if p.Build == "" && (p.Part == OnlyStart || p.Attempt != 0) {
			again = " with --build-id " + build
		}
		return fmt.Errorf("%w\nThe same command%s goes on where this one stopped", err, again)
	}
	if fix := p.fix(err); fix != "" {
		return fmt.Errorf("%w; %s", err, fix)
	}
	return err
}

// fix says how to go on after a refusal.
func (p *Publication) fix(err error) string {
	var backwards *BackwardsError
	switch {
	case errors.As(err, &backwards):
		now := time.Now()
		at, err := BuildTime(backwards.Newest)
		switch {
		case err == nil && at.After(now.Add(clockSkew)):
			return fmt.Sprintf("by its id that one is of %s, so no build of now comes after it: Prow's ids are that large, and then this needs a --job of its own; else remove that build", at.UTC().Format(time.DateOnly))
		case err == nil && at.After(now):
			return fmt.Sprintf("by its id that one is of %s, which this machine's clock has yet to reach: set the clock that is wrong, or try again then", at.UTC().Format(time.RFC3339))
		case p.Part == OnlyStart && p.Build != "":
			return "without --build-id the build is one of now"
		case p.Part == Whole && p.Build != "":
			return "without --build-id, --attempt N publishes the run as a build of now"
		case p.Part == OnlyStart, p.Attempt != 0:
			return "the same command again makes a build of now"
		case p.Part == Whole:
			return "--attempt N publishes the run as a build of now"
		}
	case errors.Is(err, ErrHeld), errors.Is(err, ErrTaken):
		switch p.Part {
		case OnlyStart:
			return "without --build-id the build gets an id of its own"
		case OnlyFinish:
			return "--replace puts these results in the place of what is there"
		case Whole:
			without := ""
			if p.Build != "" {
				without = ", without --build-id,"
			}
			return "--attempt N" + without + " publishes the run as a build of now; --replace puts it in the place of what is there"
		}
	}
	return ""
}

// Table is a table of the objects of a plan.
func (p *UploadPlan) Table() *report.Table {
	t := &report.Table{Header: []string{"Step", "Object", "Bytes", "Type", "Encoding", "Metadata", "From"}, Value: p}
	for i := range p.Objects {
		object := &p.Objects[i]
		var metadata []string
		for k, v := range object.Metadata {
			metadata = append(metadata, k+"="+v)
		}
		slices.Sort(metadata)
		t.Rows = append(t.Rows, []string{
			string(object.Step), object.Key, fmt.Sprint(object.Size), object.ContentType, object.ContentEncoding, strings.Join(metadata, " "), object.Source,
		})
	}
	return t
}
