package e2etest

import (
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

const (
	delimiter = "------------------------------"
	// stamp is when everything happens.
	stamp = "01/02/26 15:04:05.000"
)

// suite is one start of the program to run tests.
type suite struct {
	folder     Folder
	script     *Script
	interrupts chan os.Signal
	dry        bool
	do         string // what it does, of the behaviours of a suite
	report     string // where the JSON report goes; "" writes none
	specs      []spec
	failed     bool
	stopped    bool
	total      int // of all tests
	selected   int
}

func runSuite(f Folder, script *Script, args []string) (int, error) {
	s := &suite{folder: f, script: script, interrupts: make(chan os.Signal, 1)}
	var focus []*regexp.Regexp
	for _, arg := range args {
		if text, ok := strings.CutPrefix(arg, "--ginkgo.focus="); ok {
			re, err := regexp.Compile(text)
			if err != nil {
				return 0, err
			}
			focus = append(focus, re)
		}
		if path, ok := strings.CutPrefix(arg, "--ginkgo.json-report="); ok {
			s.report = path
		}
		s.dry = s.dry || arg == "--ginkgo.dry-run"
	}
	signal.Notify(s.interrupts, os.Interrupt)
	what := "suite"
	if s.dry {
		what = "dry-run"
	}
	n, err := f.note(what)
	if err != nil {
		return 0, err
	}
	tests, err := script.list()
	if err != nil {
		return 0, err
	}
	var selected []string
	for _, t := range tests {
		for _, re := range focus {
			if re.MatchString(specs.SuiteName + " " + t.Name) {
				selected = append(selected, t.Name)
				break
			}
		}
	}
	s.total, s.selected = len(tests), len(selected)
	switch s.do = nth(script.Suite, n, ""); s.do {
	case Garbage:
		fmt.Print("\x00\x01\xff\xfe• [0.1 seconds]\n\n", delimiter, "\nPASS\n")
		return 0, nil
	case Nothing:
		return 0, nil
	case NothingFailed:
		return 1, nil
	case Hang, Deaf, Kill, Exit:
		return s.misbehave(s.do), nil
	default:
		return s.run(selected)
	}
}

// misbehave does not come back in every case.
func (s *suite) misbehave(do string) int {
	switch do {
	case Exit:
		return 2
	case Kill:
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill()
	case Deaf:
		for range s.interrupts {
			fmt.Println("  I will not stop")
		}
	case Hang:
		<-s.interrupts
		return 1
	}
	select {}
}

func (s *suite) run(selected []string) (int, error) {
	id := runID()
	if s.do != NoID {
		fmt.Printf("  I0102 15:04:05.000000 %d e2e.go:109] Starting e2e run %q on Ginkgo node 1\n", os.Getpid(), id)
	}
	fmt.Printf("Running Suite: %s - /fake\n===\nRandom Seed: 1 - will randomize all specs\n\nWill run %d of %d specs\n", specs.SuiteName, len(selected), s.total)
	switch s.do {
	case WaitBefore:
		if until(s.folder.Ready(id), s.interrupts) {
			return 1, nil
		}
	case DieBefore:
		return 2, nil
	}
	if !s.dry {
		s.node("SynchronizedBeforeSuite", "there are currently no ready, schedulable nodes in the cluster", s.do == FailBefore)
	}
	if s.do == FailBefore {
		return s.finish() // ginkgo does not even list the tests then
	}
	for _, name := range selected {
		s.heed()
		if s.stopped {
			fmt.Print("S")
			s.add(name, "skipped", 0, "")
			continue
		}
		if code, err := s.start(name); code != 0 || err != nil {
			return code, err
		}
	}
	fmt.Print("S")
	s.add("[sig-fake] a test that was not selected", "skipped", 0, "")
	if s.do == Stranger {
		s.end("[sig-fake] a stranger", "passed", "")
	}
	return s.finish()
}

// start starts one test, and returns a code other than 0 to end the process.
func (s *suite) start(name string) (int, error) {
	if s.dry {
		return s.test(name, Pass), nil
	}
	n, err := s.folder.note(name)
	if err != nil {
		return 0, err
	}
	return s.test(name, nth(s.script.Do[name], n, s.script.Default)), nil
}

// heed takes an interrupt that came while nothing waited for one.
func (s *suite) heed() {
	select {
	case <-s.interrupts:
		s.stopped = true
	default:
	}
}

// finish ends the suite, and returns the exit code.
func (s *suite) finish() (int, error) {
	if s.do == HangAfter {
		<-s.interrupts
		s.stopped = true
	}
	s.heed()
	known, failed := len(s.specs), s.failed
	if !s.dry {
		s.node("SynchronizedAfterSuite", "could not clean up", s.do == FailAfter || s.do == FailAfterUnreported)
	}
	if s.do == FailAfterUnreported {
		s.specs = s.specs[:known]
	} else {
		failed = s.failed
	}
	var reasons []string
	if s.stopped {
		reasons = append(reasons, "Interrupted by User")
	}
	if s.do == Elapsed {
		reasons = append(reasons, "Suite Timeout Elapsed")
	}
	well := len(reasons) == 0 && s.do != Unsuccessful
	if err := s.writeReport(!failed && well || s.do == Successful, reasons); err != nil {
		return 0, err
	}
	succeeded := !s.failed && well
	status := "SUCCESS!"
	if !succeeded {
		status = "FAIL!"
	}
	fmt.Printf("\n\nRan %d of %d Specs in 0.100 seconds\n%s -- \n", s.selected, s.total, status)
	if !succeeded && s.do != ExitZero || s.do == ExitOne {
		fmt.Println("--- FAIL: TestE2E (0.10s)\nFAIL")
		return 1, nil
	}
	fmt.Println("PASS")
	return 0, nil
}

// node runs a node outside of tests.
func (s *suite) node(node, message string, fails bool) {
	fmt.Printf("\n%s\n[%s] \nk8s.io/kubernetes/test/e2e/e2e.go:69\n", delimiter, node)
	if !fails {
		fmt.Printf("[%s] PASSED [0.026 seconds]\n%s\n", node, delimiter)
		s.specs = append(s.specs, spec{LeafNodeType: node, State: "passed", RunTime: 26e6})
		return
	}
	s.failed = true
	fmt.Printf("[%s] [FAILED] [0.026 seconds]\n[%s] \nk8s.io/kubernetes/test/e2e/e2e.go:69\n\n", node, node)
	fmt.Printf("  [FAILED] %s\n  In [%s] at: e2e.go:250 @ %s\n%s\n", message, node, stamp, delimiter)
	s.specs = append(s.specs, spec{LeafNodeType: node, State: "failed", RunTime: 26e6, Failure: failureOf(message)})
}

// test runs one test, and returns a code other than 0 to end the process.
func (s *suite) test(name, do string) int {
	switch do {
	case Silent:
		return 0
	case Unsaid:
		s.add(name, "passed", 1e6, "")
		return 0
	case UnsaidFailure:
		s.add(name, "failed", 1e6, "expected a Windows node")
		s.failed = true
		return 0
	case Pending:
		fmt.Printf("%s\nP [PENDING]\n%s\nfake.go:1\n%s\n", delimiter, name, delimiter)
		s.add(name, "pending", 0, "")
		return 0
	}
	s.heading(name)
	switch do {
	case Exit, Kill, Deaf:
		if code := s.misbehave(do); code != 0 {
			fmt.Println("panic: runtime error")
			return code
		}
	case Hang, Wait, WaitFail:
		path := s.folder.Go()
		if do == Hang {
			path = s.folder.path("never")
		}
		if until(path, s.interrupts) {
			s.interrupted(name)
			return 0
		}
	case Slow:
		time.Sleep(3 * time.Millisecond)
	case Outage:
		if err := os.WriteFile(s.folder.Outage(), nil, 0o644); err != nil {
			fmt.Println(err)
			return 98
		}
	}
	s.conclude(name, do)
	return 0
}

// conclude ends a test, as it did and as it says.
func (s *suite) conclude(name, do string) {
	const failure = "expected a Windows node\n    to equal\n  a Windows node"
	switch do {
	case Early:
		s.end(name, "passed", "")
		s.specs[len(s.specs)-1].StartTime = began
	case Fail, Outage, WaitFail:
		s.end(name, "failed", failure)
	case Secret:
		fmt.Printf("  I0102 config: password=%s\n", Password)
		s.end(name, "failed", "could not log in with password: "+Password)
	case Panic:
		s.end(name, "panicked", "Test Panicked\nnil map")
	case Skip:
		s.end(name, "skipped", "not supported here")
	case Lie:
		s.say(name, "passed", "")
		s.add(name, "failed", 1e6, "it did not pass")
		s.failed = true
	case Unreported:
		s.say(name, "passed", "")
	case FakePass:
		s.heading(name)
		s.say(name, "passed", "")
		s.end(name, "failed", failure)
	case FakeFail:
		s.say(name, "failed", failure)
		s.end(name, "passed", "")
	case Restart:
		s.heading(name)
		s.end(name, "passed", "")
	case Measure, MeasureLie:
		s.say(name, "passed", "")
		s.add(name, map[string]string{Measure: "passed", MeasureLie: "failed"}[do], 1e6, "")
		s.failed = s.failed || do == MeasureLie
		for _, what := range []string{"op-readiness/rescheduling, median", "op-readiness/pods", "other"} {
			s.specs[len(s.specs)-1].ReportEntries = append(s.specs[len(s.specs)-1].ReportEntries, map[string]any{
				"Visibility": "never", "Name": what, "Value": map[string]string{"AsJSON": "7", "Representation": "7"},
			})
		}
	case Twice:
		s.add(name, "failed", 1e6, failure)
		s.end(name, "passed", "")
	case NoState, OddState:
		s.say(name, "passed", "")
		s.add(name, map[string]string{NoState: "", OddState: "PASSED"}[do], 1e6, "")
	case TwoKeys, TwoCases:
		s.end(name, "failed", failure)
		s.specs[len(s.specs)-1].again = map[string]string{TwoKeys: "State", TwoCases: "state"}[do]
	default:
		s.end(name, "passed", "")
	}
}

// heading tells that a test starts.
func (s *suite) heading(name string) {
	fmt.Printf("\n%s\n%s [sig-fake]\nk8s.io/kubernetes/test/e2e/fake.go:1\n  STEP: Creating a kubernetes client @ %s\n", delimiter, name, stamp)
}

// interrupted ends a test to which a signal came.
func (s *suite) interrupted(name string) {
	const message = "Interrupted by User"
	s.stopped = true
	fmt.Printf("  [INTERRUPTED] in [It] - k8s.io/kubernetes/test/e2e/fake.go:1 @ %s\n  %s\n  %s\n", stamp, delimiter, message)
	fmt.Printf("  First interrupt received; Ginkgo will run any cleanup and reporting nodes but will skip all remaining specs.  Interrupt again to skip cleanup.\n"+
		"  Here's a current progress report:\n    %s (Spec Runtime: 1s)\n  %s\n", name, delimiter)
	s.end(name, "interrupted", message)
}

// end tells in output and report how a test ended.
func (s *suite) end(name, state, message string) {
	s.say(name, state, message)
	s.add(name, state, 1e6, message)
	s.failed = s.failed || state != "passed" && state != "skipped"
}

// Namespace is the name of the namespace that a test destroys when it ends.
func Namespace(name string) string {
	return "ns-" + strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(name), "-"), "-")
}

