package report_test

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/windows-op-readiness/windows-op-readiness/test/golden"

	gridjunit "github.com/GoogleCloudPlatform/testgrid/metadata/junit"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

var at = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// everyOutcome is a run with a case of each outcome, and what else can happen.
func everyOutcome() *result.Run {
	run := &result.Run{
		Plan: &result.Plan{
			Schema: result.PlanSchema, Digest: "sha256:0123", KubernetesVersion: "v1.36.3", Provider: "skeleton", Shards: 1,
			Standard: map[specs.Category]int{specs.CoreNetwork: 9, specs.CoreStorage: 1, specs.CoreScheduling: 1, specs.CoreConcurrent: 1, specs.ExtendWorker: 1},
		},
		Manifest: &result.Manifest{
			Schema: result.ManifestSchema, RunID: "20260801-120000-abcd", PlanDigest: "sha256:0123", Shard: 1, Attempt: 1, ToolVersion: "v0.1.0", E2EVersion: "v1.36.3",
			Declared: result.Declarations{Without: []string{"netpol"}}, Kubectl: "/usr/bin/kubectl", Started: at, Finished: at.Add(time.Hour),
			Cluster: result.Facts{ServerVersion: "v1.36.4", Nodes: []result.Node{
				{Name: "l-0", OS: specs.Linux, Ready: true, ContainerRuntime: "containerd://2.1.0"},
				{Name: "l-1", OS: specs.Linux, Ready: true},
				{Name: "w-0", OS: specs.Windows, Ready: true, WindowsBuild: "10.0.20348", ContainerRuntime: "containerd://2.1.0"},
				{Name: "w-1", OS: specs.Windows, Ready: true, WindowsBuild: "10.0.26100", Simulated: true},
			}},
		},
		Attempts: map[string][]result.TestRun{},
		Finished: true,
	}
	add := func(id string, category specs.Category, change func(c *result.PlannedCase), tests ...[]result.TestRun) {
		c := result.PlannedCase{
			Case: specs.Case{
				ID: id, Category: category, Kind: specs.Requirement, Proof: specs.ProofFull,
				Requirement: "Ability to do what " + id + " is about, in a sentence that is too long for one line of a terminal, as most of the KEP's are.",
			},
			Shard: 1,
		}
		for i, attempts := range tests {
			test := fmt.Sprintf("%s-%d", id, i)
			c.TestIDs = append(c.TestIDs, test)
			run.Plan.Tests = append(run.Plan.Tests, result.PlannedTest{ID: test, Name: "[sig-x] " + test + " [Conformance]", Phase: specs.Parallel, Duration: 90 * time.Second, Cases: []string{id}, Shard: 1})
			for n, a := range attempts {
				a.ID, a.Attempt, a.Batch = test, n+1, "01"
				run.Attempts[test] = append(run.Attempts[test], a)
			}
		}
		if change != nil {
			change(&c)
		}
		run.Plan.Cases = append(run.Plan.Cases, c)
	}
	try := func(state result.TestState, seconds float64, message string) result.TestRun {
		return result.TestRun{State: state, Seconds: seconds, Message: message}
	}
	type tries = []result.TestRun
	const failure = "[BeforeEach] k8s.io/kubernetes@v1.36.3/test/e2e/x.go:7\n[It] k8s.io/kubernetes@v1.36.3/test/e2e/x.go:9\n\n[FAILED] expected <int>: 1\nto equal <int>: 2"
	add("cluster-node-count", specs.ClusterRules, func(c *result.PlannedCase) { c.Kind, c.Check = specs.Rule, verdict.CheckNodeCount })
	add("cluster-linux-conformance", specs.ClusterRules, func(c *result.PlannedCase) { c.Kind, c.Check = specs.Rule, verdict.CheckLinuxConformance })
	add("net-passed", specs.CoreNetwork, func(c *result.PlannedCase) {
		c.Conditions.Placement = []specs.Placement{{Pods: "^p", OS: specs.Windows}}
	}, tries{try(result.TestPassed, 61.25, "")}, tries{try(result.TestPassed, 2, "")})
	for _, test := range []string{"net-passed-0", "net-passed-1"} {
		run.Pods = append(run.Pods, result.Pod{Test: test, Attempt: 1, Namespace: "n", Name: "p", Node: "w-0", OS: specs.Windows, WindowsBuild: "10.0.20348", Images: []string{"agnhost"}})
	}
	for i, node := range []string{"w-0", "w-0", "l-0"} {
		p := result.Pod{Test: "net-passed-1", Attempt: 1, Namespace: "n", Name: fmt.Sprintf("q-%d", i), Node: node, OS: specs.Windows, WindowsBuild: "10.0.20348", RuntimeClass: "runhcs-wcow-process", Images: []string{"agnhost", "pause"}, Phases: []string{"Pending", "Running", "Succeeded"}}
		if node == "l-0" {
			p.OS, p.WindowsBuild, p.RuntimeClass = specs.Linux, "", ""
		}
		run.Pods = append(run.Pods, p)
	}
	run.Pods = append(run.Pods,
		result.Pod{Test: "net-part-0", Attempt: 1, Namespace: "n", Name: "p", Node: "w-0", OS: specs.Windows, WindowsBuild: "10.0.14393", Images: []string{"docker.io/library/busybox:1"}},
		result.Pod{Test: "net-flaky-0", Attempt: 1, Namespace: "n-1", Name: "p", Phases: []string{"Pending"}, SchedulingFailure: "0/4 nodes are available: 2 Insufficient memory"},
		result.Pod{Test: "net-flaky-0", Attempt: 2, Namespace: "n-2", Name: "p", Node: "w-1", OS: specs.Windows, WindowsBuild: "10.0.26100", Simulated: true, Images: []string{"agnhost"}},
		result.Pod{Test: "net-failed-0", Attempt: 1, Namespace: "n", Name: "p", Node: "lost"},
	)
	add("net-part", specs.CoreNetwork, func(c *result.PlannedCase) { c.Proof, c.Missing = specs.ProofPart, "Half of it." }, tries{try(result.TestPassed, 3, "")})
	add("net-flaky", specs.CoreNetwork, nil, tries{try(result.TestFailed, 1, failure), try(result.TestPassed, 2, "")})
	add("net-failed", specs.CoreNetwork, nil, tries{try(result.TestFailed, 10, failure)}, tries{try(result.TestPassed, 1, "")})
	add("net-unproven", specs.CoreNetwork, func(c *result.PlannedCase) {
		c.Conditions.Placement = []specs.Placement{{Pods: "^p", OS: specs.Windows}}
	}, tries{{State: result.TestPassed, Seconds: 4, Unobserved: "pods that came and went between 12:00:01 and 12:00:09 UTC were not seen: the watch on pods broke"}})
	run.Pods = append(run.Pods, result.Pod{Test: "net-unproven-0", Attempt: 1, Namespace: "n", Name: "p", Node: "l-0", OS: specs.Linux})
	add("net-tried-trial", specs.CoreNetwork, func(c *result.PlannedCase) { c.Kind = specs.Trial }, tries{try(result.TestFailed, 5, failure)}, tries{try(result.TestPassed, 6, "")})
	run.Attempts["net-tried-trial-1"][0].Measured = []result.Measurement{{What: "rescheduling, median", Figure: "1.2s"}, {What: "deletions <beside> it", Figure: "7"}}
	add("net-error", specs.CoreNetwork, nil, tries{try(result.TestError, 0, "the API server does not answer")}, tries{})
	add("net-skipped", specs.CoreNetwork, nil, tries{try(result.TestSkipped, 0, "[SKIPPED] needs SSH")})
	add("net-no-kubectl", specs.CoreNetwork, func(c *result.PlannedCase) { c.Needs.Means = []string{"steer"} }, tries{})
	add("net-none", specs.CoreNetwork, func(c *result.PlannedCase) { c.Proof, c.Missing = specs.ProofNone, "A test that does it." })
	add("storage-policy", specs.CoreStorage, func(c *result.PlannedCase) { c.Needs.Condition = []string{"netpol"} }, tries{})
	add("scheduling-good", specs.CoreScheduling, nil, tries{try(result.TestPassed, 1, "")})
	add("extra-scheduling", specs.CoreScheduling, func(c *result.PlannedCase) { c.Kind = specs.Additional }, tries{try(result.TestFailed, 1, failure)})
	add("concurrent-good", specs.CoreConcurrent, nil, tries{try(result.TestPassed, 1, "")})
	add("worker-failed", specs.ExtendWorker, nil, tries{{State: result.TestFailed, Seconds: 1, Message: failure, Meanwhile: "node w-0 was cordoned at 12:00:05 UTC by kubectl-cordon"}})
	run.Batches = []result.Batch{{ID: "01", Exit: "exit code 1", Reconciled: true}}
	run.Suites = []result.Suite{{Batch: "02", Node: "BeforeSuite", Message: "[SynchronizedBeforeSuite] test/e2e/e2e.go:77\n[FAILED] no schedulable nodes"}}
	return run
}

