package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/windows-op-readiness/windows-op-readiness/internal/assess"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

func newSpecsCommand(s *Surroundings) *cobra.Command {
	return group(&cobra.Command{
		Use:   "specs",
		Short: "Show and check the standard: its requirements and the tests that prove them",
		Example: `  op-readiness specs list
  op-readiness specs lint --spec-dir ./specifications
  op-readiness specs coverage -o markdown`,
	}, newSpecsListCommand(s), newSpecsLintCommand(s), newSpecsCoverageCommand(s), newSpecsExportCommand(s), newSpecsDiffCommand(s))
}

// addSpecDirFlag adds --spec-dir, and the reference implementation's name for
// it.
func addSpecDirFlag(flags *pflag.FlagSet, dir *string) {
	flags.StringVar(dir, "spec-dir", "", "folder of spec files to use in place of the built-in standard")
	flags.StringVar(dir, "test-directory", "", "another name of --spec-dir")
	if err := flags.MarkHidden("test-directory"); err != nil {
		panic(err) // the flag is defined in the line above
	}
}

// addOutputFlag adds -o, --output for what [report.Table] can write.
func addOutputFlag(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", string(report.FormatTable), "output format: table, json, markdown or csv")
}

func validateOutput(output string) error {
	formats := []string{string(report.FormatTable), string(report.FormatJSON), string(report.FormatMarkdown), string(report.FormatCSV)}
	if slices.Contains(formats, output) {
		return nil
	}
	return fmt.Errorf("--output %q is unknown: use table, json, markdown or csv%s", output, didYouMean(output, formats))
}

// didYouMean is the end of an error about an unknown name, "" if nothing is
// like it.
func didYouMean(name string, allowed []string) string {
	if near := specs.Nearest(name, allowed); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return ""
}

// knownAre is the end of an error about an unknown name that lists all that are
// known.
func knownAre(name string, known []string) string {
	return cmp.Or(didYouMean(name, known), ".") + " Known: " + strings.Join(known, ", ")
}

// warnUntested says when the cases have no test for a Kubernetes version at
// all: nobody has looked, which does not mean that there is none.
func warnUntested(s *Surroundings, cases []specs.Case, version string) {
	if slices.ContainsFunc(cases, func(c specs.Case) bool { return len(c.Tests) > 0 }) {
		return
	}
	known := specs.Catalogues()
	fmt.Fprintf(s.Stderr, "warning: the standard's tests were never looked up for Kubernetes %s, so every requirement is without one: it is written for %s to %s\n",
		version, known[0], known[len(known)-1])
}

func validateVersions(flag string, versions ...string) error {
	var errs []error
	for _, v := range versions {
		if _, err := specs.ParseVersion(v); err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", flag, err))
		}
	}
	return errors.Join(errs...)
}

// specsOptions are what the commands share: which specs, for which Kubernetes
// version where it is one, and how they are shown.
type specsOptions struct {
	specDir string
	version string
	output  string
}

func (o *specsOptions) addFlags(cmd *cobra.Command) {
	addSpecDirFlag(cmd.Flags(), &o.specDir)
	addOutputFlag(cmd, &o.output)
}

type specsListOptions struct {
	specsOptions
	categories []string
	kinds      []string
}

func newSpecsListCommand(s *Surroundings) *cobra.Command {
	var o specsListOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the cases of the standard",
		Long: `List the requirements, rules and additional tests of the standard as they stand
for a Kubernetes version: how much is proven, and by how many tests.`,
		Example: `  op-readiness specs list
  op-readiness specs list --category Core.Network --kind requirement
  op-readiness specs list --kubernetes-version 1.35 -o json`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return o.run(s) },
	}
	o.addFlags(cmd)
	cmd.Flags().StringSliceVar(&o.categories, "category", nil, "only these categories, such as Core.Network (may be repeated)")
	cmd.Flags().StringSliceVar(&o.kinds, "kind", nil, "only these kinds: requirement, rule, additional, trial (may be repeated)")
	cmd.Flags().StringVar(&o.version, "kubernetes-version", assess.NewestVersion(), "Kubernetes version for which the cases hold")
	return cmd
}

// validate reports every flag that is wrong.
func (o *specsListOptions) validate() error {
	errs := []error{validateOutput(o.output), validateVersions("kubernetes-version", o.version)}
	for _, c := range o.categories {
		if _, err := specs.ParseCategory(c); err != nil {
			errs = append(errs, fmt.Errorf("--category: %w", err))
		}
	}
	kinds := []string{string(specs.Requirement), string(specs.Rule), string(specs.Additional), string(specs.Trial)}
	for _, k := range o.kinds {
		if !slices.Contains(kinds, k) {
			errs = append(errs, fmt.Errorf("--kind %q is unknown: use requirement, rule, additional or trial%s", k, didYouMean(k, kinds)))
		}
	}
	return usage(errs...)
}

