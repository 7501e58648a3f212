package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/config"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
)

const workflowsConfig = `repository: example/cni
matrix:
  kubernetes: ["1.36.3"]
  windows: ["2022"]
run:
  categories: [Core.Network]
  without: [gmsa]
  airGapped: true
  additional: true
  retries: 1
  procs: 2
  e2eProvider: local
github:
  pullRequests: {}
  scheduled: {}
`

func TestGenerateWorkflows(t *testing.T) {
	const pulls, clock = ".github/workflows/windows-op-readiness-pull-requests.yml", ".github/workflows/windows-op-readiness-scheduled.yml"
	run := inFolder(t, map[string]string{"op-readiness.yaml": workflowsConfig, ".github/workflows/windows-op-readiness-comment.yml": "name: mine\n"})
	if code, _, stderr := run("generate", "workflows"); code != verdict.ExitUsage || !strings.Contains(stderr, "is not a generated file") {
		t.Errorf("over somebody's workflow: exit code %d, %s", code, stderr)
	}
	if _, err := os.Stat(pulls); err == nil {
		t.Error("it wrote one file and refused another")
	}
	if err := os.Remove(".github/workflows/windows-op-readiness-comment.yml"); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := run("generate", "workflows"); code != verdict.ExitReady || strings.Count(stderr, "Wrote ") != 3 {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if code, stdout, stderr := run("generate", "workflows", "--verify"); code != verdict.ExitReady || stdout != "" || !strings.Contains(stderr, "3 generated files are up to date") {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
	// A section that is taken away takes its workflow along.
	if err := os.WriteFile("op-readiness.yaml", []byte(strings.Replace(workflowsConfig, "  scheduled: {}\n", "", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := run("generate", "workflows", "--verify"); code != verdict.ExitUsage || !strings.Contains(stdout, "-name: 'Windows operational readiness: scheduled'") || !strings.Contains(stderr, "1 of 2 generated files") {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
	if code, _, stderr := run("generate", "workflows"); code != verdict.ExitReady || !strings.Contains(stderr, "Removed ") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if _, err := os.Stat(clock); err == nil {
		t.Errorf("%s is still there", clock)
	}
	if code, stdout, _ := run("generate", "workflows", "--dir", "-"); code != verdict.ExitReady || strings.Count(stdout, "\n---\n") != 1 || strings.Count(stdout, "DO NOT EDIT") != 2 {
		t.Errorf("exit code %d, %s", code, stdout)
	}
	if code, _, stderr := run("generate", "workflows", "--dir", "-", "--verify"); code != verdict.ExitUsage || !strings.Contains(stderr, "--dir -") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// What workflows hand on to 'run' is what it takes.
func TestGenerateWorkflows_flags_are_those_of_run(t *testing.T) {
	c, err := config.Parse(config.DefaultPath, []byte(workflowsConfig))
	if err != nil {
		t.Fatal(err)
	}
	given := c.RunFlags(c.Cells()[0])
	if len(given) != 6 {
		t.Errorf("flags %q", given)
	}
	var o runOptions
	cmd := &cobra.Command{}
	o.addFlags(cmd)
	if err := cmd.ParseFlags(given); err != nil {
		t.Fatal(err)
	}
	if err := o.validate(); err != nil {
		t.Error(err)
	}
}