func render(t testing.TB, run *result.Run, width int, format report.Format) string {
	t.Helper()
	var b bytes.Buffer
	results := report.Results{Run: run, Judgement: verdict.Judge(run), Width: width}
	if err := results.Write(&b, format); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReports(t *testing.T) {
	run := everyOutcome()
	for _, o := range verdict.Outcomes() {
		if verdict.Judge(run).Outcomes[o] == 0 {
			t.Errorf("no case is %s", o)
		}
	}
	for name, format := range map[string]report.Format{
		"report.txt": report.FormatTable, "report.md": report.FormatMarkdown, "report.csv": report.FormatCSV, "report.json": report.FormatJSON,
	} {
		first := render(t, run, 0, format)
		golden.Equal(t, name, first)
		if render(t, everyOutcome(), 0, format) != first {
			t.Errorf("%s: the same run is reported in two ways", name)
		}
	}
	golden.Equal(t, "report-80-columns.txt", render(t, run, 80, report.FormatTable))
	// A terminal that is too narrow for anything gets the default.
	if render(t, run, 20, report.FormatTable) != render(t, run, 0, report.FormatTable) {
		t.Error("a terminal of 20 columns gets something else")
	}
	results := report.Results{Run: run, Judgement: verdict.Judge(run)}
	if err := results.Write(&bytes.Buffer{}, "yaml"); err == nil || !strings.Contains(err.Error(), "use table, json, markdown, csv") {
		t.Errorf("an unknown format: %v", err)
	}
}

func TestManyFiguresAreCounted(t *testing.T) {
	run := everyOutcome()
	for _, id := range []string{"net-passed-0", "net-passed-1"} {
		run.Attempts[id][0].Measured = slices.Repeat([]result.Measurement{{What: "a pod", Figure: "1s"}}, 20)
	}
	if got := render(t, run, 0, report.FormatTable); strings.Count(got, " a pod: 1s\n") != 32 || !strings.Contains(got, " … and 8 more figures\n") {
		t.Errorf("got:\n%s", got)
	}
	for format, want := range map[report.Format]string{report.FormatMarkdown: "a pod: 1s; a pod: 1s; ", report.FormatCSV: "a pod: 1s; … and 8 more figures"} {
		if got := render(t, run, 0, format); !strings.Contains(got, want) {
			t.Errorf("%s:\n%s", format, got)
		}
	}
}

func TestPlanTable(t *testing.T) {
	var b bytes.Buffer
	if err := report.Plan(everyOutcome().Plan).Write(&b, report.FormatTable); err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "plan.txt", b.String())
}

