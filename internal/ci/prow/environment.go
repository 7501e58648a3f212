package prow

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	prowapi "sigs.k8s.io/prow/pkg/apis/prowjobs/v1"
	"sigs.k8s.io/prow/pkg/clonerefs"
	"sigs.k8s.io/prow/pkg/pod-utils/downwardapi"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
)

// Job is the Prow job that this process runs in.
type Job struct {
	spec downwardapi.JobSpec
}

// FromEnvironment returns the job that $JOB_SPEC describes, or, where only the
// other variables of Prow were passed on, such as into a container in the job,
// $PROW_JOB_ID and those beside it; nil outside of Prow. getenv returns the value
// of a variable, "" where it is not set.
func FromEnvironment(getenv func(string) string) (*Job, error) {
	text := getenv(downwardapi.JobSpecEnv)
	j := new(Job)
	if text == "" {
		if getenv("PROW_JOB_ID") == "" {
			return nil, nil
		}
		var err error
		j.spec, err = fromVariables(getenv)
		return j, err
	}
	if err := json.Unmarshal([]byte(text), &j.spec); err != nil {
		return nil, fmt.Errorf("$%s is not what Prow puts there: %w: unset it outside of a Prow job", downwardapi.JobSpecEnv, err)
	}
	return j, nil
}

// fromVariables makes what $JOB_SPEC says of the variables that Prow sets beside
// it. They do not tell of decoration.
func fromVariables(getenv func(string) string) (downwardapi.JobSpec, error) {
	spec := downwardapi.JobSpec{
		Type: prowapi.ProwJobType(getenv("JOB_TYPE")), Job: getenv("JOB_NAME"), BuildID: getenv("BUILD_ID"), ProwJobID: getenv("PROW_JOB_ID"),
	}
	if refs := getenv("PULL_REFS"); refs != "" {
		var err error
		if spec.Refs, err = clonerefs.ParseRefs(getenv("REPO_OWNER") + "," + getenv("REPO_NAME") + "=" + refs); err != nil {
			return spec, fmt.Errorf("$PULL_REFS, $REPO_OWNER and $REPO_NAME are not what Prow puts there: %w: unset $PROW_JOB_ID outside of a Prow job", err)
		}
	}
	return spec, nil
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
// of a reserve a quarter, for it is somebody else's. 0 means no limit, also for a
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
