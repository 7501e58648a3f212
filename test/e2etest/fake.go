// Package e2etest is an e2e.test for tests of this project: a program that
// speaks as ginkgo v2's default reporter does, and behaves, or misbehaves, as
// a script says. A test binary plays it:
//
//	func TestMain(m *testing.M) {
//		e2etest.Main()
//		os.Exit(m.Run())
//	}
package e2etest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Script says what an e2e.test does.
type Script struct {
	// Version is what it says of itself.
	Version string
	// Tests are the tests that it lists; none means those of Kubernetes
	// Version.
	Tests []string
	// Suite is what each start of the program does before its first test; the
	// last holds for all further starts.
	Suite []string
	// Do is what each start of a test does, by its name; the last holds for
	// all further starts.
	Do map[string][]string
	// Default is what the tests do that are not in Do; "" is [Pass].
	Default string
	// Server is the URL of an API server that asks nobody who they are. There the
	// tests make, and delete, the namespaces that they name; "" makes none.
	Server string
}

// What a suite does. "" is what it should.
const (
	// Garbage prints what no e2e.test prints, and succeeds.
	Garbage = "garbage"
	// Nothing prints nothing, and succeeds; NothingFailed ends with code 1.
	Nothing       = "nothing"
	NothingFailed = "nothing-failed"
	// FailBefore fails in SynchronizedBeforeSuite, and FailAfter in
	// SynchronizedAfterSuite.
	FailBefore = "fail-before"
	FailAfter  = "fail-after"
	// WaitBefore waits for the file [Folder.Ready] before the first test, as e2e.test
	// waits for nodes; DieBefore ends there with code 2.
	WaitBefore = "wait-before"
	DieBefore  = "die-before"
	// NoID does not say the id of its process.
	NoID = "no-id"
	// FailAfterUnreported fails in SynchronizedAfterSuite, and the report does not
	// know it.
	FailAfterUnreported = "fail-after-unreported"
	// HangAfter waits for an interrupt when its tests are over, and obeys it.
	HangAfter = "hang-after"
	// NoReport leaves no report, and LongReport one with bytes after its end.
	NoReport   = "no-report"
	LongReport = "long-report"
	// Unsuccessful says in its report, and with its exit code, that the suite did
	// not succeed, though nothing failed; Successful says in its report that it
	// did, whatever failed.
	Unsuccessful = "unsuccessful"
	Successful   = "successful"
	// ExitZero ends with code 0 and ExitOne with code 1, whatever happened.
	ExitZero = "exit-zero"
	ExitOne  = "exit-one"
	// Elapsed says that the suite ran out of time.
	Elapsed = "elapsed"
	// Stranger runs a test, too, that was not selected.
	Stranger = "stranger"
)

// What a test or a suite does.
const (
	// Pass and Fail, Skip and Panic are ends that ginkgo knows.
	Pass  = "pass"
	Fail  = "fail"
	Skip  = "skip"
	Panic = "panic"
	// Pending is a test that Kubernetes marks as not to be run.
	Pending = "pending"
	// Hang waits for an interrupt, and obeys it.
	Hang = "hang"
	// Deaf hangs, and does not obey an interrupt.
	Deaf = "deaf"
	// Exit ends the process with code 2, and Kill by SIGKILL.
	Exit = "exit"
	Kill = "kill"
	// Silent tests are in neither the output nor the report.
	Silent = "silent"
	// Unsaid tests pass in the report, and Unreported ones in the output only.
	Unsaid     = "unsaid"
	Unreported = "unreported"
	// UnsaidFailure fails in the report, and its output is lost.
	UnsaidFailure = "unsaid-failure"
	// Lie passes in the output and fails in the report.
	Lie = "lie"
	// FakePass prints its own heading and what looks like its pass, and then
	// fails; FakeFail prints what looks like its failure, and then passes.
	FakePass = "fake-pass"
	FakeFail = "fake-fail"
	// Restart prints its own heading, and then passes.
	Restart = "restart"
	// Twice passes, and stands in the report as failed and as passed.
	Twice = "twice"
	// NoState and OddState pass in the output, and have none, or one that ginkgo
	// does not know, in the report.
	NoState  = "no-state"
	OddState = "odd-state"
	// TwoKeys and TwoCases fail in the output, and have two states in the report.
	TwoKeys  = "two-keys"
	TwoCases = "two-cases"
	// Measure passes with two figures in the report and an entry that is none, and
	// MeasureLie passes so in the output and fails in the report.
	Measure    = "measure"
	MeasureLie = "measure-lie"
	// Outage makes the file [Folder.Outage], and then fails.
	Outage = "outage"
	// Secret fails with a credential in its output and in its message.
	Secret = "secret"
	// Early passes, and began long ago by the report.
	Early = "early"
	// Slow passes after a while in which it can be killed.
	Slow = "slow"
	// Wait passes as soon as the file [Folder.Go] exists.
	Wait = "wait"
	// WaitFail fails then.
	WaitFail = "wait-fail"
)