func TestAReadyRunGivesNoReasons(t *testing.T) {
	run := everyOutcome()
	run.Plan.Selection.Categories = []specs.Category{specs.CoreConcurrent}
	run.Plan.Cases = slices.DeleteFunc(run.Plan.Cases, func(c result.PlannedCase) bool { return c.Category != specs.CoreConcurrent })
	run.Suites = nil
	for _, format := range []report.Format{report.FormatTable, report.FormatMarkdown} {
		got := render(t, run, 0, format)
		if !strings.Contains(got, "readiness of Core.Concurrent of another standard (13 requirements, planned by op-readiness v0.1.0, without a digest of its cases): READY without netpol, as declared (1 proven, 0 in part, of 1)") || strings.Contains(got, "Why it is not") || strings.Contains(got, "does not gate") {
			t.Errorf("%s:\n%s", format, got)
		}
	}
}

// Where a case's own test is on trial, it is not what is missing; and a category of
// which nothing else was run gates as it always does.
func TestARunOfTrialsAlone(t *testing.T) {
	run := everyOutcome()
	run.Plan.Cases = slices.DeleteFunc(run.Plan.Cases, func(c result.PlannedCase) bool { return c.ID != "net-tried-trial" })
	for _, format := range []report.Format{report.FormatTable, report.FormatMarkdown} {
		if got := render(t, run, 0, format); strings.Contains(got, "does not gate") || strings.Contains(got, "not-asked *") || !strings.Contains(got, "Core.Network") {
			t.Errorf("got:\n%s", got)
		}
	}
	run = everyOutcome()
	for i := range run.Plan.Cases {
		if c := &run.Plan.Cases[i]; c.ID == "net-none" {
			c.ID = "net-tried"
		}
	}
	for _, format := range []report.Format{report.FormatTable, report.FormatMarkdown, report.FormatCSV} {
		if got := render(t, run, 0, format); strings.Contains(got, "Missing") || !strings.Contains(got, "no test that counts yet: net-tried-trial is on trial") {
			t.Errorf("%s:\n%s", format, got)
		}
	}
}

