package e2etest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

const delimiter = "------------------------------"

// spec is one entry of ginkgo's JSON report.
type spec struct {
	ContainerHierarchyTexts []string
	LeafNodeType            string
	LeafNodeText            string
	State                   string
	RunTime                 int64
	Failure                 failure `json:",omitzero"`
}

type failure struct{ Message string }

// suite is one start of the program to run tests.
type suite struct {
	folder     Folder
	script     *Script
	interrupts chan os.Signal
	dry        bool
	report     string // where the JSON report goes; "" writes none
	specs      []spec
	failed     bool
	stopped    bool
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
	switch do := nth(script.Suite, n, ""); do {
	case Garbage:
		fmt.Print("\x00\x01\xff\xfe• [0.1 seconds]\n\n", delimiter, "\nPASS\n")
		return 0, nil
	case Nothing:
		return 0, nil
	case Hang, Deaf, Kill, Exit:
		return s.misbehave(do), nil
	default:
		return s.run(selected, len(tests), do == FailBefore)
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

func (s *suite) run(selected []string, total int, failBefore bool) (int, error) {
	fmt.Printf("  I0102 15:04:05.000000 %d e2e.go:109] Starting e2e run \"fake-%d\" on Ginkgo node 1\n", os.Getpid(), os.Getpid())
	fmt.Printf("Running Suite: %s - /fake\n===\nRandom Seed: 1 - will randomize all specs\n\nWill run %d of %d specs\n", specs.SuiteName, len(selected), total)
	if !s.dry {
		s.before(failBefore)
	}
	for _, name := range selected {
		if s.stopped || failBefore {
			s.add(name, "skipped", 0, "")
			continue
		}
		n := 0
		if !s.dry {
			var err error
			if n, err = s.folder.note(name); err != nil {
				return 0, err
			}
		}
		do := nth(s.script.Do[name], n, s.script.Default)
		if s.dry {
			do = Pass
		}
		if code := s.test(name, do); code != 0 {
			return code, nil
		}
	}
	s.add("[sig-fake] a test that was not selected", "skipped", 0, "")
	fmt.Printf("\n\nRan %d of %d Specs in 0.100 seconds\n", len(selected), total)
	if err := s.writeReport(); err != nil {
		return 0, err
	}
	if s.failed {
		fmt.Println("--- FAIL: TestE2E (0.10s)\nFAIL")
		return 1, nil
	}
	fmt.Println("PASS")
	return 0, nil
}

func (s *suite) before(fails bool) {
	const node = "SynchronizedBeforeSuite"
	fmt.Printf("%s\n[%s] \nk8s.io/kubernetes/test/e2e/e2e.go:69\n", delimiter, node)
	if !fails {
		fmt.Printf("[%s] PASSED [0.026 seconds]\n%s\n", node, delimiter)
		s.specs = append(s.specs, spec{LeafNodeType: node, State: "passed", RunTime: 26e6})
		return
	}
	s.failed = true
	const message = "there are currently no ready, schedulable nodes in the cluster"
	fmt.Printf("[%s] [FAILED] [0.026 seconds]\n[%s] \nk8s.io/kubernetes/test/e2e/e2e.go:69\n\n", node, node)
	fmt.Printf("  [FAILED] %s\n  In [%s] at: e2e.go:250 @ 01/02/26 15:04:05.000\n%s\n", message, node, delimiter)
	s.specs = append(s.specs, spec{LeafNodeType: node, State: "failed", RunTime: 26e6, Failure: failure{message}})
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
		fmt.Printf("P [PENDING]\n%s\nfake.go:1\n%s\n", name, delimiter)
		s.add(name, "pending", 0, "")
		return 0
	}
	fmt.Printf("SS\n%s\n%s [sig-fake]\nk8s.io/kubernetes/test/e2e/fake.go:1\n  STEP: Creating a kubernetes client @ 01/02/26 15:04:05.000\n", delimiter, name)
	switch do {
	case Exit, Kill, Deaf:
		if code := s.misbehave(do); code != 0 {
			fmt.Println("panic: runtime error")
			return code
		}
	case Hang, Wait:
		path := s.folder.Go()
		if do == Hang {
			path = s.folder.path("never")
		}
		if until(path, s.interrupts) {
			s.stopped = true
			s.end(name, "interrupted", "Interrupted by User")
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
	switch do {
	case Fail, Outage:
		s.end(name, "failed", "expected a Windows node\n    to equal\n  a Windows node")
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
	default:
		s.end(name, "passed", "")
	}
	return 0
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

func (s *suite) say(name, state, message string) {
	fmt.Printf("  STEP: Destroying namespace %q for this suite. @ 01/02/26 15:04:05.000\n", Namespace(name))
	if state == "passed" {
		fmt.Printf("• [0.001 seconds]\n%s\n", delimiter)
		return
	}
	word, denoter := strings.ToUpper(state), "•"
	if state == "skipped" {
		denoter = "S"
	}
	fmt.Printf("%s [%s] [0.001 seconds]\n%s [sig-fake]\nk8s.io/kubernetes/test/e2e/fake.go:1\n\n", denoter, word, name)
	fmt.Printf("  [%s] %s\n  In [It] at: fake.go:2 @ 01/02/26 15:04:05.000\n%s\n", word, strings.ReplaceAll(message, "\n", "\n  "), delimiter)
}

func (s *suite) add(name, state string, nanoseconds int64, message string) {
	s.specs = append(s.specs, spec{
		ContainerHierarchyTexts: []string{name}, LeafNodeType: "It",
		State: state, RunTime: nanoseconds, Failure: failure{message},
	})
}

func (s *suite) writeReport() error {
	if s.report == "" {
		return nil
	}
	data, err := json.Marshal([]any{map[string]any{
		"SuitePath": "/fake", "SuiteSucceeded": !s.failed, "SpecReports": s.specs, "SuiteConfig": map[string]any{"RandomSeed": 1},
	}})
	if err != nil {
		return err
	}
	return os.WriteFile(s.report, data, 0o644)
}
