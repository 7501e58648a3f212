package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/workflows"
)

type generateWorkflowsOptions struct {
	generateOptions
	Dir string
}

func newGenerateWorkflowsCommand(s *Surroundings) *cobra.Command {
	var o generateWorkflowsOptions
	cmd := &cobra.Command{
		Use:   "workflows",
		Short: "Make GitHub workflows: for pull requests, by the clock, and the one that comments",
		Long: `Make GitHub's workflows from op-readiness.yaml: one that runs for pull requests,
one that runs by the clock, a job per cell of the matrix, and the trusted one that
comments on pull requests, also on those from forks. They call the reusable
workflows of github.uses, each job with the permissions that it needs and no
other.

One file for each is written into the folder ` + workflows.Folder + ` beside op-readiness.yaml.
What an earlier configuration left there, and this one does not make, is removed.`,
		Example: `  op-readiness generate workflows
  op-readiness generate workflows --verify
  op-readiness generate workflows --dir - | less`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return o.run(s) },
	}
	o.addFlags(cmd.Flags())
	cmd.Flags().StringVar(&o.Dir, "dir", "", "folder to write to; - is standard output (default "+workflows.Folder+" beside the configuration)")
	return cmd
}

// Validate reports every flag that is wrong.
func (o *generateWorkflowsOptions) Validate() error {
	var err error
	if o.Dir == "-" && (o.Verify || o.Diff) {
		err = errNoFolder
	}
	return errors.Join(err, o.generateOptions.Validate())
}

func (o *generateWorkflowsOptions) run(s *Surroundings) error {
	if err := usage(o.Validate()); err != nil {
		return err
	}
	c, err := loadConfig(s, o.Config)
	if err != nil {
		return err
	}
	files, err := workflows.Render(c)
	if err != nil {
		return configError(o.Config, err)
	}
	return o.emitInto(s, "workflows", o.Dir, workflows.Folder, files)
}
