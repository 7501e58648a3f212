package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/prow"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/run"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/conformance"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/process"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/preflight"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kwok"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// start begins a new run.
func (o *runOptions) start(ctx context.Context, s *Surroundings) error {
	job, err := prow.FromEnvironment(s.Getenv)
	if err != nil {
		return usageErrorf("%w", err)
	}
	prepare, deadline, done, err := o.limited(s.untilStop(ctx), job)
	if err != nil {
		return err
	}
	defer done()
	m := &result.Manifest{
		Schema:      result.ManifestSchema,
		RunID:       o.RunID,
		Shard:       o.Shard.number,
		Attempt:     o.attempt(s),
		ToolVersion: toolVersion(),
		SpecDir:     o.SpecDir,
		Declared:    result.Declarations{AirGapped: o.AirGapped, Without: o.Without},
		Started:     time.Now().UTC(),
	}
	if m.Source, err = sourceOf(s); err != nil {
		return err
	}
	if m.RunID == "" && job != nil {
		m.RunID = job.BuildID()
	}
	if m.RunID == "" && o.Shards > 1 {
		return usageErrorf("--shards %d: shards that are to be merged have one id: give each of them the same --run-id, such as --run-id nightly-17", o.Shards)
	}
	if m.RunID == "" {
		m.RunID = newRunID(m.Started)
	}
	if o.ReportDir == "" {
		o.ReportDir = s.Getenv("ARTIFACTS")
	}
	if o.ReportDir == "" {
		o.ReportDir = filepath.Join("results", m.RunID)
	}
	if err := o.lint(prepare, s); err != nil {
		return interrupted(prepare, err)
	}
	if err := o.checkSelection(s); err != nil {
		return err
	}
	if o.KubernetesVersion != "" {
		if _, err := o.checkVersion(o.KubernetesVersion); err != nil {
			return err
		}
	}
	if err := result.CheckNew(o.ReportDir); err != nil {
		return usageErrorf("%w", err)
	}
	if err := checkWritable(o.ReportDir); err != nil {
		return usageErrorf("%w", err)
	}
	if o.Cluster != "" {
		down, err := o.makeCluster(prepare, s, m, "run-"+randomHex())
		if err != nil {
			return interrupted(prepare, err)
		}
		defer down()
	}
	c, facts, err := o.connect(prepare, s, m)
	if err != nil {
		return interrupted(prepare, err)
	}
	binary, err := o.binaryFor(prepare, s, m)
	if err != nil {
		return interrupted(prepare, err)
	}
	tests, err := binary.List(prepare)
	if err != nil {
		return interrupted(prepare, err)
	}
	p, err := o.planFor(s, tests)
	if err != nil {
		return err
	}
	m.E2EVersion, m.PlanDigest, m.Settings = binary.Version, p.Digest, o.settings()
	held, err := o.clusterLock(s, c, m, p)
	if err != nil {
		return err
	}
	steering, err := o.steering(prepare, s, c, m, held)
	if err != nil {
		return interrupted(prepare, err)
	}
	lock := o.engineLock(held)
	defer release(s, lock)
	if err := holdFirst(prepare, lock, run.Tests(p, m)); err != nil {
		return interrupted(prepare, err)
	}
	found, err := o.inspect(prepare, s, c, facts, binary, p, m)
	if err != nil {
		return err
	}
	folder, err := result.Create(o.ReportDir, p, m)
	if err != nil {
		if errors.Is(err, result.ErrInUse) {
			return usageErrorf("%w", err)
		}
		return err
	}
	defer folder.Close()
	if found != nil {
		if err := folder.WriteJSON(result.PreflightFile, found); err != nil {
			return err
		}
	}
	if err := o.importConformance(folder, p, tests); err != nil {
		return err
	}
	return o.execute(ctx, s, execution{plan: p, manifest: m, folder: folder, binary: binary, cluster: c, steering: steering, lock: lock, deadline: deadline, stopWithin: job.TimeToStop(o.BeforeTimeout)})
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
			return nil, deadline, nil, usageErrorf("--before-timeout: this is no decorated Prow job, so there is no timeout: use --time-limit")
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

// resume goes on with a run that did not come to its end.
func (o *runOptions) resume(ctx context.Context, s *Surroundings, given func(flag string) bool) error {
	job, err := prow.FromEnvironment(s.Getenv)
	if err != nil {
		return usageErrorf("%w", err)
	}
	prepare, deadline, done, err := o.limited(s.untilStop(ctx), job)
	if err != nil {
		return err
	}
	defer done()
	if over, err := o.resumeOfNothing(s, given("retries")); over || err != nil {
		return err
	}
	folder, err := result.Reopen(o.Resume)
	if err != nil {
		return usageErrorf("--resume: %w", err)
	}
	defer folder.Close()
	previous, err := result.Load(o.Resume)
	if err != nil {
		return usageErrorf("--resume: %w", err)
	}
	for _, b := range previous.Batches {
		if b.Exit == "" && process.Alive(b.PID, b.PIDStart) {
			return fmt.Errorf("--resume %s: e2e.test of batch %s still runs (process %d): wait for it, or end it", o.Resume, b.ID, b.PID)
		}
	}
	m := previous.Manifest
	o.adopt(m.Settings, given)
	if err := e2e.CheckExtra(o.E2EArgs); err != nil {
		return usageErrorf("--resume %s: %s has e2e.test's arguments (settings.e2eArgs): %w", o.Resume, result.ManifestFile, err)
	}
	m.Reopen()
	if o.Kubeconfig == "" {
		o.Kubeconfig, o.Context = m.Target.Kubeconfig, m.Target.Context
	}
	if name, made := strings.CutPrefix(m.Target.Made, kwok.ProviderName+"/"); made {
		// It is still there when the run was killed, and gone when it stopped.
		o.KubernetesVersion = m.Cluster.ServerVersion
		down, err := o.makeCluster(prepare, s, m, name)
		if err != nil {
			return interrupted(prepare, err)
		}
		defer down()
	}
	declared, before := m.Declared, m.Cluster
	c, facts, err := o.connect(prepare, s, m)
	if err != nil {
		return interrupted(prepare, err)
	}
	if m.Cluster.ServerVersion != before.ServerVersion {
		return usageErrorf("--resume %s: the run was on Kubernetes %s, and this cluster is %s: name the right --kubeconfig", o.Resume, before.ServerVersion, m.Cluster.ServerVersion)
	}
	if o.Preflight != preflightOff {
		// preflight.json stays what it was when the run started.
		if err := o.tell(s, reportOf(c, facts)); err != nil {
			return err
		}
	}
	m.Declared, m.Settings = declared, o.settings()
	o.KubernetesVersion = m.E2EVersion
	binary, err := o.binary(prepare, s, m.E2EVersion)
	if err != nil {
		return interrupted(prepare, err)
	}
	held, err := o.clusterLock(s, c, m, previous.Plan)
	if err != nil {
		return err
	}
	steering, err := o.steering(prepare, s, c, m, held)
	if err != nil {
		return interrupted(prepare, err)
	}
	lock := o.engineLock(held)
	defer release(s, lock)
	if err := holdFirst(prepare, lock, run.Due(previous.Plan, m, previous, o.Retries)); err != nil {
		return interrupted(prepare, err)
	}
	if err := folder.WriteJSON(result.ManifestFile, m); err != nil {
		return err
	}
	return o.execute(ctx, s, execution{plan: previous.Plan, manifest: m, folder: folder, binary: binary, cluster: c, steering: steering, lock: lock, previous: previous, deadline: deadline, stopWithin: job.TimeToStop(o.BeforeTimeout)})
}

// resumeOfNothing reports whether a run came to its end and has nothing left to
// run. Then it shows the report again, and what would run the failed tests once
// more; nothing is written, and no cluster is asked.
func (o *runOptions) resumeOfNothing(s *Surroundings, retriesGiven bool) (bool, error) {
	previous, err := result.Load(o.Resume)
	if err != nil || !previous.Finished || previous.Interrupted || previous.OutOfTime || previous.Manifest.Verdict == "" {
		return false, nil //nolint:nilerr // whoever opens it for writing says what is wrong
	}
	if e2e.CheckExtra(previous.Manifest.Settings.E2EArgs) != nil {
		return false, nil //nolint:nilerr // likewise
	}
	retries := previous.Manifest.Settings.Retries
	if retriesGiven {
		retries = o.Retries
	}
	if len(run.Due(previous.Plan, previous.Manifest, previous, retries)) > 0 {
		return false, nil
	}
	results := report.Results{Run: previous, Judgement: verdict.Judge(previous), Width: terminalWidth(s)}
	if err := results.Write(s.Stdout, report.Format(o.Output)); err != nil {
		return true, fmt.Errorf("writing the report: %w", err)
	}
	fmt.Fprintf(s.Stderr, "%s: the run is finished, and no test is left to run; nothing was changed\n", o.Resume)
	if failed, enough := run.Spent(previous); failed > 0 {
		fmt.Fprintf(s.Stderr, "failed tests: %d; to run them again: op-readiness run --resume %s --retries %d\n", failed, o.Resume, enough)
	}
	return true, exitWith(results.Judgement.ExitCode())
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
	}
}

