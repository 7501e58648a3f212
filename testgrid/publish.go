package testgrid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/GoogleCloudPlatform/testgrid/metadata"

	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
)

var (
	// ErrHeld says that the bucket holds the build already.
	ErrHeld = errors.New("the bucket holds this build already")
	// ErrBackwards says that the job has a newer build.
	ErrBackwards = errors.New("the job has a newer build")
	// ErrNotStarted says that no build was found to be finished.
	ErrNotStarted = errors.New("no build of the job waits to be finished")
	// ErrOlder says that a run began before the build that it is to finish.
	ErrOlder = errors.New("the results are older than the build")
	// ErrSeveral says that more than one was.
	ErrSeveral = errors.New("several builds of the job wait to be finished")
)

// Progress is how far a publication has come.
type Progress struct {
	// Sent and Kept objects, of Total: kept are those that were there already.
	Sent, Kept, Total int
	// Bytes were sent.
	Bytes int64
}

// Publisher sends plans to a bucket.
type Publisher struct {
	Bucket *bucket.Bucket
	// Parallel is how many objects are sent at a time; 0 is 16.
	Parallel int
	// Replace lets a build take the place of one that is there already.
	Replace bool
	// Progress is told of every object; may be nil.
	Progress func(Progress)
	// Note is told what to know beside the result; may be nil.
	Note func(string)
}

// IncompleteError says what of a build has not arrived. Without it, there is
// no finished.json.
type IncompleteError struct {
	// Missing are keys, sorted; finished.json is the last one.
	Missing []string
	Total   int
	Cause   error
}

func (e *IncompleteError) Error() string {
	const shown = 5
	names := make([]string, 0, shown)
	for _, key := range e.Missing[:min(shown, len(e.Missing))] {
		names = append(names, path.Base(key))
	}
	more := ""
	if n := len(e.Missing) - len(names); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("%v\n%d of %d objects have not arrived (%s%s), and there is no %s: TestGrid shows the build as running",
		e.Cause, len(e.Missing), e.Total, strings.Join(names, ", "), more, finishedFile)
}

func (e *IncompleteError) Unwrap() error { return e.Cause }

// publication is one plan on its way.
type publication struct {
	*Publisher
	plan *Plan
	// there is what the build's folder held at the beginning.
	there map[string]*bucket.Attrs

	mu       sync.Mutex
	progress Progress
	sums     map[string]bucket.Sum
}

// Publish sends a plan: started.json, alias and latest-build.txt, artifacts,
// and then, when all of them have arrived, finished.json. What is in the
// bucket already is not sent again, so an interrupted publication goes on
// where it was. A started.json that is there is kept.
//
// Errors are an [ErrHeld] or [ErrBackwards] before anything was sent, and an
// [IncompleteError] afterwards.
func (p *Publisher) Publish(ctx context.Context, plan *Plan) (Progress, error) {
	pub := &publication{Publisher: p, plan: plan, sums: map[string]bucket.Sum{}}
	pub.progress.Total = len(plan.Objects)
	var err error
	if pub.there, err = p.list(ctx, plan.Dir); err != nil {
		return pub.progress, err
	}
	if err := pub.check(ctx); err != nil {
		return pub.progress, err
	}
	if err := pub.send(ctx); err != nil {
		return pub.progress, pub.incomplete(err)
	}
	return pub.progress, nil
}

func (p *Publisher) list(ctx context.Context, dir string) (map[string]*bucket.Attrs, error) {
	there := map[string]*bucket.Attrs{}
	err := p.Bucket.List(ctx, bucket.ListOptions{Prefix: dir}, func(a *bucket.Attrs) error {
		there[a.Key] = a
		return nil
	})
	return there, err
}

// check finds out whether the build may be published, before anything is.
func (p *publication) check(ctx context.Context) error {
	_, started := p.there[p.plan.Dir+startedFile]
	_, finished := p.there[p.plan.Dir+finishedFile]
	if finished && !p.Replace {
		return fmt.Errorf("%w, finished: %s; --attempt N publishes the run once more as a build of now, --replace puts it in the place of that one", ErrHeld, p.plan.URL)
	}
	if started {
		return p.strangers(ctx)
	}
	newer, err := p.newer(ctx)
	if err != nil {
		return err
	}
	if newer != "" {
		return fmt.Errorf("%w: TestGrid knows %s, and never lists %s, which is before it; --attempt N publishes the run as a build of now", ErrBackwards, newer, p.plan.Build)
	}
	return p.strangers(ctx)
}

