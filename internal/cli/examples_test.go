//go:build unix

package cli

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"github.com/windows-op-readiness/windows-op-readiness/internal/assess"
	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/config"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
)

var (
	fence     = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")
	continued = regexp.MustCompile(`\\\n\s*`)
	called    = regexp.MustCompile(`(^|[|(;] ?)(\$ )?(bin/)?op-readiness( |$)`)
	written   = regexp.MustCompile(`(?:--report-dir|config init) (\S+)`)
	caseFlag  = regexp.MustCompile(`--case[= ]([a-z0-9]+-[a-z0-9-]+)`)
)

// examples are the command lines of help texts and documents that call this
// program, by where they stand. Those that begin with "$ " are shown with what
// they print.
func examples(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	collect := func(where, text string) {
		transcript := strings.Contains("\n"+text, "\n$ ")
		for line := range strings.Lines(continued.ReplaceAllString(text, "")) {
			if line = strings.TrimSpace(line); called.MatchString(line) && (!transcript || strings.HasPrefix(line, "$ ")) {
				all[where] = append(all[where], line)
			}
		}
	}
	eachCommand(Root(), func(cmd *cobra.Command) { collect("help of "+cmd.CommandPath(), cmd.Example) })
	for page, text := range pages(t) {
		for _, block := range fence.FindAllStringSubmatch(text, -1) {
			if block[1] != "yaml" {
				collect(page, block[2])
			}
		}
	}
	return all
}

func eachCommand(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, sub := range cmd.Commands() {
		eachCommand(sub, do)
	}
}

// elsewhere matches examples that need a cluster, a bucket, GitHub or a download,
// and those that are shown with an output of their own.
var elsewhere = regexp.MustCompile(strings.Join([]string{
	`^\$ `, `(gs|s3)://`, `op-readiness (run|cluster|preflight|e2e fetch|prow rehearse|--category)\b`, `op-readiness comment$`, `op-readiness comment .*--(workflow-run|link|base|token-file)`,
	`op-readiness comment results$`, `op-readiness publish (start|finish)`, `v1\.37\.0`, `e2e\.test --list-tests`, `preview rehearsal`, `/tmp/bucket`,
}, "|"))

// Every example does what it says as far as that can be tried without a cluster:
// it is run. Of the others, the command line is checked.
func TestExamplesWork(t *testing.T) {
	everything(t)
	for where, lines := range examples(t) {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			dir := sandbox(t)
			bin := filepath.Join(dir, "bin")
			for _, line := range lines {
				parse := ""
				if (elsewhere.MatchString(line) || where == "CONTRIBUTING.md") && !strings.Contains(line, "--print-rbac") {
					parse = "1"
				}
				starts := strings.Contains(line, "config init")
				if m := written.FindStringSubmatch(line); m != nil && parse == "" {
					os.RemoveAll(filepath.Join(dir, m[1])) // it is not there before the example
				} else if starts {
					os.Remove(filepath.Join(dir, config.DefaultPath))
				}
				cmd := exec.Command("bash", "-o", "pipefail", "-c", strings.TrimPrefix(strings.ReplaceAll(line, "scripts/catalogue.sh", ":"), "$ "))
				cmd.Dir = dir
				cmd.Env = []string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + dir, "OP_READINESS_CACHE=" + filepath.Join(dir, "cache"), "OP_READINESS_TEST_PARSE=" + parse,
					"id=1795306423628064141", "ARTIFACTS_URL=https://example.com/artifacts", "ARTIFACTS=results"}
				out, _ := cmd.CombinedOutput()
				if starts {
					configure(t, dir) // as whoever began it fills it in
				}
				// What the sandbox's results come to is none of the example's business.
				if code := cmd.ProcessState.ExitCode(); code != verdict.ExitReady && code != verdict.ExitNotReady && code != verdict.ExitInconclusive {
					t.Errorf("%s: exit code %d\n%s", line, code, out)
				}
			}
		})
	}
}

