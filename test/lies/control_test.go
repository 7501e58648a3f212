//go:build unix

package lies

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
)

// The cases of the control ask the API server alone.
const controlCases = "extra-network-service-status,extra-concurrent-replicaset"

// In the control the program is Kubernetes' own e2e.test, with nothing around it,
// and then with a lie around it.
var (
	control   = tell("the real e2e.test", func(int) lie { return lie{} })
	takesBack = tell("the real e2e.test, whose report takes a pass back", func(int) lie {
		return lie{report: reported(func(r *types.Report) {
			s := spec(r, second)
			s.State, s.Failure = types.SpecStateFailed, types.Failure{Message: "it did not pass"}
		})}
	})
)

// realBinary is Kubernetes' e2e.test; without it in the cache the test is
// skipped, and says so.
func realBinary(t *testing.T) string {
	t.Helper()
	dir, err := binaries.DefaultDir(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	store := &binaries.Store{Dir: dir, Progress: os.Stderr}
	missing, err := store.Missing(t.Context(), binaries.Pinned, binaries.E2ETest)
	if err != nil {
		t.Fatal(err)
	}
	if len(missing) > 0 {
		t.Skipf("not in the cache: %v: run 'make binaries'", missing)
	}
	paths, err := store.Get(t.Context(), binaries.Pinned, binaries.E2ETest)
	if err != nil {
		t.Fatal(err)
	}
	return paths[binaries.E2ETest]
}

func TestTheRealProgramIsTheControl(t *testing.T) {
	t.Parallel()
	path := realBinary(t)
	cluster := kwoktest.Up(t)
	s := newScene(t, control)
	run := func(lie string) (*result.Run, said) {
		t.Helper()
		program := install(t, script{Lie: lie, Real: path})
		dir := filepath.Join(t.TempDir(), "results")
		got := s.main("run", "--kubeconfig", cluster.Kubeconfig, "--e2e-binary", program, "--report-dir", dir, "--case", controlCases, "--retries", "0", "--procs", "1", "--preflight", "off")
		return load(t, dir), got
	}
	honest, got := run(control)
	if len(honest.Batches) != 1 || !honest.Batches[0].Reconciled || len(honest.Suites) > 0 || len(honest.Problems) > 0 {
		t.Errorf("the real e2e.test is taken for a liar: batches %+v, suite failures %+v, problems %q\n%s", honest.Batches, honest.Suites, honest.Problems, got.stderr)
	}
	for _, test := range honest.Plan.Tests {
		if a := honest.Attempts[test.ID]; len(a) != 1 || a[0].State != result.TestPassed {
			t.Errorf("%s ended as %+v", test.Name, a)
		}
	}
	lied, got := run(takesBack)
	if len(lied.Suites) == 0 || lied.Batches[0].Reconciled {
		t.Errorf("nothing is found: %+v\n%s", lied.Batches, got.stderr)
	}
	a := lied.Attempts[result.TestID(second, result.RunConditions{})]
	if len(a) == 0 || a[len(a)-1].State == result.TestPassed {
		t.Errorf("it passed: %+v", a)
	}
}
