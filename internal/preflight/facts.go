package preflight

import (
	"github.com/windows-op-readiness/windows-op-readiness/internal/result"
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
	// Namespaces and Policies are left-overs of earlier runs, or in use by one
	// that goes on.
	Namespaces, Policies Read[[]string]
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
