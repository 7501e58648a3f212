package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/plan"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// planOptions are the flags that say what is tested, and with which e2e.test.
type planOptions struct {
	storeOptions
	Categories   []string
	Cases        []string
	Labels       []string
	Capabilities []string
	Additional   bool
	SpecDir      string
	Provider     string
	E2EBinary    string
	Shards       int
	DurationsDir string
	RuntimeClass string

	selection result.Selection
	set       *specs.Set // read once; nil before
}

func (o *planOptions) addFlags(cmd *cobra.Command, defaultVersion string) {
	f := cmd.Flags()
	o.addTalkFlags(f)
	f.StringSliceVar(&o.Cases, "case", nil, "only cases with these ids; may be repeated")
	f.StringSliceVar(&o.Labels, "label", nil, "only cases with one of these labels")
	f.StringSliceVar(&o.Capabilities, "capability", nil, "only cases that need one of these capabilities")
	f.BoolVar(&o.Additional, "additional", false, "also tests beyond the standard; they never gate")
	f.IntVar(&o.Shards, "shards", 1, "into how many shards the plan is cut")
	f.StringVar(&o.DurationsDir, "durations", "", "results folder that says how long tests take")
	f.StringVar(&o.RuntimeClass, "runtime-class", "", "runtime class for Windows pods, such as runhcs-wcow-process or runhcs-wcow-hypervisor")
	what := "Kubernetes version of e2e.test (default the API server's)"
	if defaultVersion != "" {
		what = "Kubernetes version of e2e.test"
	}
	f.StringVar(&o.KubernetesVersion, "kubernetes-version", defaultVersion, what)
	f.StringVar(&o.Source, "source", string(binaries.Auto), "where e2e.test comes from: auto, release or build")
	o.addCacheFlag(cmd)
}

// addTalkFlags adds the flags that the standard was presented with; the bare
// command takes them, too.
func (o *planOptions) addTalkFlags(f *pflag.FlagSet) {
	f.StringSliceVar(&o.Categories, "category", nil, "only these categories, such as Core.Network; may be repeated")
	f.StringVar(&o.Provider, "provider", e2e.DefaultProvider, "the e2e framework's provider: "+strings.Join(e2e.Providers(), ", "))
	f.StringVar(&o.E2EBinary, "e2e-binary", "", "e2e.test to use (default one from the cache, fetched or built)")
	addSpecDirFlag(f, &o.SpecDir)
}

// validate checks the flags and fills in the selection.
func (o *planOptions) validate() error {
	if o.KubernetesVersion != "" {
		if err := o.storeOptions.validate(); err != nil {
			return err
		}
	}
	if !slices.Contains(e2e.Providers(), o.Provider) {
		return usageErrorf("--provider: unknown provider %q%s (clusters are made with 'cluster up' or 'run --cluster')", o.Provider, knownAre(o.Provider, e2e.Providers()))
	}
	if o.Shards < 1 {
		return usageErrorf("--shards: a plan has at least 1 shard, not %d", o.Shards)
	}
	o.selection = result.Selection{Cases: o.Cases, Labels: o.Labels, Capabilities: o.Capabilities, Additional: o.Additional}
	for _, name := range o.Categories {
		c, err := specs.ParseCategory(name)
		if err != nil {
			return usageErrorf("--category: %w", err)
		}
		if !slices.Contains(o.selection.Categories, c) {
			o.selection.Categories = append(o.selection.Categories, c)
		}
	}
	return nil
}

// binary returns the e2e.test to use: the one that was named, or one of the
// given version from the cache.
func (o *planOptions) binary(ctx context.Context, s *Surroundings, version string) (*e2e.Binary, error) {
	path := o.E2EBinary
	if path == "" {
		store, err := o.store(s)
		if err != nil {
			return nil, err
		}
		paths, err := store.Get(ctx, version, binaries.E2ETest)
		if err != nil {
			return nil, interrupted(ctx, err)
		}
		return e2e.Open(ctx, paths[binaries.E2ETest], version)
	}
	b, err := e2e.Open(ctx, path, o.KubernetesVersion)
	if err != nil && ctx.Err() == nil {
		return nil, usageErrorf("--e2e-binary: %w", err)
	}
	return b, interrupted(ctx, err)
}

