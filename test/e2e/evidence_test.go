//go:build unix

package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
)

// observedSpec is a case whose test takes some seconds, and whose pods
// must have been observed, wherever they ran.
const observedSpec = `category: Core.Concurrent
cases:
  - id: rolling-update
    requirement: Ability to replace the pods of a Deployment.
    kind: additional
    proof: full
    tests:
      - focus: '\[sig-apps\] Deployment RollingUpdateDeployment should delete old pods and create new ones( \[|$)'
        expect: 1
    conditions:
      placement:
        - {pods: ^test-rolling-update-, os: any}
    phase: parallel
    duration: 1m
    timeout: 10m
`

// A watch that is cut and goes on where it was proves what it would have proved;
// one that lost events while a test ran leaves its pass unproven.
func TestWhatTheWatchLosesIsNotProven(t *testing.T) {
	t.Parallel()
	_, made := up(t)
	proxy := kwoktest.NewProxy(t, made)
	temp := t.TempDir()
	kubeconfig, specs := filepath.Join(temp, "kubeconfig"), filepath.Join(temp, "specs")
	proxy.Kubeconfig(t, kubeconfig)
	if err := os.Mkdir(specs, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(specs, "core-concurrent.yaml"), []byte(observedSpec), 0o644); err != nil {
		t.Fatal(err)
	}
	expired, err := json.Marshal(map[string]any{"type": "ERROR", "object": metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Reason: metav1.StatusReasonExpired, Code: http.StatusGone, Message: "too old resource version",
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, how := range []struct {
		name   string
		answer http.HandlerFunc
		want   verdict.Outcome
		says   string
	}{
		{"cut", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, verdict.Passed, ""},
		{"gone", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(expired)
		}, verdict.Unproven, "were not seen"},
	} {
		dir := filepath.Join(temp, how.name)
		ended := make(chan string, 1)
		go func() {
			_, stdout, stderr := opReadiness(t, "run", "--kubeconfig", kubeconfig, "--spec-dir", specs, "--additional", "--steer", "off", "--report-dir", dir)
			ended <- stdout + stderr
		}()
		eventually(t, "the test runs", func() bool { return events(dir, result.TestStarted) > 0 || len(ended) > 0 })
		if len(ended) > 0 {
			t.Fatalf("%s: the run ended early: %s", how.name, <-ended)
		}
		met := make(chan struct{}, 100)
		proxy.BreakOnly(kwoktest.WatchesAllPods, func(w http.ResponseWriter, r *http.Request) {
			select {
			case met <- struct{}{}:
			default:
			}
			how.answer(w, r)
		})
		<-met
		proxy.Fix()
		said := <-ended
		if events(dir, result.TestFinished) != 1 {
			t.Fatalf("%s: %s", how.name, said)
		}
		c := outcomes(t, dir)["rolling-update"]
		if c.Outcome != how.want || !strings.Contains(c.Reason, how.says) {
			t.Errorf("%s: the case is %s: %s\n%s", how.name, c.Outcome, c.Reason, said)
		}
		if c.Evidence == "" {
			t.Errorf("%s: what was seen is lost", how.name)
		}
		junit, err := os.ReadFile(filepath.Join(dir, "junit_core-concurrent_01.xml"))
		if err != nil || strings.Contains(string(junit), `name="unobserved"`) != (how.says != "") || !strings.Contains(string(junit), `name="pod"`) {
			t.Errorf("%s: %v\n%s", how.name, err, junit)
		}
	}
}
