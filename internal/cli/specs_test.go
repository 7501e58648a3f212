package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

const (
	oneGoodCase = `category: Core.Network
cases:
  - id: one
    requirement: Ability to find a Service again
    proof: part
    missing: Almost everything.
    tests: [{focus: 'Services should work after the service has been recreated$', expect: 1}]
    conditions: {placement: [{pods: ^service-deletion-, os: windows}]}
    phase: parallel
    duration: 90s
`
	oneReferenceCase = `category: Core.Network
testCases:
  - description: Ability to find nothing
    focus: ['should have the ability to find nothing']
    skip: ['']
`
)

// specsCommand runs op-readiness specs with spec files in a folder of their
// own, which SPECS in the arguments stands for.
func specsCommand(t *testing.T, stdin string, files map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "SPECS", dir)
	}
	var out, errs bytes.Buffer
	code = Main(t.Context(), append([]string{"specs"}, args...), Surroundings{Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs})
	return code, out.String(), errs.String()
}

func TestSpecs(t *testing.T) {
	good := map[string]string{"core-network.yaml": oneGoodCase}
	reference := map[string]string{"spec.yaml": oneReferenceCase}
	typo := map[string]string{"core-network.yaml": strings.Replace(oneGoodCase, "phase:", "phrase:", 1)}
	for _, tt := range []struct {
		name   string
		stdin  string
		files  map[string]string
		args   string
		code   int
		stdout []string
		stderr []string
	}{
		{name: "list", args: "list --category core.concurrent --kind requirement",
			stdout: []string{"core-concurrent-clusterip-10-pods     requirement   part    1       parallel   3m "}},
		{name: "list of a folder", files: good, args: "list --spec-dir SPECS -o csv",
			stdout: []string{"Core.Network,one,requirement,part,1,parallel,1m30s,Ability to find a Service again\n"}},
		{name: "list of the reference implementation's format", files: reference, args: "list --test-directory SPECS -o csv",
			stdout: []string{"Core.Network,core-network-find-nothing,requirement,part,?,serial,5m,"}},
		{name: "list for a version before all tests", args: "list --kubernetes-version 1.30 --kind requirement -o markdown",
			stdout: []string{"| Core.Network | core-network-pod-ip-win-to-linux | requirement | none | 0 |"}},
		{name: "list with wrong flags", args: "list --category Core.Netwrk --kind rules -o tabel --kubernetes-version new", code: verdict.ExitUsage,
			stderr: []string{"did you mean Core.Network?", `--kind "rules" is unknown`, `--output "tabel" is unknown: use table, json, markdown or csv; did you mean table?`, `"new" is not a Kubernetes version`}},
		{name: "list of broken files", files: typo, args: "list --spec-dir SPECS", code: verdict.ExitUsage,
			stderr: []string{`core-network.yaml:9: one: unknown field "phrase" in a case`, "did you mean phase?"}},
		{name: "list of a folder that is not there", args: "list --spec-dir SPECS/none", code: verdict.ExitUsage,
			stderr: []string{"no such file or directory"}},

		{name: "lint", args: "lint",
			stderr: []string{"cases, checked against the tests of Kubernetes v1.33.13, v1.34.4, v1.35.4, v1.36.3"}},
		{name: "lint of a folder", files: good, args: "lint --spec-dir SPECS --kubernetes-version 1.36.3",
			stderr: []string{"no problems found in 1 case"}},
		{name: "lint of a focus that matches nothing", files: reference, args: "lint --spec-dir SPECS --kubernetes-version 1.36.3", code: verdict.ExitUsage,
			stdout: []string{`spec.yaml:3: core-network-find-nothing: focus "should have the ability to find nothing" matches no test of Kubernetes v1.36.3`},
			stderr: []string{"1 problems"}},
		{name: "lint of broken files", files: typo, args: "lint --spec-dir SPECS", code: verdict.ExitUsage,
			stdout: []string{`core-network.yaml:9: one: unknown field "phrase"`, "core-network.yaml:3: one: the case needs a phase"}},
		{name: "lint as JSON", files: typo, args: "lint --spec-dir SPECS -o json", code: verdict.ExitUsage,
			stdout: []string{`"line": 9,`, `"case": "one",`}},
		{name: "lint of a version without catalogue", args: "lint --kubernetes-version 1.33.1", code: verdict.ExitUsage,
			stderr: []string{"no list of tests of Kubernetes 1.33.1 comes with this program: use v1.33.13, v1.34.4, v1.35.4 or v1.36.3", "--test-list"}},
		{name: "lint against a list", files: good, args: "lint --spec-dir SPECS --test-list -",
			stdin:  "The following spec names can be used with 'ginkgo run --focus/skip':\n    k8s.io/kubernetes@v1.40.0/test/e2e/network/service.go:1: [sig-network] Services should work after the service has been recreated\n\n",
			stderr: []string{"checked against the tests of Kubernetes v1.40.0"}},
		{name: "lint against garbage", files: good, args: "lint --spec-dir SPECS --test-list -", stdin: "flag provided but not defined: -list-tests\n", code: verdict.ExitUsage,
			stderr: []string{`--test-list -: not a list of tests: line 1 is "flag provided but not defined: -list-tests"`}},

		{name: "coverage", args: "coverage --kubernetes-version 1.36.3 -o markdown",
			stdout: []string{"| 1.36.3 | Core.Network | 8 | 3 | 2 | 13 |", "| 1.36.3 | all | 17 | 16 | 13 | 46 |"}},
		{name: "coverage of an unknown version", args: "coverage --kubernetes-version 1.40 -o csv",
			stdout: []string{"1.40,all,17,16,13,46"}, stderr: []string{"The list of tests of Kubernetes 1.40 does not come with this program"}},

		{name: "export", files: good, args: "export --spec-dir SPECS --kubernetes-version 1.36",
			stdout: []string{"kubernetesVersion: \"1.36\"\ncases:\n  one:\n    category: Core.Network\n", "focus: Services should work after the service has been recreated$\n    skip: \"\"\n"}},
		{name: "export of no version", args: "export --kubernetes-version x", code: verdict.ExitUsage,
			stderr: []string{`--kubernetes-version: "x" is not a Kubernetes version`}},

		{name: "diff", args: "diff --from 1.35.4 --to 1.36.3",
			stdout: []string{"extra-concurrent-autoscaling   renamed "}, stderr: []string{"Kubernetes v1.35.4 has 7355 tests, v1.36.3 has 7579"}},
		{name: "diff without changes", files: good, args: "diff --spec-dir SPECS --from 1.35.4 --to 1.36.3",
			stdout: []string{"Nothing changes for the standard from Kubernetes v1.35.4 to v1.36.3.\n"}},
		{name: "diff of an unknown version", args: "diff --from 1.2.3", code: verdict.ExitUsage,
			stderr: []string{"--from: no list of tests of Kubernetes 1.2.3"}},

		{name: "unknown subcommand", args: "lnit", code: verdict.ExitUsage, stderr: []string{"lnit"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, stdout, stderr := specsCommand(t, tt.stdin, tt.files, strings.Fields(tt.args)...)
			if code != tt.code {
				t.Errorf("got exit code %d, want %d", code, tt.code)
			}
			for _, want := range tt.stdout {
				if !strings.Contains(stdout, want) {
					t.Errorf("%q is not in the output", want)
				}
			}
			for _, want := range tt.stderr {
				if !strings.Contains(stderr, want) {
					t.Errorf("%q is not in the narration", want)
				}
			}
			if tt.code != 0 && tt.stdout == nil && stdout != "" {
				t.Error("a failing command has output")
			}
			if t.Failed() {
				t.Logf("output:\n%s\nnarration:\n%s", stdout, stderr)
			}
		})
	}
}

func TestSpecs_JSON_can_be_read(t *testing.T) {
	var cases []specs.Case
	_, stdout, _ := specsCommand(t, "", nil, "list", "-o", "json")
	if err := json.Unmarshal([]byte(stdout), &cases); err != nil || len(cases) < 54 {
		t.Errorf("list: got %d cases, %v", len(cases), err)
	}
	var coverage []specs.VersionCoverage
	_, stdout, _ = specsCommand(t, "", nil, "coverage", "-o", "json")
	if err := json.Unmarshal([]byte(stdout), &coverage); err != nil || len(coverage) < 2 || coverage[0].Total.Requirements != 46 {
		t.Errorf("coverage: got %+v, %v", coverage, err)
	}
	if _, stdout, _ := specsCommand(t, "", nil, "lint", "-o", "json"); stdout != "[]\n" {
		t.Errorf("lint: got %q of no problem", stdout)
	}
	var diff specs.ListDiff
	_, stdout, _ = specsCommand(t, "", nil, "diff", "-o", "json")
	if err := json.Unmarshal([]byte(stdout), &diff); err != nil || diff.FromTests == 0 {
		t.Errorf("diff: got %+v, %v", diff, err)
	}
}
