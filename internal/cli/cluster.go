package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kwok"
)

func newClusterCommand(s *Surroundings) *cobra.Command {
	return group(&cobra.Command{
		Use:   "cluster",
		Short: "Make, list and remove clusters to test",
		Long: `Make, list and remove clusters to test.

The provider kwok makes a simulated hybrid cluster on this machine, without
containers or virtual machines: a real etcd, API server, controller manager and
scheduler, and nodes that are played. Pods there become Running, but nothing
runs in them.`,
		Example: `  op-readiness cluster up kwok
  op-readiness cluster list
  op-readiness cluster down`,
	}, newClusterUpCommand(s), newClusterDownCommand(s), newClusterListCommand(s))
}

// kwokProvider returns the provider whose clusters and binaries lie in the
// cache that the flags mean.
func kwokProvider(s *Surroundings, o *storeOptions) (*kwok.Provider, error) {
	store, err := o.store(s)
	if err != nil {
		return nil, err
	}
	return &kwok.Provider{
		Binaries: store,
		Dir:      filepath.Join(store.Dir, "clusters"),
		Progress: s.Stderr,
		Environ:  s.Environ,
	}, nil
}

type clusterUpOptions struct {
	storeOptions
	kwok.Options
	Provider string
}

func newClusterUpCommand(s *Surroundings) *cobra.Command {
	o := clusterUpOptions{Options: kwok.DefaultOptions()}
	cmd := &cobra.Command{
		Use:   "up PROVIDER",
		Short: "Make a cluster, or use the one that is there, and print its kubeconfig's path",
		Long: `Make a cluster, or use the one that is there, and print its kubeconfig's path.

Running it again is safe: a healthy cluster of the same shape is used as it is,
a dead or half-made one is made again, and one of another shape is an error.

Providers: kwok.`,
		Example: `  # Two Linux and two Windows nodes at the newest pinned Kubernetes
  export KUBECONFIG=$(op-readiness cluster up kwok)

  # Another shape, beside it
  op-readiness cluster up kwok --name old --kubernetes-version v1.35.4 \
    --windows-version ltsc2019 --windows-nodes 3`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(args); err != nil {
				return err
			}
			return o.run(cmd.Context(), s)
		},
	}
	o.addFlags(cmd)
	cmd.Flags().StringVar(&o.Name, "name", o.Name, "name of the cluster")
	cmd.Flags().IntVar(&o.LinuxNodes, "linux-nodes", o.LinuxNodes, "number of Linux nodes")
	cmd.Flags().IntVar(&o.WindowsNodes, "windows-nodes", o.WindowsNodes, "number of Windows nodes")
	cmd.Flags().StringVar(&o.WindowsVersion, "windows-version", o.WindowsVersion, "release of Windows Server: "+strings.Join(kwok.WindowsVersions(), ", "))
	cmd.Flags().StringVar(&o.Kubeconfig, "kubeconfig", "", "file that gets the cluster's context, as its current one (default a file of the cluster's own)")
	cmd.Flags().StringVar(&o.BindAddress, "bind-address", o.BindAddress, "address that the API server listens on; pods of a real node need 0.0.0.0")
	return cmd
}

func (o *clusterUpOptions) complete(args []string) error {
	o.Provider = args[0]
	if o.Provider != kwok.ProviderName {
		return usageErrorf("unknown provider %q: use kwok", o.Provider)
	}
	if err := o.validate(); err != nil {
		return err
	}
	o.Options.KubernetesVersion = o.storeOptions.KubernetesVersion
	if err := o.Validate(); err != nil {
		return usageErrorf("%w", err)
	}
	if o.Kubeconfig == "" {
		return nil
	}
	path, err := filepath.Abs(o.Kubeconfig)
	o.Kubeconfig = path
	return err
}

func (o *clusterUpOptions) run(ctx context.Context, s *Surroundings) error {
	clusters, err := kwokProvider(s, &o.storeOptions)
	if err != nil {
		return err
	}
	made, err := clusters.Up(ctx, o.Options)
	if err != nil {
		return interrupted(ctx, err)
	}
	fmt.Fprintf(s.Stderr, "cluster %s: ready: kubectl --kubeconfig %s --context %s get nodes\n", made.Name, made.Kubeconfig, made.Context)
	fmt.Fprintln(s.Stdout, made.Kubeconfig)
	return nil
}

func newClusterDownCommand(s *Surroundings) *cobra.Command {
	var store storeOptions
	name := kwok.DefaultOptions().Name
	cmd := &cobra.Command{
		Use:   "down [NAME]",
		Short: "Remove a cluster with everything that belongs to it",
		Long: `Remove a cluster with its processes and files, and its context from the
kubeconfigs that it was added to. It is not an error when there is none.`,
		Example: `  op-readiness cluster down
  op-readiness cluster down old`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if cmd.Flags().Changed("name") && name != args[0] {
					return usageErrorf("two clusters named, %q and --name %q: name one", args[0], name)
				}
				name = args[0]
			}
			if err := kwok.ValidateName(name); err != nil {
				return usageErrorf("%w", err)
			}
			clusters, err := kwokProvider(s, &store)
			if err != nil {
				return err
			}
			return interrupted(cmd.Context(), clusters.Down(cmd.Context(), name))
		},
	}
	cmd.Flags().StringVar(&name, "name", name, "name of the cluster")
	store.addCacheFlag(cmd)
	return cmd
}

func newClusterListCommand(s *Surroundings) *cobra.Command {
	var store storeOptions
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the clusters that op-readiness has made",
		Example: `  op-readiness cluster list
  op-readiness cluster list -o json`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "table" && output != "json" {
				return usageErrorf("--output: unknown format %q: use table, json", output)
			}
			clusters, err := kwokProvider(s, &store)
			if err != nil {
				return err
			}
			found, err := clusters.List(cmd.Context())
			if err != nil {
				return interrupted(cmd.Context(), err)
			}
			t := report.Table{Header: []string{"Name", "Provider", "Kubernetes", "Nodes", "State", "Kubeconfig"}, Value: append([]provider.Cluster{}, found...)}
			for _, c := range found {
				nodes := fmt.Sprintf("%d Linux, %d Windows (%s)", c.LinuxNodes, c.WindowsNodes, c.WindowsVersion)
				state := string(c.State)
				if c.Problem != "" {
					state += ": " + c.Problem
				}
				t.Rows = append(t.Rows, []string{c.Name, c.Provider, c.KubernetesVersion, nodes, state, c.Kubeconfig})
			}
			return t.Write(s.Stdout, report.Format(output))
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	store.addCacheFlag(cmd)
	return cmd
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
