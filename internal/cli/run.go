package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/windows-op-readiness/windows-op-readiness/internal/cluster"
	"github.com/windows-op-readiness/windows-op-readiness/internal/conformance"
	"github.com/windows-op-readiness/windows-op-readiness/internal/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/evidence"
	"github.com/windows-op-readiness/windows-op-readiness/internal/progress"
	"github.com/windows-op-readiness/windows-op-readiness/internal/provider/kwok"
	"github.com/windows-op-readiness/windows-op-readiness/internal/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/run"
	"github.com/windows-op-readiness/windows-op-readiness/internal/steer"
	"github.com/windows-op-readiness/windows-op-readiness/internal/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

type runOptions struct {
	planOptions
	Kubeconfig           string
	Context              string
	Cluster              string
	ReportDir            string
	Resume               string
	DryRun               bool
	Shard                int
	RunID                string
	Procs                int
	Retries              int
	Without              []string
	AirGapped            bool
	Kubectl              string
	NonBlockingTaints    []string
	AllowedNotReadyNodes int
	DNSDomain            string
	DockerConfig         string
	RepoList             string
	E2EArgs              []string
	ConformanceJUnit     []string
	Steer                string
	LogFormat            string
	Output               string
}

// The ways of steering.
const (
	steerAuto   = "auto"
	steerPolicy = "policy"
	steerOff    = "off"
)

func newRunCommand(s *Surroundings) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run readiness categories against a cluster, and judge it",
		Long: `Run readiness categories against a cluster with the real e2e.test of its
version, and judge it. Everything that is learned goes into the report folder as
it happens; a run that was killed goes on with --resume.

An interrupt (ctrl-c, SIGTERM) stops gracefully: the tests that run clean up,
and the results so far are written. A second one stops at once.

Exit codes: 0 everything in scope is ready; 1 not ready; 2 wrong usage or
configuration; 3 inconclusive, or the infrastructure failed; 130 interrupted.`,
		Example: `  # The whole standard, on the cluster of the current kubeconfig
  op-readiness run --report-dir results

  # Two categories, failed tests once more
  op-readiness run --category Core.Network --category Core.Storage --retries 1

  # The second of four shards
  op-readiness run --shards 4 --shard 2 --run-id nightly-17

  # A simulated cluster, made and removed; it proves little, so the exit code is 3
  op-readiness run --cluster kwok --additional

  # What would run, without a cluster
  op-readiness run --dry-run --kubernetes-version v1.36.3

  # Go on with a run that was killed
  op-readiness run --resume results`,
		Args:        usageArgs(cobra.NoArgs),
		Annotations: map[string]string{stopsGracefully: "true"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd, s)
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *runOptions) addFlags(cmd *cobra.Command) {
	o.planOptions.addFlags(cmd, "")
	f := cmd.Flags()
	o.addTalkFlags(f)
	f.StringVar(&o.Context, "context", "", "context of the kubeconfig (default its current one)")
	f.StringVar(&o.Cluster, "cluster", "", "make this cluster for the run, and remove it: kwok")
	f.StringVar(&o.Resume, "resume", "", "report folder of a run to go on with")
	f.IntVar(&o.Shard, "shard", 1, "which shard of --shards to run")
	f.StringVar(&o.RunID, "run-id", "", "id that the shards of one run share (default a new one)")
	f.IntVar(&o.Procs, "procs", 1, "how many tests that allow it run beside each other")
	f.IntVar(&o.Retries, "retries", 0, "how often a failed test runs again; a later pass is flaky")
	f.StringSliceVar(&o.Without, "without", nil, "declare that the cluster does not have this capability; may be repeated")
	f.BoolVar(&o.AirGapped, "air-gapped", false, "declare that the cluster has no way to the internet")
	f.StringVar(&o.Kubectl, "kubectl", "", "kubectl that tests run (default the one on the path)")
	f.StringSliceVar(&o.NonBlockingTaints, "non-blocking-taints", nil, "keys of taints of nodes that the suite does not wait for, beside the control plane's")
	f.IntVar(&o.AllowedNotReadyNodes, "allowed-not-ready-nodes", 0, "how many nodes may be not ready; -1 waits for none")
	f.StringVar(&o.DNSDomain, "dns-domain", "", "DNS domain of the cluster (default cluster.local)")
	f.StringVar(&o.DockerConfig, "e2e-docker-config-file", "", "docker credentials with which nodes pull test images")
	f.StringVar(&o.RepoList, "kube-test-repo-list", "", "file that overrides the registries of test images")
	f.StringArrayVar(&o.E2EArgs, "e2e-arg", nil, "further argument of e2e.test, such as --prepull-images=true; may be repeated")
	f.StringSliceVar(&o.ConformanceJUnit, "conformance-junit", nil, "JUnit of a Linux conformance run; may be repeated")
	f.StringVar(&o.Steer, "steer", steerAuto, "put pods where cases want them: by an admission policy (policy), where the API server has it (auto), or not (off)")
	f.StringVar(&o.LogFormat, "log-format", "", "progress as text or json (default text; live in a terminal)")
	f.StringVarP(&o.Output, "output", "o", string(report.FormatTable), "the report at the end: table, json, markdown or csv")
}

