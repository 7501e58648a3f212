// Command workflow measures what the reusable workflow takes beyond its shards:
// planning, merging, summary and verdict, with the artifacts between them. It runs
// the workflow for real, with act, on simulated clusters.
//
// Usage, from the root of the repository, with node in PATH:
//
//	go run ./test/bench/workflow
//
// The best of the rounds counts. It exits with 1 when the target is missed, 2 when
// it could not measure.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/test/act/runner"
)

// want is the longest that it may take.
const want = 10 * time.Second

const workflow = `
on: push
jobs:
  readiness:
    uses: windows-op-readiness/windows-op-readiness/.github/workflows/readiness.yml@v1
    with:
      cluster: kwok
      shards: 3
      allow-inconclusive: true
      args: --case=extra-network-service-status,extra-network-endpointslice-objects,extra-concurrent-replicaset
`

func main() {
	rounds := flag.Int("rounds", 2, "how often to measure; the best counts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	best, err := measure(ctx, max(*rounds, 1))
	stop()
	if errors.Is(err, runner.ErrMissing) {
		fmt.Printf("SKIP: %v\n", err)
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	word, code := "PASS", 0
	if best >= want {
		word, code = "FAIL", 1
	}
	fmt.Printf("%s: the workflow takes %.1f s beyond its shards (target: under %.0f s)\n", word, best.Seconds(), want.Seconds())
	os.Exit(code)
}

func measure(ctx context.Context, rounds int) (time.Duration, error) {
	dir, err := os.MkdirTemp("", "op-readiness-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	r, err := runner.New(ctx, ".", dir)
	if err != nil {
		return 0, err
	}
	repository := filepath.Join(dir, "caller")
	if err := runner.NewRepository(ctx, repository, map[string]string{".github/workflows/clusters.yml": workflow}); err != nil {
		return 0, err
	}
	best := time.Duration(0)
	// The first run builds op-readiness, which later ones restore from the cache of workflows.
	for round := range rounds + 1 {
		log, err := r.Run(ctx, runner.Workflow{Repository: repository, Run: round + 1, Artifacts: filepath.Join(dir, "artifacts")})
		if err != nil {
			return 0, err
		}
		if log.Failed {
			return 0, fmt.Errorf("the workflow failed:\n%s\n%s", log.Text(), log.Said)
		}
		took, parts := overhead(log)
		fmt.Printf("round %d: %.1f s (%s)\n", round, took.Seconds(), parts)
		if round > 0 && (best == 0 || took < best) {
			best = took
		}
	}
	return best, nil
}

// overhead is how long the steps of the jobs took that are not shards.
func overhead(log *runner.Log) (total time.Duration, parts string) {
	var said []string
	for _, job := range []string{"plan", "merge", "verdict"} {
		took := time.Duration(0)
		var steps []runner.Step
		for _, s := range log.Steps {
			if strings.HasSuffix(s.Job, "/"+job) {
				steps = append(steps, s)
			}
		}
		for i, s := range steps {
			// The steps of an action come before it, with its name.
			if i+1 == len(steps) || steps[i+1].Name != s.Name {
				took += s.Took
			}
		}
		total += took
		said = append(said, fmt.Sprintf("%s %.1f s", job, took.Seconds()))
	}
	return total, strings.Join(said, ", ")
}
