// Package cli is the command line of op-readiness: one file per verb, flags and
// wiring only. What a command does lives in the packages below.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/redact"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/actions"
	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Surroundings is everything of the outside world that a command may touch
// without being told where it is by a flag.
type Surroundings struct {
	// Environ is the environment, as "KEY=value".
	Environ []string
	Stdin   io.Reader
	// Stdout takes the result of a command, Stderr its narration.
	Stdout, Stderr io.Writer
	// Signals are requests to stop. The first one stops a run gracefully, and
	// any other command at once; the same one again stops a run at once, too.
	// May be nil.
	Signals <-chan os.Signal

	// stop is closed by the first signal.
	stop chan struct{}
	// began says that a command has begun to run: flags and arguments were
	// such that there is one.
	began bool
}

// Getenv returns the value of the environment variable key, or "".
func (s *Surroundings) Getenv(key string) string {
	for i := len(s.Environ) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(s.Environ[i], "="); ok && k == key {
			return v
		}
	}
	return ""
}

// exitError carries the exit code that an error stands for. A nil cause means
// that the command has already said all there is to say.
type exitError struct {
	code  int
	cause error
}

func (e *exitError) Error() string {
	if e.cause == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.cause.Error()
}

func (e *exitError) Unwrap() error { return e.cause }

// usageErrorf reports wrong flags, configuration or spec files: exit code 2.
func usageErrorf(format string, args ...any) error {
	return &exitError{code: verdict.ExitUsage, cause: fmt.Errorf(format, args...)}
}

// usage is nil where nothing is wrong with flags, else all that is, with exit
// code 2.
func usage(problems ...error) error {
	if err := errors.Join(problems...); err != nil {
		return usageErrorf("%w", err)
	}
	return nil
}

// exitWith ends a command whose output already tells why with code.
func exitWith(code int) error {
	if code == verdict.ExitReady {
		return nil
	}
	return &exitError{code: code}
}

// Main runs op-readiness with args (without the program's name) and returns
// its exit code. It does not touch the process: the caller exits.
func Main(ctx context.Context, args []string, s Surroundings) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.stop = make(chan struct{})
	if s.Getenv("GITHUB_ACTIONS") == "true" {
		out, errs := actions.NewLog(s.Stdout), actions.NewLog(s.Stderr)
		defer out.Close()
		defer errs.Close()
		s.Stderr = errs
		if !isFile(s.Stdout) {
			s.Stdout = out
		}
	} else if _, ok := s.Stderr.(*os.File); !ok {
		s.Stderr = &shared{w: s.Stderr}
	}
	if !isUtility(args) {
		go s.listen(ctx, cancel)
	}
	root := newRootCommand(&s)
	root.SetArgs(args)
	root.SetIn(s.Stdin)
	root.SetOut(s.Stdout)
	root.SetErr(s.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return verdict.ExitReady
	}
	var exit *exitError
	var usage *verdict.UsageError
	switch {
	case errors.As(err, &exit):
	case errors.As(err, &usage), !s.began:
		exit = &exitError{code: verdict.ExitUsage, cause: err}
	default:
		exit = &exitError{code: verdict.ExitInconclusive, cause: err}
	}
	if exit.cause != nil {
		fmt.Fprintf(s.Stderr, "op-readiness: %s\n", shown.Lines(redact.String(err.Error())))
	}
	return exit.code
}

// Process runs op-readiness as this process, with its arguments, environment,
// streams and signals, and returns its exit code.
func Process() int {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	return Main(context.Background(), os.Args[1:], Surroundings{
		Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Signals: signals,
	})
}

// isFile reports whether what is written becomes a file, and no log.
func isFile(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}

// shared lets several goroutines write to one writer, as they may to a file.
type shared struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}

// listen turns the first signal into stop, and the same one again into the end
// of ctx. Another one is the same request: Prow passes the SIGTERM of an abort on
// as SIGINT and SIGTERM.
func (s *Surroundings) listen(ctx context.Context, cancel context.CancelFunc) {
	seen := map[os.Signal]bool{}
	for {
		select {
		case <-ctx.Done():
			return
		case sig := <-s.Signals:
			if seen[sig] {
				cancel()
				return
			}
			if len(seen) == 0 {
				fmt.Fprintf(s.Stderr, "op-readiness: %v: stopping; a second signal stops at once\n", sig)
				close(s.stop)
			}
			seen[sig] = true
		}
	}
}

// untilStop returns a context that ends with ctx, and with the first signal.
func (s *Surroundings) untilStop(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		select {
		case <-s.stop:
		case <-ctx.Done():
		}
	}()
	return ctx
}

