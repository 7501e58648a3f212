// Package recorded makes the events of a run as the engine records them, for
// tests and benchmarks of what reads them: batches of tests of one phase and one
// set of conditions, and further batches for what is tried again.
package recorded

import (
	"fmt"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
)

// Try is one attempt of a test: how it ended, and the pods that were observed.
// Of both, what identifies them is filled in.
type Try struct {
	result.TestRun
	Pods []result.Pod
}

// Execution returns the events of one execution of the shard of a plan, which
// began at a time and came to its end. Decisions are recorded first; tries are
// those of each test of the shard, none for one that is not run.
func Execution(plan *result.Plan, shard int, began time.Time, decisions []result.Decision, tries func(*result.PlannedTest) []Try) []result.Event {
	r := &recorder{at: began}
	r.add(result.Event{Type: result.RunStarted})
	for _, d := range decisions {
		r.add(result.Event{Type: result.CaseDecided, Case: &d})
	}
	for first := 0; first < len(plan.Tests); {
		group := []*result.PlannedTest{}
		for i := first; i < len(plan.Tests); i++ {
			t := &plan.Tests[i]
			if t.Phase != plan.Tests[first].Phase || t.Conditions != plan.Tests[first].Conditions {
				break
			}
			group = append(group, t)
		}
		first += len(group)
		r.group(group, shard, tries)
	}
	r.add(result.Event{Type: result.RunFinished})
	return r.events
}

type recorder struct {
	at      time.Time
	events  []result.Event
	batches int
}

func (r *recorder) add(e result.Event) {
	e.Time = r.at
	r.events = append(r.events, e)
}

// group records the batches of one group of tests: the n-th tries of all.
func (r *recorder) group(tests []*result.PlannedTest, shard int, tries func(*result.PlannedTest) []Try) {
	for n, more := 0, true; more; n++ {
		more = false
		var run []*result.PlannedTest
		for _, t := range tests {
			if t.Shard == shard && n < len(tries(t)) {
				run = append(run, t)
			}
		}
		if len(run) > 0 {
			more = true
			r.batch(run, n, tries)
		}
	}
}

func (r *recorder) batch(tests []*result.PlannedTest, n int, tries func(*result.PlannedTest) []Try) {
	r.batches++
	id := fmt.Sprintf("%02d", r.batches)
	b := result.Batch{ID: id, Phase: tests[0].Phase, Conditions: tests[0].Conditions, Tests: len(tests), PID: 1000 + r.batches, Log: result.LogsDir + "/batch-" + id + ".log"}
	started := b
	r.add(result.Event{Type: result.BatchStarted, Batch: &started})
	b.SuiteRunID = fmt.Sprintf("00000000-0000-4000-8000-%012d", r.batches)
	suite := b
	r.add(result.Event{Type: result.BatchSuite, Batch: &suite})
	b.Exit, b.Reconciled = "exit code 0", true
	for _, t := range tests {
		try := tries(t)[n]
		try.ID, try.Name, try.Attempt, try.Batch = t.ID, t.Name, n+1, id
		begun := result.TestRun{ID: t.ID, Name: t.Name, Attempt: n + 1, Batch: id}
		r.add(result.Event{Type: result.TestStarted, Test: &begun})
		for _, pod := range try.Pods {
			pod.Test, pod.Attempt = t.ID, n+1
			r.add(result.Event{Type: result.PodObserved, Pod: &pod})
		}
		ended := try.TestRun
		ended.Pods = len(try.Pods)
		r.add(result.Event{Type: result.TestFinished, Test: &ended})
		if ended.State == result.TestFailed || ended.State == result.TestError {
			b.Exit = "exit code 1"
		}
	}
	r.add(result.Event{Type: result.BatchFinished, Batch: &b})
}
