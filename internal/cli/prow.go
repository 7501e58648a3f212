package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	prowapi "sigs.k8s.io/prow/pkg/apis/prowjobs/v1"

	"github.com/windows-op-readiness/windows-op-readiness/internal/assess"
	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/prow/rehearse"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/life"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
)

func newProwCommand(s *Surroundings) *cobra.Command {
	return group(&cobra.Command{
		Use:     "prow",
		Short:   "Rehearse a Prow job",
		Long:    `Rehearse a Prow job on this machine, before it merges.`,
		Example: "  op-readiness prow rehearse pull-windows-op-readiness --cluster kwok",
	}, newRehearseCommand(s), newUtilityCommand())
}

// utilityCommand are the words by which this program is called to play one of
// Prow's utilities.
var utilityCommand = []string{"prow", "utility"}

// isUtility reports whether the arguments call a utility of Prow, which handles
// signals itself.
func isUtility(args []string) bool {
	return len(args) > len(utilityCommand) && slices.Equal(args[:len(utilityCommand)], utilityCommand)
}

func newUtilityCommand() *cobra.Command {
	return &cobra.Command{
		Use:         "utility NAME",
		Short:       "Play initupload, entrypoint or sidecar, for a rehearsal",
		Hidden:      true,
		Args:        usageArgs(cobra.ExactArgs(1)),
		Annotations: map[string]string{stopsGracefully: "true"},
		RunE: func(cmd *cobra.Command, args []string) error {
			code, err := rehearse.Utility(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return exitWith(code)
		},
	}
}

type rehearseOptions struct {
	rehearse.Request
	File       string
	Kubeconfig string
	Cluster    string
	Bucket     string
	Endpoint   string
	Command    string
	Volumes    map[string]string
	Env        map[string]string
	Utilities  string
	Keep       bool
	DryRun     bool
	storeOptions
}

func newRehearseCommand(s *Surroundings) *cobra.Command {
	var o rehearseOptions
	cmd := &cobra.Command{
		Use:   "rehearse JOB",
		Short: "Run a Prow job on this machine as Prow would",
		Long: `Run a Prow job on this machine as Prow would: the job is read by Prow's own
loader; the ProwJob, its pod, $JOB_SPEC and the other variables are made by
Prow's own code; and Prow's own initupload, entrypoint and sidecar run around the
job's command. They upload to a folder, in the layout of the bucket, or to a
bucket or an emulator of one. The job's timeout and grace period hold. Ctrl-c
aborts the job as Prow does.

No container runs: volumes are folders, and paths of the pod are translated. So
op-readiness in the job's command is this program, whatever the image; another
command needs --command. Nothing is cloned: --dir stands for the working copy.
The job never sees a cluster but the one of --kubeconfig or --cluster.

What a presubmit tests is taken from the working copy, or named as Prow names it
in $PULL_REFS, with --refs main:SHA,12:SHA.

Exit codes: that of the job's command where it is one of op-readiness; 3 when
its timeout ended it; 130 when it was aborted; 2 for a job that cannot be
rehearsed.`,
		Example: `  # On a simulated cluster, which is made and removed
  op-readiness prow rehearse pull-windows-op-readiness --cluster kwok

  # On your cluster, as for pull request 12; the grid of all rehearsals so far
  op-readiness prow rehearse pull-windows-op-readiness-core-network --kubeconfig ~/.kube/config --pull 12
  op-readiness testgrid preview rehearsal

  # What would run
  op-readiness prow rehearse ci-windows-op-readiness --kubeconfig ~/.kube/config --dry-run

  # A job of another image: what to run in its place, and a folder for a volume
  op-readiness prow rehearse ci-capz --command 'op-readiness run' --kubeconfig kc --volume azure=creds`,
		Args:        usageArgs(cobra.MaximumNArgs(1)),
		Annotations: map[string]string{stopsGracefully: "true"},
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), s, args)
		},
	}
	o.addFlags(cmd)
	o.version.Usage += ofKind()
	f := cmd.Flags()
	f.StringVar(&o.JobConfig, "job-config", "jobs", "file or folder of jobs")
	f.StringVar(&o.ProwConfig, "config", "", "Prow's own configuration, with presets and defaults (default one with Prow's usual decoration)")
	f.StringVar(&o.File, "prowjob", "", "file with a ProwJob to run again, in place of JOB")
	f.StringVar(&o.Repository, "repo", "", "repository of the job as ORG/REPO, where several have it")
	f.StringVar(&o.Refs.Text, "refs", "", "what is tested, as Prow's $PULL_REFS says it: main:SHA,12:SHA")
	f.IntVar(&o.Refs.Pull, "pull", 0, "number of the pull request, for a presubmit (default 1)")
	f.StringVar(&o.Refs.BaseRef, "base-ref", "", "branch that the pull request is for, or that is tested (default the job's, or main)")
	f.StringVar(&o.Refs.BaseSHA, "base-sha", "", "commit of that branch (default where the working copy left it)")
	f.StringVar(&o.Refs.PullSHA, "pull-sha", "", "commit of the pull request (default that of the working copy)")
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig of the cluster that the job tests")
	f.StringVar(&o.Cluster, "cluster", "", "make a cluster with this provider for the rehearsal, and remove it: "+strings.Join(providerNames(), ", "))
	f.StringVar(&o.Bucket, "bucket", "rehearsal", "where to upload: a folder, gs://NAME or s3://NAME")
	f.StringVar(&o.Endpoint, "endpoint", "", "URL of a GCS emulator (default $STORAGE_EMULATOR_HOST)")
	f.StringVar(&o.Dir, "dir", ".", "working copy that the job starts in")
	f.StringVar(&o.Command, "command", "", "command to run in place of the job's; with shell syntax a shell runs it, and gets Prow's signals in its place unless you say exec")
	f.StringToStringVar(&o.Volumes, "volume", nil, "folder that stands for a volume, as NAME=DIR; without DIR an empty one; may be repeated")
	f.StringToStringVar(&o.Env, "env", nil, "variable of the job, as NAME=VALUE; may be repeated")
	f.StringVar(&o.Utilities, "utilities", "", "folder with Prow's initupload, entrypoint and sidecar to run (default those in this program)")
	f.BoolVar(&o.Keep, "keep", false, "keep the volumes of the pod, and say where they are")
	f.BoolVar(&o.DryRun, "dry-run", false, "say what would run and where it would upload, and do nothing")
	return cmd
}

