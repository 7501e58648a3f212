package testgrid

import (
	"cmp"
	"context"
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

	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
)

var (
	// ErrHeld says that the bucket holds the build already.
	ErrHeld = errors.New("the bucket holds this build already")
	// ErrTaken says that the build is that of another run.
	ErrTaken = errors.New("the build is that of another run")
	// ErrBackwards says that the job has a newer build. It is a
	// [BackwardsError].
	ErrBackwards = errors.New("the job has a newer build")
	// ErrNotStarted says that no build was found to be finished.
	ErrNotStarted = errors.New("no build of the job waits to be finished")
	// ErrOlder says that a run began before the build that it is to finish.
	ErrOlder = errors.New("the results are older than the build")
	// ErrSeveral says that more than one was.
	ErrSeveral = errors.New("several builds of the job wait to be finished")
)

// BackwardsError says that the job has a newer build than the one that was to
// be published.
type BackwardsError struct{ Build, Newest string }

func (e *BackwardsError) Error() string {
	return fmt.Sprintf("%v: TestGrid knows %s, and never lists %s, which is before it", ErrBackwards, e.Newest, e.Build)
}

// Is reports whether target is [ErrBackwards].
func (e *BackwardsError) Is(target error) bool { return target == ErrBackwards }

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

// Presence is whether an object is in the bucket, as far as its answers tell.
type Presence int

// An object is in the bucket, or not, or the answer that would tell was lost.
const (
	Absent Presence = iota
	Present
	Unknown
)

// IncompleteError says what of a build has not been published.
type IncompleteError struct {
	// Missing are the keys of objects that remain, in the order of the plan.
	Missing []string
	Total   int
	// Started and Finished are whether started.json and finished.json are
	// there. Finished is Present only where a build was to be replaced and
	// could not be.
	Started, Finished Presence
	Cause             error

	// start says that the plan is but the start of a build, hidden that a
	// presubmit has no alias.
	start, hidden bool
}

func (e *IncompleteError) Error() string {
	names := make([]string, len(e.Missing))
	for i, key := range e.Missing {
		names[i] = path.Base(key)
	}
	return fmt.Sprintf("%v\n%d of %d objects remain to be sent (%s): %s", e.Cause, len(e.Missing), e.Total, text.Few(names, 5), e.looks())
}

// looks says what readers of the bucket see of the build.
func (e *IncompleteError) looks() string {
	switch {
	case e.Finished == Unknown:
		return "whether " + finishedFile + " is there is not known, so the build may show as finished"
	case e.Finished == Present:
		return "the build still shows as finished"
	case e.Started == Unknown:
		return "whether " + startedFile + " is there is not known, so the build may show as running"
	case e.Started == Absent:
		return "there is no " + startedFile + ", so the build does not show"
	case e.hidden:
		return "there is no alias, so TestGrid does not show the build"
	case e.start:
		return "the build shows as running"
	}
	return "there is no " + finishedFile + ", so the build shows as running"
}

func (e *IncompleteError) Unwrap() error { return e.Cause }

// publication is one plan on its way.
type publication struct {
	*Publisher
	plan *UploadPlan
	// there is what the build's folder held at the beginning.
	there map[string]*bucket.Attrs
	// remove are the keys that go before anything is sent, in that order.
	remove []string
	// started and finished say what is known of those files. changed says that
	// the bucket is no longer what it was, or may not be.
	started, finished Presence
	changed           bool

	mu       sync.Mutex
	progress Progress
	sums     map[string]bucket.Sum
}