// sandbox is a folder with what examples speak of: results, the shards of a run,
// a configuration, and what is generated of it.
func sandbox(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("cp", "-r", everything(t)+"/.", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

var sandboxes string

// everything makes the sandbox once.
func everything(t *testing.T) string {
	t.Helper()
	if sandboxes != "" {
		return sandboxes
	}
	dir, err := os.MkdirTemp("", "op-readiness-examples-") //nolint:usetesting // for several tests
	if err != nil {
		t.Fatal(err)
	}
	made = append(made, dir)
	top, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for to, from := range map[string]string{
		"specs": "internal/cli/testdata/report/other", "specifications": "specs",
		"results": "internal/cli/testdata/report/results", "merged": "internal/cli/testdata/report/results", "rehearsal": "internal/cli/testdata/report/results",
	} {
		if out, err := exec.Command("cp", "-r", filepath.Join(top, from), filepath.Join(dir, to)).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	s := newScene(t, e2etest.Script{})
	for i := range 3 {
		s.dir = filepath.Join(dir, "artifacts", fmt.Sprintf("shard-%d", i+1))
		s.want("a shard", s.main(s.args("--run-id", "nightly", "--shard", fmt.Sprintf("%d/3", i+1))...), verdict.ExitReady)
		if err := os.CopyFS(filepath.Join(dir, filepath.Base(s.dir)), os.DirFS(s.dir)); err != nil {
			t.Fatal(err)
		}
	}
	programs(t, filepath.Join(dir, "bin"))
	configure(t, dir)
	sandboxes = dir
	return dir
}

// configure writes a configuration with all sections into a folder, and what is
// generated of it.
func configure(t *testing.T, dir string) {
	t.Helper()
	text := fmt.Sprintf(`repository: example/cni
matrix:
  kubernetes: [%q]
  windows: ["2022"]
results:
  bucket: gs://example
prow:
  image: registry.example.com/op-readiness:v1
  kubeconfigSecret: kubeconfig
github:
  pullRequests: {}
  scheduled: {}
`, assess.NewestVersion())
	if err := os.MkdirAll(filepath.Join(dir, "ci"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{config.DefaultPath, "ci/op-readiness.yaml", "template.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, what := range []string{"prow", "testgrid", "workflows"} {
		cmd := exec.Command(filepath.Join(dir, "bin", "op-readiness"), "generate", what)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("generate %s: %v\n%s", what, err, out)
		}
	}
}

// programs makes a folder with this program, and with stand-ins for the others
// that examples call.
func programs(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "op-readiness")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"less", "kubectl", "yq", "envsubst", "e2e.test"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n[ -t 0 ] || exec cat\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// Whoever copies an example is not told that there is no such case.
func TestExamplesNameCasesThatExist(t *testing.T) {
	set, err := specs.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	cases, err := set.For(assess.NewestVersion())
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for i := range cases {
		known[cases[i].ID] = true
	}
	texts := pages(t)
	eachCommand(Root(), func(cmd *cobra.Command) {
		texts[cmd.CommandPath()] = cmd.Long + cmd.Example
		texts[cmd.CommandPath()] += cmd.LocalFlags().FlagUsages()
	})
	for _, file := range []string{"action.yml", ".github/workflows/readiness.yml", ".github/workflows/comment.yml", ".github/workflows/reap.yml"} {
		data, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		texts[file] = string(data)
	}
	found := 0
	for where, text := range texts {
		for _, m := range caseFlag.FindAllStringSubmatch(text, -1) {
			found++
			if !known[m[1]] {
				t.Errorf("%s: there is no case %s", where, m[1])
			}
		}
	}
	if found == 0 {
		t.Error("no example names a case")
	}
}

// The YAML that documents show for workflows fits the action and the workflows
// that it uses.
func TestWorkflowsInDocumentsFitTheAction(t *testing.T) {
	type inputs struct {
		Inputs map[string]any `yaml:"inputs"`
		On     struct {
			Call struct {
				Inputs map[string]any `yaml:"inputs"`
			} `yaml:"workflow_call"`
		} `yaml:"on"`
	}
	known := func(file string) []string {
		data, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		var i inputs
		if err := yaml.Unmarshal(data, &i); err != nil {
			t.Fatal(err)
		}
		return append(slices.Collect(maps.Keys(i.Inputs)), slices.Collect(maps.Keys(i.On.Call.Inputs))...)
	}
	ours := regexp.MustCompile(`^windows-op-readiness/windows-op-readiness(/\.github/workflows/\w+\.yml)?@`)
	checked := 0
	var check func(where string, n *yaml.Node)
	check = func(where string, n *yaml.Node) {
		for _, child := range n.Content {
			check(where, child)
		}
		var use struct {
			Uses string         `yaml:"uses"`
			With map[string]any `yaml:"with"`
		}
		if n.Kind != yaml.MappingNode || n.Decode(&use) != nil || !ours.MatchString(use.Uses) {
			return
		}
		file := strings.TrimPrefix(ours.FindStringSubmatch(use.Uses)[1], "/")
		if file == "" {
			file = "action.yml"
		}
		names := known(file)
		for name, value := range use.With {
			if !slices.Contains(names, name) {
				t.Errorf("%s: %s has no input %s", where, file, name)
			}
			command, _ := use.With["command"].(string)
			if command == "" {
				command = "run"
			}
			if strings.HasSuffix(file, "comment.yml") {
				command = "comment"
			}
			for _, flag := range strings.Fields(fmt.Sprint(value)) {
				if name == "args" && !strings.Contains(fmt.Sprint(value), "${{") {
					checked++
					if err := parseOnly([]string{command, flag}); err != nil {
						t.Errorf("%s: %s %s: %v", where, command, flag, err)
					}
				}
			}
		}
		checked++
	}
	for page, text := range pages(t) {
		for _, block := range fence.FindAllStringSubmatch(text, -1) {
			if block[1] != "yaml" {
				continue
			}
			var n yaml.Node
			if err := yaml.Unmarshal([]byte(block[2]), &n); err != nil {
				t.Errorf("%s: %v in\n%s", page, err, block[2])
				continue
			}
			check(page, &n)
		}
	}
	if checked < 5 {
		t.Errorf("only %d uses and arguments were checked", checked)
	}
}
