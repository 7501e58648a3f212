//go:build unix

package check_test

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/grid"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/grid/check"
)

// What cannot be read in a folder is a finding, and the rest is checked.
func TestLinksAreSkipped(t *testing.T) {
	dir := t.TempDir()
	job := filepath.Join(dir, "logs", "one")
	build := filepath.Join(job, "1900000000000000001")
	for _, err := range []error{
		os.MkdirAll(build, 0o755),
		os.WriteFile(filepath.Join(build, "started.json"), []byte(`{"timestamp":1760000000}`), 0o644),
		os.Symlink("/etc/passwd", filepath.Join(build, "passwd")),
		os.Symlink("loop", filepath.Join(build, "loop")),
		os.Symlink("1900000000000000001", filepath.Join(job, "1900000000000000002")),
		syscall.Mkfifo(filepath.Join(build, "pipe"), 0o600),
		syscall.Mkfifo(filepath.Join(build, "started.json.attrs"), 0o600),
		os.Mkdir(filepath.Join(job, "evil\x1b[31m"), 0o755),
		os.WriteFile(filepath.Join(job, "evil\x1b[31m", "started.json"), nil, 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	source, err := grid.Open(t.Context(), dir, bucket.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	prefixes, err := grid.Find(t.Context(), source.Client, source.Prefix)
	if err != nil {
		t.Fatal(err)
	}
	report, err := check.Builds(t.Context(), check.Options{Source: source, Config: grid.Standard(36500, prefixes...), Now: time.Unix(1760000100, 0)})
	if err != nil {
		t.Fatal(err)
	}
	skipped := 0
	for _, f := range report.Findings {
		if f.Rule == "skipped" {
			skipped++
		}
	}
	if skipped != 6 || report.Groups[0].Builds != 1 {
		t.Errorf("%d skipped and %d builds, want 6 and 1: %+v", skipped, report.Groups[0].Builds, report.Findings)
	}
}

// Jobs that TestGrid cannot tell apart by name are reported, and previewed.
func TestJobsOfOneName(t *testing.T) {
	store := &grid.Memory{}
	for _, job := range []string{"same-name", "Same_Name"} {
		store.Put(grid.Object{Name: "logs/" + job + "/1900000000000000001/started.json"}, []byte(`{"timestamp":1760000000}`))
	}
	source := grid.OfStore("two", "two", store)
	prefixes, err := grid.Find(t.Context(), source.Client, source.Prefix)
	if err != nil {
		t.Fatal(err)
	}
	cfg := grid.Standard(36500, prefixes...)
	if _, err := grid.Make(t.Context(), source.Client, cfg, grid.Options{}); err != nil {
		t.Fatal(err)
	}
	report, err := check.Builds(t.Context(), check.Options{Source: source, Config: cfg, Now: time.Unix(1760000100, 0)})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(report.Findings, func(f check.Finding) bool { return f.Rule == "job-names" }) {
		t.Errorf("no finding about the names: %+v", report.Findings)
	}
}
