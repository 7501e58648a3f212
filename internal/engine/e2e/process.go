package e2e

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// Process is a running e2e.test.
type Process struct {
	// PID and Start identify the process; see [Alive].
	PID    int
	Start  int64
	exited chan struct{}
	done   chan struct{}
	err    error
}

// patience is how long output is awaited after e2e.test is gone: a grandchild
// can hold it open.
const patience = 5 * time.Second

// Start starts the binary with args. Everything that it and its children
// print goes to output, which may take its time: nothing that e2e.test printed
// is lost for it. The process leads a group of its own, so that a signal from
// the terminal reaches it only through this program; where the system can do
// that, it is killed when this process dies.
func (b *Binary) Start(args, env []string, output io.Writer) (*Process, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", b.Path, err)
	}
	cmd := exec.Command(b.Path, args...)
	cmd.Stdout, cmd.Stderr = w, w
	cmd.Env = env
	cmd.Dir = os.TempDir()
	ownGroup(cmd)
	p := &Process{exited: make(chan struct{}), done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(p.exited)
		// A parent-death signal is sent when the thread that started the
		// child ends, so that thread stays for as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		w.Close()
		if err == nil {
			p.PID = cmd.Process.Pid
			p.Start, _ = startTime(p.PID)
		}
		started <- err
		if err == nil {
			p.err = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		r.Close()
		return nil, fmt.Errorf("starting %s: %w", b.Path, err)
	}
	go func() {
		defer close(p.done)
		take(r, output, p.exited)
		<-p.exited
	}()
	return p, nil
}

// take copies what is printed to output until there is no more, or, once exited
// is closed, until nothing came for as long as the patience lasts. The time that
// output takes does not count.
func take(r io.ReadCloser, output io.Writer, exited <-chan struct{}) {
	defer r.Close()
	chunks, enough := make(chan []byte), make(chan struct{})
	defer close(enough)
	go func() {
		defer close(chunks)
		for {
			chunk := make([]byte, 32<<10)
			n, err := r.Read(chunk)
			if n > 0 {
				select {
				case chunks <- chunk[:n]:
				case <-enough:
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	var silence <-chan time.Time
	for {
		if exited == nil {
			silence = time.After(patience)
		}
		select {
		case chunk, ok := <-chunks:
			if !ok {
				return
			}
			// What cannot be written anywhere is drained, so that nobody blocks.
			_, _ = output.Write(chunk)
		case <-exited:
			exited = nil
		case <-silence:
			return
		}
	}
}

// Done is closed when the process has ended and all its output was taken.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit tells how the process ended: "exit code 1", "signal: killed". clean
// reports whether it ended by itself with the codes that ginkgo uses, 0 for
// success and 1 for failed tests. It must be called after Done.
func (p *Process) Exit() (how string, clean bool) {
	var exit *exec.ExitError
	switch {
	case p.err == nil:
		return "exit code 0", true
	case errors.As(p.err, &exit) && exit.Exited():
		return fmt.Sprintf("exit code %d", exit.ExitCode()), exit.ExitCode() == 1
	}
	return p.err.Error(), false
}

// Interrupt asks e2e.test to stop: it ends the current test, cleans up and
// writes its report. One that has ended is [os.ErrProcessDone].
func (p *Process) Interrupt() error {
	select {
	case <-p.exited:
		return os.ErrProcessDone
	default:
		return interruptProcess(p.PID)
	}
}

// Kill kills the process and all its children that it has not sent away.
func (p *Process) Kill() error { return killGroup(p.PID) }

// Alive reports whether the process that was started under this pid at this
// time still lives. Another process that was given the same pid is not it.
func Alive(pid int, start int64) bool {
	if pid <= 0 {
		return false
	}
	now, err := startTime(pid)
	return err == nil && (start == 0 || abs(now-start) < 1500)
}

func abs(n int64) int64 { return max(n, -n) }
