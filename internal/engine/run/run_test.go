package run_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/run"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
	"github.com/windows-op-readiness/windows-op-readiness/test/fulldisk"
)

func TestMain(m *testing.M) {
	e2etest.Main()
	os.Exit(m.Run())
}

// cluster is a cluster that is away while a file exists.
type cluster struct {
	away string
	// outage says when it was away.
	outage func(since time.Time) string

	mu      sync.Mutex
	removed [][]string
}

func (c *cluster) Healthy(context.Context) error {
	if _, err := os.Stat(c.away); err == nil {
		return errors.New("connection refused")
	}
	return nil
}

func (c *cluster) Outages(since time.Time) string {
	if c.outage == nil {
		return ""
	}
	return c.outage(since)
}

func (c *cluster) RemoveNamespaces(_ context.Context, ids []string) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removed = append(c.removed, slices.Sorted(slices.Values(ids)))
	return len(ids), nil
}

// observer hears everything, and acts on what it hears.
type observer struct {
	on func(result.Event)

	mu     sync.Mutex
	events []result.Event
	notes  []string
}

func (o *observer) Event(e result.Event) {
	o.mu.Lock()
	o.events = append(o.events, e)
	o.mu.Unlock()
	if o.on != nil {
		o.on(e)
	}
}

func (o *observer) Note(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.notes = append(o.notes, text)
}

// bench is a run of a few tests with a fake e2e.test.
type bench struct {
	t        *testing.T
	fake     e2etest.Folder
	plan     *result.Plan
	dir      string
	cluster  *cluster
	observer *observer
	steering *steering
	options  run.Options
}

// planned is a test of the bench's plan; its name is "[sig-x] " and the id.
func planned(id string, phase specs.Phase) result.PlannedTest {
	return result.PlannedTest{
		ID: id, Name: name(id), Phase: phase, Shard: 1, Cases: []string{"case-" + id},
		Duration: time.Second, Timeout: time.Minute,
	}
}

func name(id string) string { return "[sig-x] " + id }

// names are the names of tests.
func names(ids ...string) []string {
	var out []string
	for _, id := range ids {
		out = append(out, name(id))
	}
	return out
}

// newBench plans tests that may run in parallel, unless they are given.
func newBench(t *testing.T, script e2etest.Script, tests ...result.PlannedTest) *bench {
	t.Helper()
	if len(tests) == 0 {
		for _, id := range []string{"a", "b", "c", "d"} {
			tests = append(tests, planned(id, specs.Parallel))
		}
	}
	p := &result.Plan{Schema: result.PlanSchema, KubernetesVersion: "v1.36.3", Shards: 1, Tests: tests}
	script.Version = "v1.36.3"
	for i := range tests {
		script.Tests = append(script.Tests, tests[i].Name)
		p.Cases = append(p.Cases, result.PlannedCase{
			Case:    specs.Case{ID: tests[i].Cases[0], Kind: specs.Additional, Category: "Core.Network", Proof: specs.ProofPart},
			TestIDs: []string{tests[i].ID}, Shard: 1,
		})
	}
	var err error
	if p.Digest, err = p.ComputeDigest(); err != nil {
		t.Fatal(err)
	}
	fake := e2etest.Install(t, script)
	b := &bench{
		t: t, fake: fake, plan: p, dir: filepath.Join(t.TempDir(), "results"),
		cluster: &cluster{away: fake.Outage()}, observer: &observer{}, steering: &steering{},
	}
	m := &result.Manifest{Schema: result.ManifestSchema, RunID: "r", PlanDigest: p.Digest, Shard: 1, Attempt: 1}
	folder, err := result.Create(b.dir, p, m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { folder.Close() })
	b.options = run.Options{
		Plan: p, Manifest: m, Folder: folder, Binary: &e2e.Binary{Path: fake.Binary(), Version: "v1.36.3"},
		Env: os.Environ(), Cluster: b.cluster, Observer: b.observer, Steering: b.steering, TempDir: t.TempDir(),
		HealthInterval: time.Minute, ProbeInterval: time.Millisecond,
	}
	return b
}

