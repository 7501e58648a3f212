package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/redact"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// batch is one e2e.test process.
type batch struct {
	*engine
	result.Batch
	tests  []*result.PlannedTest
	byName map[string]*result.PlannedTest

	// finished are the tests of the batch that have a result.
	finished map[string]bool

	proc *e2e.Process

	// Of the test that runs, as its output tells; only the goroutine that reads
	// the output touches it.
	namespaces []string
	sink       *sink

	bmu     sync.Mutex
	free    time.Time // no later than the end of the test before
	began   time.Time // no later than the beginning of current
	current *result.PlannedTest
	limit   time.Time // when current counts as hung, or the process without one
	timer   *time.Timer
	said    map[string]e2e.Finished // what the output said, by test name
	suites  []result.Suite
	ours    map[string]bool // tests, by name, whose end the engine wrote
	cause   string          // why the engine stopped the process; "" if it did not
	// destroyed are the namespaces that tests of the process have destroyed, and
	// when they began to.
	destroyed map[string]time.Time
	idle      bool   // the cause is that no test ran
	unsteered string // why its conditions could not be put into force
	steered   time.Time
	tail      tail
}

func (e *engine) newBatch(tests []*result.PlannedTest) *batch {
	e.mu.Lock()
	e.batches++
	id := fmt.Sprintf("%02d", e.batches)
	e.mu.Unlock()
	b := &batch{
		engine: e,
		Batch: result.Batch{
			ID:         id,
			Phase:      tests[0].Phase,
			Conditions: tests[0].Conditions,
			Tests:      len(tests),
			Log:        result.LogsDir + "/batch-" + id + ".log",
		},
		tests:    tests,
		byName:   make(map[string]*result.PlannedTest, len(tests)),
		finished: map[string]bool{},
		said:     map[string]e2e.Finished{},
		ours:     map[string]bool{},

		destroyed: map[string]time.Time{},

		timer: time.NewTimer(time.Hour),
	}
	b.timer.Stop()
	for _, t := range tests {
		b.byName[t.Name] = t
	}
	return b
}

// run runs the process to its end, whatever that is, and records what it did.
func (b *batch) run(ctx context.Context) {
	names := make([]string, len(b.tests))
	limit := time.Hour
	for i, t := range b.tests {
		names[i] = t.Name
		limit += t.Timeout
	}
	log, err := b.Folder.CreateLog(b.Log)
	if err != nil {
		b.fail(fmt.Errorf("writing the log of batch %s: %w", b.ID, err))
		return
	}
	defer log.Close()
	report := filepath.Join(b.TempDir, "report-"+b.ID+".json")
	defer os.Remove(report)

	output := e2e.NewOutput(names, b)
	clean := redact.NewWriter(log)
	b.sink = &sink{output: output, log: clean, tail: &b.tail, ready: make(chan struct{})}
	b.free = time.Now()
	binary, flags := b.Binary, b.Flags
	if specs.SuiteOf(names[0]) == specs.OpReadiness {
		binary, flags.Extra = b.OwnBinary, b.OwnArgs
	}
	proc, err := binary.Start(flags.BatchArgs(names, b.seed(), report, limit), b.Env, b.sink)
	if err != nil {
		b.Exit = err.Error()
		b.record(result.Event{Type: result.BatchStarted, Batch: b.event()})
		b.record(result.Event{Type: result.BatchFinished, Batch: b.event()})
		return
	}
	b.proc = proc
	b.bmu.Lock()
	b.PID, b.PIDStart = proc.PID, proc.Start
	b.runs(nil)
	b.bmu.Unlock()
	b.record(result.Event{Type: result.BatchStarted, Batch: b.event()})
	close(b.sink.ready)
	b.watch(ctx, proc)
	// The output has ended, so nothing but this goroutine touches b from here.
	unfinished := output.Close()
	how, ended := proc.Exit()
	b.Exit = how
	if err := clean.Close(); err != nil && b.sink.err == nil {
		b.sink.err = err
	}
	if b.sink.err != nil {
		b.fail(fmt.Errorf("writing the log of batch %s: %w", b.ID, b.sink.err))
	}
	b.settle(report, unfinished, ended, output.Contradictions())
	if b.cause != "" || !ended {
		b.cleanUp(ctx)
	}
	if b.byProcess != nil && b.SuiteRunID != "" {
		b.inTime(shareUnsteer, func(ctx context.Context) error { return b.byProcess.Disown(ctx, b.SuiteRunID) })
	}
	b.record(result.Event{Type: result.BatchFinished, Batch: b.event()})
}

