package result_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/test/golden"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
	"github.com/windows-op-readiness/windows-op-readiness/test/fulldisk"
)

var at = time.Date(2026, 8, 1, 12, 0, 0, 123456789, time.UTC)

var someConditions = result.RunConditions{Steer: specs.Windows, SteerPods: "^x$", RuntimeClass: "y"}

// smallPlan has three tests, and lists that are empty and not nil.
func smallPlan(t testing.TB) *result.Plan {
	t.Helper()
	p := &result.Plan{
		Schema: result.PlanSchema, KubernetesVersion: "v1.36.3", Provider: "skeleton", Shards: 1,
		Selection: result.Selection{Categories: []specs.Category{}},
		Standard:  map[specs.Category]int{specs.CoreNetwork: 3},
	}
	for _, id := range []string{"a", "b", "c"} {
		p.Cases = append(p.Cases, result.PlannedCase{
			Case: specs.Case{
				ID: "case-" + id, Category: specs.CoreNetwork, Kind: specs.Requirement, Proof: specs.ProofFull,
				Needs: specs.Needs{Means: []string{}}, Conditions: specs.Conditions{Placement: []specs.Placement{}},
			},
			TestIDs: []string{id}, Shard: 1,
		})
		p.Tests = append(p.Tests, result.PlannedTest{ID: id, Name: "test " + id, Phase: specs.Parallel, Conditions: someConditions, Cases: []string{"case-" + id}, Shard: 1})
	}
	var err error
	if p.Digest, err = p.ComputeDigest(); err != nil {
		t.Fatal(err)
	}
	return p
}

func smallManifest(p *result.Plan) *result.Manifest {
	return &result.Manifest{Schema: result.ManifestSchema, RunID: "r", PlanDigest: p.Digest, Shard: 1, Attempt: 1, E2EVersion: "v1.36.3", Started: at}
}