func TestManyReasonsAreSaidTogether(t *testing.T) {
	run := everyOutcome()
	clear(run.Attempts)
	got := render(t, run, 0, report.FormatTable)
	if !strings.Contains(got, "  9 cases are error: net-passed, net-part, net-flaky, net-failed … and 5 more\n") || !strings.Contains(got, "  2 cases are not-tested: cluster-node-count, net-no-kubectl\n") {
		t.Errorf("got:\n%s", got)
	}
	run.Problems = slices.Repeat([]string{"odd"}, 100)
	if got := render(t, run, 0, report.FormatTable); strings.Count(got, "  odd\n") > 20 || !strings.Contains(got, "… and more") {
		t.Errorf("%d problems are listed", strings.Count(got, "  odd\n"))
	}
}

// suites is JUnit as encoding/xml reads it.
type suites struct {
	XMLName xml.Name `xml:"testsuites"`
	Tests   string   `xml:"tests,attr"`
	Suites  []struct {
		Name  string     `xml:"name,attr"`
		Tests string     `xml:"tests,attr"`
		Cases []testCase `xml:"testcase"`
	} `xml:"testsuite"`
}

type testCase struct {
	Name       string     `xml:"name,attr"`
	Time       string     `xml:"time,attr"`
	Properties []property `xml:"properties>property"`
	Failure    *detail    `xml:"failure"`
	Error      *detail    `xml:"error"`
	Skipped    *detail    `xml:"skipped"`
}

type property struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type detail struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Body    string `xml:",chardata"`
}

// readJUnit reads the files as strictly as their readers do, by name of the
// case.
func readJUnit(t testing.TB, run *result.Run) (names []string, cases map[string][]testCase) {
	t.Helper()
	files, err := report.JUnit(verdict.Judge(run))
	if err != nil {
		t.Fatal(err)
	}
	cases = map[string][]testCase{}
	for _, f := range files {
		names = append(names, f.Name)
		if len(f.Data) > 1_000_000 {
			t.Errorf("%s has %d bytes", f.Name, len(f.Data))
		}
		for _, r := range string(f.Data) {
			if r < ' ' && r != '\n' && r != '\t' || r == '\uFFFE' || r == '\uFFFF' {
				t.Errorf("%s has the character %U", f.Name, r)
				break
			}
		}
		var s suites
		if err := xml.Unmarshal(f.Data, &s); err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		n := 0
		for _, suite := range s.Suites {
			if suite.Name != "" {
				t.Errorf("%s: the suite is called %q, and rows would be, too", f.Name, suite.Name)
			}
			for _, c := range suite.Cases {
				n++
				cases[c.Name] = append(cases[c.Name], c)
				if _, err := strconv.ParseFloat(c.Time, 64); err != nil {
					t.Errorf("%s: %s: time %q", f.Name, c.Name, c.Time)
				}
				if c.Skipped != nil && strings.TrimSpace(c.Skipped.Body) == "" {
					t.Errorf("%s: %s is skipped without a reason in its body", f.Name, c.Name)
				}
				if d := cmp.Or(c.Failure, c.Skipped); d != nil && d.Message != "" && strings.Contains(d.Body, d.Message) {
					t.Errorf("%s: %s says %q twice to those who show message and body", f.Name, c.Name, d.Message)
				}
			}
		}
		if s.Tests != strconv.Itoa(n) {
			t.Errorf("%s says it has %s tests, and has %d", f.Name, s.Tests, n)
		}
	}
	return names, cases
}