// event returns the batch as it is now.
func (b *batch) event() *result.Batch {
	b.bmu.Lock()
	defer b.bmu.Unlock()
	now := b.Batch
	return &now
}

// watch waits for the process to end, and ends it: when it is asked to stop,
// when a test hangs, when the API server is gone.
func (b *batch) watch(ctx context.Context, proc *e2e.Process) {
	watchCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	gone := make(chan error, 1)
	go b.watchServer(watchCtx, gone)
	stopped := b.stopped
	kill := ctx.Done()
	spent := b.spent[shareSuite]
	var grace <-chan time.Time
	interrupt := func(cause string) {
		b.bmu.Lock()
		if b.cause == "" {
			b.cause = cause
		}
		b.bmu.Unlock()
		if grace == nil {
			// An error means that it is ending already.
			_ = proc.Interrupt()
			grace = time.After(b.Grace)
		}
	}
	for {
		select {
		case <-proc.Done():
			return
		case <-b.timer.C:
			if cause := b.hung(); cause != "" {
				interrupt(cause)
			}
		case err := <-gone:
			b.lost(fmt.Sprintf("the API server stopped answering: %v", err))
			interrupt("API server gone")
		case <-stopped:
			stopped = nil
			interrupt(b.whyStopped())
		case <-grace:
			_ = proc.Kill()
		case <-spent:
			spent = nil
			_ = proc.Kill()
		case <-kill:
			kill = nil
			b.bmu.Lock()
			b.cause = "as asked, at once"
			b.bmu.Unlock()
			_ = proc.Kill()
		}
	}
}

// whyStopped tells why no further test is to start.
func (b *batch) whyStopped() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.gone != "":
		return b.gone
	case b.late:
		return "the run's time was up"
	}
	return "as asked"
}

// watchServer tells when the API server has not answered for a while.
func (b *batch) watchServer(ctx context.Context, gone chan<- error) {
	const enough = 6
	misses := 0
	ticker := time.NewTicker(b.HealthInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		b.record() // also while nothing happens, a folder that was removed ends the run
		err := b.healthy(ctx)
		if err == nil || ctx.Err() != nil {
			misses = 0
			continue
		}
		if misses++; misses == enough {
			gone <- err
			return
		}
	}
}

// hung tells why the process must be stopped when its time has run out; "" when
// it has not. The test that runs, if any, is recorded as one that exceeded its
// time limit.
func (b *batch) hung() string {
	b.bmu.Lock()
	// The timer may have run out for a test that has just made room for
	// another.
	if time.Now().Before(b.limit) {
		b.bmu.Unlock()
		return ""
	}
	t := b.current
	b.current = nil
	b.idle = t == nil && b.cause == ""
	if t != nil {
		b.ours[t.Name] = true
	}
	b.bmu.Unlock()
	if t == nil {
		return fmt.Sprintf("it hung, without a test running, for %v", b.IdleLimit)
	}
	b.finishKilled(t, result.TestRun{
		State: result.TestFailed, Seconds: t.Timeout.Seconds(),
		Message: fmt.Sprintf("[TIMEDOUT] it did not end within its time limit of %v, and its batch was killed", t.Timeout),
	})
	return "a test hung"
}

// runs notes which test runs now, nil for none, and when it counts as hung.
func (b *batch) runs(t *result.PlannedTest) {
	limit := b.IdleLimit
	if t != nil {
		limit = t.Timeout
	}
	b.current = t
	b.limit = time.Now().Add(limit)
	b.timer.Reset(limit)
}

// finish records, once, the end of a test that took no time.
func (b *batch) finish(t *result.PlannedTest, state result.TestState, message string) {
	b.finishObserved(t, result.TestRun{State: state, Message: message}, nil)
}

// finishObserved is finish, with what was observed of the test's pods. Of run,
// what identifies it is filled in here.
func (b *batch) finishObserved(t *result.PlannedTest, run result.TestRun, pods []result.Pod) {
	b.bmu.Lock()
	done := b.finished[t.ID]
	b.finished[t.ID] = true
	b.bmu.Unlock()
	if done {
		return
	}
	run.ID, run.Name, run.Attempt, run.Batch = t.ID, t.Name, b.attempt(t), b.ID
	switch why := b.unsure(run.State); {
	case why == "" && run.State == result.TestError:
		// An interrupted test says only that it was.
		if gone := b.whyGone(); gone != "" && !strings.Contains(run.Message, gone) {
			run.Message = strings.TrimSpace(gone + "\nThe test said: " + run.Message)
		}
	case why != "":
		run.State, run.Message = result.TestError, fmt.Sprintf("%s: that it %s does not count\nThe test said: %s", why, run.State, run.Message)
	}
	run.Message = redact.String(run.Message)
	b.finishTest(run, pods...)
}

