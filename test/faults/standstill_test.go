//go:build unix

package faults

import (
	"strings"
	"syscall"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
)

// Two runs contend for a cluster. The one that has it stands still for longer than
// its lock lives, and its test ends while the other has the cluster: that test
// proves nothing.
func TestARunnerThatStandsStillLosesWhatEndsMeanwhile(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.start(t, map[string][]string{serial: {e2etest.Wait}}, "--run-id", "first", "--case", "serial")
	first.await(t, "the first run's test runs", func() bool { return first.has(result.TestStarted, serial) })
	first.signal(t, syscall.SIGSTOP)

	second := s.start(t, map[string][]string{serial: {e2etest.Wait}}, "--run-id", "second", "--case", "serial", "--wait")
	second.await(t, "the second run's test runs", func() bool { return second.has(result.TestStarted, serial) })
	first.goOn(t)
	first.await(t, "the first run's e2e.test ends", func() bool { return first.suiteOver(t) })
	first.signal(t, syscall.SIGCONT)
	run, j := first.ends(t)
	ended(t, first, run, "serial:error")
	if got := reason(j, "serial"); !strings.Contains(got, "the cluster lock was lost") || !strings.Contains(got, "that it passed does not count") {
		t.Errorf("the test that ended meanwhile: %s", got)
	}

	// The first has taken nothing from the second.
	second.goOn(t)
	run, j = second.ends(t)
	ended(t, second, run, "serial:passed")
	onlySimulated(t, j)
	if !strings.Contains(second.said.String(), "replaced a holder of the cluster lock that had died: run first") {
		t.Errorf("the second run said\n%s", &second.said)
	}
	s.nothingLeft(t)
}

// A standstill that is shorter than the lock's life costs nothing.
func TestARunnerThatStandsStillBriefly(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := s.start(t, map[string][]string{serial: {e2etest.Wait}}, "--case", "serial")
	r.await(t, "the test runs", func() bool { return r.has(result.TestStarted, serial) })
	r.signal(t, syscall.SIGSTOP)
	r.goOn(t)
	r.await(t, "its e2e.test ends", func() bool { return r.suiteOver(t) })
	r.signal(t, syscall.SIGCONT)
	run, j := r.ends(t)
	ended(t, r, run, "serial:passed")
	onlySimulated(t, j)
	s.nothingLeft(t)
}