func TestJUnit(t *testing.T) {
	run := everyOutcome()
	files, err := report.JUnit(verdict.Judge(run))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		golden.Equal(t, f.Name, string(f.Data))
	}
	names, cases := readJUnit(t, run)
	if want := []string{
		"junit_cluster-rules_01.xml", "junit_core-network_01.xml", "junit_core-storage_01.xml", "junit_core-scheduling_01.xml",
		"junit_core-concurrent_01.xml", "junit_extend-worker_01.xml", "junit_run_01.xml",
	}; !slices.Equal(names, want) {
		t.Errorf("files %q, want %q", names, want)
	}
	row := func(id string, test int) string { return fmt.Sprintf("%s [sig-x] %s-%d [Conformance]", id, id, test) }
	// What TestGrid makes of a row: its attempts, in their order.
	for name, want := range map[string]string{
		row("net-passed", 0):        "passed",
		row("net-passed", 1):        "passed",
		row("net-part", 0):          "passed",
		row("net-flaky", 0):         "failed:[FAILED] expected <int>: 1 passed",
		row("net-failed", 0):        "failed:[FAILED] expected <int>: 1",
		row("net-failed", 1):        "passed",
		row("net-unproven", 0):      `unproven:unproven: pod p ran on Linux, and the case wants it on Windows; no pod "^p" was observed on Windows; its pods may not all have been seen: pods that came and went between 12:00:01 and 12:00:09 UTC were not seen: the watch on pods broke`,
		row("net-error", 0):         "error:error: the API server does not answer",
		row("net-error", 1):         "error:error: the run ended and has no result of it",
		row("net-tried-trial", 0):   "skipped:on trial, which decides nothing: failed: [FAILED] expected <int>: 1\nto equal <int>: 2\n\n[BeforeEach] k8s.io/kubernetes@v1.36.3/test/e2e/x.go:7\n[It] k8s.io/kubernetes@v1.36.3/test/e2e/x.go:9",
		row("net-tried-trial", 1):   "skipped:on trial, which decides nothing: passed",
		row("net-skipped", 0):       "skipped:not-tested: the test skipped itself: [SKIPPED] needs SSH",
		"net-no-kubectl":            "skipped:not-tested: its pods say nothing about their operating system, and were not steered to Windows",
		"net-none":                  "skipped:not-implemented: A test that does it.",
		"storage-policy":            "skipped:not-applicable: declared: the cluster is without netpol (--without netpol)",
		row("extra-scheduling", 0):  "failed:[FAILED] expected <int>: 1",
		row("worker-failed", 0):     "failed:Meanwhile node w-0 was cordoned at 12:00:05 UTC by kubectl-cordon.",
		"batch 02 BeforeSuite":      "error:[FAILED] no schedulable nodes",
		"cluster-linux-conformance": "skipped:not-tested: no JUnit of a Linux conformance run was given (--conformance-junit)",
		"cluster-node-count":        "skipped:not-tested: simulated nodes do not count: 2 schedulable Windows nodes (1 simulated)",
		row("scheduling-good", 0):   "passed",
		row("concurrent-good", 0):   "passed",
	} {
		var got []string
		for _, c := range cases[name] {
			switch {
			case c.Error != nil:
				got = append(got, "an <error>, which is for nobody")
			case c.Failure != nil:
				got = append(got, c.Failure.Type+":"+c.Failure.Message)
			case c.Skipped != nil:
				got = append(got, "skipped:"+c.Skipped.Body)
			default:
				got = append(got, "passed")
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", name, strings.Join(got, " "), want)
		}
		delete(cases, name)
	}
	for name := range cases {
		t.Errorf("a row that nobody asked for: %q", name)
	}
	_, cases = readJUnit(t, run)
	if body := cases[row("net-failed", 0)][0].Failure.Body; !strings.Contains(body, "to equal <int>: 2") || !strings.Contains(body, "x.go:9") {
		t.Errorf("the failure's body is %q", body)
	}
	// Each attempt has its own evidence.
	has := func(row string, attempt int, want ...property) {
		for _, p := range want {
			if got := cases[row][attempt].Properties; !slices.Contains(got, p) {
				t.Errorf("%s, attempt %d: properties %q, want %q", row, attempt+1, got, p)
			}
		}
	}
	has(row("net-passed", 1), 0, property{"outcome", "passed"}, property{"proof", "full"},
		property{"evidence", "4 pods: 2 on Windows ltsc2022 (runhcs-wcow-process), 1 on Windows ltsc2022, 1 on Linux"},
		property{"pod", "n/q-0: node w-0, windows 10.0.20348, runtime class runhcs-wcow-process; images agnhost, pause; Pending, Running, Succeeded"})
	has(row("net-part", 0), 0, property{"other-images", "docker.io/library/busybox:1"})
	has(row("net-flaky", 0), 0, property{"pod", "n-1/p: no node; Pending; not scheduled: 0/4 nodes are available: 2 Insufficient memory"})
	has(row("net-flaky", 0), 1, property{"evidence", "1 pod, on Windows ltsc2025 (simulated)"})
	has(row("net-unproven", 0), 0, property{"unobserved", "pods that came and went between 12:00:01 and 12:00:09 UTC were not seen: the watch on pods broke"})
}

