package verdict

import (
	"fmt"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/result"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// ScopeKind is what a verdict speaks about.
type ScopeKind string

// The kinds of scopes.
const (
	ScopeCluster    ScopeKind = "cluster"
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
}

// ScopeOf returns the scope of a run: its shard's cases where it is one of
// several that were not merged, otherwise what its plan selected. A plan of spec files that lack a
// Core category says nothing of the cluster as a whole.
func ScopeOf(run *result.Run) Scope {
	sel := &run.Plan.Selection
	switch {
	case run.Plan.Shards > 1 && !run.Merged():
		return Scope{Kind: ScopeShard, Shard: run.Manifest.Shard, Shards: run.Plan.Shards}
	case sel.Whole() && hasCore(run.Plan):
		return Scope{Kind: ScopeCluster}
	case sel.Whole():
		s := Scope{Kind: ScopeCategories}
		for i := range run.Plan.Cases {
			if c := run.Plan.Cases[i].Category; !slices.Contains(s.Categories, c) {
				s.Categories = append(s.Categories, c)
			}
		}
		return s
	case len(sel.Cases)+len(sel.Labels)+len(sel.Capabilities) == 0:
		return Scope{Kind: ScopeCategories, Categories: sel.Categories}
	}
	s := Scope{Kind: ScopeCases}
	for i := range run.Plan.Cases {
		s.Cases = append(s.Cases, run.Plan.Cases[i].ID)
	}
	return s
}

// hasCore reports whether the plan has a requirement of every Core category.
func hasCore(plan *result.Plan) bool {
	for _, category := range specs.Categories() {
		if category.Core() && !slices.ContainsFunc(plan.Cases, func(c result.PlannedCase) bool {
			return c.Kind == specs.Requirement && c.Category == category
		}) {
			return false
		}
	}
	return true
}

// String names the scope for people.
func (s Scope) String() string {
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

// holds reports whether the scope covers the case. The rules that sum up
// other categories are nobody's but the whole cluster's.
func (s *Scope) holds(c *result.PlannedCase) bool {
	if s.Kind == ScopeShard {
		return c.Shard == s.Shard && !sumsUp(c.Check)
	}
	return s.Kind == ScopeCluster || !sumsUp(c.Check)
}

// standard counts the requirements in the scope by category: those of the
// standard where the scope is made of whole categories, tested or not.
func (s *Scope) standard(plan *result.Plan) map[specs.Category]int {
	counts := map[specs.Category]int{}
	switch s.Kind {
	case ScopeCluster:
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
