package assess

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/run"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/evidence"
	"github.com/windows-op-readiness/windows-op-readiness/internal/tempdir"
)

// Execute runs the tests that are due. Each is recorded in the results folder as
// it ends; what was learned stands there whatever the error. It is
// [run.ErrInterrupted] after a stop. Cancelling ctx stops at once.
func (p *Prepared) Execute(ctx context.Context) error {
	if p.Finished {
		return nil
	}
	if err := p.prepull(ctx); err != nil {
		return err
	}
	temp, err := tempdir.New()
	if err != nil {
		return err
	}
	defer temp.RemoveAll()
	pods, stopWatching := p.observe(ctx)
	defer stopWatching()
	var observer Observer = nobody{}
	if p.req.Observer != nil {
		observer = p.req.Observer(p.Plan, p.Manifest, p.Due)
	}
	kept := p.keepAtStop()
	err = run.Run(ctx, run.Options{
		Plan:     p.Plan,
		Manifest: p.Manifest,
		Folder:   p.folder,
		Binary:   p.binary,
		Flags:    p.flags(),

		OwnBinary: p.own,
		OwnArgs:   p.settings.SuiteArgs,

		Env:      append(slices.Clone(p.req.Environ), "TMPDIR="+temp.Path), // e2e.test leaves files there
		Cluster:  p.cluster,
		Observer: observer,
		Evidence: pods,
		Lock:     p.lock,
		Steering: p.steering,
		Retries:  p.settings.Retries,
		Procs:    p.settings.Procs,
		Previous: p.Previous,
		Stop:     p.req.Stop,
		TempDir:  temp.Path,

		StopWithin: p.req.StopWithin,
		Deadline:   p.req.Deadline,
	})
	observer.Close()
	kept()
	return err
}

func (p *Prepared) flags() e2e.Flags {
	return e2e.Flags{
		Kubeconfig:           p.req.Kubeconfig,
		Context:              p.req.Context,
		Provider:             p.Plan.Provider,
		Kubectl:              p.settings.Kubectl,
		NonBlockingTaints:    p.nonBlockingTaints(),
		AllowedNotReadyNodes: p.settings.AllowedNotReadyNodes,
		DNSDomain:            p.settings.DNSDomain,
		DockerConfig:         p.settings.DockerConfig,
		RepoList:             p.settings.RepoList,
		Extra:                p.settings.E2EArgs,
	}
}

// observe begins to watch pods. Where that is not possible, the run goes on,
// and proves no placement.
func (p *Prepared) observe(ctx context.Context) (run.Evidence, func()) {
	w, err := evidence.Start(ctx, p.cluster.Client(), p.Manifest.Cluster.Nodes, p.cluster.Node)
	if err != nil {
		p.req.notef("warning: pods are not observed, so no placement will be proven: %v", err)
		return nil, func() {}
	}
	return w, w.Stop
}

// keepAtStop writes what there is as soon as the run is stopped: whoever did it
// may kill the run before the tests have cleaned up. The function that it returns
// waits for that, and ends it.
func (p *Prepared) keepAtStop() (wait func()) {
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-p.req.Stop:
		case <-over:
			return
		}
		soFar, err := result.Load(p.folder.Dir())
		if err == nil {
			err = report.WriteFolder(p.folder, soFar, verdict.Judge(soFar), time.Time{})
		}
		if err == nil && p.req.Kept != nil {
			err = p.req.Kept(p.folder.Dir())
		}
		if err != nil {
			p.req.notef("warning: the results so far could not be written: %v", err)
		}
	}()
	return func() {
		close(over)
		<-done
	}
}

// Conclude judges what the results folder holds, and writes JUnit, metadata and
// manifest beside it. Then it gives the cluster back that was made for the run; what is
// left of it that should not be counts as a failure outside of tests. It can be called
// after any end of [Prepared.Execute].
func (p *Prepared) Conclude() (*result.Run, *verdict.Judgement, error) {
	if p.Finished {
		return p.Previous, verdict.Judge(p.Previous), nil
	}
	run, judgement, err := p.conclude()
	if err != nil {
		return nil, nil, err
	}
	left := p.giveBack(failed(judgement))
	if left == nil {
		return run, judgement, nil
	}
	if err := p.folder.Append(result.Event{
		Time: time.Now().UTC(), Type: result.ClusterLeft, Suite: &result.Suite{Node: result.Teardown, Message: left.Error()},
	}); err != nil {
		return nil, nil, errors.Join(left, err)
	}
	return p.conclude()
}

func (p *Prepared) conclude() (*result.Run, *verdict.Judgement, error) {
	done, err := result.Load(p.folder.Dir())
	if err != nil {
		return nil, nil, err
	}
	var finished time.Time
	if done.Finished {
		finished = time.Now().UTC()
	}
	judgement := verdict.Judge(done)
	return done, judgement, report.WriteFolder(p.folder, done, judgement, finished)
}
