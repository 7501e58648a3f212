package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/grid"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
)

// testgridding runs a testgrid command with an environment of its own.
func testgridding(environ []string, args ...string) said {
	var out, errs bytes.Buffer
	code := Main(context.Background(), append([]string{"testgrid"}, args...), Surroundings{
		Environ: environ, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
	})
	return said{code, out.String(), errs.String()}
}

func TestTestGridCommands(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	s.want("run", s.main(s.args()...), verdict.ExitReady)
	gcs := newStore(t)
	emulator := []string{"STORAGE_EMULATOR_HOST=" + strings.TrimPrefix(gcs.URL, "http://")}
	s.want("publish", publishing(emulator, nil, s.dir, "--bucket", "gs://readiness", "--job", "windows-readiness"), verdict.ExitReady)
	bucket := filepath.Join(t.TempDir(), "bucket")
	s.want("publish", publishing(nil, nil, s.dir, "--bucket", "file://"+filepath.ToSlash(bucket), "--job", "windows-readiness"), verdict.ExitReady)

	row := "core-network: core-network-a [sig-x] a"
	for _, source := range []string{s.dir, "gs://readiness", "gs://readiness/logs/windows-readiness", bucket, "file://" + filepath.ToSlash(bucket)} {
		s.want("preview of "+source, testgridding(emulator, "preview", source), verdict.ExitReady, row, "PASS", "1 of 1 (100.0%) recent columns passed")
		s.want("check of "+source, testgridding(emulator, "check", source), verdict.ExitReady, "TestGrid shows 1 column, ", "No problems found")
	}

	page := filepath.Join(bucket, "preview.html")
	shown := testgridding(nil, "preview", bucket, "--html", page, "-o", "json")
	s.want("preview with a page", shown, verdict.ExitReady, "open file://")
	var p grid.Preview
	if err := json.Unmarshal([]byte(shown.stdout), &p); err != nil || len(p.Tabs()) != 1 {
		t.Fatalf("%v: %s", err, shown.stdout)
	}
	html, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(html), `href="logs/windows-readiness/`+p.Tabs()[0].Columns[0].Build+`/"`) {
		t.Errorf("%v: the page does not lead to the build beside it", err)
	}
	s.want("a page on stdout", testgridding(nil, "preview", bucket, "-o", "html", "--build-url", "https://deck/<gcs_prefix>/<changelist>"), verdict.ExitReady, "<!DOCTYPE html>", `href="https://deck/local/logs/windows-readiness/`)

	// The same, as a configuration has it.
	config := filepath.Join(t.TempDir(), "testgrid.yaml")
	s.write(config, "test_groups:\n- name: readiness-group\n  gcs_prefix: elsewhere/logs/windows-readiness\ndashboards:\n- name: dash\n  dashboard_tab:\n  - name: the-tab\n    test_group_name: readiness-group\n")
	for _, source := range []string{s.dir, bucket, "gs://readiness"} {
		s.want("with a configuration", testgridding(emulator, "preview", source, "--config", config), verdict.ExitReady, "the-tab", "core-network-a [sig-x] a")
	}
	s.want("a good configuration", testgridding(nil, "check", config), verdict.ExitReady, "No problems found")

	// And what is wrong.
	dir := filepath.Join(bucket, "logs", "windows-readiness", p.Tabs()[0].Columns[0].Build)
	s.write(filepath.Join(dir, "finished.json"), "{")
	s.want("a broken build", testgridding(nil, "check", bucket), verdict.ExitNotReady, "finished.json [json]", "cut off")
	s.want("in Markdown", testgridding(nil, "check", bucket, "-o", "markdown"), verdict.ExitNotReady, "| severity | rule |")
	s.want("one build", testgridding(nil, "check", dir), verdict.ExitUsage, "name the folder above it")
	s.write(config, strings.Replace("test_groups:\n- name: a\n", "- name: a", "- nome: a", 1))
	s.want("a broken configuration", testgridding(nil, "check", config), verdict.ExitUsage, `field "nome"`)
	s.want("builds with a broken configuration", testgridding(nil, "check", bucket, "--config", config), verdict.ExitUsage, `field "nome"`)
}

