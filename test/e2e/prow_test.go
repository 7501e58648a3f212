//go:build unix

package e2e_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	prowapi "sigs.k8s.io/prow/pkg/apis/prowjobs/v1"
	prowfake "sigs.k8s.io/prow/pkg/client/clientset/versioned/fake"
	prowconfig "sigs.k8s.io/prow/pkg/config"
	"sigs.k8s.io/prow/pkg/github"
	"sigs.k8s.io/prow/pkg/pjutil"
	"sigs.k8s.io/prow/pkg/plugins/trigger"
	"sigs.k8s.io/yaml"

	"github.com/windows-op-readiness/windows-op-readiness/internal/grid"
	"github.com/windows-op-readiness/windows-op-readiness/internal/verdict"
)

const readinessYAML = `repository: example/cni
matrix:
  kubernetes: ["1.36"]
  windows: ["2022"]
run:
  categories: [Core.Scheduling]
prow:
  image: registry.example.com/op-readiness:v1
  kubeconfigSecret: kubeconfig-{cell}
  presubmits:
    branches: [^main$]
    runIfChanged: ["cni/**"]
`

const prowYAML = `plank:
  default_decoration_config_entries:
  - config:
      timeout: 2h
      grace_period: 15m
      utility_images: {clonerefs: clonerefs, initupload: initupload, entrypoint: entrypoint, sidecar: sidecar}
      gcs_configuration: {bucket: example, path_strategy: explicit}
`

// triggered returns the ProwJob that a comment on pull request 17 starts: the
// jobs are chosen and made by Prow's code.
func triggered(t *testing.T, prowConfig, jobs, comment string) *prowapi.ProwJob {
	t.Helper()
	cfg, err := prowconfig.LoadStrict(prowConfig, jobs, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	changes := func() ([]string, error) { return []string{"cni/bridge.go"}, nil }
	chosen, err := pjutil.FilterPresubmits(pjutil.NewCommandFilter(comment), changes, "main", cfg.PresubmitsStatic["example/cni"], log)
	if err != nil {
		t.Fatal(err)
	}
	created := prowfake.NewSimpleClientset().ProwV1().ProwJobs("prow")
	client := trigger.Client{ProwJobClient: created, Config: cfg, Logger: logrus.NewEntry(log)}
	pr := &github.PullRequest{
		Number: 17, User: github.User{Login: "author"}, Title: "bridge: faster",
		Base: github.PullRequestBranch{Ref: "main", Repo: github.Repo{Owner: github.User{Login: "example"}, Name: "cni"}},
		Head: github.PullRequestBranch{Ref: "faster", SHA: "feedbeef"},
	}
	if err := trigger.RunRequested(client, pr, "cafe", chosen, "guid"); err != nil {
		t.Fatal(err)
	}
	list, err := created.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%d ProwJobs for %q: %v", len(list.Items), comment, err)
	}
	return &list.Items[0]
}

// A comment makes a ProwJob, which is rehearsed on the simulated cluster with the
// real e2e.test and Prow's real utilities; TestGrid's updater reads what they
// uploaded.
func TestFromACommentToTheGrid(t *testing.T) {
	_, made := up(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	jobs := filepath.Join(dir, "jobs")
	if code, _, stderr := opReadiness(t, "generate", "prow", "--config", file("op-readiness.yaml", readinessYAML), "--dir", jobs); code != verdict.ExitReady {
		t.Fatalf("generating jobs: exit code %d\n%s", code, stderr)
	}
	const job = "pull-windows-op-readiness"
	pj := triggered(t, file("config.yaml", prowYAML), jobs, "/test "+job)
	if pj.Spec.Job != job || pj.Spec.Refs.Pulls[0].SHA != "feedbeef" {
		t.Fatalf("the comment started %+v", pj.Spec)
	}
	text, err := yaml.Marshal(pj)
	if err != nil {
		t.Fatal(err)
	}
	bucket := filepath.Join(dir, "bucket")
	code, stdout, stderr := opReadiness(t, "prow", "rehearse", "--prowjob", file("prowjob.yaml", string(text)), "--kubeconfig", made.Kubeconfig, "--bucket", bucket)
	if code != verdict.ExitInconclusive || !strings.Contains(stdout, "finished:     FAILURE (exit code 3") || !strings.Contains(stdout, "verdict:      inconclusive") {
		t.Fatalf("the rehearsal: exit code %d\n%s\n%s", code, stdout, stderr)
	}
	code, stdout, stderr = opReadiness(t, "testgrid", "preview", bucket, "-o", "json")
	if code != verdict.ExitReady {
		t.Fatalf("the grid: exit code %d\n%s", code, stderr)
	}
	var shown grid.Preview
	if err := json.Unmarshal([]byte(stdout), &shown); err != nil {
		t.Fatal(err)
	}
	tabs := shown.Tabs()
	if len(tabs) != 1 || len(tabs[0].Columns) != 1 {
		t.Fatalf("not one tab with one build:\n%s", stdout)
	}
	tab, build := tabs[0], pj.Status.BuildID
	if build == "" {
		builds, _ := filepath.Glob(filepath.Join(bucket, "pr-logs/pull/example_cni/17", job, "*", "finished.json"))
		if len(builds) != 1 {
			t.Fatalf("builds %q", builds)
		}
		build = filepath.Base(filepath.Dir(builds[0]))
	}
	column := tab.Columns[0]
	if tab.Group != job || column.Build != build || !slices.Contains(column.Headers, "feedbeef") || !slices.Contains(column.Headers, "v1.36.3") {
		t.Errorf("group %s, column %+v", tab.Group, column)
	}
	const pending = "core-scheduling-insufficient-pending [sig-"
	want := map[string]grid.Result{
		pending + "scheduling] SchedulerPredicates": grid.Pass,
		pending + "windows]":                        grid.Pass,
		"Overall":                                   grid.Fail, // a simulated cluster proves too little
	}
	for _, row := range tab.Rows {
		for part, result := range want {
			if !strings.Contains(row.Name, part) {
				continue
			}
			if row.Cells[0].Result != result {
				t.Errorf("%s is %s, want %s: %s", row.Name, row.Cells[0].Result, result, row.Cells[0].Message)
			}
			delete(want, part)
		}
		if row.Cells[0].Result == grid.ToolFail || row.Cells[0].Result == grid.Unknown {
			t.Errorf("%s is %s: %s", row.Name, row.Cells[0].Result, row.Cells[0].Message)
		}
	}
	if len(want) > 0 {
		t.Errorf("no rows for %v:\n%s", want, stdout)
	}
}
