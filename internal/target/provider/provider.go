// Package provider says what makes clusters to test. Each provider is a package
// below, and knows one way to make a cluster; package life is what calls them, and
// package ledger remembers what they began, so that nothing that was ever made is
// left unnoticed.
//
// A provider tags all that it makes with an owner, a run and an expiry, and finds its
// clusters by these tags alone. What carries none of them is not ours: no provider
// changes it.
package provider

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
)

// Provider makes, finds and removes clusters of one kind. Its methods end with their
// context. Package life sees to it that no two of them work on one cluster at once.
type Provider interface {
	// Name is how the provider is called on the command line, such as "kwok".
	Name() string
	// Plan says what Up would make. It reads, and changes nothing. An error of it is
	// one of the request, and names every fault.
	Plan(ctx context.Context, r Request) (*Plan, error)
	// Render returns the objects of a plan, as YAML.
	Render(p *Plan) ([]byte, error)
	// Up carries a plan out, each of its steps within a call of j.Step, and returns the
	// cluster when it can be used. What it began before an error stays for Down.
	Up(ctx context.Context, p *Plan, j Journal) (*Cluster, error)
	// Down removes all that Up may have made for e, whatever was reached, and returns
	// when it is gone. That there is nothing is no error.
	Down(ctx context.Context, e *Entry) error
	// List finds the clusters that carry our tags, of the names that are given or of
	// all, also half-made ones, by what is there and not by any ledger.
	List(ctx context.Context, names ...string) ([]Found, error)
	// Foreign names what is there under a name and does not carry our tags; "" is
	// nothing. It is in the way of Up, and Down leaves it alone.
	Foreign(ctx context.Context, name string) (string, error)
	// Extend changes the expiry in a cluster's tags.
	Extend(ctx context.Context, e *Entry, expires time.Time) error
	// Logs writes what only the provider can reach into dir, and returns what it did
	// not get.
	Logs(ctx context.Context, e *Entry, dir string) ([]Missing, error)
}

// Journal writes down what is about to be done, before it is done.
type Journal interface {
	// Step does one step of a plan, by its name. It returns act's error, or one of
	// its own before act was called.
	Step(name string, act func() error) error
	// Child notes a process that makes the cluster and leads its process group, by its
	// id and when it began, in milliseconds since the epoch. It is ended before Down.
	Child(pid int, started int64) error
}

// Request is what a cluster is to be.
type Request struct {
	// Name is what the cluster is called, and Owner and Run for whom and for what it
	// is made; see [Owner].
	Name  string `json:"name"`
	Owner string `json:"owner"`
	Run   string `json:"run,omitempty"`
	// Expires is when anybody may remove it.
	Expires time.Time `json:"expires"`

	// KubernetesVersion is one in full; "" leaves it to the provider.
	KubernetesVersion string `json:"kubernetesVersion"`
	LinuxNodes        int    `json:"linuxNodes"`
	WindowsNodes      int    `json:"windowsNodes"`
	// WindowsVersion is such as ltsc2022.
	WindowsVersion string `json:"windowsVersion"`
	// Set is what only one provider knows, such as its bind-address.
	Set map[string]string `json:"set,omitempty"`
}

// DefaultRequest is the smallest cluster that the standard allows, at the newest
// pinned version of Kubernetes.
func DefaultRequest() Request {
	return Request{
		Name:              "op-readiness",
		KubernetesVersion: binaries.Pinned,
		LinuxNodes:        2,
		WindowsNodes:      2,
		WindowsVersion:    "ltsc2022",
	}
}

// ExpireAfter sets when the cluster expires, in whole seconds, as tags have it.
func (r *Request) ExpireAfter(d time.Duration) {
	r.Expires = time.Now().Add(d).UTC().Truncate(time.Second)
}

var validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$`)

// ValidateName returns an error unless name can name a cluster.
func ValidateName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("cluster name %q: use 1 to 40 lower-case letters, digits and inner hyphens", name)
	}
	return nil
}

// Validate returns every fault of r that is one for all providers, joined; maxNodes
// is how many nodes of a system there may be.
func (r Request) Validate(maxNodes int) error {
	faults := []error{ValidateName(r.Name)}
	if _, err := binaries.ParseVersion(r.KubernetesVersion); err != nil {
		faults = append(faults, err)
	}
	for _, count := range []struct {
		system string
		nodes  int
	}{{"Linux", r.LinuxNodes}, {"Windows", r.WindowsNodes}} {
		if count.nodes < 0 || count.nodes > maxNodes {
			faults = append(faults, fmt.Errorf("%d %s nodes: choose 0 to %d", count.nodes, count.system, maxNodes))
		}
	}
	return errors.Join(faults...)
}

// Plan is what a provider would make: a value, to be shown, stored and carried out.
type Plan struct {
	Provider string `json:"provider"`
	Request
	// Steps are the names of what Up does, in order.
	Steps []string `json:"steps"`
	// Objects are what will exist, for people to read.
	Objects []string `json:"objects"`
	// Teardown is how long Down may take, logs included.
	Teardown time.Duration `json:"teardown"`
}

// Cluster is a cluster that op-readiness has made.
type Cluster struct {
	Name              string `json:"name"`
	Provider          string `json:"provider"`
	KubernetesVersion string `json:"kubernetesVersion"`
	LinuxNodes        int    `json:"linuxNodes"`
	WindowsNodes      int    `json:"windowsNodes"`
	// WindowsVersion is such as ltsc2022.
	WindowsVersion string `json:"windowsVersion"`
	State          State  `json:"state"`
	// Problem says what is wrong in a state other than Running.
	Problem string `json:"problem,omitempty"`
	// Kubeconfig is a file whose context Context leads to the cluster.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	Context    string `json:"context,omitempty"`
}

// State says whether a cluster can be used.
type State string

const (
	// Running says that its control plane answers and its nodes are ready.
	Running State = "running"
	// Starting says that another process is making it at this moment.
	Starting State = "starting"
	// Stopped says that none of its processes run, as after a reboot.
	Stopped State = "stopped"
	// Broken says that it is half made, or that a part of it is gone.
	Broken State = "broken"
	// Gone says that nothing is left of what a ledger knows.
	Gone State = "gone"
)

// Found is a cluster as its tags tell of it.
type Found struct {
	Cluster
	Owner string `json:"owner,omitempty"`
	Run   string `json:"run,omitempty"`
	// Expires is zero where the tags do not say it.
	Expires time.Time `json:"expires,omitzero"`
}

// Missing is a log that could not be had.
type Missing struct {
	What   string `json:"what"`
	Reason string `json:"reason"`
}
