package plan_test

import (
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/plan"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// inShard is a test of a plan that was cut by hand.
func inShard(shard int, phase specs.Phase, minutes int) result.PlannedTest {
	return result.PlannedTest{Shard: shard, Phase: phase, Duration: time.Duration(minutes) * time.Minute}
}

func TestWallFollowsTheRulesOfTheLock(t *testing.T) {
	for name, c := range map[string]struct {
		shared bool
		procs  int
		tests  []result.PlannedTest
		want   int
	}{
		"one shard, one at a time":                    {true, 1, []result.PlannedTest{inShard(1, specs.Parallel, 5), inShard(1, specs.Parallel, 3), inShard(1, specs.Serial, 2), inShard(1, specs.Disruptive, 1)}, 11},
		"one shard, two at a time":                    {true, 2, []result.PlannedTest{inShard(1, specs.Parallel, 5), inShard(1, specs.Parallel, 3), inShard(1, specs.Serial, 2), inShard(1, specs.Serial, 2)}, 9},
		"those that are beside others run together":   {true, 1, []result.PlannedTest{inShard(1, specs.Parallel, 5), inShard(2, specs.Parallel, 3)}, 5},
		"who is alone waits until nobody is there":    {true, 1, []result.PlannedTest{inShard(1, specs.Parallel, 5), inShard(2, specs.Parallel, 1), inShard(2, specs.Serial, 2)}, 7},
		"and lets nobody in":                          {true, 1, []result.PlannedTest{inShard(1, specs.Serial, 5), inShard(2, specs.Parallel, 3)}, 8},
		"two that are alone are one after the other":  {true, 1, []result.PlannedTest{inShard(1, specs.Serial, 5), inShard(2, specs.Disruptive, 3)}, 8},
		"on clusters of their own nobody waits":       {false, 1, []result.PlannedTest{inShard(1, specs.Serial, 5), inShard(2, specs.Disruptive, 3), inShard(2, specs.Disruptive, 1)}, 5},
		"nothing":                                     {true, 1, nil, 0},
		"an empty shard takes no time, and no shares": {true, 4, []result.PlannedTest{inShard(2, specs.Parallel, 4)}, 4},
	} {
		p := &result.Plan{Shards: 2, Shared: c.shared, Tests: c.tests}
		if got := plan.Wall(p, c.procs); got != time.Duration(c.want)*time.Minute {
			t.Errorf("%s: %v, want %d minutes", name, got, c.want)
		}
	}
}

// On a cluster that shards share, what must be alone is in one shard, and the others have
// equally much of the rest.
func TestOnASharedClusterWhatMustBeAloneIsInTheFirstShard(t *testing.T) {
	req := request(t)
	req.Selection.Additional, req.Selection.Trial, req.Shared = false, true, true
	for shards := 2; shards <= 8; shards++ {
		req.Shards = shards
		p := makePlan(t, req)
		trial := p.OnTrial()
		for i := range p.Tests {
			if test := &p.Tests[i]; test.Phase != specs.Parallel && test.Shard != 1 {
				t.Errorf("%d shards: %s is in shard %d", shards, test.Name, test.Shard)
			} else if trial[test.ID] && test.Phase == specs.Parallel && test.Shard == 1 && len(test.Cases) == 1 {
				t.Errorf("%d shards: the trial %s runs while the others have nothing to do", shards, test.Name)
			}
		}
	}
	one := makePlan(t, request(t))
	if one.Shared {
		t.Error("a plan of one shard is shared")
	}
}

// Tests of one process are dealt to few lanes, where that takes no longer.
func TestDealSavesProcesses(t *testing.T) {
	var tests []*result.PlannedTest
	for range 8 {
		for _, os := range []specs.OS{"", specs.Linux, specs.Windows} {
			tests = append(tests, &result.PlannedTest{Duration: 10 * time.Second, Conditions: result.RunConditions{Steer: os}})
		}
	}
	processes := 0
	for _, lane := range plan.Deal(tests, 3) {
		conditions := map[result.RunConditions]bool{}
		for _, test := range lane {
			conditions[test.Conditions] = true
		}
		processes += len(conditions)
		if len(lane) != 8 {
			t.Errorf("a lane has %d of %d tests", len(lane), len(tests))
		}
	}
	if processes != 3 {
		t.Errorf("%d processes are started where 3 do", processes)
	}
}
