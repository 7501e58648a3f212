package config

import "time"

// minPresubmitRuns is the least that kubernetes/test-infra has for recent runs
// of a presubmit: those of different pull requests are mixed.
const minPresubmitRuns = 20

// RecentRuns is how many runs of a job count as recent in TestGrid.
func (c *Config) RecentRuns(j Job) int {
	if j.Kind == Presubmit {
		return max(c.TestGrid.RecentRuns, minPresubmitRuns)
	}
	return c.TestGrid.RecentRuns
}

// StaleHours is after how many hours without results a periodic job is late.
func (c *Config) StaleHours(j Job) int {
	if c.TestGrid.StaleHours > 0 {
		return c.TestGrid.StaleHours
	}
	return Duration(2*j.Period + time.Duration(j.Settings.Timeout)).Hours()
}
