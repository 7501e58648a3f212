package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/config"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/jobs"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

const prowConfig = `repository: example/cni
matrix:
  kubernetes: ["1.36"]
  windows: ["2022", "2025"]
run:
  categories: [Core.Network]
prow:
  image: registry.example.com/op-readiness:v1
  kubeconfigSecret: kubeconfig-{cell}
`

const (
	presubmitsFile  = "jobs/windows-op-readiness-presubmits.yaml"
	periodicsFile   = "jobs/windows-op-readiness-periodics.yaml"
	postsubmitsFile = "jobs/windows-op-readiness-postsubmits.yaml"
)

// TestGenerateProw_jobs_call_this_program_as_it_wants_to_be_called parses what
// each job runs with the flags of 'run' themselves.
func TestGenerateProw_jobs_call_this_program_as_it_wants_to_be_called(t *testing.T) {
	files, err := filepath.Glob("../../jobs/testdata/*/op-readiness.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("configurations are %v (%v)", files, err)
	}
	for _, file := range append(files, "../../op-readiness.yaml") {
		c, err := config.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range c.Jobs() {
			if !j.InProw || j.Kind == config.Postsubmit {
				continue
			}
			args := jobs.Args(c, j)
			root := newRootCommand(&Surroundings{})
			cmd, rest, err := root.Find(args)
			if err != nil || cmd.Name() != "run" {
				t.Fatalf("%s: %s calls %q: %v", file, j.Name, args, err)
			}
			var o runOptions
			flags := &cobra.Command{}
			o.addFlags(flags)
			if err := flags.ParseFlags(rest); err != nil {
				t.Errorf("%s: %s calls %q: %v", file, j.Name, args, err)
				continue
			}
			if err := o.validate(); err != nil {
				t.Errorf("%s: %s calls %q: %v", file, j.Name, args, err)
			}
			if len(flags.Flags().Args()) > 0 {
				t.Errorf("%s: %s calls %q, with arguments that are not flags", file, j.Name, args)
			}
			want := c.JobCategories(j)
			whole := len(o.selection.Categories) == 0 && len(want) == len(specs.Categories())
			if !whole && !slices.Equal(o.selection.Categories, want) {
				t.Errorf("%s: %s runs %v, want %v", file, j.Name, o.selection.Categories, want)
			}
		}
	}
}

