package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/windows-op-readiness/windows-op-readiness/internal/assess"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/preflight"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/preflight/probe"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

type preflightOptions struct {
	Kubeconfig string
	Context    string
	AirGapped  bool
	Without    []string
	Kubectl    string
	Provider   string
	SpecDir    string
	Probe      bool
	Limit      time.Duration
	E2EBinary  string
	RepoList   string
	DNSDomain  string
	storeOptions
	PrintRBAC bool
	Output    string
}

func newPreflightCommand(s *Surroundings) *cobra.Command {
	var o preflightOptions
	cmd := &cobra.Command{
		Use:   "preflight",
		Short: "Can this cluster be tested? Facts, capabilities, what is missing",
		Long: `Say before a run whether a cluster can be tested: what is there, how that was
found out, and what to do about what is missing. What could not be read is
unknown, never absent.

Nothing is made in the cluster, unless you say --probe: then pods on one node of
each Windows build, and on a Linux worker, find out what only pods can tell:
whether nodes pull the test images and how long that takes, whether cluster DNS
answers, whether pods reach the internet, whether HostProcess containers and pods
of runtime classes start, and whether NetworkPolicy is enforced. They run in a
namespace of their own, which is removed.

Exit codes: 0 nothing keeps the cluster from being judged ready; 2 wrong usage;
3 something does, or the API server does not answer.`,
		Example: `  op-readiness preflight
  op-readiness preflight --air-gapped --without gmsa -o markdown
  op-readiness preflight --probe
  op-readiness preflight --print-rbac | kubectl apply -f -`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			for _, flag := range []string{"probe", "output"} {
				if o.PrintRBAC && cmd.Flags().Changed(flag) {
					return usageErrorf("--print-rbac prints YAML and does nothing else: leave --%s out", flag)
				}
			}
			return o.run(cmd, s)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig of the cluster (default $KUBECONFIG, ~/.kube/config, the pod's own cluster)")
	f.StringVar(&o.Context, "context", "", "context of the kubeconfig (default its current one)")
	f.BoolVar(&o.AirGapped, "air-gapped", false, "declare that the cluster has no way to the internet")
	f.StringSliceVar(&o.Without, "without", nil, "declare that the cluster does not have this capability; may be repeated")
	f.StringVar(&o.Kubectl, "kubectl", "", "kubectl that tests run (default the one on the path)")
	f.StringVar(&o.Provider, "provider", e2e.DefaultProvider, "the e2e framework's provider: "+strings.Join(e2e.Providers(), ", "))
	f.BoolVar(&o.Probe, "probe", false, "let pods find out what the API does not show")
	f.DurationVar(&o.Limit, "probe-timeout", probe.DefaultLimit, "how long all probes may take, pulling images included")
	f.StringVar(&o.E2EBinary, "e2e-binary", "", "e2e.test that names the images for --probe (default one from the cache, fetched or built)")
	f.StringVar(&o.RepoList, "kube-test-repo-list", "", "file that overrides the registries of test images")
	f.StringVar(&o.DNSDomain, "dns-domain", "", "DNS domain of the cluster (default cluster.local)")
	f.StringVar(&o.Source, "source", string(binaries.Auto), "where e2e.test comes from: auto, release or build")
	o.addCacheFlag(cmd)
	f.BoolVar(&o.PrintRBAC, "print-rbac", false, "print the ClusterRole of who may run the tests, and do nothing else")
	f.StringVarP(&o.Output, "output", "o", string(report.FormatTable), "output format: table, json or markdown")
	addSpecDirFlag(cmd.Flags(), &o.SpecDir)
	return cmd
}

func (o *preflightOptions) validate() error {
	if err := checkWithout(o.Without); err != nil {
		return err
	}
	if !slices.Contains(e2e.Providers(), o.Provider) {
		return usageErrorf("--provider: unknown provider %q%s", o.Provider, knownAre(o.Provider, e2e.Providers()))
	}
	if !slices.Contains(preflight.Formats(), report.Format(o.Output)) {
		return usageErrorf("--output: unknown format %q: use table, json, markdown", o.Output)
	}
	if o.Limit < time.Second {
		return usageErrorf("--probe-timeout: at least 1s, not %s", o.Limit)
	}
	if _, err := binaries.ParseSource(o.Source); err != nil {
		return usageErrorf("--source: %w", err)
	}
	if o.Kubectl != "" {
		if _, err := exec.LookPath(o.Kubectl); err != nil {
			return usageErrorf("--kubectl: %w", err)
		}
	}
	return nil
}

func (o *preflightOptions) run(cmd *cobra.Command, s *Surroundings) error {
	if o.PrintRBAC {
		return preflight.WriteRole(s.Stdout)
	}
	target, err := cluster.Locate(o.Kubeconfig, o.Context, s.Getenv)
	if err != nil {
		return usageErrorf("%w", err)
	}
	c, err := cluster.Connect(target)
	if err != nil {
		return usageErrorf("%w", err)
	}
	facts, err := preflight.Gather(cmd.Context(), c)
	if err != nil {
		return interrupted(cmd.Context(), err)
	}
	facts.Kubectl, facts.Provider = cmp.Or(o.Kubectl, cluster.Kubectl()), o.Provider
	facts.Declared = result.Declarations{AirGapped: o.AirGapped, Without: o.Without}
	facts.Catalogues = specs.Catalogues()
	if err := assess.AddStandard(facts, &assess.Planning{SpecDir: o.SpecDir, Notes: s.Stderr}); err != nil {
		return err
	}
	if o.Probe {
		if err := o.probe(cmd.Context(), s, c, facts); err != nil {
			return err
		}
	}
	r := preflight.ReportOf(c.Server, facts)
	if s.Getenv("GITHUB_ACTIONS") == "true" {
		if err := annotate(s, s.Stderr, func(w io.Writer) error { return annotateFindings(w, r) }); err != nil {
			return fmt.Errorf("writing annotations: %w", err)
		}
	}
	if err := r.Write(s.Stdout, report.Format(o.Output)); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return exitWith(r.ExitCode)
}

// probe lets pods find out what the API does not show, unless another run has
// the cluster.
func (o *preflightOptions) probe(ctx context.Context, s *Surroundings, c *cluster.Cluster, facts *preflight.Facts) error {
	if held := facts.Held.Value; held != nil && !held.Late(facts.Now) {
		facts.Probes = preflight.Probes{Made: true, Err: errors.New(held.Who() + ", which pods would disturb")}
		return nil
	}
	p := preflight.Probing{
		ID: "preflight-" + assess.RandomHex(), RepoList: o.RepoList, DNSDomain: o.DNSDomain, Limit: o.Limit,
		Wants: func(string) bool { return true },
		Note:  func(text string) { fmt.Fprintln(s.Stderr, text) },
	}
	if len(facts.ProbeTargets()) > 0 {
		version, err := specs.ParseVersion(facts.Version.Value)
		if err != nil && o.E2EBinary == "" {
			return usageErrorf("which e2e.test names the images is not known, for %w: name one with --e2e-binary", err)
		}
		planning, err := (&planOptions{storeOptions: o.storeOptions, E2EBinary: o.E2EBinary}).planning(s)
		if err != nil {
			return err
		}
		if p.Images, err = planning.Binary(ctx, "v"+version.String()); err != nil {
			return interrupted(ctx, err)
		}
	}
	return interrupted(ctx, preflight.RunProbes(ctx, c.Client(), facts, p))
}
