package run_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/e2e/e2etest"
	"github.com/windows-op-readiness/windows-op-readiness/internal/result"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
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
type watch struct{ incomplete string }

func (w watch) Collect(_ context.Context, namespaces []string, _ time.Time) ([]result.Pod, string) {
	var pods []result.Pod
	for _, ns := range namespaces {
		pods = append(pods, result.Pod{Namespace: ns, Name: "pod", Node: "w", OS: specs.Windows})
	}
	return pods, w.incomplete
}

// CollectRun has one pod of a process that was killed.
func (w watch) CollectRun(_ context.Context, suiteRunID string, _ time.Time) ([]result.Pod, string) {
	if suiteRunID == "" {
		return nil, "no run id"
	}
	return []result.Pod{{Namespace: "left", Name: "pod", SchedulingFailure: "0/4 nodes are available"}}, w.incomplete
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

func (s *slow) Collect(ctx context.Context, namespaces []string, since time.Time) ([]result.Pod, string) {
	s.mu.Lock()
	s.since = append(s.since, since)
	s.mu.Unlock()
	s.wait()
	return s.watch.Collect(ctx, namespaces, since)
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

	mu   sync.Mutex
	held []string
}

func (l *lock) Hold(_ context.Context, phase specs.Phase, c result.RunConditions) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = append(l.held, string(phase)+", "+c.String())
	return l.refuse
}

func (l *lock) Lost() <-chan struct{} { return l.lost }

func (l *lock) Err() error {
	select {
	case <-l.lost:
		return errors.New("the lock was lost to another run")
	default:
		return nil
	}
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
