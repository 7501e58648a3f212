package report_test

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

func TestPulledImages(t *testing.T) {
	run := everyOutcome()
	before := verdict.Judge(run)
	run.Manifest.Pulls = []result.Pull{
		{Image: "r.example/agnhost:2", OS: specs.Linux, Nodes: 2, Seconds: 3.5},
		{Image: "r.example/agnhost:2", OS: specs.Windows, WindowsBuild: "10.0.20348", Nodes: 2, Seconds: 61, Problem: "1 node without it: w-1: ErrImagePull: no\nsuch image"},
		{Image: "r.example/agnhost:2", OS: specs.Windows, WindowsBuild: "10.0.26100", Skipped: "1 simulated node, which pull nothing"},
	}
	judgement := verdict.Judge(run)
	if judgement.Verdict != before.Verdict || judgement.ExitCode() != before.ExitCode() {
		t.Errorf("the verdict is %s, and was %s", judgement.Verdict, before.Verdict)
	}
	folder, err := result.Create(filepath.Join(t.TempDir(), "results"), run.Plan, run.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if err := report.WriteFolder(folder, run, judgement, time.Now()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(folder.Path("junit_prepull_01.xml"))
	if err != nil {
		t.Fatal(err)
	}
	var s suites
	if err := xml.Unmarshal(data, &s); err != nil || len(s.Suites) != 1 || len(s.Suites[0].Cases) != 3 {
		t.Fatalf("%v:\n%s", err, data)
	}
	linux, windows, played := s.Suites[0].Cases[0], s.Suites[0].Cases[1], s.Suites[0].Cases[2]
	if linux.Name != "prepull r.example/agnhost:2 on Linux" || linux.Time != "3.5" || linux.Failure != nil || linux.Skipped != nil {
		t.Errorf("got %+v", linux)
	}
	if windows.Name != "prepull r.example/agnhost:2 on Windows 10.0.20348" || windows.Failure == nil || windows.Failure.Message != "1 node without it: w-1: ErrImagePull: no such image" {
		t.Errorf("got %+v, %+v", windows, windows.Failure)
	}
	if played.Skipped == nil || !strings.Contains(played.Skipped.Body, "1 simulated node") {
		t.Errorf("got %+v", played)
	}
	for _, format := range []report.Format{report.FormatTable, report.FormatMarkdown} {
		said := render(t, run, 0, format)
		if strings.Count(said, "Not pulled before the tests: ") != 1 || !strings.Contains(said, "on Windows 10.0.20348: 1 node without it: w") {
			t.Errorf("as %s:\n%s", format, said)
		}
	}
}
