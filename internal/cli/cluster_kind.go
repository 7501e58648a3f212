package cli

import (
	"github.com/spf13/cobra"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kind"
)

// newClusterKindCommand is what the provider kind calls: a process that can be killed,
// unlike a call of kind's library.
func newClusterKindCommand(s *Surroundings) *cobra.Command {
	return &cobra.Command{
		Use:    kind.Command + " FOLDER",
		Short:  "Make the one call of kind that standard input says, for the cluster in a folder",
		Args:   usageArgs(cobra.ExactArgs(1)),
		Hidden: true,
		RunE:   func(*cobra.Command, []string) error { return kind.Child(s.Stdin, s.Stderr) },
	}
}
