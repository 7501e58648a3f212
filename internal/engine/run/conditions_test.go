package run_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/run"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
)

// steering remembers what it was asked to put into force.
type steering struct {
	refuse error

	mu      sync.Mutex
	applied []string
}

func (s *steering) Apply(_ context.Context, c result.RunConditions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied = append(s.applied, c.String())
	if c != (result.RunConditions{}) {
		return s.refuse
	}
	return nil
}

func (s *steering) Remove(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied = append(s.applied, "removed")
	return nil
}

// watch has one pod in every namespace.
type watch struct{ incomplete, changes string }

func (w watch) Collect(_ context.Context, _ string, namespaces []string, _ time.Time) ([]result.Pod, string) {
	var pods []result.Pod
	for _, ns := range namespaces {
		pods = append(pods, result.Pod{Namespace: ns, Name: "pod", Node: "w", OS: specs.Windows, Images: []string{"agnhost"}})
	}
	return pods, w.incomplete
}

func (w watch) Own(string) {}

func (w watch) Changes(context.Context, string, map[string]time.Time, time.Time) string {
	return w.changes
}

// CollectRun has one pod of a process that was killed.
func (w watch) CollectRun(_ context.Context, suiteRunID string, _ time.Time) ([]result.Pod, string) {
	if suiteRunID == "" {
		return nil, "no run id"
	}
	return []result.Pod{{Namespace: "left", Name: "pod", Images: []string{"agnhost"}, SchedulingFailure: "0/4 nodes are available"}}, w.incomplete
}

func conditioned(id string, phase specs.Phase, os specs.OS) result.PlannedTest {
	t := planned(id, phase)
	t.Conditions.Steer = os
	return t
}

func TestConditionsAreInForceForTheirGroupAndGoneAfterwards(t *testing.T) {
	b := newBench(t, e2etest.Script{},
		planned("a", specs.Parallel), conditioned("b", specs.Parallel, specs.Linux), conditioned("c", specs.Parallel, specs.Windows), conditioned("d", specs.Serial, specs.Windows))
	b.options.Procs = 2
	b.want(b.must(), "a:passed b:passed c:passed d:passed")
	if want := []string{"as is", "steer linux", "steer windows", "steer windows", "removed"}; !slices.Equal(b.steering.applied, want) {
		t.Errorf("in force were %q, want %q", b.steering.applied, want)
	}
}

func TestConditionsGoAlsoAfterAnInterrupt(t *testing.T) {
	b := newBench(t, e2etest.Script{Do: map[string][]string{name("a"): {e2etest.Hang}}}, conditioned("a", specs.Parallel, specs.Windows))
	stop := make(chan struct{})
	b.options.Stop = stop
	b.observer.on = func(e result.Event) {
		if e.Type == result.TestStarted {
			close(stop)
		}
	}
	if _, err := b.run(t.Context()); err == nil {
		t.Error("the run was not interrupted")
	}
	if want := []string{"steer windows", "removed"}; !slices.Equal(b.steering.applied, want) {
		t.Errorf("in force were %q, want %q", b.steering.applied, want)
	}
}

func TestWhatCannotBeSteeredDoesNotRun(t *testing.T) {
	b := newBench(t, e2etest.Script{}, planned("a", specs.Parallel), conditioned("b", specs.Parallel, specs.Windows))
	b.steering.refuse = errors.New("admission is down")
	done := b.must()
	b.want(done, "a:passed b:error")
	contains(t, "the reason", message(done, "b"), "steer windows")
	contains(t, "the reason", message(done, "b"), "admission is down")
	if n := b.count(name("b")); n != 0 {
		t.Errorf("the test ran %d times", n)
	}
}

func TestPodsAreRecordedForEveryAttemptBeforeItsEnd(t *testing.T) {
	b := newBench(t, e2etest.Script{Do: map[string][]string{name("a"): {e2etest.Fail, e2etest.Pass}}}, planned("a", specs.Parallel), planned("b", specs.Parallel))
	b.options.Evidence = watch{}
	b.options.Retries = 1
	b.options.Procs = 2
	done := b.must()
	b.want(done, "a:failed,passed b:passed")
	var pods, order []string
	for _, e := range b.observer.events {
		switch e.Type {
		case result.PodObserved:
			pods = append(pods, strings.Join([]string{e.Pod.Test, string(rune('0' + e.Pod.Attempt)), e.Pod.Namespace}, " "))
			order = append(order, "pod "+e.Pod.Test)
		case result.TestFinished:
			order = append(order, "end "+e.Test.ID)
		}
	}
	slices.Sort(pods)
	if want := []string{"a 1 ns-sig-x-a", "a 2 ns-sig-x-a", "b 1 ns-sig-x-b"}; !slices.Equal(pods, want) {
		t.Errorf("pods %q, want %q", pods, want)
	}
	for i, what := range order {
		if id, ok := strings.CutPrefix(what, "end "); ok && (i == 0 || !slices.Contains(order[:i], "pod "+id)) {
			t.Errorf("the end of %s comes before its pods: %q", id, order)
		}
	}
	if len(done.Pods) != 3 {
		t.Errorf("the folder has %d pods, want 3", len(done.Pods))
	}
}

