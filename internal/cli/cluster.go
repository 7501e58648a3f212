package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/windows-op-readiness/windows-op-readiness/internal/assess"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kind"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/ledger"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/life"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/simulated"
)

func newClusterCommand(s *Surroundings) *cobra.Command {
	return group(&cobra.Command{
		Use:   "cluster",
		Short: "Make, list and remove clusters to test",
		Long: `Make, list and remove clusters to test.

The provider kwok makes a simulated hybrid cluster on this machine, without
containers or virtual machines: a real etcd, API server, controller manager and
scheduler, and nodes that are played. Pods there become Running, but nothing
runs in them. The provider kind makes a control plane and Linux nodes of containers,
with Docker, podman or nerdctl, and plays only the Windows nodes.

Every cluster has an owner, a run and an expiry, in its tags and in the ledger, a
folder of this user's on this machine, which names what is about to be made before
it is made. So 'down' and 'reap' find what a killed command left, by either.`,
		Example: `  op-readiness cluster up kwok
  op-readiness cluster list
  op-readiness cluster down`,
	},
		newClusterUpCommand(s), newClusterDownCommand(s), newClusterListCommand(s),
		newClusterReapCommand(s), newClusterLogsCommand(s), newClusterRenderCommand(s), newClusterKindCommand(s))
}

// clustersOptions are the flags that say which clusters are meant.
type clustersOptions struct {
	storeOptions
	LedgerDir string
}

func (o *clustersOptions) addFlags(cmd *cobra.Command) {
	o.addCacheFlag(cmd)
	o.addLedgerFlag(cmd)
}

func (o *clustersOptions) addLedgerFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.LedgerDir, "ledger", "", "folder of the ledger of clusters (default $"+ledger.Variable+" or one in the user's folder of state)")
}

// clusters returns those that the flags mean.
func (o *clustersOptions) clusters(s *Surroundings) (*life.Clusters, error) {
	store, err := o.store(s)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(o.LedgerDir)
	if o.LedgerDir == "" {
		dir, err = ledger.DefaultDir(s.Getenv)
	}
	if err != nil {
		return nil, err
	}
	return assess.Clusters(store, dir, s.Environ, s.Stderr), nil
}

// providerNames are those of the providers that there are.
func providerNames() []string { return assess.Clusters(&binaries.Store{}, "", nil, nil).Names() }

// shapeOptions are the flags that say what a cluster is to be.
type shapeOptions struct {
	clustersOptions
	provider.Request
}

// ofKind ends the help of the version's flag where a cluster is made.
func ofKind() string { return "; of kind, " + kind.DefaultVersion() }

func (o *shapeOptions) addFlags(cmd *cobra.Command) {
	o.Request = provider.DefaultRequest()
	f := cmd.Flags()
	o.storeOptions.addFlags(cmd)
	o.version.Usage += ofKind()
	o.addLedgerFlag(cmd)
	f.StringVar(&o.Name, "name", o.Name, "name of the cluster")
	f.IntVar(&o.LinuxNodes, "linux-nodes", o.LinuxNodes, "number of Linux nodes, beside the control plane")
	f.IntVar(&o.WindowsNodes, "windows-nodes", o.WindowsNodes, "number of Windows nodes")
	f.StringVar(&o.WindowsVersion, "windows-version", o.WindowsVersion, "release of Windows Server: "+strings.Join(simulated.WindowsVersions(), ", "))
	f.StringToStringVar(&o.Set, "set", nil, "setting that only one provider knows, such as bind-address=0.0.0.0, with which pods of real nodes reach the API server of kwok; may be repeated")
}

// plan checks the flags, and says what they ask for.
func (o *shapeOptions) plan(ctx context.Context, s *Surroundings, by string, expires time.Duration) (*life.Clusters, *provider.Plan, error) {
	if err := o.validate(); err != nil {
		return nil, nil, err
	}
	clusters, err := o.clusters(s)
	if err != nil {
		return nil, nil, err
	}
	r := o.Request
	r.KubernetesVersion = o.asked() // each provider has a default of its own
	r.Owner, r.Run = assess.Owner(s.Getenv), s.Getenv(assess.RunVariable)
	r.ExpireAfter(expires)
	plan, err := clusters.Plan(ctx, by, r)
	return clusters, plan, err
}

