package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/preflight/probe"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kwok"
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
	Shard                shardFlag
	Attempt              int
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
	Lock                 bool
	Wait                 bool
	Preflight            string
	Probe                bool
	ProbeTimeout         time.Duration
	TimeLimit            time.Duration
	BeforeTimeout        time.Duration
	LogFormat            string
	Output               string
}

// The ways of steering.
const (
	steerAuto   = "auto"
	steerPolicy = "policy"
	steerCordon = "cordon"
	steerOff    = "off"
)

func steerWays() []string { return []string{steerAuto, steerPolicy, steerCordon, steerOff} }

func newRunCommand(s *Surroundings) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run readiness categories against a cluster, and judge it",
		Long: `Run readiness categories against a cluster with the real e2e.test of its
version, and judge it. Everything that is learned goes into the report folder as
it happens; a run that was killed goes on with --resume.

An interrupt (ctrl-c, SIGTERM) stops gracefully: the tests that run clean up,
and the results so far are written. A second signal stops at once. So does
--time-limit when its time is over, and then the exit code is the verdict's:
what did not get its turn is not tested. A script in a Prow job that cleans up
after this program says with --before-timeout how much of the job's time is its
own.

In a Prow job, results go to $ARTIFACTS, from where they are uploaded, the run
has the build's id, and after an interrupt it is over within the grace period of
the job's decoration.

Exit codes: 0 everything in scope is ready; 1 not ready; 2 wrong usage or
configuration; 3 inconclusive, or the infrastructure failed; 130 interrupted.`,
		Example: `  # The whole standard, on the cluster of the current kubeconfig
  op-readiness run --report-dir results

  # Two categories, retry failed tests once
  op-readiness run --category Core.Network --category Core.Storage --retries 1

  # The second of four shards
  op-readiness run --shard 2/4 --run-id nightly-17

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
	f.Var(&o.Shard, "shard", "which shard of --shards to run, as 2, or as 2/3 without --shards")
	f.StringVar(&o.RunID, "run-id", "", "id that the shards of one run share (default $BUILD_ID in a Prow job, else a new one)")
	f.IntVar(&o.Attempt, "attempt", 0, "which execution of this shard of this run it is; merge takes the newest (default $GITHUB_RUN_ATTEMPT, or 1)")
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
	f.StringVar(&o.Steer, "steer", steerAuto, "put pods where cases want them: by an admission policy (policy), where the API server has it (auto), by cordoning the nodes of the other system (cordon), or not (off)")
	f.BoolVar(&o.Lock, "lock", true, "keep other runs off the cluster, with a Lease in the namespace default")
	f.BoolVar(&o.Wait, "wait", false, "wait while another run has the cluster")
	f.StringVar(&o.Preflight, "preflight", preflightRefuse, "what a run does that cannot work on the cluster: refuse, warn and go on, or off, not to look")
	f.BoolVar(&o.Probe, "probe", true, "let pods find out, before the tests, what the API does not show, such as whether images can be pulled")
	f.DurationVar(&o.ProbeTimeout, "probe-timeout", probe.DefaultLimit, "how long all probes may take, pulling images included")
	f.DurationVar(&o.TimeLimit, "time-limit", 0, "stop gracefully this long after the start; cleaning up comes after it (default no limit)")
	f.DurationVar(&o.BeforeTimeout, "before-timeout", 0, "in a Prow job, stop gracefully this long before the job's timeout, which has run since the job began (default at the timeout)")
	f.StringVar(&o.LogFormat, "log-format", "", "progress as text or json (default text; live in a terminal)")
	f.StringVarP(&o.Output, "output", "o", string(report.FormatTable), "the report at the end: table, json, markdown or csv")
}

// addTalkFlags adds the flags of the bare command.
func (o *runOptions) addTalkFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig of the cluster (default $KUBECONFIG, ~/.kube/config, the pod's own cluster)")
	f.StringVar(&o.ReportDir, "report-dir", "", "folder for results (default $ARTIFACTS, or a new one in ./results)")
	f.BoolVar(&o.DryRun, "dry-run", false, "resolve everything and ask e2e.test what it would run, without touching a cluster (with --preflight, one is read)")
}

func (o *runOptions) validate() error {
	if err := o.planOptions.validate(); err != nil {
		return err
	}
	switch {
	case !o.Lock && o.Wait:
		return usageErrorf("--wait waits for the cluster lock, and --lock=false does without: leave one out")
	case o.Attempt < 0:
		return usageErrorf("--attempt: at least 1, not %d", o.Attempt)
	case o.Procs < 1:
		return usageErrorf("--procs: at least 1, not %d", o.Procs)
	case o.Retries < 0:
		return usageErrorf("--retries: not less than 0, not %d", o.Retries)
	case o.Cluster != "" && o.Cluster != kwok.ProviderName:
		return usageErrorf("--cluster: unknown provider %q: use %s", o.Cluster, kwok.ProviderName)
	case o.Cluster != "" && o.Kubeconfig != "":
		return usageErrorf("--cluster makes a cluster, and --kubeconfig names one: leave one of them out")
	case !slices.Contains(steerWays(), o.Steer):
		return usageErrorf("--steer: unknown way %q: use %s", o.Steer, strings.Join(steerWays(), ", "))
	case o.RuntimeClass != "" && (o.Steer == steerCordon || o.Steer == steerOff):
		return usageErrorf("--runtime-class is given to pods by the admission policy, which --steer=%s does without: leave one of them out, or use --steer=%s (Kubernetes 1.36)", o.Steer, steerPolicy)
	case !slices.Contains([]string{preflightRefuse, preflightWarn, preflightOff}, o.Preflight):
		return usageErrorf("--preflight: unknown way %q: use %s, %s, %s", o.Preflight, preflightRefuse, preflightWarn, preflightOff)
	case o.ProbeTimeout < time.Second:
		return usageErrorf("--probe-timeout: at least 1s, not %s", o.ProbeTimeout)
	case o.TimeLimit != 0 && o.TimeLimit < time.Second:
		return usageErrorf("--time-limit: at least 1s, not %s", o.TimeLimit)
	case o.BeforeTimeout != 0 && o.BeforeTimeout < time.Second:
		return usageErrorf("--before-timeout: at least 1s, not %s", o.BeforeTimeout)
	case o.LogFormat != "" && o.LogFormat != "text" && o.LogFormat != "json":
		return usageErrorf("--log-format: unknown format %q: use text, json", o.LogFormat)
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
			return usageErrorf("--without: unknown capability %q%s", w, knownAre(w, known))
		}
	}
	for _, path := range o.ConformanceJUnit {
		if _, err := os.Stat(path); err != nil {
			return usageErrorf("--conformance-junit: %w", err)
		}
	}
	return nil
}

// shardFlag is the flag that says which shard, and perhaps of how many: 2 or 2/3.
type shardFlag struct{ number, of int }

// String implements [pflag.Value].
func (f *shardFlag) String() string {
	switch {
	case f.of > 0:
		return fmt.Sprintf("%d/%d", f.number, f.of)
	case f.number > 0:
		return strconv.Itoa(f.number)
	}
	return ""
}

// Set implements [pflag.Value].
func (f *shardFlag) Set(text string) error {
	number, of, both := strings.Cut(text, "/")
	var err error
	if f.number, err = strconv.Atoi(number); err == nil && both {
		f.of, err = strconv.Atoi(of)
	}
	if err != nil || f.number < 1 || both && f.of < 1 {
		return errors.New("it is a number from 1, or which of how many, such as 2/3")
	}
	return nil
}

// Type implements [pflag.Value].
func (f *shardFlag) Type() string { return "shard" }

// cut fills in which shard of how many is run.
func (o *runOptions) cut() error {
	f := &o.Shard
	switch {
	case f.number > 1 && f.of == 0 && o.Shards == 1:
		return usageErrorf("--shard %s: of how many? Write it as --shard %[1]s/3, or add --shards", f)
	case f.of > 0 && o.Shards > 1 && o.Shards != f.of:
		return usageErrorf("--shard %s and --shards %d: leave --shards out, or let both say the same", f, o.Shards)
	case f.of > 0:
		o.Shards = f.of
	case f.number == 0 && o.Shards > 1:
		return usageErrorf("--shards %d: which of them is to run? Say --shard 1/%[1]d, and all of them in as many runs with the same --run-id", o.Shards)
	case f.number == 0:
		f.number = 1
	}
	if f.number > o.Shards && o.Shards > 0 {
		return usageErrorf("--shard: there is no shard %d of %d: choose 1 to %d", f.number, o.Shards, o.Shards)
	}
	return nil
}

func (o *runOptions) run(cmd *cobra.Command, s *Surroundings) error {
	if err := o.cut(); err != nil {
		return err
	}
	if err := o.validate(); err != nil {
		return err
	}
	switch {
	case o.DryRun && o.Resume != "":
		return usageErrorf("--dry-run shows what a new run would do: leave --resume out")
	case o.DryRun:
		return o.dryRun(s.untilStop(cmd.Context()), s, cmd.Flags().Changed("preflight"))
	case o.Resume != "":
		for _, flag := range []string{
			"category", "case", "label", "capability", "additional", "shards", "shard", "report-dir", "spec-dir", "cluster", "run-id", "attempt",
			"provider", "kubernetes-version", "without", "air-gapped", "durations", "conformance-junit",
		} {
			if cmd.Flags().Changed(flag) {
				return usageErrorf("--resume goes on with the plan of a run: leave --%s out", flag)
			}
		}
		return o.resume(cmd.Context(), s, cmd.Flags().Changed)
	}
	return o.start(cmd.Context(), s)
}

// dryRun resolves the plan and asks e2e.test, once for each batch, whether it
// would run just that. Only where a preflight is asked for, a cluster is read.
func (o *runOptions) dryRun(ctx context.Context, s *Surroundings, look bool) error {
	if err := o.lint(ctx, s); err != nil {
		return err
	}
	version := o.KubernetesVersion
	if look && o.Preflight != preflightOff {
		m := &result.Manifest{RunID: o.RunID, Declared: result.Declarations{AirGapped: o.AirGapped, Without: o.Without}}
		c, facts, err := o.connect(ctx, s, m)
		if err != nil {
			return interrupted(ctx, err)
		}
		if err := o.tell(s, reportOf(c, facts)); err != nil {
			return err
		}
		if v, err := specs.ParseVersion(m.Cluster.ServerVersion); version == "" && err == nil {
			version = "v" + v.String()
		}
	}
	if version == "" {
		version = specs.Catalogues()[len(specs.Catalogues())-1]
	}
	if o.E2EBinary == "" {
		// Before minutes go by for a binary that is not wanted.
		if _, err := o.checkVersion(version); err != nil {
			return err
		}
	}
	binary, err := o.binary(ctx, s, version)
	if err != nil {
		return err
	}
	p, err := o.plan(ctx, s, binary)
	if err != nil {
		return err
	}
	names, excuse := o.wouldRun(p)
	if len(names) > 0 {
		if err := binary.DryRun(ctx, names); err != nil {
			return interrupted(ctx, err)
		}
	}
	fmt.Fprintf(s.Stderr, "e2e.test %s would run exactly these %d tests\n", binary.Version, len(names))
	if err := writePlan(s.Stdout, p, o.Output); err != nil || len(names) > 0 {
		return err
	}
	return sayIdle(s, p, o.Shard.number, excuse)
}

// wouldRun returns the names of the tests of this shard that the declarations
// leave, and what says which of them keeps a case from being tested.
func (o *runOptions) wouldRun(p *result.Plan) (names []string, excuse func(*result.PlannedCase) string) {
	declared := result.Declarations{AirGapped: o.AirGapped, Without: o.Without}
	excuse = func(c *result.PlannedCase) string { return verdict.Declared(c, &declared) }
	testable := map[string]bool{}
	for i := range p.Cases {
		testable[p.Cases[i].ID] = excuse(&p.Cases[i]) == ""
	}
	for i := range p.Tests {
		t := &p.Tests[i]
		if t.Shard == o.Shard.number && !slices.Contains(names, t.Name) && slices.ContainsFunc(t.Cases, func(id string) bool { return testable[id] }) {
			names = append(names, t.Name)
		}
	}
	return names, excuse
}
