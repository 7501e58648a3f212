//go:build unix

package lies

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/run"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

var failsSecond = tell("the second of three tests fails", func(int) lie { return lie{tests: bodies{second: fails}} })

// replayer is an e2e.test that prints and reports what lies beside it, and says
// with its exit code that a test failed.
const replayer = `#!/bin/sh
for arg in "$@"; do
	case $arg in --ginkgo.json-report=*) cp "${0%/*}/report" "${arg#*=}" ;; esac
done
cat "${0%/*}/output"
exit 1
`

// recorded is what ginkgo prints and reports of a suite whose second test fails.
func recorded(f *testing.F) (output, report []byte) {
	f.Helper()
	path := install(f, script{Lie: failsSecond, Version: version, Tests: []string{first, second, third}})
	to := filepath.Join(f.TempDir(), "report")
	flags := e2e.Flags{}
	var said bytes.Buffer
	cmd := exec.Command(path, flags.BatchArgs([]string{first, second, third}, 1, to, time.Hour)...)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 1 {
		f.Fatalf("%v: %s", err, &said)
	}
	report, err := os.ReadFile(to)
	if err != nil {
		f.Fatal(err)
	}
	return said.Bytes(), report
}

// three is a plan of the three tests.
func three(t testing.TB) *result.Plan {
	t.Helper()
	p := &result.Plan{Schema: result.PlanSchema, KubernetesVersion: version, Shards: 1}
	for _, name := range []string{first, second, third} {
		id := result.TestID(name, result.RunConditions{})
		p.Tests = append(p.Tests, result.PlannedTest{ID: id, Name: name, Phase: specs.Serial, Shard: 1, Cases: []string{id}, Duration: time.Second, Timeout: time.Minute})
		p.Cases = append(p.Cases, result.PlannedCase{
			Case: specs.Case{ID: id, Kind: specs.Additional, Category: specs.CoreNetwork, Proof: specs.ProofPart}, TestIDs: []string{id}, Shard: 1,
		})
	}
	var err error
	if p.Digest, err = p.ComputeDigest(); err != nil {
		t.Fatal(err)
	}
	return p
}

// Whatever output and report are made of, they cannot talk a failure away that
// the exit code tells of.
func FuzzOutputAndReport(f *testing.F) {
	output, report := recorded(f)
	pass, passed := bytes.Replace(output, []byte("• [FAILED]"), []byte("•"), 1), succeededIn(report)
	f.Add(output, report)
	f.Add(output, passed)
	f.Add(pass, report)
	f.Add(pass, passed)
	f.Add(append(append(bytes.Clone(pass), output...), pass...), passed)
	f.Add([]byte{}, passed)
	f.Add(pass, []byte{})
	p := three(f)
	f.Fuzz(func(t *testing.T, output, report []byte) {
		done := replayed(t, p, output, report)
		for _, test := range p.Tests {
			attempts := done.Attempts[test.ID]
			if len(attempts) == 0 {
				return
			}
			if last := attempts[len(attempts)-1]; last.State != result.TestPassed || !done.Sound(last.Batch) {
				return
			}
		}
		t.Errorf("all tests passed: batches %+v, suite failures %+v", done.Batches, done.Suites)
	})
}

// replayed runs a plan with an e2e.test that says this.
func replayed(t *testing.T, p *result.Plan, output, report []byte) *result.Run {
	t.Helper()
	dir := t.TempDir()
	for name, data := range map[string][]byte{"output": output, "report": report, "e2e.test": []byte(replayer)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b := &bench{t: t, plan: p}
	m := manifestOf(p, 1)
	folder, err := result.Create(filepath.Join(dir, "results"), p, m)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	err = run.Run(t.Context(), run.Options{
		Plan: p, Manifest: m, Folder: folder, Binary: &e2e.Binary{Path: filepath.Join(dir, "e2e.test"), Version: version},
		Env: os.Environ(), Cluster: b, Observer: b, Evidence: b, Steering: b, TempDir: t.TempDir(),
		HealthInterval: time.Minute, ProbeInterval: time.Millisecond, Grace: 5 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return load(t, folder.Dir())
}

// succeededIn is a report in which everything passed.
func succeededIn(report []byte) []byte {
	return inJSON(func(suites []any) []any {
		suite := suites[0].(object)
		suite["SuiteSucceeded"] = true
		for _, s := range suite["SpecReports"].([]any) {
			s.(object)["State"] = "passed"
			delete(s.(object), "Failure")
		}
		return suites
	})(report)
}
