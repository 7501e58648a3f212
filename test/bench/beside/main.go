//go:build linux || darwin

// Command beside measures what it gains to run tests beside each other, on a simulated
// cluster that it makes, with real tests of e2e.test under three conditions.
//
// Usage, from the root of the repository, where bin/op-readiness is built:
//
//	go run ./test/bench/beside
//
// The same tests run one at a time, then four at a time, then in three shards at once.
// They wait for the cluster more than they compute, as tests do whose pods pull images. How
// much faster that is, is held against what the plan expects by the durations of the first
// run: starting e2e.test for each condition, and steering, are not in the plan, and cost the
// rest. What steering costs is the median time from a process's first line to its first
// test, where pods are steered, less the same where they are not.
//
// It exits with 1 when a target is missed, 2 when it could not measure.
package main

import (
	"bytes"
	"context"
	"encoding/json"
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

	"golang.org/x/sync/errgroup"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/plan"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kwok"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
)

// The targets.
const (
	wantShare = 0.8 // of the speed-up that the plan expects
	wantSteer = time.Second
)

// lives are the tests: of resource quotas, which are counted every few seconds.
var lives = []string{
	"capture the life of a configMap.", "capture the life of a custom resource.", "capture the life of a persistent volume claim",
	"capture the life of a persistent volume claim with a storage class", "capture the life of a pod.", "capture the life of a replica set.",
	"capture the life of a replication controller.", "capture the life of a secret.", "capture the life of a service.",
}

// Those of terminating scopes are left out: now and then the quota controller misses a
// deletion, and they wait for its resync, which is five minutes.
var verified = []string{"best effort scope using scope-selectors.", "best effort scope.", "cross namespace pod affinity scope using scope-selectors."}

// conditions are those that the tests run under.
var conditions = []string{"", "steer: windows", "steer: linux"}

func main() { target.Main(run) }

// bed is what the runs share.
type bed struct{ dir, binary, kubeconfig, specs string }

func run(ctx context.Context) (err error) {
	b := &bed{}
	if b.dir, err = os.MkdirTemp("", "bench-beside-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if b.binary, err = filepath.Abs("bin/op-readiness"); err != nil {
		return err
	}
	cache, err := binaries.DefaultDir(os.Getenv)
	if err != nil {
		return err
	}
	store := &binaries.Store{Dir: cache, Progress: os.Stderr}
	if _, err := store.Get(ctx, binaries.Pinned, append(kwok.Needs(), binaries.E2ETest)...); err != nil {
		return err
	}
	p := &kwok.Provider{Binaries: store, Dir: filepath.Join(b.dir, "clusters"), Progress: os.Stderr}
	request := provider.DefaultRequest()
	request.Name, request.WindowsNodes = "bench-beside", 4
	made, err := kwoktest.Make(ctx, p, request)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, kwoktest.Remove(context.WithoutCancel(ctx), p, request.Name))
	}()
	b.kubeconfig = made.Kubeconfig
	if b.specs, err = b.writeSpecs(); err != nil {
		return err
	}
	return b.measure(ctx)
}

// writeSpecs writes the cases: each test under each of the conditions.
func (b *bed) writeSpecs() (string, error) {
	var text strings.Builder
	text.WriteString("category: Core.Network\ncases:\n")
	var tests []string
	for _, name := range lives {
		tests = append(tests, "create a ResourceQuota and "+name)
	}
	for _, name := range verified {
		tests = append(tests, "verify ResourceQuota with "+name)
	}
	for i := range len(tests) * len(conditions) {
		quoted := strings.ReplaceAll(tests[i/len(conditions)], ".", `\.`)
		c := conditions[i%len(conditions)]
		means := ""
		if c != "" {
			means = "steer"
		}
		fmt.Fprintf(&text, `  - id: quota-%d
    requirement: Tests run beside each other.
    kind: additional
    proof: part
    missing: Windows.
    tests: [{focus: '\[sig-api-machinery\] ResourceQuota should %s( \[|$)', expect: 1}]
    needs: {means: [%s]}
    conditions: {%s}
    phase: parallel
    duration: 20s
    timeout: 5m
`, i+1, quoted, means, c)
	}
	dir := filepath.Join(b.dir, "specs")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "core-network.yaml"), []byte(text.String()), 0o600)
}

// took is a run, and how long it took from its start to its end.
type took struct {
	wall    time.Duration
	results []*result.Run
}

