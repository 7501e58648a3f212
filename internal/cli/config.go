package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/config"
	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/workflows"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/jobs"
	"github.com/windows-op-readiness/windows-op-readiness/testgrid"
)

func newConfigCommand(s *Surroundings) *cobra.Command {
	return group(&cobra.Command{
		Use:   "config",
		Short: "Write, check and describe op-readiness.yaml, from which CI is generated",
		Long: `Write, check and describe op-readiness.yaml: the one file from which
'op-readiness generate' makes Prow jobs, TestGrid dashboards and GitHub workflows.`,
		Example: `  op-readiness config init
  op-readiness config validate`,
	}, newConfigInitCommand(s), newConfigSchemaCommand(s), newConfigValidateCommand(s))
}

func newConfigInitCommand(s *Surroundings) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write a commented op-readiness.yaml to start from",
		Long: `Write a commented op-readiness.yaml to start from. It asks nothing: the
repository is the GitHub remote of the folder, where it has one.

A file that is there stays, unless --force is given.`,
		Example: `  op-readiness config init
  op-readiness config init ci/op-readiness.yaml`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			path := configPath(args)
			flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
			if force {
				flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return usageErrorf("writing the configuration: %w", err)
			}
			f, err := os.OpenFile(path, flags, 0o644)
			if errors.Is(err, fs.ErrExist) {
				return usageErrorf("%s is there already, and stays: give another name, or --force to write over it", path)
			}
			if err != nil {
				return usageErrorf("writing the configuration: %w", err)
			}
			_, err = f.Write(config.Starter(filepath.Dir(path)))
			if err := errors.Join(err, f.Close()); err != nil {
				return fmt.Errorf("writing the configuration: %w", err)
			}
			fmt.Fprintf(s.Stderr, "Wrote %s. Fill it in, then: op-readiness config validate %s\n", path, path)
			return nil
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "write over a file that is there")
	return cmd
}

func configPath(args []string) string {
	if len(args) > 0 {
		return args[0]
	}
	return config.DefaultPath
}

func newConfigSchemaCommand(s *Surroundings) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of op-readiness.yaml",
		Long: `Print the JSON Schema (draft 2020-12) of op-readiness.yaml, with a description
of every field, or the same as a Markdown page. Editors that know schemas complete
and check the file with it.`,
		Example: `  op-readiness config schema > op-readiness.schema.json
  op-readiness config schema -o markdown`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			data := config.Schema()
			switch report.Format(output) {
			case report.FormatJSON:
			case report.FormatMarkdown:
				data = config.Reference()
			default:
				return usageErrorf("--output %q is unknown: use json or markdown", output)
			}
			_, err := s.Stdout.Write(data)
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", string(report.FormatJSON), "output format: json or markdown")
	return cmd
}

func newConfigValidateCommand(s *Surroundings) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "validate [FILE]",
		Short: "Check op-readiness.yaml, and list the jobs that follow from it",
		Long: `Check op-readiness.yaml, and list the jobs that follow from it, with the cell of
the matrix that each tests and when it runs.

Everything that is wrong is printed at once, with file and line; of very much, the
first. Exit code 2 means that there is something. What is accepted, the generators
accept, too: those that it has sections for are tried, and nothing is written.

FILE - is standard input.`,
		Example: `  op-readiness config validate
  op-readiness config validate ci/op-readiness.yaml -o json
  envsubst < template.yaml | op-readiness config validate -`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := validateOutput(output); err != nil {
				return usageErrorf("%w", err)
			}
			c, err := loadConfig(s, configPath(args))
			if err != nil {
				return err
			}
			if err := tryGenerators(s, c); err != nil {
				return err
			}
			all := c.Jobs()
			fmt.Fprintf(s.Stderr, "%s: no problems found: %s, %s\n", c.Path(), text.Count(len(c.Cells()), "cell"), text.Count(len(all), "job"))
			return config.Table(all).Write(s.Stdout, report.Format(output))
		},
	}
	addOutputFlag(cmd, &output)
	return cmd
}

// tryGenerators says what the generators refuse of a configuration.
func tryGenerators(s *Surroundings, c *config.Config) error {
	var wrong error
	if c.Prow != nil {
		_, err := jobs.Render(c)
		if err == nil {
			var cost *jobs.Cost
			if cost, err = jobs.CostOf(c); err == nil {
				err = cost.Check(c)
			}
		}
		if err != nil {
			wrong = configError(c.Path(), err)
		}
	}
	if c.GitHub != nil {
		if _, err := workflows.Render(c); err != nil {
			wrong = errors.Join(wrong, configError(c.Path(), err))
		}
	}
	published := slices.ContainsFunc(c.Jobs(), func(j config.Job) bool { return j.Published })
	if !published || !strings.HasPrefix(c.Results.Bucket, "gs://") {
		fmt.Fprintln(s.Stderr, "note: there is nothing for 'generate testgrid': TestGrid shows what is published in a bucket of Google Cloud Storage (results.bucket)")
		return wrong
	}
	if _, err := testgrid.Render(c); err != nil {
		wrong = errors.Join(wrong, usageErrorf("%w", err))
	}
	return wrong
}

// readConfig reads op-readiness.yaml; - is standard input, whose end a signal
// does not wait for.
func readConfig(s *Surroundings, path string) (*config.Config, error) {
	if path != "-" {
		return config.Load(path)
	}
	type read struct {
		c   *config.Config
		err error
	}
	done := make(chan read, 1)
	go func() {
		c, err := config.Read("standard input", s.Stdin)
		done <- read{c, err}
	}()
	select {
	case r := <-done:
		return r.c, r.err
	case <-s.stop:
		return nil, errInterrupted
	}
}

var errInterrupted = errors.New("interrupted while reading standard input")

// loadConfig reads op-readiness.yaml and narrates its warnings. What is wrong
// with the file is a usage error, with all of it.
func loadConfig(s *Surroundings, path string) (*config.Config, error) {
	c, err := readConfig(s, path)
	var problems config.Problems
	switch {
	case errors.As(err, &problems):
		return nil, usageErrorf("%s in %s:\n%w", text.Count(problems.Count(), "problem"), problems[0].File, problems)
	case errors.Is(err, errInterrupted):
		return nil, &exitError{code: verdict.ExitInterrupted, cause: err}
	case err != nil:
		return nil, usageErrorf("%w", err)
	}
	for _, w := range c.Warnings() {
		fmt.Fprintf(s.Stderr, "warning: %s: %s\n", c.Path(), w)
	}
	return c, nil
}