// Password is what [Secret] tells.
const Password = "hunter2-correct-horse"

// Folder is where a fake e2e.test lives.
type Folder string

// Install puts a fake e2e.test into a folder of its own.
func Install(t testing.TB, script Script) Folder {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f := Folder(dir)
	if err := os.Symlink(self, f.Binary()); err != nil {
		t.Fatal(err)
	}
	f.Rewrite(t, script)
	return f
}

// Rewrite replaces the script.
func (f Folder) Rewrite(t testing.TB, script Script) {
	t.Helper()
	data, err := json.Marshal(script)
	if err == nil {
		err = os.WriteFile(f.path("script.json"), data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (f Folder) path(name string) string { return filepath.Join(string(f), name) }

// Binary is the path of the fake.
func (f Folder) Binary() string { return f.path("e2e.test") }

// Outage is the path of a file that exists when the cluster is to be away.
func (f Folder) Outage() string { return f.path("outage") }

// Go is the path of a file for which [Wait] waits.
func (f Folder) Go() string { return f.path("go") }

// Ready is the path of a file for which [WaitBefore] waits in the process with that id.
func (f Folder) Ready(id string) string { return f.path("ready-" + id) }

// Starts returns what was started, in order: "suite" for each process that was
// to run tests, "dry-run" for each that only walked through them, and the name
// of each test that ran.
func (f Folder) Starts(t testing.TB) []string {
	t.Helper()
	starts, err := f.starts()
	if err != nil {
		t.Fatal(err)
	}
	return starts
}

func (f Folder) starts() ([]string, error) {
	data, err := os.ReadFile(f.path("starts"))
	if os.IsNotExist(err) {
		return nil, nil
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n"), err
}

// note adds to the starts, and returns how often the same was there before.
func (f Folder) note(what string) (int, error) {
	before, err := f.starts()
	if err != nil {
		return 0, err
	}
	file, err := os.OpenFile(f.path("starts"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, err
	}
	if _, err := fmt.Fprintln(file, what); err != nil {
		return 0, err
	}
	return len(before) - len(slices.DeleteFunc(before, func(s string) bool { return s == what })), file.Close()
}

// Main plays e2e.test, and ends the process, if it was started as one.
// Otherwise it returns.
func Main() {
	f := Folder(filepath.Dir(os.Args[0]))
	// The test binary of package e2e has this name, too.
	if _, err := os.Stat(f.path("script.json")); err != nil || filepath.Base(os.Args[0]) != "e2e.test" {
		if os.Getenv("GORACE") == "" {
			// With the race detector every process would sleep for a second
			// before it ends.
			_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
		}
		return
	}
	code, err := play(f, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "the fake e2e.test is broken:", err)
		code = 99
	}
	os.Exit(code)
}

func play(f Folder, args []string) (int, error) {
	data, err := os.ReadFile(f.path("script.json"))
	if err != nil {
		return 0, err
	}
	var script Script
	if err := json.Unmarshal(data, &script); err != nil {
		return 0, err
	}
	switch {
	case slices.Contains(args, "--version"):
		fmt.Println(script.Version)
		return 0, nil
	case slices.Contains(args, "--list-images"):
		fmt.Println("registry.k8s.io/e2e-test-images/agnhost:2.63.0\nregistry.k8s.io/pause:3.10.2")
		return 0, nil
	case slices.Contains(args, "--list-tests"):
		tests, err := script.list()
		if err != nil {
			return 0, err
		}
		fmt.Println("The following spec names can be used with 'ginkgo run --focus/skip':")
		for _, t := range tests {
			fmt.Printf("    %s: %s\n", t.Location, t.Name)
		}
		fmt.Println()
		return 0, nil
	}
	return runSuite(f, &script, args)
}

func (s *Script) list() ([]specs.ListedTest, error) {
	if len(s.Tests) == 0 {
		list, err := specs.Catalogue(s.Version)
		if err != nil {
			return nil, err
		}
		return list.Tests, nil
	}
	var tests []specs.ListedTest
	for i, name := range s.Tests {
		tests = append(tests, specs.ListedTest{Name: name, Location: fmt.Sprintf("k8s.io/kubernetes@%s/test/e2e/fake.go:%d", s.Version, i+1)})
	}
	return tests, nil
}

// nth returns what is done at start number n.
func nth(do []string, n int, otherwise string) string {
	if len(do) == 0 {
		return otherwise
	}
	return do[min(n, len(do)-1)]
}

// until waits for a file to exist, or for an interrupt, and tells which.
func until(path string, interrupts <-chan os.Signal) (interrupted bool) {
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-interrupts:
			return true
		case <-ticker.C:
			if _, err := os.Stat(path); err == nil {
				return false
			}
		}
	}
}
