package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// start is about how long it takes to start e2e.test, and to steer it: tests of the same
// suite and conditions run in one process.
const start = 5 * time.Second

// Deal gives each test, longest first, to the lane that is done with it first, where a lane
// that has none of its suite and conditions must start a process for it. In a lane tests
// keep their order.
func Deal(tests []*result.PlannedTest, lanes int) [][]*result.PlannedTest {
	type process struct {
		lane       int
		suite      specs.Suite
		conditions result.RunConditions
	}
	order := make([]int, len(tests))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(tests[b].Duration, tests[a].Duration) })
	dealt := make([][]int, lanes)
	load := make([]time.Duration, lanes)
	started := map[process]bool{}
	for _, i := range order {
		t := tests[i]
		best, bestEnd, bestProcess := 0, time.Duration(-1), process{}
		for lane := range load {
			p := process{lane, specs.SuiteOf(t.Name), t.Conditions}
			end := load[lane] + t.Duration
			if !started[p] {
				end += start
			}
			if bestEnd < 0 || end < bestEnd {
				best, bestEnd, bestProcess = lane, end, p
			}
		}
		load[best], started[bestProcess] = bestEnd, true
		dealt[best] = append(dealt[best], i)
	}
	out := make([][]*result.PlannedTest, lanes)
	for lane, indices := range dealt {
		slices.Sort(indices)
		for _, i := range indices {
			out[lane] = append(out[lane], tests[i])
		}
	}
	return out
}

// stage is what a shard does at a stretch, under one hold of the cluster.
type stage struct {
	alone bool
	takes time.Duration
}

// stages are those of each shard, with so many tests beside each other.
func stages(p *result.Plan, procs int) [][]stage {
	trial := p.OnTrial()
	shards := make([][]stage, p.Shards)
	for shard := range shards {
		var tests []*result.PlannedTest
		for i := range p.Tests {
			if p.Tests[i].Shard == shard+1 {
				tests = append(tests, &p.Tests[i])
			}
		}
		for len(tests) > 0 {
			first, n := tests[0], 0
			for n < len(tests) && tests[n].Phase == first.Phase && trial[tests[n].ID] == trial[first.ID] {
				n++
			}
			s := stage{alone: first.Phase != specs.Parallel}
			lanes := procs
			if s.alone {
				lanes = 1
			}
			for _, lane := range Deal(tests[:n], max(lanes, 1)) {
				var takes time.Duration
				for _, t := range lane {
					takes += t.Duration
				}
				s.takes = max(s.takes, takes)
			}
			shards[shard] = append(shards[shard], s)
			tests = tests[n:]
		}
	}
	return shards
}

// Wall returns how long the plan is expected to take, from when all its shards start to
// when the last one ends, with so many tests beside each other in each, and without what
// it takes to start e2e.test. On a cluster that they share, shards wait for each other as
// under the cluster lock, where pods are steered by admission policies: who is alone lets
// nobody in, and waits until nobody is there.
func Wall(p *result.Plan, procs int) time.Duration {
	left := stages(p, procs)
	if !p.Shared {
		var longest time.Duration
		for _, shard := range left {
			var takes time.Duration
			for _, s := range shard {
				takes += s.takes
			}
			longest = max(longest, takes)
		}
		return longest
	}
	type work struct {
		shard int
		alone bool
		end   time.Duration
	}
	var now time.Duration
	var at []work
	for {
		for i, shard := range left {
			busy := slices.ContainsFunc(at, func(w work) bool { return w.shard == i })
			if busy || len(shard) == 0 || len(at) > 0 && (shard[0].alone || at[0].alone) {
				continue
			}
			at = append(at, work{i, shard[0].alone, now + shard[0].takes})
			left[i] = shard[1:]
		}
		if len(at) == 0 {
			return now
		}
		next := slices.MinFunc(at, func(a, b work) int { return cmp.Compare(a.end, b.end) })
		now = next.end
		at = slices.DeleteFunc(at, func(w work) bool { return w.end == now })
	}
}
