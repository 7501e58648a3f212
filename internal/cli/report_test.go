package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/golden"

	"github.com/windows-op-readiness/windows-op-readiness/internal/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/verdict"
)

// recorded is what a real run left, on a simulated cluster with the real
// e2e.test: two cases that passed, and one that needed containers.
const recorded = "testdata/report/results"

func reportSaid(args ...string) said {
	var out, errs bytes.Buffer
	code := Main(context.Background(), append([]string{"report"}, args...), Surroundings{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
	return said{code, out.String(), errs.String()}
}

func TestReportOfRecordedCases(t *testing.T) {
	got := reportSaid(recorded)
	if got.code != verdict.ExitInconclusive || strings.Contains(got.stdout, "Judged anew") || got.stderr != "" {
		t.Errorf("exit code %d\n%s\n%s", got.code, got.stdout, got.stderr)
	}
	for _, text := range []string{"0 proven, 0 in part, of 3", "passed on simulated nodes, which shows nothing of Windows", "6 pods: 6 on Windows ltsc2022 (simulated)", "2 pods: 2 on Linux (simulated)"} {
		if !strings.Contains(got.stdout, text) {
			t.Errorf("it does not say %q:\n%s", text, got.stdout)
		}
	}
}

func TestReportWithTheSameSpecsChangesNothing(t *testing.T) {
	got := reportSaid(recorded, "--spec-dir", "testdata/report/specs", "-o", "json")
	before := reportSaid(recorded, "-o", "json")
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
	if got.code != before.code || len(now.Judgement) == 0 {
		t.Errorf("exit codes %d and %d", got.code, before.code)
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
	for _, text := range []string{"of the cluster: INCONCLUSIVE (0 proven", "Judged anew with the standard of op-readiness", "core-network-service-recreate: not-tested, was not judged", "no test that was planned matches", "… and "} {
		if !strings.Contains(got.stdout, text) {
			t.Errorf("it does not say %q:\n%.3000s", text, got.stdout)
		}
	}
}

func TestReportRefusesWhatItCannotJudge(t *testing.T) {
	one := t.TempDir()
	for name, args := range map[string][]string{
		"choose of recorded, current": {recorded, "--specs", "new"},
		one:                           {recorded, "--spec-dir", one},
		"choose of table":             {recorded, "-o", "xml"},
		"not a results folder":        {one},
	} {
		if got := reportSaid(args...); got.code != verdict.ExitUsage || !strings.Contains(got.stderr, name) || got.stdout != "" {
			t.Errorf("%q: exit code %d, %q %q", args, got.code, got.stdout, got.stderr)
		}
	}
}