// The methods of [e2e.Listener].

func (b *batch) SuiteRun(id string) {
	b.bmu.Lock()
	known := b.SuiteRunID != ""
	if !known {
		b.SuiteRunID = id
	}
	b.bmu.Unlock()
	if known {
		return
	}
	var held error
	if b.byProcess != nil {
		held = b.proc.Pause() // before all else
	}
	if b.Evidence != nil {
		b.Evidence.Own(id)
	}
	b.record(result.Event{Type: result.BatchSuite, Batch: b.event()})
	if b.byProcess != nil {
		b.steer(id, held)
	}
}

// steer puts the batch's conditions into force while the process is held, if it is, and
// lets it go on. Where that fails, the process is killed before it has run a test.
func (b *batch) steer(id string, err error) {
	if err == nil {
		ctx, cancel := b.untilKilled()
		defer cancel()
		err = b.byProcess.Own(ctx, b.Conditions, id)
	}
	if err == nil {
		b.steered = time.Now()
		err = b.proc.Resume()
	}
	switch {
	case err == nil:
	case errors.Is(err, os.ErrProcessDone) && b.Conditions == (result.RunConditions{}):
	case errors.Is(err, os.ErrProcessDone):
		b.giveUpProcess("the process ended before they were")
	default:
		b.giveUpProcess(err.Error())
	}
}

// giveUpProcess ends a process whose pods are not steered. Nothing that it says counts.
func (b *batch) giveUpProcess(why string) {
	b.bmu.Lock()
	b.unsteered = unforced(b.Conditions, errors.New(why))
	if b.cause == "" {
		b.cause = b.unsteered
	}
	b.bmu.Unlock()
	_ = b.proc.Kill()
}

func (b *batch) Started(name string) {
	t := b.byName[name]
	if b.byProcess != nil && b.SuiteRunID == "" && b.unsteered == "" && b.Conditions != (result.RunConditions{}) {
		b.giveUpProcess("the process did not say the id by which its pods are steered")
	}
	b.bmu.Lock()
	done := b.finished[t.ID]
	b.bmu.Unlock()
	if done || b.unsteered != "" {
		return // nothing runs twice in one process: a test printed this
	}
	b.namespaces = nil
	b.record(result.Event{Type: result.TestStarted, Test: &result.TestRun{ID: t.ID, Name: t.Name, Attempt: b.attempt(t), Batch: b.ID}})
	b.bmu.Lock()
	b.began = b.free
	b.runs(t)
	b.bmu.Unlock()
}

func (b *batch) Finished(f e2e.Finished) {
	if b.unsteered != "" {
		return
	}
	t := b.byName[f.Name]
	state, message := b.fair(f)
	pods, unobserved := b.collect()
	run := result.TestRun{State: state, Seconds: f.Seconds, Message: message, Unobserved: unobserved}
	b.noteMeanwhile(&run)
	b.bmu.Lock()
	b.free = b.sink.read.Add(-b.sink.busy)
	b.runs(nil)
	b.said[f.Name] = f
	b.bmu.Unlock()
	b.finishObserved(t, run, pods)
}

// fair tells how a test ended. One that fails because the cluster is gone had
// no fair run.
func (b *batch) fair(f e2e.Finished) (result.TestState, string) {
	if f.State != result.TestFailed {
		return f.State, f.Message
	}
	gone := b.whyGone()
	if gone == "" {
		err := b.probe()
		if err == nil {
			return f.State, f.Message
		}
		b.lost(fmt.Sprintf("the API server stopped answering: %v", err))
		gone = fmt.Sprintf("the API server does not answer: %v", err)
	}
	return result.TestError, fmt.Sprintf("%s\nThe test said: %s", gone, f.Message)
}

func (b *batch) Destroyed(namespace string, at time.Time) {
	b.namespaces = append(b.namespaces, namespace)
	b.bmu.Lock()
	defer b.bmu.Unlock()
	b.destroyed[namespace] = at
}

// unwatched is why nothing is known of pods where nobody looks.
const unwatched = "this run did not observe pods"

// unheard is why nothing is known of the pods of a test whose output did not
// name its namespaces.
const unheard = "its end is known from ginkgo's report alone, which names no namespaces"

// corrected is why nothing is known of the pods of an attempt that only corrects
// the one before.
const corrected = "its pods stand with the attempt that it corrects"