// stopsGracefully marks, in a command's annotations, one that heeds
// Surroundings.stop itself.
const stopsGracefully = "stopsGracefully"

// Root returns the command line, for what describes it. It is not to be run.
//
//go:generate go run ../../docs/generate ../../docs/cli
func Root() *cobra.Command { return newRootCommand(&Surroundings{}) }

func newRootCommand(s *Surroundings) *cobra.Command {
	var o runOptions
	root := &cobra.Command{
		Use:   "op-readiness",
		Short: "Is this Kubernetes cluster operationally ready for Windows, and what is the proof?",
		Long: `op-readiness runs the Windows Operational Readiness standard (KEP-2578) with
Kubernetes' own e2e.test, and gives a verdict with the evidence beside it.

With any of its own flags, and without a command, it does what 'run' does.`,
		Example: `  op-readiness run --report-dir results
  op-readiness --category Core.Network --kubeconfig ~/.kube/config --report-dir results`,
		Version:       toolVersion(),
		Args:          unknownCommand,
		Annotations:   map[string]string{stopsGracefully: "true"},
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().NFlag() == 0 {
				return cmd.Help()
			}
			return o.run(cmd, s)
		},
	}
	o.addBareFlags(root)
	root.SetVersionTemplate("op-readiness {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		hint := ""
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) {
			hint = didYouMeanFlag(cmd, unknown.GetSpecifiedName())
		}
		return usageErrorf("%w%s\nSee '%s --help'", err, hint, cmd.CommandPath())
	})
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		s.began = true
		if cmd.Annotations[stopsGracefully] == "" {
			cmd.SetContext(s.untilStop(cmd.Context()))
		}
		return nil
	}
	root.AddCommand(
		newRunCommand(s),
		newPlanCommand(s),
		newPreflightCommand(s),
		newMergeCommand(s),
		newReportCommand(s),
		newCommentCommand(s),
		newPublishCommand(s),
		newTestGridCommand(s),
		newE2ECommand(s),
		newClusterCommand(s),
		newSpecsCommand(s),
		newConfigCommand(s),
		newGenerateCommand(s),
		newProwCommand(s),
		newMaskCommand(s),
		newVersionCommand(s),
	)
	return root
}

// addBareFlags adds all flags of 'run'; the help shows those of the talk.
func (o *runOptions) addBareFlags(root *cobra.Command) {
	o.addFlags(root)
	var talk runOptions
	shown := pflag.NewFlagSet("", pflag.ContinueOnError)
	talk.planOptions.addTalkFlags(shown)
	talk.addTalkFlags(shown)
	root.Flags().VisitAll(func(f *pflag.Flag) { f.Hidden = f.Hidden || shown.Lookup(f.Name) == nil })
}

// didYouMeanFlag suggests the flag of a command that is called most alike.
func didYouMeanFlag(cmd *cobra.Command, name string) string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	return didYouMean("--"+name, names)
}

// flagForArgument refuses arguments, and says which flag takes them.
func flagForArgument(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case asFlag(args[0]) != "":
		return usageErrorf("%q is not taken by itself: write '%s %s'", args[0], cmd.CommandPath(), asFlag(args[0]))
	}
	return usageErrorf("'%s' takes flags only, and not %q: categories are chosen with --category, cases with --case\nSee '%[1]s --help'", cmd.CommandPath(), args[0])
}

// asFlag is the flag that selects what a word of the standard names, "" for none.
func asFlag(word string) string {
	if category, err := specs.ParseCategory(word); err == nil {
		return "--category " + string(category)
	}
	standard, err := specs.Embedded()
	if err == nil && slices.ContainsFunc(standard.Cases, func(c specs.Case) bool { return c.ID == word }) {
		return "--case " + word
	}
	return ""
}

// unknownCommand refuses arguments of the bare command: they are commands that
// it does not have.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if flag := asFlag(args[0]); flag != "" {
		return usageErrorf("%q is not a command: write '%s run %s'", args[0], cmd.CommandPath(), flag)
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	slices.Sort(names)
	return usageErrorf("unknown command %q%s\nCommands: %s", args[0], didYouMean(args[0], names), strings.Join(names, ", "))
}

// group makes a command that only has others, and shows their help.
func group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.Args = usageArgs(cobra.NoArgs)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(commands...)
	return cmd
}

func newVersionCommand(s *Surroundings) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of op-readiness",
		Example: "  op-readiness version",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(s.Stdout, "op-readiness", toolVersion())
			return err
		},
	}
}
