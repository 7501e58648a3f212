package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/config"
	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/generated"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/testgrid"
)

func newGenerateCommand(s *Surroundings) *cobra.Command {
	return group(&cobra.Command{
		Use:   "generate",
		Short: "Make Prow jobs, TestGrid dashboards and workflows from op-readiness.yaml",
		Example: `  op-readiness generate prow
  op-readiness generate workflows --diff
  op-readiness generate testgrid --verify`,
	}, newGenerateProwCommand(s), newGenerateTestGridCommand(s), newGenerateWorkflowsCommand(s))
}

// generateOptions are the flags of all generators.
type generateOptions struct {
	Config string
	Verify bool
	Diff   bool
}

func (o *generateOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Config, "config", config.DefaultPath, "the configuration to generate from")
	flags.BoolVar(&o.Verify, "verify", false, "write nothing; print the differences and fail if there are any")
	flags.BoolVar(&o.Diff, "diff", false, "write nothing; print the differences")
}

// Validate reports every flag that is wrong.
func (o *generateOptions) Validate() error {
	if o.Verify && o.Diff {
		return errors.New("--verify and --diff: give one; --verify prints the differences, too")
	}
	return nil
}

// emit writes the files, or, with --verify and --diff, says in what those that
// are there differ. command is how to make them anew. Where one may not be
// written over, none is.
func (o *generateOptions) emit(s *Surroundings, command string, files []generated.File) error {
	changes, err := generated.Changes(files)
	if err != nil {
		return err
	}
	there := 0
	for _, f := range files {
		if f.Data != nil {
			there++
		}
	}
	for _, c := range changes {
		if o.Verify || o.Diff {
			if _, err := s.Stdout.Write(c.Diff()); err != nil {
				return err
			}
			continue
		}
		done, err := c.Apply()
		if err != nil {
			return err
		}
		fmt.Fprintln(s.Stderr, done)
	}
	switch {
	case len(changes) > 0 && o.Verify:
		fmt.Fprintf(s.Stderr, "%d of %d generated files are out of date: run '%s' and commit\n", len(changes), max(there, len(changes)), command)
		return exitWith(verdict.ExitUsage)
	case len(changes) == 0:
		fmt.Fprintf(s.Stderr, "%s up to date\n", areFiles(files, there))
	}
	return nil
}

var errNoFolder = errors.New("--dir -: standard output is not a folder to compare with; name one, or leave --verify and --diff out")

// emitInto is emit for files of one folder: dir, or, without it, that of the
// given name beside the configuration. "-" is standard output, where they are
// the documents of one stream. what is the subcommand's name.
func (o *generateOptions) emitInto(s *Surroundings, what, dir, folder string, files []generated.File) error {
	command := "op-readiness generate " + what
	if o.Config != config.DefaultPath {
		command += " --config " + o.Config
	}
	switch dir {
	case "-":
		return show(s, files)
	case "":
		dir = filepath.Join(filepath.Dir(o.Config), folder)
	default:
		command += " --dir " + dir
	}
	for i := range files {
		files[i].Name = filepath.Join(dir, files[i].Name)
	}
	return o.emit(s, command, files)
}

// show prints the files that there are.
func show(s *Surroundings, files []generated.File) error {
	separator := ""
	for _, f := range files {
		if f.Data == nil {
			continue
		}
		if _, err := fmt.Fprintf(s.Stdout, "%s%s", separator, f.Data); err != nil {
			return err
		}
		separator = "---\n"
	}
	return nil
}

func areFiles(files []generated.File, there int) string {
	if len(files) == 1 {
		return files[0].Name + " is"
	}
	return fmt.Sprintf("%d generated files are", there)
}

type generateTestGridOptions struct {
	generateOptions
	File string
}

func newGenerateTestGridCommand(s *Surroundings) *cobra.Command {
	var o generateTestGridOptions
	cmd := &cobra.Command{
		Use:   "testgrid",
		Short: "Make TestGrid's configuration: test groups, dashboards and their tabs",
		Long: `Make TestGrid's configuration from op-readiness.yaml: a test group per job, one
tab per cell of the matrix, one view per category across all cells, and the dashboard
group around them. The result is validated by TestGrid's own code, and by the
stricter rules of testgrid.k8s.io and kubernetes/test-infra.

The file is written beside op-readiness.yaml, into ` + testgrid.ConfigPath + `.`,
		Example: `  op-readiness generate testgrid
  op-readiness generate testgrid --verify
  op-readiness generate testgrid --file - | less`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return o.run(s) },
	}
	o.addFlags(cmd.Flags())
	cmd.Flags().StringVar(&o.File, "file", "", "file to write; - is standard output (default "+testgrid.ConfigPath+" beside the configuration)")
	return cmd
}

// Validate reports every flag that is wrong.
func (o *generateTestGridOptions) Validate() error {
	if o.File == "-" && (o.Verify || o.Diff) {
		return errors.New("--file -: standard output is not a file to compare with; name one, or leave --verify and --diff out")
	}
	return o.generateOptions.Validate()
}

func (o *generateTestGridOptions) run(s *Surroundings) error {
	if err := usage(o.Validate()); err != nil {
		return err
	}
	c, err := loadConfig(s, o.Config)
	if err != nil {
		return err
	}
	data, err := testgrid.Render(c)
	if err != nil {
		return usageErrorf("%w", err)
	}
	file := o.File
	switch file {
	case "-":
		_, err := s.Stdout.Write(data)
		return err
	case "":
		file = filepath.Join(filepath.Dir(o.Config), filepath.FromSlash(testgrid.ConfigPath))
	}
	command := []string{"op-readiness generate testgrid"}
	if o.Config != config.DefaultPath {
		command = append(command, "--config", o.Config)
	}
	if o.File != "" {
		command = append(command, "--file", o.File)
	}
	return o.emit(s, strings.Join(command, " "), []generated.File{{Name: file, Data: data}})
}