// collect takes what was observed of the pods of the test that has just ended.
func (b *batch) collect() (pods []result.Pod, unobserved string) {
	if b.Evidence == nil {
		return nil, unwatched
	}
	if gone := b.whyGone(); gone != "" {
		return nil, gone
	}
	ctx, cancel := b.untilKilled()
	defer cancel()
	return b.Evidence.Collect(ctx, b.event().SuiteRunID, b.namespaces, b.since())
}

// since returns a time no later than the beginning of the test that ran last.
func (b *batch) since() time.Time {
	b.bmu.Lock()
	defer b.bmu.Unlock()
	return b.began
}

// finishKilled records the end of a test that did not come to it by itself, and
// so named no namespaces: its pods are those that its process has left.
func (b *batch) finishKilled(t *result.PlannedTest, run result.TestRun) {
	var pods []result.Pod
	switch gone := b.whyGone(); {
	case b.Evidence == nil:
		run.Unobserved = unwatched
	case gone != "":
		run.Unobserved = gone
	default:
		ctx, cancel := b.untilKilled()
		defer cancel()
		pods, run.Unobserved = b.Evidence.CollectRun(ctx, b.event().SuiteRunID, b.since())
	}
	b.noteMeanwhile(&run)
	b.finishObserved(t, run, pods)
}

// noteMeanwhile notes what happened to the cluster while a test ran that failed or
// had no fair run: who reads of it has to know.
func (b *batch) noteMeanwhile(run *result.TestRun) {
	if run.State != result.TestFailed && run.State != result.TestError {
		return
	}
	since := b.since()
	said := []string{b.Cluster.Outages(since)}
	if b.Evidence != nil && b.whyGone() == "" {
		b.bmu.Lock()
		destroyed := maps.Clone(b.destroyed)
		b.bmu.Unlock()
		ctx, cancel := b.untilKilled()
		defer cancel()
		said = append(said, b.Evidence.Changes(ctx, b.event().SuiteRunID, destroyed, since))
	}
	said = slices.DeleteFunc(said, func(text string) bool { return text == "" })
	run.Meanwhile = redact.String(strings.Join(said, "; "))
}

func (b *batch) SuiteFailed(node, message string) {
	b.bmu.Lock()
	defer b.bmu.Unlock()
	b.suites = append(b.suites, result.Suite{Node: node, Message: message})
}

// settle reconciles what the output said with ginkgo's report and the exit code,
// accounts for the tests that have no result yet, and records what tests measured.
// ended says that the process came to its end by itself, and doubts is where the
// output contradicts itself.
func (b *batch) settle(path, unfinished string, ended bool, doubts []e2e.Contradiction) {
	if b.unsteered != "" {
		b.Stopped = b.unsteered
		return
	}
	report, err := e2e.ReadReport(path, slices.Collect(maps.Keys(b.byName)))
	if err != nil {
		report = nil
	}
	a := account{
		said: b.said, doubts: doubts, failures: b.suites, report: report, unreadable: err,
		program: b.program(), exit: b.Exit, clean: ended, ending: b.ending(), stopped: b.cause, idle: b.idle, ours: b.ours, steered: b.steered,
	}
	r := a.reconcile()
	b.Stopped, b.Reconciled = b.cause, report != nil && len(r.suites) == 0
	b.mu.Lock()
	b.sound[b.ID] = b.Reconciled
	b.mu.Unlock()
	for _, s := range r.suites {
		s.Batch, s.Message = b.ID, result.Cut(redact.String(s.Message), result.MaxMessage)
		b.record(result.Event{Type: result.SuiteFailed, Suite: &s})
	}
	for _, t := range b.tests {
		end, doubted := r.ends[t.Name]
		switch {
		case b.finished[t.ID] && doubted:
			b.correct(t, end)
		case b.finished[t.ID]:
		case doubted:
			state, message := b.fair(end)
			b.finishObserved(t, result.TestRun{State: state, Message: message, Unobserved: unheard}, nil)
		default:
			b.unanswered(t, &a, r.suites, t.Name == unfinished)
		}
	}
	if report != nil {
		b.measured(report.Measured)
	}
}

// measured records the figures of tests, by name, that ended in this process.
func (b *batch) measured(figures map[string][]result.Measurement) {
	for _, t := range b.tests {
		if len(figures[t.Name]) == 0 || !b.finished[t.ID] {
			continue
		}
		b.mu.Lock()
		attempt := len(b.attempts[t.ID])
		b.mu.Unlock()
		b.record(result.Event{Type: result.TestMeasured, Test: &result.TestRun{ID: t.ID, Name: t.Name, Attempt: attempt, Batch: b.ID, Measured: figures[t.Name]}})
	}
}

