//go:build unix

// Package e2e_test runs the real e2e.test on a simulated cluster through the
// whole of op-readiness: from a command line to a verdict and what it leaves
// on disk. Without the Kubernetes binaries in the cache its tests are skipped.
package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/windows-op-readiness/windows-op-readiness/internal/cli"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/process"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kwok"
	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
)

// TestMain lets this test binary play op-readiness where one is to be killed, and
// an API server with other flags.
func TestMain(m *testing.M) {
	playAPIServer()
	// A rehearsal calls this program by its name.
	if os.Getenv("OP_READINESS_TEST_MAIN") != "" || filepath.Base(os.Args[0]) == "op-readiness" {
		os.Exit(cli.Process())
	}
	os.Exit(m.Run())
}

// Quick cases that ask only the API server, and one that needs containers.
const (
	endpointSlice = "extra-network-endpointslice-objects"
	serviceStatus = "extra-network-service-status"
	deployment    = "extra-concurrent-deployment-lifecycle"
	rollingUpdate = "extra-concurrent-deployment-rolling-update"
	replicaSet    = "extra-concurrent-replicaset"
	gates         = "extra-scheduling-gates"
	hostPath      = "core-storage-hostpath-write"
)

// need skips the test when binaries are not in the cache, unless
// OP_READINESS_TEST_BUILD allows it to take the time to get them.
func need(t *testing.T) *binaries.Store {
	t.Helper()
	dir, err := binaries.DefaultDir(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	store := &binaries.Store{Dir: dir, Progress: os.Stderr}
	names := append(kwok.Needs(), binaries.E2ETest)
	missing, err := store.Missing(t.Context(), binaries.Pinned, names...)
	if err != nil {
		t.Fatal(err)
	}
	if len(missing) == 0 {
		return store
	}
	if os.Getenv("OP_READINESS_TEST_BUILD") == "" {
		t.Skipf("not in the cache: %v: run op-readiness e2e fetch with these names, or set OP_READINESS_TEST_BUILD=1", missing)
	}
	if _, err := store.Get(t.Context(), binaries.Pinned, names...); err != nil {
		t.Fatal(err)
	}
	return store
}

// up makes a simulated cluster that goes with the test.
func up(t *testing.T, change ...func(*kwok.Provider)) (*kwok.Provider, *provider.Cluster) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &kwok.Provider{Binaries: need(t), Dir: dir}
	for _, c := range change {
		c(p)
	}
	o := provider.DefaultRequest()
	o.Name = "pipeline"
	t.Cleanup(func() {
		if err := kwoktest.Remove(context.Background(), p, o.Name); err != nil {
			t.Error(err)
		}
	})
	made, err := kwoktest.Make(t.Context(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	return p, made
}

// opReadiness runs a command line in this process.
func opReadiness(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Main(t.Context(), args, cli.Surroundings{Environ: os.Environ(), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
	return code, out.String(), errs.String()
}

// background starts a command line as a process of its own.
func background(t *testing.T, args ...string) (cmd *exec.Cmd, said *bytes.Buffer) {
	t.Helper()
	cmd, said = exec.Command(os.Args[0], args...), &bytes.Buffer{}
	cmd.Env = append(os.Environ(), "OP_READINESS_TEST_MAIN=1")
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, said
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in time it did not happen: %s", what)
		}
	}
}

// events counts the events of a type that a folder holds.
func events(dir string, what result.EventType) int {
	data, _ := os.ReadFile(filepath.Join(dir, result.EventsFile))
	return bytes.Count(data, fmt.Appendf(nil, `"type":%q`, what))
}

func read(t *testing.T, dir string) *result.Run {
	t.Helper()
	run, err := result.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// outcomes judges a folder.
func outcomes(t *testing.T, dir string) map[string]verdict.CaseResult {
	t.Helper()
	out := map[string]verdict.CaseResult{}
	for _, c := range verdict.Judge(read(t, dir)).Cases {
		out[c.Case.ID] = c
	}
	return out
}

// passed reports a case that did not pass. Where the scheduler puts pods whose
// image the standard does not allow on Windows is chance, so it may be unproven.
func passed(t *testing.T, c verdict.CaseResult) {
	t.Helper()
	if c.Outcome != verdict.Passed {
		t.Errorf("%s is %s: %s", c.Case.ID, c.Outcome, c.Reason)
	}
}

func caseArgs(ids ...string) []string { return []string{"--case", strings.Join(ids, ",")} }

func TestFromNothingToAVerdict(t *testing.T) {
	t.Parallel()
	need(t)
	dir := filepath.Join(t.TempDir(), "results")
	args := append([]string{"run", "--cluster", "kwok", "--procs", "1", "--report-dir", dir}, caseArgs(endpointSlice, serviceStatus, deployment, hostPath)...)
	code, stdout, stderr := opReadiness(t, args...)
	if code != verdict.ExitInconclusive {
		t.Fatalf("exit code %d\n%s\n%s", code, stdout, stderr)
	}
	got := outcomes(t, dir)
	for _, id := range []string{endpointSlice, serviceStatus, deployment} {
		passed(t, got[id])
	}
	if c := got[hostPath]; c.Outcome != verdict.NotTested || !strings.Contains(c.Reason, "simulated") {
		t.Errorf("%s is %s: %s", hostPath, c.Outcome, c.Reason)
	}
	run := read(t, dir)
	if len(run.Batches) != 1 || run.Batches[0].Exit != "exit code 0" || len(run.Suites) > 0 || len(run.Problems) > 0 {
		t.Errorf("batches %+v, suite failures %+v, problems %q", run.Batches, run.Suites, run.Problems)
	}
	if m := run.Manifest; m.E2EVersion != binaries.Pinned || m.Cluster.ServerVersion != binaries.Pinned || len(m.Cluster.Nodes) != 4 || *m.ExitCode != code {
		t.Errorf("manifest %+v", m)
	}
	for name, says := range map[string]string{
		"junit_core-network_01.xml":    endpointSlice,
		"junit_core-concurrent_01.xml": deployment,
		"junit_core-storage_01.xml":    "simulated",
		"metadata.json":                binaries.Pinned,
		"logs/batch-01.log":            "Running Suite: Kubernetes e2e suite",
	} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(data), says) {
			t.Errorf("%s does not say %q: %v", name, says, err)
		}
	}
	if data, _ := os.ReadFile(filepath.Join(dir, "junit_core-network_01.xml")); bytes.Count(data, []byte("<testcase")) != 2 {
		t.Errorf("JUnit holds more than the selected tests:\n%.2000s", data)
	}
	if code, stdout, _ := opReadiness(t, "report", dir, "-o", "json"); code != verdict.ExitInconclusive || !strings.Contains(stdout, "inconclusive") {
		t.Errorf("report: exit code %d\n%s", code, stdout)
	}
	if _, stdout, _ := opReadiness(t, "cluster", "list", "-o", "json"); strings.Contains(stdout, run.Manifest.Target.Made[len("kwok/"):]) {
		t.Errorf("the run's cluster is left behind:\n%s", stdout)
	}
}

func TestKilledHalfWayAndResumed(t *testing.T) {
	t.Parallel()
	_, made := up(t)
	ids := []string{endpointSlice, deployment, rollingUpdate, replicaSet, gates}
	for _, started := range []int{1, 3} {
		dir := filepath.Join(t.TempDir(), "results")
		cmd, said := background(t, append([]string{"run", "--kubeconfig", made.Kubeconfig, "--report-dir", dir}, caseArgs(ids...)...)...)
		eventually(t, "a test runs", func() bool { return events(dir, result.TestStarted) >= started })
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		run := read(t, dir)
		eventually(t, "e2e.test is gone", func() bool {
			return !slices.ContainsFunc(run.Batches, func(b result.Batch) bool { return process.Alive(b.PID, b.PIDStart) })
		})
		before := read(t, dir)
		if before.Finished || len(before.Attempts) == len(ids) {
			t.Fatalf("the run was over before it was killed: %s", said)
		}
		code, stdout, stderr := opReadiness(t, "run", "--resume", dir)
		if code != verdict.ExitInconclusive { // additional cases prove no requirement
			t.Errorf("exit code %d\n%s\n%s", code, stdout, stderr)
		}
		after := read(t, dir)
		for i := range after.Plan.Tests {
			id := after.Plan.Tests[i].ID
			// What passed in the process that was killed with the run passes once
			// more: nobody has read ginkgo's report of it.
			a, b := after.Attempts[id], before.Attempts[id]
			if len(a) != len(b)+1 || a[len(b)].State != result.TestPassed || !after.Sound(a[len(b)].Batch) {
				t.Errorf("%s ended as %+v", after.Plan.Tests[i].Name, a)
			} else if !slices.EqualFunc(a[:len(b)], b, func(x, y result.TestRun) bool { return reflect.DeepEqual(x, y) }) {
				t.Errorf("%s was finished as %+v, and is now %+v", after.Plan.Tests[i].Name, b, a)
			}
		}
		if len(after.Batches) < 2 || after.Executions != 2 || len(after.Problems) > 0 {
			t.Errorf("%d batches, %d executions, problems %q", len(after.Batches), after.Executions, after.Problems)
		}
		for _, id := range ids {
			passed(t, outcomes(t, dir)[id])
		}
		config, err := clientcmd.BuildConfigFromFlags("", made.Kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		left, err := kubernetes.NewForConfigOrDie(config).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{LabelSelector: "e2e-run=" + before.Batches[0].SuiteRunID})
		if err != nil || len(left.Items) > 0 {
			t.Errorf("%d namespaces of the killed run are left: %v", len(left.Items), err)
		}
	}
}

func TestAPIServerKilledHalfWay(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits for minutes until a server counts as gone")
	}
	p, made := up(t)
	dir := filepath.Join(t.TempDir(), "results")
	cmd, said := background(t, append([]string{"run", "--kubeconfig", made.Kubeconfig, "--report-dir", dir}, caseArgs(serviceStatus, replicaSet, gates, deployment)...)...)
	eventually(t, "a test has finished, and another runs", func() bool {
		return events(dir, result.TestFinished) >= 1 && events(dir, result.TestStarted) >= 2
	})
	pid, err := os.ReadFile(filepath.Join(p.Dir, made.Name, "kwok", "clusters", made.Name, "pids", "kube-apiserver.pid"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("kill", "-9", strings.TrimSpace(string(pid))).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != verdict.ExitInconclusive {
		t.Fatalf("exit code %d: %s", code, said)
	}
	passed, errored := 0, 0
	for _, c := range outcomes(t, dir) {
		switch c.Outcome {
		case verdict.Passed:
			passed++
		case verdict.Error:
			errored++
			if !strings.Contains(c.Reason, "API server") && !strings.Contains(c.Reason, "INTERRUPTED") {
				t.Errorf("%s: %s", c.Case.ID, c.Reason)
			}
		default:
			t.Errorf("%s is %s: %s", c.Case.ID, c.Outcome, c.Reason)
		}
	}
	if passed == 0 || errored == 0 {
		t.Errorf("%d passed, %d errors", passed, errored)
	}
}
