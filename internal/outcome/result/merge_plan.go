package result

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// makePlan makes the plan of the whole: that of the run, or, of several runs,
// what each of them accounts for.
func (m *merge) makePlan() error {
	newest := m.newest().plan()
	if m.alone() {
		m.plan = newest
		return nil
	}
	m.plan = &Plan{
		Schema: PlanSchema, KubernetesVersion: newest.KubernetesVersion, Provider: newest.Provider,
		Standard: newest.Standard, StandardDigest: newest.StandardDigest,
	}
	m.distribute()
	m.plan.Selection = m.selection()
	var err error
	m.plan.Digest, err = m.plan.ComputeDigest()
	return err
}

func sameStandard(p, q *Plan) bool {
	if p.KubernetesVersion == q.KubernetesVersion && p.StandardDigest != "" && q.StandardDigest != "" && p.StandardDigest != q.StandardDigest {
		return false
	}
	for _, category := range specs.Categories() {
		if p.Standard[category] != q.Standard[category] {
			return false
		}
	}
	return true
}

func standardName(p *Plan) string {
	n := 0
	for _, count := range p.Standard {
		n += count
	}
	digest := strings.TrimPrefix(p.StandardDigest, "sha256:")
	return strings.TrimSpace(fmt.Sprintf("%d requirements %s", n, digest[:min(12, len(digest))]))
}

// testID is how [TestID] makes them. What is not like that could be made to look
// like another run's.
var testID = regexp.MustCompile(`^[0-9a-f]{12}$`)

// ownID is an id that no other run has.
func (g *group) ownID(id string) string { return fmt.Sprintf("%s-run-%d", id, g.number) }

// distribute gives each case to the newest run that planned it, and makes the
// plan's cases, tests and shards of what each run accounts for.
func (m *merge) distribute() {
	owner := map[string]*group{}
	for _, g := range m.groups {
		for i := range g.plan().Cases {
			owner[g.plan().Cases[i].ID] = g
		}
	}
	taken := map[string]bool{}
	for _, g := range m.groups {
		m.give(g, owner, taken)
	}
	for _, g := range m.groups {
		g.before = map[string][]string{}
		for i := range g.plan().Cases {
			planned := &g.plan().Cases[i]
			newer := owner[planned.ID]
			if newer == g {
				continue
			}
			for _, id := range planned.TestIDs {
				if target := newer.tests[id]; target != "" && !slices.Contains(g.before[id], target) {
					g.before[id] = append(g.before[id], target)
				}
			}
		}
	}
	rank := func(p PlannedCase) int { return slices.Index(specs.Categories(), p.Category) }
	slices.SortStableFunc(m.plan.Cases, func(a, b PlannedCase) int { return cmp.Compare(rank(a), rank(b)) })
}

// give adds to the plan what a run accounts for. taken are the ids of tests that
// are in it already.
func (m *merge) give(g *group, owner map[string]*group, taken map[string]bool) {
	p := g.plan()
	g.cases, g.shards, g.tests = map[string]bool{}, map[int]int{}, map[string]string{}
	needed, counts := map[int]bool{}, map[string]bool{}
	for i := range p.Cases {
		if owner[p.Cases[i].ID] != g {
			continue
		}
		g.cases[p.Cases[i].ID] = true
		needed[p.Cases[i].Shard] = true
		for _, id := range p.Cases[i].TestIDs {
			counts[id] = true
		}
	}
	for i := range p.Tests {
		if counts[p.Tests[i].ID] {
			needed[p.Tests[i].Shard] = true
		}
	}
	shard := func(n int) int {
		if g.shards[n] == 0 {
			m.plan.Shards++
			g.shards[n] = m.plan.Shards
		}
		return g.shards[n]
	}
	// Its shards keep their order.
	for n := 1; n <= p.Shards && len(g.shards) < len(needed); n++ {
		if needed[n] {
			shard(n)
		}
	}
	for _, t := range p.Tests {
		if !counts[t.ID] || g.tests[t.ID] != "" {
			continue
		}
		own := t.ID
		// Runs that share a test have an entry each: what one of them saw shows
		// nothing of the other's cluster.
		if taken[own] || !testID.MatchString(own) {
			t.ID = g.ownID(own)
		}
		taken[t.ID] = true
		g.tests[own] = t.ID
		t.Shard = shard(t.Shard)
		t.Cases = slices.DeleteFunc(slices.Clone(t.Cases), func(id string) bool { return !g.cases[id] })
		m.plan.Tests = append(m.plan.Tests, t)
	}
	for _, planned := range p.Cases {
		if !g.cases[planned.ID] {
			continue
		}
		planned.Shard = shard(planned.Shard)
		planned.TestIDs = slices.Clone(planned.TestIDs)
		for i, id := range planned.TestIDs {
			// One that the plan does not hold must not become another run's.
			planned.TestIDs[i] = cmp.Or(g.tests[id], g.ownID(id))
		}
		m.plan.Cases = append(m.plan.Cases, planned)
	}
}

// selection is what the runs select together: the whole standard, where they
// have all categories, its rules included. It is of whole categories only
// where each case beyond them belongs to one that some run selected as a whole, or
// is on trial.
func (m *merge) selection() Selection {
	var out Selection
	var partial []*group
	for _, g := range m.groups {
		s := &g.plan().Selection
		out.Additional, out.Trial = out.Additional || s.Additional, out.Trial || s.Trial
		switch {
		case s.Whole():
			return Selection{Additional: out.Additional, Trial: out.Trial}
		case len(s.Cases)+len(s.Labels)+len(s.Capabilities) == 0:
			out.Categories = append(out.Categories, s.Categories...)
		default:
			partial = append(partial, g)
		}
	}
	rank := func(c specs.Category) int { return slices.Index(specs.Categories(), c) }
	slices.SortFunc(out.Categories, func(a, b specs.Category) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
	out.Categories = slices.Compact(out.Categories)
	if !slices.ContainsFunc(specs.Categories(), func(category specs.Category) bool {
		asked := m.plan.Standard[category] > 0 || category == specs.ClusterRules
		return asked && !slices.Contains(out.Categories, category)
	}) {
		return Selection{Additional: out.Additional, Trial: out.Trial}
	}
	for _, g := range partial {
		for i := range g.plan().Cases {
			c := &g.plan().Cases[i]
			if !slices.Contains(out.Categories, c.Category) && (c.Kind != specs.Trial || len(out.Categories) == 0) {
				out.Categories = nil
				for k := range m.plan.Cases {
					out.Cases = append(out.Cases, m.plan.Cases[k].ID)
				}
				return out
			}
		}
	}
	return out
}