// run runs the plan, and returns what the folder tells afterwards.
func (b *bench) run(ctx context.Context) (*result.Run, error) {
	b.t.Helper()
	err := run.Run(ctx, b.options)
	done, readErr := result.Load(b.dir)
	if readErr != nil {
		b.t.Fatal(readErr)
	}
	return done, err
}

// must is run for runs without an error of their own.
func (b *bench) must() *result.Run {
	b.t.Helper()
	done, err := b.run(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	if len(done.Problems) > 0 || !done.Finished || done.Interrupted {
		b.t.Errorf("finished %t, interrupted %t, problems %q", done.Finished, done.Interrupted, done.Problems)
	}
	return done
}

// want compares the states of all attempts of each test: "a:passed b:failed,passed".
func (b *bench) want(done *result.Run, want string) {
	b.t.Helper()
	var got []string
	for _, t := range b.plan.Tests {
		var states []string
		for i, r := range done.Attempts[t.ID] {
			if r.Attempt != i+1 {
				b.t.Errorf("attempt %d of %s is called %d", i+1, t.ID, r.Attempt)
			}
			states = append(states, string(r.State))
		}
		got = append(got, t.ID+":"+strings.Join(states, ","))
	}
	if text := strings.Join(got, " "); text != want {
		b.t.Errorf("tests ended as\n%s\nwant\n%s", text, want)
		for id, runs := range done.Attempts {
			for _, r := range runs {
				if r.Message != "" {
					b.t.Logf("%s: %s", id, r.Message)
				}
			}
		}
		for _, s := range done.Suites {
			b.t.Logf("%s: %s", s.Node, s.Message)
		}
	}
}

// message of the newest attempt of a test.
func message(done *result.Run, id string) string {
	runs := done.Attempts[id]
	if len(runs) == 0 {
		return ""
	}
	return runs[len(runs)-1].Message
}

// count how often something was started.
func (b *bench) count(what string) int {
	n := 0
	for _, s := range b.fake.Starts(b.t) {
		if s == what {
			n++
		}
	}
	return n
}

// suites joins the suite failures.
func suites(done *result.Run) string {
	var out []string
	for _, s := range done.Suites {
		out = append(out, s.Node+": "+s.Message)
	}
	return strings.Join(out, "\n")
}

// contradicted reports whether a contradiction was recorded.
func contradicted(done *result.Run) bool {
	return slices.ContainsFunc(done.Suites, func(s result.Suite) bool { return s.Contradiction })
}

func contains(t *testing.T, what, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("%s is %q, want %q in it", what, text, want)
	}
}

func TestOneProcessForEachPhaseAndConditions(t *testing.T) {
	steered := planned("c", specs.Parallel)
	steered.Conditions.Steer = specs.Windows
	b := newBench(t, e2etest.Script{Do: map[string][]string{name("b"): {e2etest.Fail}, name("d"): {e2etest.Skip}, name("e"): {e2etest.Panic}}},
		planned("a", specs.Parallel), planned("b", specs.Parallel), steered,
		planned("d", specs.Serial), planned("e", specs.Serial), planned("f", specs.Disruptive))
	done := b.must()
	b.want(done, "a:passed b:failed c:passed d:skipped e:failed f:passed")
	want := slices.Concat([]string{"suite"}, names("a", "b"), []string{"suite"}, names("c"), []string{"suite"}, names("d", "e"), []string{"suite"}, names("f"))
	if got := b.fake.Starts(t); !slices.Equal(got, want) {
		t.Errorf("started %q", got)
	}
	contains(t, "the failure of b", message(done, "b"), "[FAILED] expected a Windows node\n    to equal\n  a Windows node")
	contains(t, "the reason of d", message(done, "d"), "not supported here")
	if len(done.Suites) > 0 || len(b.cluster.removed) > 0 {
		t.Errorf("suite failures %q, removed %v", suites(done), b.cluster.removed)
	}
	for _, batch := range done.Batches {
		if batch.PID == 0 || batch.SuiteRunID == "" || batch.Exit == "" || batch.Tests == 0 {
			t.Errorf("batch %+v", batch)
		}
		if log, err := os.ReadFile(filepath.Join(b.dir, batch.Log)); err != nil || !strings.Contains(string(log), "Running Suite") {
			t.Errorf("log of batch %s: %v %q", batch.ID, err, log)
		}
	}
}

