//go:build unix

package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kwok"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
)

// steeredSpecs are cases whose tests need no container to run, and say nothing
// about the operating system of their pods.
func steeredSpecs() string {
	const (
		slices     = `\[sig-network\] EndpointSlice should create Endpoints and EndpointSlices for Pods matching a Service( \[|$)`
		deployment = `\[sig-apps\] Deployment RollingUpdateDeployment should delete old pods and create new ones( \[|$)`
		replicaSet = `\[sig-apps\] ReplicaSet Replace and Patch tests( \[|$)`
	)
	text := "category: Core.Network\ncases:\n"
	for _, c := range []struct {
		id, focus  string
		phase      specs.Phase
		conditions string
	}{
		{"unsteered", slices, specs.Parallel, `placement: [{pods: '^pod[12]$', os: windows}]`},
		{"steered", slices, specs.Parallel, `steer: windows, placement: [{pods: '^pod[12]$', os: windows}]`},
		{"client-on-windows", slices, specs.Parallel, `steer: windows, steerPods: ^pod1$, placement: [{pods: ^pod1$, os: windows}, {pods: ^pod2$, os: linux}]`},
		{"client-on-linux", slices, specs.Parallel, `steer: linux, steerPods: ^pod1$, placement: [{pods: ^pod1$, os: linux}, {pods: ^pod2$, os: any}]`},
		{"one-on-each", slices, specs.Parallel, `steer: windows, placement: [{pods: '^pod[12]$', os: any, including: [linux, windows]}]`},
		{"deployment", deployment, specs.Parallel, `steer: windows, placement: [{pods: ^test-rolling-update-, os: windows}]`},
		{"replicaset", replicaSet, specs.Serial, `steer: windows, placement: [{pods: ^test-rs-, os: windows}]`},
	} {
		kind, means := specs.Requirement, ""
		if c.id == "client-on-linux" {
			kind = specs.Additional // it asks for no pod on Windows
		}
		if strings.Contains(c.conditions, "steer:") {
			means = "steer"
		}
		text += fmt.Sprintf(`  - id: %s
    requirement: Pods are where %[1]s says.
    kind: %s
    proof: part
    missing: Containers that run.
    tests: [{focus: '%s', expect: 1}]
    needs: {means: [%s]}
    conditions: {%s}
    phase: %s
    duration: 20s
    timeout: 5m
`, c.id, kind, c.focus, means, c.conditions, c.phase)
	}
	return text
}

// site is a simulated cluster and the cases that are run on it.
type site struct {
	t          *testing.T
	kubeconfig string
	specs      string
	client     kubernetes.Interface
	dynamic    dynamic.Interface
}

func newSite(t *testing.T, change ...func(*kwok.Provider)) *site {
	t.Helper()
	_, made := up(t, change...)
	return siteOn(t, made)
}

func siteOn(t *testing.T, made *provider.Cluster) *site {
	t.Helper()
	s := &site{t: t, kubeconfig: made.Kubeconfig, specs: t.TempDir()}
	if err := os.WriteFile(filepath.Join(s.specs, "core-network.yaml"), []byte(steeredSpecs()), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", made.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	s.client, s.dynamic = kubernetes.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config)
	return s
}

// args are those of a run of cases.
func (s *site) args(dir, cases string, more ...string) []string {
	return append([]string{"run", "--kubeconfig", s.kubeconfig, "--spec-dir", s.specs, "--report-dir", dir, "--case", cases}, more...)
}

// run runs cases to their end, and returns what is in the results folder.
func (s *site) run(t *testing.T, cases string, more ...string) (string, *result.Run, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "results")
	code, stdout, stderr := opReadiness(t, s.args(dir, cases, more...)...)
	if code != verdict.ExitInconclusive && code != verdict.ExitReady {
		t.Fatalf("exit code %d\n%s\n%s", code, stdout, stderr)
	}
	done := read(t, dir)
	if announced := fmt.Sprintf(": %d test", len(done.Attempts)); !strings.Contains(stderr, announced) {
		t.Errorf("%d tests ran, and the run said at first\n%s", len(done.Attempts), stderr)
	}
	return dir, done, stderr
}