type clusterUpOptions struct {
	shapeOptions
	life.UpOptions
	Expires time.Duration
	DryRun  bool
	Output  string
}

func newClusterUpCommand(s *Surroundings) *cobra.Command {
	var o clusterUpOptions
	cmd := &cobra.Command{
		Use:   "up PROVIDER",
		Short: "Make a cluster, or use the one that is there, and print its kubeconfig's path",
		Long: `Make a cluster, or use the one that is there, and print its kubeconfig's path.

Running it again is safe: a healthy cluster of the same shape is used as it is,
a dead or half-made one is made again, and one of another shape is an error.
Clusters of the provider that have expired are removed first.

Providers: ` + strings.Join(providerNames(), ", ") + `.`,
		Example: `  # Two Linux and two Windows nodes at the newest pinned Kubernetes
  export KUBECONFIG=$(op-readiness cluster up kwok)

  # Another shape, beside it
  op-readiness cluster up kwok --name old --kubernetes-version v1.35.4 \
    --windows-version ltsc2019 --windows-nodes 3

  # What would be made
  op-readiness cluster up kwok --dry-run`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), s, args[0])
		},
	}
	o.addFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "file that gets the cluster's context, as its current one (default a file of the cluster's own)")
	f.DurationVar(&o.Expires, "expires", assess.DefaultExpiry, "how long the cluster may stay: after that, anybody may remove it")
	f.DurationVar(&o.KeepOnFailure, "keep-on-failure", 0, "where it cannot be made, keep what there is for so long, to be looked at (default remove it at once)")
	f.BoolVar(&o.DryRun, "dry-run", false, "print what would be made, and make nothing")
	f.StringVarP(&o.Output, "output", "o", "table", "of --dry-run, and of the cluster: table (its kubeconfig's path alone) or json")
	return cmd
}

func (o *clusterUpOptions) run(ctx context.Context, s *Surroundings, by string) error {
	switch {
	case o.Output != "table" && o.Output != "json":
		return usageErrorf("--output: unknown format %q: use table, json", o.Output)
	case o.Expires < time.Minute:
		return usageErrorf("--expires: at least 1m, not %s", o.Expires)
	case o.KeepOnFailure < 0:
		return usageErrorf("--keep-on-failure: not less than 0, not %s", o.KeepOnFailure)
	}
	if o.Kubeconfig != "" {
		path, err := filepath.Abs(o.Kubeconfig)
		if err != nil {
			return err
		}
		o.Kubeconfig = path
	}
	clusters, plan, err := o.plan(ctx, s, by, o.Expires)
	if err != nil {
		return interrupted(ctx, err)
	}
	if o.DryRun {
		return o.show(s, plan)
	}
	clusters.Sweep(ctx, by)
	made, err := clusters.Up(ctx, plan, o.UpOptions)
	if err != nil {
		return interrupted(ctx, err)
	}
	fmt.Fprintf(s.Stderr, "cluster %s: ready: kubectl --kubeconfig %s --context %s get nodes\n", made.Name, made.Kubeconfig, made.Context)
	if o.Output == "json" {
		return writeJSON(s, made)
	}
	fmt.Fprintln(s.Stdout, made.Kubeconfig)
	return nil
}

// show prints what would be made.
func (o *clusterUpOptions) show(s *Surroundings, p *provider.Plan) error {
	if o.Output == "json" {
		return writeJSON(s, p)
	}
	t := report.Table{Header: []string{"What", "Value"}}
	row := func(what, value string) { t.Rows = append(t.Rows, []string{what, value}) }
	row("cluster", p.Name+", made by "+p.Provider)
	row("Kubernetes", p.KubernetesVersion)
	row("owner", p.Owner)
	row("expires", p.Expires.Format(time.RFC3339))
	for _, key := range slices.Sorted(maps.Keys(p.Set)) {
		row(key, p.Set[key])
	}
	for _, object := range p.Objects {
		row("makes", object)
	}
	row("steps", strings.Join(p.Steps, ", "))
	return t.Write(s.Stdout, report.FormatTable)
}

