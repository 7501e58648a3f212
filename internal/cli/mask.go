package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/windows-op-readiness/windows-op-readiness/internal/redact"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/actions"
)

// maxKubeconfig is more than any kubeconfig has.
const maxKubeconfig = 8 << 20

// newMaskCommand is for the action, which has the kubeconfig as content.
func newMaskCommand(s *Surroundings) *cobra.Command {
	return &cobra.Command{
		Use:    "mask",
		Short:  "Have the runner of GitHub Actions mask what is secret in the kubeconfig on standard input",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(*cobra.Command, []string) error {
			data, err := io.ReadAll(io.LimitReader(s.Stdin, maxKubeconfig+1))
			if err != nil {
				return fmt.Errorf("reading the kubeconfig: %w", err)
			}
			if len(data) > maxKubeconfig {
				return usageErrorf("kubeconfig: it is over %d MiB", maxKubeconfig>>20)
			}
			secrets, err := redact.Kubeconfig(data)
			if err != nil {
				return usageErrorf("kubeconfig: its secrets cannot be masked, so it is not used: %w", err)
			}
			return actions.Mask(s.Stdout, secrets)
		},
	}
}
