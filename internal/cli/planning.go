package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/windows-op-readiness/windows-op-readiness/internal/assess"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
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
	Trial        bool
	SpecDir      string
	Provider     string
	E2EBinary    string
	SuiteBinary  string
	Shards       int
	Shared       bool
	DurationsDir string
	RuntimeClass string

	selection result.Selection
}

func (o *planOptions) addFlags(cmd *cobra.Command, defaultVersion string) {
	f := cmd.Flags()
	o.addTalkFlags(f)
	f.StringSliceVar(&o.Cases, "case", nil, "only cases with these ids; may be repeated")
	f.StringSliceVar(&o.Labels, "label", nil, "only cases with one of these labels")
	f.StringSliceVar(&o.Capabilities, "capability", nil, "only cases that need one of these capabilities")
	f.BoolVar(&o.Additional, "additional", false, "also tests beyond the standard; they never gate")
	f.BoolVar(&o.Trial, "trial", false, "also cases whose tests nobody has seen pass and fail on real Windows nodes yet; they decide nothing, and some change nodes for a moment")
	f.StringVar(&o.SuiteBinary, "suite-binary", "", "op-readiness.test to use (default one from the cache, built)")
	f.IntVar(&o.Shards, "shards", 1, "into how many shards the plan is cut")
	f.BoolVar(&o.Shared, "shared", true, "the shards are at work on one cluster, where some tests wait for each other; with --cluster each has its own. The same for all shards of a run")
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
	o.selection = result.Selection{Cases: o.Cases, Labels: o.Labels, Capabilities: o.Capabilities, Additional: o.Additional, Trial: o.Trial}
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

// planning is what the flags say, for package assess.
func (o *planOptions) planning(s *Surroundings) (*assess.Planning, error) {
	store, err := o.store(s)
	if err != nil {
		return nil, err
	}
	return &assess.Planning{
		SpecDir:           o.SpecDir,
		Selection:         o.selection,
		KubernetesVersion: o.KubernetesVersion,
		E2EBinary:         o.E2EBinary,
		SuiteBinary:       o.SuiteBinary,
		Binaries:          store,
		Provider:          o.Provider,
		RuntimeClass:      o.RuntimeClass,
		Shards:            o.Shards,
		Shared:            o.Shared,
		Durations:         o.DurationsDir,
		Notes:             s.Stderr,
	}, nil
}