// What TestGrid's own code, and with it Spyglass, makes of a failure: all of it,
// once, the most useful part first.
func TestJUnitIsSaidOnce(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("word ", 200)) + " end"
	for what, c := range map[string]struct {
		text, message, cell string
		whole               []string // in this order
	}{
		"one line": {
			"[TIMEDOUT] it did not end within 2m0s", "[TIMEDOUT] it did not end within 2m0s",
			"[TIMEDOUT] it did not end within 2m0s", nil,
		},
		"ginkgo's place comes last": {
			"[It] k8s.io/kubernetes@v1.36.3/test/e2e/x.go:9\n\n[FAILED] expected <int>: 1\nto equal <int>: 2", "[FAILED] expected <int>: 1",
			"[FAILED] expected <int>: 1\nto equal <int>: 2\n\n[It] k8s.io/kubernetes@v1.36.3/test/e2e/x.go:9", nil,
		},
		"a long line is continued": {
			long, "", "", []string{"word word", "…", "word", "end"},
		},
		"a long word is not cut inside of a character": {
			strings.Repeat("ü", 400), "", "", []string{"üü", "…", "üü"},
		},
		"nothing": {"", "failed", "failed", nil},
	} {
		run := everyOutcome()
		for id := range run.Attempts {
			for i := range run.Attempts[id] {
				run.Attempts[id][i].Message = c.text
			}
		}
		_, cases := readJUnit(t, run)
		got := cases["net-failed [sig-x] net-failed-0 [Conformance]"][0].Failure
		seen := gridjunit.Result{Failure: &gridjunit.Failure{Message: got.Message, Value: got.Body}}
		if c.message != "" && (got.Message != c.message || seen.Message(140) != c.cell) {
			t.Errorf("%s: message %q, cell %q", what, got.Message, seen.Message(140))
		}
		whole := seen.Message(-1)
		for _, part := range c.whole {
			_, after, found := strings.Cut(whole, part)
			if !found {
				t.Errorf("%s: %q is not in its place in %q", what, part, seen.Message(-1))
			}
			whole = after
		}
		for _, word := range []string{"word", "ü"} {
			if n := strings.Count(seen.Message(-1), word); n != strings.Count(c.text, word) {
				t.Errorf("%s: %q is there %d times", what, word, n)
			}
		}
		if len(got.Message) > 600 || !utf8.ValidString(got.Message) || strings.ContainsRune(got.Message, utf8.RuneError) {
			t.Errorf("%s: message %q", what, got.Message)
		}
	}
}

// hostile puts a text wherever a results folder from elsewhere can have one.
func hostile(text string) *result.Run {
	run := everyOutcome()
	for i := range run.Plan.Cases {
		c := &run.Plan.Cases[i]
		c.ID = fmt.Sprintf("%s%d", text, i)
		c.Requirement, c.Missing = text, text
	}
	for i := range run.Plan.Tests {
		run.Plan.Tests[i].Name = text
	}
	for id := range run.Attempts {
		for i := range run.Attempts[id] {
			run.Attempts[id][i].Measured = []result.Measurement{{What: text, Figure: text}}
			run.Attempts[id][i].Message = text
		}
	}
	for i := range run.Pods {
		run.Pods[i].Name, run.Pods[i].Node, run.Pods[i].WindowsBuild, run.Pods[i].Images = text, text, text, []string{text}
	}
	run.Suites[0] = result.Suite{Batch: text, Node: text, Message: text}
	run.Problems = []string{text}
	run.Manifest.Cluster.ServerVersion, run.Manifest.E2EVersion, run.Manifest.RunID = text, text, text
	return run
}