// adopt takes the settings of the run before over, but for the flags that are
// given anew.
func (o *runOptions) adopt(s result.Settings, given func(flag string) bool) {
	for flag, take := range map[string]func(){
		"e2e-binary":              func() { o.E2EBinary = s.E2EBinary },
		"procs":                   func() { o.Procs = s.Procs },
		"retries":                 func() { o.Retries = s.Retries },
		"steer":                   func() { o.Steer = s.Steer },
		"lock":                    func() { o.Lock = !s.Unlocked },
		"kubectl":                 func() { o.Kubectl = s.Kubectl },
		"non-blocking-taints":     func() { o.NonBlockingTaints = s.NonBlockingTaints },
		"allowed-not-ready-nodes": func() { o.AllowedNotReadyNodes = s.AllowedNotReadyNodes },
		"dns-domain":              func() { o.DNSDomain = s.DNSDomain },
		"e2e-docker-config-file":  func() { o.DockerConfig = s.DockerConfig },
		"kube-test-repo-list":     func() { o.RepoList = s.RepoList },
		"e2e-arg":                 func() { o.E2EArgs = s.E2EArgs },
	} {
		if !given(flag) {
			take()
		}
	}
}

// makeCluster makes the cluster that --cluster names, and returns what removes
// it.
func (o *runOptions) makeCluster(ctx context.Context, s *Surroundings, m *result.Manifest, name string) (func(), error) {
	p, err := kwokProvider(s, &o.storeOptions)
	if err != nil {
		return nil, err
	}
	options := kwok.DefaultOptions()
	options.Name = name
	options.KubernetesVersion = cmp.Or(o.KubernetesVersion, options.KubernetesVersion)
	made, err := p.Up(ctx, options)
	if err != nil {
		return nil, err
	}
	m.Target.Made = kwok.ProviderName + "/" + name
	o.Kubeconfig, o.Context = made.Kubeconfig, made.Context
	return func() {
		// The cluster goes also, and above all, when the run was interrupted.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := p.Down(ctx, name); err != nil {
			fmt.Fprintf(s.Stderr, "op-readiness: the cluster is left behind: %v\nRemove it: op-readiness cluster down %s\n", err, name)
		}
	}, nil
}

