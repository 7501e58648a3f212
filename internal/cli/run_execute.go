package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/term"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/run"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/progress"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/evidence"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/lease"
	"github.com/windows-op-readiness/windows-op-readiness/internal/tempdir"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// execution is a run that is ready to go.
type execution struct {
	plan     *result.Plan
	manifest *result.Manifest
	folder   *result.Folder
	binary   *e2e.Binary
	cluster  *cluster.Cluster
	steering run.Steering
	lock     run.Lock
	previous *result.Run
	// deadline is when the run's time is up; zero for never.
	deadline time.Time
	// stopWithin is how long the tests may take to stop; 0 for no limit.
	stopWithin time.Duration
}

// lock is the cluster lock as the engine wants it.
type lock struct {
	*lease.Lock
	wait bool
}

func (l lock) Hold(ctx context.Context, phase specs.Phase, conditions result.RunConditions) error {
	return l.Acquire(ctx, lease.Group{Phase: phase, Conditions: conditions}, l.wait)
}

// clusterLock returns the lock that keeps other runs off the cluster, and notes
// in the manifest which member of it this is; nil where none is wanted.
func (o *runOptions) clusterLock(s *Surroundings, c *cluster.Cluster, m *result.Manifest, p *result.Plan) (*lease.Lock, error) {
	if !o.Lock {
		return nil, nil
	}
	// A connection of its own: renewals must not queue behind other requests.
	beside, err := c.Beside()
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	holder := lease.Holder{RunID: m.RunID, Shard: fmt.Sprintf("%d/%d", m.Shard, p.Shards), Host: host}
	l := lease.New(beside.Client(), holder, lease.Options{
		Note: func(text string) { fmt.Fprintln(s.Stderr, text) },
		Dead: slices.Clone(m.Locks), // this execution has their results folder
	})
	m.Locks = append(m.Locks, l.ID())
	return l, nil
}

// engineLock is the lock for the engine; nil where there is none.
func (o *runOptions) engineLock(l *lease.Lock) run.Lock {
	if l == nil {
		return nil
	}
	return lock{Lock: l, wait: o.Wait}
}

// holdFirst takes the cluster for the first tests of the run, before anything
// is written: a run that is refused leaves no results folder behind, and one that
// goes on stays as it was.
func holdFirst(ctx context.Context, l run.Lock, tests []*result.PlannedTest) error {
	if l == nil || len(tests) == 0 {
		return nil
	}
	return l.Hold(ctx, tests[0].Phase, tests[0].Conditions)
}

// release gives the lock up where the engine has not done so.
func release(s *Surroundings, l run.Lock) {
	if l == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := l.Release(ctx); err != nil {
		fmt.Fprintln(s.Stderr, err)
	}
}

// observe begins to watch pods. Where that is not possible, the run goes on,
// and proves no placement.
func (e *execution) observe(ctx context.Context, s *Surroundings) (run.Evidence, func()) {
	w, err := evidence.Start(ctx, e.cluster.Client(), e.manifest.Cluster.Nodes, e.cluster.Node)
	if err != nil {
		fmt.Fprintf(s.Stderr, "warning: pods are not observed, so no placement will be proven: %v\n", err)
		return nil, func() {}
	}
	return w, w.Stop
}

