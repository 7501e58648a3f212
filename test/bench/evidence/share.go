//go:build linux || darwin

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
	"sync"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/plan"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/run"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/progress"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/evidence"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kwok"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
)

// quick are additional cases that ask only the API server, and make pods.
var quick = []string{
	"extra-concurrent-deployment-lifecycle",
	"extra-concurrent-deployment-rolling-update",
	"extra-concurrent-deployment-recreate",
	"extra-concurrent-replicaset",
	"extra-scheduling-gates",
}

const rounds = 3

// bed is what the runs share.
type bed struct {
	dir     string
	binary  *e2e.Binary
	cluster *cluster.Cluster
	facts   *result.Facts
	plan    *result.Plan
	kube    string
}

// measureShare runs real tests with and without evidence, by turns.
func measureShare(ctx context.Context) (rows []row, err error) {
	b := &bed{}
	if b.dir, err = os.MkdirTemp("", "bench-evidence-*"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(b.dir)
	if b.dir, err = filepath.EvalSymlinks(b.dir); err != nil {
		return nil, err
	}
	down, err := b.prepare(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, down()) }()
	var with, without, shares []time.Duration
	worst := 0.0
	observed := 0
	for i := range rounds {
		for _, watched := range []bool{true, false} {
			tell("round %d of %d, evidence %t: %d real tests, about 20 s", i+1, rounds, watched, len(b.plan.Tests))
			m, err := b.run(ctx, fmt.Sprintf("%d-%t", i, watched), watched)
			if err != nil {
				return nil, err
			}
			if !watched {
				without = append(without, m.wall)
				continue
			}
			with, shares = append(with, m.wall), append(shares, m.added)
			worst = max(worst, m.added.Seconds()/(m.wall-m.added).Seconds())
			observed = m.pods
		}
	}
	return []row{
		{what: fmt.Sprintf("evidence of %d real tests, %d pods: time added, of the run's wall time without it (worst of %d)", len(b.plan.Tests), observed, rounds), measured: fmt.Sprintf("%.2f %%", 100*worst), target: fmt.Sprintf("< %.0f %%", 100*wantShare), ok: worst < wantShare},
		{what: "the same: time added, median", measured: median(shares).Round(time.Millisecond).String()},
		{what: "the same: wall time with evidence, median", measured: median(with).Round(10 * time.Millisecond).String()},
		{what: "the same: wall time without, median", measured: median(without).Round(10 * time.Millisecond).String()},
	}, nil
}

func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}

// prepare gets e2e.test, makes the cluster and the plan. It returns what
// removes the cluster.
func (b *bed) prepare(ctx context.Context) (func() error, error) {
	cache, err := binaries.DefaultDir(os.Getenv)
	if err != nil {
		return nil, err
	}
	store := &binaries.Store{Dir: cache, Progress: os.Stderr}
	paths, err := store.Get(ctx, binaries.Pinned, append(kwok.Needs(), binaries.E2ETest)...)
	if err != nil {
		return nil, err
	}
	if b.binary, err = e2e.Open(ctx, paths[binaries.E2ETest], binaries.Pinned); err != nil {
		return nil, err
	}
	p := &kwok.Provider{Binaries: store, Dir: filepath.Join(b.dir, "clusters"), Progress: os.Stderr}
	options := provider.DefaultRequest()
	options.Name = "bench-evidence"
	made, err := kwoktest.Make(ctx, p, options)
	if err != nil {
		return nil, err
	}
	down := func() error { return kwoktest.Remove(context.Background(), p, options.Name) }
	b.kube = made.Kubeconfig
	if err := b.makePlan(ctx); err != nil {
		return nil, errors.Join(err, down())
	}
	return down, nil
}

func (b *bed) makePlan(ctx context.Context) error {
	var err error
	if b.cluster, err = cluster.Connect(cluster.Target{Kubeconfig: b.kube}); err != nil {
		return err
	}
	nodes, err := b.cluster.Nodes(ctx)
	if err != nil {
		return err
	}
	b.facts = &result.Facts{ServerVersion: binaries.Pinned}
	for i := range nodes {
		b.facts.Nodes = append(b.facts.Nodes, cluster.NodeFacts(&nodes[i]))
	}
	set, err := specs.Embedded()
	if err != nil {
		return err
	}
	cases, err := set.For(binaries.Pinned)
	if err != nil {
		return err
	}
	tests, err := b.binary.List(ctx)
	if err != nil {
		return err
	}
	b.plan, err = plan.Make(plan.Request{Cases: cases, Tests: tests, Provider: e2e.DefaultProvider, Selection: result.Selection{Cases: quick}, Shards: 1})
	return err
}

// measured is one run.
type measured struct {
	wall, added time.Duration
	pods        int
}

// timed is a watch whose calls are timed.
type timed struct {
	*evidence.Watch

	mu    sync.Mutex
	added time.Duration
}

func (t *timed) time(work func()) {
	began := time.Now()
	work()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.added += time.Since(began)
}

func (t *timed) Collect(ctx context.Context, suiteRunID string, namespaces []string, since time.Time) (pods []result.Pod, incomplete string) {
	t.time(func() { pods, incomplete = t.Watch.Collect(ctx, suiteRunID, namespaces, since) })
	return pods, incomplete
}

func (b *bed) run(ctx context.Context, name string, watched bool) (m measured, err error) {
	dir := filepath.Join(b.dir, name)
	manifest := &result.Manifest{Schema: result.ManifestSchema, RunID: name, PlanDigest: b.plan.Digest, Shard: 1, Attempt: 1, Cluster: *b.facts, E2EVersion: b.binary.Version}
	folder, err := result.Create(dir, b.plan, manifest)
	if err != nil {
		return m, err
	}
	defer folder.Close()
	temp := filepath.Join(b.dir, "tmp-"+name)
	if err := os.Mkdir(temp, 0o755); err != nil {
		return m, err
	}
	observer := progress.New(progress.Plain, io.Discard, 0, b.plan, nil, 1, time.Now)
	defer observer.Close()
	options := run.Options{
		Plan: b.plan, Manifest: manifest, Folder: folder, Binary: b.binary, Cluster: b.cluster, Observer: observer, TempDir: temp,
		Flags: e2e.Flags{Kubeconfig: b.kube, Provider: e2e.DefaultProvider},
		Env:   append(os.Environ(), "TMPDIR="+temp),
	}
	t := &timed{}
	began := time.Now()
	if watched {
		t.time(func() { t.Watch, err = evidence.Start(ctx, b.cluster.Client(), b.facts.Nodes, b.cluster.Node) })
		if err != nil {
			return m, err
		}
		options.Evidence = t
	}
	if err := run.Run(ctx, options); err != nil {
		return m, err
	}
	if watched {
		t.time(t.Stop)
	}
	m.wall, m.added = time.Since(began), t.added
	done, err := result.Load(dir)
	if err != nil {
		return m, err
	}
	m.pods = len(done.Pods)
	return m, check(done, watched)
}

// check returns an error when the run is none to be measured.
func check(done *result.Run, watched bool) error {
	var wrong []string
	for i := range done.Plan.Tests {
		test := &done.Plan.Tests[i]
		a := done.Attempts[test.ID]
		if len(a) != 1 || a[0].State != result.TestPassed || watched && a[0].Unobserved != "" {
			wrong = append(wrong, fmt.Sprintf("%s: %+v", test.Name, a))
		}
	}
	if watched && len(done.Pods) == 0 {
		wrong = append(wrong, "no pod was observed")
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "; "))
	}
	return nil
}