// checkWritable returns an error when a report folder cannot be made or
// written: before minutes go by for results that cannot be kept.
func checkWritable(dir string) error {
	at, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("--report-dir: %w", err)
	}
	info, err := os.Stat(at)
	for errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at) {
		at = filepath.Dir(at)
		info, err = os.Stat(at)
	}
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a folder", at)
	}
	if err == nil {
		var file *os.File
		if file, err = os.CreateTemp(at, ".op-readiness-*"); err == nil {
			file.Close()
			err = os.Remove(file.Name())
		}
	}
	if err != nil {
		return fmt.Errorf("--report-dir: results cannot be written to %s: %w: name another folder", dir, err)
	}
	return nil
}

// connect reaches the cluster and reads its facts, those that the verdict rests
// on into the manifest.
func (o *runOptions) connect(ctx context.Context, s *Surroundings, m *result.Manifest) (*cluster.Cluster, *preflight.Facts, error) {
	target, err := cluster.Locate(o.Kubeconfig, o.Context, s.Getenv)
	if err != nil {
		return nil, nil, usageErrorf("%w", err)
	}
	c, err := cluster.Connect(target)
	if err != nil {
		return nil, nil, usageErrorf("%w", err)
	}
	if o.Kubectl == "" {
		if path, err := exec.LookPath("kubectl"); err == nil {
			o.Kubectl, _ = filepath.Abs(path)
		}
	} else if _, err := exec.LookPath(o.Kubectl); err != nil {
		return nil, nil, usageErrorf("--kubectl: %w", err)
	}
	m.Kubectl = o.Kubectl
	found, err := o.gather(ctx, s, c, m)
	if err != nil {
		return nil, nil, err
	}
	facts, err := found.ForRun()
	if err != nil {
		return nil, nil, err
	}
	m.Cluster = *facts
	m.Target.Kubeconfig, m.Target.Context = target.Kubeconfig, target.Context
	o.Kubeconfig = target.Kubeconfig
	return c, found, nil
}

