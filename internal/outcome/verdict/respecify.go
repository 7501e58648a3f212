package verdict

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Respecify returns the run as if it had been planned with other cases: those
// of changed spec files that the run would have selected. standard are all cases
// of these files, and specDir is their folder, "" for this program's own
// standard. What was run and observed stays as it is recorded; where it has no
// answer to what a case asks, because the case's tests did not run, or ran under
// other conditions, the case is not tested, and says so. The run that is given is
// not changed.
func Respecify(run *result.Run, standard, selected []specs.Case, specDir string) (*result.Run, error) {
	digest, err := specs.Digest(standard)
	if err != nil {
		return nil, err
	}
	r := &respecified{run: run, recorded: map[string]*result.PlannedCase{}}
	for i := range run.Plan.Cases {
		r.recorded[run.Plan.Cases[i].ID] = &run.Plan.Cases[i]
	}
	for i := range run.Plan.Tests {
		class := run.Plan.Tests[i].Conditions.RuntimeClass
		if i > 0 && class != r.class {
			r.class = ""
			break
		}
		r.class = class
	}
	p := *run.Plan
	p.Cases, p.Tests = nil, slices.Clone(run.Plan.Tests)
	p.Standard, p.StandardDigest = map[specs.Category]int{}, digest
	for i := range standard {
		if standard[i].Kind == specs.Requirement {
			p.Standard[standard[i].Category]++
		}
	}
	var errs []error
	for i := range selected {
		c, err := r.plan(selected[i])
		errs = append(errs, err)
		p.Cases = append(p.Cases, c)
	}
	for i := range p.Tests {
		p.Tests[i].Cases = nil
		for k := range p.Cases {
			if slices.Contains(p.Cases[k].TestIDs, p.Tests[i].ID) {
				p.Tests[i].Cases = append(p.Tests[i].Cases, p.Cases[k].ID)
			}
		}
	}
	other, m := *run, *run.Manifest
	m.SpecDir = specDir
	m.Verdict = "" // of other cases
	other.Plan, other.Manifest = &p, &m
	return &other, errors.Join(errs...)
}

type respecified struct {
	run      *result.Run
	recorded map[string]*result.PlannedCase
	// class is the runtime class that the whole run was asked for.
	class string
}

// plan ties a case to the tests that ran.
func (r *respecified) plan(c specs.Case) (result.PlannedCase, error) {
	if c.Conditions.RuntimeClass == "" && len(c.Tests) > 0 {
		c.Conditions.RuntimeClass = r.class
	}
	out := result.PlannedCase{Case: c, Shard: 1}
	if before := r.recorded[c.ID]; before != nil {
		out.Shard = before.Shard
	}
	for _, skip := range c.SkipProviders {
		if skip.Provider == r.run.Plan.Provider {
			out.Excluded = fmt.Sprintf("not on provider %s: %s", skip.Provider, skip.Reason)
			return out, nil
		}
	}
	want := result.ConditionsOf(c.Conditions)
	for _, s := range c.Tests {
		m, err := s.Compile()
		if err != nil {
			return out, fmt.Errorf("case %s: %w", c.ID, err)
		}
		names := map[string]bool{}
		var found []*result.PlannedTest
		var otherwise []string
		for i := range r.run.Plan.Tests {
			t := &r.run.Plan.Tests[i]
			if !m.Matches(t.Name) {
				continue
			}
			names[t.Name] = true
			if t.Conditions == want {
				found = append(found, t)
			} else if !slices.Contains(otherwise, t.Conditions.String()) {
				otherwise = append(otherwise, t.Conditions.String())
			}
		}
		if out.Excluded = r.lacks(s, want, len(names), found, otherwise); out.Excluded != "" {
			out.TestIDs = nil
			return out, nil
		}
		for _, t := range found {
			out.Shard = t.Shard
			if !slices.Contains(out.TestIDs, t.ID) {
				out.TestIDs = append(out.TestIDs, t.ID)
			}
		}
	}
	return out, nil
}

// lacks says what the results do not have of the tests that a selector asks for;
// names is how many were planned under whatever conditions.
func (r *respecified) lacks(s specs.Selector, want result.RunConditions, names int, found []*result.PlannedTest, otherwise []string) string {
	const results = "these results do not show it: "
	switch {
	case names == 0:
		return fmt.Sprintf("%sno test that was planned matches %s", results, s.Focus)
	case s.Expect > 0 && names != s.Expect:
		return fmt.Sprintf("%s%s planned of the %d that match %s", results, text.Count(names, "test"), s.Expect, s.Focus)
	case len(found) < names:
		return fmt.Sprintf("%sits tests were planned %q, and not %q", results, strings.Join(otherwise, ", "), want.String())
	}
	if !r.run.Finished || r.run.Interrupted || r.run.OutOfTime {
		return "" // which of them are missing is said in another way
	}
	for _, t := range found {
		if _, begun := r.run.Unfinished[t.ID]; begun || len(r.run.Attempts[t.ID]) > 0 {
			continue
		}
		for _, id := range t.Cases {
			if d, ok := r.run.Decisions[id]; ok {
				return fmt.Sprintf("%s%s did not run: %s", results, t.Name, d.Reason)
			}
		}
	}
	return ""
}

// Change is a case whose outcome is another than before.
type Change struct {
	ID string `json:"id"`
	// Was and Is are the outcomes; "" where the case was not, or is not, judged.
	Was Outcome `json:"was,omitempty"`
	Is  Outcome `json:"is,omitempty"`
}

// String returns "core-storage-x: passed, was unproven".
func (c Change) String() string {
	switch "" {
	case string(c.Was):
		return fmt.Sprintf("%s: %s, was not judged", c.ID, c.Is)
	case string(c.Is):
		return fmt.Sprintf("%s: not judged, was %s", c.ID, c.Was)
	}
	return fmt.Sprintf("%s: %s, was %s", c.ID, c.Is, c.Was)
}

// Changes lists the cases whose outcomes differ, in the order of the new
// judgement, and those that it does not have at the end.
func Changes(before, now *Judgement) []Change {
	was := map[string]Outcome{}
	for i := range before.Cases {
		was[before.Cases[i].Case.ID] = before.Cases[i].Outcome
	}
	var out []Change
	for i := range now.Cases {
		c := Change{ID: now.Cases[i].Case.ID, Is: now.Cases[i].Outcome}
		c.Was = was[c.ID]
		delete(was, c.ID)
		if c.Was != c.Is {
			out = append(out, c)
		}
	}
	for i := range before.Cases {
		if id := before.Cases[i].Case.ID; was[id] != "" {
			out = append(out, Change{ID: id, Was: was[id]})
		}
	}
	return out
}
