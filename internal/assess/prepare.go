package assess

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries/suite"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/run"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/conformance"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/process"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/lease"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/preflight"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/life"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Prepared is a run that is ready to go.
type Prepared struct {
	// Plan is what the run is cut from, Manifest what it is; neither is to be
	// changed.
	Plan     *result.Plan
	Manifest *result.Manifest
	// Due are the tests to run.
	Due []*result.PlannedTest
	// Previous is what a run that goes on holds already; nil for a new one.
	Previous *result.Run
	// Finished says that a run that was to go on has no test left to run. Nothing
	// of it is changed, and no cluster was asked.
	Finished bool

	req      Request
	settings result.Settings
	folder   *result.Folder
	tests    *specs.TestList
	binary   *e2e.Binary
	own      *e2e.Binary // op-readiness.test, where the plan has tests of it
	cluster  *cluster.Cluster
	facts    *preflight.Facts
	held     *lease.Lock
	lock     run.Lock
	steering run.Steering
	clusters *life.Clusters
	made     *provider.Plan // of the cluster that was made for the run, and is there
}

// Prepare does all that comes before the first test. Until the cluster lock is
// taken, nothing is written. It ends with ctx. The error is a [verdict.UsageError]
// where the request is wrong; another one tells what could not be done. Whoever
// gets a Prepared closes it.
func Prepare(ctx context.Context, req Request) (*Prepared, error) {
	p := &Prepared{req: req, settings: req.Settings}
	p.req.Preflight = cmp.Or(req.Preflight, PreflightRefuse)
	if err := p.prepare(ctx); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Prepared) prepare(ctx context.Context) error {
	begin, choose, record := p.begin, p.choose, p.create
	if p.req.Resume != "" {
		begin, choose, record = p.reopen, p.chooseAgain, p.goOn
	}
	if err := begin(ctx); err != nil || p.Finished {
		return err
	}
	if err := p.reach(ctx); err != nil {
		return err
	}
	if err := choose(ctx); err != nil {
		return err
	}
	if err := p.take(ctx); err != nil {
		return err
	}
	return record(ctx)
}

// Dir is the results folder.
func (p *Prepared) Dir() string {
	if p.folder == nil {
		return p.req.Resume
	}
	return p.folder.Dir()
}

// Server is the address of the cluster's API server.
func (p *Prepared) Server() string { return p.cluster.Server }

// Close gives the cluster back, removes it if it was made for the run, and lets
// go of the results folder. It may be called twice.
func (p *Prepared) Close() {
	if p.folder != nil {
		p.folder.Close()
	}
	p.release()
	if err := p.giveBack(false); err != nil {
		p.req.notef("op-readiness: %v", err)
	}
}

// begin checks the request for a new run, as far as that takes no cluster.
func (p *Prepared) begin(ctx context.Context) error {
	r := &p.req
	if err := e2e.CheckExtra(r.Settings.E2EArgs); err != nil {
		return verdict.UsageErrorf("--e2e-arg: %w", err)
	}
	if err := e2e.CheckOwn(r.Settings.SuiteArgs); err != nil {
		return verdict.UsageErrorf("--suite-arg: %w", err)
	}
	if r.E2EBinary != "" {
		var err error
		if p.settings.E2EBinary, err = filepath.Abs(r.E2EBinary); err != nil {
			return verdict.UsageErrorf("--e2e-binary: %w", err)
		}
	}
	if r.SuiteBinary != "" {
		var err error
		if p.settings.SuiteBinary, err = filepath.Abs(r.SuiteBinary); err != nil {
			return verdict.UsageErrorf("--suite-binary: %w", err)
		}
	}
	p.settings.Steer = cmp.Or(p.settings.Steer, SteerAuto)
	p.Manifest = &result.Manifest{
		Schema:      result.ManifestSchema,
		RunID:       r.RunID,
		Shard:       max(r.Shard, 1),
		Attempt:     max(r.Attempt, 1),
		ToolVersion: r.ToolVersion,
		SpecDir:     r.SpecDir,
		Source:      r.Source,
		Declared:    r.Declared,
		Started:     time.Now().UTC(),
	}
	if r.RunID == "" {
		p.Manifest.RunID = NewRunID(p.Manifest.Started)
	}
	if err := r.Lint(ctx); err != nil {
		return err
	}
	if err := r.checkSelection(); err != nil {
		return err
	}
	if r.KubernetesVersion != "" {
		if _, err := r.CheckVersion(r.KubernetesVersion); err != nil {
			return err
		}
	}
	if err := result.CheckNew(r.ReportDir); err != nil {
		return verdict.UsageErrorf("%w", err)
	}
	return nil
}

