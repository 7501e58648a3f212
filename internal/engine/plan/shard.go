package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
)

// shard cuts the plan: every test, and every case, goes to one shard. Cases
// that share a test stay together, so that the test runs once and each shard
// can judge all of its cases by itself. The groups go, longest first, each to
// the shard that has the least to do; ties go to the shard with the lower
// number, and among groups to the one whose first case comes first.
func shard(p *result.Plan) {
	groups := linked(p)
	slices.SortStableFunc(groups, func(a, b group) int { return cmp.Compare(b.duration, a.duration) })
	load := make([]time.Duration, p.Shards)
	of := map[string]int{}
	for _, g := range groups {
		least := 0
		for i := range load {
			if load[i] < load[least] {
				least = i
			}
		}
		load[least] += g.duration
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
	cases    []string
	duration time.Duration
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
	for i := range p.Tests {
		groups[index[root(p.Tests[i].Cases[0])]].duration += p.Tests[i].Duration
	}
	return groups
}

// Loads returns how long each shard of the plan is expected to take, without
// what it takes to start e2e.test.
func Loads(p *result.Plan) []time.Duration {
	loads := make([]time.Duration, p.Shards)
	for i := range p.Tests {
		loads[p.Tests[i].Shard-1] += p.Tests[i].Duration
	}
	return loads
}