func (o *specsListOptions) run(s *Surroundings) error {
	if err := o.validate(); err != nil {
		return err
	}
	set, err := assess.Specs(o.specDir, s.Stderr)
	if err != nil {
		return err
	}
	all, err := set.For(o.version)
	if err != nil {
		return usageErrorf("%w", err)
	}
	warnUntested(s, all, o.version)
	wanted := map[specs.Category]bool{}
	for _, name := range o.categories {
		c, _ := specs.ParseCategory(name)
		wanted[c] = true
	}
	cases := []specs.Case{}
	for _, c := range all {
		if (len(wanted) == 0 || wanted[c.Category]) && (len(o.kinds) == 0 || slices.Contains(o.kinds, string(c.Kind))) {
			cases = append(cases, c)
		}
	}
	return report.Cases(cases).Write(s.Stdout, report.Format(o.output))
}

type specsLintOptions struct {
	specsOptions
	versions  []string
	testLists []string
}

func newSpecsLintCommand(s *Surroundings) *cobra.Command {
	var o specsLintOptions
	cmd := &cobra.Command{
		Use:   "lint",
		Short: "Check the spec files against the tests that Kubernetes really has",
		Long: `Check the spec files, and that every case selects as many tests as it declares.
The lists of tests of some Kubernetes versions come with this program; that of
any other is what its e2e.test prints.

Every problem is printed with file and line. Exit code 2 means that there is one.`,
		Example: `  op-readiness specs lint
  op-readiness specs lint --spec-dir ./specifications --kubernetes-version 1.36.3
  e2e.test --list-tests | op-readiness specs lint --test-list -`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return o.run(s) },
	}
	o.addFlags(cmd)
	cmd.Flags().StringSliceVar(&o.versions, "kubernetes-version", nil, "check against the tests of these versions (default all that are built in: "+strings.Join(specs.Catalogues(), ", ")+")")
	cmd.Flags().StringSliceVar(&o.testLists, "test-list", nil, "check against what e2e.test --list-tests printed into this file; - is standard input")
	return cmd
}

func (o *specsLintOptions) run(s *Surroundings) error {
	if err := usage(validateOutput(o.output), validateVersions("kubernetes-version", o.versions...)); err != nil {
		return err
	}
	lists, err := o.lists(s)
	if err != nil {
		return err
	}
	set, problems := o.load(s)
	if set != nil {
		problems = specs.Lint(set, lists...)
	}
	if err := o.write(s.Stdout, problems); err != nil {
		return err
	}
	if len(problems) > 0 {
		fmt.Fprintf(s.Stderr, "%d problems in the specs%s\n", len(problems), assess.CheckedAgainst(lists))
		return exitWith(verdict.ExitUsage)
	}
	fmt.Fprintf(s.Stderr, "no problems found in %s%s\n", text.Count(len(set.Cases), "case"), assess.CheckedAgainst(lists))
	return nil
}

func (o *specsLintOptions) lists(s *Surroundings) ([]*specs.TestList, error) {
	versions := o.versions
	if len(versions) == 0 && len(o.testLists) == 0 {
		versions = specs.Catalogues()
	}
	var lists []*specs.TestList
	for _, v := range versions {
		list, err := specs.Catalogue(v)
		if err != nil {
			return nil, usageErrorf("--kubernetes-version: %w; or give what its e2e.test prints with --test-list", err)
		}
		lists = append(lists, list)
	}
	for _, name := range o.testLists {
		list, err := readTestList(s, name)
		if err != nil {
			return nil, usageErrorf("--test-list %s: %w", name, err)
		}
		lists = append(lists, list)
	}
	return lists, nil
}

func readTestList(s *Surroundings, name string) (*specs.TestList, error) {
	in := s.Stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	if in == nil {
		return nil, errors.New("there is no standard input")
	}
	return specs.ParseTestList(in)
}

// load loads the specs, or returns what is wrong with them.
func (o *specsLintOptions) load(s *Surroundings) (*specs.Set, []specs.Problem) {
	if o.specDir == "" {
		set, err := specs.Embedded()
		return set, problemsOf(err)
	}
	set, warnings, err := specs.LoadDir(o.specDir)
	for _, w := range warnings {
		fmt.Fprintf(s.Stderr, "warning: %s\n", w)
	}
	return set, problemsOf(err)
}

func problemsOf(err error) []specs.Problem {
	var problems specs.Problems
	switch {
	case errors.As(err, &problems):
		return problems
	case err != nil:
		return []specs.Problem{{Message: err.Error()}}
	}
	return nil
}

// write prints a problem per line, or in the format asked for.
func (o *specsLintOptions) write(w io.Writer, problems []specs.Problem) error {
	if o.output == string(report.FormatTable) {
		for _, p := range problems {
			if _, err := fmt.Fprintln(w, p); err != nil {
				return err
			}
		}
		return nil
	}
	return report.Problems(problems).Write(w, report.Format(o.output))
}

type specsCoverageOptions struct {
	specsOptions
	versions []string
}

