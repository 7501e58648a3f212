package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
)

func newClusterDownCommand(s *Surroundings) *cobra.Command {
	var o clustersOptions
	var run string
	name := provider.DefaultRequest().Name
	cmd := &cobra.Command{
		Use:   "down [NAME]",
		Short: "Remove a cluster with everything that belongs to it",
		Long: `Remove a cluster with everything that belongs to it, and its context from the
kubeconfigs that it was added to, and return when nothing is left. What is half made
is removed like what is whole. It is not an error when there is none.

With --run, the clusters go that were made for that run, but for those that
--keep-on-failure keeps.

Exit codes: 0 nothing is left; 2 what is there was not made by op-readiness, and is
left alone; 3 something is left; 130 interrupted.`,
		Example: `  op-readiness cluster down
  op-readiness cluster down old
  op-readiness cluster down --run 20261122-061500-1f2e3d4c-1-1`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			given := cmd.Flags().Changed("name")
			switch {
			case len(args) == 1 && given && name != args[0]:
				return usageErrorf("two clusters named, %q and --name %q: name one", args[0], name)
			case run != "" && (given || len(args) == 1):
				return usageErrorf("--run removes all clusters of a run: leave the name out")
			case cmd.Flags().Changed("run") && run == "":
				return usageErrorf("--run: which run? 'op-readiness cluster list -o json' says of which one a cluster is")
			case len(args) == 1:
				name = args[0]
			}
			if err := provider.ValidateName(name); err != nil {
				return usageErrorf("%w", err)
			}
			clusters, err := o.clusters(s)
			if err != nil {
				return err
			}
			if run != "" {
				err = clusters.DownRun(cmd.Context(), run)
			} else {
				err = clusters.Down(cmd.Context(), name)
			}
			return interrupted(cmd.Context(), err)
		},
	}
	cmd.Flags().StringVar(&name, "name", name, "name of the cluster")
	cmd.Flags().StringVar(&run, "run", "", "remove the clusters of this run")
	o.addFlags(cmd)
	return cmd
}

type clusterReapOptions struct {
	clustersOptions
	Providers []string
	OlderThan time.Duration
	Yes       bool
}

func newClusterReapCommand(s *Surroundings) *cobra.Command {
	var o clusterReapOptions
	cmd := &cobra.Command{
		Use:   "reap",
		Short: "Remove clusters that have expired",
		Long: `Remove clusters that have expired, by their tags, by the ledger, or by either.
Without --yes nothing is removed, and what would be is printed. What does not carry
our tags is never looked at.

Exit codes: 0 nothing that has expired is left; 3 something is, or could not be
asked; 130 interrupted.`,
		Example: `  op-readiness cluster reap
  op-readiness cluster reap --yes
  op-readiness cluster reap --provider kwok --older-than 1h --yes`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), s)
		},
	}
	o.addFlags(cmd)
	f := cmd.Flags()
	f.StringSliceVar(&o.Providers, "provider", nil, "only clusters of this provider; may be repeated")
	f.DurationVar(&o.OlderThan, "older-than", 0, "only clusters that expired at least so long ago")
	f.BoolVar(&o.Yes, "yes", false, "remove them")
	return cmd
}

func (o *clusterReapOptions) run(ctx context.Context, s *Surroundings) error {
	if o.OlderThan < 0 {
		return usageErrorf("--older-than: not less than 0, not %s", o.OlderThan)
	}
	clusters, err := o.clusters(s)
	if err != nil {
		return err
	}
	if err := checkProviders(clusters, o.Providers); err != nil {
		return err
	}
	expired, err := clusters.Expired(ctx, o.Providers, o.OlderThan)
	faults := []error{err}
	for i := range expired {
		k := &expired[i]
		if !o.Yes {
			fmt.Fprintf(s.Stdout, "%s of %s expired %s: to be removed with --yes\n", k.Name, k.Provider, k.Expires.Format(time.RFC3339))
			continue
		}
		err := clusters.Reap(ctx, k)
		if err == nil {
			fmt.Fprintf(s.Stdout, "%s of %s expired %s: removed\n", k.Name, k.Provider, k.Expires.Format(time.RFC3339))
		}
		faults = append(faults, err)
	}
	if len(expired) == 0 {
		fmt.Fprintln(s.Stderr, "no cluster has expired")
	}
	return interrupted(ctx, errors.Join(faults...))
}