// Why a test failed may lie beside it, so what happened meanwhile is recorded: of
// what did not pass, and of nothing else.
func TestWhatHappenedMeanwhileIsNotedWithAFailure(t *testing.T) {
	hung := planned("d", specs.Parallel)
	hung.Timeout = 300 * time.Millisecond
	b := newBench(t, e2etest.Script{Do: map[string][]string{name("a"): {e2etest.Fail, e2etest.Pass}, name("c"): {e2etest.Kill, e2etest.Pass}, name("d"): {e2etest.Deaf, e2etest.Pass}, name("e"): {e2etest.Skip}}},
		planned("a", specs.Parallel), planned("b", specs.Parallel), planned("c", specs.Parallel), hung, planned("e", specs.Parallel))
	b.options.Evidence = watch{changes: "node linux-1 was cordoned"}
	b.options.Retries, b.options.Grace = 1, 100*time.Millisecond
	began := time.Now()
	b.cluster.outage = func(since time.Time) string {
		if since.Before(began) {
			t.Errorf("asked of the time since %v, and the run began at %v", since, began)
		}
		return "the API server was away"
	}
	done := b.must()
	b.want(done, "a:failed,passed b:passed,passed c:error d:failed,passed e:skipped")
	for id, attempts := range done.Attempts {
		for _, a := range attempts {
			want := ""
			if a.State == result.TestFailed || a.State == result.TestError {
				want = "the API server was away; node linux-1 was cordoned"
			}
			if a.Meanwhile != want {
				t.Errorf("attempt %d of %s, %s: meanwhile %q, want %q", a.Attempt, id, a.State, a.Meanwhile, want)
			}
		}
	}
	contains(t, "why a failed", done.Attempts["a"][0].Why(), "Meanwhile the API server was away; node linux-1 was cordoned.\n[FAILED] expected a Windows node")
}

// What a test that hung waited for shows in its pods.
func TestPodsOfAKilledTestAreRecorded(t *testing.T) {
	for _, how := range []string{e2etest.Deaf, e2etest.Kill} {
		hung := planned("a", specs.Parallel)
		if how == e2etest.Deaf {
			hung.Timeout = 200 * time.Millisecond
		}
		b := newBench(t, e2etest.Script{Do: map[string][]string{name("a"): {how}}}, hung, planned("b", specs.Parallel))
		b.options.Evidence = watch{}
		b.options.Grace = 200 * time.Millisecond
		done := b.must()
		if len(done.Pods) == 0 || done.Pods[0].Test != "a" || done.Pods[0].SchedulingFailure == "" {
			t.Errorf("%s: pods %+v, attempts %+v", how, done.Pods, done.Attempts["a"])
		}
	}
}

// slow is a watch that makes the engine wait, and remembers what it was asked.
type slow struct {
	watch
	wait func()

	mu    sync.Mutex
	since []time.Time
}

func (s *slow) Collect(ctx context.Context, suiteRunID string, namespaces []string, since time.Time) ([]result.Pod, string) {
	s.mu.Lock()
	s.since = append(s.since, since)
	s.mu.Unlock()
	s.wait()
	return s.watch.Collect(ctx, suiteRunID, namespaces, since)
}

// While the engine waits for pods, e2e.test goes on with the next tests, and
// the engine hears too late that they began. What the watch lost meanwhile is
// theirs, too.
func TestATestIsNeverTakenToBeginLaterThanItDid(t *testing.T) {
	b := newBench(t, e2etest.Script{})
	var all time.Time // when all tests had begun
	b.options.Evidence = &slow{wait: func() {
		if all.IsZero() {
			for len(b.fake.Starts(t)) < 1+len(b.plan.Tests) {
				time.Sleep(time.Millisecond)
			}
			all = time.Now()
		}
	}}
	b.want(b.must(), "a:passed b:passed c:passed d:passed")
	for i, since := range b.options.Evidence.(*slow).since {
		if since.After(all) {
			t.Errorf("test %d is taken to begin %v after it did", i+1, since.Sub(all))
		}
	}
}

func TestWithoutAWatchNothingIsObserved(t *testing.T) {
	b := newBench(t, e2etest.Script{}, planned("a", specs.Parallel))
	done := b.must()
	contains(t, "what the attempt says", done.Attempts["a"][0].Unobserved, "did not observe pods")
}

func TestWhatWasNotFullyObservedIsSaid(t *testing.T) {
	b := newBench(t, e2etest.Script{}, planned("a", specs.Parallel))
	b.options.Evidence = watch{incomplete: "the watch was broken"}
	done := b.must()
	b.want(done, "a:passed")
	if got := done.Attempts["a"][0].Unobserved; got != "the watch was broken" {
		t.Errorf("the attempt says %q", got)
	}
}

// lock remembers who it was asked for, and can be lost.
type lock struct {
	refuse error
	lost   chan struct{}

	mu    sync.Mutex
	held  []string
	taken error // what is found out when somebody asks
	known error // what was found out so
}

