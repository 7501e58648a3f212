package prow

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/prow/pkg/pod-utils/downwardapi"

	"github.com/windows-op-readiness/windows-op-readiness/internal/result"
)

// Job is the Prow job that this process runs in.
type Job struct {
	spec downwardapi.JobSpec
}

// FromEnvironment returns the job that $JOB_SPEC describes; nil outside of Prow.
// getenv returns the value of a variable, "" where it is not set.
func FromEnvironment(getenv func(string) string) (*Job, error) {
	text := getenv(downwardapi.JobSpecEnv)
	if text == "" {
		return nil, nil
	}
	j := new(Job)
	if err := json.Unmarshal([]byte(text), &j.spec); err != nil {
		return nil, fmt.Errorf("$%s is not what Prow puts there: %w: unset it outside of a Prow job", downwardapi.JobSpecEnv, err)
	}
	return j, nil
}

// BuildID is the id of the build; "" where Prow gave none.
func (j *Job) BuildID() string { return j.spec.BuildID }

// Source is what the job tests.
func (j *Job) Source() result.Source {
	s := result.Source{System: result.Prow, Job: j.spec.Job, Build: j.spec.BuildID}
	refs := j.spec.Refs
	if refs == nil && len(j.spec.ExtraRefs) > 0 {
		// A periodic tests what it checks out first.
		refs = &j.spec.ExtraRefs[0]
	}
	if refs == nil {
		return s
	}
	s.Repository, s.Commit = refs.Org+"/"+refs.Repo, refs.BaseSHA
	if len(refs.Pulls) == 1 {
		s.Pull, s.Commit = refs.Pulls[0].Number, refs.Pulls[0].SHA
	}
	if len(refs.Pulls) > 1 {
		// A batch tests several pull requests at once, and no commit has them all.
		var all []string
		for _, p := range refs.Pulls {
			all = append(all, p.SHA)
		}
		s.Commit = strings.Join(all, ",")
	}
	return s
}

// entrypointGrace is how long Prow's entrypoint waits where it is not told:
// https://github.com/kubernetes-sigs/prow/blob/main/pkg/entrypoint/run.go
const entrypointGrace = 15 * time.Second

// GracePeriod is how long Prow waits after its interrupt before it kills the
// job; 0 where nothing of Prow's is around it.
func (j *Job) GracePeriod() time.Duration {
	d := j.spec.DecorationConfig
	switch {
	case d == nil:
		return 0
	case d.GracePeriod == nil || d.GracePeriod.Duration <= 0:
		return entrypointGrace
	}
	return d.GracePeriod.Duration
}

// TimeToStop is how long after Prow's interrupt, or the [Job.Deadline], the tests
// may take to be over: the grace period without what writing results takes, and
// of a reserve a quarter, for it is somebody else's. 0 is no limit, also for a
// nil j.
func (j *Job) TimeToStop(reserve time.Duration) time.Duration {
	if j == nil {
		return 0
	}
	grace := j.GracePeriod()
	stop := grace - min(grace/4, 30*time.Second)
	if reserve > 0 {
		stop = min(stop, reserve/4)
	}
	return stop
}

// Decorated reports whether Prow's sidecar uploads what the job leaves behind.
func (j *Job) Decorated() bool { return j.spec.DecorationConfig != nil }
