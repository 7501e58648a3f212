package run_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/run"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
)

// What the deadline cuts off had no turn; it is neither failed nor interrupted.
func TestTheDeadlineStopsGracefully(t *testing.T) {
	b := newBench(t, e2etest.Script{Do: map[string][]string{name("b"): {e2etest.Hang, e2etest.Pass}}})
	b.options.Deadline = time.Now().Add(time.Second)
	done, err := b.run(t.Context())
	if err != nil || done.Interrupted || !done.Finished || !done.OutOfTime {
		t.Errorf("error %v, interrupted %t, finished %t, out of time %t", err, done.Interrupted, done.Finished, done.OutOfTime)
	}
	b.want(done, "a:passed b:error c: d:")
	contains(t, "how b ended", message(done, "b"), "[INTERRUPTED]")
	if done.Batches[0].Exit != "exit code 1" || len(b.cluster.removed) != 1 {
		t.Errorf("the process ended with %q, removed %v", done.Batches[0].Exit, b.cluster.removed)
	}
	if done.Ended(1) != result.EndedOutOfTime {
		t.Errorf("ended as %v", done.Ended(1))
	}
	j := verdict.Judge(done)
	if j.Verdict != verdict.Inconclusive || j.ExitCode() != verdict.ExitInconclusive {
		t.Errorf("verdict %s, exit code %d: %q", j.Verdict, j.ExitCode(), j.Reasons)
	}
	for _, c := range j.Cases {
		if c.Case.ID == "case-c" && (c.Outcome != verdict.NotTested || c.Reason != "the run's time was up before its turn") {
			t.Errorf("case-c is %s: %s", c.Outcome, c.Reason)
		}
	}

	// It can be gone on with.
	b.options.Deadline, b.options.Previous = time.Time{}, done
	b.want(b.must(), "a:passed b:error,passed c:passed d:passed")
}

func TestADeadlineThatIsNotReachedTellsNothing(t *testing.T) {
	b := newBench(t, e2etest.Script{})
	b.options.Deadline = time.Now().Add(time.Hour)
	if done := b.must(); done.OutOfTime {
		t.Error("it says that its time was up")
	}
}

// A test may run for hours: a folder that is removed meanwhile is noticed before it
// has ended.
func TestAFolderThatIsRemovedEndsTheTestThatRuns(t *testing.T) {
	b := newBench(t, e2etest.Script{Do: map[string][]string{name("b"): {e2etest.Hang}}})
	b.options.HealthInterval = 10 * time.Millisecond
	b.observer.on = func(e result.Event) {
		if e.Type == result.TestStarted && e.Test.ID == "b" {
			if err := os.RemoveAll(b.dir); err != nil {
				t.Error(err)
			}
		}
	}
	err := run.Run(t.Context(), b.options)
	if err == nil || !strings.Contains(err.Error(), "was removed while the run wrote it") {
		t.Errorf("got %v", err)
	}
}

// Whoever asked for the stop kills soon: what does not clean up is not waited
// for as long as otherwise.
func TestAStopIsOverInTime(t *testing.T) {
	b := newBench(t, e2etest.Script{Do: map[string][]string{name("b"): {e2etest.Deaf}}})
	b.options.Grace = time.Hour
	b.options.StopWithin = 200 * time.Millisecond
	stop := make(chan struct{})
	b.options.Stop = stop
	b.observer.on = func(e result.Event) {
		if e.Type == result.TestStarted && e.Test.ID == "b" {
			close(stop)
		}
	}
	done, err := b.run(t.Context())
	if !errors.Is(err, run.ErrInterrupted) || !done.Interrupted {
		t.Errorf("error %v, interrupted %t", err, done.Interrupted)
	}
	b.want(done, "a:passed b:error c: d:")
	contains(t, "the end", done.Batches[0].Exit, "killed")
}
