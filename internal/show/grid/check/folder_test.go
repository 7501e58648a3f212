package check_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/grid"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/grid/check"
)

var epoch = time.Unix(1760000000, 0)

const xml = `<testsuites><testsuite name=""><testcase name="a" time="1"></testcase></testsuite></testsuites>`

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, epoch, epoch); err != nil {
			t.Fatal(err)
		}
	}
}

// buildFiles are those of a build, with this metadata.
func buildFiles(dir, metadata string) map[string]string {
	return map[string]string{
		dir + "started.json":                   fmt.Sprintf(`{"timestamp": %d}`, epoch.Unix()),
		dir + "artifacts/junit_network_01.xml": xml,
		dir + "finished.json":                  fmt.Sprintf(`{"timestamp": %d, "passed": true, "metadata": {%s}}`, epoch.Unix()+60, metadata),
	}
}

const allHeaders = `"Commit": "abc", "kubernetes-version": "v1", "windows-version": "10", "verdict": "ready"`

// checkFolder checks a folder as the command does.
func checkFolder(t *testing.T, dir string) *check.Report {
	t.Helper()
	source, err := grid.Open(t.Context(), dir, bucket.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	prefixes, err := grid.Find(t.Context(), source.Client, source.Prefix)
	if err != nil {
		t.Fatal(err)
	}
	report, err := check.Builds(t.Context(), check.Options{Source: source, Config: grid.Standard(36500, prefixes...), Now: epoch.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// A pull request's builds lie elsewhere than the aliases that lead to them, in a
// folder by whatever path it had when they were published, and in a copy of a
// bucket by the name of that one.
func TestBuildsBehindAliasesInAFolder(t *testing.T) {
	for _, c := range []struct{ name, top, link string }{
		{"published there", "", "file://%s/pr-logs/pull/o_r/7/pull-x/1900000000000000001"},
		{"a folder whose name is escaped in addresses", "a b%41#c", "file://%s/pr-logs/pull/o_r/7/pull-x/1900000000000000001"},
		{"a copy of a bucket", "", "gs://elsewhere/pr-logs/pull/o_r/7/pull-x/1900000000000000001"},
	} {
		t.Run(c.name, func(t *testing.T) {
			top := filepath.Join(t.TempDir(), c.top)
			link := c.link
			if strings.Contains(link, "%s") {
				link = fmt.Sprintf(link, strings.NewReplacer(" ", "%20", "%", "%25", "#", "%23").Replace(filepath.ToSlash(top)))
			}
			files := buildFiles("pr-logs/pull/o_r/7/pull-x/1900000000000000001/", allHeaders)
			files["pr-logs/directory/pull-x/1900000000000000001.txt"] = link
			files["pr-logs/directory/pull-x/1900000000000000001.txt.attrs"] = fmt.Sprintf(`{"user.metadata": {"link": %q}}`, link)
			writeFiles(t, top, files)
			if r := checkFolder(t, top); len(r.Findings) != 0 || len(r.Groups) != 1 || r.Groups[0].Columns != 1 || r.Groups[0].Rows != 2 {
				t.Errorf("groups %+v, findings %+v", r.Groups, r.Findings)
			}
			writeFiles(t, top, map[string]string{"pr-logs/pull/o_r/7/pull-x/1900000000000000001/finished.json": "{"})
			want := filepath.Join(top, "pr-logs/pull/o_r/7/pull-x/1900000000000000001/finished.json")
			if r := checkFolder(t, top); len(r.Findings) != 1 || r.Findings[0].Rule != "json" || r.Findings[0].Object != want {
				t.Errorf("findings %+v, want one about %s", r.Findings, want)
			}
		})
	}
}

// A header that builds lack is said once a job, with how many lack it.
func TestHeadersThatBuildsLack(t *testing.T) {
	dir := t.TempDir()
	for i, metadata := range []string{allHeaders, `"kubernetes-version": "v1"`, `"kubernetes-version": "v1"`} {
		writeFiles(t, dir, buildFiles(fmt.Sprintf("logs/some/190000000000000000%d/", i), metadata))
		writeFiles(t, dir, buildFiles(fmt.Sprintf("logs/none/190000000000000000%d/", i), `"kubernetes-version": "v1", "windows-version": "10", "verdict": "ready"`))
	}
	// TestGrid takes the commit from elsewhere, too.
	writeFiles(t, dir, buildFiles("logs/other/1900000000000000000/", `"kubernetes-version": "v1", "windows-version": "10", "verdict": "ready", "repo-commit": "0123456789"`))
	var got []string
	for _, f := range checkFolder(t, dir).Findings {
		if f.Severity != check.Note || f.Fix == "" {
			t.Errorf("%+v", f)
		}
		job, _ := filepath.Rel(dir, f.Object)
		got = append(got, fmt.Sprintf("%s %s: %s", filepath.ToSlash(job), f.Field, f.What))
	}
	want := []string{
		`logs/none metadata.Commit: none of the 3 builds that have ended has it: the column header shows "missing"`,
		`logs/some metadata.Commit: 2 of 3 builds that have ended lack it, such as 1900000000000000002: the column header shows "missing"`,
		`logs/some metadata.windows-version: 2 of 3 builds that have ended lack it, such as 1900000000000000002: the column header shows "missing"`,
		`logs/some metadata.verdict: 2 of 3 builds that have ended lack it, such as 1900000000000000002: the column header shows "missing"`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What several test groups read is told once.
func TestBuildsOfSeveralGroups(t *testing.T) {
	dir := t.TempDir()
	files := buildFiles("logs/one/1900000000000000001/", allHeaders)
	files["logs/one/1900000000000000001/finished.json"] = "{"
	writeFiles(t, dir, files)
	source, err := grid.Open(t.Context(), dir, bucket.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	cfg := grid.Standard(36500, "local/logs/one", "local/logs/one", "local/logs/none", "local/logs/nothing", "local/logs/nothing")
	r, err := check.Builds(t.Context(), check.Options{Source: source, Config: cfg, Now: epoch.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]int{}
	for _, f := range r.Findings {
		rules[f.Rule]++
		if f.Rule == "no-builds" && !strings.HasSuffix(f.Object+" "+f.What, "none/ there are no builds; TestGrid shows an empty grid; nor are there any in "+dir+"/logs/nothing/") {
			t.Errorf("%+v", f)
		}
	}
	if rules["json"] != 1 || rules["no-builds"] != 1 || len(r.Findings) != 2 {
		t.Errorf("findings %+v", r.Findings)
	}
}

// Files that were copied at once, in whatever order, are not in a wrong one.
func TestFilesThatWereCopied(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		build := fmt.Sprintf("logs/one/190000000000000000%d/", i)
		writeFiles(t, dir, buildFiles(build, allHeaders))
		for name := range buildFiles(build, "") {
			copied := epoch.Add(-time.Duration(i) * 100 * time.Millisecond)
			if err := os.Chtimes(filepath.Join(dir, name), copied, copied); err != nil {
				t.Fatal(err)
			}
		}
	}
	if r := checkFolder(t, dir); len(r.Findings) != 0 {
		t.Errorf("findings %+v", r.Findings)
	}
}

// A copy of old builds is one finding, not one a build.
func TestOldBuildsThatWereCopied(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		build := fmt.Sprintf("logs/one/190000000000000000%d/", i)
		writeFiles(t, dir, buildFiles(build, allHeaders))
		for name := range buildFiles(build, "") {
			if err := os.Chtimes(filepath.Join(dir, name), time.Time{}, epoch.Add(100*time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if r := checkFolder(t, dir); len(r.Findings) != 1 || r.Findings[0].Rule != "finished-late" || !strings.Contains(r.Findings[0].What, "the files of 3 builds, such as 1900000000000000002,") {
		t.Errorf("findings %+v", r.Findings)
	}
}
