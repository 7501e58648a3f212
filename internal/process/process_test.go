//go:build unix

package process_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	gopsutil "github.com/shirou/gopsutil/v4/process"

	"github.com/windows-op-readiness/windows-op-readiness/internal/process"
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

func start(t *testing.T, cmd *exec.Cmd, last syscall.Signal) *process.Group {
	t.Helper()
	g, err := process.Start(cmd, last)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = g.Kill()
		_ = g.Wait()
	})
	return g
}

// parent is a shell that prints its child's id, and waits for it.
func parent(ctx context.Context) (cmd *exec.Cmd, child func(t *testing.T) int) {
	out := &locked{}
	cmd = exec.CommandContext(ctx, "sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!; wait")
	cmd.Stdout = out
	return cmd, func(t *testing.T) int {
		t.Helper()
		eventually(t, "the child starts", func() bool { return strings.HasSuffix(out.String(), "\n") })
		var pid int
		if _, err := fmt.Sscan(out.String(), &pid); err != nil {
			t.Fatal(err)
		}
		return pid
	}
}

func TestAliveKnowsAProcessFromItsSuccessor(t *testing.T) {
	g := start(t, exec.Command("sleep", "1000"), 0)
	if !process.Alive(g.PID, g.Start) || !process.Alive(g.PID, 0) {
		t.Error("a process that runs does not live")
	}
	if process.Alive(g.PID, g.Start-60_000) {
		t.Error("a process lives that was given the id of one that is gone")
	}
	for _, pid := range []int{0, -1, -g.PID} {
		if process.Alive(pid, 0) {
			t.Errorf("process %d lives", pid)
		}
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := g.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("it ended with %v", err)
	}
	if process.Alive(g.PID, g.Start) {
		t.Error("a process lives that was killed")
	}
}

func TestAZombieIsNotAlive(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a process that has ended and was not waited for does not count", func() bool { return !process.Alive(cmd.Process.Pid, 0) })
	_ = cmd.Wait()
}

func TestKillTakesTheChildrenAlong(t *testing.T) {
	cmd, child := parent(t.Context())
	g := start(t, cmd, 0)
	pid := child(t)
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = g.Wait()
	eventually(t, "the child is gone", func() bool { return !process.Alive(pid, 0) })
	eventually(t, "nothing is left to kill", func() bool { return errors.Is(g.Kill(), os.ErrProcessDone) })
}

// A child outlives a process that ends by itself, and can still be killed.
func TestKillReachesTheChildrenOfAProcessThatHasEnded(t *testing.T) {
	cmd, child := parent(t.Context())
	g := start(t, cmd, 0)
	pid := child(t)
	if err := g.Terminate(); err != nil {
		t.Fatal(err)
	}
	_ = g.Wait()
	if !process.Alive(pid, 0) {
		t.Fatal("the child ended with its parent")
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the child is gone", func() bool { return !process.Alive(pid, 0) })
}

func TestTheEndOfTheContextKillsTheChildrenToo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cmd, child := parent(ctx)
	ended := make(chan error)
	go func() { ended <- process.Run(cmd) }()
	pid := child(t)
	cancel()
	if err := <-ended; err == nil {
		t.Error("a command that was killed succeeds")
	}
	eventually(t, "the child is gone", func() bool { return !process.Alive(pid, 0) })
}

func TestSignalsReachOnlyTheProcess(t *testing.T) {
	for name, send := range map[string]func(*process.Group) error{"INT": (*process.Group).Interrupt, "TERM": (*process.Group).Terminate} {
		out := &locked{}
		cmd := exec.Command("sh", "-c", "trap 'echo stopped; exit 1' "+name+"; echo ready; while :; do sleep 0.01; done")
		cmd.Stdout = out
		g := start(t, cmd, 0)
		eventually(t, "the process is ready", func() bool { return strings.Contains(out.String(), "ready") })
		if group, err := syscall.Getpgid(g.PID); err != nil || group != g.PID {
			t.Errorf("it is in group %d, not its own, %d: %v", group, g.PID, err)
		}
		if err := send(g); err != nil {
			t.Fatal(err)
		}
		if err := g.Wait(); err == nil || err.Error() != "exit status 1" || !strings.Contains(out.String(), "stopped") {
			t.Errorf("%s: it ended with %v, saying %q", name, err, out.String())
		}
		if err := send(g); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("%s to a process that has ended: %v", name, err)
		}
	}
}

func TestListHasThisProcess(t *testing.T) {
	all, err := process.List()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(all, process.Info{PID: os.Getpid(), Command: strings.Join(os.Args, " ")}) {
		t.Errorf("process %d with its arguments is not in %v", os.Getpid(), all)
	}
}

func TestKillOfAnyProcess(t *testing.T) {
	g := start(t, exec.Command("sleep", "1000"), 0)
	for range 2 { // the second time it has ended
		if err := process.Kill(g.PID); err != nil {
			t.Fatal(err)
		}
		_ = g.Wait()
	}
}

// A process that is held does nothing, and goes on where it was.
func TestPause(t *testing.T) {
	out := &locked{}
	cmd := exec.Command("sh", "-c", `while read line; do echo "$line"; done`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = out
	g := start(t, cmd, 0)
	fmt.Fprintln(in, "first")
	eventually(t, "it answers", func() bool { return out.String() == "first\n" })
	if err := g.Pause(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is stopped", func() bool {
		p, err := gopsutil.NewProcess(int32(g.PID))
		if err != nil {
			return false
		}
		states, err := p.Status()
		return err == nil && slices.Contains(states, gopsutil.Stop)
	})
	fmt.Fprintln(in, "second")
	if out.String() != "first\n" {
		t.Errorf("while it is held it says %q", out.String())
	}
	if err := g.Resume(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it goes on", func() bool { return out.String() == "first\nsecond\n" })
	in.Close()
	<-g.Exited()
	if err := g.Pause(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("of one that has ended: %v", err)
	}
}