// Publish sends a plan: started.json, alias and latest-build.txt, artifacts,
// and then, when all of them have arrived, finished.json. What is in the
// bucket already is not sent again, so an interrupted publication goes on
// where it was. A started.json that is there is kept.
//
// Errors are an [ErrHeld], [ErrTaken] or [ErrBackwards] before anything was
// sent, and an [IncompleteError] where part of a build is there.
func (p *Publisher) Publish(ctx context.Context, plan *UploadPlan) (Progress, error) {
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
		if !pub.changed && (pub.started == Absent || pub.finished == Present) {
			return pub.progress, err // all is as it was
		}
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
	if p.there[p.plan.Dir+startedFile] != nil {
		p.started = Present
	}
	if p.there[p.plan.Dir+finishedFile] != nil {
		p.finished = Present
	}
	if !p.Replace && len(p.there) > 0 {
		owner, err := p.owner(ctx, p.plan.Dir, p.there)
		switch {
		case err != nil:
			return err
		case owner != "" && p.plan.run == "":
			return fmt.Errorf("%w: %s is of run %s, and was not made by a start alone", ErrTaken, p.plan.URL, shown.Line(owner))
		case owner != "" && owner != p.plan.run:
			return fmt.Errorf("%w: %s is of run %s, and these are the results of run %s", ErrTaken, p.plan.URL, shown.Line(owner), shown.Line(p.plan.run))
		case p.finished == Present && owner != "":
			return fmt.Errorf("%w, finished, and of this very run: %s", ErrHeld, p.plan.URL)
		case p.finished == Present:
			return fmt.Errorf("%w, finished: %s", ErrHeld, p.plan.URL)
		}
	}
	if p.started != Present {
		newer, err := p.newer(ctx)
		if err != nil {
			return err
		}
		if newer != "" {
			return &BackwardsError{Build: p.plan.Build, Newest: newer}
		}
	}
	return p.strangers()
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

// prows are the objects of a build that others write.
var prows = []string{"prowjob.json", "podinfo.json", "clone-log.txt", "clone-records.json"}

// cutOff is what an upload into a folder leaves that was killed.
var cutOff = regexp.MustCompile(`^(.*)\.[0-9a-f]+\.tmp$`)

// strangers finds what goes before anything is sent: what a publication left
// that was killed, and, to replace a build, what the new one does not have. An
// error is an [ErrHeld].
func (p *publication) strangers() error {
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
			p.remove = append(p.remove, key)
		default:
			strange = append(strange, key)
		}
	}
	if !p.Replace {
		if len(strange) > 0 && len(p.plan.of(StepFinish)) > 0 {
			return fmt.Errorf("%w: %s has %d objects that these results do not have, such as %s", ErrHeld, p.plan.URL, len(strange), shown.Line(strange[0]))
		}
		return nil
	}
	p.remove = append(p.remove, strange...)
	if p.finished == Present {
		// First of all the build must not look finished.
		p.remove = slices.Insert(p.remove, 0, p.plan.Dir+finishedFile)
	}
	return nil
}

// clear removes what has to go.
func (p *publication) clear(ctx context.Context) error {
	for _, key := range p.remove {
		err := p.Bucket.Delete(ctx, key)
		finish := key == p.plan.Dir+finishedFile
		switch {
		case errors.Is(err, bucket.ErrUncertain):
			p.changed = true
			if finish {
				p.finished = Unknown
			}
			return err
		case err != nil:
			return err
		case finish:
			p.finished = Absent
			if p.Note != nil {
				p.Note("TestGrid does not read a build again that was finished, unless it started less than 20 minutes ago: its column may stay as it was")
			}
		}
		p.changed = true
		delete(p.there, key)
	}
	return nil
}

func (p *publication) send(ctx context.Context) error {
	if err := p.clear(ctx); err != nil {
		return err
	}
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
		if err := p.sendFinished(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// sendFinished sends finished.json, which is not there.
func (p *publication) sendFinished(ctx context.Context, o *Object) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	object, err := o.prepare()
	if err != nil {
		return err
	}
	if err := p.decisive(ctx, object, &p.finished); err != nil {
		return err
	}
	p.count(o.Key, object.Sum, true)
	return nil
}

// lastLook is how long the bucket is asked, after an interrupt, whether what
// was on its way has arrived.
const lastLook = 5 * time.Second

// decisive uploads an object whose presence decides what the build looks like,
// and notes that in state. An upload that arrived before an interrupt counts.
func (p *publication) decisive(ctx context.Context, o *bucket.Object, state *Presence) error {
	err := p.Bucket.Put(ctx, o)
	if errors.Is(err, bucket.ErrUncertain) {
		p.changed, *state = true, Unknown
		if ctx.Err() != nil {
			look, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
			defer cancel()
			switch arrived, lookErr := p.Bucket.Arrived(look, o); {
			case lookErr != nil:
			case arrived:
				err = nil
			default:
				*state = Absent
			}
		}
	}
	if err == nil {
		p.changed, *state = true, Present
	}
	return err
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
	if err := p.decisive(ctx, object, &p.started); errors.Is(err, bucket.ErrExists) {
		sent, p.started = false, Present
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
	// What says whose build it is comes first, so that half a build says it, too.
	var first, rest []*Object
	for _, o := range p.plan.of(StepArtifact) {
		if isRunFile(p.plan.Dir, o.Key) {
			first = append(first, o)
		} else {
			rest = append(rest, o)
		}
	}
	// Then the large ones, so that none of them is waited for at the end.
	slices.SortStableFunc(rest, func(a, b *Object) int { return cmp.Compare(b.Size, a.Size) })
	if err := p.sendAll(ctx, first); err != nil {
		return err
	}
	return p.sendAll(ctx, rest)
}

func (p *publication) sendAll(ctx context.Context, objects []*Object) error {
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
	p.changed = p.changed || sent
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

// incomplete says what of the plan remains.
func (p *publication) incomplete(cause error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := &IncompleteError{Total: len(p.plan.Objects), Started: p.started, Finished: p.finished, Cause: cause, start: len(p.plan.of(StepFinish)) == 0}
	for i := range p.plan.Objects {
		o := &p.plan.Objects[i]
		if _, done := p.sums[o.Key]; !done {
			e.Missing = append(e.Missing, o.Key)
			e.hidden = e.hidden || o.Step == StepAlias
		}
	}
	return e
}
