//go:build unix

package lies

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// A lie is what one start of e2e.test does: a real suite of ginkgo, whose tests
// do what the lie has them do, and what a program around it makes of its output,
// its report and its exit code.
type lie struct {
	// tests are the bodies of tests, by name; the others are honest and pass.
	tests map[string]func(ctx ginkgo.SpecContext, p *program)
	// each gives the body of the others; nil is honest, too.
	each func(name string, p *program) func(ctx ginkgo.SpecContext, p *program)
	// before and after run in BeforeSuite and AfterSuite.
	before, after func(p *program)

	// Of the program around: what becomes of a line of output, of the report,
	// and of the exit code.
	output func(line string) []string
	report func(text []byte) []byte
	exit   func(code int) int
}

// wraps reports whether the lie takes a program around the suite.
func (l *lie) wraps() bool { return l.output != nil || l.report != nil || l.exit != nil }

// lies are known by the name of their case. The program is the test binary, so
// whatever is told here it knows, too.
var lies = map[string]func(start int) lie{}

// tell makes a lie known.
func tell(name string, l func(start int) lie) string {
	if lies[name] != nil {
		panic("two lies are called " + name)
	}
	lies[name] = l
	return name
}

// script is what a program reads when it starts.
type script struct {
	Lie     string
	Version string
	Tests   []string
	// Target is the test that the lie is about; "" where it names tests itself.
	Target string
	// Server is the API server, for tests that make pods; "" makes none.
	Server string
	// Real is the e2e.test that the lie is wrapped around; "" is ginkgo's suite
	// in this test binary.
	Real string
}

// program is one start of the lying e2e.test.
type program struct {
	script
	dir   string
	start int
	args  []string
	runID string
	made  int
}

const (
	scriptFile = "script.json"
	startsFile = "starts"
	// suiteEnv has the number of the start, in the suite that is wrapped.
	suiteEnv = "LIES_SUITE"
	// readEnv has a report that a process of its own is to read.
	readEnv = "LIES_READ_REPORT"
)

// TestMain lets the test binary play e2e.test, and read a report.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "e2e.test" {
		code, err := play()
		if err != nil {
			fmt.Fprintln(os.Stderr, "the lying e2e.test is broken:", err)
			code = 99
		}
		os.Exit(code)
	}
	if path := os.Getenv(readEnv); path != "" {
		_, err := e2e.ReadReport(path, nil)
		fmt.Println("read:", err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// install puts a lying e2e.test into a folder of its own, and returns its path.
func install(t testing.TB, s script) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "e2e.test")
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	writeJSON(t, filepath.Join(dir, scriptFile), s)
	return path
}

func play() (int, error) {
	p := &program{dir: filepath.Dir(os.Args[0]), args: os.Args[1:]}
	data, err := os.ReadFile(filepath.Join(p.dir, scriptFile))
	if err != nil {
		return 0, err
	}
	if err := json.Unmarshal(data, &p.script); err != nil {
		return 0, err
	}
	tell := lies[p.Lie]
	if tell == nil {
		return 0, fmt.Errorf("there is no lie %q", p.Lie)
	}
	if inner := os.Getenv(suiteEnv); inner != "" {
		if _, err := fmt.Sscan(inner, &p.start); err != nil {
			return 0, err
		}
		l := tell(p.start)
		return p.suite(&l)
	}
	if !slices.ContainsFunc(p.args, func(a string) bool { return strings.HasPrefix(a, "--ginkgo.json-report=") }) {
		return p.describe()
	}
	if p.start, err = p.count(); err != nil {
		return 0, err
	}
	l := tell(p.start)
	if p.Real != "" || l.wraps() {
		return p.wrap(&l)
	}
	return p.suite(&l)
}