func (o *rehearseOptions) validate(args []string) error {
	switch {
	case runtime.GOOS == "windows":
		return usageErrorf("rehearse: Prow's utilities need a system with SIGTERM: use Linux or macOS")
	case len(args) == 0 && o.File == "":
		return usageErrorf("rehearse: name the job, or a file with a ProwJob with --prowjob")
	case len(args) > 0 && o.File != "":
		return usageErrorf("--prowjob names a job that was made already: leave %s out", args[0])
	case o.File != "" && o.Refs != (rehearse.Refs{}):
		return usageErrorf("--prowjob says what is tested: leave --refs, --pull and the like out")
	case o.Refs.Text != "" && o.Refs != (rehearse.Refs{Text: o.Refs.Text}):
		return usageErrorf("--refs says all that is tested: leave --pull, --base-ref, --base-sha and --pull-sha out")
	case o.Refs.Pull < 0:
		return usageErrorf("--pull: a pull request has a number from 1, not %d", o.Refs.Pull)
	case o.Cluster != "" && !slices.Contains(providerNames(), o.Cluster):
		return usageErrorf("--cluster: unknown provider %q: use %s", o.Cluster, strings.Join(providerNames(), ", "))
	case o.Cluster != "" && o.Kubeconfig != "":
		return usageErrorf("--cluster makes a cluster, and --kubeconfig names one: leave one of them out")
	}
	if o.Utilities != "" {
		for _, name := range []string{rehearse.Initupload, rehearse.Entrypoint, rehearse.Sidecar} {
			if _, err := exec.LookPath(filepath.Join(absolute(o.Utilities), name)); err != nil {
				return usageErrorf("--utilities: %w: name a folder with the programs %s, %s and %s", err, rehearse.Initupload, rehearse.Entrypoint, rehearse.Sidecar)
			}
		}
	}
	for flag, file := range map[string]string{"kubeconfig": o.Kubeconfig, "dir": o.Dir, "config": o.ProwConfig, "utilities": o.Utilities, "prowjob": o.File} {
		if _, err := os.Stat(file); file != "" && err != nil {
			return usageErrorf("--%s: %w", flag, err)
		}
	}
	for name, dir := range o.Volumes {
		if dir == "" {
			continue
		}
		if info, err := os.Stat(dir); err != nil {
			return usageErrorf("--volume %s: %w", name, err)
		} else if !info.IsDir() {
			return usageErrorf("--volume %s: %s is a file: name a folder that has it", name, dir)
		}
		o.Volumes[name] = absolute(dir)
	}
	o.Kubeconfig, o.Dir, o.Utilities = absolute(o.Kubeconfig), absolute(o.Dir), absolute(o.Utilities)
	var err error
	o.Bucket, err = rehearse.BucketURL(o.Bucket)
	return err
}