var hostileTexts = map[string]string{
	"a pipe":          "a|b",
	"new lines":       "a\n\n# b\r\nc\u2028d\u0085e",
	"HTML":            `<script>alert(1)</script><img src=x onerror=y>&amp;`,
	"a comment":       "<!-- readiness: done -->",
	"Markdown":        "[x](javascript:y) ![z](w) **b** _i_ `c` ```\n@team #1 ~~s~~ $m$",
	"colours":         "\x1b[31mred\x1b[0m\x1b]0;title\x07\u009b2J",
	"other controls":  "a\x00b\bc\td\x7fe",
	"another way":     "a\u202eb\u2066c\u200f",
	"a formula":       `=HYPERLINK("http://x","y")`,
	"a formula of 1":  "+1", // and the others that spreadsheets know
	"a formula of 2":  "-1",
	"a formula of 3":  "@SUM(1)",
	"a workflow":      "::error::x\n::set-output name=a::b " + strings.Repeat("word ::stop-commands::x ", 30) + "##[error]",
	"no UTF-8":        "a\xff\xfe\xc3(b",
	"quotes":          `a"b'c,d;e` + "`",
	"100 kB":          strings.Repeat("long ", 20<<10),
	"100 kB, a word":  strings.Repeat("x", 100<<10),
	"the end of data": "]]>",
	"nothing":         "",
}

var escaped = regexp.MustCompile(`\\.`)

func TestHostileTextsDoNothing(t *testing.T) {
	for what, text := range hostileTexts {
		run := hostile(text)
		for _, format := range []report.Format{report.FormatTable, report.FormatMarkdown, report.FormatCSV} {
			got := render(t, run, 0, format)
			for _, r := range got {
				if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
					t.Errorf("%s, %s: the character %U is left", what, format, r)
					break
				}
			}
			for _, line := range strings.Split(got, "\n") {
				if line = strings.TrimLeft(line, " \""); strings.HasPrefix(line, "::") || strings.Contains(line, "##[") {
					t.Errorf("%s, %s: a line begins with a workflow's command: %.100s", what, format, line)
				}
			}
			if limit := map[report.Format]int{report.FormatTable: 60 << 10, report.FormatMarkdown: 60 << 10, report.FormatCSV: 1 << 20}[format]; len(got) > limit {
				t.Errorf("%s, %s: %d bytes", what, format, len(got))
			}
		}

		page := render(t, run, 0, report.FormatMarkdown)
		for _, raw := range []string{"<script", "<img", "<!--", "](", "**b", "`c", "@team", "_i_", "~~s", "$m"} {
			if strings.Contains(escaped.ReplaceAllString(page, ""), raw) {
				t.Errorf("%s: the page has %s", what, raw)
			}
		}
		rows := 0
		for _, line := range strings.Split(page, "\n") {
			if line, ok := strings.CutPrefix(line, "| "); ok {
				rows++
				cells := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|")
				if cells != 6 && cells < 8 {
					t.Errorf("%s: a row of %d cells: %.200s", what, cells, line)
				}
			}
		}
		judgement := verdict.Judge(run)
		if want := len(judgement.Cases) + len(judgement.Categories) + 4; rows != want {
			t.Errorf("%s: %d rows, want %d", what, rows, want)
		}

		sheet, err := csv.NewReader(strings.NewReader(render(t, run, 0, report.FormatCSV))).ReadAll()
		if err != nil || len(sheet) != len(judgement.Cases)+1 {
			t.Errorf("%s: %d lines of CSV, %v", what, len(sheet), err)
		}
		for _, line := range sheet {
			for _, cell := range line {
				if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
					t.Errorf("%s: a spreadsheet calculates %.100q", what, cell)
				}
				if len(cell) > 32_000 {
					t.Errorf("%s: a cell of %d bytes", what, len(cell))
				}
			}
		}

		if data := render(t, run, 0, report.FormatJSON); !json.Valid([]byte(data)) {
			t.Errorf("%s: no JSON", what)
		}
		readJUnit(t, run)
	}
}

