//go:build unix

package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
)

// The API server is away while a test runs, and somebody has a hand in the cluster.
// It fails, and says what happened; run again, it passes.
func TestAFailureSaysWhatHappenedMeanwhile(t *testing.T) {
	t.Parallel()
	cluster := kwoktest.Up(t)
	client := kwoktest.Client(t, cluster)
	proxy := kwoktest.NewProxy(t, cluster)
	// What is between op-readiness and the cluster is not between that and the tests.
	server := kwoktest.NewProxy(t, cluster).Config().Host
	var err error
	for what, c := range map[string]struct {
		meets   http.HandlerFunc
		retries string
		code    int
		says    string
	}{
		"cut":                    {kwoktest.Cut, "0", verdict.ExitNotReady, "core-network-b failed"},
		"refused, and run again": {kwoktest.Refuse(http.StatusServiceUnavailable), "1", verdict.ExitInconclusive, "passed in attempt 2, after: Meanwhile the API server was away"},
	} {
		s := newScene(t, e2etest.Script{Server: server, Do: map[string][]string{"[sig-x] b": {e2etest.WaitFail, e2etest.Pass}}})
		proxy.Kubeconfig(t, s.kubeconfig)
		done := make(chan said, 1)
		go func() { done <- s.main(s.args("--case", "core-network-b", "--retries", c.retries)...) }()
		eventually(t, "the run runs a test", func() bool { return s.starts("[sig-x] b") == 1 })

		admin := metav1.PatchOptions{FieldManager: "kubectl-of-an-admin"}
		for _, cordoned := range []string{"true", "null"} {
			if _, err := client.CoreV1().Nodes().Patch(t.Context(), "linux-1", types.MergePatchType, []byte(`{"spec": {"unschedulable": `+cordoned+`}}`), admin); err != nil {
				t.Fatal(err)
			}
		}
		var suite string
		eventually(t, "the process has told its run id", func() bool {
			if batches := s.results().Batches; len(batches) > 0 {
				suite = batches[0].SuiteRunID
			}
			return suite != ""
		})
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "of-the-test-", Labels: map[string]string{"e2e-run": suite}}}
		if ns, err = client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := client.CoreV1().Namespaces().Delete(t.Context(), ns.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}

		var met atomic.Int32
		proxy.Break(func(w http.ResponseWriter, r *http.Request) bool {
			met.Add(1)
			c.meets(w, r)
			return true
		})
		eventually(t, "op-readiness has met the outage", func() bool { return met.Load() > 0 })
		proxy.Fix()
		s.write(s.fake.Go(), "")
		s.want(what, <-done, c.code, c.says, "Meanwhile the API server was away between")

		run := s.results()
		if len(run.Problems) > 0 {
			t.Errorf("%s: problems %q", what, run.Problems)
		}
		for id, attempts := range run.Attempts {
			for _, a := range attempts {
				if a.State == result.TestPassed && a.Meanwhile == "" {
					continue
				}
				for _, text := range []string{"the API server was away between", "of op-readiness", "node linux-1 was cordoned at", " by kubectl-of-an-admin", "node linux-1 was uncordoned at", "namespace " + ns.Name + " was deleted"} {
					if !strings.Contains(a.Meanwhile, text) {
						t.Errorf("%s: attempt %d of %s, %s: %q does not say %q", what, a.Attempt, id, a.State, a.Meanwhile, text)
					}
				}
			}
		}
		junit, err := os.ReadFile(filepath.Join(s.dir, "junit_core-network_01.xml"))
		if err != nil || strings.Count(string(junit), "Meanwhile the API server was away between") != 1 || !strings.Contains(string(junit), "node linux-1 was cordoned at") {
			t.Errorf("%s: JUnit: %v\n%s", what, err, junit)
		}
	}
}