// taint keeps pods off the Windows nodes that do not tolerate it.
func (s *site) taint(on bool) {
	s.t.Helper()
	taints := "null"
	if on {
		taints = `[{"key": "os", "value": "windows", "effect": "NoSchedule"}]`
	}
	for _, name := range []string{"windows-1", "windows-2"} {
		if _, err := s.client.CoreV1().Nodes().Patch(s.t.Context(), name, types.MergePatchType, fmt.Appendf(nil, `{"spec": {"taints": %s}}`, taints), metav1.PatchOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// cordoned lists the nodes that are unschedulable.
func (s *site) cordoned(t *testing.T) string {
	t.Helper()
	list, err := s.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range list.Items {
		if n.Spec.Unschedulable {
			names = append(names, n.Name)
		}
	}
	return strings.Join(names, " ")
}

var mutatingPolicies = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicies"}

// policies lists the admission policies.
func (s *site) policies(t *testing.T) string {
	t.Helper()
	list, err := s.dynamic.Resource(mutatingPolicies).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range list.Items {
		names = append(names, p.GetName())
	}
	return strings.Join(names, " ")
}

// clearLock does what the error of a refused run says.
func (s *site) clearLock(t *testing.T) {
	t.Helper()
	err := s.client.CoordinationV1().Leases("default").Delete(context.WithoutCancel(t.Context()), "op-readiness", metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

// want compares the outcome of a case, and what its reason says.
func want(t *testing.T, c verdict.CaseResult, outcome verdict.Outcome, says ...string) {
	t.Helper()
	if c.Outcome != outcome {
		t.Errorf("%s is %s: %s; want %s", c.Case.ID, c.Outcome, c.Reason, outcome)
	}
	for _, text := range says {
		if !strings.Contains(c.Reason, text) {
			t.Errorf("%s: the reason is %q, want %q in it", c.Case.ID, c.Reason, text)
		}
	}
}

// placement counts, for a case, the pods by role (what their names begin with)
// and operating system, as results.jsonl has them.
func placement(run *result.Run, id string, roles ...string) string {
	counts := map[string]int{}
	for _, c := range run.Plan.Cases {
		if c.ID != id {
			continue
		}
		for _, p := range run.Pods {
			if !slices.Contains(c.TestIDs, p.Test) || p.Node == "" {
				continue
			}
			role := "other"
			for _, r := range roles {
				if strings.HasPrefix(p.Name, r) {
					role = r
				}
			}
			counts[fmt.Sprintf("%s on %s", role, p.OS)]++
		}
	}
	var out []string
	for what, n := range counts {
		out = append(out, fmt.Sprintf("%d %s", n, what))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// steeredCases are cases of three conditions, and where their pods are to be.
var steeredCases = map[string]string{
	"unsteered":         "1 pod1 on linux, 1 pod2 on linux",
	"steered":           "1 pod1 on windows, 1 pod2 on windows",
	"client-on-windows": "1 pod1 on windows, 1 pod2 on linux",
	"client-on-linux":   "1 pod1 on linux, 1 pod2 on linux",
	"deployment":        "2 test-rolling-update on windows",
}

// steersThreeAtOnce runs cases of several conditions, three tests at a time, and shows that
// every pod was where its own case wants it.
func (s *site) steersThreeAtOnce(t *testing.T) {
	t.Helper()
	dir, run, _ := s.run(t, "unsteered,steered,client-on-windows,client-on-linux,deployment,replicaset", "--procs", "3")
	got := outcomes(t, dir)
	want(t, got["unsteered"], verdict.Unproven, "pod pod1 ran on Linux, and the case wants it on Windows")
	for _, id := range []string{"steered", "client-on-windows", "client-on-linux", "deployment", "replicaset"} {
		want(t, got[id], verdict.Passed)
	}
	for id, counts := range steeredCases {
		if got := placement(run, id, "pod1", "pod2", "test-rolling-update"); got != counts {
			t.Errorf("%s: %s, want %s", id, got, counts)
		}
	}
	most := 0
	all := spans(dir)
	for _, sp := range all {
		conditions := map[result.RunConditions]bool{}
		for _, other := range all {
			if other.start.Compare(sp.start) <= 0 && sp.start.Before(other.end) {
				conditions[other.conditions] = true
			}
		}
		most = max(most, len(conditions))
	}
	if most < 3 {
		t.Errorf("at most %d conditions were in force at once: %+v", most, all)
	}
	if left := s.policies(t); left != "" {
		t.Errorf("the run left %s", left)
	}
}

func TestSteeringByPolicy(t *testing.T) {
	t.Parallel()
	_, made := up(t)
	s := siteOn(t, made)
	s.taint(true)
	s.steersThreeAtOnce(t)

	t.Run("a slow API server", func(t *testing.T) {
		proxy, slow := kwoktest.NewProxy(t, made), *s
		slow.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
		proxy.Kubeconfig(t, slow.kubeconfig)
		proxy.BreakOnly(func(*http.Request) bool { return true }, proxy.Delay(200*time.Millisecond))
		slow.steersThreeAtOnce(t)
	})

	t.Run("a process that is killed before it is steered", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "results")
		cmd, said := background(t, s.args(dir, "steered,client-on-windows", "--procs", "2")...)
		var killed *result.Batch
		eventually(t, "a process says its id", func() bool {
			for _, e := range eventsOf(dir) {
				if e.Type == result.BatchSuite {
					killed = e.Batch
				}
			}
			return killed != nil
		})
		if err := syscall.Kill(killed.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); exitCode(err) != verdict.ExitInconclusive {
			t.Errorf("the run ended with %v: %s", err, said)
		}
		for id, c := range outcomes(t, dir) {
			switch {
			case len(c.Tests) == 0:
			case c.Outcome == verdict.Error && c.Tests[0].Test.Conditions == killed.Conditions: // it was held no more
				want(t, c, verdict.Error, "e2e.test ran none of 1 test: e2e.test ended (signal: killed)")
			default:
				want(t, c, verdict.Passed)
				if got := placement(read(t, dir), id, "pod1", "pod2"); got != steeredCases[id] {
					t.Errorf("%s: %s, want %s", id, got, steeredCases[id])
				}
			}
		}
		if left := s.policies(t); left != "" {
			t.Errorf("the run left %s", left)
		}
	})

	t.Run("off", func(t *testing.T) {
		dir, run, stderr := s.run(t, "unsteered,steered", "--steer", "off", "--non-blocking-taints", "os")
		got := outcomes(t, dir)
		want(t, got["unsteered"], verdict.Unproven)
		want(t, got["steered"], verdict.NotTested, "were not steered")
		if counts := placement(run, "unsteered", "pod1", "pod2"); counts != "1 pod1 on linux, 1 pod2 on linux" {
			t.Errorf("unsteered: %s", counts)
		}
		if !strings.Contains(stderr, "every Windows node is tainted (os=windows:NoSchedule)") {
			t.Errorf("nothing says what tainted Windows nodes mean: %s", stderr)
		}
	})

	t.Run("killed, and a new run", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "results")
		cmd, said := background(t, s.args(dir, "steered", "--non-blocking-taints", "os")...)
		eventually(t, "a test runs", func() bool { return events(dir, result.TestStarted) > 0 })
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if left := s.policies(t); !strings.HasPrefix(left, "op-readiness-steering-") {
			t.Fatalf("there is %q after a kill; the run said %s", left, said)
		}
		s.clearLock(t)
		// Whatever its way of steering is.
		_, run, _ := s.run(t, "unsteered", "--steer", "off", "--non-blocking-taints", "os")
		if counts := placement(run, "unsteered", "pod1", "pod2"); counts != "1 pod1 on linux, 1 pod2 on linux" {
			t.Errorf("the policy of the killed run is in force: %s", counts)
		}
		if left := s.policies(t); left != "" {
			t.Errorf("the new run left %s", left)
		}
	})

	t.Run("lock", s.locks)
}

// locks shows with whole runs who is let in.
func (s *site) locks(t *testing.T) {
	s.taint(false)
	temp := t.TempDir()
	shard := func(name, n string) []string {
		return s.args(filepath.Join(temp, name), "steered,client-on-linux,replicaset", "--shards", "2", "--shard", n, "--run-id", "nightly")
	}
	one, oneSaid := background(t, shard("one", "1")...)
	two, twoSaid := background(t, shard("two", "2")...)
	both := func() (first, second time.Time) {
		return startOf(filepath.Join(temp, "one"), specs.Parallel), startOf(filepath.Join(temp, "two"), specs.Parallel)
	}
	eventually(t, "both shards run a test", func() bool {
		first, second := both()
		return !first.IsZero() && !second.IsZero()
	})
	code, _, stderr := opReadiness(t, s.args(filepath.Join(temp, "other"), "steered", "--run-id", "other")...)
	if code != verdict.ExitInconclusive || !strings.Contains(stderr, "the cluster is locked by run nightly, shard ") || !strings.Contains(stderr, "--wait") {
		t.Errorf("another run beside: exit code %d: %s", code, stderr)
	}
	waiting, waitingSaid := background(t, s.args(filepath.Join(temp, "waiting"), "unsteered", "--wait")...)
	for cmd, said := range map[*exec.Cmd]*bytes.Buffer{one: oneSaid, two: twoSaid} {
		if err := cmd.Wait(); err != nil && exitCode(err) != verdict.ExitInconclusive {
			t.Errorf("a shard ended with %v: %s", err, said)
		}
	}
	if err := waiting.Wait(); exitCode(err) != verdict.ExitInconclusive && err != nil {
		t.Errorf("the run that waited ended with %v", err)
	}
	if !strings.Contains(waitingSaid.String(), "waiting: the cluster is locked by run nightly") {
		t.Errorf("the run that waited said %s", waitingSaid)
	}
	// What ran when, by results.jsonl.
	var serial, parallel []span
	for _, name := range []string{"one", "two"} {
		for _, sp := range spans(filepath.Join(temp, name)) {
			if sp.phase == specs.Serial {
				serial = append(serial, sp)
			} else {
				parallel = append(parallel, sp)
			}
		}
	}
	if len(parallel) != 2 || !parallel[0].overlaps(parallel[1]) {
		t.Errorf("the parallel batches of two shards did not run together: %v", parallel)
	}
	waited := spans(filepath.Join(temp, "waiting"))
	if len(serial) != 1 || len(waited) != 1 {
		t.Fatalf("%d serial batches, %d of the run that waited", len(serial), len(waited))
	}
	for _, p := range parallel {
		if serial[0].overlaps(p) {
			t.Errorf("the serial batch %v did not wait for %v", serial[0], p)
		}
	}
	for _, p := range append(parallel, serial...) {
		if waited[0].overlaps(p) {
			t.Errorf("the run that waited, %v, ran beside %v", waited[0], p)
		}
	}
	for _, name := range []string{"one", "two"} {
		for _, c := range outcomes(t, filepath.Join(temp, name)) {
			if len(c.Tests) > 0 && len(c.Tests[0].Attempts) > 0 && c.Outcome != verdict.Passed {
				t.Errorf("%s is %s: %s", c.Case.ID, c.Outcome, c.Reason)
			}
		}
	}

	put := func(content, holder string) {
		t.Helper()
		seconds := int32(1)
		lease := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: "op-readiness", Annotations: map[string]string{"op-readiness/lock": content}},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds},
		}
		if _, err := s.client.CoordinationV1().Leases("default").Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	put(`{"schema": 2, "who": "knows"}`, "tomorrow")
	code, _, stderr = opReadiness(t, s.args(filepath.Join(temp, "older"), "unsteered")...)
	if code != verdict.ExitInconclusive || !strings.Contains(stderr, "a newer version of op-readiness wrote it") || !strings.Contains(stderr, "kubectl delete lease op-readiness") {
		t.Errorf("a lease of a newer version: exit code %d: %s", code, stderr)
	}
	s.clearLock(t)
	put(`{"schema": 1, "members": [{"id": "x", "shard": "1/1", "host": "gone", "phase": "serial", "since": "2020-01-01T00:00:00Z", "renewed": "2020-01-01T00:00:00Z", "renewals": 7, "duration": "1s"}]}`, "dead")
	_, run, stderr := s.run(t, "unsteered")
	if len(run.Attempts) != 1 || !strings.Contains(stderr, "replaced a holder of the cluster lock that had died: run dead") {
		t.Errorf("the dead run's lease: %s", stderr)
	}
}

func exitCode(err error) int {
	if e, ok := err.(interface{ ExitCode() int }); ok {
		return e.ExitCode()
	}
	return 0
}

// span is when a batch ran.
type span struct {
	phase      specs.Phase
	conditions result.RunConditions
	start, end time.Time
}

func (s span) overlaps(other span) bool {
	return s.start.Before(other.end) && other.start.Before(s.end)
}

func spans(dir string) []span {
	open := map[string]span{}
	var all []span
	for _, e := range eventsOf(dir) {
		switch e.Type {
		case result.BatchStarted:
			open[e.Batch.ID] = span{phase: e.Batch.Phase, conditions: e.Batch.Conditions, start: e.Time}
		case result.BatchFinished:
			sp := open[e.Batch.ID]
			sp.end = e.Time
			all = append(all, sp)
		}
	}
	return all
}

// startOf is when the first batch of a phase began; zero before.
func startOf(dir string, phase specs.Phase) time.Time {
	for _, e := range eventsOf(dir) {
		if e.Type == result.BatchStarted && e.Batch.Phase == phase {
			return e.Time
		}
	}
	return time.Time{}
}

// eventsOf are the events that a folder holds by now.
func eventsOf(dir string) []result.Event {
	data, _ := os.ReadFile(filepath.Join(dir, result.EventsFile))
	var all []result.Event
	for line := range bytes.Lines(data) {
		var e result.Event
		if json.Unmarshal(line, &e) == nil {
			all = append(all, e)
		}
	}
	return all
}

func TestSteeringByCordon(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(p *kwok.Provider) {
		p.Binaries = otherAPIServer{p.Binaries, t.TempDir()}
	})
	if _, err := s.dynamic.Resource(mutatingPolicies).List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("the API server has the API that it is not to have: %v", err)
	}
	cordonedBySomebody := "linux-2"
	if _, err := s.client.CoreV1().Nodes().Patch(t.Context(), cordonedBySomebody, types.MergePatchType, []byte(`{"spec": {"unschedulable": true}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	dir, run, _ := s.run(t, "steered,deployment,replicaset,client-on-windows,one-on-each", "--steer", "cordon", "--procs", "2")
	got := outcomes(t, dir)
	for _, id := range []string{"steered", "deployment", "replicaset"} {
		want(t, got[id], verdict.Passed)
	}
	want(t, got["client-on-windows"], verdict.NotTested, "cannot tell pods apart", "--steer=policy")
	want(t, got["one-on-each"], verdict.NotTested, "needs pods on Linux beside those on Windows")
	for id, counts := range map[string]string{
		"steered":    "1 pod1 on windows, 1 pod2 on windows",
		"deployment": "2 test-rolling-update on windows",
	} {
		if got := placement(run, id, "pod1", "pod2", "test-rolling-update"); got != counts {
			t.Errorf("%s: %s, want %s", id, got, counts)
		}
	}
	if run.Manifest.Steering != result.SteeringCordon {
		t.Errorf("the manifest says %q", run.Manifest.Steering)
	}
	if left := s.cordoned(t); left != cordonedBySomebody {
		t.Errorf("cordoned are %s", left)
	}

	t.Run("auto does not cordon", func(t *testing.T) {
		dir, _, stderr := s.run(t, "steered")
		want(t, outcomes(t, dir)["steered"], verdict.NotTested)
		if !strings.Contains(stderr, "--steer=cordon") {
			t.Errorf("nothing says what could be done: %s", stderr)
		}
		code, _, stderr := opReadiness(t, s.args(filepath.Join(t.TempDir(), "x"), "steered", "--steer", "policy")...)
		if code != verdict.ExitUsage || !strings.Contains(stderr, "--steer=policy: the API server does not serve") {
			t.Errorf("exit code %d: %s", code, stderr)
		}
	})

	for _, how := range []os.Signal{os.Interrupt, os.Kill} {
		t.Run(how.String(), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "results")
			cmd, said := background(t, s.args(dir, "steered", "--steer", "cordon")...)
			eventually(t, "a test runs", func() bool { return events(dir, result.TestStarted) > 0 })
			if now := s.cordoned(t); now != "linux-1 linux-2" {
				t.Errorf("while a test runs, cordoned are %s", now)
			}
			if err := cmd.Process.Signal(how); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if how == os.Kill {
				if now := s.cordoned(t); now != "linux-1 linux-2" {
					t.Fatalf("cordoned are %s after a kill; the run said %s", now, said)
				}
				s.clearLock(t)
				// The facts of the new run are those of a cluster without the old one.
				_, run, _ := s.run(t, "unsteered", "--steer", "off", "--non-blocking-taints", corev1.TaintNodeUnschedulable)
				if n := run.Manifest.Cluster.Count(func(n *result.Node) bool { return n.Schedulable() }); n != 3 {
					t.Errorf("%d nodes counted as schedulable", n)
				}
			}
			if left := s.cordoned(t); left != cordonedBySomebody {
				t.Errorf("cordoned are %s; the run said %s", left, said)
			}
		})
	}
}

// otherAPIServer hands out this test binary, by a link in a folder, as the API
// server; see [playAPIServer].
type otherAPIServer struct {
	kwok.Binaries
	dir string
}

// realAPIServer is the file beside the link that names the real one.
const realAPIServer = "real"

func (o otherAPIServer) Get(ctx context.Context, version string, names ...binaries.Name) (map[binaries.Name]string, error) {
	paths, err := o.Binaries.Get(ctx, version, names...)
	real, ok := paths[binaries.APIServer]
	if err != nil || !ok {
		return paths, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	link := filepath.Join(o.dir, string(binaries.APIServer))
	paths[binaries.APIServer] = link
	return paths, errors.Join(os.Symlink(self, link), os.WriteFile(filepath.Join(o.dir, realAPIServer), []byte(real), 0o600))
}

// playAPIServer becomes, where this binary was started by such a link, the real
// API server without MutatingAdmissionPolicy, as those before Kubernetes 1.36
// are. kwokctl links to the link, and passes no environment on.
func playAPIServer() {
	if filepath.Base(os.Args[0]) != string(binaries.APIServer) {
		return
	}
	link, err := os.Readlink(os.Args[0])
	var server []byte
	if err == nil {
		server, err = os.ReadFile(filepath.Join(filepath.Dir(link), realAPIServer))
	}
	if err == nil {
		err = syscall.Exec(string(server), append(slices.Clone(os.Args),
			"--feature-gates=MutatingAdmissionPolicy=false",
			"--runtime-config=admissionregistration.k8s.io/v1/mutatingadmissionpolicies=false,admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings=false",
		), os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
