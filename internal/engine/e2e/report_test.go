package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
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
    "SuitePath": "/somewhere", "SuiteDescription": "Kubernetes e2e suite", "SuiteSucceeded": false, "SpecialSuiteFailureReasons": ["Interrupted by User"],
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

// goodNames are the tests of goodReport that were to run.
var goodNames = []string{"[sig-a] it passes", "[sig-a] it fails", "[sig-a] it panics", "[sig-a] it skips", "was interrupted", "[sig-a] it is pending", "[sig-a] it is not there"}

func TestReadReport(t *testing.T) {
	report, err := e2e.ReadReport(reportFile(t, goodReport), goodNames)
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
	if len(report.SuiteFailures) != 1 || report.SuiteFailures[0] != (result.Suite{Node: "SynchronizedAfterSuite", Message: "[FAILED] left behind"}) {
		t.Errorf("suite failures: %+v", report.SuiteFailures)
	}
	if !report.Failed || !slices.Equal(report.Reasons, []string{"Interrupted by User"}) || len(report.Others) > 0 || len(report.Contradictions) > 0 {
		t.Errorf("failed %t, reasons %q, others %q, contradictions %+v", report.Failed, report.Reasons, report.Others, report.Contradictions)
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
		if _, err := e2e.ReadReport(path, goodNames); err == nil || !strings.Contains(err.Error(), path) {
			t.Fatalf("cut off after %q: error %v", text[max(0, end-30):end], err)
		}
	}
}

// empty is a suite without tests.
const empty = `{"SuiteSucceeded": true, "SpecReports": null}`

// suiteOf is a report of these tests and nodes.
func suiteOf(list ...string) string {
	return `[{"SuiteSucceeded": true, "SpecReports": [` + strings.Join(list, ",") + `]}]`
}

// What is not a state of ginkgo's is not a pass.
func TestStatesOfTheReport(t *testing.T) {
	for state, want := range map[string]result.TestState{
		`"passed"`: result.TestPassed, `"skipped"`: result.TestSkipped, `"failed"`: result.TestFailed, `"timedout"`: result.TestFailed, `"panicked"`: result.TestFailed,
		`""`: result.TestError, `null`: result.TestError, `"PASSED"`: result.TestError, `"Passed"`: result.TestError, `"aborted"`: result.TestError,
		`"INVALID SPEC STATE"`: result.TestError, `"flakey"`: result.TestError,
	} {
		report, err := e2e.ReadReport(reportFile(t, suiteOf(`{"LeafNodeType": "It", "LeafNodeText": "it", "RunTime": 1, "State": `+state+`}`)), []string{"it"})
		if err != nil || report.Tests["it"].State != want || report.Failed != (want == result.TestFailed || want == result.TestError) {
			t.Errorf("%s: %+v, %v", state, report, err)
		}
	}
	report, err := e2e.ReadReport(reportFile(t, suiteOf(`{"LeafNodeType": "It", "LeafNodeText": "it", "RunTime": 1}`)), []string{"it"})
	if err != nil || report.Tests["it"].State != result.TestError || report.Tests["it"].Message != "[NO STATE]" {
		t.Errorf("no state: %+v, %v", report, err)
	}
}

// A test that is listed twice has the worse of its ends, in whatever order.
func TestReportThatListsATestTwice(t *testing.T) {
	one := func(state string) string {
		return `{"LeafNodeType": "It", "LeafNodeText": "it", "RunTime": 1, "State": "` + state + `"}`
	}
	for states, want := range map[[2]string]result.TestState{
		{"failed", "passed"}: result.TestFailed, {"passed", "failed"}: result.TestFailed,
		{"passed", "interrupted"}: result.TestError, {"passed", "passed"}: result.TestPassed,
	} {
		report, err := e2e.ReadReport(reportFile(t, suiteOf(one(states[0]), one(states[1]))), []string{"it"})
		if err != nil || report.Tests["it"].State != want || len(report.Contradictions) != 1 || report.Contradictions[0].Test != "it" {
			t.Errorf("%q: %+v, %v", states, report, err)
		}
	}
}