// binaryFor returns the e2e.test for the server's version, and refuses one
// that is too far from it.
func (o *runOptions) binaryFor(ctx context.Context, s *Surroundings, m *result.Manifest) (*e2e.Binary, error) {
	version := o.KubernetesVersion
	if version == "" {
		v, err := specs.ParseVersion(m.Cluster.ServerVersion)
		if err != nil {
			return nil, err
		}
		version = "v" + v.String()
	}
	if o.E2EBinary == "" {
		// Before minutes go by for a binary that cannot be used.
		if _, err := o.checkVersion(version); err != nil {
			return nil, err
		}
		if _, err := cluster.CheckSkew(version, m.Cluster.ServerVersion); err != nil {
			return nil, usageErrorf("%w", err)
		}
	}
	binary, err := o.binary(ctx, s, version)
	if err != nil {
		return nil, err
	}
	warning, err := cluster.CheckSkew(binary.Version, m.Cluster.ServerVersion)
	if err != nil {
		return nil, usageErrorf("%w", err)
	}
	if warning != "" {
		fmt.Fprintf(s.Stderr, "warning: %s\n", warning)
	}
	return binary, nil
}

func (o *runOptions) importConformance(folder *result.Folder, p *result.Plan, tests *specs.TestList) error {
	if len(o.ConformanceJUnit) == 0 {
		return nil
	}
	outcome, reason, err := conformance.Read(o.ConformanceJUnit, tests)
	if err != nil {
		return usageErrorf("--conformance-junit: %w", err)
	}
	for i := range p.Cases {
		if p.Cases[i].Check == verdict.CheckLinuxConformance {
			return folder.Append(result.Event{
				Time: time.Now().UTC(),
				Type: result.CaseDecided,
				Case: &result.Decision{ID: p.Cases[i].ID, Outcome: string(outcome), Reason: reason},
			})
		}
	}
	return nil
}

// absolute is path seen from anywhere; "" stays "".
func absolute(path string) string {
	if path == "" {
		return ""
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