func TestGenerateProw_writes_what_verify_takes(t *testing.T) {
	run := inFolder(t, map[string]string{"op-readiness.yaml": prowConfig})
	if code, _, stderr := run("generate", "prow", "--verify"); code != verdict.ExitUsage || !strings.Contains(stderr, "run 'op-readiness generate prow' and commit") {
		t.Errorf("with nothing there: exit code %d, %s", code, stderr)
	}
	if _, err := os.Stat("jobs"); err == nil {
		t.Error("--verify writes")
	}
	code, _, stderr := run("generate", "prow")
	if code != verdict.ExitReady || !strings.Contains(stderr, "4 Prow jobs, 14 runs a week by themselves, ") || !strings.Contains(stderr, "Wrote "+filepath.FromSlash(presubmitsFile)) {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if text := contents(t, periodicsFile); !strings.HasPrefix(text, "# Generated from op-readiness.yaml by 'op-readiness generate prow'. DO NOT EDIT.\n") {
		t.Errorf("%s begins with %.80q", periodicsFile, text)
	}
	if code, stdout, stderr := run("generate", "prow", "--verify"); code != verdict.ExitReady || stdout != "" || !strings.Contains(stderr, "2 generated files are up to date") {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
	edited := strings.Replace(contents(t, periodicsFile), "cpu: \"2\"", "cpu: \"3\"", 1)
	if err := os.WriteFile(periodicsFile, []byte(edited), 0o644); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := run("generate", "prow", "--verify")
	if code != verdict.ExitUsage || !strings.Contains(stdout, "-              cpu: \"3\"") || !strings.Contains(stderr, "1 of 2 generated files") {
		t.Errorf("after an edit: exit code %d, %s%s", code, stdout, stderr)
	}
	if code, again, _ := run("generate", "prow", "--diff"); code != verdict.ExitReady || again != stdout {
		t.Errorf("--diff: exit code %d, %s", code, again)
	}
	if contents(t, periodicsFile) != edited {
		t.Error("--verify or --diff writes")
	}
}

func TestGenerateProw_removes_what_it_made_before_and_nothing_else(t *testing.T) {
	withPostsubmit := prowConfig + "  postsubmit: {args: [image]}\n"
	run := inFolder(t, map[string]string{"op-readiness.yaml": withPostsubmit, "jobs/other.yaml": "mine"})
	if code, _, stderr := run("generate", "prow"); code != verdict.ExitReady || !strings.Contains(contents(t, postsubmitsFile), "post-windows-op-readiness-image") {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	if err := os.WriteFile("op-readiness.yaml", []byte(prowConfig), 0o644); err != nil {
		t.Fatal(err)
	}
	code, stdout, _ := run("generate", "prow", "--verify")
	if code != verdict.ExitUsage || !strings.Contains(stdout, "-    - name: post-windows-op-readiness-image") {
		t.Errorf("exit code %d, %s", code, stdout)
	}
	if code, _, stderr := run("generate", "prow"); code != verdict.ExitReady || !strings.Contains(stderr, "Removed "+filepath.FromSlash(postsubmitsFile)) {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if _, err := os.Stat(postsubmitsFile); err == nil {
		t.Error("the job would still run")
	}
	if err := os.WriteFile(postsubmitsFile, []byte("mine: too\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(presubmitsFile); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := run("generate", "prow"); code != verdict.ExitUsage || !strings.Contains(stderr, "is not a generated file") || contents(t, postsubmitsFile) != "mine: too\n" || contents(t, "jobs/other.yaml") != "mine" {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if _, err := os.Stat(presubmitsFile); err == nil {
		t.Error("one file was written, though another could not be")
	}
}

func TestGenerateProw_refuses_above_the_budget_and_shows_what_costs(t *testing.T) {
	run := inFolder(t, map[string]string{"op-readiness.yaml": prowConfig, "little.yaml": prowConfig + "  budgetMachineHoursPerWeek: 1\n"})
	code, stdout, stderr := run("generate", "prow", "--cost")
	if code != verdict.ExitReady || !strings.Contains(stdout, "on demand") || !strings.Contains(stdout, "14.0") || !strings.Contains(stderr, "machine-hours") {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
	if _, err := os.Stat("jobs"); err == nil {
		t.Error("--cost writes")
	}
	code, _, stderr = run("generate", "prow", "--config", "little.yaml")
	if code != verdict.ExitUsage || !strings.Contains(stderr, "little.yaml:10: prow.budgetMachineHoursPerWeek: 1 is below the ") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if _, err := os.Stat("jobs"); err == nil {
		t.Error("it writes above the budget")
	}
	code, stdout, _ = run("generate", "prow", "--config", "little.yaml", "--cost", "-o", "json")
	var cost jobs.Cost
	if err := json.Unmarshal([]byte(stdout), &cost); err != nil || code != verdict.ExitUsage || len(cost.Jobs) != 4 || cost.MachineHoursPerWeek <= 1 || cost.Budget != 1 {
		t.Errorf("exit code %d, %v, %s", code, err, stdout)
	}
}

func TestGenerateProw_names_the_place_and_the_fix(t *testing.T) {
	capz := strings.NewReplacer("kubernetes: [\"1.36\"]", "kubernetes: [master]", "prow:\n", "prow:\n  profile: capz\n", "  kubeconfigSecret: kubeconfig-{cell}\n", "").Replace(prowConfig)
	all := map[string]struct{ text, place, fix string }{
		"no prow":                            {strings.Split(prowConfig, "prow:")[0], "config.yaml:1: has no section prow", "add one"},
		"an axis without values":             {strings.Replace(prowConfig, `["2022", "2025"]`, "[]", 1), "config.yaml:4: matrix.windows: ", "give it at least 1"},
		"an exclude that excludes all":       {strings.Replace(prowConfig, "run:", "  exclude: [{kubernetes: \"1.36\"}]\nrun:", 1), "config.yaml:5: matrix.exclude", "exclude less"},
		"an unknown preset":                  {prowConfig + "  labels: {preset-dind-enable: \"true\"}\n", "config.yaml:10: prow.labels.preset-dind-enable: ", "did you mean preset-dind-enabled?"},
		"an undeclared dashboard":            {prowConfig + "  presubmits: {dashboards: [sig-windows]}\n", "config.yaml:10: prow.presubmits.dashboards[0]: ", "testgrid.declaredElsewhere"},
		"two cells of one name":              {strings.Replace(prowConfig, "run:", "  cni: [calico, \"a-b\", \"a.b\"]\nrun:", 1), "matrix: ", "rename a value"},
		"a timeout below the longest shard":  {prowConfig + "  timeout: 16m\n", "config.yaml:10: prow.timeout: ", "make it longer"},
		"a glob that matches nothing":        {prowConfig + "  presubmits: {runIfChanged: [/cni/**]}\n", "config.yaml:10: prow.presubmits.runIfChanged[0]: ", "write cni/**"},
		"another working directory":          {capz + "  extraRefs: [{org: a, repo: b, baseRef: main, workdir: true}]\n", "config.yaml:10: prow.extraRefs[0].workdir: ", "remove it"},
		"a variable of the profile's preset": {capz + "  env: {TEST_WINDOWS: \"true\"}\n", "config.yaml:10: prow.env.TEST_WINDOWS: ", "take one away"},
		"a simulated cluster of no release":  {strings.Replace(prowConfig, "run:", "  include: [{kubernetes: master, provider: kwok}]\nrun:", 1), "config.yaml:5: matrix.include[0]: ", "with its patch"},
		"a reserved variable":                {prowConfig + "  env: {PULL_NUMBER: \"7\"}\n", "config.yaml:10: prow.env.PULL_NUMBER: ", "remove it"},
	}
	for what, c := range all {
		t.Run(what, func(t *testing.T) {
			run := inFolder(t, map[string]string{"config.yaml": c.text})
			code, _, stderr := run("generate", "prow", "--config", "config.yaml")
			if code != verdict.ExitUsage || !strings.Contains(stderr, c.place) || !strings.Contains(stderr, c.fix) {
				t.Errorf("exit code %d:\n%s", code, stderr)
			}
			if _, err := os.Stat("jobs"); err == nil {
				t.Error("something was written")
			}
		})
	}
}

func TestGenerateProw_wrong_flags(t *testing.T) {
	run := inFolder(t, map[string]string{"op-readiness.yaml": prowConfig})
	for _, args := range [][]string{{"--dir", "-", "--verify"}, {"--cost", "--diff"}, {"--verify", "--diff"}, {"--cost", "-o", "xml"}, {"more"}} {
		if code, _, stderr := run(append([]string{"generate", "prow"}, args...)...); code != verdict.ExitUsage || stderr == "" {
			t.Errorf("%v: exit code %d, %s", args, code, stderr)
		}
	}
	code, stdout, _ := run("generate", "prow", "--dir", "-")
	if code != verdict.ExitReady || strings.Count(stdout, "DO NOT EDIT") != 2 {
		t.Errorf("--dir -: exit code %d, %s", code, stdout)
	}
}
