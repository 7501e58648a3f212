package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/nodelogs"
)

type clusterLogsOptions struct {
	clustersOptions
	Out     string
	PerNode time.Duration
}

func newClusterLogsCommand(s *Surroundings) *cobra.Command {
	var o clusterLogsOptions
	cmd := &cobra.Command{
		Use:   "logs NAME",
		Short: "Write the logs of a cluster into a folder",
		Long: `Write the logs of a cluster into a folder, without secrets that can be told as such.
What could not be had is said, with the reason, and the rest is there: the folder
"provider" has what only the provider can reach, and "cluster" what the API server and
the nodes give, by the kubelet's log query or through a pod.`,
		Example: "  op-readiness cluster logs op-readiness --out logs",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), s, args[0])
		},
	}
	o.addFlags(cmd)
	cmd.Flags().StringVar(&o.Out, "out", "", "folder for the logs; it is made")
	cmd.Flags().DurationVar(&o.PerNode, "per-node", nodelogs.DefaultPerNode, "how long the logs of a node may take")
	return cmd
}

func (o *clusterLogsOptions) run(ctx context.Context, s *Surroundings, name string) error {
	switch {
	case o.Out == "":
		return usageErrorf("--out: which folder are the logs to go to?")
	case o.PerNode < time.Second:
		return usageErrorf("--per-node: at least 1s, not %s", o.PerNode)
	}
	clusters, err := o.clusters(s)
	if err != nil {
		return err
	}
	known, missing, err := clusters.Logs(ctx, name, filepath.Join(o.Out, "provider"))
	if err != nil {
		return interrupted(ctx, err)
	}
	for _, m := range missing {
		fmt.Fprintf(s.Stderr, "missing: %s: %s\n", m.What, m.Reason)
	}
	ofNodes, err := nodelogs.Collect(ctx, nodelogs.Options{
		Target:  cluster.Target{Kubeconfig: known.Kubeconfig, Context: known.Context},
		Dir:     filepath.Join(o.Out, "cluster"),
		PerNode: o.PerNode,
		Note:    func(note string) { fmt.Fprintln(s.Stderr, note) },
	})
	for _, m := range ofNodes {
		fmt.Fprintf(s.Stderr, "missing: %s: %s\n", m.What, m.Reason)
	}
	fmt.Fprintln(s.Stdout, o.Out)
	return interrupted(ctx, err)
}
