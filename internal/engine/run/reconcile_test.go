package run_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/run"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
)

// pair is a bench of two tests that run one after the other.
func pair(t *testing.T, script e2etest.Script) *bench {
	return newBench(t, script, planned("a", specs.Serial), planned("b", specs.Serial))
}

// void returns the tests whose newest attempt is a pass that does not count.
func void(done *result.Run) string {
	var ids []string
	for id, runs := range done.Attempts {
		if last := runs[len(runs)-1]; last.State == result.TestPassed && !done.Sound(last.Batch) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

// What output, report and exit code say of a test, and how it counts.
func TestOutputReportAndExitCodeAreReconciled(t *testing.T) {
	for how, c := range map[string]struct {
		want          string
		suite         string // a suite failure; "" for none at all
		contradiction bool
		message       string // of b
	}{
		e2etest.Pass:  {want: "a:passed b:passed"},
		e2etest.Fail:  {want: "a:passed b:failed"},
		e2etest.Panic: {want: "a:passed b:failed"},
		e2etest.Skip:  {want: "a:passed b:skipped"},
		// In neither: an error, never passed.
		e2etest.Silent:  {want: "a:passed b:error", message: "neither e2e.test's output nor its report"},
		e2etest.Pending: {want: "a:passed b:skipped", message: "[PENDING]"},
		// In the report only: a pass does not count.
		e2etest.Unsaid: {
			want:  "a:passed,passed b:error",
			suite: `"[sig-x] b": ginkgo's report says passed, and the output does not have its end`, message: "the output does not have its end",
		},
		e2etest.UnsaidFailure: {
			want:  "a:passed,passed b:failed",
			suite: `"[sig-x] b": ginkgo's report says failed, and the output does not have its end`, message: "[FAILED] expected a Windows node",
		},
		// They contradict each other: the worse counts, and it is not a pass.
		e2etest.Lie: {
			want: "a:passed,passed b:passed,failed", contradiction: true,
			suite: `"[sig-x] b": the output says passed, and ginkgo's report says failed`, message: "[FAILED] it did not pass",
		},
		e2etest.Unreported: {
			want: "a:passed,passed b:passed,error", contradiction: true,
			suite: `"[sig-x] b": the output says passed, and ginkgo's report does not know that it ran`, message: "does not know that it ran",
		},
		e2etest.FakePass: {
			want: "a:passed,passed b:passed,failed", contradiction: true,
			suite: `"[sig-x] b": the output has a second start of it`, message: "the output says passed, and ginkgo's report says failed",
		},
		e2etest.FakeFail: {
			want: "a:passed,passed b:failed", contradiction: true,
			suite: `"[sig-x] b": the output has a second end of it: failed, and then passed`,
		},
		e2etest.Restart: {
			want: "a:passed,passed b:passed,error", contradiction: true,
			suite: `"[sig-x] b": the output has a second start of it`, message: "the output has a second start of it",
		},
		e2etest.Twice: {
			want: "a:passed,passed b:passed,failed", contradiction: true,
			suite: `"[sig-x] b": ginkgo's report lists it more than once`, message: "ginkgo's report says failed",
		},
		e2etest.NoState: {
			want: "a:passed,passed b:passed,error", contradiction: true,
			suite: `"[sig-x] b": the output says passed, and ginkgo's report says error`, message: "[NO STATE]",
		},
		e2etest.OddState: {
			want: "a:passed,passed b:passed,error", contradiction: true,
			suite: `"[sig-x] b": the output says passed, and ginkgo's report says error`,
		},
		e2etest.TwoKeys:  {want: "a:passed,passed b:failed", suite: "report: e2e.test ended by itself and left no readable report: reading ginkgo's report"},
		e2etest.TwoCases: {want: "a:passed,passed b:failed", suite: "differs from ginkgo's in case only"},
	} {
		t.Run(how, func(t *testing.T) {
			b := pair(t, e2etest.Script{Do: map[string][]string{name("b"): {how}}})
			done := b.must()
			b.want(done, c.want)
			first := done.Batches[0]
			if sound := c.suite == ""; first.Reconciled != sound || done.Sound(first.ID) != sound || first.Stopped != "" {
				t.Errorf("batch %+v", first)
			}
			if c.suite == "" && len(done.Suites) > 0 {
				t.Errorf("suite failures %s", suites(done))
			}
			contains(t, "the suite failure", suites(done), c.suite)
			contains(t, "the message", message(done, "b"), c.message)
			if contradicted(done) != c.contradiction {
				t.Errorf("suite failures %+v", done.Suites)
			}
			if void(done) != "" {
				t.Errorf("passes that do not count: %s", void(done))
			}
		})
	}
}

// A batch whose passes do not count runs again, and what is wrong with it is
// recorded.
func TestWhatIsWrongWithAProcessVoidsItsPasses(t *testing.T) {
	for how, c := range map[string]struct {
		suite         string
		contradiction bool
	}{
		e2etest.FailAfter:           {suite: "SynchronizedAfterSuite: [FAILED] could not clean up"},
		e2etest.FailAfterUnreported: {suite: "SynchronizedAfterSuite: [FAILED] could not clean up"},
		e2etest.NoReport:            {suite: "report: e2e.test ended by itself and left no readable report: reading ginkgo's report: open"},
		e2etest.LongReport:          {suite: "it goes on after its end"},
		e2etest.Elapsed:             {suite: "suite: Suite Timeout Elapsed"},
		e2etest.Unsuccessful:        {suite: "the suite did not succeed, and lists no failure", contradiction: true},
		e2etest.ExitOne:             {suite: "e2e.test ended with exit code 1, and nothing failed", contradiction: true},
		e2etest.Stranger:            {suite: `tests ran that were not asked for: ["[sig-fake] a stranger"]`, contradiction: true},
	} {
		t.Run(how, func(t *testing.T) {
			b := pair(t, e2etest.Script{Suite: []string{how, ""}})
			done := b.must()
			b.want(done, "a:passed,passed b:passed,passed")
			contains(t, "the suite failure", suites(done), c.suite)
			if contradicted(done) != c.contradiction || done.Sound("01") || !done.Sound("02") || void(done) != "" {
				t.Errorf("suite failures %+v, batches %+v", done.Suites, done.Batches)
			}
		})
	}
	// What is reported twice is recorded once.
	b := pair(t, e2etest.Script{Suite: []string{e2etest.FailAfter, ""}})
	if done := b.must(); len(done.Suites) != 1 {
		t.Errorf("suite failures %+v", done.Suites)
	}
}

// The report's verdict and the exit code must agree with failures, too.
func TestSuccessesThatHideFailures(t *testing.T) {
	for how, suite := range map[string]string{
		e2etest.Successful: "ginkgo's report says that the suite succeeded, and lists failures",
		e2etest.ExitZero:   "e2e.test ended with exit code 0, and there were failures",
	} {
		b := pair(t, e2etest.Script{Suite: []string{how, ""}, Do: map[string][]string{name("b"): {e2etest.Fail}}})
		done := b.must()
		b.want(done, "a:passed,passed b:failed")
		contains(t, how, suites(done), suite)
		if !contradicted(done) {
			t.Errorf("%s: %+v", how, done.Suites)
		}
	}
}

// A process that always dies is not started for ever.
func TestVoidPassesRunAgainOnlySoOften(t *testing.T) {
	b := pair(t, e2etest.Script{Suite: []string{e2etest.FailAfter}})
	done := b.must()
	b.want(done, "a:passed,passed,passed b:passed,passed,passed")
	if b.count("suite") != 3 || void(done) != "a b" {
		t.Errorf("started %q, void are %s", b.fake.Starts(t), void(done))
	}
	// Whoever goes on with the run gives them another chance.
	if due := run.Due(b.plan, b.options.Manifest, done, 0); len(due) != 2 {
		t.Errorf("due are %v", due)
	}
	script := e2etest.Script{Version: "v1.36.3", Tests: names("a", "b")}
	b.fake.Rewrite(t, script)
	b.options.Previous = done
	done = b.must()
	b.want(done, "a:passed,passed,passed,passed b:passed,passed,passed,passed")
	if void(done) != "" || len(run.Due(b.plan, b.options.Manifest, done, 0)) != 0 {
		t.Errorf("void are %q", void(done))
	}
}

// A retry may follow a contradiction, which stays.
func TestAContradictionStaysAfterARetry(t *testing.T) {
	b := pair(t, e2etest.Script{Do: map[string][]string{name("b"): {e2etest.Lie, e2etest.Pass}}})
	b.options.Retries = 1
	done := b.must()
	b.want(done, "a:passed,passed b:passed,failed,passed")
	if !contradicted(done) || void(done) != "" {
		t.Errorf("suite failures %+v, void are %q", done.Suites, void(done))
	}
	order := map[result.EventType]int{}
	for i, e := range b.observer.events {
		if e.Batch != nil && e.Batch.ID != "01" {
			break
		}
		order[e.Type] = i
	}
	// What corrects a pass belongs to its batch.
	if order[result.SuiteFailed] >= order[result.BatchFinished] || order[result.TestFinished] >= order[result.BatchFinished] {
		t.Errorf("in the first batch, the last of each type: %v", order)
	}
}

// whileRunning does something as soon as a test runs.
func (b *bench) whileRunning(id string, do func()) {
	done := false
	b.observer.on = func(e result.Event) {
		if !done && e.Type == result.TestStarted && e.Test.ID == id {
			done = true
			do()
		}
	}
}

// The report is compared also where the process was stopped.
func TestALieIsFoundAlsoAfterAnInterrupt(t *testing.T) {
	for what, change := range map[string]func(b *bench){
		"as asked": func(b *bench) {
			stop := make(chan struct{})
			b.options.Stop = stop
			b.whileRunning("b", func() { close(stop) })
		},
		"at the deadline": func(b *bench) { b.options.Deadline = time.Now().Add(time.Second) },
		"a test hangs":    func(b *bench) { b.plan.Tests[1].Timeout = 200 * time.Millisecond },
	} {
		t.Run(what, func(t *testing.T) {
			b := pair(t, e2etest.Script{Do: map[string][]string{name("a"): {e2etest.Lie, e2etest.Pass}, name("b"): {e2etest.Hang, e2etest.Pass}}})
			change(b)
			done, err := b.run(t.Context())
			if err != nil && !errors.Is(err, run.ErrInterrupted) {
				t.Fatal(err)
			}
			contains(t, "the suite failure", suites(done), `"[sig-x] a": the output says passed, and ginkgo's report says failed`)
			if a := done.Attempts["a"]; len(a) < 2 || a[1].State != result.TestFailed || a[1].Batch != "01" || !contradicted(done) {
				t.Errorf("a ended as %+v", a)
			}
			b.options.Stop, b.options.Deadline, b.options.Previous, b.observer.on = nil, time.Time{}, done, nil
			b.options.Retries = 1
			if done = b.must(); !contradicted(done) {
				t.Error("the contradiction is gone after a resume")
			}
		})
	}
}

// A process that hangs when its tests are over has failed, whatever it reports.
func TestAProcessThatHangsAfterItsTests(t *testing.T) {
	for how, want := range map[string]string{
		e2etest.Pass: "a:passed,passed b:passed,passed",
		e2etest.Lie:  "a:passed,failed b:passed,passed",
	} {
		b := pair(t, e2etest.Script{Suite: []string{e2etest.HangAfter, ""}, Do: map[string][]string{name("a"): {how, e2etest.Pass}}})
		b.options.IdleLimit = 200 * time.Millisecond
		done := b.must()
		b.want(done, want)
		contains(t, "the suite failure", suites(done), "process: it hung, without a test running, for 200ms")
		if contradicted(done) != (how == e2etest.Lie) || done.Batches[0].Reconciled || done.Batches[0].Stopped == "" {
			t.Errorf("suite failures %+v, batches %+v", done.Suites, done.Batches)
		}
	}
}

// What ginkgo says because it was stopped contradicts nothing: passes before
// that count, and are not run again.
func TestHonestInterruptedRunsAreReconciled(t *testing.T) {
	for what, c := range map[string]struct {
		do     map[string][]string
		change func(b *bench)
		want   string
		after  string
	}{
		"as asked": {
			do: map[string][]string{name("c"): {e2etest.Hang, e2etest.Pass}}, want: "a:passed b:skipped c:error d:", after: "a:passed b:skipped c:error,passed d:passed",
			change: func(b *bench) {
				stop := make(chan struct{})
				b.options.Stop = stop
				b.whileRunning("c", func() { close(stop) })
			},
		},
		"between failures": {
			do:   map[string][]string{name("a"): {e2etest.Fail}, name("c"): {e2etest.Hang, e2etest.Pass}},
			want: "a:failed b:skipped c:error d:", after: "a:failed b:skipped c:error,passed d:passed",
			change: func(b *bench) {
				stop := make(chan struct{})
				b.options.Stop = stop
				b.whileRunning("c", func() { close(stop) })
			},
		},
		"at the deadline": {
			do: map[string][]string{name("c"): {e2etest.Hang, e2etest.Pass}}, want: "a:passed b:skipped c:error d:", after: "a:passed b:skipped c:error,passed d:passed",
			change: func(b *bench) { b.options.Deadline = time.Now().Add(time.Second) },
		},
		"a test over its time limit": {
			do: map[string][]string{name("c"): {e2etest.Hang, e2etest.Pass}}, want: "a:passed b:skipped c:failed d:passed", after: "a:passed b:skipped c:failed d:passed",
			change: func(b *bench) { b.plan.Tests[2].Timeout = 200 * time.Millisecond },
		},
	} {
		t.Run(what, func(t *testing.T) {
			c.do[name("b")] = []string{e2etest.Skip}
			b := newBench(t, e2etest.Script{Do: c.do})
			c.change(b)
			done, err := b.run(t.Context())
			if err != nil && !errors.Is(err, run.ErrInterrupted) {
				t.Fatal(err)
			}
			b.want(done, c.want)
			for _, batch := range done.Batches {
				if !done.Sound(batch.ID) {
					t.Errorf("batch %+v does not count", batch)
				}
			}
			if len(done.Suites) > 0 || done.Batches[0].Stopped == "" {
				t.Errorf("suite failures %s, batch %+v", suites(done), done.Batches[0])
			}
			b.options.Stop, b.options.Deadline, b.options.Previous, b.observer.on = nil, time.Time{}, done, nil
			b.want(b.must(), c.after)
		})
	}
}

// Killed itself, the runner has read no report: failures stay, passes do not.
func TestPassesOfABatchThatDidNotEndRunAgain(t *testing.T) {
	b := newBench(t, e2etest.Script{Do: map[string][]string{name("b"): {e2etest.Fail}}})
	first := b.must()
	b.want(first, "a:passed b:failed c:passed d:passed")
	// As a results folder is that ends before its batch does.
	first.Batches[0].Exit, first.Batches[0].Reconciled = "", false
	delete(first.Attempts, "d")
	var due []string
	for _, test := range run.Due(b.plan, b.options.Manifest, first, 0) {
		due = append(due, test.ID)
	}
	if want := []string{"a", "c", "d"}; !slices.Equal(due, want) {
		t.Errorf("due are %q, want %q", due, want)
	}
	before := len(b.fake.Starts(t))
	b.options.Previous = first
	if err := run.Run(t.Context(), b.options); err != nil {
		t.Fatal(err)
	}
	if want, got := slices.Concat([]string{"suite"}, names("a", "c", "d")), b.fake.Starts(t)[before:]; !slices.Equal(got, want) {
		t.Errorf("started %q, want %q", got, want)
	}
}
