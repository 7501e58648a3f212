package verdict

import (
	"fmt"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// ScopeKind is what a verdict speaks about.
type ScopeKind string

// The kinds of scopes.
const (
	ScopeCluster ScopeKind = "cluster"
	// ScopeStandard is all of another standard than this program's.
	ScopeStandard   ScopeKind = "standard"
	ScopeCategories ScopeKind = "categories"
	ScopeCases      ScopeKind = "cases"
	ScopeShard      ScopeKind = "shard"
)

// Scope is what a verdict speaks about. A verdict is never shown without it.
type Scope struct {
	Kind ScopeKind `json:"kind"`
	// Shard and Shards are set when the results are those of one of several
	// shards.
	Shard      int              `json:"shard,omitempty"`
	Shards     int              `json:"shards,omitempty"`
	Categories []specs.Category `json:"categories,omitempty"`
	Cases      []string         `json:"cases,omitempty"`
	// Standard is the one that was judged by, where it is not this program's.
	Standard *Standard `json:"standard,omitempty"`
}

// scopeOf returns the scope of a run: its shard's cases where it is one of
// several that were not merged, otherwise what its plan selected. Only this
// program's own standard, as a whole, says something of the cluster.
func scopeOf(run *result.Run) Scope {
	sel := &run.Plan.Selection
	s := Scope{Standard: otherStandard(run)}
	switch {
	case run.Plan.Shards > 1 && !run.Merged():
		s.Kind, s.Shard, s.Shards = ScopeShard, run.Manifest.Shard, run.Plan.Shards
	case sel.Whole() && s.Standard != nil:
		s.Kind = ScopeStandard
	case sel.Whole():
		s.Kind = ScopeCluster
	case len(sel.Cases)+len(sel.Labels)+len(sel.Capabilities) == 0:
		s.Kind, s.Categories = ScopeCategories, sel.Categories
	default:
		s.Kind = ScopeCases
		trials := run.Plan.Trials()
		for i := range run.Plan.Cases {
			if c := &run.Plan.Cases[i]; c.Kind != specs.Trial || trials == len(run.Plan.Cases) {
				s.Cases = append(s.Cases, c.ID)
			}
		}
	}
	return s
}

// String names the scope for people, and the standard where it is another:
// "Core.Network of another standard (4 requirements, spec files of DIR, sha256:…)".
func (s Scope) String() string {
	if s.Standard == nil {
		return s.part()
	}
	count := text.Count(s.Standard.Requirements, "requirement")
	if s.Kind == ScopeStandard {
		return fmt.Sprintf("%s of another standard (%s)", count, s.Standard.name())
	}
	return fmt.Sprintf("%s of another standard (%s, %s)", text.Cut(s.part(), maxScope), count, s.Standard.name())
}

// maxScope is how much of a scope's own name is left where a standard's follows:
// what is said of the standard must not be cut off.
const maxScope = 150

// part names what of a standard the scope is over.
func (s *Scope) part() string {
	switch s.Kind {
	case ScopeCluster:
		return "the cluster"
	case ScopeShard:
		return fmt.Sprintf("shard %d of %d", s.Shard, s.Shards)
	case ScopeCategories:
		names := make([]string, len(s.Categories))
		for i, c := range s.Categories {
			names[i] = string(c)
		}
		return strings.Join(names, ", ")
	default:
		if len(s.Cases) <= 3 {
			return strings.Join(s.Cases, ", ")
		}
		return fmt.Sprintf("%d selected cases", len(s.Cases))
	}
}

// Whole reports whether the scope is all of a standard.
func (s *Scope) Whole() bool { return s.Kind == ScopeCluster || s.Kind == ScopeStandard }

// holds reports whether the scope covers the case. The rules that sum up
// other categories are nobody's but a whole standard's.
func (s *Scope) holds(c *result.PlannedCase) bool {
	if s.Kind == ScopeShard {
		return c.Shard == s.Shard && !sumsUp(c.Check)
	}
	return s.Whole() || !sumsUp(c.Check)
}

// empty says that of a plan that has tests nothing is the scope's, or nothing but
// trials, which is a shard then; "" elsewhere.
func (s *Scope) empty(plan *result.Plan) string {
	counts := func(c result.PlannedCase) bool { return c.Shard == s.Shard && c.Kind != specs.Trial }
	switch {
	case s.Kind != ScopeShard:
		return ""
	case plan.EmptyShard(s.Shard):
		return fmt.Sprintf("%s is empty: all that the plan holds is in other shards, so there is nothing to run and nothing to judge here", s)
	case len(plan.OnTrial()) < len(plan.Tests) && !slices.ContainsFunc(plan.Cases, counts):
		return fmt.Sprintf("%s holds trials alone: all that counts is in other shards, so there is nothing to judge here", s)
	}
	return ""
}

// standard counts the requirements in the scope by category: those of the
// standard where the scope is made of whole categories, tested or not.
func (s *Scope) standard(plan *result.Plan) map[specs.Category]int {
	counts := map[specs.Category]int{}
	switch s.Kind {
	case ScopeCluster, ScopeStandard:
		return plan.Standard
	case ScopeCategories:
		for _, c := range s.Categories {
			counts[c] = plan.Standard[c]
		}
	default:
		for i := range plan.Cases {
			if c := &plan.Cases[i]; c.Kind == specs.Requirement && s.holds(c) {
				counts[c.Category]++
			}
		}
	}
	return counts
}