func TestTestGridRefusesWrongArguments(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	empty, missing := t.TempDir(), filepath.Join(t.TempDir(), "missing")
	file := filepath.Join(t.TempDir(), "results.tar")
	s.write(file, "x")
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{verdict.ExitUsage, "accepts 1 arg", []string{"preview"}},
		{verdict.ExitUsage, "unknown format \"csv\"", []string{"preview", empty, "-o", "csv"}},
		{verdict.ExitUsage, "unknown format \"html\"", []string{"check", empty, "-o", "html"}},
		{verdict.ExitUsage, "--builds -1", []string{"preview", empty, "--builds=-1"}},
		{verdict.ExitUsage, "--days -1", []string{"preview", empty, "--days=-1"}},
		{verdict.ExitUsage, "--config, which is missing", []string{"preview", empty, "--group", "x"}},
		{verdict.ExitUsage, "no such file", []string{"preview", missing}},
		{verdict.ExitUsage, "no such file", []string{"check", missing}},
		{verdict.ExitUsage, "is a file: name the folder", []string{"check", file}},
		{verdict.ExitUsage, "its scheme is unknown", []string{"preview", "https://x"}},
		{verdict.ExitUsage, "no such file", []string{"preview", empty, "--config", missing}},
		{verdict.ExitInconclusive, "no builds: builds are folders with a number", []string{"preview", empty}},
		{verdict.ExitUsage, "unknown command \"prevew\"", []string{"prevew"}},
	} {
		s.want(strings.Join(c.args, " "), testgridding(nil, c.args...), c.code, c.says)
	}
	gcs := newStore(t)
	for _, verb := range []string{"preview", "check"} {
		said := testgridding([]string{"STORAGE_EMULATOR_HOST=" + gcs.URL}, verb, "gs://nobody-has-this")
		s.want(verb+" of a bucket that is not there", said, verdict.ExitInconclusive, "reading gs://nobody-has-this: there is no such bucket", "storage.objects.list")
		if strings.Contains(said.stderr, "make it with") || strings.Count(said.stderr, "gs://") != 1 {
			t.Errorf("%s: %s", verb, said.stderr)
		}
	}
}

// What is read of a folder has the folder's names, and what is not is said.
func TestTestGridOfFolders(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	top := filepath.Join(t.TempDir(), "a b%41")
	const started, finished = `{"timestamp": 1760000000}`, `{"timestamp": 1760000060, "passed": true}`
	job := filepath.Join(top, "logs", "job")
	for name, content := range map[string]string{
		"1900000000000000001/started.json": started, "1900000000000000001/finished.json": finished,
		"1900000000000000002/started.json": `{"timestamp": 1760000000000}`, "1900000000000000002/finished.json": finished,
		"1900000000000000003/started.json": `{"timestamp": "x"}`, "1900000000000000003/finished.json": finished,
		"1900000000000000001/artifacts/a.txt": "", "1900000000000000001/artifacts/a.txt.attrs": "none",
	} {
		file := filepath.Join(job, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		s.write(file, content)
	}
	for i := range 12 {
		if err := os.Symlink("/etc/passwd", filepath.Join(job, "1900000000000000001", fmt.Sprintf("link-%02d", i))); err != nil {
			t.Skip(err)
		}
	}
	shown := testgridding(nil, "preview", top, "-o", "json")
	s.want("preview", shown, verdict.ExitReady, "not read: "+filepath.Join(job, "1900000000000000001", "link-00")+": it is a symbolic link", "more; 'testgrid check' names them", "Failed to download "+job)
	if strings.Contains(shown.stdout+shown.stderr, "gs://") {
		t.Errorf("an address of no bucket: %s%s", shown.stdout, shown.stderr)
	}
	var p grid.Preview
	if err := json.Unmarshal([]byte(shown.stdout), &p); err != nil || len(p.Tabs()[0].Columns) != 3 {
		t.Fatalf("%v: %s", err, shown.stdout)
	}
	for _, c := range p.Tabs()[0].Columns {
		if c.Started.IsZero() == (c.Build == "1900000000000000001") {
			t.Errorf("build %s started %s", c.Build, c.Started)
		}
	}
	checked := testgridding(nil, "check", top)
	s.want("check", checked, verdict.ExitNotReady, "error: "+filepath.Join(job, "1900000000000000003", "started.json")+", line 1, timestamp [json]", "a.txt.attrs [skipped]")
	if strings.Contains(checked.stdout+checked.stderr, "gs://") || strings.Contains(checked.stdout, "%20") {
		t.Errorf("an address of no bucket: %s%s", checked.stdout, checked.stderr)
	}
}
