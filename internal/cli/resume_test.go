//go:build unix

package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/e2e/e2etest"
	"github.com/windows-op-readiness/windows-op-readiness/internal/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/verdict"
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
	// What a killed process leaves goes with the test.
	cmd.Env = append(s.environ(), "OP_READINESS_TEST_MAIN=1", "TMPDIR="+s.t.TempDir())
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
			if e2e.Alive(b.PID, b.PIDStart) {
				return false
			}
		}
		return true
	})
}

// Killed after any event, and killed again while it goes on, a run loses
// nothing and runs nothing twice.
func TestKilledAnywhereAndResumed(t *testing.T) {
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
		finished := map[string]bool{}
		remember := func() {
			for id, attempts := range s.results().Attempts {
				if attempts[len(attempts)-1].State == result.TestPassed {
					finished[id] = true
				}
			}
		}
		remember()
		if lines%3 == 0 && s.killed(s.events()+4, "run", "--resume", s.dir) {
			s.dead()
			remember()
		}
		var ids []string
		for _, b := range s.results().Batches {
			if b.SuiteRunID != "" {
				ids = append(ids, b.SuiteRunID)
			}
		}
		before := s.fake.Starts(t)
		what := fmt.Sprintf("resumed after %d events", lines+1)
		s.want(what, s.main("run", "--resume", s.dir), verdict.ExitReady)
		run := s.results()
		for i := range run.Plan.Tests {
			test := &run.Plan.Tests[i]
			attempts := run.Attempts[test.ID]
			passed := 0
			for _, a := range attempts {
				if a.State == result.TestPassed {
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
	if !s.killed(3, s.args()...) {
		t.Skip("the run was over before it could be killed")
	}
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
	s.want("while it lives", s.main(resume...), verdict.ExitInconclusive, fmt.Sprintf("e2e.test of batch 77 still runs (process %d)", p.PID))
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