func create(t testing.TB, dir string) *result.Folder {
	t.Helper()
	p := smallPlan(t)
	f, err := result.Create(dir, p, smallManifest(p))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func appendTo(t testing.TB, f *result.Folder, events ...result.Event) {
	t.Helper()
	if err := f.Append(events...); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, dir string) *result.Run {
	t.Helper()
	run, err := result.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// begun is how the events of a run begin that has one batch.
func begun() []result.Event {
	return []result.Event{
		{Time: at, Type: result.RunStarted},
		{Time: at, Type: result.BatchStarted, Batch: &result.Batch{ID: "01", Phase: specs.Parallel, Conditions: someConditions, Tests: 3}},
	}
}

func started(id string) result.Event {
	return result.Event{Time: at, Type: result.TestStarted, Test: &result.TestRun{ID: id, Name: "test " + id, Attempt: 1, Batch: "01"}}
}

func ended(id string, attempt int, state result.TestState) result.Event {
	test := result.TestRun{ID: id, Name: "test " + id, Attempt: attempt, Batch: "01", State: state, Seconds: 1.5}
	if state != result.TestPassed {
		test.Message = "ümläut\n\"quoted\""
	}
	return result.Event{Time: at, Type: result.TestFinished, Test: &test}
}

var someFigure = result.Measurement{What: "rescheduling, median", Figure: "1.2s"}

func measured(id string, attempt int, figures ...result.Measurement) result.Event {
	return result.Event{Time: at, Type: result.TestMeasured, Test: &result.TestRun{ID: id, Name: "test " + id, Attempt: attempt, Batch: "01", Measured: figures}}
}

// everyEvent has an event of each type, with every field set.
func everyEvent() []result.Event {
	batch := result.Batch{ID: "01", Phase: specs.Parallel, Conditions: someConditions, Tests: 3, PID: 7, PIDStart: 1722513600000, SuiteRunID: "u", Log: "logs/batch-01.log"}
	done := batch
	done.Exit, done.Stopped, done.Reconciled = "exit code 1", "as asked", true
	seen := ended("a", 1, result.TestFailed)
	seen.Test.Unobserved, seen.Test.Meanwhile, seen.Test.Pods = "the watch broke", "the API server was away", 1
	return []result.Event{
		{Time: at, Type: result.RunStarted},
		{Time: at, Type: result.CaseDecided, Case: &result.Decision{ID: "case-c", Outcome: "not-tested", Reason: "no <node> & no kubectl"}},
		{Time: at, Type: result.BatchStarted, Batch: &batch},
		{Time: at, Type: result.BatchSuite, Batch: &batch},
		started("a"),
		{Time: at, Type: result.PodObserved, Pod: &result.Pod{
			Test: "a", Attempt: 1, Namespace: "n", Name: "p", Node: "w", OS: specs.Windows, WindowsBuild: "10.0.20348", Simulated: true,
			RuntimeClass: "y", PodOS: specs.Windows, Images: []string{"i"}, Started: true, Phases: []string{"Pending", "Running"}, SchedulingFailure: "none fits", Observed: at,
		}},
		seen,
		started("c"),
		ended("c", 1, result.TestPassed),
		started("b"),
		{Time: at, Type: result.SuiteFailed, Suite: &result.Suite{Batch: "01", Node: "AfterSuite", Message: "left", Contradiction: true}},
		measured("c", 1, someFigure),
		{Time: at, Type: result.BatchFinished, Batch: &done},
		{Time: at, Type: result.RunFinished, Interrupted: true},
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	f := create(t, dir)
	appendTo(t, f, everyEvent()...)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	run := read(t, dir)
	if len(run.Problems) > 0 {
		t.Errorf("problems: %q", run.Problems)
	}
	events := everyEvent()
	passed := *events[8].Test
	passed.Measured = []result.Measurement{someFigure}
	for what, pair := range map[string][2]any{
		"attempts":   {run.Attempts, map[string][]result.TestRun{"a": {*events[6].Test}, "c": {passed}}},
		"unfinished": {run.Unfinished, map[string]result.TestRun{"b": *events[9].Test}},
		"decisions":  {run.Decisions, map[string]result.Decision{"case-c": *events[1].Case}},
		"batches":    {run.Batches, []result.Batch{*events[12].Batch}},
		"pods":       {run.Pods, []result.Pod{*events[5].Pod}},
		"suites":     {run.Suites, []result.Suite{*events[10].Suite}},
		"end":        {[]any{run.Finished, run.Interrupted, run.Executions}, []any{true, true, 1}},
		"manifest":   {run.Manifest, smallManifest(run.Plan)},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s: read %+v, wrote %+v", what, pair[0], pair[1])
		}
	}
	if got, want := run.Durations(), map[string]time.Duration{"c": 1500 * time.Millisecond}; !reflect.DeepEqual(got, want) {
		t.Errorf("durations %v, want %v", got, want)
	}
	for _, name := range []string{result.PlanFile, result.ManifestFile, result.EventsFile} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestEventsKeepTheirForm(t *testing.T) {
	dir := t.TempDir()
	f := create(t, dir)
	appendTo(t, f, everyEvent()...)
	got, err := os.ReadFile(f.Path(result.EventsFile))
	if err != nil {
		t.Fatal(err)
	}
	// What other versions must read: where it changes, so does the schema.
	golden.Equal(t, "events.jsonl", got)
}

// TestAKillAtAnyMomentLosesNothingFinished cuts results.jsonl at every byte.
func TestAKillAtAnyMomentLosesNothingFinished(t *testing.T) {
	dir := t.TempDir()
	f := create(t, dir)
	done := result.Batch{ID: "01", Phase: specs.Parallel, Conditions: someConditions, Tests: 3, Exit: "exit code 1"}
	events := slices.Concat(begun(), []result.Event{
		started("a"), ended("a", 1, result.TestFailed), ended("a", 2, result.TestError),
		{Time: at, Type: result.BatchFinished, Batch: &done}, {Time: at, Type: result.RunFinished},
	})
	appendTo(t, f, events...)
	path := f.Path(result.EventsFile)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) + 1 {
		if err := os.WriteFile(path, whole[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		lines := bytes.Count(whole[:cut], []byte("\n"))
		clean := cut == 0 || whole[cut-1] == '\n'
		run := read(t, dir)
		finished := 0
		for _, e := range events[:lines] {
			if e.Type == result.TestFinished {
				finished++
			}
		}
		if len(run.Attempts["a"]) != finished || (len(run.Problems) == 0) != clean || run.Finished != (lines == len(events)) {
			t.Fatalf("cut at %d, in line %d: %d attempts of %d, finished %t, problems %q", cut, lines+1, len(run.Attempts["a"]), finished, run.Finished, run.Problems)
		}
		// Going on with it removes the piece, and nothing else.
		again, err := result.Reopen(dir)
		if err != nil {
			t.Fatal(err)
		}
		next := begun()
		next[1].Batch.ID = "02"
		c := []result.Event{started("c"), ended("c", 1, result.TestPassed)}
		c[0].Test.Batch, c[1].Test.Batch = "02", "02"
		appendTo(t, again, append(next, c...)...)
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		run = read(t, dir)
		if len(run.Problems) > 0 || len(run.Attempts["a"]) != finished || len(run.Attempts["c"]) != 1 {
			t.Fatalf("cut at %d and resumed: attempts %v, problems %q", cut, run.Attempts, run.Problems)
		}
	}
}

func TestAKillWhileAFileIsWrittenLeavesTheOldOne(t *testing.T) {
	dir := t.TempDir()
	f := create(t, dir)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(dir, ".tmp-123")
	if err := os.WriteFile(half, []byte(`{"schema":`), 0o600); err != nil {
		t.Fatal(err)
	}
	read(t, dir)
	again, err := result.Reopen(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := os.Stat(half); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the half-written file is still there: %v", err)
	}
}

func TestResumeOfALongCutLine(t *testing.T) {
	dir := t.TempDir()
	f := create(t, dir)
	appendTo(t, f, ended("a", 1, result.TestPassed))
	path := f.Path(result.EventsFile)
	f.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1, 64<<10 - 1, 64 << 10, 64<<10 + 1, 200 << 10} {
		if err := os.WriteFile(path, append(slices.Clone(whole), bytes.Repeat([]byte("x"), size)...), 0o644); err != nil {
			t.Fatal(err)
		}
		again, err := result.Reopen(dir)
		if err != nil {
			t.Fatal(err)
		}
		again.Close()
		if got, _ := os.ReadFile(path); !bytes.Equal(got, whole) {
			t.Errorf("a piece of %d bytes: %d bytes are left of %d", size, len(got), len(whole))
		}
	}
	// A file that is nothing but a piece.
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), 100<<10), 0o644); err != nil {
		t.Fatal(err)
	}
	again, err := result.Reopen(dir)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	if info, err := os.Stat(path); err != nil || info.Size() != 0 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestOneWriterAtATime(t *testing.T) {
	dir := t.TempDir()
	f := create(t, dir)
	if _, err := result.Reopen(dir); !errors.Is(err, result.ErrInUse) {
		t.Errorf("a second writer got %v", err)
	}
	p := smallPlan(t)
	if _, err := result.Create(dir, p, smallManifest(p)); !errors.Is(err, result.ErrInUse) {
		t.Errorf("a second run got %v", err)
	}
	appendTo(t, f, ended("a", 1, result.TestPassed))
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := result.Create(dir, p, smallManifest(p)); err == nil || !strings.Contains(err.Error(), "already holds a run") || !strings.Contains(err.Error(), "--resume "+dir) {
		t.Errorf("a run into the folder of another: %v", err)
	}
	again, err := result.Reopen(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if run := read(t, dir); len(run.Attempts["a"]) != 1 {
		t.Errorf("attempts %v", run.Attempts)
	}
}

// TestOnlyOneOfManyGetsTheFolder lets many open and close a folder; at no time
// two have it.
func TestOnlyOneOfManyGetsTheFolder(t *testing.T) {
	dir := t.TempDir()
	create(t, dir).Close()
	var mu sync.Mutex
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 200 {
				f, err := result.Reopen(dir)
				if errors.Is(err, result.ErrInUse) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if !mu.TryLock() {
					t.Error("two have the folder")
					return
				}
				runtime.Gosched()
				mu.Unlock()
				if err := f.Close(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
}

func TestConcurrentAppends(t *testing.T) {
	dir := t.TempDir()
	f := create(t, dir)
	appendTo(t, f, begun()...)
	var wait sync.WaitGroup
	for i := range 50 {
		wait.Go(func() {
			failed := result.Event{Time: at, Type: result.SuiteFailed, Suite: &result.Suite{Batch: "01", Node: fmt.Sprint(i)}}
			if err := f.Append(failed, failed); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	run := read(t, dir)
	if len(run.Suites) != 100 || len(run.Problems) > 0 {
		t.Errorf("%d failures, problems %q", len(run.Suites), run.Problems)
	}
	// What was appended together stays together.
	for i := 0; i < len(run.Suites); i += 2 {
		if run.Suites[i] != run.Suites[i+1] {
			t.Errorf("%s is torn from %s", run.Suites[i].Node, run.Suites[i+1].Node)
		}
	}
}

func TestLongMessagesAreCut(t *testing.T) {
	dir := t.TempDir()
	f := create(t, dir)
	long := ended("a", 1, result.TestFailed)
	long.Test.Message = strings.Repeat("\x01", 10<<20)
	long.Test.Unobserved = strings.Repeat("ü", 1<<20)
	long.Test.Meanwhile = strings.Repeat("\x02", 1<<20)
	appendTo(t, f, begun()...)
	appendTo(t, f, long, result.Event{Type: result.SuiteFailed, Suite: &result.Suite{Batch: "01", Message: strings.Repeat("\xff", 10<<20)}})
	if len(long.Test.Message) != 10<<20 {
		t.Error("the caller's event was changed")
	}
	run := read(t, dir)
	if len(run.Problems) > 0 {
		t.Fatalf("problems %q", run.Problems)
	}
	for what, text := range map[string]string{"message": run.Attempts["a"][0].Message, "unobserved": run.Attempts["a"][0].Unobserved, "meanwhile": run.Attempts["a"][0].Meanwhile, "suite": run.Suites[0].Message} {
		if !strings.Contains(text, "bytes cut)") || len(text) > 4*result.MaxMessage {
			t.Errorf("%s: %d bytes, ending in %q", what, len(text), text[len(text)-40:])
		}
	}
	// What cannot be cut, and no reader would take, is refused.
	if err := f.Append(result.Event{Type: result.CaseDecided, Case: &result.Decision{Reason: strings.Repeat("x", 2<<20)}}); err == nil {
		t.Error("an event that no reader takes was written")
	}
	if again := read(t, dir); len(again.Problems) > 0 {
		t.Errorf("problems %q", again.Problems)
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 0, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "abc\n… (1 bytes cut)"},
		{"aüb", 2, "a\n… (3 bytes cut)"},
		{"\xbf\xbf\xbf\xbf", 2, "\n… (4 bytes cut)"},
	} {
		if got := result.Cut(c.text, c.limit); got != c.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.text, c.limit, got, c.want)
		}
	}
}

func TestFoldersThatCannotBeWritten(t *testing.T) {
	p := smallPlan(t)
	try := func(dir string) error {
		f, err := result.Create(dir, p, smallManifest(p))
		if err == nil {
			f.Close()
		}
		return err
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(file, "below")} {
		if err := try(path); err == nil || !strings.Contains(err.Error(), "report folder") || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "mine" {
		t.Errorf("the file in place of the folder is now %q, %v", data, err)
	}
	for _, name := range []string{result.PlanFile, result.ManifestFile, result.EventsFile} {
		sub := filepath.Join(dir, "with-"+name)
		if err := os.MkdirAll(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(sub, name), []byte("mine"), 0o644); err != nil {
			t.Fatal(err)
		}
		err := try(sub)
		if err == nil || !strings.Contains(err.Error(), name+" exists") || strings.Contains(err.Error(), "--resume") != (name == result.ManifestFile) {
			t.Errorf("a folder with %s: %v", name, err)
		}
		if data, err := os.ReadFile(filepath.Join(sub, name)); err != nil || string(data) != "mine" {
			t.Errorf("%s is now %q, %v", name, data, err)
		}
		if err := result.CheckNew(sub); err == nil {
			t.Errorf("a folder with %s counts as new", name)
		}
	}
	if err := result.CheckNew(filepath.Join(dir, "none")); err != nil {
		t.Errorf("a folder that is not there: %v", err)
	}
	if _, err := result.Reopen(filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "holds no run to resume") {
		t.Errorf("a resume of nothing: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
		t.Error("the resume of nothing made a folder")
	}
}

func TestAReadOnlyFolder(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write where the permissions say no")
	}
	dir := filepath.Join(t.TempDir(), "ro")
	if err := os.Mkdir(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	p := smallPlan(t)
	if _, err := result.Create(dir, p, smallManifest(p)); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v", err)
	}
}

func TestAFullDisk(t *testing.T) {
	dir := t.TempDir()
	fulldisk.Mount(t, dir, 64)
	f := create(t, dir)
	fulldisk.Fill(t, dir)
	long := ended("a", 1, result.TestFailed)
	long.Test.Message = strings.Repeat("x", 16<<10)
	if err := f.Append(long); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a full disk: %v", err)
	}
	// From then on nothing is recorded: a gap in the middle would go unseen.
	if err := os.Remove(filepath.Join(dir, "filler")); err != nil {
		t.Fatal(err)
	}
	if err := f.Append(ended("b", 1, result.TestPassed)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("after a full disk: %v", err)
	}
}

// TestAFolderInUseHoldsOnlyResults: whatever lies there when a job is killed is
// uploaded with them.
func TestAFolderInUseHoldsOnlyResults(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("folders cannot be locked there, so a file is")
	}
	dir := t.TempDir()
	f := create(t, dir)
	defer f.Close()
	appendTo(t, f, ended("a", 1, result.TestPassed))
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains([]string{result.PlanFile, result.ManifestFile, result.EventsFile, result.LogsDir}, e.Name()) {
			t.Errorf("%s lies among the results", e.Name())
		}
	}
}

// TestALockOfADeadProcess kills a process that holds a folder: the next gets it.
func TestALockOfADeadProcess(t *testing.T) {
	if dir := os.Getenv("RESULT_TEST_HOLD"); dir != "" {
		f, err := result.Reopen(dir)
		fmt.Println("held", err)
		if err == nil {
			defer f.Close() // never: but the collector of garbage must not do it either
		}
		select {}
	}
	dir := t.TempDir()
	create(t, dir).Close()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "RESULT_TEST_HOLD="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 64)
	n, _ := out.Read(said)
	if got := strings.TrimSpace(string(said[:n])); got != "held <nil>" {
		t.Errorf("the other process said %q", got)
	}
	if _, err := result.Reopen(dir); !errors.Is(err, result.ErrInUse) {
		t.Errorf("while it lives: %v", err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	f, err := result.Reopen(dir)
	if err != nil {
		t.Fatalf("after it died: %v", err)
	}
	f.Close()
}

func TestWriteJSONReportsWhatCannotBeEncoded(t *testing.T) {
	f := create(t, t.TempDir())
	if err := f.WriteJSON("x.json", func() {}); err == nil || !strings.Contains(err.Error(), "x.json") {
		t.Errorf("%v", err)
	}
	var unsupported *json.UnsupportedValueError
	inf := ended("a", 1, result.TestPassed)
	inf.Test.Seconds = 1e308
	inf.Test.Seconds *= 10
	if err := f.Append(inf); !errors.As(err, &unsupported) {
		t.Errorf("%v", err)
	}
	appendTo(t, f, ended("a", 1, result.TestPassed))
}

// newFolder is a results folder with its first event.
func newFolder(t *testing.T) *result.Folder {
	t.Helper()
	p := &result.Plan{Schema: result.PlanSchema, Shards: 1}
	var err error
	if p.Digest, err = p.ComputeDigest(); err != nil {
		t.Fatal(err)
	}
	folder, err := result.Create(filepath.Join(t.TempDir(), "results"), p, &result.Manifest{Schema: result.ManifestSchema, PlanDigest: p.Digest, Shard: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { folder.Close() })
	if err := folder.Append(result.Event{Type: result.RunStarted}); err != nil {
		t.Fatal(err)
	}
	return folder
}

// Prow's sidecar replaces the files of a job that still writes them.
func TestEventsGoOnInAFileThatWasReplaced(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there an open file is not replaced")
	}
	for what, replace := range map[string]func(events, with string) error{
		"in one step": func(events, with string) error { return os.Rename(with, events) },
		"and away for a moment": func(events, with string) error {
			if err := os.Remove(events); err != nil {
				return err
			}
			go func() {
				time.Sleep(time.Second)
				_ = os.Rename(with, events) // the events tell
			}()
			return nil
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			folder := newFolder(t)
			events := folder.Path(result.EventsFile)
			data, err := os.ReadFile(events)
			if err == nil {
				err = os.WriteFile(events+".new", data, 0o600)
			}
			if err == nil {
				err = replace(events, events+".new")
			}
			if err == nil {
				err = folder.Append(result.Event{Type: result.RunFinished, Interrupted: true})
			}
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			run, err := result.Load(folder.Dir())
			if err != nil || !run.Finished || !run.Interrupted || run.Executions != 1 {
				t.Errorf("%s: read %+v: %v", what, run, err)
			}
		})
	}
}

func TestEventsThatWereRemovedAreAnError(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there an open file is not removed")
	}
	for what, remove := range map[string]func(*result.Folder) error{
		"the file":   func(f *result.Folder) error { return os.Remove(f.Path(result.EventsFile)) },
		"the folder": func(f *result.Folder) error { return os.RemoveAll(f.Dir()) },
	} {
		synctest.Test(t, func(t *testing.T) {
			folder := newFolder(t)
			if err := remove(folder); err != nil {
				t.Fatal(err)
			}
			for range 2 { // and it stays one
				if err := folder.Append(result.Event{Type: result.RunFinished}); err == nil || !strings.Contains(err.Error(), result.EventsFile+" was removed while the run wrote it") {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}