// correct records once more how a test ended, where what is on disk says better
// of it than all that is known now.
func (b *batch) correct(t *result.PlannedTest, end e2e.Finished) {
	b.mu.Lock()
	recorded := b.attempts[t.ID][len(b.attempts[t.ID])-1].State
	b.mu.Unlock()
	if e2e.Worse(recorded, end.State) == recorded {
		return
	}
	b.finishTest(result.TestRun{
		ID: t.ID, Name: t.Name, Attempt: b.attempt(t), Batch: b.ID,
		State: end.State, Message: redact.String(end.Message), Unobserved: corrected,
	})
}

// unanswered accounts for a test of which neither the output nor ginkgo's report
// has an end. Where nothing is recorded of it, it runs in the next process.
func (b *batch) unanswered(t *result.PlannedTest, a *account, failures []result.Suite, running bool) {
	byItself := a.clean && a.stopped == ""
	spoke := len(a.said) > 0 || a.report != nil && len(a.report.SuiteFailures) > 0 || len(a.failures) > 0
	switch {
	case byItself && a.report != nil && a.report.Pending[t.Name]:
		b.finish(t, result.TestSkipped, "[PENDING] Kubernetes marks it as not to be run")
	case running && a.stopped != "":
		b.finishKilled(t, result.TestRun{State: result.TestError, Message: "it was running when its batch was stopped: " + a.stopped})
	case running:
		b.finishKilled(t, result.TestRun{State: result.TestError, Message: "it was running when " + a.ending})
	case byItself && spoke && len(failures) > 0 && failures[0].Node != reconciliation:
		b.finish(t, result.TestError, fmt.Sprintf("it did not run: %s failed: %s", failures[0].Node, failures[0].Message))
	case byItself && spoke:
		b.finish(t, result.TestError, fmt.Sprintf("neither %s's output nor its report has a result of it, though %s", a.program, a.ending))
	}
}

// program is the name of the test binary: whose failure it is.
func (b *batch) program() string { return specs.SuiteOf(b.tests[0].Name).Program() }

// ending tells how the process ended and what it said last.
func (b *batch) ending() string {
	if b.cause != "" {
		return b.program() + " was stopped: " + b.cause
	}
	if last := b.tail.String(); last != "" {
		return fmt.Sprintf("%s ended (%s), last saying: %s", b.program(), b.Exit, redact.String(last))
	}
	return fmt.Sprintf("%s ended (%s) without a word", b.program(), b.Exit)
}

// cleanUp removes the namespaces of a process that could not do so itself.
func (b *batch) cleanUp(ctx context.Context) {
	if b.SuiteRunID == "" || b.whyGone() != "" && b.healthy(ctx) != nil {
		return
	}
	if ctx.Err() != nil {
		b.Observer.Note(fmt.Sprintf("stopped at once: what tests of batch %s made stays in the cluster; remove it by going on with --resume, or with: kubectl delete namespace -l e2e-run=%s", b.ID, b.SuiteRunID))
		return
	}
	if err := b.removeNamespaces(ctx, []string{b.SuiteRunID}); err != nil {
		b.Observer.Note(err.Error())
	}
}

// sink takes the output of e2e.test apart: to the parser, to the log, and its
// end to the tail. A log that cannot be written does not stop the tests from
// being read.
type sink struct {
	output *e2e.Output
	log    *redact.Writer
	tail   *tail
	err    error
	// ready is closed when the start of the process is recorded: nothing that it says
	// may be recorded before.
	ready chan struct{}

	// read is when the output was read that is being taken, and busy how long
	// it took to take what came before. By so much e2e.test may be ahead: it
	// goes on with the next test while the pods of the last one are awaited.
	read time.Time
	busy time.Duration
}

func (s *sink) Write(p []byte) (int, error) {
	<-s.ready
	s.read = time.Now()
	defer func() { s.busy += time.Since(s.read) }()
	if s.err == nil {
		_, s.err = s.log.Write(p)
	}
	s.tail.Write(p)
	return s.output.Write(p)
}

// tail keeps the end of what is written to it.
type tail struct{ data []byte }

const tailSize = 2 << 10

func (t *tail) Write(p []byte) {
	t.data = append(t.data, p...)
	if len(t.data) > 2*tailSize {
		t.data = slices.Clone(t.data[len(t.data)-tailSize:])
	}
}

// String returns the last lines.
func (t *tail) String() string {
	const lines = 5
	text := strings.ToValidUTF8(string(t.data[max(0, len(t.data)-tailSize):]), "\uFFFD")
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
