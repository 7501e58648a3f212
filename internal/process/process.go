// Package process starts programs in process groups of their own, so that ending
// one ends its children too, and finds the processes of this machine.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/shirou/gopsutil/v4/process"
)

// patience is how long output is awaited after a process is gone: a grandchild
// can hold it open.
const patience = 5 * time.Second

// Group is a process that leads a process group, and those of its children that
// have not left the group. A signal from the terminal reaches them only through
// this program.
type Group struct {
	// PID and Start identify the process; see [Alive].
	PID   int
	Start int64

	process *os.Process
	exited  chan struct{}
	err     error
}

// Start starts a command. Where the system can do that, the process gets the
// signal last when this process dies; 0 is none.
func Start(cmd *exec.Cmd, last syscall.Signal) (*Group, error) {
	lead(cmd, last)
	cmd.WaitDelay = patience
	g := &Group{exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		// Linux sends that signal when the thread that started the process ends, so
		// the thread stays for as long as the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		g.process, g.PID = cmd.Process, cmd.Process.Pid
		g.Start, _ = startTime(g.PID)
		started <- nil
		g.err = cmd.Wait()
		close(g.exited)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return g, nil
}

// Run runs a command of [exec.CommandContext] to its end. When the context ends,
// or this process dies where the system can tell, the group is killed.
func Run(cmd *exec.Cmd) error {
	cmd.Cancel = func() error { return killGroup(cmd.Process) }
	g, err := Start(cmd, syscall.SIGKILL)
	if err != nil {
		return err
	}
	return g.Wait()
}

// Exited is closed when the process has ended.
func (g *Group) Exited() <-chan struct{} { return g.exited }

// Wait waits for the process to end, and returns what [exec.Cmd.Wait] does.
func (g *Group) Wait() error {
	<-g.exited
	return g.err
}

// Interrupt sends the process, and no child, what ctrl-c would. One that has ended
// is [os.ErrProcessDone].
func (g *Group) Interrupt() error { return g.signal(syscall.SIGINT) }

// Terminate asks the process, and no child, to end. One that has ended is
// [os.ErrProcessDone].
func (g *Group) Terminate() error { return g.signal(syscall.SIGTERM) }

func (g *Group) signal(s syscall.Signal) error {
	return g.unlessDone(func(p *os.Process) error { return signal(p, s) })
}

// Pause holds the process, and no child, until Resume. One that has ended is
// [os.ErrProcessDone].
func (g *Group) Pause() error { return g.unlessDone(pause) }

// Resume lets the process go on after Pause.
func (g *Group) Resume() error { return g.unlessDone(resume) }

func (g *Group) unlessDone(do func(*os.Process) error) error {
	select {
	case <-g.exited:
		return os.ErrProcessDone
	default:
		return do(g.process)
	}
}

// Kill kills the group. One of which nothing is left is [os.ErrProcessDone].
func (g *Group) Kill() error { return killGroup(g.process) }

// Kill kills any process of this machine. One that has ended is no error.
func Kill(pid int) error {
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Kill()
	}
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// End kills the group that a process leads, by its pid and the time when it was started,
// and returns when the process has ended. One that has ended is no error.
func End(ctx context.Context, pid int, start int64) error {
	for Alive(pid, start) {
		p, err := os.FindProcess(pid)
		if err == nil {
			err = killGroup(p)
		}
		if err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("ending process %d: %w", pid, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for process %d to end: %w", pid, context.Cause(ctx))
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// Alive reports whether the process that was started under this pid at this time,
// in milliseconds since the epoch, still lives. Another process that was given the
// same pid is not it. A start of 0 is any time.
func Alive(pid int, start int64) bool {
	if pid <= 0 {
		return false
	}
	now, err := startTime(pid)
	return err == nil && (start == 0 || max(now-start, start-now) < 1500)
}

// startTime returns when a process began, in milliseconds since the epoch. One
// that has ended and was not waited for yet does not count.
func startTime(pid int) (int64, error) {
	p, err := process.NewProcess(int32(pid))
	if err != nil {
		return 0, err
	}
	if status, err := p.Status(); err == nil && len(status) > 0 && status[0] == process.Zombie {
		return 0, process.ErrorProcessNotRunning
	}
	return p.CreateTime()
}

// Info is one process of this machine.
type Info struct {
	PID int
	// Command is its program and arguments, joined by spaces.
	Command string
}

// List returns the processes of this machine that have not ended and whose command
// lines this user may see.
func List() ([]Info, error) {
	pids, err := process.Pids()
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var all []Info
	for _, pid := range pids {
		// One that ends meanwhile, or has ended and is a zombie, has no command line.
		if command, err := (&process.Process{Pid: pid}).Cmdline(); err == nil && command != "" {
			all = append(all, Info{int(pid), command})
		}
	}
	return all, nil
}
