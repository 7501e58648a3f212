package run

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Cluster is what the engine needs of the cluster beside the tests.
type Cluster interface {
	// Healthy returns an error when the API server does not answer.
	Healthy(ctx context.Context) error
	// RemoveNamespaces deletes what the tests of the given e2e.test processes
	// left, waits until it is gone, and returns how many namespaces it was.
	RemoveNamespaces(ctx context.Context, suiteRunIDs []string) (int, error)
	// Outages says when the API server was away since a time, and who saw it; "" is
	// never.
	Outages(since time.Time) string
}

// Evidence observes the pods of tests, and what happens to the cluster meanwhile.
type Evidence interface {
	// Own tells of the run id of an e2e.test process of this run, before its first
	// test.
	Own(suiteRunID string)
	// Collect returns the pods of the namespaces of one attempt of a test that
	// has just ended, as far as they are of the e2e.test process of that run id,
	// and why they may not be all there were ("" where they are). since is when
	// the attempt began, or a time before.
	Collect(ctx context.Context, suiteRunID string, namespaces []string, since time.Time) (pods []result.Pod, incomplete string)
	// CollectRun is Collect for an attempt that was killed, and so named no
	// namespaces: it takes what is left of those of the process.
	CollectRun(ctx context.Context, suiteRunID string, since time.Time) (pods []result.Pod, incomplete string)
	// Changes says what happened since a time to nodes, and to the namespaces of
	// the process but for those that it says to have destroyed itself, and when;
	// "" for nothing.
	Changes(ctx context.Context, suiteRunID string, destroyed map[string]time.Time, since time.Time) string
}

// Steering puts pods where the tests of a group want them.
type Steering interface {
	// Apply puts conditions into force in place of the ones before, also of
	// those that a killed run left, and returns when the cluster heeds them.
	Apply(ctx context.Context, conditions result.RunConditions) error
	// Remove takes away what this run has put into force, and nothing of other
	// runs and of its living shards.
	Remove(ctx context.Context) error
}

// ProcessSteering is a Steering whose conditions hold for the pods of one process, so that
// tests of different conditions run beside each other. Its Apply says only whether
// conditions can be put into force.
type ProcessSteering interface {
	Steering
	// Own puts conditions into force for the process that labels its namespaces with that
	// id, and returns when the cluster heeds them. The process is held meanwhile; that it
	// has made pods before is an error.
	Own(ctx context.Context, conditions result.RunConditions, suiteRunID string) error
	// Disown takes them away once the process has ended.
	Disown(ctx context.Context, suiteRunID string) error
}

// Everywhere returns what of the conditions of tests holds for the whole cluster while they
// run.
func Everywhere(s Steering, conditions result.RunConditions) result.RunConditions {
	if _, byProcess := s.(ProcessSteering); byProcess {
		return result.RunConditions{}
	}
	return conditions
}

// Lock keeps off the cluster whoever would spoil the proof.
type Lock interface {
	// Hold returns when tests of the phase may run under the conditions. Who
	// holds the lock already goes over in one step.
	Hold(ctx context.Context, phase specs.Phase, conditions result.RunConditions) error
	// Lost is closed when others may have come to work on the cluster; Err says
	// why.
	Lost() <-chan struct{}
	Err() error
	// Confirm returns nil when it is certain that nobody else has come to work on
	// the cluster until now.
	Confirm(ctx context.Context) error
	// Release must be called in the end, also when Hold failed.
	Release(ctx context.Context) error
}

// Observer is told everything that is recorded, after it was. Its methods are
// called concurrently.
type Observer interface {
	Event(e result.Event)
	// Note is told what is worth a line and is not a result.
	Note(text string)
}

