package testgrid

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/GoogleCloudPlatform/testgrid/metadata"

	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
)

// runFile matches the manifest of a results folder in a build.
var runFile = regexp.MustCompile(`^[^/]+/` + regexp.QuoteMeta(result.ManifestFile) + `$`)

func isRunFile(dir, key string) bool {
	name, ok := strings.CutPrefix(key, dir+artifactsDir+"/")
	return ok && runFile.MatchString(name)
}

// owner returns the id of the run whose build lies in a folder that holds
// there, or "" where nothing says so: a build that was only started is
// nobody's yet.
func (p *Publisher) owner(ctx context.Context, dir string, there map[string]*bucket.Attrs) (string, error) {
	tell := []string{dir + finishedFile, dir + startedFile}
	for _, key := range slices.Sorted(maps.Keys(there)) {
		if isRunFile(dir, key) {
			tell = append(tell, key)
			break
		}
	}
	for _, key := range tell {
		if there[key] == nil {
			continue
		}
		f, err := p.record(ctx, key)
		if err != nil {
			return "", err
		}
		if id := f.run(); id != "" {
			return id, nil
		}
	}
	return "", nil
}

// record is what started.json, finished.json and run.json say of their run.
type record struct {
	RunID     string         `json:"runID"`
	Timestamp any            `json:"timestamp"`
	Metadata  map[string]any `json:"metadata"`
}

func (r *record) run() string {
	if id, ok := r.Metadata[runKey].(string); ok {
		return id
	}
	return result.Cut(r.RunID, maxMetadataValue)
}

// record reads a file; one that is no such file, or none at all, says nothing.
func (p *Publisher) record(ctx context.Context, key string) (*record, error) {
	var r record
	switch err := p.Bucket.ReadJSON(ctx, key, &r); {
	case errors.Is(err, bucket.ErrNotExist), errors.Is(err, bucket.ErrTooLarge):
		return &r, nil
	case errors.Is(err, bucket.ErrMalformed):
		return &record{}, nil // what it says is for others to judge
	case err != nil:
		return nil, err
	}
	return &r, nil
}

// buildOf is the id of the build that an entry of a job's folder stands for.
func buildOf(a *bucket.Attrs) string {
	name := path.Base(a.Key)
	if a.IsDir {
		return name
	}
	id, ok := strings.CutSuffix(name, ".txt")
	if !ok {
		return ""
	}
	return id
}

// searchBack is how long before a run its build may have been started.
const searchBack = 24 * time.Hour

