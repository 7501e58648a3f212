// Command suite measures how fast op-readiness.test starts, against e2e.test of the
// same Kubernetes version, whose framework it is made with.
//
// Usage, from the root of the repository:
//
//	go run ./test/bench/suite
//
// Both are started by turns, from the cache, and asked for what a run asks them: the
// list of their tests, and to walk through one of them. The best of the rounds
// counts. How fast they say their version is printed for the eye: it is the start of
// Kubernetes' own packages, which both have. It exits with 1 when a target is missed,
// 2 when it could not measure.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/test/bench/target"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
)

const (
	rounds = 5
	// want is the target: the time of e2e.test, in times of that of op-readiness.test.
	want = 10.0
)

func main() { target.Main(run) }

// asked is what a binary is asked for; without a target it is for the eye.
type asked struct {
	what   string
	target bool
	ask    func(ctx context.Context, b *e2e.Binary, test string) error
}

var questions = []asked{
	{"--version", false, func(ctx context.Context, b *e2e.Binary, _ string) error {
		_, err := e2e.Open(ctx, b.Path, b.Version)
		return err
	}},
	{"--list-tests", true, func(ctx context.Context, b *e2e.Binary, _ string) error {
		_, err := b.List(ctx)
		return err
	}},
	{"--ginkgo.dry-run of one test", true, func(ctx context.Context, b *e2e.Binary, test string) error {
		return b.DryRun(ctx, []string{test})
	}},
}

func run(ctx context.Context) error {
	theirs, theirTest, err := open(ctx, binaries.E2ETest)
	if err != nil {
		return err
	}
	ours, ourTest, err := open(ctx, binaries.OpReadinessTest)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "Kubernetes %s\te2e.test\top-readiness.test\tratio\ttarget\t\n", binaries.Pinned)
	var missed error
	for _, q := range questions {
		var slow, fast time.Duration
		for range rounds {
			if slow, err = best(slow, func() error { return q.ask(ctx, theirs, theirTest) }); err != nil {
				return err
			}
			if fast, err = best(fast, func() error { return q.ask(ctx, ours, ourTest) }); err != nil {
				return err
			}
		}
		ratio := slow.Seconds() / fast.Seconds()
		asks, word := "", ""
		if q.target {
			asks, word = fmt.Sprintf("at least %.0f", want), "PASS"
			if ratio < want {
				word, missed = "FAIL", target.ErrMissed
			}
		}
		fmt.Fprintf(w, "%s\t%.3f s\t%.3f s\t%.1f\t%s\t%s\n", q.what, slow.Seconds(), fast.Seconds(), ratio, asks, word)
	}
	return errors.Join(w.Flush(), missed)
}

// open gets a binary, and the name of one of its tests.
func open(ctx context.Context, name binaries.Name) (*e2e.Binary, string, error) {
	cache, err := binaries.DefaultDir(os.Getenv)
	if err != nil {
		return nil, "", err
	}
	store := &binaries.Store{Dir: cache, Progress: os.Stderr}
	paths, err := store.Get(ctx, binaries.Pinned, name)
	if err != nil {
		return nil, "", err
	}
	b, err := e2e.Open(ctx, paths[name], binaries.Pinned)
	if err != nil {
		return nil, "", err
	}
	tests, err := b.List(ctx)
	if err != nil {
		return nil, "", err
	}
	return b, tests.Names()[0], nil
}

// best returns the shorter of what was measured and what do takes; 0 is not measured.
func best(measured time.Duration, do func() error) (time.Duration, error) {
	began := time.Now()
	err := do()
	if took := time.Since(began); measured == 0 || took < measured {
		measured = took
	}
	return measured, err
}