// Options are what a run is made of. All fields are needed but those that
// have a default.
type Options struct {
	Plan     *result.Plan
	Manifest *result.Manifest
	Folder   *result.Folder
	Binary   *e2e.Binary
	Flags    e2e.Flags
	// OwnBinary is op-readiness.test, and OwnArgs are further arguments for it;
	// needed where the plan has tests of that suite.
	OwnBinary *e2e.Binary
	OwnArgs   []string
	// Env is the environment of e2e.test.
	Env      []string
	Cluster  Cluster
	Observer Observer
	// Evidence observes pods; where it is nil, no placement is ever proven.
	Evidence Evidence
	// Lock may be nil where nobody else can be at work on the cluster.
	Lock Lock
	// Steering may be nil where the manifest says that pods are not steered, and
	// nobody can have left anything in force. It may be a [ProcessSteering].
	Steering Steering
	// Retries is how often a failed test is run again.
	Retries int
	// Procs is how many tests that allow it run beside each other; at least 1.
	Procs int
	// Previous is what the folder already holds when a run is resumed.
	Previous *result.Run
	// Stop, when closed, asks for a graceful stop: the tests that run are
	// interrupted and clean up, and no other is started. Cancelling the
	// context of [Run] stops at once.
	Stop <-chan struct{}
	// StopWithin is how long after Stop, or after Deadline, the run has until it
	// is killed; 0 means no limit. Half of it is e2e.test's to clean up, then its
	// namespaces are removed, the conditions taken away and the lock released, each
	// in a share of its own, and a tenth is left.
	StopWithin time.Duration
	// Deadline is when the tests that run are interrupted and no other is
	// started, as by Stop, but because the run's own time is up. Zero is never.
	Deadline time.Time
	// TempDir is for files that are not results.
	TempDir string

	// Grace is how long e2e.test may take to clean up after an interrupt
	// before it is killed; 0 is two minutes.
	Grace time.Duration
	// HealthInterval is how often the API server is asked whether it is
	// there; 0 is ten seconds. A server that was not six times in a row is gone.
	HealthInterval time.Duration
	// ProbeInterval is the time between the questions after a test failed; 0
	// is three seconds.
	ProbeInterval time.Duration
	// IdleLimit is how long e2e.test may go without running a test; 0 is 45
	// minutes: before its first test it waits for nodes, up to half an hour.
	IdleLimit time.Duration
}

func (o *Options) defaults() {
	o.Grace = cmp.Or(o.Grace, 2*time.Minute)
	o.HealthInterval = cmp.Or(o.HealthInterval, 10*time.Second)
	o.ProbeInterval = cmp.Or(o.ProbeInterval, 3*time.Second)
	o.IdleLimit = cmp.Or(o.IdleLimit, 45*time.Minute)
	o.Procs = max(o.Procs, 1)
}

// ErrInterrupted says that the run was stopped early, as asked.
var ErrInterrupted = errors.New("interrupted")

// Run runs the tests of the manifest's shard, and returns when all of them
// have a result, when it was asked to stop ([ErrInterrupted]), or when results
// cannot be recorded any more. That tests fail is not an error. After an error
// other than [ErrInterrupted] the folder holds a run that did not come to its end.
func Run(ctx context.Context, o Options) error {
	o.defaults()
	e := &engine{Options: o, attempts: map[string][]result.TestRun{}, sound: map[string]bool{}, void: map[string]int{}, stopped: make(chan struct{}), killed: ctx.Done(), over: make(chan struct{})}
	e.byProcess, _ = o.Steering.(ProcessSteering)
	for i := range e.spent {
		e.spent[i] = make(chan struct{})
	}
	if o.Previous != nil {
		for id, runs := range o.Previous.Attempts {
			e.attempts[id] = slices.Clone(runs)
		}
		e.batches = len(o.Previous.Batches)
	}
	return e.run(ctx)
}

type engine struct {
	Options
	byProcess ProcessSteering // nil where conditions hold for the whole cluster

	mu       sync.Mutex
	attempts map[string][]result.TestRun // finished ones, by test id
	sound    map[string]bool             // the batches of this execution whose passes count
	void     map[string]int              // how often a pass did not count, by test id
	batches  int
	failure  error  // what ends the run early
	gone     string // why the cluster is given up; "" while it is there
	late     bool   // the deadline stopped it

	stopOnce sync.Once
	stopped  chan struct{}   // closed when no further test is to start
	killed   <-chan struct{} // closed when everything is to stop at once
	over     chan struct{}   // closed when the run is over
	spent    [shares]chan struct{}
	held     bool            // the lock was taken
	watched  <-chan struct{} // tells that the lock was lost; nil before it was taken
}

func (e *engine) run(ctx context.Context) error {
	defer close(e.over)
	go e.heed(ctx)
	go e.hurry()
	e.record(result.Event{Type: result.RunStarted})
	if err := e.clearLeftovers(ctx); err != nil {
		return err
	}
	e.decide()
	defer e.letGo()
	for _, s := range e.stages() {
		e.exhaust(ctx, s)
	}
	interrupted := ctx.Err() != nil || isClosed(e.Stop)
	e.mu.Lock()
	gone, late := e.gone, e.late
	e.mu.Unlock()
	if gone != "" && !interrupted {
		e.giveUp(Tests(e.Plan, e.Manifest), gone)
	}
	// A run that an error ended has not come to its end: it can be gone on with.
	if err := e.failed(); err != nil {
		return err
	}
	e.record(result.Event{Type: result.RunFinished, Interrupted: interrupted, OutOfTime: late && !interrupted && e.lacking()})
	if err := e.failed(); err != nil {
		return err
	}
	if interrupted {
		return ErrInterrupted
	}
	return nil
}

