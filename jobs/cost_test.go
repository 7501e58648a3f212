package jobs_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/config"
	"github.com/windows-op-readiness/windows-op-readiness/jobs"
)

const costing = `repository: example/cni
matrix: {kubernetes: [master], windows: ["2022"], provider: [capz]}
run: {categories: [Core.Network]}
prow:
  profile: capz
  image: kubekins-master
  periodics: {every: 12h}
`

func costOf(t *testing.T, text string) (*config.Config, *jobs.Cost, jobs.JobCost) {
	t.Helper()
	c := parse(t, text)
	cost, err := jobs.CostOf(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range cost.Jobs {
		if j.Job.Kind == config.Periodic {
			return c, cost, j
		}
	}
	t.Fatal("there is no periodic job")
	return nil, nil, jobs.JobCost{}
}

func TestCost(t *testing.T) {
	_, cost, base := costOf(t, costing)
	if base.RunsPerWeek != 14 || base.Machines != 5 || base.Run <= 45*time.Minute {
		t.Errorf("%+v", base)
	}
	if want := base.RunsPerWeek * base.Run.Hours() * 5; math.Abs(cost.MachineHoursPerWeek-want) > 1e-9 || cost.RunsPerWeek != 14 {
		t.Errorf("in all %f machine-hours in %f runs, want %f: what comments start has no share", cost.MachineHoursPerWeek, cost.RunsPerWeek, want)
	}
	tests := base.Run - 45*time.Minute
	for what, c := range map[string]struct {
		replace [2]string
		want    func(jobs.JobCost) bool
	}{
		"more Windows nodes are more machines": {[2]string{"image: kubekins-master", "image: k-master\n  env: {WINDOWS_WORKER_MACHINE_COUNT: \"4\"}"},
			func(j jobs.JobCost) bool { return j.Machines == 7 && j.Run == base.Run }},
		"an existing cluster is nobody's cost": {[2]string{"provider: [capz]}", "provider: [rke2]}"},
			func(j jobs.JobCost) bool { return j.Machines == 1 && j.Run == tests+5*time.Minute }},
		"tests beside each other take less": {[2]string{"run: {", "run: {procs: 2, "},
			func(j jobs.JobCost) bool { return j.Run == tests/2+45*time.Minute }},
		"more categories take more": {[2]string{"[Core.Network]", "[Core.Network, Core.Storage]"},
			func(j jobs.JobCost) bool { return j.Run > base.Run }},
		"a pause comes after the run": {[2]string{"every: 12h", "minimumInterval: 12h"},
			func(j jobs.JobCost) bool {
				return math.Abs(j.RunsPerWeek-7*24/(12+base.Run.Hours())) < 1e-9
			}},
	} {
		t.Run(what, func(t *testing.T) {
			text := strings.Replace(costing, c.replace[0], c.replace[1], 1)
			if strings.Contains(text, "rke2") {
				text = strings.Replace(text, "profile: capz", "kubeconfigSecret: k", 1)
			}
			if _, _, got := costOf(t, text); !c.want(got) {
				t.Errorf("it is %s on %d machines, %f times a week; before %s on %d, %f times", got.Run, got.Machines, got.RunsPerWeek, base.Run, base.Machines, base.RunsPerWeek)
			}
		})
	}
}

func TestCost_above_the_budget(t *testing.T) {
	c, cost, _ := costOf(t, costing+"  budgetMachineHoursPerWeek: 10\n")
	var problems config.Problems
	if err := cost.Check(c); !errors.As(err, &problems) || problems[0].Line != 8 || problems[0].Field != "prow.budgetMachineHoursPerWeek" {
		t.Errorf("%v", err)
	}
	c, cost, _ = costOf(t, costing+"  budgetMachineHoursPerWeek: 1000\n")
	if err := cost.Check(c); err != nil {
		t.Errorf("within the budget: %v", err)
	}
}
