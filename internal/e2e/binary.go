package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Binary is an e2e.test binary that has told its version.
type Binary struct {
	// Path is absolute.
	Path string
	// Version is what the binary says of itself, such as "v1.36.3".
	Version string
}

// startTimeout is how long e2e.test may take to tell its version or its
// tests: about 2 s, so that this only ends one that hangs.
const startTimeout = 2 * time.Minute

var gitVersion = regexp.MustCompile(`^v\d+\.\d+\.\d+[0-9A-Za-z.+-]*$`)

// Open checks that the file at path is an e2e.test binary that this machine
// can run, and asks for its version. want, if not "", is the version that it
// must have.
func Open(ctx context.Context, path, want string) (*Binary, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("e2e.test %s: %w", path, err)
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("no e2e.test at %s: get one with 'op-readiness e2e fetch', or leave --e2e-binary out", path)
	case err != nil:
		return nil, fmt.Errorf("e2e.test: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("e2e.test %s is not a file", path)
	case runtime.GOOS != "windows" && info.Mode()&0o111 == 0:
		return nil, fmt.Errorf("e2e.test %s is not executable: chmod +x %s", path, path)
	}
	b := &Binary{Path: abs}
	out, err := b.ask(ctx, "--version")
	if err != nil {
		return nil, err
	}
	b.Version = strings.TrimSpace(string(out))
	if !gitVersion.MatchString(b.Version) {
		return nil, fmt.Errorf("%s is not a released e2e.test: asked for its version it says %q, not one like v1.36.3", path, excerpt(out))
	}
	if want != "" && b.Version != want {
		return nil, fmt.Errorf("%s is e2e.test %s, and %s is asked for: name another --e2e-binary or --kubernetes-version", path, b.Version, want)
	}
	return b, nil
}

// List asks the binary for its tests.
func (b *Binary) List(ctx context.Context) (*specs.TestList, error) {
	out, err := b.ask(ctx, "--list-tests")
	if err != nil {
		return nil, err
	}
	list, err := specs.ParseTestList(bytes.NewReader(out))
	if err != nil {
		return nil, fmt.Errorf("the test list of %s: %w", b.Path, err)
	}
	list.Version = b.Version
	return list, nil
}

// ask runs the binary with one flag and returns what it prints. A binary that
// cannot be run, fails, or does not end is an error.
func (b *Binary) ask(ctx context.Context, flag string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.Path, flag)
	cmd.WaitDelay = 5 * time.Second
	ownGroup(cmd)
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
	var stderr bytes.Buffer
	cmd.Stderr = &limitedBuffer{buf: &stderr, limit: 64 << 10}
	var stdout bytes.Buffer
	cmd.Stdout = &limitedBuffer{buf: &stdout, limit: 64 << 20}
	err := cmd.Run()
	switch {
	case err == nil:
		return stdout.Bytes(), nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("%s %s hangs: it did not end in time (%v at most)", b.Path, flag, startTimeout)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, syscall.ENOEXEC):
		return nil, fmt.Errorf("%s is not a program for %s/%s", b.Path, runtime.GOOS, runtime.GOARCH)
	}
	said := excerpt(append(stderr.Bytes(), stdout.Bytes()...))
	return nil, fmt.Errorf("%s %s: %w: it said %q", b.Path, flag, err, said)
}

// limitedBuffer keeps the first limit bytes and drops the rest.
type limitedBuffer struct {
	buf   *bytes.Buffer
	limit int
}

func (l *limitedBuffer) Write(p []byte) (int, error) {
	l.buf.Write(p[:min(len(p), l.limit-l.buf.Len())])
	return len(p), nil
}

// excerpt shortens what a program said to what fits into an error.
func excerpt(out []byte) string {
	const limit = 300
	s := strings.TrimSpace(strings.ToValidUTF8(string(out), "\uFFFD"))
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}
