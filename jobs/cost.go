package jobs

import (
	"fmt"
	"strconv"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/config"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/plan"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Machines that run-capz-e2e.sh makes beside the job's own: one that manages
// the cluster, and by default one with the control plane and two with Windows.
const capzManagement = 1

// JobCost is what one job is expected to cost.
type JobCost struct {
	Job config.Job `json:"job"`
	// RunsPerWeek is 0 for jobs that comments and changes start: nobody knows.
	RunsPerWeek float64 `json:"runsPerWeek"`
	// Run is how long a run takes: its tests, with the durations that the
	// standard's cases have, one shard, and what is assumed beside them.
	Run time.Duration `json:"-"`
	// RunHours is Run in hours.
	RunHours float64 `json:"runHours"`
	// Machines are those that a run takes for itself: its pod's, and those that
	// it makes.
	Machines int `json:"machines"`
	// MachineHoursPerWeek is the product of the three.
	MachineHoursPerWeek float64 `json:"machineHoursPerWeek"`
}

// Cost is what all Prow jobs of a configuration are expected to cost.
type Cost struct {
	Jobs                []JobCost `json:"jobs"`
	RunsPerWeek         float64   `json:"runsPerWeek"`
	MachineHoursPerWeek float64   `json:"machineHoursPerWeek"`
	// Budget is the file's limit, 0 for none.
	Budget int `json:"budgetMachineHoursPerWeek,omitempty"`
}

// CostOf estimates the cost of a configuration's Prow jobs.
func CostOf(c *config.Config) (*Cost, error) {
	total := &Cost{}
	if c.Prow == nil {
		return total, nil
	}
	total.Budget = c.Prow.BudgetMachineHoursPerWeek
	durations := durations{}
	for _, j := range c.Jobs() {
		if !j.InProw {
			continue
		}
		cost := JobCost{Job: j, Run: j.Cell.Setup(), Machines: 1}
		if j.Kind != config.Postsubmit {
			tests, err := durations.of(c, j)
			if err != nil {
				return nil, err
			}
			if j.Cell.Provider == config.ProviderCAPZ {
				cost.Machines += capzMachines(j)
			}
			cost.Run = min(cost.Run+tests, time.Duration(j.Settings.Timeout+j.Settings.GracePeriod))
		}
		if j.Kind == config.Periodic {
			cost.RunsPerWeek = j.Schedule.RunsPerWeek(cost.Run)
		}
		cost.RunHours = cost.Run.Hours()
		cost.MachineHoursPerWeek = cost.RunsPerWeek * cost.RunHours * float64(cost.Machines)
		total.Jobs = append(total.Jobs, cost)
		total.RunsPerWeek += cost.RunsPerWeek
		total.MachineHoursPerWeek += cost.MachineHoursPerWeek
	}
	return total, nil
}

// Check refuses a cost above the file's budget; it is [config.Problems].
func (t *Cost) Check(c *config.Config) error {
	if t.Budget == 0 || t.MachineHoursPerWeek <= float64(t.Budget) {
		return nil
	}
	return config.Problems{c.Problem("prow.budgetMachineHoursPerWeek",
		"%d is below the %.0f machine-hours a week that the jobs are expected to take: run them less often (prow.periodics.every, overrides), leave out cells, or raise it; 'op-readiness generate prow --cost' shows each job's",
		t.Budget, t.MachineHoursPerWeek)}
}

// capzMachines are those that run-capz-e2e.sh makes for the job.
func capzMachines(j config.Job) int {
	n := capzManagement
	for name, usual := range map[string]int{"AZURE_CONTROL_PLANE_MACHINE_COUNT": 1, "WINDOWS_WORKER_MACHINE_COUNT": 2} {
		if given, err := strconv.Atoi(j.Settings.Env[name]); err == nil && given > 0 {
			usual = given
		}
		n += usual
	}
	return n
}

// durations are how long the tests of a plan take, found once for all jobs
// alike.
type durations map[string]time.Duration

func (d durations) of(c *config.Config, j config.Job) (time.Duration, error) {
	version := nearest(j.Cell.Version())
	key := version + " " + string(j.Category)
	if known, ok := d[key]; ok {
		return known, nil
	}
	p, err := planOf(c, j, version)
	if err != nil {
		return 0, fmt.Errorf("estimating the cost of %s: %w", j.Name, err)
	}
	// Without run.procs, how many tests run at a time is up to the cluster: this is the
	// most.
	d[key] = plan.Wall(p, max(c.Run.Procs, 1))
	return d[key], nil
}

// nearest is the version, of those whose tests are known, that is nearest below:
// the same minor, else the newest.
func nearest(version string) string {
	known := specs.Catalogues()
	if v, err := specs.ParseVersion(version); err == nil {
		for i := len(known) - 1; i >= 0; i-- {
			if k, err := specs.ParseVersion(known[i]); err == nil && k.MinorString() == v.MinorString() {
				return known[i]
			}
		}
	}
	return known[len(known)-1]
}

func planOf(c *config.Config, j config.Job, version string) (*result.Plan, error) {
	set, err := specs.Embedded()
	if err != nil {
		return nil, err
	}
	cases, err := set.For(version)
	if err != nil {
		return nil, err
	}
	tests, err := specs.Catalogue(version)
	if err != nil {
		return nil, err
	}
	return plan.Make(plan.Request{
		Cases:     cases,
		Tests:     tests,
		Provider:  c.Run.E2EProvider,
		Selection: result.Selection{Categories: c.JobCategories(j), Additional: c.Run.Additional},
		Shards:    1,
	})
}

// Table is a table of what each job cs, and all of them.
func (t *Cost) Table() *report.Table {
	table := &report.Table{
		Header: []string{"Job", "Runs", "Runs/week", "Run", "Machines", "Machine-hours/week"},
		Value:  t,
	}
	for _, j := range t.Jobs {
		weekly, hours := "on demand", ""
		if j.RunsPerWeek > 0 {
			weekly, hours = fmt.Sprintf("%.1f", j.RunsPerWeek), fmt.Sprintf("%.1f", j.MachineHoursPerWeek)
		}
		table.Rows = append(table.Rows, []string{j.Job.Name, j.Job.When(), weekly, config.Duration(j.Run.Round(time.Minute)).String(), fmt.Sprint(j.Machines), hours})
	}
	table.Rows = append(table.Rows, []string{"all", "", fmt.Sprintf("%.1f", t.RunsPerWeek), "", "", fmt.Sprintf("%.1f", t.MachineHoursPerWeek)})
	return table
}
