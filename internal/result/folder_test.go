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
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/golden"

	"github.com/windows-op-readiness/windows-op-readiness/internal/result"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
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
	run, err := result.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func started(id string) result.Event {
	return result.Event{Time: at, Type: result.TestStarted, Test: &result.TestRun{ID: id, Name: "test " + id, Attempt: 1, Batch: "01"}}
}

func ended(id string, attempt int, state result.TestState) result.Event {
	return result.Event{Time: at, Type: result.TestFinished, Test: &result.TestRun{ID: id, Name: "test " + id, Attempt: attempt, Batch: "01", State: state, Seconds: 1.5, Message: "ümläut\n\"quoted\""}}
}

// everyEvent has an event of each type, with every field set.
func everyEvent() []result.Event {
	batch := result.Batch{ID: "01", Phase: specs.Serial, Conditions: someConditions, Tests: 3, PID: 7, PIDStart: 1722513600000, SuiteRunID: "u", Log: "logs/batch-01.log"}
	done := result.Batch{ID: "01", Exit: "exit code 1"}
	seen := ended("a", 1, result.TestFailed)
	seen.Test.Unobserved = "the watch broke"
	return []result.Event{
		{Time: at, Type: result.RunStarted},
		{Time: at, Type: result.CaseDecided, Case: &result.Decision{ID: "case-c", Outcome: "not-tested", Reason: "no <node> & no kubectl"}},
		{Time: at, Type: result.BatchStarted, Batch: &batch},
		{Time: at, Type: result.BatchSuite, Batch: &batch},
		started("a"),
		{Time: at, Type: result.PodObserved, Pod: &result.Pod{
			Test: "a", Attempt: 1, Namespace: "n", Name: "p", Node: "w", OS: specs.Windows, WindowsBuild: "10.0.20348", Simulated: true,
			RuntimeClass: "y", Images: []string{"i"}, Phases: []string{"Pending", "Running"}, SchedulingFailure: "none fits", Observed: at,
		}},
		seen,
		ended("a", 2, result.TestPassed),
		started("b"),
		{Time: at, Type: result.SuiteFailed, Suite: &result.Suite{Batch: "01", Node: "AfterSuite", Message: "left"}},
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
	batch := *events[2].Batch
	batch.Exit = "exit code 1"
	for what, pair := range map[string][2]any{
		"attempts":   {run.Attempts, map[string][]result.TestRun{"a": {*events[6].Test, *events[7].Test}}},
		"unfinished": {run.Unfinished, map[string]result.TestRun{"b": *events[8].Test}},
		"decisions":  {run.Decisions, map[string]result.Decision{"case-c": *events[1].Case}},
		"batches":    {run.Batches, []result.Batch{batch}},
		"pods":       {run.Pods, []result.Pod{*events[5].Pod}},
		"suites":     {run.Suites, []result.Suite{*events[9].Suite}},
		"end":        {[]any{run.Finished, run.Interrupted, run.Executions}, []any{true, true, 1}},
		"manifest":   {run.Manifest, smallManifest(run.Plan)},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s: read %+v, wrote %+v", what, pair[0], pair[1])
		}
	}
	if got, want := run.Durations(), map[string]time.Duration{"a": 1500 * time.Millisecond}; !reflect.DeepEqual(got, want) {
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
	events := []result.Event{
		{Time: at, Type: result.RunStarted}, started("a"), ended("a", 1, result.TestFailed), ended("a", 2, result.TestPassed), {Time: at, Type: result.RunFinished},
	}
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
		appendTo(t, again, ended("c", 1, result.TestPassed))
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
	var wait sync.WaitGroup
	for i := range 50 {
		wait.Go(func() {
			if err := f.Append(started("a"), ended("a", i+1, result.TestFailed)); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if run := read(t, dir); len(run.Attempts["a"]) != 50 || len(run.Problems) > 0 {
		t.Errorf("%d attempts, problems %q", len(run.Attempts["a"]), run.Problems)
	}
}

func TestLongMessagesAreCut(t *testing.T) {
	dir := t.TempDir()
	f := create(t, dir)
	long := ended("a", 1, result.TestFailed)
	long.Test.Message = strings.Repeat("\x01", 10<<20)
	long.Test.Unobserved = strings.Repeat("ü", 1<<20)
	appendTo(t, f, long, result.Event{Type: result.SuiteFailed, Suite: &result.Suite{Message: strings.Repeat("\xff", 10<<20)}})
	if len(long.Test.Message) != 10<<20 {
		t.Error("the caller's event was changed")
	}
	run := read(t, dir)
	if len(run.Problems) > 0 {
		t.Fatalf("problems %q", run.Problems)
	}
	for what, text := range map[string]string{"message": run.Attempts["a"][0].Message, "unobserved": run.Attempts["a"][0].Unobserved, "suite": run.Suites[0].Message} {
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
	if info, err := os.Stat("/dev/full"); err != nil || info.Mode()&fs.ModeCharDevice == 0 {
		t.Skip("there is no /dev/full here")
	}
	dir := t.TempDir()
	f := create(t, dir)
	f.Close()
	path := filepath.Join(dir, result.EventsFile)
	if err := errors.Join(os.Remove(path), os.Symlink("/dev/full", path)); err != nil {
		t.Fatal(err)
	}
	f, err := result.Reopen(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Append(ended("a", 1, result.TestPassed)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a full disk: %v", err)
	}
	// From then on nothing is recorded: a gap in the middle would go unseen.
	if err := errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o644)); err != nil {
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
		_ = f
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

// Prow's sidecar replaces the files of a job that still writes them.
func TestEventsGoOnInAFileThatWasReplaced(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there an open file is not replaced")
	}
	dir := filepath.Join(t.TempDir(), "results")
	p := &result.Plan{Schema: result.PlanSchema, Shards: 1}
	var err error
	if p.Digest, err = p.ComputeDigest(); err != nil {
		t.Fatal(err)
	}
	folder, err := result.Create(dir, p, &result.Manifest{Schema: result.ManifestSchema, PlanDigest: p.Digest, Shard: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	add := func(e result.Event) {
		if err := folder.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	add(result.Event{Type: result.RunStarted})
	events := filepath.Join(dir, result.EventsFile)
	data, err := os.ReadFile(events)
	if err == nil {
		err = os.WriteFile(events+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(events+".new", events)
	}
	if err != nil {
		t.Fatal(err)
	}
	add(result.Event{Type: result.RunFinished, Interrupted: true})
	run, err := result.Read(dir)
	if err != nil || !run.Finished || !run.Interrupted || run.Executions != 1 {
		t.Errorf("read %+v: %v", run, err)
	}
}
