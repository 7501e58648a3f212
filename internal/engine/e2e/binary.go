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

	"github.com/windows-op-readiness/windows-op-readiness/internal/process"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
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
	b, err := open(ctx, path, "e2e.test", "--e2e-binary")
	if err == nil && want != "" && b.Version != want {
		return nil, fmt.Errorf("%s is e2e.test %s, and %s is asked for: name another --e2e-binary or --kubernetes-version", path, b.Version, want)
	}
	return b, err
}

// OpenOwn is Open for op-readiness.test, which must be for the minor version of
// e2e.test, and built from the sources of that hash.
func OpenOwn(ctx context.Context, path, e2eVersion, hash string) (*Binary, error) {
	b, err := open(ctx, path, "op-readiness.test", "--suite-binary")
	if err != nil {
		return nil, err
	}
	own, err := specs.ParseVersion(b.Version)
	if err != nil {
		return nil, err
	}
	other, err := specs.ParseVersion(e2eVersion)
	if err != nil {
		return nil, err
	}
	if own.MinorString() != other.MinorString() {
		return nil, fmt.Errorf("%s is op-readiness.test for Kubernetes %s, and the tests are those of %s: name another --suite-binary, or leave it out", path, own.MinorString(), e2eVersion)
	}
	out, err := b.ask(ctx, "--suite-version")
	if err != nil {
		return nil, err
	}
	if said := strings.TrimSpace(string(out)); said != hash {
		return nil, fmt.Errorf("%s is built from other tests than this op-readiness comes with: its sources are %q, not %s: name another --suite-binary, or leave it out", path, excerpt(out), hash)
	}
	return b, nil
}

// open opens a test binary of that name, which a flag names.
func open(ctx context.Context, path, name, flag string) (*Binary, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", name, path, err)
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("no %s at %s: get one with 'op-readiness e2e fetch %[1]s', or leave %[3]s out", name, path, flag)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s %s is not a file", name, path)
	case runtime.GOOS != "windows" && info.Mode()&0o111 == 0:
		return nil, fmt.Errorf("%s %s is not executable: chmod +x %s", name, path, path)
	}
	b := &Binary{Path: abs}
	out, err := b.ask(ctx, "--version")
	if err != nil {
		return nil, err
	}
	b.Version = strings.TrimSpace(string(out))
	if !gitVersion.MatchString(b.Version) {
		return nil, fmt.Errorf("%s is no %s: asked for its version it says %q, not one like v1.36.3", path, name, excerpt(out))
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

// ask runs the binary with args and returns what it prints. A binary that
// cannot be run, fails, or does not end is an error.
func (b *Binary) ask(ctx context.Context, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.Path, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &limitedBuffer{buf: &stderr, limit: 64 << 10}
	var stdout bytes.Buffer
	cmd.Stdout = &limitedBuffer{buf: &stdout, limit: 64 << 20}
	err := process.Run(cmd)
	switch {
	case err == nil:
		return stdout.Bytes(), nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("%s %s hangs: it did not end in time (%v at most)", b.Path, args[0], startTimeout)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, syscall.ENOEXEC):
		return nil, fmt.Errorf("%s is not a program for %s/%s", b.Path, runtime.GOOS, runtime.GOARCH)
	}
	said := excerpt(append(stderr.Bytes(), stdout.Bytes()...))
	return nil, fmt.Errorf("%s %s: %w: it said %q", b.Path, args[0], err, said)
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
	return text.Cut(strings.TrimSpace(strings.ToValidUTF8(string(out), "\uFFFD")), 300)
}

// DryRun asks the binary to walk through the tests with the given names
// without running them, and returns an error unless it would run each of them
// and nothing else.
func (b *Binary) DryRun(ctx context.Context, names []string) error {
	args := append([]string{"--node-os-distro=windows", "--ginkgo.dry-run", "--ginkgo.no-color", "--ginkgo.v"}, FocusArgs(names)...)
	out, err := b.ask(ctx, args...)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	o := NewOutput(names, startedOnly(func(name string) { seen[name] = true }))
	if _, err := o.Write(out); err != nil {
		return err
	}
	o.Close()
	m := willRun.FindSubmatch(out)
	if m == nil {
		return fmt.Errorf("%s --ginkgo.dry-run does not say what it would run: it said %q", b.Path, excerpt(out))
	}
	if string(m[1]) != fmt.Sprint(len(names)) || len(seen) != len(names) {
		return fmt.Errorf("%s would run %s tests, and it lists %d of the %d that are planned", b.Path, m[1], len(seen), len(names))
	}
	return nil
}

var willRun = regexp.MustCompile(`(?m)^Will run (\d+) of \d+ specs`)

// startedOnly is a [Listener] that hears which tests start.
type startedOnly func(name string)

func (s startedOnly) Started(name string)         { s(name) }
func (s startedOnly) Finished(Finished)           {}
func (s startedOnly) Destroyed(string, time.Time) {}
func (s startedOnly) SuiteRun(string)             {}
func (s startedOnly) SuiteFailed(string, string)  {}
