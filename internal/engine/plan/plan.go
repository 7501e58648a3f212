package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Request is what a plan is made from.
type Request struct {
	// Cases are those of the standard that hold for the Kubernetes version.
	Cases []specs.Case
	// Tests are those that e2e.test has. Suite op-readiness comes with this program.
	Tests     *specs.TestList
	Provider  string
	Selection result.Selection
	// Shards is into how many the plan is cut, at least 1.
	Shards int
	// Shared says that the shards are at work on one cluster, and not on one each.
	Shared bool
	// Durations are measured ones, by [result.TestID]; they replace what the
	// cases expect.
	Durations map[string]time.Duration
	// RuntimeClass is for the Windows pods of cases that ask for none; "" is
	// the cluster's default.
	RuntimeClass string
}

// Make makes the plan. An unknown name in the selection, a case whose focus
// selects another number of tests than it says, and a selection that holds
// nothing are errors; all of them are reported at once.
func Make(req Request) (*result.Plan, error) {
	if req.Shards < 1 {
		return nil, fmt.Errorf("a plan has at least 1 shard, not %d", req.Shards)
	}
	req.Selection = inOrder(req.Selection)
	cases, err := Select(req.Cases, &req.Selection)
	if err != nil {
		return nil, err
	}
	p := &result.Plan{
		Schema:            result.PlanSchema,
		KubernetesVersion: req.Tests.Version,
		Provider:          req.Provider,
		Selection:         req.Selection,
		Standard:          map[specs.Category]int{},
		Shards:            req.Shards,
		Shared:            req.Shared && req.Shards > 1,
	}
	for i := range req.Cases {
		if req.Cases[i].Kind == specs.Requirement {
			p.Standard[req.Cases[i].Category]++
		}
	}
	if p.StandardDigest, err = specs.Digest(req.Cases); err != nil {
		return nil, err
	}
	if err := resolve(p, cases, &req); err != nil {
		return nil, err
	}
	order(p)
	shard(p)
	p.Digest, err = p.ComputeDigest()
	return p, err
}

// resolve fills in the plan's cases and tests.
func resolve(p *result.Plan, cases []specs.Case, req *Request) error {
	var errs []error
	tests := map[string]*result.PlannedTest{}
	for _, c := range cases {
		if c.Conditions.RuntimeClass == "" && len(c.Tests) > 0 {
			c.Conditions.RuntimeClass = req.RuntimeClass
		}
		planned := result.PlannedCase{Case: c}
		for _, skip := range c.SkipProviders {
			if skip.Provider == req.Provider {
				planned.Excluded = fmt.Sprintf("not on provider %s: %s", skip.Provider, skip.Reason)
			}
		}
		var listed []specs.ListedTest
		for _, s := range c.Tests {
			found, err := match(&c, s, req.Tests)
			if err != nil {
				errs = append(errs, err)
			}
			listed = append(listed, found...)
		}
		if planned.Excluded != "" {
			listed = nil // they would be planned, and expected, for nothing
		}
		for _, l := range listed {
			conditions := result.ConditionsOf(c.Conditions)
			id := result.TestID(l.Name, conditions)
			if slices.Contains(planned.TestIDs, id) {
				continue
			}
			planned.TestIDs = append(planned.TestIDs, id)
			t := tests[id]
			if t == nil {
				t = &result.PlannedTest{ID: id, Name: l.Name, Location: l.Location, Conditions: conditions, Phase: phaseOf(l.Name)}
				tests[id] = t
			}
			t.Cases = append(t.Cases, c.ID)
			t.Phase = maxPhase(t.Phase, c.Phase)
			t.Duration = max(t.Duration, c.Duration/time.Duration(len(listed)))
			t.Timeout = max(t.Timeout, timeLimit(&c))
			if measured, ok := req.Durations[id]; ok {
				t.Duration = measured
			}
		}
		p.Cases = append(p.Cases, planned)
	}
	for _, t := range tests {
		p.Tests = append(p.Tests, *t)
	}
	return errors.Join(errs...)
}

func match(c *specs.Case, s specs.Selector, list *specs.TestList) ([]specs.ListedTest, error) {
	m, err := s.Compile()
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", c.ID, err)
	}
	var found []specs.ListedTest
	tests, of := list.Tests, s.Suite.Program()+" "+list.Version
	if s.Suite == specs.OpReadiness {
		tests, of = specs.OwnTests().Tests, s.Suite.Program()
	}
	for _, t := range tests {
		if m.Matches(t.Name) {
			found = append(found, t)
		}
	}
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("case %s: focus %q matches no test of %s: a case that tests nothing is refused; see 'op-readiness specs lint'", c.ID, s.Focus, of)
	case s.Expect > 0 && len(found) != s.Expect:
		return nil, fmt.Errorf("case %s: focus %q matches %s of %s, and %d are expected; see 'op-readiness specs lint'", c.ID, s.Focus, text.Count(len(found), "test"), of, s.Expect)
	}
	return found, nil
}

// Tests without a time limit of their own get a multiple of what they are
// expected to take, and never less than the framework's own longest waits.
const (
	minTimeout    = 10 * time.Minute
	timeoutFactor = 3
)

func timeLimit(c *specs.Case) time.Duration {
	if c.Timeout > 0 {
		return c.Timeout
	}
	return max(minTimeout, timeoutFactor*c.Duration)
}

// phaseOf reads a test's phase from its name: the e2e framework puts these
// words there.
func phaseOf(name string) specs.Phase {
	switch {
	case strings.Contains(name, "[Disruptive]"):
		return specs.Disruptive
	case strings.Contains(name, "[Serial]"):
		return specs.Serial
	default:
		return specs.Parallel
	}
}

func phaseRank(p specs.Phase) int {
	return slices.Index([]specs.Phase{specs.Parallel, specs.Serial, specs.Disruptive}, p)
}

func maxPhase(a, b specs.Phase) specs.Phase {
	if phaseRank(b) > phaseRank(a) {
		return b
	}
	return a
}

// order puts the tests in the order in which they run: trials after all that
// counts, so that they neither disturb it nor take its time; what may run in
// parallel first, what may break the cluster last; within a phase those with
// equal conditions together, and of them those of a suite; and then by name.
func order(p *result.Plan) {
	trial := p.OnTrial()
	rank := func(t *result.PlannedTest) int {
		if trial[t.ID] {
			return 1
		}
		return 0
	}
	slices.SortFunc(p.Tests, func(a, b result.PlannedTest) int {
		return cmp.Or(
			cmp.Compare(rank(&a), rank(&b)),
			cmp.Compare(phaseRank(a.Phase), phaseRank(b.Phase)),
			cmp.Compare(a.Conditions.String(), b.Conditions.String()),
			cmp.Compare(specs.SuiteOf(a.Name), specs.SuiteOf(b.Name)),
			cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.ID, b.ID),
		)
	})
}
