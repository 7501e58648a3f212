package preflight

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/preflight/probe"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Probing says what pods are to find out.
type Probing struct {
	// ID is that of the pods' namespace.
	ID string
	// Images names the images of the tests.
	Images interface {
		Images(ctx context.Context, repoList string) ([]string, error)
	}
	// RepoList is a file that overrides registries; "" is none.
	RepoList string
	// Credentials says that the run has some for pulling images.
	Credentials bool
	// DNSDomain is the cluster's; "" is cluster.local.
	DNSDomain string
	// Limit is how long all may take.
	Limit time.Duration
	// Wants reports whether it matters that there is a capability, Class is a
	// runtime class that does; "" stands for none.
	Wants func(capability string) bool
	Class string
	// Note is told how it goes on.
	Note func(text string)
}

// patience is how long a pod may be without a node or an image: longer than it
// takes a kubelet to try a pull three times.
const patience = time.Minute

// RunProbes adds to the facts what pods find out. The error is that of ctx; what
// else goes wrong becomes unknown.
func RunProbes(ctx context.Context, client kubernetes.Interface, facts *Facts, o Probing) error {
	facts.Probes = Probes{Made: true, Credentials: o.Credentials}
	targets := facts.ProbeTargets()
	if len(targets) == 0 {
		return nil
	}
	images, err := o.Images.Images(ctx, o.RepoList)
	if ctx.Err() != nil {
		return err
	}
	var chosen probe.Images
	if err == nil {
		chosen, err = probe.Choose(images)
	}
	if facts.Probes.Err = err; err != nil {
		return nil //nolint:nilerr // a finding tells it
	}
	without := func(capability string) bool {
		return slices.Contains(facts.Declared.Without, capability) || !o.Wants(capability)
	}
	options := probe.Options{
		ID: o.ID, Targets: targets, Images: chosen,
		// With a dot at the end no search domain is tried, which Windows and
		// Linux do in different ways.
		Name:          "kubernetes.default.svc." + strings.TrimSuffix(cmp.Or(o.DNSDomain, "cluster.local"), ".") + ".:443",
		HostProcess:   !without("hpc"),
		NetworkPolicy: !without("netpol"),
		Limit:         cmp.Or(o.Limit, probe.DefaultLimit),
		Patience:      patience,
		Note:          o.Note,
	}
	if !facts.Declared.AirGapped && !without("internet") {
		options.Outside = probe.Outside
	}
	for _, class := range facts.IsolationClasses() {
		if class == o.Class || o.Class == "" && (class != specs.HyperVClass || !without("hyperv")) {
			options.RuntimeClasses = append(options.RuntimeClasses, class)
		}
	}
	results, err := probe.Run(ctx, client, options)
	if ctx.Err() != nil {
		return err
	}
	facts.Probes.Results, facts.Probes.Err = results, err
	return nil
}
