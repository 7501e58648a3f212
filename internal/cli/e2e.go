package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
)

func newE2ECommand(s *Surroundings) *cobra.Command {
	return group(&cobra.Command{
		Use:   "e2e",
		Short: "Fetch or build e2e.test and the other Kubernetes binaries",
		Long: `Fetch or build e2e.test and the other Kubernetes binaries, of any released
version, into a cache.

Binaries are downloaded from the releases of Kubernetes and etcd and compared
with the published checksums. What cannot be downloaded is built from Go
modules, which needs Go and, from a cold cache, several minutes. kwok publishes
no checksums and is always built.

The cache is $OP_READINESS_CACHE, or windows-op-readiness in the user's cache
folder. Several processes may use it at once.`,
		Example: `  op-readiness e2e fetch
  op-readiness e2e list`,
	}, newE2EFetchCommand(s), newE2EListCommand(s))
}

// storeOptions are the flags that say which binaries to use and where from.
type storeOptions struct {
	KubernetesVersion string
	Source            string
	CacheDir          string
	// version is the flag that says which Kubernetes.
	version *pflag.Flag
}

// asked returns the version of Kubernetes that the user asks for, or "".
func (o *storeOptions) asked() string {
	if o.version.Changed {
		return o.KubernetesVersion
	}
	return ""
}

func (o *storeOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.KubernetesVersion, "kubernetes-version", binaries.Pinned, "released Kubernetes version")
	o.version = cmd.Flags().Lookup("kubernetes-version")
	cmd.Flags().StringVar(&o.Source, "source", string(binaries.Auto), "where binaries come from: auto, release or build")
	o.addCacheFlag(cmd)
}

func (o *storeOptions) addCacheFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.CacheDir, "cache-dir", "", "folder of the cache (default $OP_READINESS_CACHE or the user's cache folder)")
}

// validate checks the flags and brings the version into its full form.
func (o *storeOptions) validate() error {
	version, err := binaries.ParseVersion(o.KubernetesVersion)
	if err != nil {
		return usageErrorf("--kubernetes-version: %w", err)
	}
	o.KubernetesVersion = version
	if _, err := binaries.ParseSource(o.Source); err != nil {
		return usageErrorf("--source: %w", err)
	}
	return nil
}

// store returns the cache of binaries that the flags mean.
func (o *storeOptions) store(s *Surroundings) (*binaries.Store, error) {
	dir, err := filepath.Abs(o.CacheDir)
	if o.CacheDir == "" {
		dir, err = binaries.DefaultDir(s.Getenv)
	}
	if err != nil {
		return nil, err
	}
	return &binaries.Store{Dir: dir, Source: binaries.Source(o.Source), Progress: s.Stderr, Environ: s.Environ}, nil
}

type e2eFetchOptions struct {
	storeOptions
	Names []binaries.Name
}

func newE2EFetchCommand(s *Surroundings) *cobra.Command {
	var o e2eFetchOptions
	cmd := &cobra.Command{
		Use:   "fetch [NAME...]",
		Short: "Make sure that binaries are in the cache, and print their paths",
		Long: `Make sure that binaries are in the cache, and print their absolute paths, one a
line, in the order of the arguments. Without arguments: e2e.test and ginkgo.

Names: e2e.test, ginkgo, kubectl, kube-apiserver, kube-controller-manager,
kube-scheduler, kubelet, kube-proxy, kubeadm, etcd (the version that Kubernetes
requires), kwok, kwokctl; and, always built, agnhost and op-readiness.test.`,
		Example: `  # The path of the newest pinned e2e.test
  op-readiness e2e fetch e2e.test

  # Everything for a simulated cluster, built from source
  op-readiness e2e fetch --source build --kubernetes-version v1.35.4 \
    kube-apiserver kube-controller-manager kube-scheduler kubectl etcd kwok kwokctl`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(args); err != nil {
				return err
			}
			return o.run(cmd.Context(), s)
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *e2eFetchOptions) complete(args []string) error {
	for _, arg := range args {
		name, err := binaries.ParseName(arg)
		if err != nil {
			return usageErrorf("%w", err)
		}
		o.Names = append(o.Names, name)
	}
	if len(o.Names) == 0 {
		o.Names = []binaries.Name{binaries.E2ETest, binaries.Ginkgo}
	}
	if err := o.validate(); err != nil {
		return err
	}
	for _, name := range o.Names {
		if err := binaries.CheckVersion(name, o.KubernetesVersion); err != nil {
			return usageErrorf("--kubernetes-version: %w", err)
		}
	}
	return nil
}

func (o *e2eFetchOptions) run(ctx context.Context, s *Surroundings) error {
	store, err := o.store(s)
	if err != nil {
		return err
	}
	paths, err := store.Get(ctx, o.KubernetesVersion, o.Names...)
	if err != nil {
		return interrupted(ctx, err)
	}
	for _, name := range o.Names {
		fmt.Fprintln(s.Stdout, paths[name])
	}
	return nil
}

// interrupted gives err the exit code of an interruption when ctx has ended, but
// not by a time limit.
func interrupted(ctx context.Context, err error) error {
	if wrong := (*verdict.UsageError)(nil); errors.As(err, &wrong) {
		return err
	}
	if err != nil && errors.Is(context.Cause(ctx), errTimeLimit) {
		return fmt.Errorf("its time was over before the first test: %w: give it more with --time-limit, or with the timeout of the Prow job", err)
	}
	if err != nil && ctx.Err() != nil {
		return &exitError{code: verdict.ExitInterrupted, cause: err}
	}
	return err
}

type e2eListOptions struct {
	storeOptions
	Output string
	Verify bool
}

func newE2EListCommand(s *Surroundings) *cobra.Command {
	var o e2eListOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the binaries in the cache",
		Long: `List the binaries in the cache. One that is not what was put there is listed
with its problem, and the exit code is 3.`,
		Example: `  op-readiness e2e list
  op-readiness e2e list --verify -o json`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Output != "table" && o.Output != "json" {
				return usageErrorf("--output: unknown format %q: use table, json", o.Output)
			}
			return o.run(s)
		},
	}
	o.addCacheFlag(cmd)
	cmd.Flags().StringVarP(&o.Output, "output", "o", "table", "table or json")
	cmd.Flags().BoolVar(&o.Verify, "verify", false, "hash every file, not only those that look changed")
	return cmd
}

func (o *e2eListOptions) run(s *Surroundings) error {
	store, err := o.store(s)
	if err != nil {
		return err
	}
	entries, err := store.List(o.Verify)
	if err != nil {
		return err
	}
	t := report.Table{Header: []string{"Name", "Version", "System", "Size", "Source", "Obtained", "Path"}, Value: append([]binaries.Entry{}, entries...)}
	code := verdict.ExitReady
	for _, e := range entries {
		path := e.Path
		if e.Problem != "" {
			path, code = "PROBLEM: "+e.Problem, verdict.ExitInconclusive
		}
		t.Rows = append(t.Rows, []string{string(e.Name), e.Version, e.OS + "/" + e.Arch, fmt.Sprintf("%d MB", e.Size>>20), string(e.Source), e.Obtained.Format(time.DateOnly), path})
	}
	if err := t.Write(s.Stdout, report.Format(o.Output)); err != nil {
		return err
	}
	return exitWith(code)
}