// runID is what the framework puts on the namespaces of this process.
func runID() string { return fmt.Sprintf("fake-%d", os.Getpid()) }

// request asks the API server for something about namespaces; without it the
// suite cannot be played.
func (s *suite) request(method, path, body string) {
	request, err := http.NewRequest(method, s.script.Server+"/api/v1/namespaces"+path, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	answer.Body.Close()
	if answer.StatusCode >= http.StatusMultipleChoices {
		panic(method + " " + request.URL.Path + ": " + answer.Status)
	}
}

func (s *suite) say(name, state, message string) {
	namespace := Namespace(name)
	if s.script.Server != "" {
		// One that was deleted may take a while to go, so no two have one name.
		namespace = fmt.Sprintf("%s-%d", namespace, os.Getpid())
		s.request(http.MethodPost, "", fmt.Sprintf(`{"metadata": {"name": %q, "labels": {"e2e-run": %q}}}`, namespace, runID()))
	}
	fmt.Printf("  STEP: Destroying namespace %q for this suite. @ %s\n", namespace, stamp)
	if s.script.Server != "" {
		s.request(http.MethodDelete, "/"+namespace, "")
	}
	if state == "passed" {
		fmt.Printf("• [0.001 seconds]\n%s\n", delimiter)
		return
	}
	word, denoter := strings.ToUpper(state), "•"
	if state == "skipped" {
		denoter = "S"
	}
	fmt.Printf("%s [%s] [0.001 seconds]\n%s [sig-fake]\nk8s.io/kubernetes/test/e2e/fake.go:1\n\n", denoter, word, name)
	fmt.Printf("  [%s] %s\n  In [It] at: fake.go:2 @ %s\n%s\n", word, strings.ReplaceAll(message, "\n", "\n  "), stamp, delimiter)
}
