package run_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/shirou/gopsutil/v4/process"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/run"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
)

// byProcess steers each process by itself, and remembers for what.
type byProcess struct {
	steering
	own   func(try int) error
	ready func(id string) string

	mu    sync.Mutex
	owned map[string]string // conditions, by the id of the process
	gone  []string
}

func (s *byProcess) Own(_ context.Context, c result.RunConditions, id string) error {
	s.mu.Lock()
	if s.owned == nil {
		s.owned = map[string]string{}
	}
	s.owned[id] = c.String()
	try := len(s.owned)
	s.mu.Unlock()
	if s.own != nil {
		if err := s.own(try); err != nil {
			return err
		}
	}
	return os.WriteFile(s.ready(id), nil, 0o600)
}

func (s *byProcess) Disown(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = append(s.gone, id)
	return nil
}

// steeredByProcess is a bench on which each process is steered by itself.
func steeredByProcess(t *testing.T, script e2etest.Script, tests ...result.PlannedTest) (*bench, *byProcess, *lock) {
	if len(script.Suite) == 0 {
		script.Suite = []string{e2etest.WaitBefore}
	}
	b := newBench(t, script, tests...)
	s, l := &byProcess{ready: b.fake.Ready}, &lock{lost: make(chan struct{})}
	b.options.Steering, b.options.Lock = s, l
	return b, s, l
}

// Where a process is steered by itself, the conditions of its tests say nothing about
// when they run: in the parallel phase all share one hold of the cluster.
func TestTestsOfDifferentConditionsRunBesideEachOther(t *testing.T) {
	b, s, l := steeredByProcess(t, e2etest.Script{Default: e2etest.Wait},
		planned("a", specs.Parallel), conditioned("b", specs.Parallel, specs.Linux), conditioned("c", specs.Parallel, specs.Windows), conditioned("d", specs.Serial, specs.Windows))
	b.options.Procs = 3
	var mu sync.Mutex
	at := map[string]bool{}
	b.observer.on = func(e result.Event) {
		if e.Type == result.TestStarted {
			mu.Lock()
			defer mu.Unlock()
			if at[e.Test.ID] = true; len(at) == 3 {
				if err := os.WriteFile(b.fake.Go(), nil, 0o600); err != nil { // none ends before
					t.Error(err)
				}
			}
		}
	}
	done := b.must()
	b.want(done, "a:passed b:passed c:passed d:passed")
	if want := []string{"parallel, as is", "serial, as is", "released"}; !slices.Equal(l.held, want) {
		t.Errorf("held %q, want %q", l.held, want)
	}
	for _, batch := range done.Batches {
		if got := s.owned[batch.SuiteRunID]; got != batch.Conditions.String() || batch.Beside != (batch.Phase == specs.Parallel) {
			t.Errorf("batch %+v was steered for %q", batch, got)
		}
		if !slices.Contains(s.gone, batch.SuiteRunID) {
			t.Errorf("batch %s kept its steering", batch.ID)
		}
	}
}

// Between its first line and its first pod, a process waits until it is steered.
func TestAProcessIsHeldUntilItIsSteered(t *testing.T) {
	b, s, _ := steeredByProcess(t, e2etest.Script{}, conditioned("a", specs.Parallel, specs.Windows))
	var pid int
	b.observer.on = func(e result.Event) {
		if e.Type == result.BatchStarted {
			pid = e.Batch.PID
		}
	}
	s.own = func(int) error {
		p, err := process.NewProcess(int32(pid))
		if err != nil {
			return err
		}
		for {
			states, err := p.Status()
			if err != nil {
				return err
			}
			if slices.Contains(states, process.Stop) {
				return nil
			}
		}
	}
	b.want(b.must(), "a:passed")
}

func TestWhatCannotBeSteeredInTimeIsTriedAgain(t *testing.T) {
	b, s, _ := steeredByProcess(t, e2etest.Script{}, conditioned("a", specs.Parallel, specs.Windows), conditioned("b", specs.Parallel, specs.Windows))
	s.own = func(try int) error {
		if try < 3 {
			return fmt.Errorf("pod %d was there before its policy", try)
		}
		return nil
	}
	b.want(b.must(), "a:passed b:passed")
	if n := b.count("suite"); n != 3 {
		t.Errorf("%d processes were started", n)
	}
}

func TestWhatIsNotSteeredRunsNoTest(t *testing.T) {
	b, s, _ := steeredByProcess(t, e2etest.Script{}, conditioned("a", specs.Parallel, specs.Windows), planned("b", specs.Serial))
	s.own = func(try int) error {
		if try > 3 {
			return nil
		}
		return errors.New("admission is down")
	}
	done := b.must()
	b.want(done, "a:error b:passed")
	contains(t, "the reason", message(done, "a"), "its conditions (steer windows) could not be put into force: admission is down")
	if n := b.count(name("a")); n != 0 {
		t.Errorf("the test ran %d times", n)
	}
	if len(s.gone) != 4 {
		t.Errorf("the steering of %d processes was taken away, want 4", len(s.gone))
	}
}