func TestEveryResultIsOnDiskBeforeItIsTold(t *testing.T) {
	b := newBench(t, e2etest.Script{})
	b.observer.on = func(e result.Event) {
		if e.Type != result.TestFinished {
			return
		}
		data, err := os.ReadFile(filepath.Join(b.dir, result.EventsFile))
		if err != nil || !strings.Contains(string(data), `"test-finished","test":{"id":"`+e.Test.ID) {
			t.Errorf("%s was told and is not on disk: %v", e.Test.ID, err)
		}
	}
	b.must()
}

// Parallel tests run beside each other, in as many processes as asked; serial
// ones never.
func TestProcsRunParallelTestsBesideEachOther(t *testing.T) {
	b := newBench(t, e2etest.Script{Do: map[string][]string{name("a"): {e2etest.Wait}, name("b"): {e2etest.Wait}}},
		planned("a", specs.Parallel), planned("b", specs.Parallel), planned("c", specs.Serial), planned("d", specs.Serial))
	b.options.Procs = 2
	var mu sync.Mutex
	running, most := map[string]bool{}, 0
	b.observer.on = func(e result.Event) {
		mu.Lock()
		defer mu.Unlock()
		switch e.Type {
		case result.TestStarted:
			running[e.Test.ID] = true
			most = max(most, len(running))
			if (running["c"] || running["d"]) && len(running) > 1 {
				t.Errorf("a serial test runs beside another: %v", running)
			}
			// Both wait until both run.
			if running["a"] && running["b"] {
				if err := os.WriteFile(b.fake.Go(), nil, 0o644); err != nil {
					t.Error(err)
				}
			}
		case result.TestFinished:
			delete(running, e.Test.ID)
		}
	}
	b.want(b.must(), "a:passed b:passed c:passed d:passed")
	if most != 2 || b.count("suite") != 3 {
		t.Errorf("%d at once, in %d processes", most, b.count("suite"))
	}
}

func TestRetriesRunOnlyFailedTestsAgain(t *testing.T) {
	b := newBench(t, e2etest.Script{Do: map[string][]string{
		name("b"): {e2etest.Fail, e2etest.Pass},
		name("c"): {e2etest.Fail},
		name("d"): {e2etest.Skip},
	}})
	b.options.Retries = 2
	b.want(b.must(), "a:passed b:failed,passed c:failed,failed,failed d:skipped")
	want := slices.Concat([]string{"suite"}, names("a", "b", "c", "d"), []string{"suite"}, names("b", "c"), []string{"suite"}, names("c"))
	if got := b.fake.Starts(t); !slices.Equal(got, want) {
		t.Errorf("started %q", got)
	}
}

func TestAHungTestIsRecordedAndTheRestRuns(t *testing.T) {
	for _, how := range []string{e2etest.Hang, e2etest.Deaf} {
		hung := planned("b", specs.Parallel)
		hung.Timeout = 200 * time.Millisecond
		b := newBench(t, e2etest.Script{Do: map[string][]string{name("b"): {how}}},
			planned("a", specs.Parallel), hung, planned("c", specs.Parallel), planned("d", specs.Parallel))
		b.options.Grace = 200 * time.Millisecond
		done := b.must()
		// Who was killed has left no report: what passed before runs again.
		again := map[string]int{e2etest.Hang: 0, e2etest.Deaf: 1}[how]
		b.want(done, "a:passed"+strings.Repeat(",passed", again)+" b:failed c:passed d:passed")
		contains(t, "the message", message(done, "b"), "[TIMEDOUT] it did not end within its time limit of 200ms")
		if b.count("suite") != 2+again || b.count(name("a")) != 1+again || b.count(name("b")) != 1 {
			t.Errorf("started %q", b.fake.Starts(t))
		}
		first := done.Batches[0]
		if len(done.Suites) > 0 || first.Stopped != "a test hung" || first.Reconciled != (how == e2etest.Hang) || !done.Batches[1].Reconciled {
			t.Errorf("suite failures %q, batches %+v", suites(done), done.Batches)
		}
		// Its namespaces go: it could not remove them itself.
		if len(b.cluster.removed) != 1 || len(b.cluster.removed[0]) != 1 || b.cluster.removed[0][0] != done.Batches[0].SuiteRunID {
			t.Errorf("removed namespaces of %v, want those of %s", b.cluster.removed, done.Batches[0].SuiteRunID)
		}
		if how == e2etest.Deaf {
			contains(t, "the end of the batch", done.Batches[0].Exit, "killed")
		}
	}
}

