package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
	"github.com/windows-op-readiness/windows-op-readiness/test/golden"
)

// recorded is what a real run left, on a simulated cluster with the real
// e2e.test: two cases that passed, and one that needed containers.
const recorded = "testdata/report/results"

// recordedScope is what a verdict over it speaks about: it was planned with spec
// files, by a version that did not say so.
const recordedScope = "3 requirements of another standard (planned by op-readiness devel, without a digest of its cases)"

func reportSaid(args ...string) said {
	var out, errs bytes.Buffer
	code := Main(context.Background(), append([]string{"report"}, args...), Surroundings{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
	return said{code, out.String(), errs.String()}
}

func TestReportOfRecordedCases(t *testing.T) {
	got := reportSaid(recorded)
	if got.code != verdict.ExitInconclusive || strings.Contains(got.stdout, "Judged again") || got.stderr != "" {
		t.Errorf("exit code %d\n%s\n%s", got.code, got.stdout, got.stderr)
	}
	for _, text := range []string{"readiness of " + recordedScope + ": INCONCLUSIVE (0 proven, 0 in part, of 3)", "passed on simulated nodes, which shows nothing of Windows", "6 pods: 6 on Windows ltsc2022 (simulated)", "2 pods: 2 on Linux (simulated)"} {
		if !strings.Contains(got.stdout, text) {
			t.Errorf("it does not say %q:\n%s", text, got.stdout)
		}
	}
}

func TestReportWithTheSameSpecsChangesNothing(t *testing.T) {
	scene := newScene(t, e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Fail}}})
	scene.want("the run", scene.main(scene.args()...), verdict.ExitNotReady)
	got := reportSaid(scene.dir, "--spec-dir", scene.specs, "-o", "json")
	before := reportSaid(scene.dir, "-o", "json")
	var now, was struct {
		JudgedWith *report.JudgedWith `json:"judgedWith"`
		Judgement  json.RawMessage    `json:"judgement"`
	}
	for raw, into := range map[string]any{got.stdout: &now, before.stdout: &was} {
		if err := json.Unmarshal([]byte(raw), into); err != nil {
			t.Fatal(err)
		}
	}
	if now.JudgedWith == nil || len(now.JudgedWith.Changes) != 0 || was.JudgedWith != nil {
		t.Errorf("judged with %+v, and before %+v", now.JudgedWith, was.JudgedWith)
	}
	if got.code != before.code || !bytes.Equal(now.Judgement, was.Judgement) {
		t.Errorf("exit codes %d and %d\n%s\n%s", got.code, before.code, now.Judgement, was.Judgement)
	}
}

// Old results are audited against what changed specs ask, and what they cannot
// tell is not tested.
func TestReportWithOtherSpecs(t *testing.T) {
	for _, format := range []string{"table", "markdown"} {
		got := reportSaid(recorded, "--spec-dir", "testdata/report/other", "-o", format)
		if got.code != verdict.ExitInconclusive || !strings.Contains(got.stderr, "judged with the spec files of testdata/report/other") {
			t.Errorf("exit code %d\n%s", got.code, got.stderr)
		}
		golden.Equal(t, "TestReportWithOtherSpecs_"+format+".golden", got.stdout)
	}
}

func TestReportWithTheCurrentStandard(t *testing.T) {
	got := reportSaid(recorded, "--specs", "current")
	if got.code != verdict.ExitInconclusive {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
	for _, text := range []string{"of the cluster: INCONCLUSIVE (0 proven", "Judged again with the standard of op-readiness", "core-network-service-recreate: not-tested, was not judged", "no test that was planned matches", "… and "} {
		if !strings.Contains(got.stdout, text) {
			t.Errorf("it does not say %q:\n%.3000s", text, got.stdout)
		}
	}
}

func TestReportRefusesWhatItCannotJudge(t *testing.T) {
	one := t.TempDir()
	for name, args := range map[string][]string{
		"use recorded, current":   {recorded, "--specs", "new"},
		one:                       {recorded, "--spec-dir", one},
		"use table":               {recorded, "-o", "xml"},
		"holds no results folder": {one},
	} {
		if got := reportSaid(args...); got.code != verdict.ExitUsage || !strings.Contains(got.stderr, name) || got.stdout != "" {
			t.Errorf("%q: exit code %d, %q %q", args, got.code, got.stdout, got.stderr)
		}
	}
}

// Whoever wrote a results folder may not have taken secrets out of it, and a report
// or a comment is read by many.
func TestNoSecretOfAFolderIsShown(t *testing.T) {
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	s := newScene(t, e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Fail}}})
	betray := func() {
		path := filepath.Join(s.dir, result.EventsFile)
		events, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s.write(path, strings.Replace(string(events), "[FAILED] expected", "[FAILED] "+secret+" expected", 1))
	}
	shards := runShards(s, "2", "1", "1", "2")
	for _, shard := range []string{"1", "2"} {
		s.dir = filepath.Join(shards, "shard-"+shard+"-attempt-1")
		betray()
	}
	s.dir = filepath.Join(t.TempDir(), "results")
	s.want("the run", s.main(s.args()...), verdict.ExitNotReady)
	betray()
	for _, args := range [][]string{
		{"report", s.dir}, {"report", s.dir, "-o", "json"}, {"report", s.dir, "-o", "markdown"}, {"report", s.dir, "-o", "csv"},
		{"report", shards}, {"comment", s.dir, "--dry-run"}, {"comment", shards, "--dry-run"},
		{"merge", s.dir, "--report-dir", s.dir + "-merged"}, {"merge", shards, "--report-dir", s.dir + "-of-shards"},
	} {
		got := s.main(args...)
		if said := got.stdout + got.stderr; strings.Contains(said, secret) || !strings.Contains(said, "REDACTED") && args[0] != "comment" {
			t.Errorf("%q: exit code %d\n%s", args, got.code, said)
		}
	}
	for _, merged := range []string{s.dir + "-merged", s.dir + "-of-shards"} {
		if events, err := os.ReadFile(filepath.Join(merged, result.EventsFile)); err != nil || strings.Contains(string(events), secret) {
			t.Errorf("%s holds the secret, %v", merged, err)
		}
	}
}