// lint checks the spec files that were named before anything is built, made or
// asked: against the tests of the e2e.test that was named, else of the version,
// else of all versions whose tests come with this program.
func (o *planOptions) lint(ctx context.Context, s *Surroundings) error {
	if o.SpecDir == "" {
		return nil
	}
	lists, err := o.testLists(ctx, s)
	if err != nil {
		return err
	}
	o.set, err = lintedSpecs(s, o.SpecDir, lists)
	return err
}

func (o *planOptions) testLists(ctx context.Context, s *Surroundings) ([]*specs.TestList, error) {
	switch {
	case o.E2EBinary != "":
		binary, err := o.binary(ctx, s, o.KubernetesVersion)
		if err != nil {
			return nil, err
		}
		list, err := binary.List(ctx)
		return []*specs.TestList{list}, interrupted(ctx, err)
	case o.KubernetesVersion != "":
		list, err := specs.Catalogue(o.KubernetesVersion)
		if err != nil {
			return nil, nil //nolint:nilerr // its tests are known when there is its e2e.test
		}
		return []*specs.TestList{list}, nil
	}
	return (&specsLintOptions{}).lists(s)
}

// standard returns the cases that hold for a Kubernetes version.
func (o *planOptions) standard(s *Surroundings, version string) ([]specs.Case, error) {
	if o.set == nil {
		set, err := loadSpecs(s, o.SpecDir)
		if err != nil {
			return nil, err
		}
		o.set = set
	}
	cases, err := o.set.For(version)
	if err != nil {
		return nil, usageErrorf("%w", err)
	}
	return cases, nil
}

// checkVersion refuses a Kubernetes version against which no case was checked.
// Spec files that are brought know themselves for which versions they are.
func (o *planOptions) checkVersion(version string) (note string, err error) {
	note, err = specs.CheckVersion(version)
	if err != nil && o.SpecDir == "" {
		return "", usageErrorf("%w", err)
	}
	return note, nil
}

// checkSelection finds names that are wrong before anything is made or asked.
// The ids of cases are the same for all Kubernetes versions.
func (o *planOptions) checkSelection(s *Surroundings) error {
	cases, err := o.standard(s, newestVersion())
	if err != nil {
		return err
	}
	if _, err := plan.Select(cases, &o.selection); err != nil {
		return usageErrorf("%w", err)
	}
	return nil
}

// plan makes the plan for the tests that a binary has.
func (o *planOptions) plan(ctx context.Context, s *Surroundings, binary *e2e.Binary) (*result.Plan, error) {
	tests, err := binary.List(ctx)
	if err != nil {
		return nil, interrupted(ctx, err)
	}
	return o.planFor(s, tests)
}

func (o *planOptions) planFor(s *Surroundings, tests *specs.TestList) (*result.Plan, error) {
	note, err := o.checkVersion(tests.Version)
	if err != nil {
		return nil, err
	}
	if note != "" {
		fmt.Fprintf(s.Stderr, "warning: %s\n", note)
	}
	cases, err := o.standard(s, tests.Version)
	if err != nil {
		return nil, err
	}
	if tested := func(c specs.Case) bool { return len(c.Tests) > 0 }; !slices.ContainsFunc(cases, tested) && slices.ContainsFunc(o.set.Cases, tested) {
		return nil, usageErrorf("no case of %s has a test for Kubernetes %s", o.SpecDir, tests.Version)
	}
	durations, err := o.durations()
	if err != nil {
		return nil, err
	}
	p, err := plan.Make(plan.Request{
		Cases:     cases,
		Tests:     tests,
		Provider:  o.Provider,
		Selection: o.selection,
		Shards:    o.Shards,
		Durations: durations,

		RuntimeClass: o.RuntimeClass,
	})
	if err != nil {
		return nil, usageErrorf("%w", err)
	}
	return p, nil
}

// durations reads how long tests took in an earlier run.
func (o *planOptions) durations() (map[string]time.Duration, error) {
	if o.DurationsDir == "" {
		return nil, nil
	}
	run, err := result.Load(o.DurationsDir)
	if err != nil {
		return nil, usageErrorf("--durations: %w", err)
	}
	return run.Durations(), nil
}