func TestAProcessThatHangsBeforeItsFirstTest(t *testing.T) {
	b := newBench(t, e2etest.Script{Suite: []string{e2etest.Deaf}})
	b.options.IdleLimit = 100 * time.Millisecond
	b.options.Grace = 100 * time.Millisecond
	done := b.must()
	b.want(done, "a:error b:error c:error d:error")
	contains(t, "the message", message(done, "a"), "it hung, without a test running, for 100ms")
	contains(t, "the suite failure", suites(done), "process: it hung, without a test running, for 100ms")
}

func TestADeadProcessCostsOnlyTheTestThatRan(t *testing.T) {
	for how, says := range map[string]string{e2etest.Kill: "signal: killed", e2etest.Exit: "exit code 2"} {
		b := newBench(t, e2etest.Script{Do: map[string][]string{name("b"): {how}}})
		done := b.must()
		// What passed in the process that died does not count.
		b.want(done, "a:passed,passed b:error c:passed d:passed")
		contains(t, "the message", message(done, "b"), says)
		contains(t, "the suite failure", suites(done), says)
		if b.count("suite") != 3 || b.count(name("a")) != 2 || b.count(name("c")) != 1 || contradicted(done) {
			t.Errorf("started %q, suite failures %+v", b.fake.Starts(t), done.Suites)
		}
		if len(b.cluster.removed) != 1 {
			t.Errorf("removed %v", b.cluster.removed)
		}
	}
}

func TestProcessesThatRunNothingAreErrors(t *testing.T) {
	for how, says := range map[string]string{
		e2etest.Nothing: "e2e.test ran none of 4 tests: e2e.test ended (exit code 0) without a word",
		e2etest.Garbage: "e2e.test ran none of 4 tests: e2e.test ended (exit code 0), last saying: ",
		e2etest.Exit:    "e2e.test ran none of 4 tests: e2e.test ended (exit code 2)",
		e2etest.Kill:    "e2e.test ran none of 4 tests: e2e.test ended (signal: killed)",
	} {
		b := newBench(t, e2etest.Script{Suite: []string{how}})
		done := b.must()
		b.want(done, "a:error b:error c:error d:error")
		contains(t, how, message(done, "a"), says)
		if b.count("suite") != 1 {
			t.Errorf("%s: started %q", how, b.fake.Starts(t))
		}
	}
}

func TestABinaryThatCannotBeStarted(t *testing.T) {
	b := newBench(t, e2etest.Script{})
	if err := os.Remove(b.fake.Binary()); err != nil {
		t.Fatal(err)
	}
	done := b.must()
	b.want(done, "a:error b:error c:error d:error")
	contains(t, "the message", message(done, "a"), "no such file")
}

func TestAFailedBeforeSuite(t *testing.T) {
	b := newBench(t, e2etest.Script{Suite: []string{e2etest.FailBefore}})
	done := b.must()
	b.want(done, "a:error b:error c:error d:error")
	contains(t, "the suite failure", suites(done), "SynchronizedBeforeSuite: [FAILED] there are currently no ready, schedulable nodes")
	contains(t, "the message", message(done, "c"), "SynchronizedBeforeSuite failed: [FAILED] there are currently no ready")
}

func TestAClusterThatGoesAway(t *testing.T) {
	b := newBench(t, e2etest.Script{Do: map[string][]string{name("b"): {e2etest.Outage}, name("c"): {e2etest.Hang}}},
		planned("a", specs.Parallel), planned("b", specs.Parallel), planned("c", specs.Parallel), planned("d", specs.Serial))
	done := b.must()
	b.want(done, "a:passed b:error c:error d:error")
	contains(t, "the message of b", message(done, "b"), "the API server does not answer: connection refused\nThe test said: [FAILED] expected")
	contains(t, "the message of d", message(done, "d"), "the API server stopped answering")
	if b.count(name("d")) != 0 || len(b.cluster.removed) != 0 {
		t.Errorf("started %q, removed %v", b.fake.Starts(t), b.cluster.removed)
	}
}

