package specs

import (
	"slices"
	"strings"
	"time"
)

// Category groups the requirements of the standard.
type Category string

// The categories of KEP-2578, and [ClusterRules] for what the KEP demands of
// the cluster itself.
const (
	ClusterRules          Category = "Cluster.Rules"
	CoreNetwork           Category = "Core.Network"
	CoreStorage           Category = "Core.Storage"
	CoreScheduling        Category = "Core.Scheduling"
	CoreConcurrent        Category = "Core.Concurrent"
	ExtendHostProcess     Category = "Extend.HostProcess"
	ExtendActiveDirectory Category = "Extend.ActiveDirectory"
	ExtendNetworkPolicy   Category = "Extend.NetworkPolicy"
	ExtendServiceProxy    Category = "Extend.ServiceProxy"
	ExtendWorker          Category = "Extend.Worker"
)

// Kind says what a case is to the standard.
type Kind string

const (
	// Requirement is one sentence of the KEP. It is what a case is when its
	// spec file says nothing.
	Requirement Kind = "requirement"
	// Rule is what the KEP demands of the cluster itself; it is checked from
	// facts, not by a test.
	Rule Kind = "rule"
	// Additional is a test worth running that the standard does not ask for.
	// It never gates.
	Additional Kind = "additional"
	// Trial is a case of suite [OpReadiness] whose tests were not yet seen to pass
	// and to fail on a real Windows node. It runs when it is asked for, and decides
	// nothing. No spec file says so: it is one until Case.Seen says otherwise.
	Trial Kind = "trial"
)

// trialSuffix ends the id of a trial: that without it is the requirement's, which
// has a case of its own meanwhile.
const trialSuffix = "-trial"

// Suite is a test binary.
type Suite string

// The suites.
const (
	// Kubernetes is e2e.test, and what a selector means that names no suite.
	Kubernetes Suite = "kubernetes"
	// OpReadiness is op-readiness.test, this project's own tests.
	OpReadiness Suite = "op-readiness"
)

// Program returns the name of the suite's test binary.
func (s Suite) Program() string {
	if s == OpReadiness {
		return "op-readiness.test"
	}
	return "e2e.test"
}

// SuiteOf returns the suite that a test is of. All tests of [OpReadiness], and no
// others, carry its tag.
func SuiteOf(test string) Suite {
	if strings.Contains(test, "["+string(OpReadiness)+"]") {
		return OpReadiness
	}
	return Kubernetes
}

// Proof says how much of the requirement the tests of a case show.
type Proof string

const (
	// ProofFull says that passing shows the whole requirement.
	ProofFull Proof = "full"
	// ProofPart says that passing shows a part; Case.Missing says what not.
	ProofPart Proof = "part"
	// ProofNone says that no test exists; Case.Missing says what one would do.
	ProofNone Proof = "none"
)

// Phase says what else may run beside the tests of a case. Phases run in the
// order of these constants.
type Phase string

const (
	// Parallel tests may run beside each other.
	Parallel Phase = "parallel"
	// Serial tests run alone.
	Serial Phase = "serial"
	// Disruptive tests run alone and last: they may break the cluster.
	Disruptive Phase = "disruptive"
)

// OS is a pod's or node's operating system, as kubernetes.io/os spells it.
type OS string

// The operating systems of nodes, and any of them.
const (
	Windows OS = "windows"
	Linux   OS = "linux"
	// AnyOS is a placement that observes a role without asking where it runs.
	AnyOS OS = "any"
)

// Case is one requirement, rule or additional test of the standard, for a
// range of Kubernetes versions. Two cases may share an ID when their ranges
// start at different versions: they are variants of one requirement.
type Case struct {
	// ID is stable and unique in the standard, such as "core-network-pod-ip-win-to-linux".
	ID string `yaml:"id" json:"id"`
	// Requirement is the sentence of the KEP, beginning with "Ability to";
	// for an additional case, what its tests show.
	Requirement string `yaml:"requirement" json:"requirement"`
	// Category is the file's.
	Category Category `yaml:"-" json:"category"`
	Kind     Kind     `yaml:"kind,omitempty" json:"kind"`
	Proof    Proof    `yaml:"proof" json:"proof"`
	// Missing says what a partial proof does not show, or, where there is no
	// test, what is missing.
	Missing string `yaml:"missing,omitempty" json:"missing,omitempty"`
	// Check names the built-in check of a rule.
	Check string `yaml:"check,omitempty" json:"check,omitempty"`
	// Kubernetes is the range of versions for which the case holds.
	Kubernetes VersionRange `yaml:"kubernetes,omitempty" json:"kubernetes,omitzero"`
	// Tests select the tests that verify the requirement; all must pass.
	Tests []Selector `yaml:"tests,omitempty" json:"tests,omitempty"`
	Needs Needs      `yaml:"needs,omitempty" json:"needs,omitzero"`
	// Conditions are what the tests must run under for a pass to count.
	Conditions Conditions `yaml:"conditions,omitempty" json:"conditions,omitzero"`
	// Images are allowed for Windows workloads beside agnhost and pause.
	Images []ImageException `yaml:"images,omitempty" json:"images,omitempty"`
	Phase  Phase            `yaml:"phase,omitempty" json:"phase,omitempty"`
	// Duration is how long the tests are expected to take on real nodes, all
	// of them one after the other.
	Duration time.Duration `yaml:"duration,omitempty" json:"duration,omitempty"`
	// Timeout is the longest that one test may take; 0 derives it from Duration.
	Timeout time.Duration `yaml:"timeout,omitempty" json:"timeout,omitempty"`
	// SkipProviders are e2e providers on which the tests cannot run.
	SkipProviders []ProviderSkip `yaml:"skipProviders,omitempty" json:"skipProviders,omitempty"`
	// Seen ends a trial: links to a run on real Windows nodes in which the tests
	// passed, and to one in which they failed for the reason that they are to find.
	Seen       []string `yaml:"seen,omitempty" json:"seen,omitempty"`
	Labels     []string `yaml:"labels,omitempty" json:"labels,omitempty"`
	References []string `yaml:"references,omitempty" json:"references,omitempty"`
}