// failed returns the error that ends the run, if any.
func (e *engine) failed() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.failure
}

// deadline is when the run's time is up, which never comes without one, and what
// ends the waiting for it.
func (e *engine) deadline() (<-chan time.Time, func() bool) {
	if e.Deadline.IsZero() {
		return nil, func() bool { return false }
	}
	timer := time.NewTimer(time.Until(e.Deadline))
	return timer.C, timer.Stop
}

// heed ends the run early: as asked, at once, or at its deadline.
func (e *engine) heed(ctx context.Context) {
	deadline, stop := e.deadline()
	defer stop()
	select {
	case <-e.Stop:
	case <-ctx.Done():
	case <-deadline:
		e.mu.Lock()
		e.late = true
		e.mu.Unlock()
		e.Observer.Note("the run's time is up: stopping; what is left is not tested")
	case <-e.over:
		return
	}
	e.stop()
}

// What the time after a stop is shared by, in this order.
const (
	shareSuite   = iota // e2e.test cleans up
	shareCleanUp        // its namespaces go, and its pods are looked at
	shareUnsteer        // conditions are given up
	shareUnlock         // the lock is
	shares
)

// hurry closes spent, one after the other, as the time passes that there is
// after a stop.
func (e *engine) hurry() {
	if e.StopWithin <= 0 {
		return
	}
	deadline, stop := e.deadline()
	defer stop()
	select {
	case <-e.Stop:
	case <-deadline:
	case <-e.over:
		return
	}
	began := time.Now()
	for i, tenths := range [shares]time.Duration{5, 7, 8, 9} {
		timer := time.NewTimer(time.Until(began.Add(e.StopWithin * tenths / 10)))
		select {
		case <-timer.C:
			close(e.spent[i])
		case <-e.over:
			timer.Stop()
			return
		}
	}
}

// within returns a context that ends with ctx, and when a share of the time
// after a stop is spent.
func (e *engine) within(ctx context.Context, share int) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-e.spent[share]:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// lacking reports whether a test that is not on trial has no answer that counts.
func (e *engine) lacking() bool {
	trial := e.Plan.OnTrial()
	return slices.ContainsFunc(e.unanswered(Tests(e.Plan, e.Manifest)), func(t *result.PlannedTest) bool { return !trial[t.ID] })
}

// clearLeftovers removes what a run that was killed left in the cluster.
func (e *engine) clearLeftovers(ctx context.Context) error {
	if e.Previous == nil {
		return nil
	}
	var ids []string
	for _, b := range e.Previous.Batches {
		// One that has ended may have been killed, and left something, too.
		if b.SuiteRunID != "" {
			ids = append(ids, b.SuiteRunID)
		}
	}
	return e.removeNamespaces(ctx, ids)
}

// removeTimeout bounds the wait for namespaces to be gone.
const removeTimeout = 3 * time.Minute

func (e *engine) removeNamespaces(ctx context.Context, suiteRunIDs []string) error {
	if len(suiteRunIDs) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	ctx, done := e.within(ctx, shareCleanUp)
	defer done()
	n, err := e.Cluster.RemoveNamespaces(ctx, suiteRunIDs)
	if n > 0 {
		e.Observer.Note(fmt.Sprintf("removed %d namespaces that tests left behind", n))
	}
	return err
}

// decide records the cases that are not tested, and why.
func (e *engine) decide() {
	for i := range e.Plan.Cases {
		c := &e.Plan.Cases[i]
		if c.Shard != e.Manifest.Shard {
			continue
		}
		if outcome, reason := verdict.Decide(c, e.Manifest); outcome != "" {
			e.record(result.Event{Type: result.CaseDecided, Case: &result.Decision{ID: c.ID, Outcome: string(outcome), Reason: reason}})
		}
	}
}

// fail ends the run with an error of its own.
func (e *engine) fail(err error) {
	e.mu.Lock()
	if e.failure == nil {
		e.failure = err
	}
	e.mu.Unlock()
	e.stop()
}