// What is known from ginkgo's report alone is judged no harder.
func TestAClusterThatGoesAwayWithTheOutput(t *testing.T) {
	b := newBench(t, e2etest.Script{Do: map[string][]string{name("b"): {e2etest.Outage}, name("c"): {e2etest.UnsaidFailure}}})
	done := b.must()
	b.want(done, "a:passed b:error c:error d:passed")
	contains(t, "the message of c", message(done, "c"), "the API server stopped answering: connection refused\nThe test said: ginkgo's report says failed, and the output does not have its end\n[FAILED] expected")
}

// A cluster may go away without any test noticing.
func TestAClusterThatGoesAwaySilently(t *testing.T) {
	b := newBench(t, e2etest.Script{Do: map[string][]string{name("b"): {e2etest.Hang}}})
	b.options.HealthInterval = time.Millisecond
	b.observer.on = func(e result.Event) {
		if e.Type == result.TestStarted && e.Test.ID == "b" {
			if err := os.WriteFile(b.cluster.away, nil, 0o644); err != nil {
				t.Error(err)
			}
		}
	}
	done := b.must()
	b.want(done, "a:passed b:error c:error d:error")
	contains(t, "the message of d", message(done, "d"), "the API server stopped answering: connection refused")
}

func TestStopIsGraceful(t *testing.T) {
	b := newBench(t, e2etest.Script{Do: map[string][]string{name("b"): {e2etest.Hang}}})
	stop := make(chan struct{})
	b.options.Stop = stop
	b.observer.on = func(e result.Event) {
		if e.Type == result.TestStarted && e.Test.ID == "b" {
			close(stop)
		}
	}
	done, err := b.run(t.Context())
	if !errors.Is(err, run.ErrInterrupted) || !done.Interrupted || !done.Finished {
		t.Errorf("error %v, interrupted %t, finished %t", err, done.Interrupted, done.Finished)
	}
	b.want(done, "a:passed b:error c: d:")
	contains(t, "the message of b", message(done, "b"), "[INTERRUPTED] Interrupted by User")
	if done.Batches[0].Exit != "exit code 1" || len(b.cluster.removed) != 1 {
		t.Errorf("the process ended with %q, removed %v", done.Batches[0].Exit, b.cluster.removed)
	}
}

func TestAProcessThatDoesNotStopIsKilled(t *testing.T) {
	b := newBench(t, e2etest.Script{Do: map[string][]string{name("b"): {e2etest.Deaf}}})
	b.options.Grace = 50 * time.Millisecond
	stop := make(chan struct{})
	b.options.Stop = stop
	b.observer.on = func(e result.Event) {
		if e.Type == result.TestStarted && e.Test.ID == "b" {
			close(stop)
		}
	}
	done, err := b.run(t.Context())
	if !errors.Is(err, run.ErrInterrupted) {
		t.Error(err)
	}
	b.want(done, "a:passed b:error c: d:")
	contains(t, "the end", done.Batches[0].Exit, "killed")
	if len(b.cluster.removed) != 1 {
		t.Errorf("removed %v", b.cluster.removed)
	}
}

// Stopped at once: nothing is cleaned up, and a resumed run does that.
func TestStopAtOnceAndResume(t *testing.T) {
	b := newBench(t, e2etest.Script{Do: map[string][]string{name("b"): {e2etest.Deaf, e2etest.Pass}}})
	b.options.Grace = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	stop := make(chan struct{})
	b.options.Stop = stop
	b.observer.on = func(e result.Event) {
		if e.Type == result.TestStarted && e.Test.ID == "b" {
			close(stop)
			cancel()
		}
	}
	done, err := b.run(ctx)
	if !errors.Is(err, run.ErrInterrupted) || !done.Interrupted {
		t.Errorf("error %v, interrupted %t", err, done.Interrupted)
	}
	b.want(done, "a:passed b:error c: d:")
	if len(b.cluster.removed) != 0 {
		t.Errorf("removed %v", b.cluster.removed)
	}
	left := done.Batches[0].SuiteRunID

	b.options.Stop, b.options.Previous, b.observer.on = nil, done, nil
	done = b.must()
	// Nobody read a report of the first pass.
	b.want(done, "a:passed,passed b:error,passed c:passed d:passed")
	if len(b.cluster.removed) != 1 || !slices.Contains(b.cluster.removed[0], left) {
		t.Errorf("removed %v, want what %s left", b.cluster.removed, left)
	}
	if b.count(name("a")) != 2 || b.count(name("c")) != 1 {
		t.Errorf("started %q", b.fake.Starts(t))
	}
	if done.Batches[0].ID == done.Batches[1].ID || done.Executions != 2 {
		t.Errorf("batches %+v, %d executions", done.Batches, done.Executions)
	}
}

