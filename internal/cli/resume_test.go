//go:build unix

package cli

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/process"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
)

// events counts the whole lines of results.jsonl.
func (s *scene) events() int {
	data, _ := os.ReadFile(filepath.Join(s.dir, result.EventsFile))
	return bytes.Count(data, []byte("\n"))
}

// killed runs op-readiness as a process of its own, and kills it as soon as
// results.jsonl has so many lines. It reports false when the run ended first.
func (s *scene) killed(lines int, args ...string) bool {
	s.t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(s.environ(), "OP_READINESS_TEST_MAIN=1")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	over := false
	eventually(s.t, fmt.Sprintf("%d events, or the end of the run", lines), func() bool {
		select {
		case <-ended:
			over = true
		default:
		}
		return over || s.events() >= lines
	})
	_ = cmd.Process.Kill()
	<-ended
	if cmd.ProcessState.ExitCode() >= 0 && cmd.ProcessState.ExitCode() != verdict.ExitReady {
		s.t.Fatalf("the run failed: %s", &said)
	}
	return cmd.ProcessState.ExitCode() < 0
}

// dead waits until no e2e.test of the run lives.
func (s *scene) dead() {
	s.t.Helper()
	eventually(s.t, "every e2e.test of the killed run is gone", func() bool {
		for _, b := range s.results().Batches {
			if process.Alive(b.PID, b.PIDStart) {
				return false
			}
		}
		return true
	})
}

// passed returns the tests that have a pass that counts, by id.
func (s *scene) passed() map[string]bool {
	s.t.Helper()
	passed, run := map[string]bool{}, s.results()
	for id, attempts := range run.Attempts {
		last := attempts[len(attempts)-1]
		passed[id] = last.State == result.TestPassed && run.Sound(last.Batch)
	}
	return passed
}

// Killed after any event, and killed again while it goes on, a run loses nothing
// and runs nothing twice but what passed in the batch that was killed: nobody has
// read ginkgo's report of that.
func TestKilledAnywhereAndResumed(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts thirty runs")
	}
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	killed := 0
	for lines := 0; ; lines++ {
		s := newScene(t, e2etest.Script{Default: e2etest.Slow})
		if !s.killed(lines+1, s.args()...) {
			// From here on the run ends before it can be killed.
			if lines > 15 {
				break
			}
			continue
		}
		killed++
		s.dead()
		first := s.passed()
		if lines%3 == 0 && s.killed(s.events()+4, "run", "--resume", s.dir) {
			s.dead()
		}
		finished := s.passed()
		for id := range first {
			if first[id] && !finished[id] {
				t.Errorf("killed after %d events: the pass of %s is gone", lines+1, id)
			}
		}
		open := 0
		for i := range s.results().Plan.Tests {
			if !finished[s.results().Plan.Tests[i].ID] {
				open++
			}
		}
		var ids []string
		for _, b := range s.results().Batches {
			if b.SuiteRunID != "" {
				ids = append(ids, b.SuiteRunID)
			}
		}
		before := s.fake.Starts(t)
		what := fmt.Sprintf("resumed after %d events", lines+1)
		says := ": " + text.Count(open, "test") + " to run"
		if s.results().Manifest.Verdict != "" { // it had ended already
			says, ids = "nothing was changed", nil
		}
		s.want(what, s.main("run", "--resume", s.dir), verdict.ExitReady, says)
		run := s.results()
		for i := range run.Plan.Tests {
			test := &run.Plan.Tests[i]
			attempts := run.Attempts[test.ID]
			passed := 0
			for _, a := range attempts {
				if a.State == result.TestPassed && run.Sound(a.Batch) {
					passed++
				}
			}
			if passed != 1 {
				t.Errorf("%s: %s ended as %+v", what, test.Name, attempts)
			}
			again := 0
			for _, start := range s.fake.Starts(t)[len(before):] {
				if start == test.Name {
					again++
				}
			}
			if finished[test.ID] && again > 0 || !finished[test.ID] && again != 1 {
				t.Errorf("%s: %s was finished: %t, and started %d times after that", what, test.Name, finished[test.ID], again)
			}
		}
		if len(run.Problems) > 0 || len(run.Plan.Tests) != len(sceneTests) {
			t.Errorf("%s: problems %q", what, run.Problems)
		}
		asked := strings.Join(s.selectors, " ")
		for _, id := range ids {
			if !strings.Contains(asked, id) {
				t.Errorf("%s: what %s left in the cluster was not removed: %q", what, id, s.selectors)
			}
		}
		if left, err := filepath.Glob(filepath.Join(temp, "op-readiness-*")); err != nil || len(left) > 0 {
			t.Errorf("%s: temporary folders are left: %q, %v", what, left, err)
		}
		if t.Failed() {
			return
		}
	}
	if killed < 12 {
		t.Errorf("only %d runs were killed", killed)
	}
}

