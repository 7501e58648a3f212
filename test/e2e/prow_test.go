//go:build unix

package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fsouza/fake-gcs-server/fakestorage"
	"github.com/google/go-cmp/cmp"
	prowconfig "sigs.k8s.io/prow/pkg/config"
	"sigs.k8s.io/yaml"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/grid"
	"github.com/windows-op-readiness/windows-op-readiness/test/prowtest"
)

const readinessYAML = `repository: example/cni
matrix:
  kubernetes: ["1.36"]
  windows: ["2022"]
run:
  categories: [Core.Scheduling]
results:
  bucket: gs://example-readiness
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

// TestFromACommentToTheGrid follows one comment: Prow's trigger plugin asks
// GitHub and makes a ProwJob of the generated jobs; that ProwJob is rehearsed
// with Prow's utilities on the simulated cluster, with the real e2e.test; and
// TestGrid's updater, with the generated configuration, makes a grid of what they
// uploaded.
func TestFromACommentToTheGrid(t *testing.T) {
	t.Parallel()
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
	config, jobs, dashboards := file("op-readiness.yaml", readinessYAML), filepath.Join(dir, "jobs"), filepath.Join(dir, "dashboards.yaml")
	for _, args := range [][]string{
		{"generate", "prow", "--config", config, "--dir", jobs},
		{"generate", "testgrid", "--config", config, "--file", dashboards},
	} {
		if code, _, stderr := opReadiness(t, args...); code != verdict.ExitReady {
			t.Fatalf("%v: exit code %d\n%s", args, code, stderr)
		}
	}
	emulator, err := fakestorage.NewServerWithOptions(fakestorage.Options{Scheme: "http", Host: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(emulator.Stop)
	emulator.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: "example-readiness"})

	// The comment.
	const job = "pull-windows-op-readiness"
	prow, err := prowconfig.LoadStrict(file("config.yaml", prowYAML), jobs, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	server, client := prowtest.NewGitHub(t)
	pull := server.Open(17, prowtest.Member, "main", "cni/bridge.go")
	started := prowtest.Comment(t, prow, client, pull, prowtest.Member, "Ready?\n/test "+job)
	if len(started) != 1 || started[0].Spec.Job != job || len(pull.Comments) > 0 {
		t.Fatalf("it starts %d jobs, and is answered %q", len(started), pull.Comments)
	}

	// The ProwJob.
	text, err := yaml.Marshal(started[0])
	if err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := opReadiness(t, "prow", "rehearse", "--prowjob", file("prowjob.yaml", string(text)),
		"--kubeconfig", made.Kubeconfig, "--bucket", "gs://example-readiness", "--endpoint", emulator.URL())
	// A simulated cluster proves too little.
	for _, want := range []string{"finished:     FAILURE (exit code 3", "verdict:      inconclusive", "artifacts/junit_core-scheduling_01.xml"} {
		if code != verdict.ExitInconclusive || !strings.Contains(stdout, want) {
			t.Fatalf("the rehearsal: exit code %d, want 3 and %q\n%s\n%s", code, want, stdout, stderr)
		}
	}

	// The grid.
	code, stdout, stderr = opReadiness(t, "testgrid", "preview", "gs://example-readiness", "--endpoint", emulator.URL(), "--config", dashboards, "--group", job, "-o", "json")
	if code != verdict.ExitReady {
		t.Fatalf("the grid: exit code %d\n%s", code, stderr)
	}
	var shown grid.Preview
	if err := json.Unmarshal([]byte(stdout), &shown); err != nil {
		t.Fatal(err)
	}
	tabs := shown.Tabs()
	if len(tabs) == 0 || len(tabs[0].Columns) != 1 {
		t.Fatalf("not one build:\n%s", stdout)
	}
	tab := tabs[0]
	if column := tab.Columns[0]; tab.Name != job || len(column.Build) != 19 || !slices.Equal(column.Headers, []string{pull.Head.SHA, "v1.36.3", "10.0.20348 (simulated)", "inconclusive"}) {
		t.Errorf("tab %s, column %+v", tab.Name, column)
	}
	got := map[string]grid.Result{}
	for _, row := range tab.Rows {
		got[row.Name] = row.Cells[0].Result
	}
	const pending = "core-scheduling: core-scheduling-insufficient-pending "
	want := map[string]grid.Result{
		pending + "[sig-scheduling] SchedulerPredicates [Serial] validates resource limits of pods that are allowed to run [Conformance]":                                                         grid.Pass,
		pending + "[sig-windows] [Feature:Windows] Memory Limits [Serial] [Slow] attempt to deploy past allocatable memory limits should fail deployments of pods once there isn't enough memory": grid.Pass,
		"core-scheduling: core-scheduling-limits-honored": grid.PassWithSkips, // not tested: no container runs
		job + ".Overall": grid.Fail,
		job + ".Pod":     grid.Running, // its podinfo.json is crier's
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if tab.Status == "PASS" {
		t.Errorf("the tab is green: %s", tab.Message)
	}
}