// reopen takes the folder of the run that goes on, with what it was asked for.
func (p *Prepared) reopen(context.Context) error {
	r := &p.req
	if p.finished() {
		return nil
	}
	var err error
	if p.folder, err = result.Reopen(r.Resume); err != nil {
		return verdict.UsageErrorf("--resume: %w", err)
	}
	if p.Previous, err = result.Load(r.Resume); err != nil {
		return verdict.UsageErrorf("--resume: %w", err)
	}
	for _, b := range p.Previous.Batches {
		if b.Exit == "" && process.Alive(b.PID, b.PIDStart) {
			return fmt.Errorf("--resume %s: the test binary of batch %s still runs (process %d): end it, or wait for it", r.Resume, b.ID, b.PID)
		}
	}
	p.Plan, p.Manifest = p.Previous.Plan, p.Previous.Manifest
	p.settings = p.changed(p.Manifest.Settings)
	if err := e2e.CheckExtra(p.settings.E2EArgs); err != nil {
		return verdict.UsageErrorf("--resume %s: %s has e2e.test's arguments (settings.e2eArgs): %w", r.Resume, result.ManifestFile, err)
	}
	if err := e2e.CheckOwn(p.settings.SuiteArgs); err != nil {
		return verdict.UsageErrorf("--resume %s: %s has op-readiness.test's arguments (settings.suiteArgs): %w", r.Resume, result.ManifestFile, err)
	}
	p.Manifest.Reopen()
	if r.Kubeconfig == "" {
		r.Kubeconfig, r.Context = p.Manifest.Target.Kubeconfig, p.Manifest.Target.Context
	}
	r.E2EBinary, r.SuiteBinary, r.Provider = p.settings.E2EBinary, p.settings.SuiteBinary, p.Plan.Provider
	return nil
}

// changed are the settings of the run before, as the request changes them.
func (p *Prepared) changed(before result.Settings) result.Settings {
	if p.req.Change != nil {
		p.req.Change(&before)
	}
	return before
}

// finished reports whether the run that is to go on came to its end and has no
// test left to run.
func (p *Prepared) finished() bool {
	before, err := result.Load(p.req.Resume)
	if err != nil || !before.Finished || before.Interrupted || before.OutOfTime || before.Manifest.Verdict == "" {
		return false // whoever opens it for writing says what is wrong
	}
	if e2e.CheckExtra(before.Manifest.Settings.E2EArgs) != nil || e2e.CheckOwn(before.Manifest.Settings.SuiteArgs) != nil {
		return false // likewise
	}
	if len(run.Due(before.Plan, before.Manifest, before, p.changed(before.Manifest.Settings).Retries)) > 0 {
		return false
	}
	p.Finished, p.Previous, p.Plan, p.Manifest = true, before, before.Plan, before.Manifest
	return true
}

// reach makes the cluster if it is to be made, connects to it, and reads its
// facts, those that the verdict rests on into the manifest.
func (p *Prepared) reach(ctx context.Context) error {
	if err := p.makeCluster(ctx); err != nil {
		return err
	}
	before := p.Manifest.Cluster
	if err := p.connect(ctx); err != nil || p.Previous == nil {
		return err
	}
	if p.Manifest.Cluster.ServerVersion != before.ServerVersion {
		return verdict.UsageErrorf("--resume %s: the run was on Kubernetes %s, and this cluster is %s: name the right --kubeconfig", p.req.Resume, before.ServerVersion, p.Manifest.Cluster.ServerVersion)
	}
	if p.req.Preflight == PreflightOff {
		return nil
	}
	// preflight.json stays what it was when the run started.
	return p.found(preflight.ReportOf(p.cluster.Server, p.facts))
}

func (p *Prepared) connect(ctx context.Context) error {
	r := &p.req
	target, err := cluster.Locate(r.Kubeconfig, r.Context, r.getenv)
	if err != nil {
		return verdict.UsageErrorf("%w", err)
	}
	if p.cluster, err = cluster.Connect(target); err != nil {
		return verdict.UsageErrorf("%w", err)
	}
	if p.settings.Kubectl == "" {
		p.settings.Kubectl = cluster.Kubectl()
	} else if _, err := exec.LookPath(p.settings.Kubectl); err != nil {
		return verdict.UsageErrorf("--kubectl: %w", err)
	}
	p.Manifest.Kubectl = p.settings.Kubectl
	if err := p.gather(ctx); err != nil {
		return err
	}
	facts, err := p.facts.ForRun()
	if err != nil {
		return err
	}
	p.Manifest.Cluster = *facts
	p.Manifest.Target.Kubeconfig, p.Manifest.Target.Context = target.Kubeconfig, target.Context
	r.Kubeconfig = target.Kubeconfig
	return nil
}

// choose finds the e2e.test for the cluster, and makes the plan.
func (p *Prepared) choose(ctx context.Context) error {
	if err := p.chooseBinary(ctx); err != nil {
		return err
	}
	var err error
	if p.tests, err = p.binary.List(ctx); err != nil {
		return err
	}
	if p.Plan, err = p.req.Plan(p.tests); err != nil {
		return err
	}
	p.chooseProcs(ctx)
	p.Manifest.E2EVersion, p.Manifest.PlanDigest, p.Manifest.Settings = p.binary.Version, p.Plan.Digest, p.settings
	return p.chooseOwn(ctx)
}

// MaxProcs is how many tests run beside each other at most where nobody says it.
const MaxProcs = 4

