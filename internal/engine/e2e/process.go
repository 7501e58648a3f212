package e2e

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/process"
)

// Process is a running e2e.test.
type Process struct {
	// Group takes interrupts: e2e.test ends the current test, cleans up and writes
	// its report.
	*process.Group
	done chan struct{}
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
	group, err := process.Start(cmd, syscall.SIGKILL)
	w.Close()
	if err != nil {
		r.Close()
		return nil, fmt.Errorf("starting %s: %w", b.Path, err)
	}
	p := &Process{Group: group, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		take(r, output, p.Exited())
		<-p.Exited()
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
	err := p.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "exit code 0", true
	case errors.As(err, &exit) && exit.Exited():
		return fmt.Sprintf("exit code %d", exit.ExitCode()), exit.ExitCode() == 1
	}
	return err.Error(), false
}