// addTalkFlags adds the flags of the bare command.
func (o *runOptions) addTalkFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig of the cluster (default $KUBECONFIG, ~/.kube/config, the pod's own cluster)")
	f.StringVar(&o.ReportDir, "report-dir", "", "folder for results (default $ARTIFACTS, or a new one in ./results)")
	f.BoolVar(&o.DryRun, "dry-run", false, "resolve everything and ask e2e.test what it would run, without touching a cluster")
}

func (o *runOptions) validate() error {
	if err := o.planOptions.validate(); err != nil {
		return err
	}
	switch {
	case o.Shard < 1 || o.Shard > o.Shards:
		return usageErrorf("--shard: there is no shard %d of %d: choose 1 to %d", o.Shard, o.Shards, o.Shards)
	case o.Procs < 1:
		return usageErrorf("--procs: at least 1, not %d", o.Procs)
	case o.Retries < 0:
		return usageErrorf("--retries: not less than 0, not %d", o.Retries)
	case o.Cluster != "" && o.Cluster != kwok.ProviderName:
		return usageErrorf("--cluster: unknown provider %q: choose of %s", o.Cluster, kwok.ProviderName)
	case o.Cluster != "" && o.Kubeconfig != "":
		return usageErrorf("--cluster makes a cluster, and --kubeconfig names one: leave one of them out")
	case !slices.Contains([]string{steerAuto, steerPolicy, steerOff}, o.Steer):
		return usageErrorf("--steer: unknown way %q: choose of %s, %s, %s", o.Steer, steerAuto, steerPolicy, steerOff)
	case o.LogFormat != "" && o.LogFormat != "text" && o.LogFormat != "json":
		return usageErrorf("--log-format: unknown format %q: choose of text, json", o.LogFormat)
	}
	if err := e2e.CheckExtra(o.E2EArgs); err != nil {
		return usageErrorf("--e2e-arg: %w", err)
	}
	if err := report.ValidFormat(report.Format(o.Output)); err != nil {
		return usageErrorf("--output: %w", err)
	}
	var known []string
	for _, c := range specs.Capabilities() {
		known = append(known, c.Name)
	}
	for _, w := range o.Without {
		if !slices.Contains(known, w) {
			return usageErrorf("--without: unknown capability %q: did you mean %s? Known: %s", w, specs.Nearest(w, known), strings.Join(known, ", "))
		}
	}
	for _, path := range o.ConformanceJUnit {
		if _, err := os.Stat(path); err != nil {
			return usageErrorf("--conformance-junit: %w", err)
		}
	}
	return nil
}

func (o *runOptions) run(cmd *cobra.Command, s *Surroundings) error {
	if err := o.validate(); err != nil {
		return err
	}
	switch {
	case o.DryRun && o.Resume != "":
		return usageErrorf("--dry-run shows what a new run would do: leave --resume out")
	case o.DryRun:
		return o.dryRun(s.untilStop(cmd.Context()), s)
	case o.Resume != "":
		for _, flag := range []string{
			"category", "case", "label", "capability", "additional", "shards", "shard", "report-dir", "spec-dir", "cluster", "run-id",
			"provider", "kubernetes-version", "without", "air-gapped", "durations", "conformance-junit",
		} {
			if cmd.Flags().Changed(flag) {
				return usageErrorf("--resume goes on with the plan of a run: leave --%s out", flag)
			}
		}
		return o.resume(cmd.Context(), s)
	}
	return o.start(cmd.Context(), s)
}