// placesPerTest is how many places for pods a test has then. Most make a handful of pods,
// some twenty.
const placesPerTest = 20

// chooseProcs fits the number of tests beside each other to the cluster, and to the
// shards that share it, unless the request says it.
func (p *Prepared) chooseProcs(ctx context.Context) {
	if p.settings.Procs > 0 {
		return
	}
	p.settings.Procs = 1
	nodes, places, err := p.cluster.WindowsPlaces(ctx)
	if err != nil {
		p.req.notef("running one test at a time, since it is not known how many pods the cluster takes: %v", err)
		return
	}
	share := 1
	if p.Plan.Shared {
		share = p.Plan.Shards
	}
	p.settings.Procs = max(min(MaxProcs, nodes, places/placesPerTest)/share, 1)
	p.req.notef("running %s at a time, by %s with room for %s (--procs says otherwise)",
		text.Count(p.settings.Procs, "test"), text.Count(nodes, "Windows node"), text.Count(places, "pod"))
}

// chooseOwn finds the op-readiness.test for the plan, if it has tests of it.
func (p *Prepared) chooseOwn(ctx context.Context) error {
	if !slices.ContainsFunc(p.Plan.Tests, func(t result.PlannedTest) bool { return specs.SuiteOf(t.Name) == specs.OpReadiness }) {
		return nil
	}
	if was := p.Manifest.SuiteHash; was != "" && was != suite.Hash() {
		return verdict.UsageErrorf("--resume %s: the run's own tests are those of another op-readiness (%s): go on with that one", p.req.Resume, was)
	}
	p.Manifest.SuiteHash = suite.Hash()
	var err error
	p.own, err = p.req.OwnBinary(ctx, p.Manifest.E2EVersion)
	return err
}

// chooseBinary finds the e2e.test for the server's version, and refuses one
// that is too far from it.
func (p *Prepared) chooseBinary(ctx context.Context) error {
	r, server := &p.req, p.Manifest.Cluster.ServerVersion
	version := r.KubernetesVersion
	if version == "" {
		v, err := specs.ParseVersion(server)
		if err != nil {
			return err
		}
		version = "v" + v.String()
	}
	if r.E2EBinary == "" {
		// Before minutes go by for a binary that cannot be used.
		if _, err := r.CheckVersion(version); err != nil {
			return err
		}
		if _, err := cluster.CheckSkew(version, server); err != nil {
			return verdict.UsageErrorf("%w", err)
		}
	}
	var err error
	if p.binary, err = r.Binary(ctx, version); err != nil {
		return err
	}
	warning, err := cluster.CheckSkew(p.binary.Version, server)
	if err != nil {
		return verdict.UsageErrorf("%w", err)
	}
	if warning != "" {
		r.notef("warning: %s", warning)
	}
	return nil
}

// chooseAgain takes the e2e.test that the run had, and its plan.
func (p *Prepared) chooseAgain(ctx context.Context) error {
	p.req.KubernetesVersion = p.Manifest.E2EVersion
	p.chooseProcs(ctx)
	p.Manifest.Settings = p.settings
	var err error
	if p.binary, err = p.req.Binary(ctx, p.Manifest.E2EVersion); err != nil {
		return err
	}
	return p.chooseOwn(ctx)
}

// create inspects the cluster, and makes the results folder.
func (p *Prepared) create(ctx context.Context) error {
	found, err := p.inspect(ctx)
	if err != nil {
		return err
	}
	p.folder, err = result.Create(p.req.ReportDir, p.Plan, p.Manifest)
	if errors.Is(err, result.ErrInUse) {
		return verdict.UsageErrorf("%w", err)
	}
	if err != nil {
		return err
	}
	if found != nil {
		if err := p.folder.WriteJSON(result.PreflightFile, found); err != nil {
			return err
		}
	}
	return p.importConformance()
}

// goOn writes what became of the manifest.
func (p *Prepared) goOn(context.Context) error {
	return p.folder.WriteJSON(result.ManifestFile, p.Manifest)
}

func (p *Prepared) importConformance() error {
	if len(p.req.ConformanceJUnit) == 0 {
		return nil
	}
	outcome, reason, err := conformance.Read(p.req.ConformanceJUnit, p.tests)
	if err != nil {
		return verdict.UsageErrorf("--conformance-junit: %w", err)
	}
	for i := range p.Plan.Cases {
		if p.Plan.Cases[i].Check == verdict.CheckLinuxConformance {
			return p.folder.Append(result.Event{
				Time: time.Now().UTC(),
				Type: result.CaseDecided,
				Case: &result.Decision{ID: p.Plan.Cases[i].ID, Outcome: string(outcome), Reason: reason},
			})
		}
	}
	return nil
}

// NewRunID returns an id that sorts by time and that no other run has.
func NewRunID(now time.Time) string {
	return now.Format("20060102-150405-") + RandomHex()
}

// RandomHex returns 8 random hexadecimal digits.
func RandomHex() string {
	var random [4]byte
	rand.Read(random[:]) // never fails
	return hex.EncodeToString(random[:])
}