func TestAProcessThatDiesBeforeItIsSteered(t *testing.T) {
	b, s, _ := steeredByProcess(t, e2etest.Script{Suite: []string{e2etest.DieBefore}}, conditioned("a", specs.Parallel, specs.Windows))
	done := b.must()
	b.want(done, "a:error")
	contains(t, "the reason", message(done, "a"), "e2e.test ran none of 1 test: ")
	if len(s.gone) == 0 {
		t.Errorf("the steering of %d processes was taken away", len(s.gone))
	}
}

// What failed while others were at work runs again when none is: it is told apart whether
// that, or nothing, made the difference.
func TestWhatFailedBesideOthersRunsAgainAlone(t *testing.T) {
	b, _, l := steeredByProcess(t, e2etest.Script{Do: map[string][]string{
		name("a"): {e2etest.Fail, e2etest.Pass}, name("d"): {e2etest.Fail, e2etest.Pass}, name("b"): {e2etest.Fail, e2etest.Fail, e2etest.Pass},
	}}, planned("a", specs.Parallel), planned("b", specs.Parallel), planned("c", specs.Parallel), planned("d", specs.Serial))
	b.options.Procs, b.options.Retries = 2, 2
	done := b.must()
	b.want(done, "a:failed,passed b:failed,failed,passed c:passed d:failed,passed")
	if want := []string{"parallel, as is", "serial, as is", "serial, as is", "serial, as is", "serial, as is", "released"}; !slices.Equal(l.held, want) {
		t.Errorf("held %q, want %q", l.held, want)
	}
	for _, c := range verdict.Judge(done).Cases {
		byLoad := strings.Contains(c.Reason, "with no other test beside it, after it failed beside others: ")
		if want := c.Case.ID == "case-a"; c.Case.ID != "case-c" && (c.Outcome != verdict.Flaky || byLoad != want) {
			t.Errorf("%s is %s: %s", c.Case.ID, c.Outcome, c.Reason)
		}
	}
}

// A process that was gone before anybody read its first line has run its tests unsteered,
// and they run again.
func TestAProcessThatWasNotHeldCountsForNothing(t *testing.T) {
	b, s, _ := steeredByProcess(t, e2etest.Script{Suite: []string{"", e2etest.WaitBefore}}, conditioned("a", specs.Parallel, specs.Windows), conditioned("b", specs.Parallel, specs.Windows))
	late := true
	b.observer.on = func(e result.Event) {
		if e.Type == result.BatchStarted && late {
			late = false
			for alive := true; alive; {
				alive, _ = process.PidExists(int32(e.Batch.PID))
			}
		}
	}
	done := b.must()
	b.want(done, "a:passed b:passed")
	for _, id := range []string{"a", "b"} {
		if batch := done.Attempts[id][0].Batch; batch == "01" {
			t.Errorf("%s counts as it ran in batch %s", id, batch)
		}
		if n := b.count(name(id)); n != 2 {
			t.Errorf("%s ran %d times", id, n)
		}
	}
	if len(s.owned) != 1 {
		t.Errorf("%d processes were steered", len(s.owned))
	}
}

// By ginkgo's report, too, no test counts that began before its conditions were in force.
func TestATestThatBeganTooEarlyRunsAgain(t *testing.T) {
	b, _, _ := steeredByProcess(t, e2etest.Script{Do: map[string][]string{name("a"): {e2etest.Early, e2etest.Pass}}}, conditioned("a", specs.Parallel, specs.Windows))
	done := b.must()
	b.want(done, "a:passed,passed")
	if done.Sound("01") || !done.Sound("02") || len(done.Standing()) > 0 {
		t.Errorf("batch 01 counts: %t, batch 02: %t, standing failures %+v", done.Sound("01"), done.Sound("02"), done.Standing())
	}
	contains(t, "what is said of it", done.Suites[0].Message, "before the conditions of its process were in force")
}

// By the id that it says, a process is steered: without it nothing that wants conditions
// counts.
func TestAProcessThatSaysNoIDRunsNothingThatIsSteered(t *testing.T) {
	b, _, _ := steeredByProcess(t, e2etest.Script{Suite: []string{e2etest.NoID}}, planned("a", specs.Parallel), conditioned("b", specs.Parallel, specs.Windows))
	done := b.must()
	b.want(done, "a:passed b:error")
	contains(t, "the reason", message(done, "b"), "the process did not say the id by which its pods are steered")
}

// What cannot be steered any more when it is to run again is not tried for ever.
func TestARetryThatCannotBeSteeredEnds(t *testing.T) {
	b, s, _ := steeredByProcess(t, e2etest.Script{Default: e2etest.Fail}, conditioned("a", specs.Parallel, specs.Windows))
	b.options.Retries = 3
	b.observer.on = at(result.TestFinished, "a", func() { s.refuse = errors.New("the rule is gone") })
	done := b.must()
	b.want(done, "a:failed,error")
	for _, c := range verdict.Judge(done).Cases {
		if c.Outcome != verdict.Failed {
			t.Errorf("%s is %s: %s", c.Case.ID, c.Outcome, c.Reason)
		}
	}
}

var _ run.ProcessSteering = (*byProcess)(nil)
