package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// shard cuts the plan: every test, and every case, goes to one shard. Cases
// that share a test stay together, so that the test runs once and each shard
// can judge all of its cases by itself. The groups go, longest first, each to
// the shard that has the least to do; ties go to the shard with the lower
// number, and among groups to the one whose first case comes first.
//
// Where the shards share a cluster, all tests that must be alone are in the first one:
// they take as long wherever they are, and the other shards, and their machines, have
// ended by then. What counts is then the time of tests that run beside others, and trials
// are for the shards that wait for nobody.
func shard(p *result.Plan) {
	groups := linked(p)
	slices.SortStableFunc(groups, func(a, b group) int {
		if p.Shared && (a.alone > 0) != (b.alone > 0) {
			return cmp.Compare(b.alone, a.alone)
		}
		return cmp.Compare(b.total(p.Shared), a.total(p.Shared))
	})
	load := make([]time.Duration, p.Shards)
	of := map[string]int{}
	for _, g := range groups {
		least, end := 0, len(load)
		switch {
		case p.Shared && g.alone > 0:
			end = 1
		case p.Shared && g.trial:
			least = 1
		}
		for i := least; i < end; i++ {
			if load[i] < load[least] {
				least = i
			}
		}
		load[least] += g.total(p.Shared)
		for _, id := range g.cases {
			of[id] = least + 1
		}
	}
	for i := range p.Cases {
		p.Cases[i].Shard = max(of[p.Cases[i].ID], 1)
	}
	for i := range p.Tests {
		p.Tests[i].Shard = of[p.Tests[i].Cases[0]]
	}
}

// group is a set of cases linked by tests that they share.
type group struct {
	cases []string
	// beside is how long tests take that run beside others, alone how long the others do.
	beside, alone time.Duration
	trial         bool
}

// total is the group's part in what the shards are to have equally much of.
func (g *group) total(shared bool) time.Duration {
	if shared {
		return g.beside
	}
	return g.beside + g.alone
}

// linked returns the groups of cases that have tests, in the order of their
// first cases.
func linked(p *result.Plan) []group {
	parent := map[string]string{}
	var root func(id string) string
	root = func(id string) string {
		if up, ok := parent[id]; ok && up != id {
			parent[id] = root(up)
			return parent[id]
		}
		return id
	}
	for i := range p.Tests {
		for _, id := range p.Tests[i].Cases {
			parent[root(id)] = root(p.Tests[i].Cases[0])
		}
	}
	var groups []group
	index := map[string]int{}
	for i := range p.Cases {
		c := &p.Cases[i]
		if len(c.TestIDs) == 0 {
			continue
		}
		r := root(c.ID)
		if _, ok := index[r]; !ok {
			index[r] = len(groups)
			groups = append(groups, group{})
		}
		groups[index[r]].cases = append(groups[index[r]].cases, c.ID)
	}
	trial := p.OnTrial()
	for i := range p.Tests {
		t := &p.Tests[i]
		g := &groups[index[root(t.Cases[0])]]
		if t.Phase == specs.Parallel {
			g.beside += t.Duration
		} else {
			g.alone += t.Duration
		}
		g.trial = g.trial || trial[t.ID]
	}
	return groups
}

// Loads returns how long the tests of each shard of the plan take, one after the other,
// without what it takes to start e2e.test.
func Loads(p *result.Plan) []time.Duration {
	loads := make([]time.Duration, p.Shards)
	for i := range p.Tests {
		loads[p.Tests[i].Shard-1] += p.Tests[i].Duration
	}
	return loads
}
