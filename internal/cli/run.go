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
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/windows-op-readiness/windows-op-readiness/internal/assess"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/preflight/probe"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/prepull"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

type runOptions struct {
	planOptions
	Kubeconfig           string
	Context              string
	Cluster              string
	ClusterSet           map[string]string
	KeepOnFailure        time.Duration
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
	AllowReboot          bool
	Kubectl              string
	NonBlockingTaints    []string
	AllowedNotReadyNodes int
	DNSDomain            string
	DockerConfig         string
	RepoList             string
	E2EArgs              []string
	SuiteArgs            []string
	ConformanceJUnit     []string
	Steer                string
	Lock                 bool
	Wait                 bool
	Preflight            string
	Probe                bool
	ProbeTimeout         time.Duration
	Prepull              bool
	PrepullTimeout       time.Duration
	TimeLimit            time.Duration
	BeforeTimeout        time.Duration
	LogFormat            string
	Output               string
}

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
		Args:        flagForArgument,
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
	f.StringVar(&o.Cluster, "cluster", "", "make a cluster with this provider for the run, and remove it: "+strings.Join(providerNames(), ", "))
	f.StringToStringVar(&o.ClusterSet, "cluster-set", nil, "setting of --cluster that only its provider knows; may be repeated")
	f.DurationVar(&o.KeepOnFailure, "keep-on-failure", 0, "where a test failed, keep the cluster of --cluster for so long, to be looked at (default remove it at once)")
	f.StringVar(&o.Resume, "resume", "", "report folder of a run to go on with")
	f.Var(&o.Shard, "shard", "which shard of --shards to run, as 2, or as 2/3 without --shards")
	f.StringVar(&o.RunID, "run-id", "", "id that the shards of one run share (default $BUILD_ID in a Prow job, else a new one)")
	f.IntVar(&o.Attempt, "attempt", 0, "which execution of this shard of this run it is; merge takes the newest (default $GITHUB_RUN_ATTEMPT, or 1)")
	f.IntVar(&o.Procs, "procs", 0, "how many tests that allow it run beside each other (default by the Windows nodes and their free places for pods, at most 4)")
	f.IntVar(&o.Retries, "retries", 0, "how often a failed test runs again, with no other beside it; a later pass is flaky")
	f.StringSliceVar(&o.Without, "without", nil, "declare that the cluster does not have this capability; may be repeated")
	f.BoolVar(&o.AirGapped, "air-gapped", false, "declare that the cluster has no way to the internet")
	f.BoolVar(&o.AllowReboot, "allow-reboot", false, "let tests reboot Windows nodes, all of them at once where the standard asks for that; without it these are not-tested")
	f.StringVar(&o.Kubectl, "kubectl", "", "kubectl that tests run (default the one on the path)")
	f.StringSliceVar(&o.NonBlockingTaints, "non-blocking-taints", nil, "keys of taints of nodes that the suite does not wait for, beside the control plane's")
	f.IntVar(&o.AllowedNotReadyNodes, "allowed-not-ready-nodes", 0, "how many nodes may be not ready; -1 waits for none")
	f.StringVar(&o.DNSDomain, "dns-domain", "", "DNS domain of the cluster (default cluster.local)")
	f.StringVar(&o.DockerConfig, "e2e-docker-config-file", "", "docker credentials with which nodes pull test images")
	f.StringVar(&o.RepoList, "kube-test-repo-list", "", "file that overrides the registries of test images")
	f.StringArrayVar(&o.E2EArgs, "e2e-arg", nil, "further argument of e2e.test, such as --prepull-images=true (op-readiness.test has --suite-arg); may be repeated")
	f.StringArrayVar(&o.SuiteArgs, "suite-arg", nil, "further argument of op-readiness.test, such as --readiness.shorten=10 (e2e.test has --e2e-arg); may be repeated")
	f.StringSliceVar(&o.ConformanceJUnit, "conformance-junit", nil, "JUnit of a Linux conformance run; may be repeated")
	f.StringVar(&o.Steer, "steer", assess.SteerAuto, "put pods where cases want them: by an admission policy (policy), where the API server has it (auto), by cordoning the nodes of the other system (cordon), or not (off)")
	f.BoolVar(&o.Lock, "lock", true, "keep other runs off the cluster, with a Lease in the namespace default")
	f.BoolVar(&o.Wait, "wait", false, "wait while another run has the cluster")
	f.StringVar(&o.Preflight, "preflight", assess.PreflightRefuse, "what a run does that cannot work on the cluster: refuse, warn and go on, or off, not to look")
	f.BoolVar(&o.Probe, "probe", true, "let pods find out, before the tests, what the API does not show, such as whether images can be pulled")
	f.DurationVar(&o.ProbeTimeout, "probe-timeout", probe.DefaultLimit, "how long all probes may take, pulling images included")
	f.BoolVar(&o.Prepull, "prepull", false, "have nodes pull the images of tests before the first test, and measure it")
	f.DurationVar(&o.PrepullTimeout, "prepull-timeout", prepull.DefaultLimit, "how long --prepull may take")
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
	o.Shared = o.Shared && o.Cluster == ""
	switch {
	case !o.Lock && o.Wait:
		return usageErrorf("--wait waits for the cluster lock, and --lock=false does without: leave one out")
	case strings.ContainsFunc(o.RunID, unicode.IsSpace):
		return usageErrorf("--run-id: %q has blanks in it: use an id in one word, such as nightly-17", o.RunID)
	case o.Attempt < 0:
		return usageErrorf("--attempt: at least 1, not %d", o.Attempt)
	case o.Procs < 0:
		return usageErrorf("--procs: %d is no number of tests; 0, the default, fits it to the cluster", o.Procs)
	case o.Retries < 0:
		return usageErrorf("--retries: not less than 0, not %d", o.Retries)
	case o.Cluster != "" && !slices.Contains(providerNames(), o.Cluster):
		return usageErrorf("--cluster: unknown provider %q: use %s", o.Cluster, strings.Join(providerNames(), ", "))
	case o.Cluster == "" && o.Resume == "" && (len(o.ClusterSet) > 0 || o.KeepOnFailure != 0):
		return usageErrorf("--cluster-set and --keep-on-failure are for a cluster that the run makes: add --cluster")
	case o.KeepOnFailure < 0:
		return usageErrorf("--keep-on-failure: not less than 0, not %s", o.KeepOnFailure)
	case o.Cluster != "" && o.Kubeconfig != "":
		return usageErrorf("--cluster makes a cluster, and --kubeconfig names one: leave one of them out")
	case !slices.Contains(assess.SteerWays(), o.Steer):
		return usageErrorf("--steer: unknown way %q: use %s", o.Steer, strings.Join(assess.SteerWays(), ", "))
	case o.RuntimeClass != "" && (o.Steer == assess.SteerCordon || o.Steer == assess.SteerOff):
		return usageErrorf("--runtime-class is given to pods by the admission policy, which --steer=%s does without: leave one of them out, or use --steer=%s (Kubernetes 1.36)", o.Steer, assess.SteerPolicy)
	case !slices.Contains([]string{assess.PreflightRefuse, assess.PreflightWarn, assess.PreflightOff}, o.Preflight):
		return usageErrorf("--preflight: unknown way %q: use %s, %s, %s", o.Preflight, assess.PreflightRefuse, assess.PreflightWarn, assess.PreflightOff)
	case o.ProbeTimeout < time.Second:
		return usageErrorf("--probe-timeout: at least 1s, not %s", o.ProbeTimeout)
	case o.PrepullTimeout < time.Second:
		return usageErrorf("--prepull-timeout: at least 1s, not %s", o.PrepullTimeout)
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
	if err := e2e.CheckOwn(o.SuiteArgs); err != nil {
		return usageErrorf("--suite-arg: %w", err)
	}
	if err := report.ValidFormat(report.Format(o.Output)); err != nil {
		return usageErrorf("--output: %w", err)
	}
	if err := checkWithout(o.Without); err != nil {
		return err
	}
	for _, path := range o.ConformanceJUnit {
		if _, err := os.Stat(path); err != nil {
			return usageErrorf("--conformance-junit: %w", err)
		}
	}
	return nil
}

