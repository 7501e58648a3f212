package check

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const goodConfig = `test_groups:
  - name: windows-readiness
    gcs_prefix: bucket/logs/windows-readiness
    days_of_results: 14
    num_columns_recent: 10
    column_header:
      - configuration_value: Commit
dashboards:
  - name: sig-windows
    dashboard_tab:
      - name: readiness
        test_group_name: windows-readiness
`

func configOf(t *testing.T, content string) (string, *Report) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "testgrid.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Config(file)
	if err != nil {
		t.Fatal(err)
	}
	return file, r
}

func TestGoodConfigHasNoFindings(t *testing.T) {
	if _, r := configOf(t, goodConfig); len(r.Findings) != 0 {
		t.Errorf("findings: %+v", r.Findings)
	}
}

// What both TestGrid and the stricter rules refuse in a name is told once, and
// with a fix of its own.
func TestConfigFindingsAreToldOnce(t *testing.T) {
	for _, name := range []string{"ab", "dashboard-x", "abc#d"} {
		file, r := configOf(t, strings.Replace(goodConfig, "- name: readiness", "- name: '"+name+"'", 1))
		if len(r.Findings) == 1 && r.Findings[0].Object == file && !strings.HasPrefix(r.Findings[0].Fix, "fix it") {
			continue
		}
		t.Errorf("%s: %+v", name, r.Findings)
	}
}

func TestConfigFindings(t *testing.T) {
	edit := func(old, new string) string {
		if !strings.Contains(goodConfig, old) {
			t.Fatalf("no %q", old)
		}
		return strings.Replace(goodConfig, old, new, 1)
	}
	second := func(name string) string {
		return edit("dashboards:", "  - name: "+name+"\n    gcs_prefix: bucket/logs/two\n    days_of_results: 14\n    num_columns_recent: 10\ndashboards:") +
			"      - name: two-tab\n        test_group_name: " + name + "\n"
	}
	for _, c := range []struct {
		name, config string
		severity     Severity
		rule         string
		line         int
		what         string
	}{
		{"two groups of one normalised name", second("Windows_Readiness"), Error, "config-duplicate", 8, `"windows-readiness" and "Windows_Readiness" are one`},
		{"a name with a character that is not allowed", edit("- name: readiness", "- name: 'readi#ness'"), Error, "config", 11, "readi#ness"},
		{"a short name", edit("- name: readiness", "- name: ab"), Error, "config", 11, "at least 3"},
		{"a reserved name", edit("- name: sig-windows", "- name: dashboard-windows"), Error, "config", 9, "prefixed"},
		{"a tab named Summary", edit("- name: readiness", "- name: Summary"), Error, "config", 11, ""},
		{"a group that is not there", edit("test_group_name: windows-readiness", "test_group_name: other"), Error, "config", 12, "other"},
		{"a group without a tab", second("lonely") + "  - name: no-tabs\n", Error, "config", 19, "contains no tabs"},
		{"an unknown field", edit("days_of_results", "day_of_results"), Error, "config-yaml", 4, "day_of_results"},
		{"no YAML", "test_groups: [", Error, "config-yaml", 1, ""},
		{"nothing", "{}", Error, "config", 0, "TestGroups"},
		{"a prefix with a scheme", edit("gcs_prefix: bucket", "gcs_prefix: gs://bucket"), Error, "config-prefix", 2, "gs://"},
		{"a field that is not read", edit("    num_columns_recent", "    ignore_pending: true\n    num_columns_recent"), Note, "config-not-read", 5, ""},
		{"two values in a header", edit("- configuration_value: Commit", "- configuration_value: Commit\n        label: x"), Error, "config", 2, "must only set one value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file, r := configOf(t, c.config)
			for _, f := range r.Findings {
				if f.Rule == c.rule && f.Severity == c.severity && f.Object == file && f.Line == c.line && strings.Contains(f.What, c.what) && f.Fix != "" {
					return
				}
			}
			t.Errorf("no %s %s at line %d that says %q in:", c.severity, c.rule, c.line, c.what)
			for _, f := range r.Findings {
				t.Errorf("  %s", fmt.Sprintf("%+v", f))
			}
		})
	}
}
