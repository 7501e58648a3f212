//go:build unix

package lies

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
)

const delimiter = "------------------------------"

var truth = tell("the truth", func(int) lie { return lie{} })

func TestTheTruthIsBelieved(t *testing.T) {
	t.Parallel()
	s := newScene(t, truth)
	s.believed(s.run("--retries", "0"), "READY (3 proven")
	s.believed(s.main("report", s.dir))
}

// bodies are what tests do, by name.
type bodies = map[string]func(ginkgo.SpecContext, *program)

// pretends prints what looks like the heading and the pass of a test.
func pretends(name string) {
	fmt.Printf("%s\n%s\nk8s.io/kubernetes/test/e2e/lies.go:1\n  STEP: Creating a kubernetes client @ 01/02/26 15:04:05.000\n• [0.001 seconds]\n%s\n", delimiter, name, delimiter)
}

// then is a test that does one thing after the other.
func then(all ...func(ginkgo.SpecContext, *program)) func(ginkgo.SpecContext, *program) {
	return func(ctx ginkgo.SpecContext, p *program) {
		for _, one := range all {
			one(ctx, p)
		}
	}
}

func says(text func()) func(ginkgo.SpecContext, *program) {
	return func(ginkgo.SpecContext, *program) { text() }
}

// without drops the lines of the output between the headings of two tests.
func without(name, next string) func(string) []string {
	dropping := false
	return func(line string) []string {
		dropping = strings.HasPrefix(line, name) || dropping && !strings.HasPrefix(line, next)
		if dropping {
			return nil
		}
		return []string{line}
	}
}

// always are lies that are told at every start. None of them is believed, by
// the run, by who goes on with it, and by who reads its folder.
var always = map[string]lie{
	"a pass that the report calls a failure":                  {report: becomes(first, types.SpecStateFailed)},
	"a pass that the report and the exit code call a failure": {report: becomes(first, types.SpecStateFailed), exit: exits(1)},
	"a pass that the report calls skipped":                    {report: becomes(first, types.SpecStateSkipped)},
	"a pass that the report calls pending":                    {report: becomes(first, types.SpecStatePending)},
	"a pass that the report calls interrupted":                {report: becomes(first, types.SpecStateInterrupted)},
	"a pass whose state is unknown to ginkgo":                 {report: stated(first, "splendid")},
	"passes with exit code 1":                                 {exit: exits(1)},
	"passes with exit code 2":                                 {exit: exits(2)},
	"passes of a process that was killed in the end":          {exit: func(int) int { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} }},
	"a report without a state":                                {report: replaced(`"State":"passed"`, `"State":""`)},
	"a report without the states of passes only":              {report: stated(first, nil)},
	"a report that lists a test twice":                        {report: reported(func(r *types.Report) { r.SpecReports = slices.Insert(r.SpecReports, 0, failedTwin(r)) })},
	"a report that lists a test twice, the failure last":      {report: reported(func(r *types.Report) { r.SpecReports = append(r.SpecReports, failedTwin(r)) })},
	"a report that goes on after its end":                     {report: func(text []byte) []byte { return append(text, "[{}]"...) }},
	"a report with another one behind it":                     {report: func(text []byte) []byte { return append(text, text...) }},
	"a report of two suites":                                  {report: inJSON(func(suites []any) []any { return append(suites, suites[0]) })},
	"a report of no suite":                                    {report: func([]byte) []byte { return []byte("[]") }},
	"a report that is cut off":                                {report: func(text []byte) []byte { return text[:len(text)/2] }},
	"an empty report":                                         {report: func([]byte) []byte { return nil }},
	"a report of a suite that did not succeed":                {report: reported(func(r *types.Report) { r.SuiteSucceeded = false })},
	"a report that names reasons why the suite failed": {report: reported(func(r *types.Report) {
		r.SuiteSucceeded = false
		r.SpecialSuiteFailureReasons = []string{"Suite timed out"}
	})},
	"a report that says of no suite whether it succeeded": {report: replaced(`"SuiteSucceeded":true,`, "")},
	"a report in which a field stands twice":              {report: replaced(`"SuiteSucceeded":true,`, `"SuiteSucceeded":false,"SuiteSucceeded":true,`)},
	"a pass that the report does not know": {report: reported(func(r *types.Report) {
		r.SpecReports = slices.DeleteFunc(r.SpecReports, func(s types.SpecReport) bool { return s.FullText() == first })
	})},
	"a pass of a test that nobody asked for": {report: reported(func(r *types.Report) {
		s := *spec(r, first)
		s.LeafNodeText += " twice"
		r.SpecReports = append(r.SpecReports, s)
	})},
	"a pass in the report alone, with exit code 1":            {output: without(first, second), exit: exits(1)},
	"an output without any test, with exit code 1":            {output: func(line string) []string { return nil }, exit: exits(1)},
	"a failure that the output calls a pass":                  {tests: bodies{first: fails}, output: passesIn(first)},
	"a failure that the output and the exit code call a pass": {tests: bodies{first: fails}, output: passesIn(first), exit: exits(0)},
	"a failure that the report calls a pass":                  {tests: bodies{first: fails}, report: becomes(first, types.SpecStatePassed)},
	"a failure that the report and the exit code call a pass": {tests: bodies{first: fails}, report: succeeded, exit: exits(0)},
	"a failure with exit code 0":                              {tests: bodies{first: fails}, exit: exits(0)},
	"a pass that a test prints before it fails":               {tests: bodies{first: then(says(func() { pretends(first) }), fails)}},
	"a pass that the next test prints of one that failed":     {tests: bodies{first: fails, second: then(says(func() { pretends(first) }), honest)}},
	"a pass that a test prints of the next one, which fails":  {tests: bodies{first: then(says(func() { pretends(second) }), honest), second: fails}},
	"a pass that a test prints of itself, and skips":          {tests: bodies{first: then(says(func() { pretends(first) }), func(ginkgo.SpecContext, *program) { ginkgo.Skip("not here") })}},
	"the end of the suite, printed by a test that then fails": {tests: bodies{second: then(says(func() {
		pretends(second)
		pretends(third)
		fmt.Print("\nRan 3 of 3 Specs in 0.1 seconds\nSUCCESS! -- 3 Passed\nPASS\n")
	}), fails)}},
	"a suite whose BeforeSuite fails":                          {before: func(*program) { ginkgo.Fail("no nodes") }},
	"a suite whose AfterSuite fails":                           {after: func(*program) { ginkgo.Fail("it leaks") }},
	"an AfterSuite that fails in the output alone":             {after: func(*program) { ginkgo.Fail("it leaks") }, report: suitePassed},
	"an AfterSuite that fails in the output, with exit code 0": {after: func(*program) { ginkgo.Fail("it leaks") }, report: suitePassed, exit: exits(0)},
	"an AfterSuite that fails in the report alone":             {after: func(*program) { ginkgo.Fail("it leaks") }, output: suiteUnsaid, exit: exits(0)},
}

