package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
)

const someConfig = `repository: example/cni
matrix:
  kubernetes: ["1.36"]
  windows: ["2022", "2025"]
results:
  bucket: gs://example-readiness
`

// inFolder runs op-readiness in a folder with these files.
func inFolder(t *testing.T, files map[string]string) func(args ...string) (code int, stdout, stderr string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		code := Main(t.Context(), args, Surroundings{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
		return code, out.String(), errs.String()
	}
}

func contents(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestConfig_init_writes_what_validates_and_loses_nothing(t *testing.T) {
	run := inFolder(t, nil)
	if code, _, stderr := run("config", "init"); code != verdict.ExitReady {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if code, stdout, stderr := run("config", "validate"); code != verdict.ExitReady || !strings.Contains(stdout, "ci-windows-op-readiness-1-36-ltsc2022") {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := run("generate", "testgrid", "--file", "-"); code != verdict.ExitReady || !strings.Contains(stdout, "DO NOT EDIT") {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
	if err := os.WriteFile("op-readiness.yaml", []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := run("config", "init")
	if code != verdict.ExitUsage || !strings.Contains(stderr, "--force") || contents(t, "op-readiness.yaml") != "mine" {
		t.Errorf("a second init: exit code %d, %s", code, stderr)
	}
	if code, _, stderr := run("config", "init", "--force"); code != verdict.ExitReady || contents(t, "op-readiness.yaml") == "mine" {
		t.Errorf("with --force: exit code %d, %s", code, stderr)
	}
}

func TestConfig_validate(t *testing.T) {
	run := inFolder(t, map[string]string{
		"op-readiness.yaml": someConfig,
		"bad.yaml":          strings.NewReplacer(`"2025"`, `"2026"`, "results:", "result:").Replace(someConfig),
	})
	code, stdout, stderr := run("config", "validate", "-o", "json")
	var jobs []struct{ Name, Kind string }
	if err := json.Unmarshal([]byte(stdout), &jobs); err != nil || code != verdict.ExitReady || len(jobs) != 2 || jobs[1].Name != "ci-windows-op-readiness-1-36-ltsc2025" {
		t.Errorf("exit code %d, %v, %+v", code, err, jobs)
	}
	if !strings.Contains(stderr, "2 cells, 2 jobs") {
		t.Errorf("narrated: %s", stderr)
	}
	code, stdout, stderr = run("config", "validate", "bad.yaml")
	if code != verdict.ExitUsage || stdout != "" {
		t.Errorf("exit code %d, %s", code, stdout)
	}
	for _, want := range []string{"2 problems in bad.yaml", "bad.yaml:4: matrix.windows[1]: ", "bad.yaml:5: result: ", "did you mean results?"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("%q is not in:\n%s", want, stderr)
		}
	}
	if code, _, stderr := run("config", "validate", "none.yaml"); code != verdict.ExitUsage || !strings.Contains(stderr, "config init") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// What validate accepts, the generators accept.
func TestConfig_validate_accepts_what_generators_do(t *testing.T) {
	good, err := filepath.Glob("../ci/config/testdata/good/*.yaml")
	if err != nil || len(good) == 0 {
		t.Fatalf("%v: no files", err)
	}
	files := map[string]string{"over-budget.yaml": someConfig + "prow:\n  image: example.com/i:v1\n  kubeconfigSecret: k-{cell}\n  budgetMachineHoursPerWeek: 1\n"}
	var names []string
	for _, file := range good {
		names = append(names, filepath.Base(file))
		files[filepath.Base(file)] = contents(t, file)
	}
	run := inFolder(t, files)
	for _, name := range names {
		for _, command := range [][]string{
			{"config", "validate", name}, {"generate", "testgrid", "--config", name, "--file", "-"}, {"generate", "prow", "--config", name, "--dir", "-"},
			{"generate", "workflows", "--config", name, "--dir", "-"},
		} {
			if command[1] == "workflows" && !strings.Contains(files[name], "\ngithub:") {
				continue
			}
			if code, _, stderr := run(command...); code != verdict.ExitReady {
				t.Errorf("%v: exit code %d, %s", command, code, stderr)
			}
		}
	}
	for _, command := range [][]string{{"config", "validate", "over-budget.yaml"}, {"generate", "prow", "--config", "over-budget.yaml"}} {
		if code, _, stderr := run(command...); code != verdict.ExitUsage || !strings.Contains(stderr, "over-budget.yaml:10: prow.budgetMachineHoursPerWeek: 1 is below") {
			t.Errorf("%v: exit code %d, %s", command, code, stderr)
		}
	}
}

// A configuration may come from a pipe, as of a shell, and may be for TestGrid
// or not.
func TestConfig_validate_reads_standard_input(t *testing.T) {
	t.Chdir(t.TempDir())
	for text, want := range map[string]string{
		someConfig: "standard input: no problems found",
		strings.Replace(someConfig, "gs://", "s3://", 1): "nothing for 'generate testgrid'",
		"nome: x\n" + someConfig:                         "1 problem in standard input:\nstandard input:1: nome: unknown field",
	} {
		var out, errs bytes.Buffer
		code := Main(t.Context(), []string{"config", "validate", "-"}, Surroundings{Stdin: strings.NewReader(text), Stdout: &out, Stderr: &errs})
		if !strings.Contains(errs.String(), want) || (code == verdict.ExitReady) != (text[0] == 'r') {
			t.Errorf("exit code %d, want %q in: %s", code, want, errs.String())
		}
	}
	signals := make(chan os.Signal, 1)
	signals <- os.Interrupt
	waiting, end := io.Pipe()
	defer end.Close()
	var errs bytes.Buffer
	if code := Main(t.Context(), []string{"config", "validate", "-"}, Surroundings{Stdin: waiting, Stdout: io.Discard, Stderr: &errs, Signals: signals}); code != verdict.ExitInterrupted {
		t.Errorf("interrupted: exit code %d, %s", code, errs.String())
	}
}

func TestGenerate_testgrid(t *testing.T) {
	const file = "testgrid/dashboards.yaml"
	run := inFolder(t, map[string]string{"op-readiness.yaml": someConfig})
	code, stdout, stderr := run("generate", "testgrid", "--verify")
	if code != verdict.ExitUsage || !strings.Contains(stdout, "+  - name: ci-windows-op-readiness-1-36-ltsc2022") || !strings.Contains(stderr, "op-readiness generate testgrid") {
		t.Errorf("nothing there: exit code %d, %s%s", code, stdout, stderr)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("--verify wrote a file")
	}
	if code, stdout, stderr := run("generate", "testgrid"); code != verdict.ExitReady || stdout != "" {
		t.Fatalf("exit code %d, %s%s", code, stdout, stderr)
	}
	made := contents(t, file)
	if code, stdout, stderr := run("generate", "testgrid", "--verify"); code != verdict.ExitReady || stdout != "" {
		t.Errorf("just made: exit code %d, %s%s", code, stdout, stderr)
	}

	drifted := strings.Replace(made, "days_of_results: 30", "days_of_results: 31", 1)
	if err := os.WriteFile(file, []byte(drifted), 0o644); err != nil {
		t.Fatal(err)
	}
	code, stdout, _ = run("generate", "testgrid", "--verify")
	if code != verdict.ExitUsage || !strings.Contains(stdout, "-    days_of_results: 31\n+    days_of_results: 30") {
		t.Errorf("drifted: exit code %d, %s", code, stdout)
	}
	if code, stdout, _ := run("generate", "testgrid", "--diff"); code != verdict.ExitReady || !strings.Contains(stdout, "+    days_of_results: 30") || contents(t, file) != drifted {
		t.Errorf("--diff: exit code %d, %s", code, stdout)
	}
	if code, _, stderr := run("generate", "testgrid"); code != verdict.ExitReady || contents(t, file) != made {
		t.Errorf("made again: exit code %d, %s", code, stderr)
	}

	if err := os.WriteFile(file, []byte("dashboards: []\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := run("generate", "testgrid"); code != verdict.ExitUsage || !strings.Contains(stderr, "is not a generated file") || contents(t, file) != "dashboards: []\n" {
		t.Errorf("somebody's own file: exit code %d, %s", code, stderr)
	}
	left, err := filepath.Glob("testgrid/.*")
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestGenerate_refuses_flags_that_contradict(t *testing.T) {
	run := inFolder(t, map[string]string{"op-readiness.yaml": someConfig})
	for _, args := range [][]string{{"--verify", "--diff"}, {"--verify", "--file", "-"}} {
		if code, _, stderr := run(append([]string{"generate", "testgrid"}, args...)...); code != verdict.ExitUsage || !strings.Contains(stderr, "--") {
			t.Errorf("%v: exit code %d, %s", args, code, stderr)
		}
	}
}
