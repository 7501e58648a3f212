//go:build unix

package faults

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/windows-op-readiness/windows-op-readiness/internal/cli"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/process"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/lease"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
)

// TestMain lets this test binary play op-readiness and e2e.test, which are
// processes of their own.
func TestMain(m *testing.M) {
	e2etest.Main()
	if os.Getenv("OP_READINESS_TEST_MAIN") != "" {
		os.Exit(cli.Process())
	}
	os.Exit(m.Run())
}

// The tests of a run, in the order of their groups: as is, steered, and alone.
const (
	plain   = "[sig-x] plain"
	steered = "[sig-x] steered"
	serial  = "[sig-x] serial [Serial]"
)

// standard is a case for each test. None of them looks at pods.
func standard() string {
	text := "category: Core.Network\ncases:\n"
	for _, c := range []struct{ id, conditions, phase string }{
		{"plain", "", "parallel"},
		{"steered", "needs: {means: [steer]}\n    conditions: {steer: windows}\n    ", "parallel"},
		{"serial", "", "serial"},
	} {
		text += fmt.Sprintf(`  - id: %s
    requirement: It works through %[1]s faults.
    kind: additional
    proof: part
    missing: Containers that run.
    tests: [{focus: '\[sig-x\] %[1]s( \[|$)', expect: 1}]
    %sphase: %s
    duration: 20s
    timeout: 5m
`, c.id, c.conditions, c.phase)
	}
	return text
}

// site is a cluster behind a proxy; its clients, and tests, go past that.
type site struct {
	proxy      *kwoktest.Proxy
	server     string // for tests
	kubeconfig string
	specs      string
	client     kubernetes.Interface
	dynamic    dynamic.Interface
}

func newSite(t *testing.T) *site {
	t.Helper()
	made := kwoktest.Up(t)
	s := &site{proxy: kwoktest.NewProxy(t, made), client: kwoktest.Client(t, made), specs: t.TempDir()}
	s.server = kwoktest.NewProxy(t, made).Config().Host
	s.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	s.proxy.Kubeconfig(t, s.kubeconfig)
	config, err := clientcmd.BuildConfigFromFlags("", made.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if s.dynamic, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.specs, "core-network.yaml"), []byte(standard()), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// runner is an op-readiness at work.
type runner struct {
	cmd  *exec.Cmd
	over <-chan struct{} // closed when it has ended
	said bytes.Buffer    // to be read then
	dir  string          // for results
	fake e2etest.Folder
}

// start starts a run with an e2e.test that follows the script.
func (s *site) start(t *testing.T, do map[string][]string, args ...string) *runner {
	t.Helper()
	r := &runner{
		dir:  filepath.Join(t.TempDir(), "results"),
		fake: e2etest.Install(t, e2etest.Script{Version: "v1.36.3", Tests: []string{plain, steered, serial}, Do: do, Server: s.server}),
	}
	r.run(t, append([]string{"--kubeconfig", s.kubeconfig, "--spec-dir", s.specs, "--report-dir", r.dir, "--e2e-binary", r.fake.Binary(), "--additional"}, args...)...)
	return r
}

func (r *runner) run(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"run"}, args...)...)
	cmd.Env = append(os.Environ(), "OP_READINESS_TEST_MAIN=1")
	cmd.Stdout, cmd.Stderr = &r.said, &r.said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-over
	})
	r.cmd, r.over = cmd, over
}

// resume goes on with a run that has ended.
func (r *runner) resume(t *testing.T) {
	t.Helper()
	r.said.Reset()
	r.run(t, "--resume", r.dir)
}

