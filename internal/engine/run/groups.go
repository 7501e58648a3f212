package run

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/plan"
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

// stage is tests that run under one hold of the cluster.
type stage struct {
	tests []*result.PlannedTest
	phase specs.Phase
	// alone says that only those run, once more, that failed where others were at work.
	alone bool
}

// stages returns the tests to run, cut where those on trial begin, where the phase
// changes, and where conditions or suites do that hold for the whole cluster. Those that
// failed beside others have another chance when nobody needs to be beside them any more.
func (e *engine) stages() []stage {
	var stages, again []stage
	var last *result.PlannedTest
	trial := e.Plan.OnTrial()
	for _, t := range Tests(e.Plan, e.Manifest) {
		begins := last == nil || last.Phase != t.Phase || trial[last.ID] != trial[t.ID]
		if begins {
			stages, again = append(stages, again...), nil
		}
		together := e.byProcess != nil && t.Phase == specs.Parallel
		if begins || !together && (last.Conditions != t.Conditions || specs.SuiteOf(last.Name) != specs.SuiteOf(t.Name)) {
			stages = append(stages, stage{phase: t.Phase})
		}
		s := &stages[len(stages)-1]
		s.tests = append(s.tests, t)
		last = t
		if t.Phase == specs.Parallel {
			if len(s.tests) == 1 {
				again = append(again, stage{phase: specs.Serial, alone: true})
			}
			again[len(again)-1].tests = s.tests
		}
	}
	return append(stages, again...)
}

// exhaust runs the tests of a stage until none of them is due.
func (e *engine) exhaust(ctx context.Context, s stage) {
	due := e.unanswered(s.tests)
	for round := 0; !e.isStopped(); round++ {
		if round > 0 || s.alone {
			due = e.again(s)
			if len(due) == 0 {
				return
			}
			how := ""
			if s.alone {
				how = ", with none beside it"
			}
			e.Observer.Note(fmt.Sprintf("running %s again%s", text.Count(len(due), "test"), how))
		}
		if len(due) > 0 { // a run that goes on may have only retries left
			e.runStage(ctx, s.phase, due)
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

// again returns the tests of a stage that have run and must run once more: those
// that failed and may be retried, and those whose pass is void. What failed beside
// others is retried in a stage of its own.
func (e *engine) again(s stage) []*result.PlannedTest {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.tests), func(t *result.PlannedTest) bool {
		runs := e.attempts[t.ID]
		switch {
		case len(runs) == 0:
		case runs[len(runs)-1].State == result.TestPassed && !e.isSound(runs[len(runs)-1].Batch):
			e.void[t.ID]++
			return e.void[t.ID] > maxVoid
		case runs[len(runs)-1].State == result.TestFailed:
			return failures(runs) > e.Retries || s.phase == specs.Parallel
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

// runStage runs tests as those of a phase run.
func (e *engine) runStage(ctx context.Context, phase specs.Phase, tests []*result.PlannedTest) {
	if !e.hold(ctx, phase, Everywhere(e.Steering, tests[0].Conditions)) {
		return
	}
	tests = e.steered(ctx, tests)
	lanes := 1
	if phase == specs.Parallel {
		lanes = min(e.Procs, len(tests))
	}
	beside := e.Plan.Shared && (phase == specs.Parallel || e.Lock == nil) || lanes > 1
	var group errgroup.Group
	for _, lane := range plan.Deal(tests, lanes) {
		group.Go(func() error {
			e.runLane(ctx, lane, beside)
			return nil
		})
	}
	_ = group.Wait() // lanes record what goes wrong; they return no errors
}

// steered puts the conditions of tests into force, and returns the tests for which that
// worked; the others are given up.
func (e *engine) steered(ctx context.Context, tests []*result.PlannedTest) []*result.PlannedTest {
	ctx, done := e.within(ctx, shareSuite)
	defer done()
	var ready []*result.PlannedTest
	for len(tests) > 0 && ctx.Err() == nil {
		group := alike(tests, func(t *result.PlannedTest) any { return t.Conditions })
		err := e.steer(ctx, group[0].Conditions)
		switch {
		case err == nil:
			ready = append(ready, group...)
		case ctx.Err() == nil:
			for _, t := range group {
				e.finishTest(result.TestRun{ID: t.ID, Name: t.Name, Attempt: e.attempt(t), State: result.TestError, Message: unforced(t.Conditions, err)})
			}
		}
		tests = tests[len(group):]
	}
	return ready
}

// unforced says why tests did not run.
func unforced(conditions result.RunConditions, err error) string {
	return fmt.Sprintf("its conditions (%s) could not be put into force: %v", conditions, err)
}

// alike returns the tests at the beginning that have the same in common as the first.
func alike(tests []*result.PlannedTest, of func(*result.PlannedTest) any) []*result.PlannedTest {
	n := slices.IndexFunc(tests, func(t *result.PlannedTest) bool { return of(t) != of(tests[0]) })
	if n < 0 {
		n = len(tests)
	}
	return tests[:n:n]
}

// maxUnsteered is how often a process is started for tests whose conditions could not be
// put into force in time for the one before.
const maxUnsteered = 3

// runLane runs tests one after the other: in one process for those of the same suite and
// conditions, and where that had to be killed or died, the rest in another.
func (e *engine) runLane(ctx context.Context, tests []*result.PlannedTest, beside bool) {
	unsteered := 0
	for len(tests) > 0 && !e.isStopped() {
		group := alike(tests, func(t *result.PlannedTest) any {
			return [2]any{t.Conditions, specs.SuiteOf(t.Name)}
		})
		b := e.newBatch(group)
		b.Beside = beside
		b.run(ctx)
		rest := slices.DeleteFunc(slices.Clone(group), func(t *result.PlannedTest) bool { return b.finished[t.ID] })
		if len(rest) == len(group) && !e.isStopped() {
			if unsteered++; b.unsteered != "" && unsteered < maxUnsteered {
				continue
			}
			for _, t := range rest {
				b.finish(t, result.TestError, fmt.Sprintf("%s ran none of %s: %s", b.program(), text.Count(len(rest), "test"), b.ending()))
			}
			rest = nil
		}
		unsteered = 0
		tests = append(rest, tests[len(group):]...)
	}
}

// hold takes the cluster for tests of a phase under conditions. It reports false
// when the run is to stop: because another has the cluster, or as asked.
func (e *engine) hold(ctx context.Context, phase specs.Phase, conditions result.RunConditions) bool {
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
	if err := e.Lock.Hold(ctx, phase, conditions); err != nil {
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