// Gates reports whether the case can keep a cluster from being ready:
// requirements and rules do, except those of Extend.Worker.
func (c *Case) Gates() bool {
	return c.Kind != Additional && c.Kind != Trial && c.Category.Gates()
}

// Proves returns the id of the requirement that the case is about: its own, but
// for a trial.
func (c *Case) Proves() string {
	if c.Kind == Trial {
		return strings.TrimSuffix(c.ID, trialSuffix)
	}
	return c.ID
}

// VersionRange is a range of Kubernetes minor versions, both ends included;
// an empty end is open. The ends are text such as "1.30".
type VersionRange struct {
	From string `yaml:"from,omitempty" json:"from,omitempty"`
	To   string `yaml:"to,omitempty" json:"to,omitempty"`
}

// Selector selects tests of a suite by their full names, as ginkgo does: a
// regular expression is held against "Kubernetes e2e suite " and the name.
type Selector struct {
	// Suite is the test binary; "" is [Kubernetes].
	Suite Suite  `yaml:"suite,omitempty" json:"suite,omitempty"`
	Focus string `yaml:"focus" json:"focus"`
	// Skip takes tests away that Focus selects; "" takes none.
	Skip string `yaml:"skip,omitempty" json:"skip,omitempty"`
	// Expect is how many tests the selector must match. 0 means at least one:
	// files of other formats cannot say it, those of this project must.
	Expect int `yaml:"expect" json:"expect"`
}

// Needs lists the capabilities of a cluster that a case needs.
type Needs struct {
	// Condition lists features without which the standard does not ask for
	// the requirement: a cluster without one makes the case not-applicable.
	Condition []string `yaml:"condition,omitempty" json:"condition,omitempty"`
	// Means lists what testing takes: a cluster or runner without one makes
	// the case not-tested.
	Means []string `yaml:"means,omitempty" json:"means,omitempty"`
}

// Conditions are what the tests of a case must run under for a pass to count.
type Conditions struct {
	// Steer is where pods go that do not say themselves where they belong.
	Steer OS `yaml:"steer,omitempty" json:"steer,omitempty"`
	// SteerPods narrows steering to pods whose names match; "" is all. A pod
	// whose name is yet to be generated is matched by its generateName.
	SteerPods string `yaml:"steerPods,omitempty" json:"steerPods,omitempty"`
	// Placement says, by role, where pods must have been observed.
	Placement []Placement `yaml:"placement,omitempty" json:"placement,omitempty"`
	// RuntimeClass is set on pods that set none.
	RuntimeClass string `yaml:"runtimeClass,omitempty" json:"runtimeClass,omitempty"`
}

// Placement demands that every pod of a role runs on one operating system,
// and that at least one pod of the role was observed. The tests of a case all
// have such a role.
type Placement struct {
	// Pods is a regular expression held against pod names.
	Pods string `yaml:"pods" json:"pods"`
	OS   OS     `yaml:"os" json:"os"`
	// Including names systems on each of which at least one pod of the role
	// must have been observed; only for OS any, where pods of both systems
	// carry the same names.
	Including []OS `yaml:"including,omitempty" json:"including,omitempty"`
	// NeverStarts is said as "starts: false", of pods that must stay pending or be
	// refused. All others must have started, where a case needs containers that
	// run.
	NeverStarts bool `yaml:"-" json:"neverStarts,omitempty"`
}

// MarshalYAML writes the placement as spec files have it.
func (p Placement) MarshalYAML() (any, error) {
	type plain Placement
	if !p.NeverStarts {
		return plain(p), nil
	}
	return struct {
		plain  `yaml:",inline"`
		Starts bool `yaml:"starts"`
	}{plain: plain(p)}, nil
}

// Systems returns the operating systems on which the role must have been
// observed, Linux first; none where any will do.
func (p Placement) Systems() []OS {
	var systems []OS
	for _, os := range []OS{Linux, Windows} {
		if p.OS == os || slices.Contains(p.Including, os) {
			systems = append(systems, os)
		}
	}
	return systems
}

// ImageException allows an image for Windows workloads of one case.
type ImageException struct {
	// Image is the name without registry and tag, such as "busybox".
	Image string `yaml:"image" json:"image"`
	// Why justifies it, as the KEP demands.
	Why string `yaml:"why" json:"why"`
}

// ProviderSkip names an e2e provider on which a case cannot run, and why.
type ProviderSkip struct {
	Provider string `yaml:"provider" json:"provider"`
	Reason   string `yaml:"reason" json:"reason"`
}
