// Command clusters measures how fast simulated clusters are there, from cached binaries:
// the smallest one, and one of 500 Linux and 500 Windows nodes.
//
// Usage, from the root of the repository:
//
//	go run ./test/bench/clusters
//
// It exits with 1 when a target is missed, 2 when it could not measure.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/assess"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kwok"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/life"
)

// sizes are clusters, and within what time they are to be there.
var sizes = []struct {
	linux, windows int
	target         time.Duration
}{
	{2, 2, 10 * time.Second},
	{500, 500, time.Minute},
}

var errMissed = errors.New("a target is missed")

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	cancel()
	switch {
	case errors.Is(err, errMissed):
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
}

func run(ctx context.Context) (err error) {
	cache, err := binaries.DefaultDir(os.Getenv)
	if err != nil {
		return err
	}
	store := &binaries.Store{Dir: cache, Progress: os.Stderr}
	if _, err := store.Get(ctx, binaries.Pinned, kwok.Needs()...); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-clusters-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	clusters := assess.Clusters(store, filepath.Join(dir, "ledger"), os.Environ(), nil)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "kwok\tup\ttarget\tdown\t")
	missed := false
	for _, s := range sizes {
		up, down, err := measure(ctx, clusters, s.linux, s.windows)
		if err != nil {
			return err
		}
		verdict := ""
		if up > s.target {
			verdict, missed = "MISSED", true
		}
		fmt.Fprintf(w, "%d + %d nodes\t%.1f s\t%s\t%.1f s\t%s\n", s.linux, s.windows, up.Seconds(), s.target, down.Seconds(), verdict)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if missed {
		return errMissed
	}
	return nil
}

// measure makes a cluster and removes it.
func measure(ctx context.Context, clusters *life.Clusters, linux, windows int) (up, down time.Duration, err error) {
	r := provider.DefaultRequest()
	r.Name, r.Owner, r.Expires = fmt.Sprintf("bench-%d", linux), "bench", time.Now().Add(time.Hour)
	r.LinuxNodes, r.WindowsNodes = linux, windows
	plan, err := clusters.Plan(ctx, kwok.ProviderName, r)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	_, err = clusters.Up(ctx, plan, life.UpOptions{})
	up = time.Since(began)
	began = time.Now()
	err = errors.Join(err, clusters.Down(context.WithoutCancel(ctx), r.Name))
	return up, time.Since(began), err
}
