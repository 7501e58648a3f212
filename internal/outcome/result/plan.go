package result

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// PlanSchema is the version of plan.json's format that this package writes.
const PlanSchema = 1

// Plan is the content of plan.json: the selected cases, resolved to the exact
// tests of one e2e.test binary, ordered and cut into shards. It carries the
// requirements' sentences, so that results can be judged and reported without
// the spec files at hand.
type Plan struct {
	Schema int `json:"schema"`
	// Digest is [Plan.ComputeDigest] of the plan; shards of one run have the
	// same.
	Digest string `json:"digest"`
	// KubernetesVersion is e2e.test's own, such as "v1.36.3".
	KubernetesVersion string `json:"kubernetesVersion"`
	// Provider is the e2e framework's provider.
	Provider  string    `json:"provider"`
	Selection Selection `json:"selection"`
	// Standard counts the requirements of the whole standard by category,
	// selected or not.
	Standard map[specs.Category]int `json:"standard"`
	// StandardDigest is that of the whole standard, by which plans of different
	// parts can be told to be of one; "" in plans of older op-readiness.
	StandardDigest string `json:"standardDigest,omitempty"`
	Shards         int    `json:"shards"`
	// Shared says that the shards are at work on one cluster, where some tests must wait
	// for each other, and not on one each.
	Shared bool          `json:"shared,omitempty"`
	Cases  []PlannedCase `json:"cases"`
	// Tests are in the order in which they run.
	Tests []PlannedTest `json:"tests"`
}

// Selection is what the plan was asked to hold. Empty lists select all.
type Selection struct {
	Categories   []specs.Category `json:"categories,omitempty"`
	Cases        []string         `json:"cases,omitempty"`
	Labels       []string         `json:"labels,omitempty"`
	Capabilities []string         `json:"capabilities,omitempty"`
	// Additional says that tests beyond the standard were selected too.
	Additional bool `json:"additional,omitempty"`
	// Trial says that trials were selected too.
	Trial bool `json:"trial,omitempty"`
}

// Whole reports whether the selection is the whole standard.
func (s *Selection) Whole() bool {
	return len(s.Categories)+len(s.Cases)+len(s.Labels)+len(s.Capabilities) == 0
}

// PlannedCase is a case of the standard with the tests that verify it.
type PlannedCase struct {
	specs.Case
	// TestIDs name entries of Plan.Tests, one for each test that the case's
	// selectors match.
	TestIDs []string `json:"testIDs,omitempty"`
	// Excluded says why the case's tests cannot run as planned, for example
	// because it skips the provider; "" where they can.
	Excluded string `json:"excluded,omitempty"`
	// Shard is the shard that accounts for the case, from 1.
	Shard int `json:"shard"`
}

// PlannedTest is one test of a suite under one set of conditions. It runs
// once for all the cases that it serves.
type PlannedTest struct {
	// ID is [TestID] of name and conditions.
	ID   string `json:"id"`
	Name string `json:"name"`
	// Location is the test's source file and line, as e2e.test lists it.
	Location   string        `json:"location,omitempty"`
	Conditions RunConditions `json:"conditions,omitzero"`
	Phase      specs.Phase   `json:"phase"`
	// Duration is how long the test is expected to take.
	Duration time.Duration `json:"duration"`
	// Timeout is when the test counts as hung.
	Timeout time.Duration `json:"timeout"`
	// Cases are the ids of the cases that the test serves.
	Cases []string `json:"cases"`
	// Shard is the shard that runs the test, from 1.
	Shard int `json:"shard"`
}

// RunConditions are those conditions of a case that change how its tests run.
// Placement is not among them: it is audited afterwards.
type RunConditions struct {
	Steer        specs.OS `json:"steer,omitempty"`
	SteerPods    string   `json:"steerPods,omitempty"`
	RuntimeClass string   `json:"runtimeClass,omitempty"`
}

// ConditionsOf returns the part of a case's conditions that changes how its
// tests run. Naming pods to steer nowhere changes nothing.
func ConditionsOf(c specs.Conditions) RunConditions {
	if c.Steer == "" {
		c.SteerPods = ""
	}
	return RunConditions{Steer: c.Steer, SteerPods: c.SteerPods, RuntimeClass: c.RuntimeClass}
}

// String names the conditions for people: "steer windows ^test-container-pod$".
// The zero value is "as is".
func (c RunConditions) String() string {
	s := "as is"
	if c.Steer != "" {
		s = "steer " + string(c.Steer)
		if c.SteerPods != "" {
			s += " " + c.SteerPods
		}
	}
	if c.RuntimeClass != "" {
		s += ", runtime class " + c.RuntimeClass
	}
	return s
}

// TestID identifies a test under conditions: 12 hexadecimal digits that depend
// on nothing else.
func TestID(name string, c RunConditions) string {
	h := sha256.New()
	for _, part := range []string{name, string(c.Steer), c.SteerPods, c.RuntimeClass} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// ComputeDigest returns what [Plan.Digest] must be: a SHA-256 over everything
// in the plan but the digest itself. Facts of a cluster are not in a plan, so
// shards that run on different clusters have equal digests.
func (p *Plan) ComputeDigest() (string, error) {
	q := *p
	q.Digest = ""
	data, err := json.Marshal(&q)
	if err != nil {
		return "", fmt.Errorf("encoding the plan: %w", err)
	}
	// A plan that was written and read must have the same digest, and an empty
	// list does not survive that as what it was.
	var read Plan
	if err := json.Unmarshal(data, &read); err != nil {
		return "", fmt.Errorf("decoding the plan: %w", err)
	}
	if data, err = json.Marshal(&read); err != nil {
		return "", fmt.Errorf("encoding the plan: %w", err)
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// EmptyShard reports whether all that a plan with tests holds is in other shards.
func (p *Plan) EmptyShard(shard int) bool {
	return len(p.Tests) > 0 && !slices.ContainsFunc(p.Cases, func(c PlannedCase) bool { return c.Shard == shard })
}

// Trials counts the cases that are on trial.
func (p *Plan) Trials() int {
	n := 0
	for i := range p.Cases {
		if p.Cases[i].Kind == specs.Trial {
			n++
		}
	}
	return n
}

// OnTrial returns the ids of the tests that serve trials alone.
func (p *Plan) OnTrial() map[string]bool {
	counts := map[string]bool{}
	for i := range p.Cases {
		if c := &p.Cases[i]; c.Kind != specs.Trial {
			for _, id := range c.TestIDs {
				counts[id] = true
			}
		}
	}
	trial := map[string]bool{}
	for i := range p.Tests {
		if id := p.Tests[i].ID; !counts[id] {
			trial[id] = true
		}
	}
	return trial
}

// Test returns the planned test with the given id, or nil.
func (p *Plan) Test(id string) *PlannedTest {
	for i := range p.Tests {
		if p.Tests[i].ID == id {
			return &p.Tests[i]
		}
	}
	return nil
}