// count returns how often the program was started before to run tests.
func (p *program) count() (int, error) {
	file, err := os.OpenFile(filepath.Join(p.dir, startsFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	if _, err := file.WriteString("x"); err != nil {
		return 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	return int(info.Size()) - 1, nil
}

// describe answers what op-readiness asks before it runs tests.
func (p *program) describe() (int, error) {
	if p.Real != "" {
		return p.wrap(&lie{})
	}
	switch {
	case slices.Contains(p.args, "--version"):
		fmt.Println(p.Version)
	case slices.Contains(p.args, "--list-images"):
		fmt.Println("registry.k8s.io/e2e-test-images/agnhost:2.63.0")
	case slices.Contains(p.args, "--list-tests"):
		fmt.Println("The following spec names can be used with 'ginkgo run --focus/skip':")
		for i, name := range p.Tests {
			fmt.Printf("    k8s.io/kubernetes/test/e2e/lies.go:%d: %s\n", i+1, name)
		}
		fmt.Println()
	default:
		return 0, fmt.Errorf("asked %q", p.args)
	}
	return 0, nil
}

// suite runs a suite of ginkgo as e2e.test does.
func (p *program) suite(l *lie) (int, error) {
	p.runID = fmt.Sprintf("lies-%d", os.Getpid())
	var own []string
	for _, arg := range p.args {
		if strings.HasPrefix(arg, "--ginkgo.") {
			own = append(own, arg)
		}
	}
	if err := flag.CommandLine.Parse(own); err != nil {
		return 0, err
	}
	ginkgo.SynchronizedBeforeSuite(func() {
		fmt.Fprintf(ginkgo.GinkgoWriter, "I0102 15:04:05.000000 %d e2e.go:109] Starting e2e run %q on Ginkgo node 1\n", os.Getpid(), p.runID)
		if l.before != nil {
			l.before(p)
		}
	}, func() {})
	if l.after != nil {
		ginkgo.SynchronizedAfterSuite(func() {}, func() { l.after(p) })
	}
	// Ginkgo shuffles the containers, and keeps the order of tests inside of one.
	var containers []string
	leaves := map[string][]string{}
	for _, name := range p.Tests {
		container, leaf, _ := strings.Cut(name, " ")
		if leaves[container] == nil {
			containers = append(containers, container)
		}
		leaves[container] = append(leaves[container], leaf)
	}
	for _, container := range containers {
		ginkgo.Describe(container, func() {
			for _, leaf := range leaves[container] {
				name := container + " " + leaf
				body := l.tests[name]
				if body == nil && l.each != nil {
					body = l.each(name, p)
				}
				if body == nil {
					body = honest
				}
				ginkgo.It(leaf, func(ctx ginkgo.SpecContext) { body(ctx, p) })
			}
		})
	}
	t := &failing{}
	ginkgo.RunSpecs(t, specs.SuiteName)
	if t.failed {
		fmt.Println("--- FAIL: TestE2E (0.10s)\nFAIL")
		return 1, nil
	}
	fmt.Println("PASS")
	return 0, nil
}

type failing struct{ failed bool }

func (f *failing) Fail() { f.failed = true }

// honest is a test that passes, and whose pod ran on Windows.
func honest(_ ginkgo.SpecContext, p *program) {
	ginkgo.By("Creating a kubernetes client")
	if p.Server == "" {
		ginkgo.By(fmt.Sprintf("Destroying namespace %q for this suite.", namespaceOf(ginkgo.CurrentSpecReport().FullText())))
		return
	}
	makes(p, p.namespace(), object{"e2e-run": p.runID}, web())
}

// namespace is a new one of the test that runs.
func (p *program) namespace() string {
	p.made++
	return fmt.Sprintf("lies-%d-%d", os.Getpid(), p.made)
}

// fails is a test that fails.
func fails(ginkgo.SpecContext, *program) { ginkgo.Fail("expected a Windows node") }

// hangs is a test that runs until it is interrupted.
func hangs(ctx ginkgo.SpecContext, p *program) {
	ginkgo.By("Waiting for what never comes")
	<-ctx.Done()
}

func exits(code int) func(int) int { return func(int) int { return code } }

func writeJSON(t testing.TB, path string, v any) {
	t.Helper()
	data, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(path, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