func TestReportOfTestsThatWereNotAskedFor(t *testing.T) {
	report, err := e2e.ReadReport(reportFile(t, goodReport), []string{"[sig-a] it passes"})
	if err != nil || len(report.Tests) != 1 || len(report.Others) != 4 || !report.Failed {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestReadReportRefusesWhatIsNone(t *testing.T) {
	for what, content := range map[string]string{
		"nothing":          "",
		"garbage":          "\x00\xff",
		"an object":        `{"SpecReports": []}`,
		"no suite":         `[]`,
		"two suites":       `[` + empty + `, ` + empty + `]`,
		"a list of lists":  `[[]]`,
		"null":             `null`,
		"other specs":      `[{"SpecReports": {"a": 1}}]`,
		"numbers as specs": `[{"SpecReports": [1, 2]}]`,
		"a number as name": `[{"SpecReports": [{"LeafNodeType": "It", "LeafNodeText": 7}]}]`,

		"more after its end":         `[` + empty + `] []`,
		"garbage after its end":      `[` + empty + "]\n\x00",
		"no verdict":                 `[{"SpecReports": []}]`,
		"a verdict that is null":     `[{"SuiteSucceeded": null, "SpecReports": []}]`,
		"no specs":                   `[{"SuiteSucceeded": true}]`,
		"two verdicts":               `[{"SuiteSucceeded": false, "SpecReports": [], "SuiteSucceeded": true}]`,
		"a verdict in lower case":    `[{"SuiteSucceeded": false, "SpecReports": [], "suitesucceeded": true}]`,
		"specs twice":                `[{"SuiteSucceeded": true, "SpecReports": [], "SpecReports": []}]`,
		"a state twice":              suiteOf(`{"LeafNodeType": "It", "LeafNodeText": "it", "State": "failed", "State": "passed"}`),
		"a state in lower case":      suiteOf(`{"LeafNodeType": "It", "LeafNodeText": "it", "State": "failed", "state": "passed"}`),
		"a state in lower case only": suiteOf(`{"LeafNodeType": "It", "LeafNodeText": "it", "state": "passed"}`),
		"a name twice":               suiteOf(`{"LeafNodeType": "It", "LeafNodeText": "one", "State": "failed", "LeafNodeText": "two"}`),
		"a letter that folds":        suiteOf("{\"LeafNodeType\": \"It\", \"LeafNodeText\": \"it\", \"ſtate\": \"passed\"}"),
		"a message twice":            suiteOf(`{"LeafNodeType": "It", "State": "failed", "Failure": {"Message": "a", "message": "b"}}`),
	} {
		if r, err := e2e.ReadReport(reportFile(t, content), goodNames); err == nil {
			t.Errorf("%s: %+v", what, r)
		}
	}
	if _, err := e2e.ReadReport(filepath.Join(t.TempDir(), "none"), nil); err == nil {
		t.Error("a missing file is not an error")
	}
	path := reportFile(t, "")
	if err := os.Truncate(path, 2<<30); err != nil {
		t.Skip("no sparse files here:", err)
	}
	if _, err := e2e.ReadReport(path, goodNames); err == nil || !strings.Contains(err.Error(), "the limit") {
		t.Errorf("a huge file: %v", err)
	}
}

func TestReadReportKeepsNothingOfTestsThatWereNotSelected(t *testing.T) {
	var text strings.Builder
	text.WriteString(`[{"SuiteSucceeded": true, "SpecReports": [`)
	for i := range 7579 {
		fmt.Fprintf(&text, `{"ContainerHierarchyTexts": ["[sig-a]"], "LeafNodeType": "It", "LeafNodeText": "number %d", "State": "skipped", "RunTime": 0},`, i)
	}
	text.WriteString(`{"LeafNodeType": "It", "LeafNodeText": "the one", "State": "passed", "RunTime": 1}]}]`)
	report, err := e2e.ReadReport(reportFile(t, text.String()), []string{"the one", "[sig-a] number 7"})
	if err != nil || len(report.Tests) != 1 || len(report.Others) > 0 {
		t.Errorf("%+v, error %v", report, err)
	}
}

func FuzzReadReport(f *testing.F) {
	f.Add([]byte(goodReport))
	f.Add([]byte(`[` + empty + `]`))
	f.Add([]byte(suiteOf(`{}`)))
	f.Fuzz(func(t *testing.T, content []byte) {
		report, err := e2e.ReadReport(reportFile(t, string(content)), goodNames)
		if err == nil && (report == nil || !json.Valid(content)) {
			t.Errorf("%q was read as %+v", content, report)
		}
	})
}

func TestFiguresInTheReport(t *testing.T) {
	entry := func(name, figure string) string {
		data, err := json.Marshal(map[string]any{"Visibility": "never", "Location": map[string]any{"FileName": "x.go"}, "Time": "2026-01-02T15:04:05Z", "Name": name,
			"Value": map[string]string{"AsJSON": `"` + "something else" + `"`, "Representation": figure}})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	spec := func(text, state string, entries ...string) string {
		return fmt.Sprintf(`{"LeafNodeType": "It", "LeafNodeText": %q, "RunTime": 1, "State": %q, "ReportEntries": [%s]}`, text, state, strings.Join(entries, ","))
	}
	var many []string
	for i := range 40 {
		many = append(many, entry("op-readiness/many", fmt.Sprint(i)))
	}
	content := suiteOf(
		spec("passed", "passed", entry("something", "no figure"), entry("op-readiness/rescheduling, median", "1.2s"), entry("Op-Readiness/other", "x"), entry("op-readiness/pods", "7")),
		spec("failed", "failed", entry("op-readiness/hostile\nname", "password=hunter2-correct-horse\x1b[31m "+strings.Repeat("x", 5<<20))),
		spec("many", "passed", many...),
		spec("none", "passed"),
		`{"LeafNodeType": "It", "LeafNodeText": "null", "RunTime": 1, "State": "passed", "ReportEntries": null}`,
		spec("not asked for", "passed", entry("op-readiness/a", "b")),
		`{"LeafNodeType": "It", "LeafNodeText": "did not run", "RunTime": 0, "State": "skipped", "ReportEntries": [`+entry("op-readiness/a", "b")+`]}`,
		`{"LeafNodeType": "AfterSuite", "LeafNodeText": "passed", "RunTime": 1, "State": "passed", "ReportEntries": [`+entry("op-readiness/a", "b")+`]}`,
	)
	report, err := e2e.ReadReport(reportFile(t, content), []string{"passed", "failed", "many", "none", "null", "did not run"})
	if err != nil || len(report.Tests) != 5 || len(report.Measured) != 3 {
		t.Fatalf("%+v, %v", report, err)
	}
	if got, want := report.Measured["passed"], []result.Measurement{{What: "rescheduling, median", Figure: "1.2s"}, {What: "pods", Figure: "7"}}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := report.Measured["failed"]; len(got) != 1 || got[0].What != "hostile name" || !strings.HasPrefix(got[0].Figure, "password=[REDACTED] xxx") || len(got[0].Figure) > 210 {
		t.Errorf("%.300q", got)
	}
	if got := report.Measured["many"]; len(got) != result.MaxMeasurements || got[31].Figure != "31" {
		t.Errorf("%d figures, %q", len(got), got)
	}
	for what, entries := range map[string]string{"no list": `{}`, "no entry": `[7]`, "no value": `[{"Name": "op-readiness/x", "Value": "y"}]`, "two names": `[{"Name": "x", "Name": "y"}]`} {
		if r, err := e2e.ReadReport(reportFile(t, suiteOf(`{"LeafNodeType": "It", "LeafNodeText": "it", "RunTime": 1, "State": "passed", "ReportEntries": `+entries+`}`)), []string{"it"}); err == nil {
			t.Errorf("%s: %+v", what, r)
		}
	}
}
