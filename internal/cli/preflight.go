package cli

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/windows-op-readiness/windows-op-readiness/internal/cluster"
	"github.com/windows-op-readiness/windows-op-readiness/internal/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/preflight"
	"github.com/windows-op-readiness/windows-op-readiness/internal/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/result"
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
	PrintRBAC  bool
	Output     string
}

func newPreflightCommand(s *Surroundings) *cobra.Command {
	var o preflightOptions
	cmd := &cobra.Command{
		Use:   "preflight",
		Short: "Can this cluster be tested? Facts, capabilities, what is missing",
		Long: `Say before a run whether a cluster can be tested: what is there, how that was
found out, and what to do about what is missing. Nothing is made in the cluster.

What could not be read is unknown, never absent. No pods are started, so what only
a pod can tell (pulling images, the internet, enforcement of NetworkPolicy) is not
found out either.

Exit codes: 0 nothing keeps the cluster from being judged ready; 2 wrong usage;
3 something does, or the API server does not answer.`,
		Example: `  op-readiness preflight
  op-readiness preflight --air-gapped --without gmsa -o markdown
  op-readiness preflight --print-rbac | kubectl apply -f -`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
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
	f.BoolVar(&o.PrintRBAC, "print-rbac", false, "print the ClusterRole of who may run the tests, and do nothing else")
	f.StringVarP(&o.Output, "output", "o", string(report.FormatTable), "output format: table, json or markdown")
	addSpecDirFlag(cmd.Flags(), &o.SpecDir)
	return cmd
}

func (o *preflightOptions) validate() error {
	var known []string
	for _, c := range specs.Capabilities() {
		known = append(known, c.Name)
	}
	for _, w := range o.Without {
		if !slices.Contains(known, w) {
			return usageErrorf("--without: unknown capability %q%s. Known: %s", w, didYouMean(w, known), strings.Join(known, ", "))
		}
	}
	if !slices.Contains(e2e.Providers(), o.Provider) {
		return usageErrorf("--provider: unknown provider %q%s. Known: %s", o.Provider, didYouMean(o.Provider, e2e.Providers()), strings.Join(e2e.Providers(), ", "))
	}
	if !slices.Contains(preflight.Formats(), report.Format(o.Output)) {
		return usageErrorf("--output: unknown format %q: choose of table, json, markdown", o.Output)
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
	set, err := loadSpecs(s, o.SpecDir)
	if err != nil {
		return err
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
	facts.Kubectl, facts.Provider = o.kubectl(), o.Provider
	facts.Declared = result.Declarations{AirGapped: o.AirGapped, Without: o.Without}
	facts.Catalogues = specs.Catalogues()
	version := facts.Version.Value
	if _, err := specs.ParseVersion(version); err != nil {
		version = newestVersion()
	}
	if facts.Standard, err = set.For(version); err != nil {
		return fmt.Errorf("choosing the standard's cases for Kubernetes %s: %w", version, err)
	}
	r := preflight.NewReport(c.Server, preflight.Check(facts))
	if s.Getenv("GITHUB_ACTIONS") == "true" {
		if err := r.WriteAnnotations(s.Stderr); err != nil {
			return fmt.Errorf("writing annotations: %w", err)
		}
	}
	if err := r.Write(s.Stdout, report.Format(o.Output)); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return exitWith(r.ExitCode)
}

// kubectl is the program that tests would run; "" where there is none.
func (o *preflightOptions) kubectl() string {
	if o.Kubectl != "" {
		return o.Kubectl
	}
	path, err := exec.LookPath("kubectl")
	if err != nil {
		return ""
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
