package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
)

// hold is the time as a member.
type hold struct {
	stop  context.CancelFunc // stops the renewals
	ended chan struct{}      // closed when they have stopped
	lost  chan struct{}
	err   error // why it was lost; set when lost is closed

	renewed time.Time // when the last renewal began that succeeded
	failed  error     // what the one after it came to
}

// errLate is why the lock is lost where no renewal has failed.
var errLate = errors.New("this process stood still")

// begin starts renewing. Where that goes on already, a renewal was made that
// began at the given moment.
func (l *Lock) begin(renewed time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hold != nil {
		l.hold.succeeded(renewed)
		return
	}
	// Renewals outlive the context of Acquire: they end with Release.
	ctx, stop := context.WithCancel(context.Background())
	h := &hold{stop: stop, ended: make(chan struct{}), lost: make(chan struct{})}
	h.succeeded(renewed)
	l.hold = h
	go func() {
		defer close(h.ended)
		l.renew(ctx, h)
	}()
}

// succeeded notes a renewal that began at a moment; the lock's mu is held.
func (h *hold) succeeded(began time.Time) {
	if began.After(h.renewed) {
		h.renewed, h.failed = began, errLate
	}
}

// renew renews until ctx ends or the lock is lost.
func (l *Lock) renew(ctx context.Context, h *hold) {
	for pause := l.Interval; ; {
		l.mu.Lock()
		left, err := l.left(h)
		l.mu.Unlock()
		if err != nil || l.Clock.Sleep(ctx, min(pause, left)) != nil {
			return
		}
		pause = l.Interval
		if err := l.renewNow(ctx, h); closed(h.lost) {
			return
		} else if err != nil {
			pause = l.Poll
		}
	}
}

// renewNow renews once, if it is not too late.
func (l *Lock) renewNow(ctx context.Context, h *hold) error {
	l.mu.Lock()
	began := l.Clock.Now()
	left, err := l.left(h)
	l.mu.Unlock()
	if err != nil {
		return err
	}
	attempt, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	var replaced []string
	err = l.edit(attempt, func(r *record) (next *record, err error) {
		next, replaced, err = l.renewal(h, r)
		return next, err
	})
	l.mu.Lock()
	switch {
	case err == nil:
		h.succeeded(began)
	case ctx.Err() == nil:
		h.failed = err
	}
	l.mu.Unlock()
	if err == nil {
		l.noteReplaced(replaced)
	}
	return err
}

// left returns for how long the lock is still surely this process's, and loses it
// when that is over; l.mu is held.
func (l *Lock) left(h *hold) (time.Duration, error) {
	left := l.Duration - elapsed(h.renewed, l.Clock.Now())
	if left <= 0 {
		why := h.failed
		if !errors.Is(why, errLate) && cluster.Away(why) {
			why = fmt.Errorf("the API server is away: %w", why)
		}
		return 0, l.lose(h, fmt.Sprintf("it could not be renewed for %s: %v", l.Duration, why))
	}
	return left, h.err
}

// elapsed is the time between two moments. A machine that is suspended stops its
// monotonic clock, and who sets the time moves the other: the longer time counts.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// renewal is the record with this process renewed and without the dead, and
// what to call those.
func (l *Lock) renewal(h *hold, r *record) (*record, []string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if reason := l.missing(r); reason != "" {
		return nil, nil, l.lose(h, reason)
	}
	me := *r.find(l.id)
	me.Renewals++
	me.Renewed = l.Clock.Now().UTC()
	others, dead := l.others(r)
	return &record{runID: r.runID, members: append(others, me)}, dead, nil
}

// others are the members beside this process: the living, and what to call the
// dead; l.mu is held.
func (l *Lock) others(r *record) (living []member, dead []string) {
	living, expired := l.seen.note(r, l.Clock.Now())
	for _, m := range expired {
		if m.ID != l.id {
			dead = append(dead, m.describe(r.runID))
		}
	}
	return slices.DeleteFunc(living, func(m member) bool { return m.ID == l.id || slices.Contains(l.Dead, m.ID) }), dead
}

// lose says why the lock was lost; l.mu is held.
func (l *Lock) lose(h *hold, reason string) error {
	if h.err == nil {
		h.err = fmt.Errorf("%w: %s", ErrLost, reason)
		close(h.lost)
	}
	return h.err
}

// missing says why this process is not a member by the record as it must be; ""
// when it is.
func (l *Lock) missing(r *record) string {
	me := r.find(l.id)
	switch {
	case r.problem != nil:
		return fmt.Sprintf("Lease %s/%s cannot be read any more: %v", Namespace, Name, r.problem)
	case len(r.members) == 0:
		return fmt.Sprintf("Lease %s/%s was deleted", Namespace, Name)
	case r.runID != l.holder.RunID || me == nil:
		return "it was taken by " + r.members[0].describe(r.runID)
	}
	for i := range r.members {
		m := &r.members[i]
		if m.ID != l.id && !me.Waiting && !m.Waiting && !me.group().beside(m.group()) {
			return "it was also given to " + m.describe(r.runID)
		}
	}
	return ""
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