func failedTwin(r *types.Report) types.SpecReport {
	s := *spec(r, first)
	s.State = types.SpecStateFailed
	s.Failure = types.Failure{Message: "expected a Windows node"}
	return s
}

// succeeded is a report in which the first test passed.
func succeeded(text []byte) []byte {
	return reported(func(r *types.Report) {
		s := spec(r, first)
		s.State, s.Failure, r.SuiteSucceeded = types.SpecStatePassed, types.Failure{}, true
	})(text)
}

// suitePassed is a report in which nothing failed outside of tests.
func suitePassed(text []byte) []byte {
	return reported(func(r *types.Report) {
		r.SuiteSucceeded = true
		r.SpecReports = slices.DeleteFunc(r.SpecReports, func(s types.SpecReport) bool {
			return s.LeafNodeType == types.NodeTypeSynchronizedAfterSuite
		})
	})(text)
}

// suiteUnsaid is an output in which nothing failed outside of tests.
func suiteUnsaid(line string) []string {
	if strings.Contains(line, "[SynchronizedAfterSuite]") {
		return nil
	}
	return []string{line}
}

// passesIn is an output in which a test that fails passes.
func passesIn(name string) func(string) []string {
	end := `• [FAILED]`
	dropping := false
	return func(line string) []string {
		switch {
		case strings.HasPrefix(line, end):
			dropping = true
			return []string{"• [0.001 seconds]"}
		case line == delimiter:
			dropping = false
		}
		if dropping || strings.Contains(line, "[FAIL]") {
			return nil
		}
		return []string{line}
	}
}

func init() {
	for name, l := range always {
		tell(name, func(int) lie { return l })
	}
}

func TestLiesThatAreToldAlways(t *testing.T) {
	t.Parallel()
	for name := range always {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, name)
			s.disbelieved(s.run("--retries", "0"))
			s.disbelieved(s.main("report", s.dir))
			s.disbelieved(s.resume())
		})
	}
}

// once is a lie of the first start; the later ones are honest.
func once(l lie) func(start int) lie {
	return func(start int) lie {
		if start == 0 {
			return l
		}
		return lie{}
	}
}

// What is proven to contradict itself stays so, however honest it is later.
var contradictions = map[string]lie{
	"one pass that the report called a failure":        {report: becomes(first, types.SpecStateFailed), exit: exits(1)},
	"one pass that the exit code called a failure":     {exit: exits(1)},
	"one failure that the report called a pass":        {tests: bodies{first: fails}, report: succeeded, exit: exits(0)},
	"one pass that was printed before the test failed": {tests: bodies{first: then(says(func() { pretends(first) }), fails)}},
}

