package binaries

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/process"
)

// CommandError says that a child process failed, with its argument list and
// the end of what it printed.
type CommandError struct {
	Args   []string
	Output string
	Err    error
}

func (e *CommandError) Error() string {
	text := fmt.Sprintf("running %s: %v", strings.Join(e.Args, " "), e.Err)
	if e.Output != "" {
		text += "\n\t" + strings.ReplaceAll(e.Output, "\n", "\n\t")
	}
	return text
}

func (e *CommandError) Unwrap() error { return e.Err }

// run runs a command in dir to its end and returns its standard output. When
// ctx ends, the command and all its children are killed.
func run(ctx context.Context, dir string, environ []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var stdout bytes.Buffer
	all := &tail{limit: 4096}
	cmd.Dir, cmd.Env = dir, environ
	cmd.Stdout, cmd.Stderr = both{&stdout, all}, all
	err := process.Run(cmd)
	if err == nil {
		return stdout.String(), nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return "", &CommandError{Args: args, Output: all.String(), Err: err}
}

// both writes to a buffer and a tail; neither can fail.
type both struct {
	buffer *bytes.Buffer
	tail   *tail
}

func (b both) Write(p []byte) (int, error) {
	if n, err := b.tail.Write(p); err != nil {
		return n, err
	}
	return b.buffer.Write(p)
}

// tail keeps the last limit bytes of what is written to it.
type tail struct {
	mu    sync.Mutex
	limit int
	kept  []byte
	cut   bool
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - t.limit; over > 0 {
		t.kept, t.cut = append([]byte(nil), t.kept[over:]...), true
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := string(t.kept)
	if _, whole, ok := strings.Cut(text, "\n"); t.cut && ok {
		text = "…\n" + whole
	}
	return strings.TrimSpace(text)
}

// prove runs the binary at path, when it is for this machine, and checks that
// its own version output names what it is taken for.
func (s *Store) prove(ctx context.Context, c component, name Name, path string) error {
	if !s.native() {
		return nil
	}
	how := recipes[name]
	want := how.says
	if strings.Contains(want, "%s") {
		want = fmt.Sprintf(want, strings.TrimPrefix(c.version, "v"))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("no answer within a minute"))
	defer cancel()
	out, err := runFresh(ctx, s.environ(), append([]string{path}, how.prove...)...)
	if err != nil {
		return fmt.Errorf("%s does not run, so it is not kept: %w", name, err)
	}
	if !says(out, want) {
		return fmt.Errorf("%s is not kept: expected it to report %q, found %q", name, want, strings.TrimSpace(out))
	}
	return nil
}

// says tells whether text has want, and not merely as the beginning of a
// longer version (1.36.3 in 1.36.30).
func says(text, want string) bool {
	_, after, ok := strings.Cut(text, want)
	return ok && (after == "" || !strings.ContainsAny(after[:1], "0123456789-+") || !strings.Contains(want, "."))
}

// runFresh runs a file that was just written. Until every process that was
// forked meanwhile has let go of it, Linux refuses with "text file busy".
func runFresh(ctx context.Context, environ []string, args ...string) (string, error) {
	for try := 0; ; try++ {
		out, err := run(ctx, "", environ, args...)
		if err == nil || try == 20 || !errors.Is(err, syscall.ETXTBSY) {
			return out, err
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
