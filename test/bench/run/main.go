//go:build linux || darwin

// Command run measures what op-readiness costs beside the tests themselves,
// against the way of the reference implementation: one e2e.test process for
// each test case.
//
// Usage, from the root of the repository:
//
//	go run ./test/bench/run
//
// It measures three things. Resolving and dry-running every case of the
// standard: one 'op-readiness run --dry-run', against e2e.test
// --ginkgo.dry-run with the focus of a case, once for each case that has
// tests. A real run of quick cases on a simulated cluster that it makes: one
// 'op-readiness run', against e2e.test once for each case; "outside tests" is
// the wall time without what the tests themselves took. And what
// 'op-readiness --help' costs more than an empty Go program.
//
// Every e2e.test is started through a script that counts, on both sides. It
// exits with 1 when a target is missed, 2 when it could not measure.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/test/bench/target"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kwok"
	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
)

// The targets.
const (
	wantDryRun = 8.0                   // times faster
	wantHelp   = 50 * time.Millisecond // more than an empty program, less than this
)

func main() { target.Main(run) }

// bench is what the measurements share.
type bench struct {
	dir   string // for everything; an absolute path
	tool  string // op-readiness
	empty string // a Go program that does nothing
	e2e   string // e2e.test, through a script that counts its starts
	kube  string // kubeconfig of the simulated cluster
}

// row is a line of the table.
type row struct {
	what, ours, theirs, ratio, target string
	ok                                bool
}

func run(ctx context.Context) (err error) {
	b := &bench{}
	if b.dir, err = os.MkdirTemp("", "bench-run-*"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if b.dir, err = filepath.EvalSymlinks(b.dir); err != nil {
		return err
	}
	down, err := b.prepare(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, down()) }()
	var rows []row
	for _, measure := range []func(context.Context) ([]row, error){b.help, b.dryRun, b.real} {
		more, err := measure(ctx)
		if err != nil {
			return err
		}
		rows = append(rows, more...)
	}
	return print(rows)
}

// prepare gets e2e.test, builds the programs and makes the cluster. It returns
// what removes the cluster.
func (b *bench) prepare(ctx context.Context) (func() error, error) {
	cache, err := binaries.DefaultDir(os.Getenv)
	if err != nil {
		return nil, err
	}
	store := &binaries.Store{Dir: cache, Progress: os.Stderr}
	paths, err := store.Get(ctx, binaries.Pinned, append(kwok.Needs(), binaries.E2ETest)...)
	if err != nil {
		return nil, err
	}
	b.e2e = filepath.Join(b.dir, "e2e.test")
	script := fmt.Sprintf("#!/bin/sh\necho >>%q\nexec %q \"$@\"\n", b.starts(), paths[binaries.E2ETest])
	if err := os.WriteFile(b.e2e, []byte(script), 0o755); err != nil {
		return nil, err
	}
	b.tool, b.empty = filepath.Join(b.dir, "op-readiness"), filepath.Join(b.dir, "empty")
	source := filepath.Join(b.dir, "empty.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o644); err != nil {
		return nil, err
	}
	tell("building op-readiness")
	for _, args := range [][]string{{"-o", b.tool, "./cmd/op-readiness"}, {"-o", b.empty, source}} {
		cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-trimpath"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", cmd, err, out)
		}
	}
	p := &kwok.Provider{Binaries: store, Dir: filepath.Join(b.dir, "clusters"), Progress: os.Stderr}
	options := provider.DefaultRequest()
	options.Name = "bench"
	made, err := kwoktest.Make(ctx, p, options)
	if err != nil {
		return nil, err
	}
	b.kube = made.Kubeconfig
	return func() error { return kwoktest.Remove(context.Background(), p, options.Name) }, nil
}

// starts is the file with one byte for each start of e2e.test.
func (b *bench) starts() string { return filepath.Join(b.dir, "starts") }

// measured is what a piece of work took.
type measured struct {
	wall   time.Duration
	starts int // of e2e.test
}

// measure does a piece of work and counts the processes of e2e.test.
func (b *bench) measure(work func() error) (measured, error) {
	if err := os.WriteFile(b.starts(), nil, 0o644); err != nil {
		return measured{}, err
	}
	began := time.Now()
	err := work()
	wall := time.Since(began)
	counted, readErr := os.ReadFile(b.starts())
	return measured{wall, len(counted)}, errors.Join(err, readErr)
}

// output runs a program. It is an error when the exit code is not one of codes.
func output(ctx context.Context, codes []int, path string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, path, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if cmd.ProcessState == nil || !slices.Contains(codes, cmd.ProcessState.ExitCode()) {
		said := stdout.String() + stderr.String()
		return "", fmt.Errorf("%s %s: %w: %s", path, strings.Join(args, " "), err, said[max(0, len(said)-2000):])
	}
	return stdout.String(), nil
}

func tell(format string, args ...any) { fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...) }

func print(rows []row) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tours\treference's way\tratio\ttarget\t")
	missed := false
	for _, r := range rows {
		word := ""
		if r.target != "" {
			word = "PASS"
			if !r.ok {
				word, missed = "FAIL", true
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.what, r.ours, r.theirs, r.ratio, r.target, word)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if missed {
		return target.ErrMissed
	}
	return nil
}

// compare is the row for two times.
func compare(what string, ours, theirs time.Duration) row {
	return row{what: what, ours: seconds(ours), theirs: seconds(theirs), ratio: times(float64(theirs) / float64(ours))}
}

// processes is the row for two counts.
func processes(what string, ours, theirs int) row {
	return row{what: what, ours: fmt.Sprint(ours), theirs: fmt.Sprint(theirs), ratio: times(float64(theirs) / float64(ours))}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func times(ratio float64) string { return fmt.Sprintf("%.1fx", ratio) }