// checkWithout checks the capabilities of --without.
func checkWithout(names []string) error {
	var known []string
	for _, c := range specs.Capabilities() {
		known = append(known, c.Name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return usageErrorf("--without: unknown capability %q%s", name, knownAre(name, known))
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
			"category", "case", "label", "capability", "additional", "trial", "shards", "shard", "report-dir", "spec-dir", "cluster", "run-id", "attempt",
			"provider", "kubernetes-version", "without", "air-gapped", "allow-reboot", "durations", "conformance-junit", "suite-arg", "shared",
		} {
			if cmd.Flags().Changed(flag) {
				return usageErrorf("--resume goes on with a run as it began: leave --%s out", flag)
			}
		}
	}
	return o.assess(cmd.Context(), s, cmd.Flags().Changed)
}

// dryRun shows what would run.
func (o *runOptions) dryRun(ctx context.Context, s *Surroundings, look bool) error {
	r, err := o.request(s, nil, time.Time{})
	if err != nil {
		return err
	}
	dry, err := assess.DryRun(ctx, *r, look)
	if err != nil {
		return interrupted(ctx, err)
	}
	fmt.Fprintf(s.Stderr, "on Kubernetes %s would run exactly %s\n", dry.Plan.KubernetesVersion, text.Count(len(dry.Tests), "test"))
	if err := writePlan(s.Stdout, dry.Plan, o.Output, o.Procs); err != nil || len(dry.Tests) > 0 {
		return err
	}
	return exitWith(report.WriteIdle(s.Stderr, dry.Plan, o.Shard.number, dry.Excuse))
}
