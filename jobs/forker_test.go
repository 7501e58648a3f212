package jobs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	prowconfig "sigs.k8s.io/prow/pkg/config"
	"sigs.k8s.io/yaml"
)

// TestConfigForker lets kubernetes/test-infra's config-forker copy the jobs for
// a release, as release managers do, and loads the copies beside the originals.
func TestConfigForker(t *testing.T) {
	c := load(t, "testdata/capz/op-readiness.yaml")
	p := prowOf(t, c)
	presubmits, periodics := map[string]bool{}, map[string]bool{}
	for _, j := range c.Jobs() {
		if j.Cell.Kubernetes == "master" {
			presubmits[j.Name] = j.Kind == "presubmit"
			periodics[j.Name] = j.Kind == "periodic"
		}
	}
	before := len(allJobs(p.load(t)))
	copies := 0
	for _, name := range []string{"windows-op-readiness-presubmits", "windows-op-readiness-periodics"} {
		out := filepath.Join(p.jobsDir, name+"-1.37.yaml")
		command(t, tool(t, "config-forker"), "--job-config", filepath.Join(p.jobsDir, name+".yaml"), "--version", "1.37", "--go-version", "1.26.0", "--output", out)
		var forked prowconfig.JobConfig
		if data, err := os.ReadFile(out); err != nil || yaml.Unmarshal(data, &forked) != nil {
			t.Fatalf("%s: %v", out, err)
		}
		copies += len(forked.PresubmitsStatic["kubernetes/kubernetes"]) + len(forked.Periodics)
		for _, j := range forked.PresubmitsStatic["kubernetes/kubernetes"] {
			if !presubmits[j.Name] || !slices.Equal(j.Branches, []string{"release-1.37"}) {
				t.Errorf("presubmit %s is for %v", j.Name, j.Branches)
			}
			delete(presubmits, j.Name)
			for a := range j.Annotations {
				if strings.HasPrefix(a, "testgrid-") {
					t.Errorf("presubmit %s keeps %s, a second tab of its name", j.Name, a)
				}
			}
			ofRelease(t, j.JobBase)
		}
		for _, j := range forked.Periodics {
			name, ok := strings.CutSuffix(j.Name, "-1-37")
			if !ok || !periodics[name] || len(j.Name) > 63 {
				t.Errorf("periodic %s is not a copy, or its name is too long", j.Name)
			}
			delete(periodics, name)
			if tab := j.Annotations["testgrid-tab-name"]; !strings.HasPrefix(tab, "1.37-") {
				t.Errorf("periodic %s has the tab %s", j.Name, tab)
			}
			ofRelease(t, j.JobBase)
		}
	}
	for name, left := range presubmits {
		if left {
			t.Errorf("presubmit %s was not copied", name)
		}
	}
	for name, left := range periodics {
		if left {
			t.Errorf("periodic %s was not copied", name)
		}
	}
	// Prow takes copies and originals together.
	if both := len(allJobs(p.load(t))); copies == 0 || both != before+copies {
		t.Errorf("%d jobs and %d copies became %d", before, copies, both)
	}
}

// ofRelease checks that a copy tests the release.
func ofRelease(t *testing.T, j prowconfig.JobBase) {
	t.Helper()
	container := j.Spec.Containers[0]
	if !slices.Contains(container.Command, "KUBERNETES_VERSION=latest-1.37") || !strings.HasSuffix(container.Image, "-1.37") {
		t.Errorf("%s runs %v in %s", j.Name, container.Command, container.Image)
	}
	for a := range j.Annotations {
		if strings.HasPrefix(a, "fork-per-release") {
			t.Errorf("%s would be copied again: %s", j.Name, a)
		}
	}
}

// TestForks_only_what_the_forker_can_copy states config-forker's rules
// (https://github.com/kubernetes/test-infra/tree/master/releng/config-forker).
func TestForks_only_what_the_forker_can_copy(t *testing.T) {
	const head = "repository: kubernetes/kubernetes\nmatrix: {kubernetes: [master, release-1.35], windows: [\"2022\"]}\nprow: {profile: capz, image: kubekins-master, forkPerRelease: %s, presubmits: {branches: %s, categories: []}%s}\n"
	config := func(fork, branches, more string) string {
		return strings.Replace(strings.Replace(strings.Replace(head, "%s", fork, 1), "%s", branches, 1), "%s", more, 1)
	}
	for what, c := range map[string]struct {
		text string
		want []string
	}{
		"nothing without being asked":                {config("false", "[master]", ""), nil},
		"what tests master":                          {config("true", "[master]", ""), []string{"pull-windows-op-readiness", "ci-windows-op-readiness-master-ltsc2022"}},
		"no presubmit that runs on release branches": {config("true", "[master, release-.*]", ""), []string{"ci-windows-op-readiness-master-ltsc2022"}},
		"no variant for a branch": {config("true", "[master]", ", overrides: [{when: {branches: [release-1.36]}, timeout: 5h}]"),
			[]string{"pull-windows-op-readiness", "ci-windows-op-readiness-master-ltsc2022"}},
	} {
		t.Run(what, func(t *testing.T) {
			var got []string
			for _, j := range allJobs(prowOf(t, parse(t, c.text)).load(t)) {
				if j.Annotations["fork-per-release"] == "true" {
					got = append(got, j.Name)
				}
				for _, r := range strings.Split(j.Annotations["fork-per-release-replacements"], ", ") {
					from, _, ok := strings.Cut(r, " -> ")
					if r != "" && (!ok || !slices.Contains(j.Spec.Containers[0].Command, from)) {
						t.Errorf("%s replaces %q, which its command %v does not have", j.Name, r, j.Spec.Containers[0].Command)
					}
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("copied are %v, want %v", got, c.want)
			}
		})
	}
	t.Run("not without branches", func(t *testing.T) {
		text := regexp.MustCompile(`branches: \[[^]]*\], `).ReplaceAllString(config("true", "[master]", ""), "")
		for _, j := range allJobs(prowOf(t, parse(t, text)).load(t)) {
			if strings.HasPrefix(j.Name, "pull-") && j.Annotations["fork-per-release"] != "" {
				t.Errorf("%s is for all branches, and its copy for one of them would be refused", j.Name)
			}
		}
	})
}