// newer returns the job's newest build if that is newer than the plan's, or "".
func (p *publication) newer(ctx context.Context) (string, error) {
	own, err := ParseBuildID(p.plan.Build)
	if err != nil {
		return "", err
	}
	newest, name := own, ""
	dir := p.plan.job.BuildsDir()
	err = p.Bucket.List(ctx, bucket.ListOptions{Prefix: dir, Delimiter: "/", From: dir + p.plan.Build}, func(a *bucket.Attrs) error {
		if id := buildOf(a); id != "" {
			if n, err := ParseBuildID(id); err == nil && n > newest {
				newest, name = n, id
			}
		}
		return nil
	})
	return name, err
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

// prows are the objects of a build that others write.
var prows = []string{"prowjob.json", "podinfo.json", "clone-log.txt", "clone-records.json"}

// cutOff is what an upload into a folder leaves that was killed.
var cutOff = regexp.MustCompile(`^(.*)\.[0-9a-f]+\.tmp$`)

// strangers deals with objects in the build's folder that are not of this run.
func (p *publication) strangers(ctx context.Context) error {
	planned := map[string]bool{p.plan.Dir + startedFile: true, p.plan.Dir + finishedFile: true}
	for _, o := range p.plan.Objects {
		planned[o.Key] = true
	}
	for _, name := range prows {
		planned[p.plan.Dir+name] = true
	}
	var strange []string
	for _, key := range slices.Sorted(maps.Keys(p.there)) {
		switch m := cutOff.FindStringSubmatch(key); {
		case planned[key]:
		case m != nil && planned[m[1]]:
			if err := p.Bucket.Delete(ctx, key); err != nil {
				return err
			}
			delete(p.there, key)
		default:
			strange = append(strange, key)
		}
	}
	if !p.Replace {
		if len(strange) > 0 && len(p.plan.of(StepFinish)) > 0 {
			return fmt.Errorf("%w: %s has %d objects that these results do not have, such as %s; --replace removes them", ErrHeld, p.plan.URL, len(strange), strange[0])
		}
		return nil
	}
	// First of all the build must not look finished.
	if _, finished := p.there[p.plan.Dir+finishedFile]; finished {
		if p.Note != nil {
			p.Note("TestGrid does not read a build again that was finished, unless it started less than 20 minutes ago: its column may stay as it was")
		}
		strange = append([]string{p.plan.Dir + finishedFile}, strange...)
	}
	for _, key := range strange {
		if err := p.Bucket.Delete(ctx, key); err != nil {
			return err
		}
		delete(p.there, key)
	}
	return nil
}

func (p *publication) send(ctx context.Context) error {
	for _, o := range p.plan.of(StepStart) {
		if _, started := p.there[o.Key]; started && !p.Replace {
			p.count(o.Key, bucket.Sum{}, false)
			continue
		}
		if err := p.sendStarted(ctx, o); err != nil {
			return err
		}
	}
	for _, o := range p.plan.of(StepAlias) {
		if err := p.sendAlias(ctx, o); err != nil {
			return err
		}
	}
	for _, o := range p.plan.of(StepLatest) {
		if err := p.sendLatest(ctx, o); err != nil {
			return err
		}
	}
	if err := p.sendArtifacts(ctx); err != nil {
		return err
	}
	for _, o := range p.plan.of(StepFinish) {
		if err := p.verify(ctx); err != nil {
			return err
		}
		if err := p.sendOne(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// sendStarted sends started.json; one that somebody else sent in the meantime
// is as good.
func (p *publication) sendStarted(ctx context.Context, o *Object) error {
	object, err := o.prepare()
	if err != nil {
		return err
	}
	object.New = !p.Replace
	sent := true
	if err := p.Bucket.Put(ctx, object); errors.Is(err, bucket.ErrExists) {
		sent = false
	} else if err != nil {
		return err
	}
	p.count(o.Key, object.Sum, sent)
	return nil
}

// sendAlias sends an object that lies outside of the build's folder, and of
// which the metadata counts.
func (p *publication) sendAlias(ctx context.Context, o *Object) error {
	object, err := o.prepare()
	if err != nil {
		return err
	}
	there, err := p.Bucket.Stat(ctx, o.Key)
	switch {
	case errors.Is(err, bucket.ErrNotExist):
		there = nil
	case err != nil:
		return err
	case there.Metadata[linkKey] != o.Metadata[linkKey]:
		there = nil
	}
	return p.putUnless(ctx, object, there)
}

// sendLatest says which build is the newest, unless a newer one is.
func (p *publication) sendLatest(ctx context.Context, o *Object) error {
	own, err := ParseBuildID(p.plan.Build)
	if err != nil {
		return err
	}
	object, err := o.prepare()
	if err != nil {
		return err
	}
	const most = 100
	data, err := p.Bucket.ReadAll(ctx, o.Key, most)
	if err != nil && !errors.Is(err, bucket.ErrNotExist) && !errors.Is(err, bucket.ErrTooLarge) {
		return err
	}
	if there, err := ParseBuildID(strings.TrimSpace(string(data))); err == nil && there >= own {
		p.count(o.Key, object.Sum, false)
		return nil
	}
	return p.putUnless(ctx, object, nil)
}

func (p *publication) sendArtifacts(ctx context.Context) error {
	objects := p.plan.of(StepArtifact)
	// The large ones first, so that none of them is waited for at the end.
	slices.SortStableFunc(objects, func(a, b *Object) int { return int(min(1, max(-1, b.Size-a.Size))) })
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(p.parallel())
	for _, o := range objects {
		group.Go(func() error { return p.sendOne(inner, o) })
	}
	return group.Wait()
}

func (p *Publisher) parallel() int {
	if p.Parallel <= 0 {
		return 16
	}
	return p.Parallel
}

// sendOne sends an object, unless it is there.
func (p *publication) sendOne(ctx context.Context, o *Object) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	object, err := o.prepare()
	if err != nil {
		return err
	}
	return p.putUnless(ctx, object, p.there[o.Key])
}

// putUnless sends an object, unless what is there, nil for nothing, is the same.
func (p *publication) putUnless(ctx context.Context, object *bucket.Object, there *bucket.Attrs) error {
	if there != nil {
		same, err := p.Bucket.Same(ctx, there, object.Sum)
		if err != nil {
			return err
		}
		if same {
			p.count(object.Key, object.Sum, false)
			return nil
		}
	}
	if err := p.Bucket.Put(ctx, object); err != nil {
		return err
	}
	p.count(object.Key, object.Sum, true)
	return nil
}

func (p *publication) count(key string, sum bucket.Sum, sent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sums[key] = sum
	if sent {
		p.progress.Sent++
		p.progress.Bytes += sum.Size
	} else {
		p.progress.Kept++
	}
	if p.Progress != nil {
		p.Progress(p.progress)
	}
}

// verify compares what is in the build's folder with what was sent.
func (p *publication) verify(ctx context.Context) error {
	there, err := p.list(ctx, p.plan.Dir)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(p.parallel())
	if there[p.plan.Dir+startedFile] == nil {
		return p.lost(p.plan.Dir+startedFile, "it is gone")
	}
	for _, o := range p.plan.of(StepArtifact) {
		attrs := there[o.Key]
		if attrs == nil {
			return p.lost(o.Key, "it is gone")
		}
		group.Go(func() error {
			p.mu.Lock()
			sum := p.sums[o.Key]
			p.mu.Unlock()
			same, err := p.Bucket.Same(ctx, attrs, sum)
			if err == nil && !same {
				err = p.lost(o.Key, "it is not what was sent")
			}
			return err
		})
	}
	return group.Wait()
}

func (p *publication) lost(key, how string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sums, key)
	return fmt.Errorf("checking %s: %s; something else writes into this folder", p.Bucket.URL(key), how)
}

// incomplete says what of the plan did not arrive.
func (p *publication) incomplete(cause error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := &IncompleteError{Total: len(p.plan.Objects), Cause: cause}
	for i := range p.plan.Objects {
		if key := p.plan.Objects[i].Key; p.sums[key] == (bucket.Sum{}) {
			if _, kept := p.sums[key]; !kept {
				e.Missing = append(e.Missing, key)
			}
		}
	}
	return e
}

// searchBack is how long before a run its build may have been started.
const searchBack = 24 * time.Hour

// Find returns the build of the job that was started for a run, and is not
// finished: the one whose id is want, else the only one that was started
// between a day before start, and until. Errors are [ErrNotStarted] and
// [ErrSeveral].
func (p *Publisher) Find(ctx context.Context, job *Job, want string, start, until time.Time) (string, error) {
	if waits, err := p.waits(ctx, job, want); err != nil || waits {
		return want, err
	}
	from, err := BuildID(start.Add(-searchBack), "")
	if err != nil {
		return "", err
	}
	var found, ids []string
	err = p.Bucket.List(ctx, bucket.ListOptions{Prefix: job.BuildsDir(), Delimiter: "/", From: job.BuildsDir() + from}, func(a *bucket.Attrs) error {
		id := buildOf(a)
		if n, err := ParseBuildID(id); err == nil && !buildTime(n).After(until) {
			ids = append(ids, id)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	for _, id := range ids {
		waits, err := p.waits(ctx, job, id)
		if err != nil {
			return "", err
		}
		if waits {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("%w in %s; use 'publish' where there was no 'publish start'", ErrNotStarted, p.Bucket.URL(job.BuildsDir()))
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%w: %s; say which with --build-id", ErrSeveral, strings.Join(found, ", "))
}

// skew is how far the clocks of who starts a build and who runs the tests may
// be apart.
const skew = time.Minute

// Began checks that a run that started at the given time can be that of a build
// which was started before it. An error is an [ErrOlder].
func (p *Publisher) Began(ctx context.Context, job *Job, id string, start time.Time) error {
	data, err := p.Bucket.ReadAll(ctx, path.Join(job.BuildDir(id), startedFile), maxMetadataFile)
	if errors.Is(err, bucket.ErrNotExist) {
		return fmt.Errorf("%w: %s has no %s; use 'publish' where there was no 'publish start'", ErrNotStarted, p.Bucket.URL(job.BuildDir(id)), startedFile)
	}
	if err != nil {
		return err
	}
	var started metadata.Started
	if err := json.Unmarshal(data, &started); err != nil {
		return fmt.Errorf("reading %s of build %s: %w", startedFile, id, err)
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