// dryRun resolves the plan and asks e2e.test, once for each batch, whether it
// would run just that.
func (o *runOptions) dryRun(ctx context.Context, s *Surroundings) error {
	version := o.KubernetesVersion
	if version == "" {
		version = specs.Catalogues()[len(specs.Catalogues())-1]
	}
	binary, err := o.binary(ctx, s, version)
	if err != nil {
		return err
	}
	p, err := o.plan(ctx, s, binary)
	if err != nil {
		return err
	}
	var names []string
	for i := range p.Tests {
		if p.Tests[i].Shard == o.Shard && !slices.Contains(names, p.Tests[i].Name) {
			names = append(names, p.Tests[i].Name)
		}
	}
	if len(names) > 0 {
		if err := binary.DryRun(ctx, names); err != nil {
			return interrupted(ctx, err)
		}
	}
	fmt.Fprintf(s.Stderr, "e2e.test %s would run exactly these %d tests\n", binary.Version, len(names))
	return writePlan(s.Stdout, p, o.Output)
}

// start begins a new run.
func (o *runOptions) start(ctx context.Context, s *Surroundings) error {
	prepare := s.untilStop(ctx)
	m := &result.Manifest{
		Schema:      result.ManifestSchema,
		RunID:       o.RunID,
		Shard:       o.Shard,
		Attempt:     1,
		ToolVersion: toolVersion(),
		Declared:    result.Declarations{AirGapped: o.AirGapped, Without: o.Without},
		Started:     time.Now().UTC(),
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
	c, err := o.connect(prepare, s, m)
	if err != nil {
		return interrupted(prepare, err)
	}
	binary, err := o.binaryFor(prepare, s, m)
	if err != nil {
		return interrupted(prepare, err)
	}
	steering, err := o.steering(prepare, c, m)
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
	m.E2EVersion, m.PlanDigest = binary.Version, p.Digest
	folder, err := result.Create(o.ReportDir, p, m)
	if err != nil {
		if errors.Is(err, result.ErrInUse) {
			return usageErrorf("%w", err)
		}
		return err
	}
	defer folder.Close()
	if err := o.importConformance(folder, p, tests); err != nil {
		return err
	}
	return o.execute(ctx, s, execution{plan: p, manifest: m, folder: folder, binary: binary, cluster: c, steering: steering})
}

// resume goes on with a run that did not come to its end.
func (o *runOptions) resume(ctx context.Context, s *Surroundings) error {
	prepare := s.untilStop(ctx)
	folder, err := result.Reopen(o.Resume)
	if err != nil {
		return usageErrorf("--resume: %w", err)
	}
	defer folder.Close()
	previous, err := result.Read(o.Resume)
	if err != nil {
		return usageErrorf("--resume: %w", err)
	}
	for _, b := range previous.Batches {
		if b.Exit == "" && e2e.Alive(b.PID, b.PIDStart) {
			return fmt.Errorf("--resume %s: e2e.test of batch %s still runs (process %d): wait for it, or end it", o.Resume, b.ID, b.PID)
		}
	}
	m := previous.Manifest
	m.Finished, m.Interrupted = time.Time{}, false
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
	declared, facts := m.Declared, m.Cluster
	c, err := o.connect(prepare, s, m)
	if err != nil {
		return interrupted(prepare, err)
	}
	if m.Cluster.ServerVersion != facts.ServerVersion {
		return usageErrorf("--resume %s: the run was on Kubernetes %s, and this cluster is %s: name the right --kubeconfig", o.Resume, facts.ServerVersion, m.Cluster.ServerVersion)
	}
	m.Declared = declared
	steering, err := o.steering(prepare, c, m)
	if err != nil {
		return interrupted(prepare, err)
	}
	o.KubernetesVersion = m.E2EVersion
	binary, err := o.binary(prepare, s, m.E2EVersion)
	if err != nil {
		return interrupted(prepare, err)
	}
	if err := folder.WriteJSON(result.ManifestFile, m); err != nil {
		return err
	}
	return o.execute(ctx, s, execution{plan: previous.Plan, manifest: m, folder: folder, binary: binary, cluster: c, steering: steering, previous: previous})
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

// connect reaches the cluster and reads its facts into the manifest.
func (o *runOptions) connect(ctx context.Context, s *Surroundings, m *result.Manifest) (*cluster.Cluster, error) {
	target, err := cluster.Locate(o.Kubeconfig, o.Context, s.Getenv)
	if err != nil {
		return nil, usageErrorf("%w", err)
	}
	c, err := cluster.Connect(target)
	if err != nil {
		return nil, usageErrorf("%w", err)
	}
	facts, err := c.Facts(ctx)
	if err != nil {
		return nil, err
	}
	m.Cluster = *facts
	m.Target.Kubeconfig, m.Target.Context = target.Kubeconfig, target.Context
	o.Kubeconfig = target.Kubeconfig
	if o.Kubectl == "" {
		if path, err := exec.LookPath("kubectl"); err == nil {
			o.Kubectl, _ = filepath.Abs(path)
		}
	} else if _, err := exec.LookPath(o.Kubectl); err != nil {
		return nil, usageErrorf("--kubectl: %w", err)
	}
	m.Kubectl = o.Kubectl
	return c, nil
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

// execution is a run that is ready to go.
type execution struct {
	plan     *result.Plan
	manifest *result.Manifest
	folder   *result.Folder
	binary   *e2e.Binary
	cluster  *cluster.Cluster
	steering run.Steering
	previous *result.Run
}

// steering finds out how pods can be put where cases want them, and notes it
// in the manifest. What a killed run has left in force is removed.
func (o *runOptions) steering(ctx context.Context, c *cluster.Cluster, m *result.Manifest) (run.Steering, error) {
	m.Steering = ""
	if o.Steer == steerOff {
		return nil, nil
	}
	s, err := steer.New(ctx, c.Client(), c.Dynamic(), m.RunID)
	switch {
	case errors.Is(err, steer.ErrNotServed) && o.Steer == steerAuto:
		return nil, nil
	case errors.Is(err, steer.ErrNotServed):
		return nil, usageErrorf("--steer=%s: %w", o.Steer, err)
	case err != nil:
		return nil, err
	}
	if err := s.Remove(ctx); err != nil {
		return nil, err
	}
	m.Steering = s.String()
	return s, nil
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
	temp, err := os.MkdirTemp("", "op-readiness-*")
	if err != nil {
		return fmt.Errorf("making a temporary folder: %w", err)
	}
	defer os.RemoveAll(temp)
	tests := run.Tests(e.plan, e.manifest)
	if e.previous != nil {
		tests = slices.DeleteFunc(tests, func(t *result.PlannedTest) bool {
			runs := e.previous.Attempts[t.ID]
			return len(runs) > 0 && runs[len(runs)-1].State != result.TestError
		})
	}
	fmt.Fprintf(s.Stderr, "%s: %d tests to run for %d cases of plan %.19s; results in %s\n",
		e.cluster.Server, len(tests), len(e.plan.Cases), e.plan.Digest, e.folder.Dir())
	pods, stopWatching := e.observe(ctx, s)
	defer stopWatching()
	observer := progress.New(o.style(s), s.Stderr, widthOf(s.Stderr), e.plan, tests, time.Now)
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
			NonBlockingTaints:    o.NonBlockingTaints,
			AllowedNotReadyNodes: o.AllowedNotReadyNodes,
			DNSDomain:            o.DNSDomain,
			DockerConfig:         o.DockerConfig,
			RepoList:             o.RepoList,
			Extra:                o.E2EArgs,
		},
		Env:      s.Environ,
		Cluster:  e.cluster,
		Observer: observer,
		Evidence: pods,
		Steering: e.steering,
		Retries:  o.Retries,
		Procs:    o.Procs,
		Previous: e.previous,
		Stop:     s.stop,
		TempDir:  temp,
	})
	observer.Close()
	if runErr != nil && !errors.Is(runErr, run.ErrInterrupted) {
		return runErr
	}
	done, err := result.Read(e.folder.Dir())
	if err != nil {
		return err
	}
	judgement := verdict.Judge(done)
	if err := report.WriteFolder(e.folder, done, judgement, time.Now().UTC()); err != nil {
		return err
	}
	results := report.Results{Run: done, Judgement: judgement, Width: terminalWidth(s)}
	if err := results.Write(s.Stdout, report.Format(o.Output)); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	fmt.Fprintf(s.Stderr, "Results: %s\n", e.folder.Dir())
	return exitWith(judgement.ExitCode())
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