// assess runs all shards at once.
func (b *bed) assess(ctx context.Context, name string, shards, procs int, more ...string) (*took, error) {
	fmt.Fprintf(os.Stderr, "bench: %s\n", name)
	t := &took{results: make([]*result.Run, shards)}
	var group errgroup.Group
	began := time.Now()
	for i := range shards {
		group.Go(func() error {
			dir := filepath.Join(b.dir, fmt.Sprintf("%s-%d", strings.ReplaceAll(name, " ", "-"), i+1))
			args := append([]string{
				"run", "--kubeconfig", b.kubeconfig, "--spec-dir", b.specs, "--additional", "--report-dir", dir, "--preflight", "off",
				"--run-id", strings.ReplaceAll(name, " ", "-"), "--shards", fmt.Sprint(shards), "--shard", fmt.Sprint(i + 1), "--procs", fmt.Sprint(procs),
			}, more...)
			said, err := exec.CommandContext(ctx, b.binary, args...).CombinedOutput()
			var exit *exec.ExitError
			if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != verdict.ExitInconclusive) {
				return fmt.Errorf("%s: %w\n%s", name, err, said)
			}
			if t.results[i], err = result.Load(dir); err != nil {
				return err
			}
			for _, attempts := range t.results[i].Attempts {
				if last := attempts[len(attempts)-1]; last.State != result.TestPassed {
					return fmt.Errorf("%s: %s %s: %s", name, last.Name, last.State, last.Message)
				}
			}
			return nil
		})
	}
	err := group.Wait()
	t.wall = time.Since(began)
	return t, err
}

func (b *bed) measure(ctx context.Context) error {
	one, err := b.assess(ctx, "one at a time", 1, 1)
	if err != nil {
		return err
	}
	durations := one.results[0].Durations()
	alone, err := b.expected(durations, 1, 1)
	if err != nil {
		return err
	}
	measured := filepath.Join(b.dir, "one-at-a-time-1")
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%d tests, %d conditions\ttook\tfaster\texpected\tof that\t\n", len(durations), len(conditions))
	fmt.Fprintf(w, "one at a time\t%.1f s\t\t\t\t\n", one.wall.Seconds())
	missed := false
	all := []*took{one}
	for _, way := range []struct {
		name          string
		shards, procs int
	}{{"four at a time", 1, 4}, {"three shards at once", 3, 1}} {
		t, err := b.assess(ctx, way.name, way.shards, way.procs, "--durations", measured)
		if err != nil {
			return err
		}
		wall, err := b.expected(durations, way.shards, way.procs)
		if err != nil {
			return err
		}
		faster, want := one.wall.Seconds()/t.wall.Seconds(), alone.Seconds()/wall.Seconds()
		word := "PASS"
		if faster < wantShare*want {
			word, missed = "FAIL", true
		}
		fmt.Fprintf(w, "%s\t%.1f s\t%.2f times\t%.2f times\t%.0f %% (%.0f %%)\t%s\n", way.name, t.wall.Seconds(), faster, want, 100*faster/want, 100*wantShare, word)
		all = append(all, t)
	}
	cost, err := steering(all[:1]) // where nothing else keeps the machine busy
	if err != nil {
		return err
	}
	word := "PASS"
	if cost >= wantSteer {
		word, missed = "FAIL", true
	}
	fmt.Fprintf(w, "steering a process\t%.2f s (%v)\t\t\t\t%s\n", cost.Seconds(), wantSteer, word)
	if err := w.Flush(); err != nil {
		return err
	}
	if missed {
		return target.ErrMissed
	}
	return nil
}

// expected is what the plan expects.
func (b *bed) expected(durations map[string]time.Duration, shards, procs int) (time.Duration, error) {
	set, _, err := specs.LoadDir(b.specs)
	if err != nil {
		return 0, err
	}
	cases, err := set.For(binaries.Pinned)
	if err != nil {
		return 0, err
	}
	tests, err := specs.Catalogue(binaries.Pinned)
	if err != nil {
		return 0, err
	}
	p, err := plan.Make(plan.Request{
		Cases: cases, Tests: tests, Provider: e2e.DefaultProvider, Selection: result.Selection{Additional: true},
		Shards: shards, Shared: true, Durations: durations,
	})
	if err != nil {
		return 0, err
	}
	return plan.Wall(p, procs), nil
}

// steering is what it costs to steer a process.
func steering(all []*took) (time.Duration, error) {
	var with, without []time.Duration
	for _, t := range all {
		for _, r := range t.results {
			for _, b := range r.Batches {
				said, began, err := firsts(r, b.ID)
				if err != nil {
					return 0, err
				}
				if b.Conditions == (result.RunConditions{}) {
					without = append(without, began.Sub(said))
				} else {
					with = append(with, began.Sub(said))
				}
			}
		}
	}
	if len(with) == 0 || len(without) == 0 {
		return 0, errors.New("not all conditions were tested")
	}
	slices.Sort(with)
	slices.Sort(without)
	return with[len(with)/2] - without[len(without)/2], nil
}

// firsts returns when a batch's process said its id, and when its first test began.
func firsts(r *result.Run, batch string) (said, began time.Time, err error) {
	data, err := os.ReadFile(filepath.Join(r.Dir, result.EventsFile))
	if err != nil {
		return said, began, err
	}
	for line := range bytes.Lines(data) {
		var e result.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return said, began, err
		}
		switch {
		case e.Type == result.BatchSuite && e.Batch.ID == batch:
			said = e.Time
		case e.Type == result.TestStarted && e.Test.Batch == batch && began.IsZero():
			began = e.Time
		}
	}
	if said.IsZero() || began.IsZero() {
		return said, began, fmt.Errorf("batch %s has run no test", batch)
	}
	return said, began, nil
}
