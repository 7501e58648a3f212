//go:build unix

package e2e_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/process"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
)

// eventually waits for a condition that another process brings about.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in a minute it did not happen: %s", what)
		}
	}
}

func TestE2ETestDiesWithTheRunner(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system cannot tie the life of a process to another's")
	}
	fake := e2etest.Install(t, e2etest.Script{Version: "v1.36.3", Tests: []string{"[sig-x] a"}, Default: e2etest.Deaf})
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "E2E_TEST_RUNNER="+fake.Binary())
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	var start int64
	if _, err := fmt.Sscan(said, &pid, &start); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the test starts", func() bool { return len(fake.Starts(t)) == 2 })
	if !process.Alive(pid, start) {
		t.Fatalf("process %d, which runs a test, does not live", pid)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	eventually(t, "e2e.test is gone", func() bool { return !process.Alive(pid, start) })
}

func TestHowItEnded(t *testing.T) {
	for script, want := range map[string]struct {
		how   string
		clean bool
	}{
		"exit 0":        {"exit code 0", true},
		"exit 1":        {"exit code 1", true},
		"exit 2":        {"exit code 2", false},
		"kill -KILL $$": {"signal: killed", false},
	} {
		sh := exec.Command("sh")
		p, err := (&e2e.Binary{Path: sh.Path}).Start([]string{"-c", script}, os.Environ(), &bytes.Buffer{})
		if err != nil {
			t.Fatal(err)
		}
		<-p.Done()
		if how, clean := p.Exit(); how != want.how || clean != want.clean {
			t.Errorf("%s: it ended with %q, clean %t", script, how, clean)
		}
	}
}
