//go:build unix

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
)

// standard writes spec files of one case for each of these tests, and returns
// their folder.
func standard(t *testing.T, cases map[string]struct{ focus, phase, timeout string }) string {
	t.Helper()
	spec := "category: Core.Network\ncases:\n"
	for id, c := range cases {
		spec += fmt.Sprintf("  - id: %s\n    requirement: The test passes.\n    proof: full\n    tests:\n      - focus: '%s( \\[|$)'\n        expect: 1\n    conditions:\n      placement:\n        - {pods: ., os: windows}\n    phase: %s\n    duration: 1s\n    timeout: %s\n", id, c.focus, c.phase, c.timeout)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "core-network.yaml"), []byte(spec), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// sound fails the test unless the output of every e2e.test, ginkgo's report and
// the exit code were read and told the same.
func sound(t *testing.T, run *result.Run) {
	t.Helper()
	for _, b := range run.Batches {
		if !run.Sound(b.ID) {
			t.Errorf("batch %+v does not count", b)
		}
	}
	if len(run.Suites) > 0 || len(run.Problems) > 0 {
		t.Errorf("suite failures %+v, problems %q", run.Suites, run.Problems)
	}
}

// The real e2e.test contradicts itself neither when tests fail, nor when one is
// over its time limit, nor when it is interrupted.
func TestHonestRunsAreReconciled(t *testing.T) {
	t.Parallel()
	_, made := up(t)
	quick := struct{ focus, phase, timeout string }{`\[sig-network\] EndpointSlice should create Endpoints and EndpointSlices for Pods matching a Service`, "parallel", "10m"}
	specs := standard(t, map[string]struct{ focus, phase, timeout string }{
		"case-passes": quick,
		"case-hangs":  {`\[sig-apps\] Deployment RollingUpdateDeployment should delete old pods and create new ones`, "parallel", "1s"},
		"case-fails":  {`\[sig-windows\] .*Memory Limits .*Allocatable node memory should be equal to a calculated allocatable memory value`, "serial", "10m"},
	})
	dir := filepath.Join(t.TempDir(), "results")
	code, stdout, stderr := opReadiness(t, "run", "--kubeconfig", made.Kubeconfig, "--spec-dir", specs, "--report-dir", dir, "--preflight", "warn", "--procs", "1")
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("exit code %d\n%s\n%s", code, stdout, stderr)
	}
	run := read(t, dir)
	if code != verdict.ExitNotReady || len(run.Batches) < 2 {
		t.Errorf("exit code %d, batches %+v\n%s\n%s", code, run.Batches, stdout, stderr)
	}
	sound(t, run)
	for id, want := range map[string]struct{ state, says string }{
		"case-passes": {"passed", ""}, "case-hangs": {"failed", "[TIMEDOUT] it did not end within its time limit of 1s"}, "case-fails": {"failed", "[FAILED]"},
	} {
		for i := range run.Plan.Cases {
			if c := &run.Plan.Cases[i]; c.ID == id {
				a := run.Attempts[c.TestIDs[0]]
				if len(a) != 1 || string(a[0].State) != want.state || !strings.Contains(a[0].Message, want.says) {
					t.Errorf("%s ended as %+v", id, a)
				}
			}
		}
	}
	stopped := slices.ContainsFunc(run.Batches, func(b result.Batch) bool { return b.Stopped == "a test hung" })
	if !stopped {
		t.Errorf("no batch was stopped for the test that hung: %+v", run.Batches)
	}

	dir = filepath.Join(t.TempDir(), "results")
	cmd, said := background(t, append([]string{"run", "--kubeconfig", made.Kubeconfig, "--report-dir", dir}, caseArgs(endpointSlice, rollingUpdate, replicaSet)...)...)
	eventually(t, "a test runs after another", func() bool { return events(dir, result.TestStarted) >= 2 })
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	run = read(t, dir)
	if cmd.ProcessState.ExitCode() != verdict.ExitInterrupted || !run.Interrupted || run.Batches[0].Stopped != "as asked" {
		t.Errorf("exit code %d, batches %+v: %s", cmd.ProcessState.ExitCode(), run.Batches, said)
	}
	sound(t, run)
	code, stdout, stderr = opReadiness(t, "run", "--resume", dir)
	if code != verdict.ExitInconclusive { // additional cases prove no requirement
		t.Errorf("exit code %d\n%s\n%s", code, stdout, stderr)
	}
	before := run
	run = read(t, dir)
	sound(t, run)
	for id, attempts := range run.Attempts {
		first := before.Attempts[id]
		if last := attempts[len(attempts)-1]; last.State != result.TestPassed || len(first) == 1 && first[0].State == result.TestPassed && len(attempts) != 1 {
			t.Errorf("%s ended as %+v", id, attempts)
		}
	}
}
