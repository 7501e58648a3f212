package prow

import (
	"strings"
	"testing"
	"time"

	prowapi "sigs.k8s.io/prow/pkg/apis/prowjobs/v1"
	"sigs.k8s.io/prow/pkg/pod-utils/downwardapi"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
)

// environment is what Prow itself puts around a job.
func environment(t *testing.T, spec prowapi.ProwJobSpec) func(string) string {
	t.Helper()
	env, err := downwardapi.EnvForSpec(downwardapi.NewJobSpec(spec, "1836000000000000017", "id"))
	if err != nil {
		t.Fatal(err)
	}
	return func(key string) string { return env[key] }
}

func TestSourceOfAJob(t *testing.T) {
	org := prowapi.Refs{Org: "o", Repo: "r", BaseRef: "main", BaseSHA: "base"}
	pull, batch := org, org
	pull.Pulls = []prowapi.Pull{{Number: 7, SHA: "seven"}}
	batch.Pulls = []prowapi.Pull{{Number: 7, SHA: "seven"}, {Number: 8, SHA: "eight"}}
	of := func(commit string, number int) result.Source {
		return result.Source{System: result.Prow, Job: "j", Build: "1836000000000000017", Repository: "o/r", Commit: commit, Pull: number}
	}
	for what, c := range map[string]struct {
		spec prowapi.ProwJobSpec
		want result.Source
	}{
		"a presubmit":               {prowapi.ProwJobSpec{Type: prowapi.PresubmitJob, Job: "j", Refs: &pull}, of("seven", 7)},
		"a postsubmit":              {prowapi.ProwJobSpec{Type: prowapi.PostsubmitJob, Job: "j", Refs: &org}, of("base", 0)},
		"a batch":                   {prowapi.ProwJobSpec{Type: prowapi.BatchJob, Job: "j", Refs: &batch}, of("seven,eight", 0)},
		"a periodic":                {prowapi.ProwJobSpec{Type: prowapi.PeriodicJob, Job: "j", ExtraRefs: []prowapi.Refs{org}}, of("base", 0)},
		"a periodic with no source": {prowapi.ProwJobSpec{Type: prowapi.PeriodicJob, Job: "j"}, result.Source{System: result.Prow, Job: "j", Build: "1836000000000000017"}},
	} {
		j, err := FromEnvironment(environment(t, c.spec))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got := j.Source(); got != c.want {
			t.Errorf("%s: %+v, want %+v", what, got, c.want)
		}
		if c.spec.ExtraRefs != nil {
			continue // of them only $JOB_SPEC tells
		}
		env := environment(t, c.spec)
		j, err = FromEnvironment(func(key string) string {
			if key == downwardapi.JobSpecEnv {
				return ""
			}
			return env(key)
		})
		if err != nil || j == nil || j.Source() != c.want || j.BuildID() != c.want.Build || j.Decorated() {
			t.Errorf("%s, without $JOB_SPEC: %+v (%v), want %+v", what, j, err, c.want)
		}
	}
}

func TestOutsideOfProw(t *testing.T) {
	if j, err := FromEnvironment(func(string) string { return "" }); j != nil || err != nil {
		t.Errorf("%v, %v", j, err)
	}
	if _, err := FromEnvironment(func(string) string { return "{" }); err == nil {
		t.Error("half a specification is accepted")
	}
	broken := map[string]string{"PROW_JOB_ID": "id", "PULL_REFS": "main:a,x:b", "REPO_OWNER": "o", "REPO_NAME": "r"}
	if _, err := FromEnvironment(func(key string) string { return broken[key] }); err == nil || !strings.Contains(err.Error(), "$PULL_REFS") {
		t.Errorf("refs that are none: %v", err)
	}
}

func TestDecoration(t *testing.T) {
	grace := prowapi.Duration{Duration: 15 * time.Minute}
	j, err := FromEnvironment(environment(t, prowapi.ProwJobSpec{Type: prowapi.PeriodicJob, Job: "j", DecorationConfig: &prowapi.DecorationConfig{GracePeriod: &grace}}))
	if err != nil || !j.Decorated() || j.GracePeriod() != grace.Duration {
		t.Errorf("%v, %v, %v", err, j.Decorated(), j.GracePeriod())
	}
	if j, _ = FromEnvironment(environment(t, prowapi.ProwJobSpec{Type: prowapi.PeriodicJob, Job: "j"})); j.Decorated() || j.GracePeriod() != 0 {
		t.Error("a job without decoration has some")
	}
}

func TestTheTimesOfDecoration(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	for spec, want := range map[string]struct{ timeout, stop time.Duration }{
		`{"decoration_config":{"timeout":"3h","grace_period":"15m"}}`: {3*time.Hour + 5*time.Second, 14*time.Minute + 30*time.Second},
		`{"decoration_config":{"timeout":"1h","grace_period":"20s"}}`: {time.Hour + 2*time.Second, 15 * time.Second},
		`{"decoration_config":{}}`:                                    {2*time.Hour + 1500*time.Millisecond, 15*time.Second - 15*time.Second/4},
		`{}`:                                                          {},
		``:                                                            {},
	} {
		job, err := FromEnvironment(func(string) string { return spec })
		if err != nil {
			t.Fatal(err)
		}
		var timeout time.Duration
		if at := job.Deadline(now, 0); !at.IsZero() {
			timeout = at.Sub(now)
		}
		if got := job.TimeToStop(0); timeout != want.timeout || got != want.stop {
			t.Errorf("%s: deadline after %v, want %v; %v to stop, want %v", spec, timeout, want.timeout, got, want.stop)
		}
	}
}
