package testgrid_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/testgrid"
)

var presubmit = testgrid.Job{
	Name: "pull-windows-readiness", Type: testgrid.Presubmit, Org: "kubernetes", Repo: "kubernetes", Pull: 123,
	Strategy: testgrid.StrategyExplicit, DefaultOrg: "kubernetes", DefaultRepo: "kubernetes",
}

func TestPaths(t *testing.T) {
	const id = "1790000000000123456"
	batch := testgrid.Job{Name: "pull-windows-readiness", Type: testgrid.Batch, Strategy: testgrid.StrategyExplicit}
	other := func(org, repo, strategy string) testgrid.Job {
		j := presubmit
		j.Org, j.Repo, j.Strategy = org, repo, strategy
		return j
	}
	for _, c := range []struct {
		job                   testgrid.Job
		build, alias, listing string
		latest                []string
	}{
		{periodic, "logs/windows-readiness/" + id, "", "logs/windows-readiness/", []string{"logs/windows-readiness/latest-build.txt"}},
		{batch, "pr-logs/pull/batch/pull-windows-readiness/" + id, "", "pr-logs/pull/batch/pull-windows-readiness/", []string{"pr-logs/directory/pull-windows-readiness/latest-build.txt"}},
		{presubmit, "pr-logs/pull/kubernetes_kubernetes/123/pull-windows-readiness/" + id, "pr-logs/directory/pull-windows-readiness/" + id + ".txt", "pr-logs/directory/pull-windows-readiness/",
			[]string{"pr-logs/directory/pull-windows-readiness/latest-build.txt", "pr-logs/pull/kubernetes_kubernetes/123/pull-windows-readiness/latest-build.txt"}},
		{job: other("kubernetes", "kubernetes", testgrid.StrategyLegacy), build: "pr-logs/pull/123/pull-windows-readiness/" + id},
		{job: other("kubernetes", "test-infra", testgrid.StrategyLegacy), build: "pr-logs/pull/test-infra/123/pull-windows-readiness/" + id},
		{job: other("kubernetes-sigs", "kind", testgrid.StrategyLegacy), build: "pr-logs/pull/kubernetes-sigs_kind/123/pull-windows-readiness/" + id},
		{job: other("kubernetes", "kubernetes", testgrid.StrategySingle), build: "pr-logs/pull/123/pull-windows-readiness/" + id},
		{job: other("kubernetes", "test-infra", testgrid.StrategySingle), build: "pr-logs/pull/kubernetes_test-infra/123/pull-windows-readiness/" + id},
	} {
		if err := c.job.Validate(); err != nil {
			t.Errorf("%+v: %v", c.job, err)
			continue
		}
		if got := c.job.BuildDir(id); got != c.build {
			t.Errorf("build %s, want %s", got, c.build)
		}
		if c.listing == "" {
			continue
		}
		if alias, listing, latest := c.job.Alias(id), c.job.BuildsDir(), c.job.LatestBuild(); alias != c.alias || listing != c.listing || !slices.Equal(latest, c.latest) {
			t.Errorf("%s: alias %q, builds in %q, latest %q; want %q, %q, %q", c.build, alias, listing, latest, c.alias, c.listing, c.latest)
		}
	}
}

func TestJobsThatAreNone(t *testing.T) {
	for flag, change := range map[string]func(*testgrid.Job){
		"--job \"\"":        func(j *testgrid.Job) { j.Name = "" },
		"--job \"../x\"":    func(j *testgrid.Job) { j.Name = "../x" },
		"--job \"..\"":      func(j *testgrid.Job) { j.Name = ".." },
		"--job \"a b\"":     func(j *testgrid.Job) { j.Name = "a b" },
		"--type \"weekly\"": func(j *testgrid.Job) { j.Type = "weekly" },
		"--path-strategy":   func(j *testgrid.Job) { j.Strategy = "" },
		"--org":             func(j *testgrid.Job) { j.Org = "" },
		"--repo":            func(j *testgrid.Job) { j.Repo = "a/../b" },
		"--pull":            func(j *testgrid.Job) { j.Pull = 0 },
		"--default-org":     func(j *testgrid.Job) { j.Strategy, j.DefaultOrg = testgrid.StrategyLegacy, "" },
		"--pull 123 is for": func(j *testgrid.Job) { j.Type = testgrid.Batch },
	} {
		job := presubmit
		change(&job)
		err := job.Validate()
		if name, _, _ := strings.Cut(flag, " \""); !errors.Is(err, testgrid.ErrJob) || !strings.Contains(fmt.Sprint(err), name) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// All that is wrong with a job is said at once.
func TestEverythingThatIsWrongWithAJob(t *testing.T) {
	job := testgrid.Job{Name: "a b", Type: testgrid.Presubmit, Repo: "..", Strategy: "short"}
	err := job.Validate()
	if want := `--job "a b": a name has letters, digits, '-', '.' and '_', and at most 200 of them
--path-strategy "short": it is explicit, legacy or single
--org is missing: say the organisation of the pull request
--repo "..": a name has letters, digits, '-', '.' and '_', and at most 200 of them
--pull 0: a presubmit runs on a pull request; say its number`; !errors.Is(err, testgrid.ErrJob) || fmt.Sprint(err) != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// What is written as one elsewhere is two flags here.
func TestARepositoryWithItsOrganisation(t *testing.T) {
	job := testgrid.Job{Name: "x", Type: testgrid.Presubmit, Repo: "kubernetes/test-infra", Pull: 1, Strategy: testgrid.StrategyExplicit}
	if err, want := job.Validate(), `--repo "kubernetes/test-infra": say --org kubernetes --repo test-infra`; fmt.Sprint(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestBuildIDs(t *testing.T) {
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	id, err := testgrid.BuildID(at, "20261121-1")
	if err != nil || len(id) != 19 || !strings.HasPrefix(id, "1795251600000") {
		t.Fatalf("id %q, %v", id, err)
	}
	if _, err := testgrid.ParseBuildID(id); err != nil {
		t.Error(err)
	}
	if again, _ := testgrid.BuildID(at, "20261121-1"); again != id {
		t.Errorf("the same attempt has ids %s and %s", id, again)
	}
	if other, _ := testgrid.BuildID(at, "20261121-2"); other == id {
		t.Errorf("two runs that started together have one id: %s", id)
	}
	// However the low digits fall, a later start is a larger id.
	for i := range 100 {
		a, _ := testgrid.BuildID(at, fmt.Sprint(i))
		b, _ := testgrid.BuildID(at.Add(time.Millisecond), fmt.Sprint(i+1))
		if a >= b {
			t.Errorf("%s is not before %s", a, b)
		}
	}
	for _, start := range []time.Time{{}, time.Unix(0, 0), time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if id, err := testgrid.BuildID(start, "x"); err == nil {
			t.Errorf("a start of %s has id %s", start, id)
		}
	}
	for _, id := range []string{"", "x", "-1790000000000123456", "0790000000000123456", "1790000000000", "17900000000001234567890", "9990000000000123456", "+1790000000000123456", "1790000000000123456 "} {
		if _, err := testgrid.ParseBuildID(id); err == nil {
			t.Errorf("%q is a build id", id)
		}
	}
}