func TestTablesOfListsAreHarmlessToo(t *testing.T) {
	for what, text := range hostileTexts {
		table := report.Table{Header: []string{"A", "B"}, Rows: [][]string{{text, "x"}, {"y", text}}}
		var b bytes.Buffer
		if err := table.Write(&b, report.FormatCSV); err != nil {
			t.Fatal(err)
		}
		if sheet, err := csv.NewReader(&b).ReadAll(); err != nil || len(sheet) != 3 {
			t.Errorf("%s: %q, %v", what, sheet, err)
		}
		b.Reset()
		if err := table.Write(&b, report.FormatMarkdown); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); strings.Count(got, "\n") != 4 || strings.Contains(got, "<s") || strings.Contains(got, "\x1b") {
			t.Errorf("%s: %.300q", what, got)
		}
		b.Reset()
		if err := table.Write(&b, report.FormatTable); err != nil || strings.Contains(b.String(), "\x1b") {
			t.Errorf("%s: %.300q, %v", what, b.String(), err)
		}
	}
}

func TestFoldersAreWrittenAnew(t *testing.T) {
	run := everyOutcome()
	dir := t.TempDir()
	folder, err := result.Create(dir, run.Plan, run.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	for _, name := range []string{"junit_core-network_01.xml", "junit_core-network_02.xml", "junit_gone_01.xml", "mine.xml", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	judgement := verdict.Judge(run)
	end := at.Add(2 * time.Hour)
	if err := report.WriteFolder(folder, run, judgement, end); err != nil {
		t.Fatal(err)
	}
	files, err := report.JUnit(judgement)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"mine.xml", "notes.txt"}
	for _, f := range files {
		want = append(want, f.Name)
		if data, err := os.ReadFile(filepath.Join(dir, f.Name)); err != nil || !bytes.Equal(data, f.Data) {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
	slices.Sort(want)
	var got []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".xml") || strings.HasSuffix(e.Name(), ".txt") {
			got = append(got, e.Name())
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the folder has %q, want %q", got, want)
	}

	var metadata map[string]string // anything but strings would be an error
	data, err := os.ReadFile(filepath.Join(dir, result.MetadataFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &metadata); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"kubernetes-version": "v1.36.4", "windows-version": "10.0.20348, 10.0.26100 (simulated)", "container-runtime": "containerd://2.1.0",
		"verdict": "not-ready without netpol, as declared (another standard)", "scope": judgement.Scope.String(), "requirements": judgement.Counts.String(), "run-id": "20260801-120000-abcd", "op-readiness": "v0.1.0",
	} {
		if metadata[key] != want {
			t.Errorf("metadata: %s is %q, want %q", key, metadata[key], want)
		}
	}

	var m result.Manifest
	if data, err = os.ReadFile(filepath.Join(dir, result.ManifestFile)); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	if !m.Finished.Equal(end) || m.Verdict != "not-ready" || m.Scope != judgement.Scope.String() || m.ExitCode == nil || *m.ExitCode != verdict.ExitNotReady || m.Outcomes["failed"] != 3 {
		t.Errorf("the manifest says %+v", m)
	}
	if run.Manifest.Verdict != "" {
		t.Error("the caller's manifest was changed")
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestWritesThatFail(t *testing.T) {
	run := everyOutcome()
	results := report.Results{Run: run, Judgement: verdict.Judge(run)}
	for _, format := range []report.Format{report.FormatTable, report.FormatMarkdown, report.FormatCSV, report.FormatJSON} {
		if err := results.Write(full{}, format); err == nil {
			t.Errorf("%s: no error", format)
		}
	}
}

func TestMetadataNamesWhatColumnsShow(t *testing.T) {
	run := &result.Run{Manifest: &result.Manifest{
		Source: result.Source{Commit: "abc"},
		Cluster: result.Facts{ServerVersion: "v1.36.3", Networks: []string{"Calico", "Flannel"}, Nodes: []result.Node{
			{OS: specs.Windows, WindowsBuild: "10.0.20348", ContainerRuntime: "containerd://2.1.4"}, {OS: specs.Linux, ContainerRuntime: "cri-o://1.30"},
		}},
	}}
	got := report.Metadata(run, &verdict.Judgement{Verdict: verdict.Ready, Scope: verdict.Scope{Kind: verdict.ScopeCluster}})
	for key, want := range map[string]string{
		"Commit": "abc", "kubernetes-version": "v1.36.3", "windows-version": "10.0.20348", "container-runtime": "containerd://2.1.4", "cni": "Calico, Flannel",
		"verdict": "ready", "scope": "the cluster",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
}