// Find returns the build of the job that was started for a run, and is not
// finished: the one that says it is the run's own, else the only one that was
// started between a day before the run and until, and is nobody's. Where the
// run is published already, that is the build to replace. Errors are
// [ErrNotStarted], [ErrSeveral] and [ErrHeld].
func (p *Publisher) Find(ctx context.Context, job *Job, r *Results, until time.Time) (string, error) {
	_, start := r.Attempt()
	ids, err := p.builds(ctx, job, start.Add(-searchBack), until)
	if err != nil {
		return "", err
	}
	owners := make([]*string, len(ids)) // nil: it does not wait
	holds := make([]bool, len(ids))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(p.parallel())
	for i, id := range ids {
		group.Go(func() error {
			waits, err := p.waits(inner, job, id)
			if err == nil && !waits {
				holds[i], err = p.holds(inner, job, id, r)
			}
			if err != nil || !waits {
				return err
			}
			dir := job.BuildDir(id) + "/"
			there, err := p.list(inner, dir)
			if err != nil {
				return err
			}
			owner, err := p.owner(inner, dir, there)
			owners[i] = &owner
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return "", err
	}
	var own, nobodys, held []string
	for i, id := range ids {
		switch owner := owners[i]; {
		case holds[i]:
			held = append(held, id)
		case owner == nil:
		case *owner == r.runID():
			own = append(own, id)
		case *owner == "":
			nobodys = append(nobodys, id)
		}
	}
	found := own
	if len(own) == 0 && len(held) > 0 {
		return p.instead(job, held)
	} else if len(own) == 0 {
		found = nobodys
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("%w in %s; use 'publish' where there was no 'publish start'", ErrNotStarted, p.Bucket.URL(job.ownBuilds()))
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%w: %s; say which with --build-id", ErrSeveral, strings.Join(found, ", "))
}

// Elsewhere returns the finished build that holds the results already, though
// it has not their own id, because 'publish start' made it; "" where there is
// none. Where it is not to be replaced, the error is an [ErrHeld].
func (p *Publisher) Elsewhere(ctx context.Context, job *Job, r *Results, until time.Time) (string, error) {
	own, err := r.BuildID()
	if err != nil {
		return "", err
	}
	_, start := r.Attempt()
	ids, err := p.builds(ctx, job, start.Add(-searchBack), until)
	if err != nil || slices.Contains(ids, own) {
		return "", err
	}
	holds := make([]bool, len(ids))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(p.parallel())
	for i, id := range ids {
		group.Go(func() error {
			var err error
			holds[i], err = p.holds(inner, job, id, r)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return "", err
	}
	var held []string
	for i, id := range ids {
		if holds[i] {
			held = append(held, id)
		}
	}
	if len(held) == 0 {
		return "", nil
	}
	return p.instead(job, held)
}

// holds reports whether a build is finished with the results of this very
// attempt at a run. Those that '--attempt' made are builds beside it.
func (p *Publisher) holds(ctx context.Context, job *Job, id string, r *Results) (bool, error) {
	f, err := p.record(ctx, path.Join(job.BuildDir(id), finishedFile))
	if err != nil || f.run() != r.runID() || f.Metadata[attemptKey] != nil {
		return false, err
	}
	_, start := r.Attempt()
	ended, _ := f.Timestamp.(float64)
	return start.Unix() <= int64(ended), nil // else it was an earlier attempt
}

// instead is the build, the newest of those that hold a run, whose place its
// results can take.
func (p *Publisher) instead(job *Job, held []string) (string, error) {
	newest := held[len(held)-1]
	if !p.Replace {
		return "", fmt.Errorf("%w, finished, and of this very run: %s", ErrHeld, p.Bucket.URL(job.BuildDir(newest)))
	}
	return newest, nil
}

// Attempted returns the build that was published, wholly or in part, as an
// attempt at a run that is not the run's own; "" where there is none.
func (p *Publisher) Attempted(ctx context.Context, job *Job, r *Results, attempt int, until time.Time) (build string, finished bool, err error) {
	_, start := r.Attempt()
	if latest := until.Add(-searchBack); start.After(latest) {
		start = latest // clocks differ
	}
	ids, err := p.builds(ctx, job, start, until)
	if err != nil {
		return "", false, err
	}
	for _, id := range slices.Backward(ids) {
		if !strings.HasSuffix(id, lowOf(r.Run.Manifest.RunID)) {
			continue
		}
		dir := job.BuildDir(id)
		began, err := p.record(ctx, path.Join(dir, startedFile))
		if err != nil {
			return "", false, err
		}
		if began.run() != r.runID() || began.Metadata[attemptKey] != fmt.Sprint(attempt) {
			continue
		}
		waits, err := p.waits(ctx, job, id)
		return id, err == nil && !waits, err
	}
	return "", false, nil
}

// builds lists the ids of a job's builds that began between two times, from
// old to new. Of a presubmit they are those on the same pull request.
func (p *Publisher) builds(ctx context.Context, job *Job, from, until time.Time) ([]string, error) {
	first, err := BuildID(from, "")
	if err != nil {
		return nil, err
	}
	first = first[:idDigits-len(lowOf(""))] // any run's
	var ids []string
	dir := job.ownBuilds()
	err = p.Bucket.List(ctx, bucket.ListOptions{Prefix: dir, Delimiter: "/", From: dir + first}, func(a *bucket.Attrs) error {
		id := path.Base(a.Key)
		if n, err := ParseBuildID(id); a.IsDir && err == nil && !buildTime(n).After(until) {
			ids = append(ids, id)
		}
		return nil
	})
	return ids, err
}

// skew is how far the clocks of who starts a build and who runs the tests may
// be apart.
const skew = time.Minute

// Began checks that a run that started at the given time can be that of a build
// which was started before it. An error is an [ErrOlder].
func (p *Publisher) Began(ctx context.Context, job *Job, id string, start time.Time) error {
	var started metadata.Started
	switch err := p.Bucket.ReadJSON(ctx, path.Join(job.BuildDir(id), startedFile), &started); {
	case errors.Is(err, bucket.ErrNotExist):
		return fmt.Errorf("%w: %s has no %s; use 'publish' where there was no 'publish start'", ErrNotStarted, p.Bucket.URL(job.BuildDir(id)), startedFile)
	case errors.Is(err, bucket.ErrMalformed):
		return fmt.Errorf("reading %s of build %s: %w", startedFile, id, err)
	case err != nil:
		return err
	}
	if began := time.Unix(started.Timestamp, 0); start.Before(began.Add(-skew)) {
		return fmt.Errorf("%w: build %s was started at %s, and the run began at %s: name the results of the run that followed 'publish start'", ErrOlder, id, began.UTC().Format(time.RFC3339), start.UTC().Format(time.RFC3339))
	}
	return nil
}

// waits reports whether a build was started and not finished.
func (p *Publisher) waits(ctx context.Context, job *Job, id string) (bool, error) {
	dir := job.BuildDir(id)
	if _, err := p.Bucket.Stat(ctx, path.Join(dir, startedFile)); errors.Is(err, bucket.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	_, err := p.Bucket.Stat(ctx, path.Join(dir, finishedFile))
	if errors.Is(err, bucket.ErrNotExist) {
		return true, nil
	}
	return false, err
}
