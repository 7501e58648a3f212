package run

import (
	"slices"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
)

// Due returns the tests that a run begins with: those of [Tests] that have no
// answer that counts in previous, which is nil for a new run, or that failed and
// may be retried so often.
func Due(plan *result.Plan, manifest *result.Manifest, previous *result.Run, retries int) []*result.PlannedTest {
	tests := Tests(plan, manifest)
	if previous == nil {
		return tests
	}
	return slices.DeleteFunc(tests, func(t *result.PlannedTest) bool {
		runs := previous.Attempts[t.ID]
		return answered(runs, previous.Sound) && (!failed(runs) || failures(runs) > retries)
	})
}

// Spent returns how many tests of a run failed last, and how often a failed test
// must be retried for all of them to run again.
func Spent(previous *result.Run) (tests, retries int) {
	for _, t := range Tests(previous.Plan, previous.Manifest) {
		if runs := previous.Attempts[t.ID]; failed(runs) {
			tests++
			retries = max(retries, failures(runs))
		}
	}
	return tests, retries
}

// failed reports whether the newest attempt at a test failed.
func failed(runs []result.TestRun) bool {
	return len(runs) > 0 && runs[len(runs)-1].State == result.TestFailed
}

// failures counts how often a test failed.
func failures(runs []result.TestRun) (n int) {
	for _, r := range runs {
		if r.State == result.TestFailed {
			n++
		}
	}
	return n
}
