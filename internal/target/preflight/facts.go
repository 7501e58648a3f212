package preflight

import (
	"fmt"
	"slices"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/lease"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/preflight/probe"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Read is what a request was answered with: a value or an error, never both.
type Read[T any] struct {
	Value T
	Err   error
}

func read[T any](value T, err error) Read[T] {
	if err != nil {
		return Read[T]{Err: err}
	}
	return Read[T]{Value: value}
}

// Facts are all that [Check] looks at.
type Facts struct {
	// Version is the API server's, such as "v1.36.3".
	Version Read[string]
	Nodes   Read[[]Node]
	// APIGroups are the groups that the API server serves.
	APIGroups  Read[[]string]
	DaemonSets Read[[]DaemonSet]
	// GMSAWebhooks are the names of admission webhook configurations for gMSA.
	GMSAWebhooks Read[[]string]
	// RuntimeClasses are handlers, by the name of their runtime class.
	RuntimeClasses Read[map[string]string]
	// Families are the IP families of the Service default/kubernetes.
	Families Read[[]string]
	DNS      Read[DNS]
	// Missing are permissions that the user does not have.
	Missing Read[[]Need]
	// Steering is the way of steering, such as "MutatingAdmissionPolicy v1"; ""
	// where the API server has none.
	Steering Read[string]
	// Namespaces, Policies and ProbeNamespaces are left-overs of earlier runs, or
	// in use by one that goes on.
	Namespaces, Policies, ProbeNamespaces Read[[]string]
	// Held says who has the cluster; nil where nobody has.
	Held Read[*lease.HeldError]
	// Now is when the facts were read.
	Now time.Time
	// RunID is that of the run that asks; "" where none does.
	RunID string
	// NotNeeded are purposes that the run does without.
	NotNeeded []Purpose
	// Probes are what pods have found out.
	Probes Probes
	// Steer is how the run is to steer (run --steer); "" stands for its default.
	Steer string
	// RuntimeClass is what the run's Windows pods are to get (run
	// --runtime-class); "" stands for none.
	RuntimeClass string
	// Kubectl is the path of a kubectl program; "" where there is none.
	Kubectl string
	// Provider is the e2e framework's.
	Provider string
	Declared result.Declarations
	// Standard are the cases that a run would select from, Catalogues the
	// versions whose lists of tests are known.
	Standard   []specs.Case
	Catalogues []string
}

// Node is a node, and what only preflight wants to know of it.
type Node struct {
	result.Node
	// Capacity and Allocatable are of memory, in bytes.
	Capacity, Allocatable int64
	// GMSA says that the node has the label by which the gMSA tests find one.
	GMSA bool
	// CordonedByRun says that a run of this program has cordoned the node.
	CordonedByRun bool
}

// DaemonSet is a workload that may tell which network there is.
type DaemonSet struct {
	Namespace, Name string
	Images          []string
}

// DNS is the cluster's DNS service.
type DNS struct {
	// Service says that kube-system/kube-dns is there.
	Service bool
	// Ready is how many of its endpoints are.
	Ready int
}

// Probes are what pods have found out, if any were made.
type Probes struct {
	// Made says that pods were to be made.
	Made bool
	// Err says why none could be.
	Err     error
	Results []probe.Result
	// Credentials says that tests pull images with credentials, which probes do
	// without.
	Credentials bool
}

// ForRun returns the facts that a run depends on, and that its verdict rests
// on. The error says which of them could not be read.
func (f *Facts) ForRun() (*result.Facts, error) {
	for _, err := range []error{f.Version.Err, f.Nodes.Err, f.APIGroups.Err} {
		if err != nil {
			return nil, fmt.Errorf("a run cannot do without: %w", err)
		}
	}
	return f.known(), nil
}

// known returns what could be read of what a verdict rests on.
func (f *Facts) known() *result.Facts {
	out := &result.Facts{ServerVersion: f.Version.Value, APIGroups: f.APIGroups.Value, Networks: f.networkNames()}
	for i := range f.Nodes.Value {
		out.Nodes = append(out.Nodes, f.Nodes.Value[i].Node)
	}
	if f.RuntimeClasses.Err == nil && f.RuntimeClasses.Value != nil {
		out.RuntimeClasses = make([]string, 0, len(f.RuntimeClasses.Value))
		for name := range f.RuntimeClasses.Value {
			out.RuntimeClasses = append(out.RuntimeClasses, name)
		}
		slices.Sort(out.RuntimeClasses)
	}
	return out
}
