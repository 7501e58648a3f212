package preflight

import (
	"slices"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/preflight/probe"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Status is what a finding means for a run.
type Status string

const (
	// OK is as it should be; also a feature that is known to be absent, so that
	// the standard does not ask for it.
	OK Status = "ok"
	// Warning does not keep the cluster from being judged, but may cost time or
	// trust.
	Warning Status = "warning"
	// Failing keeps the cluster from being judged ready.
	Failing Status = "failing"
	// Unknown could not be found out from the API.
	Unknown Status = "unknown"
)

// How a finding was found out.
const (
	// Declared is what the user says, by a flag.
	Declared = "declared"
	// NotAsked is what the API does not show, and no probe was made for.
	NotAsked = "not probed"
	// ByPods is what pods found out.
	ByPods = "probe: pods"
)

// Group is what a finding is about; groups are shown in this order.
type Group string

// The groups.
const (
	groupServer   Group = "server"
	groupNodes    Group = "nodes"
	groupNetwork  Group = "network"
	groupFeatures Group = "features"
	groupRun      Group = "run"
)

// Finding is one thing that was found out about a cluster.
type Finding struct {
	// ID is stable, such as "node-count".
	ID     string `json:"id"`
	Group  Group  `json:"group"`
	Status Status `json:"status"`
	// Found says what is there, in one line.
	Found string `json:"found"`
	// How says how it was found out: the API object, [Declared], a probe.
	How string `json:"how"`
	// Concerns names capabilities (specs.Capabilities), rules and categories.
	Concerns []string `json:"concerns,omitempty"`
	// Requirements are the ids of those that gate, have a test, and need one of
	// the capabilities that the finding concerns.
	Requirements []string `json:"requirements,omitempty"`
	// Fix says what to do; never empty for a failing finding.
	Fix string `json:"fix,omitempty"`
	// Vital says that nothing can be judged while the finding is unknown.
	Vital bool `json:"vital,omitempty"`
	// Refuses says that a run cannot work while this is so.
	Refuses bool `json:"refuses,omitempty"`
}

// Report is what a preflight has to say.
type Report struct {
	Schema int `json:"schema"`
	// Time is when the facts were read.
	Time   time.Time `json:"time,omitzero"`
	Server string    `json:"server"`
	// Testable says that nothing keeps the cluster from being judged ready.
	Testable bool           `json:"testable"`
	ExitCode int            `json:"exitCode"`
	Counts   map[Status]int `json:"counts"`
	Findings []Finding      `json:"findings"`
	// Probes are what each pod has found out.
	Probes []probe.Result `json:"probes,omitempty"`
}

// Schema is the version of the report's JSON.
const Schema = 1

// NewReport sums findings up for the API server at an address.
func NewReport(server string, findings []Finding) *Report {
	r := &Report{Schema: Schema, Server: server, Testable: true, ExitCode: verdict.ExitReady, Counts: map[Status]int{}, Findings: findings}
	for i := range findings {
		r.Counts[findings[i].Status]++
		if findings[i].Blocks() {
			r.Testable, r.ExitCode = false, verdict.ExitInconclusive
		}
	}
	return r
}

// Blocks reports whether the finding keeps the cluster from being judged ready.
func (f *Finding) Blocks() bool {
	return f.Status == Failing || f.Status == Unknown && f.Vital
}

// Refusing are the findings with which a run cannot work.
func (r *Report) Refusing() []Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return !f.Refuses })
}

// waiting returns the requirements that gate, have a test, and need one of the
// capabilities.
func waiting(cases []specs.Case, capabilities []string) []string {
	var ids []string
	for i := range cases {
		c := &cases[i]
		if c.Kind != specs.Requirement || !c.Gates() || c.Proof == specs.ProofNone {
			continue
		}
		if slices.ContainsFunc(slices.Concat(c.Needs.Condition, c.Needs.Means), func(need string) bool {
			return slices.Contains(capabilities, need)
		}) {
			ids = append(ids, c.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// ReportOf checks the facts of the cluster at an address.
func ReportOf(server string, facts *Facts) *Report {
	r := NewReport(server, Check(facts))
	r.Time, r.Probes = facts.Now, facts.Probes.Results
	return r
}
