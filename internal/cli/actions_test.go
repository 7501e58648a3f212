package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/preflight"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
	"github.com/windows-op-readiness/windows-op-readiness/test/golden"
)

// outputs runs a command as a step of a workflow, and returns what the step puts
// out.
func (s *scene) outputs(args ...string) map[string]string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "output")
	var out, errs strings.Builder
	Main(s.t.Context(), args, Surroundings{Environ: append(s.environ(), "GITHUB_ACTIONS=true", "GITHUB_OUTPUT="+path), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
	data, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatalf("%v\n%s\n%s", err, &out, &errs)
	}
	outputs := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z]+)<<end-[0-9a-f]+\n(.*)\n`).FindAllStringSubmatch(string(data), -1) {
		outputs[m[1]] = m[2]
	}
	return outputs
}

func TestAStepOfAWorkflowPutsOutWhatARunCameTo(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	if got := s.outputs(s.args()...); got["verdict"] != "ready" || got["proven"] != "0" || got["total"] != "6" || got["rerun"] != "false" {
		t.Errorf("a good run: %q", got)
	}
	s = newScene(t, e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Fail}}})
	if got := s.outputs(s.args()...); got["verdict"] != "not-ready" || got["rerun"] != "true" {
		t.Errorf("a run with a failure: %q", got)
	}
	// What the cluster cannot show, another attempt does not either.
	s = newScene(t, e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Skip}}})
	if got := s.outputs(s.args()...); got["verdict"] != "inconclusive" || got["rerun"] != "false" {
		t.Errorf("a run with a test that skips itself: %q", got)
	}
	path := filepath.Join(t.TempDir(), "output")
	j := &verdict.Judgement{Counts: verdict.Counts{Proven: 5, Parts: 2, Total: 9}}
	if err := tellOutputs(&Surroundings{Environ: []string{"GITHUB_ACTIONS=true", "GITHUB_OUTPUT=" + path}}, &result.Run{Finished: true}, j); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); err != nil || !regexp.MustCompile(`(?s)proven<<\S+\n5\n.*total<<\S+\n9\n`).Match(data) {
		t.Errorf("%v: %s", err, data)
	}
	artifacts := runShards(s, "2", "1", "2")
	if got := s.outputs("merge", artifacts, "--report-dir", filepath.Join(t.TempDir(), "m")); got["verdict"] != "inconclusive" || got["rerun"] != "true" {
		t.Errorf("a merge that lacks a shard: %q", got)
	}
}

func TestPlanTakesTheFlagsOfRun(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	s.want("flags of run", s.main("plan", "--procs", "2", "--retries", "1", "--wait", "--time-limit", "1h", "-o", "github-matrix", "--shards", "2"), verdict.ExitReady, `"shards":2`)
	s.want("a wrong one", s.main("plan", "--steer", "sideways"), verdict.ExitUsage, "--steer")
	s.want("one that there is not", s.main("plan", "--sideways"), verdict.ExitUsage, "--sideways")
	if r := s.main("plan", "--help"); strings.Contains(r.stdout, "--steer") {
		t.Errorf("the help of plan shows flags that change nothing:\n%s", r.stdout)
	}
}

// What plan writes as commands runs when it is pasted: op-readiness gets the binaries.
func TestCommandsOfAPlanRun(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	path, said := t.TempDir(), filepath.Join(t.TempDir(), "said")
	for name, script := range map[string]string{
		"op-readiness": fmt.Sprintf("echo \"$*\" >>%q\necho %q\n", said, filepath.Join(path, "a binary")),
		"a binary":     fmt.Sprintf("echo \"run $1\" >>%q\n", said),
	} {
		if err := os.WriteFile(filepath.Join(path, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", path+string(filepath.ListSeparator)+os.Getenv("PATH"))
	of := func(args ...string) string {
		t.Helper()
		planned := s.main(append([]string{"plan", "--case", "core-network-distinct-pod-ips-trial", "--case", "core-network-nodeport-win-to-linux", "-o", "command"}, args...)...)
		s.want("the commands", planned, verdict.ExitReady)
		if out, err := exec.Command("sh", "-c", planned.stdout).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s\nof\n%s", err, out, planned.stdout)
		}
		data, err := os.ReadFile(said)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	got := of("--kubernetes-version", "v1.35.4", "--source", "build", "--cache-dir", "/some where")
	for _, want := range []string{
		"e2e fetch --kubernetes-version v1.35.4 --source build --cache-dir /some where e2e.test\nrun --",
		"e2e fetch --kubernetes-version v1.35.4 --source build --cache-dir /some where op-readiness.test\nrun --",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it ran %q, without %q", got, want)
		}
	}
	if err := os.Remove(said); err != nil {
		t.Fatal(err)
	}
	if got := of("--suite-binary", filepath.Join(path, "a binary")); strings.Contains(got, "op-readiness.test") || strings.Count(got, "run --") != 2 {
		t.Errorf("with a binary of one's own it ran %q", got)
	}
}

func TestAnnotations(t *testing.T) {
	r := preflight.NewReport("https://cluster.example:6443", []preflight.Finding{
		{ID: "reachable", Status: preflight.OK, Found: "v1.36.3"},
		{ID: "node-count", Status: preflight.Failing, Found: "1 of 2 Windows nodes can be scheduled to", Fix: "add 1"},
		{ID: "permission-suite", Status: preflight.Unknown, Vital: true, Found: "forbidden"},
		{ID: "gmsa-node", Status: preflight.Unknown, Found: "forbidden"},
		{ID: "gmsa-webhook", Status: preflight.Warning, Found: "none", Fix: "install it\n::error::of somebody"},
	})
	var out bytes.Buffer
	if err := annotateFindings(&out, r); err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "TestAnnotations.golden", out.String())
}