// steer puts the conditions of a group into force.
func (e *engine) steer(ctx context.Context, conditions result.RunConditions) error {
	switch {
	case e.Steering != nil:
		return e.Steering.Apply(ctx, conditions)
	case conditions != (result.RunConditions{}):
		return errors.New("nothing steers pods on this cluster")
	}
	return nil
}

// letGo takes the conditions of the last group away, and then leaves the
// cluster to others; also when the run was stopped.
func (e *engine) letGo() {
	// A run that goes on may have something in force from before it was killed,
	// and no test left.
	if e.Steering != nil && (e.Lock == nil || e.held || e.Previous != nil) {
		e.inTime(shareUnsteer, e.Steering.Remove)
	}
	if e.Lock != nil {
		e.inTime(shareUnlock, e.Lock.Release)
	}
}

// inTime lets something take a minute, or what its share of the time after a stop
// is, and notes what it could not do.
func (e *engine) inTime(share int, do func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ctx, done := e.within(ctx, share)
	defer done()
	if err := do(ctx); err != nil {
		e.Observer.Note(err.Error())
	}
}

// giveUp records the tests that cannot get a fair run any more.
func (e *engine) giveUp(tests []*result.PlannedTest, reason string) {
	for _, t := range tests {
		e.mu.Lock()
		tried := len(e.attempts[t.ID]) > 0
		e.mu.Unlock()
		if !tried {
			e.finishTest(result.TestRun{ID: t.ID, Name: t.Name, Attempt: 1, State: result.TestError, Message: reason})
		}
	}
}

// attempt is the number of a test's next attempt.
func (e *engine) attempt(t *result.PlannedTest) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.attempts[t.ID]) + 1
}

// finishTest records the end of an attempt, and its pods before it: who sees
// the end on disk sees them, too.
func (e *engine) finishTest(run result.TestRun, pods ...result.Pod) {
	run.Pods = len(pods)
	e.mu.Lock()
	e.attempts[run.ID] = append(e.attempts[run.ID], run)
	e.mu.Unlock()
	var events []result.Event
	for _, p := range pods {
		p.Test, p.Attempt = run.ID, run.Attempt
		events = append(events, result.Event{Type: result.PodObserved, Pod: &p})
	}
	e.record(append(events, result.Event{Type: result.TestFinished, Test: &run})...)
}

// record writes events, and then tells the observer. When they cannot be
// written, the run stops: what is not on disk does not count.
func (e *engine) record(events ...result.Event) {
	now := time.Now().UTC()
	for i := range events {
		events[i].Time = now
	}
	if err := e.Folder.Append(events...); err != nil {
		e.fail(err)
		return
	}
	for _, ev := range events {
		e.Observer.Event(ev)
	}
}

// lost gives the cluster up.
func (e *engine) lost(reason string) {
	e.mu.Lock()
	if e.gone == "" {
		e.gone = reason
	}
	e.mu.Unlock()
	e.stop()
}

// whyGone tells why the cluster was given up, "" while it is there.
func (e *engine) whyGone() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.gone
}

// probe asks the API server whether it is there, before it gives up for about as
// long as the lock would live without it, and returns the last answer.
func (e *engine) probe() error {
	const tries = 14
	var err error
	for i := range tries {
		if i > 0 {
			select {
			case <-time.After(e.ProbeInterval):
			case <-e.killed:
				return err
			}
		}
		if err = e.healthy(context.Background()); err == nil {
			return nil
		}
	}
	return err
}

// healthy asks the API server once whether it is there.
func (e *engine) healthy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, e.HealthInterval)
	defer cancel()
	return e.Cluster.Healthy(ctx)
}

// untilKilled returns a context that ends when everything is to stop at once.
func (e *engine) untilKilled() (context.Context, context.CancelFunc) {
	ctx, cancel := e.within(context.Background(), shareCleanUp)
	go func() {
		select {
		case <-e.killed:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

func (e *engine) stop() { e.stopOnce.Do(func() { close(e.stopped) }) }

func (e *engine) isStopped() bool { return isClosed(e.stopped) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// seed makes the order of tests within a batch a property of the plan.
func (e *engine) seed() int64 {
	raw, err := hex.DecodeString(strings.TrimPrefix(e.Plan.Digest, "sha256:"))
	if err != nil || len(raw) < 3 {
		return 1
	}
	return int64(raw[0])<<16 | int64(raw[1])<<8 | int64(raw[2]) + 1
}
