package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/assess"
	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/prow"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/preflight"
)

// request is what the flags say, for package assess; job is nil outside of Prow.
func (o *runOptions) request(s *Surroundings, job *prow.Job, deadline time.Time) (*assess.Request, error) {
	planning, err := o.planning(s)
	if err != nil {
		return nil, err
	}
	r := &assess.Request{
		Planning:         *planning,
		Kubeconfig:       o.Kubeconfig,
		Context:          o.Context,
		Cluster:          o.Cluster,
		ClusterSet:       o.ClusterSet,
		KeepOnFailure:    o.KeepOnFailure,
		ReportDir:        o.ReportDir,
		Resume:           o.Resume,
		Settings:         o.settings(),
		RunID:            o.RunID,
		Shard:            o.Shard.number,
		Attempt:          o.attempt(s),
		Declared:         result.Declarations{AirGapped: o.AirGapped, Without: o.Without, Reboot: o.AllowReboot},
		ToolVersion:      toolVersion(),
		ConformanceJUnit: o.ConformanceJUnit,
		Preflight:        o.Preflight,
		NoProbe:          !o.Probe,
		ProbeLimit:       o.ProbeTimeout,
		Prepull:          o.Prepull,
		PrepullLimit:     o.PrepullTimeout,
		Found:            func(r *preflight.Report) error { return tellFindings(s, r) },
		Wait:             o.Wait,
		Observer:         o.observer(s),
		Kept:             func(dir string) error { return deliver(s, dir) },
		Stop:             s.stop,
		Deadline:         deadline,
		StopWithin:       job.TimeToStop(o.BeforeTimeout),
		Environ:          s.Environ,
	}
	return r, nil
}

// identify fills in which run of which job it is.
func (o *runOptions) identify(s *Surroundings, r *assess.Request, job *prow.Job) error {
	var err error
	if r.Source, err = sourceOf(s); err != nil {
		return err
	}
	if r.RunID == "" && job != nil {
		r.RunID = job.BuildID()
	}
	if r.RunID == "" && o.Shards > 1 {
		return usageErrorf("--shards %d: shards that are to be merged have one id: give each of them the same --run-id, such as --run-id nightly-17", o.Shards)
	}
	if r.RunID == "" {
		r.RunID = assess.NewRunID(time.Now().UTC())
	}
	if r.ReportDir == "" {
		r.ReportDir = s.Getenv("ARTIFACTS")
	}
	if r.ReportDir == "" {
		r.ReportDir = filepath.Join("results", r.RunID)
	}
	return nil
}

// assess runs, or goes on with a run, and reports what came of it.
func (o *runOptions) assess(ctx context.Context, s *Surroundings, given func(flag string) bool) error {
	job, err := prow.FromEnvironment(s.Getenv)
	if err != nil {
		return usageErrorf("%w", err)
	}
	prepare, deadline, done, err := o.limited(s.untilStop(ctx), job)
	if err != nil {
		return err
	}
	defer done()
	r, err := o.request(s, job, deadline)
	if err != nil {
		return err
	}
	if o.Resume == "" {
		err = o.identify(s, r, job)
	} else {
		r.Change = o.change(given)
	}
	if err != nil {
		return err
	}
	p, err := assess.Prepare(prepare, *r)
	if err != nil {
		return interrupted(prepare, err)
	}
	defer p.Close()
	tellPrepared(s, p)
	runErr := p.Execute(ctx)
	outcome, judgement, err := p.Conclude()
	if err == nil && p.Finished {
		return tellFinished(s, p, judgement, o.Output)
	}
	if err == nil {
		err = conclude(s, p.Dir(), outcome, judgement, o.Output)
	}
	return endOf(runErr, err)
}

// errTimeLimit ends what comes before the tests.
var errTimeLimit = errors.New("the time limit is over")

// limited returns a context that ends with ctx, and when the run's time is over,
// and when that is: as told, and when the timeout of a Prow job comes.
func (o *runOptions) limited(ctx context.Context, job *prow.Job) (context.Context, time.Time, context.CancelFunc, error) {
	now := time.Now()
	deadline := job.Deadline(now, o.BeforeTimeout)
	if o.BeforeTimeout > 0 {
		switch {
		case deadline.IsZero():
			return nil, deadline, nil, usageErrorf("--before-timeout: this is not a decorated Prow job, so there is no timeout: use --time-limit")
		case !deadline.After(now):
			return nil, deadline, nil, fmt.Errorf("no time is left to test: the job has used it, but for the %s of --before-timeout: give the job a longer timeout, or find out what took so long before", o.BeforeTimeout)
		}
	}
	if told := now.Add(o.TimeLimit); o.TimeLimit > 0 && (deadline.IsZero() || told.Before(deadline)) {
		deadline = told
	}
	if deadline.IsZero() {
		return ctx, deadline, func() {}, nil
	}
	ctx, cancel := context.WithDeadlineCause(ctx, deadline, errTimeLimit)
	return ctx, deadline, cancel, nil
}

// attempt is which execution of its shard the run is.
func (o *runOptions) attempt(s *Surroundings) int {
	if o.Attempt == 0 {
		// GitHub counts how often a workflow run was run again.
		if n, err := strconv.Atoi(s.Getenv("GITHUB_RUN_ATTEMPT")); err == nil && n > 0 {
			return n
		}
	}
	return max(o.Attempt, 1)
}

// settings are the flags that a resumed run takes over.
func (o *runOptions) settings() result.Settings {
	return result.Settings{
		E2EBinary:            absolute(o.E2EBinary),
		Procs:                o.Procs,
		Retries:              o.Retries,
		Steer:                o.Steer,
		Unlocked:             !o.Lock,
		Kubectl:              o.Kubectl,
		NonBlockingTaints:    o.NonBlockingTaints,
		AllowedNotReadyNodes: o.AllowedNotReadyNodes,
		DNSDomain:            o.DNSDomain,
		DockerConfig:         o.DockerConfig,
		RepoList:             o.RepoList,
		E2EArgs:              o.E2EArgs,
		SuiteBinary:          absolute(o.SuiteBinary),
		SuiteArgs:            o.SuiteArgs,
	}
}

// change returns what changes the settings of the run before to what the flags
// say that are given anew.
func (o *runOptions) change(given func(flag string) bool) func(*result.Settings) {
	return func(s *result.Settings) {
		now := o.settings()
		for flag, put := range map[string]func(){
			"e2e-binary":              func() { s.E2EBinary = now.E2EBinary },
			"procs":                   func() { s.Procs = now.Procs },
			"retries":                 func() { s.Retries = now.Retries },
			"steer":                   func() { s.Steer = now.Steer },
			"lock":                    func() { s.Unlocked = now.Unlocked },
			"kubectl":                 func() { s.Kubectl = now.Kubectl },
			"non-blocking-taints":     func() { s.NonBlockingTaints = now.NonBlockingTaints },
			"allowed-not-ready-nodes": func() { s.AllowedNotReadyNodes = now.AllowedNotReadyNodes },
			"dns-domain":              func() { s.DNSDomain = now.DNSDomain },
			"e2e-docker-config-file":  func() { s.DockerConfig = now.DockerConfig },
			"kube-test-repo-list":     func() { s.RepoList = now.RepoList },
			"e2e-arg":                 func() { s.E2EArgs = now.E2EArgs },
			"suite-binary":            func() { s.SuiteBinary = now.SuiteBinary },
		} {
			if given(flag) {
				put()
			}
		}
	}
}
