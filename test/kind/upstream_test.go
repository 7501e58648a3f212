package kind_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/test/kindtest"
	"github.com/windows-op-readiness/windows-op-readiness/test/program"
)

// check runs upstream's tests of these names, and fails for each that does not pass.
func check(t *testing.T, bed *kindtest.Bed, kubeconfig string, names []string) {
	t.Helper()
	paths, err := bed.Binaries.Get(t.Context(), kindtest.Version, binaries.E2ETest, binaries.Kubectl)
	if err != nil {
		t.Fatal(err)
	}
	var focus []string
	for _, name := range names {
		focus = append(focus, regexp.QuoteMeta(name)+"$")
	}
	dir := t.TempDir()
	report := filepath.Join(dir, "report.json")
	cmd := exec.CommandContext(t.Context(), paths[binaries.E2ETest], "--kubeconfig", kubeconfig, "--kubectl-path", paths[binaries.Kubectl],
		"--provider", "local", "--ginkgo.focus", strings.Join(focus, "|"), "--ginkgo.json-report", report, "--ginkgo.timeout", "15m")
	cmd.Dir = dir
	if _, err := program.Output(cmd); err != nil {
		t.Error(err)
	}
	ran := read(t, report)
	for _, name := range names {
		if spec, ok := ran[name]; !ok {
			t.Errorf("did not run: %s", name)
		} else if spec.State != types.SpecStatePassed {
			t.Errorf("%s: %s: %s\n%s", spec.State, name, spec.Failure.Message, spec.CapturedGinkgoWriterOutput)
		} else {
			t.Logf("passed in %5s: %s", spec.RunTime.Round(time.Second), name)
		}
	}
}

// read returns what ginkgo's report says of the tests that were not left out.
func read(t *testing.T, report string) map[string]types.SpecReport {
	t.Helper()
	data, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var suites []types.Report
	if err := json.Unmarshal(data, &suites); err != nil {
		t.Fatal(err)
	}
	ran := map[string]types.SpecReport{}
	for i := range suites {
		for _, spec := range suites[i].SpecReports {
			if spec.LeafNodeType == types.NodeTypeIt && spec.State != types.SpecStateSkipped {
				ran[spec.FullText()] = spec
			}
		}
	}
	return ran
}