func writeJSON(s *Surroundings, v any) error {
	enc := json.NewEncoder(s.Stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func newClusterRenderCommand(s *Surroundings) *cobra.Command {
	var o shapeOptions
	cmd := &cobra.Command{
		Use:     "render PROVIDER",
		Short:   "Print the objects that a cluster would be made of, as YAML",
		Long:    "Print the objects that a cluster would be made of, as YAML. Nothing is made.",
		Example: "  op-readiness cluster render kwok --windows-nodes 1",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			clusters, plan, err := o.plan(cmd.Context(), s, args[0], assess.DefaultExpiry)
			if err != nil {
				return interrupted(cmd.Context(), err)
			}
			data, err := clusters.Render(plan)
			if err != nil {
				return err
			}
			_, err = s.Stdout.Write(data)
			return err
		},
	}
	o.addFlags(cmd)
	return cmd
}

func newClusterListCommand(s *Surroundings) *cobra.Command {
	var o clustersOptions
	var by []string
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the clusters that op-readiness has made",
		Long: `List the clusters that op-readiness has made: those that the ledger of this user
knows, and those that carry our tags, also half-made ones.

The column Known by says which of the two knows a cluster. One that only the ledger
knows is gone, or was never made; 'reap' and 'down' settle that.`,
		Example: `  op-readiness cluster list
  op-readiness cluster list -o json`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "table" && output != "json" {
				return usageErrorf("--output: unknown format %q: use table, json", output)
			}
			clusters, err := o.clusters(s)
			if err != nil {
				return err
			}
			if err := checkProviders(clusters, by); err != nil {
				return err
			}
			found, err := clusters.List(cmd.Context(), by...)
			if writing := writeClusters(s, found, output); writing != nil {
				return writing
			}
			return interrupted(cmd.Context(), err)
		},
	}
	o.addFlags(cmd)
	cmd.Flags().StringSliceVar(&by, "provider", nil, "only clusters of this provider; may be repeated")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

// checkProviders checks names of providers.
func checkProviders(clusters *life.Clusters, names []string) error {
	for _, name := range names {
		if _, err := clusters.Provider(name); err != nil {
			return usageErrorf("--provider: %w", err)
		}
	}
	return nil
}

func writeClusters(s *Surroundings, all []life.Known, format string) error {
	t := report.Table{Header: []string{"Name", "Provider", "Kubernetes", "Nodes", "State", "Expires", "Known by", "Kubeconfig"}, Value: append([]life.Known{}, all...)}
	for i := range all {
		k := &all[i]
		state := string(k.State)
		if k.Step != "" && k.State != provider.Running {
			state += fmt.Sprintf(" (%s, at %s)", k.Life, k.Step)
		}
		if k.Problem != "" {
			state += ": " + k.Problem
		}
		by := "ledger and tags"
		switch {
		case k.Life == "" || k.Life == provider.Removed:
			by = "tags"
		case !k.Tagged:
			by = "ledger"
		}
		expires := "?"
		if !k.Expires.IsZero() {
			expires = k.Expires.Format(time.RFC3339)
		}
		nodes := fmt.Sprintf("%d Linux, %d Windows (%s)", k.LinuxNodes, k.WindowsNodes, cmp.Or(k.WindowsVersion, "?"))
		t.Rows = append(t.Rows, []string{k.Name, k.Provider, k.KubernetesVersion, nodes, state, expires, by, k.Kubeconfig})
	}
	return t.Write(s.Stdout, report.Format(format))
}

// usageArgs makes wrong arguments an error of usage.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageErrorf("%w\nSee '%s --help'", err, cmd.CommandPath())
		}
		return nil
	}
}