// What failed outside of tests, or came to no end, is made good by an honest run
// of the tests that it leaves in doubt.
var accidents = map[string]lie{
	"a cluster that was not there at first":      {before: func(*program) { ginkgo.Fail("no nodes") }},
	"a suite that leaked once":                   {after: func(*program) { ginkgo.Fail("it leaks") }},
	"a process that was killed once":             {tests: bodies{second: says(func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) })}},
	"a report that was cut off once":             {report: func(text []byte) []byte { return text[:len(text)/2] }},
	"a process that ended early, with no report": {tests: bodies{second: says(func() { os.Exit(2) })}},
}

func init() {
	for name, l := range contradictions {
		tell(name, once(l))
	}
	for name, l := range accidents {
		tell(name, once(l))
	}
}

func TestAContradictionIsNotMadeGood(t *testing.T) {
	t.Parallel()
	for name := range contradictions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, name)
			s.disbelieved(s.run("--retries", "1"))
			s.disbelieved(s.resume("--retries", "1"))
		})
	}
}

func TestAnAccidentIsMadeGood(t *testing.T) {
	t.Parallel()
	for name := range accidents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, name)
			s.run("--retries", "0")
			s.believed(s.resume())
		})
	}
}

var takenBack = tell("a pass that the report takes back when the run is interrupted", once(lie{
	tests: bodies{second: hangs}, report: becomes(first, types.SpecStateFailed),
}))

func TestAPassThatTheReportTakesBack(t *testing.T) {
	t.Parallel()
	s := newScene(t, takenBack)
	s.disbelieved(s.interrupted(started(second)))
	s.disbelieved(s.resume())
	s.disbelieved(s.main("report", s.dir))
}

var interruptedOnce = tell("a test that is interrupted", once(lie{tests: bodies{second: hangs}}))

func TestAnInterruptIsNoContradiction(t *testing.T) {
	t.Parallel()
	s := newScene(t, interruptedOnce)
	s.disbelieved(s.interrupted(started(second)))
	s.believed(s.resume())
}

var killedAttempt = tell("pods of an attempt that was killed", func(start int) lie {
	if start == 0 {
		return lie{tests: bodies{second: hangs}}
	}
	onLinux := web(func(pod object) { pod["spec"].(object)["nodeName"] = "linux-0" })
	return lie{tests: bodies{second: func(_ ginkgo.SpecContext, p *program) { makes(p, p.namespace(), object{"e2e-run": p.runID}, onLinux) }}}
})

// The attempt that went on has the number of the one that was killed, and pods
// on Linux alone.
func TestPodsOfAKilledAttempt(t *testing.T) {
	t.Parallel()
	s := newScene(t, killedAttempt)
	s.interrupted(started(second))
	id := ""
	s.edit(func(e *result.Event) bool {
		if e.Test != nil && e.Test.Name == second {
			id = e.Test.ID
		}
		return e.Type != result.BatchFinished && e.Type != result.RunFinished && (e.Type != result.TestFinished || e.Test.ID != id)
	})
	s.append(result.Event{Time: time.Now().UTC(), Type: result.PodObserved, Pod: &result.Pod{
		Test: id, Attempt: 1, Namespace: "x", Name: "web", Node: "windows-0", OS: "windows", WindowsBuild: "10.0.20348",
		Started: true, Phases: []string{"Running"}, Images: []string{"agnhost:2.63.0"},
	}})
	s.disbelieved(s.resume())
}

func TestArgumentsThatLeadElsewhere(t *testing.T) {
	t.Parallel()
	s := newScene(t, truth)
	args := []string{
		"--host=https://elsewhere.example", "-host=https://elsewhere.example", "--clean-start", "--clean-start=true", "--kubeconfig=/elsewhere",
		"--context=x", "--provider=local", "--node-os-distro=linux", "--ginkgo.dry-run", "--ginkgo.skip=.", "--ginkgo.json-report=/tmp/x",
		"--ginkgo.flake-attempts=3", "--test.run=none", "--report-dir=/tmp", "--list-tests", "--version", "--help", "-h", "--viper-config=/x",
		"--no-such-flag-at-all=1", "first",
	}
	s.believed(s.run("--e2e-arg=--v=2"))
	for _, arg := range args {
		if got := s.main(s.runArgs("--report-dir", filepath.Join(t.TempDir(), "results"), "--e2e-arg", arg)...); got.code != verdict.ExitUsage {
			t.Errorf("%s: exit code %d", arg, got.code)
		}
	}
	for _, arg := range args {
		s.manifest(func(m *result.Manifest) { m.Settings.E2EArgs = []string{arg} })
		if got := s.resume(); got.code != verdict.ExitUsage {
			t.Errorf("%s out of %s: exit code %d", arg, result.ManifestFile, got.code)
		}
	}
}
