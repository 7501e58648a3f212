package cli

import (
	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/prow"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/github"
)

// sourceOf finds out which job this is, and what it tests.
func sourceOf(s *Surroundings) (result.Source, error) {
	job, err := prow.FromEnvironment(s.Getenv)
	if err != nil {
		return result.Source{}, usageErrorf("%w", err)
	}
	if job != nil {
		return job.Source(), nil
	}
	workflow, err := github.FromEnvironment(s.Getenv)
	if err != nil {
		return result.Source{}, usageErrorf("%w", err)
	}
	if workflow != nil {
		return workflow.Source(), nil
	}
	return result.Source{}, nil
}

// deliver puts what a results folder holds where the job's CI system takes it
// from, if it is to be somewhere else.
func deliver(s *Surroundings, dir string) error {
	job, err := prow.FromEnvironment(s.Getenv)
	if err != nil || job == nil || !job.Decorated() {
		return err
	}
	return prow.Deliver(dir, s.Getenv("ARTIFACTS"))
}
