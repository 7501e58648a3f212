package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/test/actionstest"
)

// FuzzHarmlessToTheRunner puts a text into a results folder, and lets every
// command that reads one show it in a workflow: no line of theirs may be a
// command to the runner, but annotations and groups of our own.
func FuzzHarmlessToTheRunner(f *testing.F) {
	for _, text := range []string{
		"::set-output name=verdict::ready", "\n::add-mask::a\r::stop-commands::b", "a ##[set-output name=verdict]ready", "##[error]x\n##[add-mask]y",
		"\u00a0\t::save-state name=a::b", "\u200b##[debug]x", "word " + strings.Repeat("::echo::on ", 20), "\x1b[31m::group::x", "#\x00#[set-env name=a]b", "%0A::set-env name=a::b",
	} {
		for where := range uint16(6) {
			f.Add(text, where)
		}
	}
	f.Fuzz(func(t *testing.T, text string, where uint16) {
		dir := t.TempDir()
		results := filepath.Join(dir, "results")
		if err := os.CopyFS(results, os.DirFS(recorded)); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(results, []string{result.PlanFile, result.ManifestFile, result.EventsFile}[where%3])
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		switch where /= 3; where {
		case 0:
			data = say(t, data, text, -1)
		case 1:
			data = append([]byte(text), data...)
		default:
			data = say(t, data, text, int(where))
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"report", results},
			{"report", results, "-o", "markdown"},
			{"report", results, "-o", "csv"},
			{"report", results, "-o", "json"},
			{"merge", results, "--report-dir", filepath.Join(dir, "merged")},
			{"comment", "--dry-run", "--annotate", "--repo", "o/r", "--pull", "7", results},
			{"publish", results, "--dry-run", "--bucket", "file://" + filepath.ToSlash(dir), "--job", "ci-x", "--build-id", "1"},
		} {
			var log bytes.Buffer
			shared := &shared{w: &log}
			Main(t.Context(), args, Surroundings{Environ: []string{"GITHUB_ACTIONS=true"}, Stdin: strings.NewReader(""), Stdout: shared, Stderr: shared})
			for _, c := range actionstest.Obeyed(log.String()) {
				switch c.Name {
				case "error", "warning", "notice":
					if strings.HasPrefix(c.Properties, "title=") {
						continue
					}
				case "group", "endgroup":
					if c.Properties == "" {
						continue
					}
				}
				t.Errorf("%s: the runner obeys %q:\n%s", args, c, log.String())
			}
		}
	})
}

// say puts a text behind every string of JSON values, or in place of the n-th.
func say(t *testing.T, data []byte, text string, n int) []byte {
	t.Helper()
	var out bytes.Buffer
	d, e := json.NewDecoder(bytes.NewReader(data)), json.NewEncoder(&out)
	d.UseNumber()
	i := 0
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case string:
			if i++; n < 0 {
				return v + text
			} else if i == n {
				return text
			}
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case map[string]any:
			for k := range v {
				v[k] = walk(v[k])
			}
		}
		return v
	}
	for d.More() {
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		if err := e.Encode(walk(v)); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}
