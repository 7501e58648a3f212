//go:build unix

package e2e_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
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
	if !e2e.Alive(pid, start) {
		t.Fatalf("process %d, which runs a test, does not live", pid)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	eventually(t, "e2e.test is gone", func() bool { return !e2e.Alive(pid, start) })
}

func TestAliveKnowsAProcessFromItsSuccessor(t *testing.T) {
	child := exec.Command("sleep", "1000")
	b := &e2e.Binary{Path: child.Path}
	p, err := b.Start(child.Args[1:], nil, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if !e2e.Alive(p.PID, p.Start) {
		t.Error("a process that runs does not live")
	}
	if e2e.Alive(p.PID, p.Start-60_000) {
		t.Error("a process lives that was given the id of one that is gone")
	}
	for _, pid := range []int{0, -1, -p.PID} {
		if e2e.Alive(pid, 0) {
			t.Errorf("process %d lives", pid)
		}
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if e2e.Alive(p.PID, p.Start) {
		t.Error("a process lives that was killed")
	}
	if how, clean := p.Exit(); how != "signal: killed" || clean {
		t.Errorf("it ended with %q, clean %t", how, clean)
	}
}

func TestAZombieIsNotAlive(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a process that has ended and was not waited for does not count", func() bool { return !e2e.Alive(cmd.Process.Pid, 0) })
	_ = cmd.Wait()
}

// locked is a buffer for a process that still writes.
type locked struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func TestKillTakesTheChildrenAlong(t *testing.T) {
	sh := exec.Command("sh")
	var out locked
	p, err := (&e2e.Binary{Path: sh.Path}).Start([]string{"-c", "sleep 1000 & echo $!; wait"}, os.Environ(), &out)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the child starts", func() bool { return strings.HasSuffix(out.String(), "\n") })
	var child int
	if _, err := fmt.Sscan(out.String(), &child); err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	eventually(t, "the child is gone", func() bool { return !e2e.Alive(child, 0) })
}

func TestInterruptReachesOnlyE2ETest(t *testing.T) {
	sh := exec.Command("sh")
	var out locked
	p, err := (&e2e.Binary{Path: sh.Path}).Start([]string{"-c", "trap 'echo stopped; exit 1' INT; echo ready; while :; do sleep 0.01; done"}, os.Environ(), &out)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the process is ready", func() bool { return strings.Contains(out.String(), "ready") })
	if group, err := syscall.Getpgid(p.PID); err != nil || group == syscall.Getpgrp() {
		t.Errorf("it shares this process's group %d: %v", group, err)
	}
	if err := p.Interrupt(); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if how, clean := p.Exit(); how != "exit code 1" || !clean || !strings.Contains(out.String(), "stopped") {
		t.Errorf("it ended with %q, clean %t, saying %q", how, clean, out.String())
	}
}