// execute runs the tests, judges, writes JUnit and manifest, and reports.
func (o *runOptions) execute(ctx context.Context, s *Surroundings, e execution) error {
	temp, err := tempdir.New()
	if err != nil {
		return err
	}
	defer temp.RemoveAll()
	tests := run.Due(e.plan, e.manifest, e.previous, o.Retries)
	fmt.Fprintf(s.Stderr, "%s: %d tests to run for %d cases of plan %.19s; results in %s\n",
		e.cluster.Server, len(tests), len(e.plan.Cases), e.plan.Digest, e.folder.Dir())
	if len(tests) == 0 && e.previous == nil {
		// The verdict has the exit code.
		_ = sayIdle(s, e.plan, e.manifest.Shard, func(c *result.PlannedCase) string {
			_, reason := verdict.Decide(c, e.manifest)
			return reason
		})
	}
	pods, stopWatching := e.observe(ctx, s)
	defer stopWatching()
	observer := progress.New(o.style(s), s.Stderr, widthOf(s.Stderr), e.plan, tests, time.Now)
	kept := e.keepAtStop(s)
	runErr := run.Run(ctx, run.Options{
		Plan:     e.plan,
		Manifest: e.manifest,
		Folder:   e.folder,
		Binary:   e.binary,
		Flags: e2e.Flags{
			Kubeconfig:           o.Kubeconfig,
			Context:              o.Context,
			Provider:             e.plan.Provider,
			Kubectl:              o.Kubectl,
			NonBlockingTaints:    o.nonBlockingTaints(e.steering),
			AllowedNotReadyNodes: o.AllowedNotReadyNodes,
			DNSDomain:            o.DNSDomain,
			DockerConfig:         o.DockerConfig,
			RepoList:             o.RepoList,
			Extra:                o.E2EArgs,
		},
		Env:      append(slices.Clone(s.Environ), "TMPDIR="+temp.Path), // e2e.test leaves files there
		Cluster:  e.cluster,
		Observer: observer,
		Evidence: pods,
		Lock:     e.lock,
		Steering: e.steering,
		Retries:  o.Retries,
		Procs:    o.Procs,
		Previous: e.previous,
		Stop:     s.stop,
		TempDir:  temp.Path,

		StopWithin: e.stopWithin,
		Deadline:   e.deadline,
	})
	observer.Close()
	kept()
	err = judgeFolder(e.folder, s, o.Output, func(r *result.Run) time.Time {
		if !r.Finished {
			return time.Time{}
		}
		return time.Now().UTC()
	})
	if runErr == nil || errors.Is(runErr, run.ErrInterrupted) {
		return err
	}
	// What was learned before the error is judged and reported, too; the exit code
	// is the error's, whatever the verdict.
	if exit := (*exitError)(nil); errors.As(err, &exit) && exit.cause == nil {
		err = nil
	}
	return errors.Join(runErr, err)
}

// keepAtStop writes what there is as soon as a signal comes: whoever sent it may
// kill the run before the tests have cleaned up. The function that it returns
// waits for that, and ends it.
func (e *execution) keepAtStop(s *Surroundings) (wait func()) {
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-s.stop:
		case <-over:
			return
		}
		soFar, err := result.Load(e.folder.Dir())
		if err == nil {
			err = report.WriteFolder(e.folder, soFar, verdict.Judge(soFar), time.Time{})
		}
		if err == nil {
			err = deliver(s, e.folder.Dir())
		}
		if err != nil {
			fmt.Fprintf(s.Stderr, "warning: the results so far could not be written: %v\n", err)
		}
	}()
	return func() {
		close(over)
		<-done
	}
}

// style is how progress is shown: as asked, else as fits where it goes.
func (o *runOptions) style(s *Surroundings) progress.Style {
	switch {
	case o.LogFormat == "json":
		return progress.JSON
	case s.Getenv("GITHUB_ACTIONS") == "true":
		return progress.GitHub
	case o.LogFormat == "" && isTerminal(s.Stderr) && s.Getenv("CI") == "":
		return progress.Live
	}
	return progress.Plain
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// terminalWidth is that of standard output.
func terminalWidth(s *Surroundings) int { return widthOf(s.Stdout) }

// widthOf returns how many columns the terminal has that w is, 0 for no
// terminal.
func widthOf(w any) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			return width
		}
	}
	return 0
}

// newRunID returns an id that sorts by time and that no other run has.
func newRunID(now time.Time) string {
	return now.Format("20060102-150405-") + randomHex()
}

// randomHex returns 8 random hexadecimal digits.
func randomHex() string {
	var random [4]byte
	rand.Read(random[:]) // never fails
	return hex.EncodeToString(random[:])
}
