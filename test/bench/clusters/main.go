// Command clusters measures how fast clusters are there, from cached binaries: of kwok the
// smallest one, and one of 500 Linux and 500 Windows nodes; of kind, where this machine
// can make one, how much time goes beside kind's own.
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
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/test/bench/target"

	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/log"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kind"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kwok"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/ledger"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/life"
	"github.com/windows-op-readiness/windows-op-readiness/test/kind/engine"
	"github.com/windows-op-readiness/windows-op-readiness/test/kindtest"
)

// sizes are clusters, and within what time they are to be there.
var sizes = []struct {
	linux, windows int
	target         time.Duration
}{
	{2, 2, 10 * time.Second},
	{500, 500, time.Minute},
}

func main() { target.Main(run) }

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
	self, err := filepath.Abs("bin/op-readiness")
	if err != nil {
		return err
	}
	clusters := &life.Clusters{
		Ledger: &ledger.Ledger{Dir: filepath.Join(dir, "ledger")},
		Providers: []provider.Provider{
			&kwok.Provider{Binaries: store, Dir: filepath.Join(dir, "kwok")},
			&kind.Provider{Binaries: store, Dir: filepath.Join(dir, "kind"), Self: []string{self, "cluster"}},
		},
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tup (at most)\tdown (at most)\t")
	missed := false
	for _, s := range sizes {
		up, down, err := measure(ctx, clusters, kwok.ProviderName, s.linux, s.windows, nil)
		if err != nil {
			return err
		}
		missed = row(w, fmt.Sprintf("kwok, %d + %d nodes", s.linux, s.windows), up, down, s.target, time.Minute) || missed
	}
	up, down, err := beside(ctx, clusters)
	var unfit *engine.UnfitError
	switch {
	case errors.As(err, &unfit):
		fmt.Fprintln(os.Stderr, "kind is not measured:", err)
	case err != nil:
		return err
	default:
		missed = row(w, "kind, beside its own time", up, down, 5*time.Second, 5*time.Second) || missed
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if missed {
		return target.ErrMissed
	}
	return nil
}

// row writes how long a cluster took, and tells whether a target is missed.
func row(w io.Writer, what string, up, down, upWithin, downWithin time.Duration) (missed bool) {
	missed = up > upWithin || down > downWithin
	verdict := "ok"
	if missed {
		verdict = "MISSED"
	}
	fmt.Fprintf(w, "%s\t%.1f s (%s)\t%.1f s (%s)\t%s\n", what, up.Seconds(), upWithin, down.Seconds(), downWithin, verdict)
	return missed
}

// measure makes a cluster and removes it.
func measure(ctx context.Context, clusters *life.Clusters, by string, linux, windows int, set map[string]string) (up, down time.Duration, err error) {
	r := provider.DefaultRequest()
	r.Name, r.Owner, r.Set = fmt.Sprintf("bench-%d", linux), "bench", set
	r.ExpireAfter(time.Hour)
	r.LinuxNodes, r.WindowsNodes = linux, windows
	plan, err := clusters.Plan(ctx, by, r)
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

// rounds is how often a cluster of kind is made by us and by kind itself.
const rounds = 3

// beside returns how much longer we take than kind itself for a cluster of one node,
// where we have two simulated nodes more: the median of several rounds.
func beside(ctx context.Context, clusters *life.Clusters) (up, down time.Duration, err error) {
	bed, err := kindtest.Find(ctx)
	if err != nil {
		return 0, 0, err
	}
	for _, variable := range bed.Engine.Env {
		name, value, _ := strings.Cut(variable, "=")
		if err := os.Setenv(name, value); err != nil {
			return 0, 0, err
		}
	}
	var ups, downs []time.Duration
	for range rounds {
		up, down, err := measure(ctx, clusters, kind.ProviderName, 0, 2, map[string]string{kind.Engine: bed.Engine.Name, kind.Image: bed.Image})
		if err != nil {
			return 0, 0, err
		}
		ownUp, ownDown, err := own(bed)
		if err != nil {
			return 0, 0, err
		}
		ups, downs = append(ups, up-ownUp), append(downs, down-ownDown)
	}
	slices.Sort(ups)
	slices.Sort(downs)
	return ups[rounds/2], downs[rounds/2], nil
}

// own has kind itself make a cluster of one node, and remove it.
func own(bed *kindtest.Bed) (up, down time.Duration, err error) {
	dir, err := os.MkdirTemp("", "bench-kind-")
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(dir)
	const name = "bench-own"
	kindItself, kubeconfig := bed.Provider(log.NoopLogger{}), filepath.Join(dir, "kubeconfig")
	began := time.Now()
	err = kindItself.Create(name, cluster.CreateWithV1Alpha4Config(bed.Config(0)), cluster.CreateWithKubeconfigPath(kubeconfig), cluster.CreateWithWaitForReady(3*time.Minute))
	up = time.Since(began)
	began = time.Now()
	err = errors.Join(err, kindItself.Delete(name, kubeconfig))
	return up, time.Since(began), err
}
