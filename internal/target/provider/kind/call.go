package kind

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/process"
	"github.com/windows-op-readiness/windows-op-readiness/internal/redact"
	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/folder"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
)

// call makes one call of kind in a process of its own, and tells its progress. When ctx
// ends, the process is killed with all that it has started. begun, unless nil, is told
// of the process before it does anything.
func (p *Provider) call(ctx context.Context, c *cluster, do *call, begun func(pid int, started int64) error) error {
	log, err := os.Create(c.callLog(do.Call))
	if err != nil {
		return err
	}
	defer log.Close()
	self := p.Self
	if len(self) == 0 {
		return errors.New("it is not known how this program is called")
	}
	cmd := exec.Command(self[0], append(self[1:len(self):len(self)], Command, c.Dir)...)
	cmd.Env = p.environ()
	// A file, since writing to a pipe ends whoever writes once its reader is gone:
	// nothing would end what kind has started.
	cmd.Stdout, cmd.Stderr = log, log
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer write.Close()
	cmd.Stdin = read
	group, err := process.Start(cmd, 0)
	read.Close()
	if err != nil {
		return fmt.Errorf("starting %s: %w", self[0], err)
	}
	defer func() {
		_ = group.Kill()
		_ = group.Wait()
	}()
	if begun != nil {
		if err := begun(group.PID, group.Start); err != nil {
			return err
		}
	}
	if err := json.NewEncoder(write).Encode(do); err != nil {
		return fmt.Errorf("calling kind: %w", err)
	}
	if do.Call == callCreate {
		stop := p.follow(c, log.Name())
		defer stop()
	}
	select {
	case <-group.Exited():
	case <-ctx.Done():
		return fmt.Errorf("%w\n\t%s", context.Cause(ctx), c.callEnd(do.Call))
	}
	if err := group.Wait(); err != nil {
		return errors.New(c.callEnd(do.Call))
	}
	return nil
}

func (c *cluster) callLog(call string) string { return c.Path("kind-" + call + ".log") }

// callEnd is what a call of kind said last: its error, where there is one.
func (c *cluster) callEnd(call string) string {
	data, err := folder.Tail(c.callLog(call), 64<<10)
	if err != nil {
		return err.Error()
	}
	said := string(data)
	if at := strings.LastIndex("\n"+said, "\n"+errorMark); at >= 0 {
		said, _, _ = strings.Cut(said[at+len(errorMark):], "\n"+errorEnd)
	}
	said = strings.TrimSpace(shown.Lines(text.CutFront(redact.String(said), 4000)))
	if said == "" {
		return "kind said nothing"
	}
	return strings.ReplaceAll(said, "\n", "\n\t")
}

// follow tells what kind begins to do, as its log grows, until stop is called.
func (p *Provider) follow(c *cluster, log string) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		f, err := os.Open(log)
		if err != nil {
			return
		}
		defer f.Close()
		var rest []byte
		for last := false; ; {
			more, _ := io.ReadAll(f)
			lines := bytes.Split(append(rest, more...), []byte("\n"))
			rest = lines[len(lines)-1]
			for _, line := range lines[:len(lines)-1] {
				if what, begun := beginning(string(line)); begun {
					p.tellf("cluster %s: kind: %s", c.Name, what)
				}
			}
			if last {
				return
			}
			select {
			case <-done:
				last = true
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// beginning returns what kind says that it begins to do: " • Preparing nodes 📦  ...".
func beginning(line string) (string, bool) {
	what, begun := strings.CutPrefix(strings.TrimSpace(line), "•")
	what = strings.Map(func(r rune) rune {
		if r > 0x2000 { // its pictures
			return -1
		}
		return r
	}, strings.TrimSuffix(what, "..."))
	return shown.Line(what), begun
}