func TestResumeRefusesWhileE2ETestLives(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	t.Setenv("TMPDIR", t.TempDir()) // what is left there goes with the test
	if !s.killed(3, s.args()...) {
		t.Skip("the run was over before it could be killed")
	}
	s.dead() // of those that there are the first is named
	sleep := exec.Command("sleep", "1000")
	p, err := (&e2e.Binary{Path: sleep.Path}).Start(sleep.Args[1:], nil, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(s.dir, result.EventsFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	// The line before it may have been cut off.
	fmt.Fprintf(file, "\n{\"type\":\"batch-started\",\"batch\":{\"id\":\"77\",\"pid\":%d,\"pidStart\":%d}}\n{\"type\":\"test-st", p.PID, p.Start)
	file.Close()
	resume := []string{"run", "--resume", s.dir}
	s.want("while it lives", s.main(resume...), verdict.ExitInconclusive, fmt.Sprintf("the test binary of batch 77 still runs (process %d)", p.PID))
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	s.dead()
	got := s.main(resume...)
	if strings.Contains(got.stderr, "still runs") || len(s.results().Attempts) != len(sceneTests) {
		t.Errorf("when it is gone: %+v", got)
	}
}

// Whoever gives somebody a results folder to go on with does not choose the
// cluster that is tested, nor what is deleted there.
func TestResumeRefusesArgumentsThatMayNotBePassedOn(t *testing.T) {
	s := newScene(t, e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Fail, e2etest.Pass}}})
	s.want("the run", s.main(s.args("--e2e-arg=--prepull-images=true")...), verdict.ExitNotReady)
	path := filepath.Join(s.dir, result.ManifestFile)
	manifest, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before := len(s.fake.Starts(t))
	for forged, says := range map[string]string{
		"--host=https://elsewhere": "another API server",
		"--clean-start=true":       "deletes all namespaces",
		"--no-such-flag=1":         "knows no flag --no-such-flag",
		"--":                       "write it as --flag=value",
	} {
		s.write(path, strings.Replace(string(manifest), "--prepull-images=true", forged, 1))
		s.want(forged, s.main("run", "--resume", s.dir, "--retries", "1"), verdict.ExitUsage, "--resume "+s.dir, "run.json", says)
	}
	if after := len(s.fake.Starts(t)); after != before {
		t.Errorf("started %q", s.fake.Starts(t)[before:])
	}
	s.write(path, string(manifest))
	s.want("as it was", s.main("run", "--resume", s.dir, "--retries", "1"), verdict.ExitReady, ": 1 test to run")
}

// A finished run is not taken up again for nothing: what it says would change, but
// not the verdict.
func TestResumeOfAFinishedRun(t *testing.T) {
	s := newScene(t, e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Fail, e2etest.Fail, e2etest.Pass}}})
	resume := func(args ...string) said { return s.main(append([]string{"run", "--resume", s.dir}, args...)...) }
	s.want("the run", s.main(s.args("--retries", "1")...), verdict.ExitNotReady)
	before, asked := tree(t, s.dir), len(s.requests)
	s.want("no retries left", resume(), verdict.ExitNotReady, "NOT-READY", "no test is left to run; nothing was changed", "failed tests: 1; to run them again: op-readiness run --resume "+s.dir+" --retries 2")
	if after := tree(t, s.dir); !maps.Equal(before, after) || len(s.requests) != asked {
		t.Errorf("it asked %q of the cluster, and the folder was\n%v\nand is\n%v", s.requests[asked:], before, after)
	}
	// What has passed was observed with the arguments that it began with.
	s.want("other arguments of our own tests", resume("--suite-arg=--readiness.shorten=10"), verdict.ExitUsage, "goes on with a run as it began: leave --suite-arg out")
	s.lease = map[string]any{"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": map[string]any{"name": "op-readiness", "namespace": "default", "resourceVersion": "7"}, "spec": map[string]any{"holderIdentity": "somebody"}}
	s.want("a cluster that another has", resume("--retries", "2"), verdict.ExitInconclusive, "the cluster is locked by")
	if after := tree(t, s.dir); !maps.Equal(before, after) {
		t.Errorf("the folder was\n%v\nand is\n%v", before, after)
	}
	s.lease = nil
	s.want("one more try", resume("--retries", "2"), verdict.ExitReady, ": 1 test to run", "flaky", "attempt 3")
	before = tree(t, s.dir)
	s.want("all passed", resume("--retries", "9"), verdict.ExitReady, "READY", "nothing was changed")
	if after := tree(t, s.dir); !maps.Equal(before, after) {
		t.Errorf("the folder was\n%v\nand is\n%v", before, after)
	}
}

// tree is what a folder holds: sizes and times by name.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		found[path] = fmt.Sprint(info.Size(), info.ModTime())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
