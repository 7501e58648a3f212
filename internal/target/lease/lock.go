package lease

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Holder says who locks, for the errors of others. Only RunID decides.
type Holder struct {
	RunID string
	// Shard is such as "2/3".
	Shard string
	Host  string
}

// Group is what the lock is held for: tests of one phase under one set of
// conditions.
type Group struct {
	Phase      specs.Phase
	Conditions result.RunConditions
}

func (g Group) String() string {
	return fmt.Sprintf("%s, %s", g.Phase, g.Conditions)
}

func (g Group) validate() error {
	switch g.Phase {
	case specs.Parallel, specs.Serial, specs.Disruptive:
		return nil
	}
	return fmt.Errorf("phase %.40q is not parallel, serial or disruptive", string(g.Phase))
}

// beside reports whether two groups of one run may be at work together.
func (g Group) beside(other Group) bool { return g.Phase == specs.Parallel && g == other }

// Clock is the time that a lock goes by.
type Clock interface {
	Now() time.Time
	// Sleep returns the error of ctx when that ends first.
	Sleep(ctx context.Context, d time.Duration) error
}

type systemClock struct{}

// Now implements [Clock].
func (systemClock) Now() time.Time { return time.Now() }

// Sleep implements [Clock].
func (systemClock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Options have a default each.
type Options struct {
	// Duration is how long a holder lives that does not renew; 0 is
	// [cluster.Patience].
	Duration time.Duration
	// Interval is the time between renewals; 0 is a quarter of Duration.
	Interval time.Duration
	// Poll is how often who waits looks, and how soon a renewal that failed is
	// tried again; 0 is a twentieth of Duration.
	Poll time.Duration
	// Note is told what is worth a line: who is waited for, and which dead
	// holder was replaced. It may be called from several goroutines.
	Note  func(text string)
	Clock Clock
	// Dead are members, by [Lock.ID], of which the caller knows that they are
	// dead: the earlier attempts of a run that is resumed. Nobody waits for them
	// to expire.
	Dead []string
}

// Lock is one process's part in the lock of one cluster. Acquire and Release
// must not run at the same time; the other methods may be called at any time.
type Lock struct {
	Options
	leases coordination.LeaseInterface
	holder Holder
	id     string

	mu   sync.Mutex
	seen observations
	hold *hold // nil when this process is not a member
	// listed says that the Lease may name this process, member or not.
	listed bool
}

// New returns a lock that nobody holds yet. It sends no request. The client
// should have a rate limit of its own, so that renewals never queue behind
// other requests.
func New(client kubernetes.Interface, holder Holder, o Options) *Lock {
	o.Duration = cmp.Or(o.Duration, cluster.Patience)
	o.Interval = cmp.Or(o.Interval, o.Duration/4)
	o.Poll = cmp.Or(o.Poll, o.Duration/20)
	if o.Note == nil {
		o.Note = func(string) {}
	}
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	return &Lock{Options: o, leases: client.CoordinationV1().Leases(Namespace), holder: holder, id: rand.Text()}
}

// ID names this lock's member; no other lock ever has the same.
func (l *Lock) ID() string { return l.id }

// Acquire returns when tests of the group may run. Who holds the lock already
// goes over to the group in one step, so that no other run comes between.
//
// While another run has the cluster, Acquire waits if wait is set, and returns a
// [HeldError] otherwise; without wait it still looks until the lease expires
// when the other run seems to be dead. Shards of its own run are always waited
// for. When ctx ends, so does the wait, with ctx's error.
//
// Release must be called in the end, also when Acquire failed: who waits for
// shards of its own run is a member already.
//
// An outage of the API server is waited out, for as long as Duration.
func (l *Lock) Acquire(ctx context.Context, g Group, wait bool) error {
	if err := l.validate(g); err != nil {
		return err
	}
	if err := l.Err(); err != nil {
		return err
	}
	var waitsFor *HeldError
	var why error // nothing is acquired yet
	answered := l.Clock.Now()
	for {
		held, err := l.enter(ctx, g)
		switch {
		case ctx.Err() != nil && waitsFor != nil:
			return fmt.Errorf("waiting for the cluster: %w: %w", ctx.Err(), waitsFor)
		case ctx.Err() != nil:
			return fmt.Errorf("locking the cluster: %w", ctx.Err())
		case err != nil:
			if l.Err() != nil || !cluster.Away(err) || l.Clock.Now().Sub(answered) >= l.Duration {
				return err
			}
			why = err
		case held == nil:
			return nil
		case !held.own && !wait && !held.stale:
			return held
		default:
			answered = l.Clock.Now()
			if waitsFor == nil || !waitsFor.same(held) {
				l.Note("waiting: " + held.who())
			}
			waitsFor, why = held, held
		}
		if err := l.Clock.Sleep(ctx, l.Poll); err != nil {
			return fmt.Errorf("waiting for the cluster: %w: %w", err, why)
		}
	}
}

func (l *Lock) validate(g Group) error {
	if err := g.validate(); err != nil {
		return fmt.Errorf("locking the cluster: %w", err)
	}
	if l.holder.RunID == "" {
		return errors.New("locking the cluster: the run has no id")
	}
	for _, text := range []string{l.holder.RunID, l.holder.Shard, l.holder.Host, g.Conditions.String()} {
		if !showable(text) {
			return fmt.Errorf("locking the cluster: %.40q is longer than %d bytes, or cannot be shown", text, maxText)
		}
	}
	if l.Duration > maxDuration {
		return fmt.Errorf("locking the cluster: others do not believe a lease of %s; %s is the longest", l.Duration, maxDuration)
	}
	if l.Interval >= l.Duration {
		return fmt.Errorf("locking the cluster: a lease of %s cannot be renewed every %s", l.Duration, l.Interval)
	}
	return nil
}

// enter makes this process a member that is at work on the group, or returns
// who is in the way.
func (l *Lock) enter(ctx context.Context, g Group) (*HeldError, error) {
	began := l.Clock.Now()
	var d decision
	err := l.edit(ctx, func(r *record) (*record, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		var err error
		d, err = l.decide(r, g)
		l.listed = l.listed || d.next != nil
		return d.next, err
	})
	if err != nil {
		return nil, err
	}
	if d.next != nil {
		l.begin(began)
	}
	l.noteReplaced(d.replaced)
	return d.held, nil
}

func (l *Lock) noteReplaced(holders []string) {
	for _, text := range holders {
		l.Note("replaced a holder of the cluster lock that had died: " + text)
	}
}

// decision is what to do about a record.
type decision struct {
	next     *record    // to be written; nil where nothing is
	held     *HeldError // who is in the way; nil when the group may run
	replaced []string   // the dead that next leaves out
}

// decide says what to make of the record for the group's sake; l.mu is held.
func (l *Lock) decide(r *record, g Group) (d decision, err error) {
	now := l.Clock.Now()
	if l.hold != nil {
		if reason := l.missing(r); reason != "" {
			return d, l.lose(l.hold, reason)
		}
	}
	if r.problem != nil {
		expiry := max(r.duration, l.Duration)
		if l.seen.unreadableFor(r, now) < expiry {
			d.held = &HeldError{Unreadable: r.problem, Expiry: expiry}
			return d, nil
		}
		d.replaced = append(d.replaced, fmt.Sprintf("Lease %s/%s could not be read: %v", Namespace, Name, r.problem))
		r = &record{}
	}
	others, dead := l.others(r)
	d.replaced = append(d.replaced, dead...)
	own := r.runID == l.holder.RunID
	inTheWay := slices.DeleteFunc(slices.Clone(others), func(m member) bool {
		return own && (m.Waiting || m.group().beside(g))
	})
	was := r.find(l.id)
	if len(inTheWay) > 0 {
		d.held = newHeldError(r.runID, own, inTheWay)
		d.held.stale = l.seen.stale(inTheWay, now)
		waits := was != nil && was.Waiting && was.group() == g
		if !own || waits {
			d.replaced = nil // the next who writes does that
			return d, nil
		}
	}
	me := member{
		ID: l.id, Shard: l.holder.Shard, Host: l.holder.Host,
		Phase: g.Phase, Conditions: g.Conditions, Waiting: d.held != nil,
		Since: now.UTC(), Renewed: now.UTC(), Duration: l.Duration.String(),
	}
	if was != nil {
		me.Since, me.Renewals = was.Since, was.Renewals+1
	}
	d.next = &record{runID: l.holder.RunID, members: append(others, me)}
	return d, nil
}

// ErrLost says that others may have been at work on the cluster: what ends from
// then on proves nothing.
var ErrLost = errors.New("the cluster lock was lost")

// Lost returns a channel that is closed when the lock is lost; see [Lock.Err].
// It is for the time between an Acquire and a Release; outside of that, it is
// nil.
func (l *Lock) Lost() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hold == nil {
		return nil
	}
	return l.hold.lost
}