func (r *runner) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// goOn lets tests that wait pass.
func (r *runner) goOn(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(r.fake.Go(), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

// has reports whether the results tell of an event of a test.
func (r *runner) has(what result.EventType, name string) bool {
	data, _ := os.ReadFile(filepath.Join(r.dir, result.EventsFile))
	for line := range bytes.Lines(data) {
		if bytes.Contains(line, fmt.Appendf(nil, `"type":%q`, what)) && bytes.Contains(line, fmt.Appendf(nil, `"name":%q`, name)) {
			return true
		}
	}
	return false
}

// suiteOver reports whether the newest process of e2e.test has come to its end.
func (r *runner) suiteOver(t *testing.T) bool {
	t.Helper()
	run, err := result.Load(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	b := run.Batches[len(run.Batches)-1]
	return !process.Alive(b.PID, b.PIDStart)
}

// await returns when a condition holds while the run goes on.
func (r *runner) await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(3 * time.Minute)
	for !condition() {
		select {
		case <-r.over:
			t.Fatalf("the run ended before this: %s\n%s", what, &r.said)
		case <-deadline:
			_ = r.cmd.Process.Kill()
			<-r.over
			t.Fatalf("in time it did not happen: %s\n%s", what, &r.said)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// ends waits for the end of the run, and returns what its folder tells. The
// cluster is simulated, so no run is ever ready; nothing fails in these tests, so
// none is not ready.
func (r *runner) ends(t *testing.T) (*result.Run, *verdict.Judgement) {
	t.Helper()
	<-r.over
	if code := r.cmd.ProcessState.ExitCode(); code != verdict.ExitInconclusive {
		t.Fatalf("exit code %d\n%s", code, &r.said)
	}
	run, err := result.Load(r.dir)
	if err != nil {
		t.Fatalf("%v\n%s", err, &r.said)
	}
	if len(run.Problems) > 0 {
		t.Errorf("problems %q", run.Problems)
	}
	// Whatever ended it, it was judged and written.
	if run.Manifest.Verdict != string(verdict.Inconclusive) || run.Manifest.ExitCode == nil || *run.Manifest.ExitCode != verdict.ExitInconclusive {
		t.Errorf("%s has verdict %q, exit code %v", result.ManifestFile, run.Manifest.Verdict, run.Manifest.ExitCode)
	}
	if files, _ := filepath.Glob(filepath.Join(r.dir, "junit_*.xml")); len(files) == 0 {
		t.Error("no JUnit was written")
	}
	if !strings.Contains(r.said.String(), "INCONCLUSIVE") {
		t.Errorf("the verdict was not reported:\n%s", &r.said)
	}
	return run, verdict.Judge(run)
}

// ended compares how the attempts at each test ended, as "plain:passed".
func ended(t *testing.T, r *runner, run *result.Run, want string) {
	t.Helper()
	var got []string
	for _, test := range run.Plan.Tests {
		var states []string
		for _, a := range run.Attempts[test.ID] {
			states = append(states, string(a.State))
		}
		got = append(got, strings.Fields(test.Name)[1]+":"+strings.Join(states, ","))
	}
	if text := strings.Join(got, " "); text != want {
		t.Errorf("tests ended as %s, want %s\n%s", text, want, &r.said)
		for _, runs := range run.Attempts {
			for _, a := range runs {
				t.Logf("%s: %s", a.Name, a.Message)
			}
		}
	}
}

// onlySimulated reports reasons of a verdict that are about more than that the
// cluster's Windows nodes are simulated, and that the cases are not requirements.
func onlySimulated(t *testing.T, j *verdict.Judgement) {
	t.Helper()
	for _, reason := range j.Reasons {
		if !strings.Contains(reason, "simulated") && !strings.HasPrefix(reason, "nothing of Core.Network was tested") && !strings.HasPrefix(reason, "no requirement in scope was tested") {
			t.Errorf("inconclusive because %s", reason)
		}
	}
}

// reason is why a case ended as it did.
func reason(j *verdict.Judgement, id string) string {
	for _, c := range j.Cases {
		if c.Case.ID == id {
			return c.Reason
		}
	}
	return ""
}

// left lists what runs have left in the cluster, but for namespaces that are on
// their way out.
func (s *site) left(t *testing.T) string {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	var left []string
	switch _, err := s.client.CoordinationV1().Leases(lease.Namespace).Get(ctx, lease.Name, metav1.GetOptions{}); {
	case err == nil:
		left = append(left, "lease")
	case !apierrors.IsNotFound(err):
		t.Fatal(err)
	}
	for _, resource := range []string{"mutatingadmissionpolicies", "mutatingadmissionpolicybindings"} {
		list, err := s.dynamic.Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}).List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for range list.Items {
			left = append(left, resource)
		}
	}
	nodes, err := s.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes.Items {
		if n.Spec.Unschedulable || len(n.Spec.Taints) > 0 {
			left = append(left, "taints of "+n.Name)
		}
	}
	namespaces, err := s.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: "op-readiness/steering"})
	if err != nil {
		t.Fatal(err)
	}
	for _, ns := range namespaces.Items {
		if ns.DeletionTimestamp == nil {
			left = append(left, "namespace "+ns.Name)
		}
	}
	return strings.Join(left, " ")
}

// nothingLeft reports what a run has left in the cluster.
func (s *site) nothingLeft(t *testing.T) {
	t.Helper()
	if left := s.left(t); left != "" {
		t.Errorf("left in the cluster: %s", left)
	}
}

// ours reports whether a request is op-readiness's, and no watch.
func ours(r *http.Request) bool {
	return r.UserAgent() == "op-readiness" && !slices.Contains(r.URL.Query()["watch"], "true")
}
