package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// hold is the time as a member.
type hold struct {
	stop  context.CancelFunc // stops the renewals
	ended chan struct{}      // closed when they have stopped
	lost  chan struct{}
	err   error // why it was lost; set when lost is closed
}

// begin starts renewing, unless that goes on already.
func (l *Lock) begin(renewed time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hold != nil {
		return
	}
	// Renewals outlive the context of Acquire: they end with Release.
	ctx, stop := context.WithCancel(context.Background())
	h := &hold{stop: stop, ended: make(chan struct{}), lost: make(chan struct{})}
	l.hold = h
	go func() {
		defer close(h.ended)
		l.renew(ctx, h, renewed)
	}()
}

// errLate is why the lock is lost where no renewal has failed.
var errLate = errors.New("this process stood still")

// renew renews until ctx ends or the lock is lost. Its last renewal began at
// the given moment.
func (l *Lock) renew(ctx context.Context, h *hold, renewed time.Time) {
	pause, failed := l.Interval, errLate
	for {
		left := l.Duration - l.Clock.Now().Sub(renewed)
		if err := l.Clock.Sleep(ctx, min(pause, left)); err != nil {
			return
		}
		began := l.Clock.Now()
		left = l.Duration - began.Sub(renewed)
		if left <= 0 {
			l.mu.Lock()
			_ = l.lose(h, fmt.Sprintf("it could not be renewed for %s: %v", l.Duration, failed))
			l.mu.Unlock()
			return
		}
		attempt, cancel := context.WithTimeout(ctx, left)
		var replaced []string
		failed = l.edit(attempt, func(r *record) (next *record, err error) {
			next, replaced, err = l.renewal(h, r)
			return next, err
		})
		cancel()
		pause = l.Poll
		switch {
		case closed(h.lost):
			return
		case failed == nil:
			pause, renewed, failed = l.Interval, began, errLate
			l.noteReplaced(replaced)
		}
	}
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