func (o *rehearseOptions) run(ctx context.Context, s *Surroundings, args []string) error {
	if err := o.validate(args); err != nil {
		return err
	}
	var pj *prowapi.ProwJob
	var err error
	if o.File != "" {
		pj, err = rehearse.ReadProwJob(o.File)
	} else {
		o.Job = args[0]
		pj, err = o.ProwJob(ctx)
	}
	if err != nil {
		return err
	}
	noCluster := o.Kubeconfig == "" && o.Cluster == ""
	if o.Cluster != "" && rehearse.MakesCluster(pj, o.Command) {
		fmt.Fprintf(s.Stderr, "--cluster %s is not needed: %s makes its cluster itself\n", o.Cluster, pj.Spec.Job)
		o.Cluster = ""
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	space, err := rehearse.NewWorkspace()
	if err != nil {
		return err
	}
	defer func() {
		leave := space.Remove
		if o.Keep && !o.DryRun {
			leave = space.Keep
		}
		if err := leave(); err != nil {
			fmt.Fprintf(s.Stderr, "op-readiness: %v\n", err)
		}
	}()
	work := space.Dir
	options := rehearse.Options{
		Work: work, Held: space, Self: self, Utilities: o.Utilities, Bucket: o.Bucket, Dir: o.Dir,
		Kubeconfig: o.Kubeconfig, Command: o.Command, Volumes: o.Volumes, Env: o.Env, Host: slices.Clone(s.Environ),
	}
	if o.Endpoint != "" {
		options.Host = append(options.Host, "STORAGE_EMULATOR_HOST="+strings.TrimPrefix(o.Endpoint, "http://"))
	}
	if o.Cluster != "" || noCluster && rehearse.NeedsCluster(pj, o.Command) {
		// It is made, or asked for, when it is clear that the job can be rehearsed.
		options.Kubeconfig = filepath.Join(work, "kubeconfig")
	}
	plan, err := rehearse.Make(pj, options)
	var refused *rehearse.RefusedError
	if errors.As(err, &refused) || errors.Is(err, rehearse.ErrNotDecorated) {
		return usageErrorf("%w", err)
	}
	if err != nil {
		return err
	}
	if noCluster && rehearse.NeedsCluster(pj, o.Command) {
		return usageErrorf("%s tests a cluster: name it with --kubeconfig, or make one with --cluster %s", pj.Spec.Job, strings.Join(providerNames(), " or "))
	}
	o.announce(s, plan)
	if o.DryRun {
		return plan.Write(s.Stdout, o.Bucket)
	}
	o.sweep(s)
	if at, _ := bucket.ParseURL(o.Bucket); at.Scheme == bucket.File {
		if err := os.MkdirAll(at.Dir, 0o755); err != nil {
			return usageErrorf("--bucket: %w", err)
		}
	}
	if o.Cluster != "" {
		down, err := o.makeCluster(s.untilStop(ctx), s, space, options.Kubeconfig)
		if err != nil {
			return interrupted(s.untilStop(ctx), err)
		}
		defer down()
	}
	said, err := os.Create(filepath.Join(work, "utilities.log"))
	if err != nil {
		return fmt.Errorf("making the log of Prow's utilities: %w", err)
	}
	defer said.Close()
	outcome, err := plan.Run(ctx, s.stop, s.Stderr, said)
	if ctx.Err() != nil {
		return interrupted(ctx, fmt.Errorf("rehearsing %s: killed: its build has no finished.json, and what it was doing on its cluster stays as it is: %w", pj.Spec.Job, err))
	}
	if err != nil {
		if data, readErr := os.ReadFile(said.Name()); readErr == nil {
			fmt.Fprintf(s.Stderr, "%s", data[max(0, len(data)-16<<10):])
		}
		return interrupted(ctx, fmt.Errorf("rehearsing %s: %w", pj.Spec.Job, err))
	}
	if o.Keep {
		fmt.Fprintf(s.Stderr, "The pod's volumes, and what Prow's utilities said: %s\n", work)
	}
	return o.conclude(context.WithoutCancel(ctx), s, plan, outcome)
}

func (o *rehearseOptions) announce(s *Surroundings, p *rehearse.RehearsalPlan) {
	fmt.Fprintf(s.Stderr, "Rehearsing the %s %s as build %s: timeout %s, then %s of grace\n", p.Type, p.Job, p.BuildID, p.Timeout, p.Grace)
	for _, note := range p.Notes {
		fmt.Fprintf(s.Stderr, "  %s\n", note)
	}
}

// sweep removes what rehearsals left that were killed.
func (o *rehearseOptions) sweep(s *Surroundings) {
	removed, err := rehearse.Sweep(func(cluster string) error {
		clusters, err := (&clustersOptions{storeOptions: o.storeOptions}).clusters(s)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return clusters.Down(ctx, cluster)
	})
	if len(removed) > 0 {
		fmt.Fprintf(s.Stderr, "Removed what %s left that had been killed: %s\n", text.Count(len(removed), "rehearsal"), strings.Join(removed, ", "))
	}
	if err != nil {
		fmt.Fprintf(s.Stderr, "op-readiness: %v\n", err)
	}
}

// makeCluster makes a cluster, with its kubeconfig in a file, and returns what
// removes it.
func (o *rehearseOptions) makeCluster(ctx context.Context, s *Surroundings, space *rehearse.Workspace, kubeconfig string) (func(), error) {
	clusters, err := (&clustersOptions{storeOptions: o.storeOptions}).clusters(s)
	if err != nil {
		return nil, err
	}
	r := provider.DefaultRequest()
	r.Name, r.Owner = assess.NewClusterName(), assess.Owner(s.Getenv)
	r.ExpireAfter(assess.DefaultExpiry)
	r.KubernetesVersion = o.asked()
	if err := space.Note(r.Name); err != nil {
		return nil, fmt.Errorf("noting the cluster: %w", err)
	}
	plan, err := clusters.Plan(ctx, o.Cluster, r)
	if err != nil {
		return nil, err
	}
	clusters.Sweep(ctx, o.Cluster)
	if _, err := clusters.Up(ctx, plan, life.UpOptions{Kubeconfig: kubeconfig}); err != nil {
		return nil, err
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), plan.Teardown)
		defer cancel()
		if err := clusters.Down(ctx, r.Name); err != nil {
			fmt.Fprintf(s.Stderr, "op-readiness: %v\n", err)
		}
	}, nil
}

// conclude says where the build is and what is in it.
func (o *rehearseOptions) conclude(ctx context.Context, s *Surroundings, p *rehearse.RehearsalPlan, outcome *rehearse.Outcome) error {
	build, err := p.Uploaded(ctx, o.Bucket, bucket.Options{Endpoint: endpointOf(s, o.Endpoint, o.Bucket)})
	if err != nil {
		return fmt.Errorf("looking at what was uploaded: %w", err)
	}
	p.WriteOutcome(s.Stdout, o.Bucket, build, outcome)
	switch outcome.Code {
	case verdict.ExitReady, verdict.ExitNotReady, verdict.ExitUsage, verdict.ExitInconclusive, verdict.ExitInterrupted:
		return exitWith(outcome.Code)
	}
	return exitWith(verdict.ExitInconclusive)
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
