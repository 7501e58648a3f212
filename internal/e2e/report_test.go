package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/result"
)

func reportFile(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.json")
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

const goodReport = `[
  {
    "SuitePath": "/somewhere", "SuiteDescription": "Kubernetes e2e suite", "SuiteSucceeded": false,
    "PreRunStats": {"TotalSpecs": 7579, "SpecsThatWillRun": 4},
    "SpecReports": [
      {"ContainerHierarchyTexts": null, "LeafNodeType": "SynchronizedBeforeSuite", "LeafNodeText": "", "State": "passed", "RunTime": 26000000},
      {"ContainerHierarchyTexts": ["[sig-a]", "it"], "LeafNodeType": "It", "LeafNodeText": "passes", "State": "passed", "RunTime": 1500000000, "CapturedGinkgoWriterOutput": "much"},
      {"ContainerHierarchyTexts": ["[sig-a]", "it"], "LeafNodeType": "It", "LeafNodeText": "fails", "State": "failed", "RunTime": 1, "Failure": {"Message": "no", "Location": {"LineNumber": 1}}},
      {"ContainerHierarchyTexts": ["[sig-a]", "it"], "LeafNodeType": "It", "LeafNodeText": "panics", "State": "panicked", "RunTime": 1, "Failure": {"Message": "Test Panicked", "ForwardedPanic": "nil map"}},
      {"ContainerHierarchyTexts": ["[sig-a]", "it"], "LeafNodeType": "It", "LeafNodeText": "skips", "State": "skipped", "RunTime": 5, "Failure": {"Message": "not here"}},
      {"ContainerHierarchyTexts": ["[sig-a]", "it"], "LeafNodeType": "It", "LeafNodeText": "was not selected", "State": "skipped", "RunTime": 0},
      {"ContainerHierarchyTexts": ["[sig-a]", "it"], "LeafNodeType": "It", "LeafNodeText": "is pending", "State": "pending", "RunTime": 0},
      {"ContainerHierarchyTexts": [], "LeafNodeType": "It", "LeafNodeText": "was interrupted", "State": "interrupted", "RunTime": 2},
      {"ContainerHierarchyTexts": null, "LeafNodeType": "SynchronizedAfterSuite", "LeafNodeText": "", "State": "failed", "RunTime": 1, "Failure": {"Message": "left behind"}}
    ]
  }
]
`

func TestReadReport(t *testing.T) {
	report, err := e2e.ReadReport(reportFile(t, goodReport))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]e2e.Finished{
		"[sig-a] it passes": {State: result.TestPassed, Seconds: 1.5},
		"[sig-a] it fails":  {State: result.TestFailed, Seconds: 1e-9, Message: "[FAILED] no"},
		"[sig-a] it panics": {State: result.TestFailed, Seconds: 1e-9, Message: "[PANICKED] Test Panicked\nnil map"},
		"[sig-a] it skips":  {State: result.TestSkipped, Seconds: 5e-9, Message: "[SKIPPED] not here"},
		"was interrupted":   {State: result.TestError, Seconds: 2e-9, Message: "[INTERRUPTED]"},
	}
	for name, w := range want {
		w.Name = name
		if got := report.Tests[name]; got != w {
			t.Errorf("%s: %+v, want %+v", name, got, w)
		}
	}
	if len(report.Tests) != len(want) || report.Succeeded {
		t.Errorf("%d tests, succeeded %t", len(report.Tests), report.Succeeded)
	}
	if len(report.Pending) != 1 || !report.Pending["[sig-a] it is pending"] {
		t.Errorf("pending: %v", report.Pending)
	}
	if len(report.SuiteFailures) != 1 || report.SuiteFailures[0] != (result.Suite{Node: "SynchronizedAfterSuite", Message: "left behind"}) {
		t.Errorf("suite failures: %+v", report.SuiteFailures)
	}
}

func TestReadReportThatIsCutOffAnywhere(t *testing.T) {
	text := strings.TrimSpace(goodReport)
	dir := t.TempDir()
	path := filepath.Join(dir, "report.json")
	for end := range len(text) {
		if err := os.WriteFile(path, []byte(text[:end]), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := e2e.ReadReport(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Fatalf("cut off after %q: error %v", text[max(0, end-30):end], err)
		}
	}
}

func TestReadReportRefusesWhatIsNone(t *testing.T) {
	for what, content := range map[string]string{
		"nothing":          "",
		"garbage":          "\x00\xff",
		"an object":        `{"SpecReports": []}`,
		"no suite":         `[]`,
		"two suites":       `[{}, {}]`,
		"a list of lists":  `[[]]`,
		"null":             `null`,
		"other specs":      `[{"SpecReports": {"a": 1}}]`,
		"numbers as specs": `[{"SpecReports": [1, 2]}]`,
		"a number as name": `[{"SpecReports": [{"LeafNodeType": "It", "LeafNodeText": 7}]}]`,
	} {
		if r, err := e2e.ReadReport(reportFile(t, content)); err == nil {
			t.Errorf("%s: %+v", what, r)
		}
	}
	if _, err := e2e.ReadReport(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a missing file is no error")
	}
	path := reportFile(t, "")
	if err := os.Truncate(path, 2<<30); err != nil {
		t.Skip("no sparse files here:", err)
	}
	if _, err := e2e.ReadReport(path); err == nil || !strings.Contains(err.Error(), "the limit") {
		t.Errorf("a huge file: %v", err)
	}
}

func TestReadReportKeepsNothingOfTestsThatWereNotSelected(t *testing.T) {
	var text strings.Builder
	text.WriteString(`[{"SpecReports": [`)
	for i := range 7579 {
		fmt.Fprintf(&text, `{"ContainerHierarchyTexts": ["[sig-a]"], "LeafNodeType": "It", "LeafNodeText": "number %d", "State": "skipped", "RunTime": 0},`, i)
	}
	text.WriteString(`{"LeafNodeType": "It", "LeafNodeText": "the one", "State": "passed", "RunTime": 1}]}]`)
	report, err := e2e.ReadReport(reportFile(t, text.String()))
	if err != nil || len(report.Tests) != 1 {
		t.Errorf("%d tests, error %v", len(report.Tests), err)
	}
}

func FuzzReadReport(f *testing.F) {
	f.Add([]byte(goodReport))
	f.Add([]byte(`[{"SpecReports": null}]`))
	f.Add([]byte(`[{"SpecReports": [{}]}]`))
	f.Fuzz(func(t *testing.T, content []byte) {
		report, err := e2e.ReadReport(reportFile(t, string(content)))
		if err == nil && (report == nil || !json.Valid(content) && strings.TrimSpace(string(content)) == "") {
			t.Errorf("%q was read as %+v", content, report)
		}
	})
}