func TestResumeGoesOnWithRetries(t *testing.T) {
	b := newBench(t, e2etest.Script{Do: map[string][]string{name("b"): {e2etest.Fail, e2etest.Pass}}})
	done := b.must()
	b.want(done, "a:passed b:failed c:passed d:passed")
	b.options.Previous, b.options.Retries = done, 1
	b.want(b.must(), "a:passed b:failed,passed c:passed d:passed")
	if b.count(name("a")) != 1 || b.count("suite") != 2 {
		t.Errorf("started %q", b.fake.Starts(t))
	}
}

func TestALogThatCannotBeWrittenStopsTheRun(t *testing.T) {
	b := newBench(t, e2etest.Script{},
		planned("a", specs.Parallel), planned("b", specs.Serial))
	logs := filepath.Join(b.dir, result.LogsDir)
	fulldisk.Mount(t, logs, 4)
	fulldisk.Fill(t, logs)
	done, err := b.run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "writing the log of batch 01") || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("error %v", err)
	}
	// What was tested is kept.
	b.want(done, "a:passed b:")
}

func TestALogThatCannotBeOpenedStopsTheRun(t *testing.T) {
	b := newBench(t, e2etest.Script{})
	if err := os.Mkdir(filepath.Join(b.dir, result.LogsDir, "batch-01.log"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := b.run(t.Context()); err == nil || !strings.Contains(err.Error(), "writing the log of batch 01") {
		t.Errorf("error %v", err)
	}
	if got := b.fake.Starts(t); len(got) > 0 {
		t.Errorf("started %q", got)
	}
}

func TestResultsThatCannotBeWrittenStopTheRun(t *testing.T) {
	b := newBench(t, e2etest.Script{})
	b.observer.on = func(e result.Event) {
		if e.Type == result.TestFinished && e.Test.ID == "a" {
			// As a disk that is full does, from here on every write fails.
			b.options.Folder.Close()
		}
	}
	done, err := b.run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "writing results") {
		t.Errorf("error %v", err)
	}
	if done.Finished {
		t.Error("the run passes for finished")
	}
	b.want(done, "a:passed b: c: d:")
}

func TestSecretsReachNeitherLogNorResults(t *testing.T) {
	b := newBench(t, e2etest.Script{Do: map[string][]string{name("b"): {e2etest.Secret}, name("c"): {e2etest.Secret}, name("d"): {e2etest.Kill}}})
	done := b.must()
	b.want(done, "a:passed,passed b:failed c:failed d:error")
	err := filepath.WalkDir(b.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), e2etest.Password) {
			t.Errorf("%s tells a password", filepath.Base(path))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	contains(t, "the message", message(done, "b"), "[REDACTED]")
	for _, e := range b.observer.events {
		if strings.Contains(fmt.Sprint(e.Test, e.Suite), e2etest.Password) {
			t.Errorf("an event of type %s tells a password", e.Type)
		}
	}
}

// Conditions of the standard that the cluster does not meet are decided, and
// their tests do not run.
func TestOnlyTestsOfTestableCasesRun(t *testing.T) {
	b := newBench(t, e2etest.Script{})
	b.plan.Cases[1].Needs.Condition = []string{"dual-stack"}
	b.options.Manifest.Declared.Without = []string{"dual-stack"}
	done := b.must()
	if b.count(name("b")) != 0 || b.count(name("a")) != 1 || done.Decisions["case-b"].Outcome != "not-applicable" {
		t.Errorf("started %q, decided %+v", b.fake.Starts(t), done.Decisions)
	}
}