func (l *lock) Hold(_ context.Context, phase specs.Phase, c result.RunConditions) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = append(l.held, string(phase)+", "+c.String())
	return l.refuse
}

func (l *lock) Lost() <-chan struct{} { return l.lost }

func (l *lock) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.lost:
		return errors.New("the lock was lost to another run")
	default:
		return l.known
	}
}

func (l *lock) Confirm(context.Context) error {
	l.mu.Lock()
	l.known = l.taken
	l.mu.Unlock()
	return l.Err()
}

func (l *lock) Release(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = append(l.held, "released")
	return nil
}

func TestTheLockIsHeldForEachGroupAndReleased(t *testing.T) {
	b := newBench(t, e2etest.Script{}, planned("a", specs.Parallel), conditioned("b", specs.Parallel, specs.Windows), planned("c", specs.Serial))
	l := &lock{lost: make(chan struct{})}
	b.options.Lock = l
	b.want(b.must(), "a:passed b:passed c:passed")
	if want := []string{"parallel, as is", "parallel, steer windows", "serial, as is", "released"}; !slices.Equal(l.held, want) {
		t.Errorf("held %q, want %q", l.held, want)
	}
}

func TestNothingRunsWhileAnotherRunHasTheCluster(t *testing.T) {
	b := newBench(t, e2etest.Script{}, planned("a", specs.Parallel), planned("b", specs.Serial))
	l := &lock{lost: make(chan struct{}), refuse: errors.New("run nightly-16 has the cluster")}
	b.options.Lock = l
	if _, err := b.run(t.Context()); err == nil || !strings.Contains(err.Error(), "nightly-16") {
		t.Errorf("the error is %v", err)
	}
	if starts := b.fake.Starts(t); len(starts) > 0 {
		t.Errorf("started %q", starts)
	}
	if len(b.steering.applied) > 0 {
		t.Errorf("the other run's steering was touched: %q", b.steering.applied)
	}
}

func TestWhatEndsAfterTheLockWasLostProvesNothing(t *testing.T) {
	b := newBench(t, e2etest.Script{Do: map[string][]string{name("a"): {e2etest.Hang}}}, planned("a", specs.Parallel), planned("b", specs.Serial))
	l := &lock{lost: make(chan struct{})}
	b.options.Lock = l
	b.observer.on = func(e result.Event) {
		if e.Type == result.TestStarted {
			close(l.lost)
		}
	}
	done, err := b.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.want(done, "a:error b:error")
	contains(t, "the reason of b", message(done, "b"), "lost to another run")
}

// at calls do when an event tells of a test.
func at(what result.EventType, id string, do func()) func(result.Event) {
	return func(e result.Event) {
		if e.Type == what && e.Test.ID == id {
			do()
		}
	}
}

// The runner stood still while a test ran, and nothing has told the engine yet
// that another run took over: it asks before it records.
func TestWhatEndedWhileAnotherHadTheClusterIsAnError(t *testing.T) {
	for _, how := range []string{e2etest.Pass, e2etest.Fail, e2etest.Skip} {
		b := newBench(t, e2etest.Script{Do: map[string][]string{name("b"): {how}}})
		l := &lock{lost: make(chan struct{})}
		b.options.Lock, b.options.Retries = l, 1
		b.observer.on = at(result.TestStarted, "b", func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.taken = errors.New("the cluster lock was lost: taken by run other")
		})
		done, err := b.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b.want(done, "a:passed b:error c:error d:error")
		contains(t, "the reason of b", message(done, "b"), "taken by run other: that it ")
		if n := b.count("suite"); n != 1 {
			t.Errorf("%s: %d processes were started: one after the lock was lost", how, n)
		}
		for _, c := range verdict.Judge(done).Cases {
			if want := map[string]verdict.Outcome{"case-a": verdict.Passed}[c.Case.ID]; c.Outcome != cmp.Or(want, verdict.Error) {
				t.Errorf("%s: %s is %s: %s", how, c.Case.ID, c.Outcome, c.Reason)
			}
		}
	}
}

// slowToGo is a way of steering whose removal takes all the time that it is given.
type slowToGo struct{ steering }

func (s *slowToGo) Remove(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// releasing is a lock that remembers whether there was time to release it.
type releasing struct {
	lock
	release error
}

func (l *releasing) Release(ctx context.Context) error {
	l.release = ctx.Err()
	return nil
}

func TestTheLockIsReleasedWhateverTimeSteeringTakes(t *testing.T) {
	b := newBench(t, e2etest.Script{Do: map[string][]string{name("a"): {e2etest.Hang}}}, planned("a", specs.Parallel))
	l := &releasing{lock: lock{lost: make(chan struct{})}}
	stop := make(chan struct{})
	b.options.Lock, b.options.Steering, b.options.Stop, b.options.StopWithin = l, &slowToGo{}, stop, time.Second
	b.observer.on = at(result.TestStarted, "a", func() { close(stop) })
	if _, err := b.run(t.Context()); !errors.Is(err, run.ErrInterrupted) {
		t.Error(err)
	}
	if l.release != nil {
		t.Errorf("no time was left to release the lock: %v", l.release)
	}
}