func newSpecsCoverageCommand(s *Surroundings) *cobra.Command {
	var o specsCoverageOptions
	cmd := &cobra.Command{
		Use:   "coverage",
		Short: "Count how much of the standard each Kubernetes version can prove",
		Long: `Count the requirements that the tests of a Kubernetes version prove fully, in
part, and not at all. What is counted is what the tests could show: whether they
pass, a run shows. For those on trial a test is written that nobody has seen pass
and fail on real Windows nodes, so it counts for nothing yet.`,
		Example: `  op-readiness specs coverage
  op-readiness specs coverage --kubernetes-version 1.36.3 -o markdown`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return o.run(s) },
	}
	o.addFlags(cmd)
	cmd.Flags().StringSliceVar(&o.versions, "kubernetes-version", specs.Catalogues(), "Kubernetes versions to count for (may be repeated)")
	return cmd
}

func (o *specsCoverageOptions) run(s *Surroundings) error {
	if err := usage(validateOutput(o.output), validateVersions("kubernetes-version", o.versions...)); err != nil {
		return err
	}
	set, err := assess.Specs(o.specDir, s.Stderr)
	if err != nil {
		return err
	}
	all := []*specs.VersionCoverage{}
	for _, version := range o.versions {
		if cases, err := set.For(version); err == nil {
			warnUntested(s, cases, version)
		}
		c, err := specs.Cover(set, version)
		if err != nil {
			return usageErrorf("%w", err)
		}
		all = append(all, c)
		if !c.Checked {
			fmt.Fprintf(s.Stderr, "The list of tests of Kubernetes %s does not come with this program: whether it has these tests is not checked.\n", version)
		}
	}
	return report.Coverage(all).Write(s.Stdout, report.Format(o.output))
}

func newSpecsExportCommand(s *Surroundings) *cobra.Command {
	var o specsOptions
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the standard for one Kubernetes version, with focus and skip for e2e.test",
		Long: `Write the standard for one Kubernetes version as a YAML file that needs no
other tool than yq and e2e.test: each case with one focus and one skip.`,
		Example: `  op-readiness specs export --kubernetes-version 1.36.3 > readiness-1.36.3.yaml
  yq '.cases["core-network-pod-ip-win-to-linux"].focus' readiness-1.36.3.yaml`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return o.export(s) },
	}
	addSpecDirFlag(cmd.Flags(), &o.specDir)
	cmd.Flags().StringVar(&o.version, "kubernetes-version", assess.NewestVersion(), "Kubernetes version to write for")
	return cmd
}

// export writes the standard for the version.
func (o *specsOptions) export(s *Surroundings) error {
	if err := usage(validateVersions("kubernetes-version", o.version)); err != nil {
		return err
	}
	set, err := assess.Specs(o.specDir, s.Stderr)
	if err != nil {
		return err
	}
	if cases, err := set.For(o.version); err == nil {
		warnUntested(s, cases, o.version)
	}
	data, err := specs.Export(set, o.version)
	if err != nil {
		return usageErrorf("%w", err)
	}
	_, err = s.Stdout.Write(data)
	return err
}

type specsDiffOptions struct {
	specsOptions
	from, to string
}

func newSpecsDiffCommand(s *Surroundings) *cobra.Command {
	var o specsDiffOptions
	known := specs.Catalogues()
	cmd := &cobra.Command{
		Use:   "diff",
		Short: "Say what a Kubernetes upgrade changes for the standard",
		Long: `Compare the tests that the standard selects from two Kubernetes versions: which
are renamed, gone, new, or in another file. The versions are those whose lists of
tests come with this program: ` + strings.Join(known, ", ") + `.`,
		Example: `  op-readiness specs diff --from 1.35.4 --to 1.36.3
  op-readiness specs diff --from 1.35.4 --to 1.36.3 -o json`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return o.run(s) },
	}
	o.addFlags(cmd)
	cmd.Flags().StringVar(&o.from, "from", strings.TrimPrefix(known[max(0, len(known)-2)], "v"), "Kubernetes version before the upgrade")
	cmd.Flags().StringVar(&o.to, "to", assess.NewestVersion(), "Kubernetes version after the upgrade")
	return cmd
}

func (o *specsDiffOptions) run(s *Surroundings) error {
	if err := usage(validateOutput(o.output), validateVersions("from", o.from), validateVersions("to", o.to)); err != nil {
		return err
	}
	from, err := specs.Catalogue(o.from)
	if err != nil {
		return usageErrorf("--from: %w", err)
	}
	to, err := specs.Catalogue(o.to)
	if err != nil {
		return usageErrorf("--to: %w", err)
	}
	set, err := assess.Specs(o.specDir, s.Stderr)
	if err != nil {
		return err
	}
	d, err := specs.Diff(set, from, to)
	if err != nil {
		return usageErrorf("%w", err)
	}
	if len(d.Changes) > 0 || o.output != string(report.FormatTable) {
		if err := report.SpecsDiff(d).Write(s.Stdout, report.Format(o.output)); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(s.Stdout, "Nothing changes for the standard from Kubernetes %s to %s.\n", d.From, d.To)
	}
	fmt.Fprintf(s.Stderr, "Kubernetes %s has %d tests, %s has %d: %d gone, %d new.\n", d.From, d.FromTests, d.To, d.ToTests, d.Gone, d.New)
	for _, name := range d.NewWindows {
		fmt.Fprintf(s.Stderr, "New for Windows, and in no case: %s\n", name)
	}
	return nil
}
