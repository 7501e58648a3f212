package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Tests returns the tests of the manifest's shard that serve at least one case
// that is to be tested, in the order in which they run.
func Tests(plan *result.Plan, manifest *result.Manifest) []*result.PlannedTest {
	testable := map[string]bool{}
	for i := range plan.Cases {
		c := &plan.Cases[i]
		outcome, _ := verdict.Decide(c, manifest)
		testable[c.ID] = outcome == ""
	}
	var tests []*result.PlannedTest
	for i := range plan.Tests {
		t := &plan.Tests[i]
		if t.Shard == manifest.Shard && slices.ContainsFunc(t.Cases, func(id string) bool { return testable[id] }) {
			tests = append(tests, t)
		}
	}
	return tests
}

// groups returns the tests to run, cut where phase, conditions or suite change, and
// where those on trial begin.
func (e *engine) groups() [][]*result.PlannedTest {
	var groups [][]*result.PlannedTest
	var last *result.PlannedTest
	trial := e.Plan.OnTrial()
	for _, t := range Tests(e.Plan, e.Manifest) {
		if last == nil || last.Phase != t.Phase || last.Conditions != t.Conditions ||
			specs.SuiteOf(last.Name) != specs.SuiteOf(t.Name) || trial[last.ID] != trial[t.ID] {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], t)
		last = t
	}
	return groups
}

// exhaust runs the tests of a group until none of them is due.
func (e *engine) exhaust(ctx context.Context, group []*result.PlannedTest) {
	due := e.unanswered(group)
	void := map[string]int{}
	for round := 0; !e.isStopped(); round++ {
		if round > 0 {
			due = e.again(group, void)
			if len(due) == 0 {
				return
			}
			e.Observer.Note(fmt.Sprintf("running %s again", text.Count(len(due), "test")))
		}
		if len(due) > 0 { // a run that goes on may have only retries left
			e.runGroup(ctx, due)
		}
	}
}

// unanswered returns the tests of a group that have no answer that counts.
func (e *engine) unanswered(group []*result.PlannedTest) []*result.PlannedTest {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(group), func(t *result.PlannedTest) bool { return answered(e.attempts[t.ID], e.isSound) })
}

// maxVoid is how often a test runs again in one execution because its pass does
// not count: a process that always dies must not be started for ever.
const maxVoid = 2

// again returns the tests of a group that have run and must run once more: those
// that failed and may be retried, and those whose pass is void, which void counts.
func (e *engine) again(group []*result.PlannedTest, void map[string]int) []*result.PlannedTest {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(group), func(t *result.PlannedTest) bool {
		runs := e.attempts[t.ID]
		switch {
		case len(runs) == 0:
		case runs[len(runs)-1].State == result.TestPassed && !e.isSound(runs[len(runs)-1].Batch):
			void[t.ID]++
			return void[t.ID] > maxVoid
		case runs[len(runs)-1].State == result.TestFailed:
			return failures(runs) > e.Retries
		}
		return true
	})
}

// isSound reports whether the passes of a batch count; e.mu must be held.
func (e *engine) isSound(batch string) bool {
	return e.sound[batch] || e.Previous != nil && e.Previous.Sound(batch)
}

// answered reports whether the newest attempt of a test is an answer: anything
// but an error, or a pass of a batch whose passes do not count.
func answered(attempts []result.TestRun, sound func(batch string) bool) bool {
	if len(attempts) == 0 {
		return false
	}
	last := attempts[len(attempts)-1]
	switch last.State {
	case result.TestPassed:
		return sound(last.Batch)
	case result.TestError:
		return false
	}
	return true
}

// runGroup runs tests of one phase and one set of conditions.
func (e *engine) runGroup(ctx context.Context, tests []*result.PlannedTest) {
	if !e.hold(ctx, tests[0]) {
		return
	}
	steerCtx, done := e.within(ctx, shareSuite)
	defer done()
	if err := e.steer(steerCtx, tests[0].Conditions); err != nil {
		if steerCtx.Err() == nil {
			e.giveUp(tests, fmt.Sprintf("its conditions (%s) could not be put into force: %v", tests[0].Conditions, err))
		}
		return
	}
	lanes := 1
	if tests[0].Phase == specs.Parallel {
		lanes = min(e.Procs, len(tests))
	}
	var group errgroup.Group
	for _, lane := range deal(tests, lanes) {
		group.Go(func() error {
			e.runLane(ctx, lane)
			return nil
		})
	}
	_ = group.Wait() // lanes record what goes wrong; they return no errors
}

// deal gives each test, longest first, to the lane with the least to do.
func deal(tests []*result.PlannedTest, lanes int) [][]*result.PlannedTest {
	sorted := slices.Clone(tests)
	slices.SortStableFunc(sorted, func(a, b *result.PlannedTest) int { return cmp.Compare(b.Duration, a.Duration) })
	out := make([][]*result.PlannedTest, lanes)
	load := make([]time.Duration, lanes)
	for _, t := range sorted {
		least := 0
		for i := range load {
			if load[i] < load[least] {
				least = i
			}
		}
		load[least] += t.Duration
		out[least] = append(out[least], t)
	}
	return out
}

// runLane runs tests one after the other: in one process, and where that had
// to be killed or died, the rest in another.
func (e *engine) runLane(ctx context.Context, tests []*result.PlannedTest) {
	for len(tests) > 0 && !e.isStopped() {
		b := e.newBatch(tests)
		b.run(ctx)
		rest := slices.DeleteFunc(slices.Clone(tests), func(t *result.PlannedTest) bool { return b.finished[t.ID] })
		if len(rest) == len(tests) && !e.isStopped() {
			for _, t := range rest {
				b.finish(t, result.TestError, fmt.Sprintf("%s ran none of %s: %s", b.program(), text.Count(len(rest), "test"), b.ending()))
			}
			return
		}
		tests = rest
	}
}

// hold takes the cluster for the group that the test is of. It reports false
// when the run is to stop: because another has the cluster, or as asked.
func (e *engine) hold(ctx context.Context, t *result.PlannedTest) bool {
	if e.Lock == nil {
		return true
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-e.stopped:
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := e.Lock.Hold(ctx, t.Phase, t.Conditions); err != nil {
		switch {
		case e.Lock.Err() != nil:
			e.lost(err.Error())
		case !e.isStopped():
			e.fail(err)
		}
		return false
	}
	e.held = true
	if lost := e.Lock.Lost(); lost != e.watched {
		e.watched = lost
		go func() {
			select {
			case <-lost:
				e.lost(e.Lock.Err().Error())
			case <-e.over:
			}
		}()
	}
	return true
}

// unsure tells why the state in which a test has just ended does not count: another
// may have been at work on the cluster. It is "" where certainly nobody was.
func (e *engine) unsure(state result.TestState) string {
	if e.Lock == nil || state == result.TestError {
		return ""
	}
	ctx, cancel := e.untilKilled()
	defer cancel()
	err := e.Lock.Confirm(ctx)
	if err == nil {
		return ""
	}
	if lost := e.Lock.Err(); lost != nil {
		e.lost(lost.Error())
	}
	return err.Error()
}