// Err returns an [ErrLost] that says why, when the lock was lost and not yet
// released. It asks the clock: that this process, or its machine, stood still, it
// knows before any renewal has failed.
func (l *Lock) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hold == nil {
		return nil
	}
	_, err := l.left(l.hold)
	return err
}

// Peers returns the IDs of the run's other members that live, at work or waiting.
// It is for who holds the lock: the longer a member was observed, the surer it is
// that a dead one is not among them.
func (l *Lock) Peers(ctx context.Context) ([]string, error) {
	var ids []string
	var problem error
	err := l.persist(ctx, func(r *record) (*record, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		ids, problem = nil, r.problem
		if r.runID == l.holder.RunID {
			living, _ := l.others(r)
			for _, m := range living {
				ids = append(ids, m.ID)
			}
		}
		return nil, nil
	})
	return ids, cmp.Or(err, problem)
}

// Confirm renews the lock now, through an outage if need be. What ended before a
// Confirm that returns nil, ended while nobody else had the cluster, also where
// this process, or its machine, stood still, or somebody removed the Lease. Else
// the error is an [ErrLost], or that of ctx.
func (l *Lock) Confirm(ctx context.Context) error {
	l.mu.Lock()
	h := l.hold
	l.mu.Unlock()
	if h == nil {
		return fmt.Errorf("%w: it is not held", ErrLost)
	}
	for {
		err := l.renewNow(ctx, h)
		switch {
		case err == nil:
			return nil
		case closed(h.lost):
			return h.err
		case l.Clock.Sleep(ctx, l.Poll) != nil:
			return err
		}
	}
}

// Release ends the part in the lock; the last member to go removes the Lease.
// What it could not remove when ctx ended expires by itself, or is removed when
// Release is called again. After it, also where the lock was lost, Acquire
// starts anew.
func (l *Lock) Release(ctx context.Context) error {
	l.mu.Lock()
	h, listed := l.hold, l.listed
	l.hold = nil
	l.mu.Unlock()
	if h != nil {
		h.stop()
		<-h.ended
	}
	if !listed {
		return nil
	}
	edit := l.persist
	if h != nil && closed(h.lost) {
		edit = l.edit // nobody waits for what has expired
	}
	err := edit(ctx, func(r *record) (*record, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if r.problem != nil || r.runID != l.holder.RunID || r.find(l.id) == nil {
			return nil, nil
		}
		others, _ := l.others(r)
		return &record{runID: r.runID, members: others}, nil
	})
	if err != nil {
		return fmt.Errorf("releasing the cluster, which happens by itself after %s: %w", l.Duration, err)
	}
	l.mu.Lock()
	l.listed = false
	l.mu.Unlock()
	return nil
}
