package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/test/golden"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/config"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

func files(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", dir, "*.yaml"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no files in testdata/%s: %v", dir, err)
	}
	all := map[string][]byte{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(name), ".yaml")] = data
	}
	return all
}

// whole is a whole implementation of JSON Schema, with this project's schema.
func whole(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(config.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertVocabs()
	if err := c.AddResource(config.SchemaID, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(config.SchemaID)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// held is what the schema says of a file, as an editor would.
func held(s *jsonschema.Schema, data []byte) error {
	var value any
	if err := yaml.Unmarshal(data, &value); err != nil {
		return err
	}
	asJSON, err := json.Marshal(value)
	if err != nil {
		return err
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		return err
	}
	return s.Validate(instance)
}

func TestSchema_accepts_what_the_loader_accepts(t *testing.T) {
	s := whole(t)
	all := files(t, "good")
	all["starter"] = config.Starter(t.TempDir())
	for name, data := range all {
		t.Run(name, func(t *testing.T) {
			if _, err := config.Parse(name, data); err != nil {
				t.Errorf("the loader refuses it:\n%v", err)
			}
			if err := held(s, data); err != nil {
				t.Errorf("the schema refuses it: %v", err)
			}
		})
	}
}

func TestSchema_refuses_with_the_loader(t *testing.T) {
	s := whole(t)
	for name, data := range files(t, "schema") {
		t.Run(name, func(t *testing.T) {
			if held(s, data) == nil {
				t.Error("the schema accepts it")
			}
			refused(t, name, "schema/"+name+".golden", data)
		})
	}
}

func TestParse_refuses_what_no_schema_can(t *testing.T) {
	s := whole(t)
	for name, data := range files(t, "refused") {
		t.Run(name, func(t *testing.T) {
			refused(t, name, "refused/"+name+".golden", data)
			parses := !slices.Contains([]string{"empty", "not-yaml", "not-utf-8", "field-twice", "merge-key", "two-documents"}, name)
			if err := held(s, data); parses && err != nil {
				t.Errorf("the schema refuses it, so it belongs into testdata/schema: %v", err)
			}
		})
	}
}

// refused holds the problems against a golden file. Each must have a line,
// unless it is the whole file's, and end with a fix.
func refused(t *testing.T, name, file string, data []byte) {
	t.Helper()
	_, err := config.Parse(name+".yaml", data)
	var problems config.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("the loader says %v, want problems", err)
	}
	golden.Equal(t, file, []byte(err.Error()+"\n"))
	for _, p := range problems {
		if p.Line == 0 && p.Field != "" {
			t.Errorf("%v: has no line", p)
		}
		if !strings.ContainsAny(p.Message, ":.,") {
			t.Errorf("%v: has no fix", p)
		}
	}
}

func TestSchema_describes_every_field(t *testing.T) {
	var doc map[string]any
	if err := json.Unmarshal(config.Schema(), &doc); err != nil {
		t.Fatal(err)
	}
	var walk func(path string, s map[string]any)
	walk = func(path string, s map[string]any) {
		properties, _ := s["properties"].(map[string]any)
		for name, p := range properties {
			property := p.(map[string]any)
			if d, _ := property["description"].(string); !strings.HasSuffix(d, ".") {
				t.Errorf("%s.%s has the description %q, want a sentence", path, name, d)
			}
			walk(path+"."+name, property)
			if items, ok := property["items"].(map[string]any); ok {
				walk(path+"."+name, items)
			}
		}
	}
	walk("", doc)
	if doc["$schema"] != "https://json-schema.org/draft/2020-12/schema" {
		t.Errorf("$schema is %v", doc["$schema"])
	}
}

func TestParse_a_file_of_ten_lines_has_all_jobs(t *testing.T) {
	c := parse(t, string(files(t, "good")["minimal"]))
	var names []string
	for _, j := range c.Jobs() {
		names = append(names, j.Name)
	}
	want := []string{"pull-windows-op-readiness"}
	for _, category := range specs.Categories() {
		want = append(want, "pull-windows-op-readiness-"+config.Slug(category))
	}
	want = append(want, "ci-windows-op-readiness-1-36-ltsc2022")
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	last := c.Jobs()[len(c.Jobs())-1]
	if got := last.Settings; got.Timeout != config.Duration(4*time.Hour) || got.GracePeriod != config.Duration(15*time.Minute) || *got.MaxConcurrency != 1 || got.Resources == nil || got.Cluster != "default" {
		t.Errorf("settings without defaults: %+v", got)
	}
}

func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := config.Parse("op-readiness.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\nof:\n%s", err, text)
	}
	return c
}

const axes = `repository: example/cni
matrix:
  kubernetes: [%s]
  windows: [%s]
`

func TestCells_a_value_added_at_an_axis_end_renames_nothing(t *testing.T) {
	before := parse(t, fmt.Sprintf(axes, `"1.36", "1.35"`, `"2022"`)+"  cni: [calico]\n").Cells()
	after := parse(t, fmt.Sprintf(axes, `"1.36", "1.35", master`, `"2022", "2025"`)+"  cni: [calico, flannel]\n  isolation: [process, hyperv]\n").Cells()
	names := map[string]bool{}
	for _, cell := range after {
		names[cell.Name] = true
	}
	for _, cell := range before {
		if !names[cell.Name] {
			t.Errorf("%s is gone", cell.Name)
		}
	}
	if len(after) != 3*2*2*2 || len(names) != len(after) {
		t.Errorf("%d cells with %d names, want 24", len(after), len(names))
	}
	if !names["1-35-ltsc2022-flannel-hyperv"] {
		t.Errorf("names are %v", after)
	}
}

func TestCells_excludes_and_includes(t *testing.T) {
	c := parse(t, fmt.Sprintf(axes, `"1.36", "v1.35.4"`, `"2022", "2025"`)+`  exclude:
    - {kubernetes: "1.35.4", windows: "2025"}
  include:
    - {kubernetes: release-1.36, windows: "2019", isolation: hyperv}
    - {provider: kwok}
`)
	var titles []string
	for _, cell := range c.Cells() {
		titles = append(titles, cell.Title)
	}
	want := []string{"1.36-ltsc2022", "1.36-ltsc2025", "1.35.4-ltsc2022", "release-1.36-ltsc2019-hyperv", "1.36-ltsc2022-kwok"}
	if diff := cmp.Diff(want, titles); diff != "" {
		t.Error(diff)
	}
	hyperv := c.Cells()[3]
	if hyperv.Branch() != "release-1.36" || hyperv.Version() != "1.36" || hyperv.RuntimeClass() != "runhcs-wcow-hypervisor" {
		t.Errorf("%+v: branch %q, version %q, runtime class %q", hyperv, hyperv.Branch(), hyperv.Version(), hyperv.RuntimeClass())
	}
	if got, want := hyperv.Expand("kc-{cell}-{kubernetes}-{windows}-{isolation}"), "kc-release-1-36-ltsc2019-hyperv-release-1-36-2019-hyperv"; got != want {
		t.Errorf("expanded to %s, want %s", got, want)
	}
}

// The forms that kubernetes/test-infra wants of names.
var testInfraName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

func TestJobs_long_names_are_cut_and_stay_apart(t *testing.T) {
	c := parse(t, fmt.Sprintf(axes, `"1.36", "1.35", release-1.36, master`, `"2019", "2022", "2025"`)+`  cni: [calico, flannel-with-a-very-long-name-overlay, flannel-with-a-very-long-name-l2bridge]
  runtime: [containerd, containerd-nightly-from-somewhere-else]
  isolation: [process, hyperv]
  provider: [rke2, k3s]
name: a-name-of-thirty-characters-or
prow: {image: i, kubeconfigSecret: "kc-{cell}"}
`)
	seen := map[string]config.Job{}
	cut := 0
	for _, j := range c.Jobs() {
		limit := 63
		if j.Kind == config.Periodic {
			limit = 58
		}
		if len(j.Name) > limit || !testInfraName.MatchString(j.Name) {
			t.Errorf("%s %s has %d characters, want at most %d, letters, digits and dashes", j.Kind, j.Name, len(j.Name), limit)
		}
		if len(j.Name) == limit {
			cut++
		}
		if first, again := seen[config.Normalise(j.Name)]; again {
			t.Errorf("%s is the name of %+v and %+v", j.Name, first.Cell, j.Cell)
		}
		seen[config.Normalise(j.Name)] = j
	}
	if len(seen) != 1+len(specs.Categories())+4*3*3*2*2*2 || cut < 50 {
		t.Errorf("%d jobs, %d of them cut", len(seen), cut)
	}
	if diff := cmp.Diff(names(c), names(parse(t, mustMarshal(t, c)))); diff != "" {
		t.Errorf("names differ from one reading to the next:\n%s", diff)
	}
}

func names(c *config.Config) []string {
	var all []string
	for _, j := range c.Jobs() {
		all = append(all, j.Name)
	}
	return all
}

func mustMarshal(t *testing.T, c *config.Config) string {
	t.Helper()
	data, err := yaml.Marshal(c.File)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestParse_what_is_written_reads_the_same(t *testing.T) {
	for name, data := range files(t, "good") {
		t.Run(name, func(t *testing.T) {
			c := parse(t, string(data))
			if diff := cmp.Diff(c.File, parse(t, mustMarshal(t, c)).File); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestJobs(t *testing.T) {
	for name, data := range files(t, "good") {
		t.Run(name, func(t *testing.T) {
			c := parse(t, string(data))
			out, err := yaml.Marshal(c.Jobs())
			if err != nil {
				t.Fatal(err)
			}
			golden.Equal(t, "good/"+name+".jobs.golden", out)
		})
	}
}

func TestGlobsToRegexp(t *testing.T) {
	for _, tt := range []struct {
		globs    string
		match    string
		mismatch string
	}{
		{"**", "a a/b a/b.go", ""},
		{"cni/**", "cni/a cni/a/b", "cni cnix/a x/cni/a"},
		{"**/*.go", "a.go a/b.go a/b/c.go", "a.gox ago a/b"},
		{"*.go", "a.go", "a/b.go"},
		{"a/**/b", "a/b a/x/b a/x/y/b", "ab a/xb"},
		{"?.yaml", "a.yaml", "/.yaml ab.yaml"},
		{"{a,b}/*.{go,mod}", "a/x.go b/y.mod", "c/x.go a/x.sum"},
		{"a+b(c)$.go", "a+b(c)$.go", "aab(c)$.go"},
		{"a,b", "a,b", "a b"},
		{"cni/** docs/*.md", "cni/x docs/a.md", "docs/a/b.md x"},
	} {
		pattern, err := config.GlobsToRegexp(strings.Fields(tt.globs))
		if err != nil {
			t.Errorf("%s: %v", tt.globs, err)
			continue
		}
		re := regexp.MustCompile(pattern)
		for _, path := range strings.Fields(tt.match) {
			if !re.MatchString(path) {
				t.Errorf("%s (%s) does not match %s", tt.globs, pattern, path)
			}
		}
		for _, path := range strings.Fields(tt.mismatch) {
			if re.MatchString(path) {
				t.Errorf("%s (%s) matches %s", tt.globs, pattern, path)
			}
		}
	}
}

func TestSchedule_jobs_are_spread_and_stay_where_they_are(t *testing.T) {
	for _, every := range []time.Duration{time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 168 * time.Hour} {
		s := config.Schedule{Every: config.Duration(every)}
		expressions := map[string]int{}
		for i := range 200 {
			name := fmt.Sprintf("ci-job-%d", i)
			resolved := s.Resolve(name)
			if resolved.Every != 0 || resolved.Cron == "" {
				t.Fatalf("every %s resolves to %+v", every, resolved)
			}
			if again := s.Resolve(name); again != resolved {
				t.Errorf("%s runs at %s and at %s", name, again.Cron, resolved.Cron)
			}
			if got, want := resolved.RunsPerWeek(0), float64(168*time.Hour)/float64(every); got != want {
				t.Errorf("%q runs %v times a week, want %v", resolved.Cron, got, want)
			}
			expressions[resolved.Cron]++
		}
		most := 0
		for _, n := range expressions {
			most = max(most, n)
		}
		if most > 12 {
			t.Errorf("every %s: %d of 200 jobs at the same minute", every, most)
		}
	}
}

func TestSchedule_RunsPerWeek(t *testing.T) {
	for _, tt := range []struct {
		s    config.Schedule
		want float64
	}{
		{config.Schedule{Cron: "7 */6 * * 1-5"}, 20},
		{config.Schedule{Cron: "0,30 * * * *"}, 336},
		{config.Schedule{Cron: "0 3 * * 0"}, 1},
		{config.Schedule{Interval: config.Duration(48 * time.Hour)}, 3.5},
		{config.Schedule{MinimumInterval: config.Duration(time.Hour)}, 168.0 / 4},
	} {
		if got := tt.s.RunsPerWeek(3 * time.Hour); got != tt.want {
			t.Errorf("%+v: %v, want %v", tt.s, got, tt.want)
		}
	}
}

func TestLoad_says_how_to_get_a_file(t *testing.T) {
	_, err := config.Load(filepath.Join(t.TempDir(), "op-readiness.yaml"))
	if err == nil || !strings.Contains(err.Error(), "op-readiness config init") {
		t.Errorf("got %v", err)
	}
}

func TestLoad_does_not_wait_for_what_is_no_file(t *testing.T) {
	dir := t.TempDir()
	if _, err := config.Load(dir); err == nil || !strings.Contains(err.Error(), "is a folder: name the file, such as "+filepath.Join(dir, "op-readiness.yaml")) {
		t.Errorf("a folder: %v", err)
	}
	if _, err := config.Load(os.DevNull); err == nil || !strings.Contains(err.Error(), "is not a regular file: name one, or - for standard input") {
		t.Errorf("a device: %v", err)
	}
}

// A file of nothing but mistakes takes no longer than any other, and says the
// first of them.
func TestParse_many_problems_are_counted(t *testing.T) {
	const fields = 90_000
	var text strings.Builder
	text.WriteString("repository: example/cni\nmatrix:\n  kubernetes: [\"1.36\"]\n  windows: [\"2022\"]\n")
	for i := range fields {
		fmt.Fprintf(&text, "f%d: 1\n", i)
	}
	_, err := config.Parse("op-readiness.yaml", []byte(text.String()))
	var problems config.Problems
	if !errors.As(err, &problems) || problems.Count() != fields {
		t.Fatalf("%d problems, want %d", problems.Count(), fields)
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 51 || !strings.HasPrefix(lines[0], "op-readiness.yaml:5: f0: unknown field") || lines[50] != "op-readiness.yaml: and 89950 more problems, which are shown when these are fixed" {
		t.Errorf("%d lines, from %q to %q", len(lines), lines[0], lines[len(lines)-1])
	}
}

func TestParse_large_mappings_are_refused(t *testing.T) {
	var text strings.Builder
	text.WriteString("repository: example/cni\nmatrix:\n  kubernetes: [\"1.36\"]\n  windows: [\"2022\"]\nprow:\n  labels:\n")
	for i := range 2000 {
		fmt.Fprintf(&text, "    label-%d: \"1\"\n", i)
	}
	_, err := config.Parse("op-readiness.yaml", []byte(text.String()))
	if err == nil || !strings.Contains(err.Error(), "op-readiness.yaml:1007: prow.labels: more than 1000 entries") {
		t.Errorf("%v", err)
	}
}

func TestParse_tabs_are_named(t *testing.T) {
	for text, line := range map[string]string{
		"\ta: 1\n":           "1",
		"a:\n\tb: 1\n":       "2",
		"a:\n  - b\n\t- c\n": "3",
		"matrix:\n  kubernetes: [\"1.36\"]\n\twindows: [\"2022\"]\n": "3",
		"a:\n\n\n  \tb: 1\n": "4",
	} {
		_, err := config.Parse("op-readiness.yaml", []byte(text))
		if want := "op-readiness.yaml:" + line + ": indented with a tab, which YAML does not take: use spaces"; err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	// A tab elsewhere is none of its business.
	if _, err := config.Parse("op-readiness.yaml", []byte("a: [\tb\nc: d\n")); err == nil || strings.Contains(err.Error(), "tab") {
		t.Errorf("%v", err)
	}
}

func TestStarter_names_the_repository_of_the_folder(t *testing.T) {
	for remote, want := range map[string]string{
		"git@github.com:kubernetes-sigs/windows-testing.git": "kubernetes-sigs/windows-testing",
		"https://github.com/a/b.c":                           "a/b.c",
		"https://token@github.com/a/b/":                      "a/b",
		"https://gitlab.example.com/a/b":                     "my-org/my-repository",
	} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, ".git"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".git", "config"), []byte("[remote \"origin\"]\n\turl = "+remote+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, in := range []string{dir, filepath.Join(dir, "ci", "windows")} {
			if got := parse(t, string(config.Starter(in))).Repository; got != want {
				t.Errorf("%s: repository is %s, want %s", remote, got, want)
			}
		}
	}
}

func TestStarter_what_is_commented_out_is_right(t *testing.T) {
	commented := regexp.MustCompile(`(?m)^( *)# ( *(?:[a-zA-Z0-9]+:( |$)|- [a-z{]))`)
	all := commented.ReplaceAllString(string(config.Starter(t.TempDir())), "$1$2")
	c := parse(t, all)
	if c.Prow == nil || c.GitHub == nil || len(c.Cells()) != 5 || c.TestGrid.Group == "" {
		t.Errorf("not all of it was taken:\n%s", all)
	}
}

func TestParse_aliases_cannot_blow_up(t *testing.T) {
	text := "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		text += fmt.Sprintf("a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i+1, i+1, i, i, i, i, i, i, i, i, i)
	}
	text = strings.Replace(text, "a0:", "repository: example/cni\nrun: {categories: [*a9]}\na0:", 1)
	if _, err := config.Parse("bomb.yaml", []byte(text)); err == nil {
		t.Error("accepted")
	}
	deep := "repository: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	if _, err := config.Parse("deep.yaml", []byte(deep)); err == nil {
		t.Error("accepted")
	}
}

func TestConfig_warns_of_versions_that_nobody_looked_at(t *testing.T) {
	c := parse(t, fmt.Sprintf(axes, `"1.36", "1.99", master`, `"2022", "2025"`))
	if got := c.Warnings(); len(got) != 1 || got[0] != "no case was checked against Kubernetes 1.99: the newest is 1.36" {
		t.Errorf("warnings are %q", got)
	}
}

func TestConfig_refuses_versions_on_which_nothing_would_be_tested(t *testing.T) {
	const prow = "prow: {image: registry.example.com/op-readiness:v1, kubeconfigSecret: \"k-{cell}\"%s}\n"
	const kubernetes, old = `"1.36"`, "would test nothing: no case was checked against Kubernetes 1.20: test one of 1.33, 1.34, 1.35, 1.36"
	for text, field := range map[string]string{
		fmt.Sprintf(axes, `"1.36", "1.20"`, `"2022"`):                                                                                      "matrix.kubernetes",
		fmt.Sprintf(axes, `"1.36", "1.20.5"`, `"2022"`):                                                                                    "matrix.kubernetes",
		fmt.Sprintf(axes, `"1.36", release-1.20`, `"2022"`):                                                                                "matrix.kubernetes",
		fmt.Sprintf(axes, kubernetes, `"2022"`) + "  include: [{kubernetes: \"1.20\", windows: \"2019\"}]\n":                               "matrix.include[0]",
		fmt.Sprintf(axes, kubernetes, `"2022"`) + fmt.Sprintf(prow, `, presubmits: {cell: {kubernetes: "1.20"}}`):                          "prow.presubmits.cell",
		fmt.Sprintf(axes, kubernetes, `"2022"`) + fmt.Sprintf(prow, `, overrides: [{when: {branches: [v1]}, cell: {kubernetes: "1.20"}}]`): "prow.overrides[0].cell",
	} {
		_, err := config.Parse("op-readiness.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), field+":") || !strings.Contains(err.Error(), old) {
			t.Errorf("%s: the error is %v, want one of %s", text, err, field)
		}
	}
}

func TestConfig_warns_of_presubmits_outside_the_matrix(t *testing.T) {
	const prow = "prow: {image: registry.example.com/op-readiness:v1, kubeconfigSecret: \"k-{cell}\"%s}\n"
	for more, want := range map[string]string{
		"": "",
		`, presubmits: {cell: {kubernetes: "1.35"}}`:               "",
		`, presubmits: {cell: {kubernetes: "1.34"}}`:               "pull-windows-op-readiness tests the cell 1.34-ltsc2022",
		`, presubmits: {cell: {windows: "2025"}}`:                  "pull-windows-op-readiness tests the cell 1.36-ltsc2025",
		`, overrides: [{when: {branches: [v1]}, cell: {cni: me}}]`: "pull-windows-op-readiness tests the cell 1.36-ltsc2022-me",
	} {
		got := strings.Join(parse(t, fmt.Sprintf(axes, `"1.36", "1.35"`, `"2022"`)+fmt.Sprintf(prow, more)).Warnings(), "\n")
		if want == "" && got != "" || !strings.Contains(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%s: warnings are %q, want %q", more, got, want)
		}
	}
	// The first values, which presubmits have by themselves, may be excluded.
	text := strings.Replace(fmt.Sprintf(axes, `"1.36", "1.35"`, `"2022"`), "matrix:", "matrix:\n  exclude: [{kubernetes: \"1.36\"}]", 1)
	if got := parse(t, text+fmt.Sprintf(prow, "")).Warnings(); len(got) != 1 || !strings.Contains(got[0], "1.36-ltsc2022") {
		t.Errorf("warnings are %q", got)
	}
}

func TestWith_every_setting_can_be_overridden(t *testing.T) {
	c := parse(t, string(files(t, "good")["every-field"]))
	base := reflect.TypeFor[config.JobSettings]()
	for i := range base.NumField() {
		name := base.Field(i).Name
		found := slices.ContainsFunc(c.Jobs(), func(j config.Job) bool {
			return !reflect.ValueOf(j.Settings).FieldByName(name).IsZero()
		})
		if !found {
			t.Errorf("no job has %s: it is lost between the file and the job", name)
		}
	}
}

func TestReference_describes_job_settings_once(t *testing.T) {
	page := string(config.Reference())
	if got := strings.Count(page, "| `extraRefs` |"); got != 1 {
		t.Errorf("extraRefs is there %d times, want once", got)
	}
	for _, section := range []string{"## prow.presubmits", "## prow.overrides[].when", "## github.publish"} {
		if !strings.Contains(page, "\n"+section+"\n") {
			t.Errorf("%s is missing", section)
		}
	}
}

// FuzzParse: nothing crashes, and what the loader accepts the schema accepts.
func FuzzParse(f *testing.F) {
	for _, dir := range []string{"good", "schema", "refused"} {
		for _, data := range files(f, dir) {
			f.Add(data)
		}
	}
	s := whole(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := config.Parse("op-readiness.yaml", data)
		if err != nil {
			var problems config.Problems
			if !errors.As(err, &problems) || len(problems) == 0 {
				t.Fatalf("the error %v lists no problems", err)
			}
			return
		}
		if err := held(s, data); err != nil {
			t.Errorf("the loader accepts what the schema refuses: %v", err)
		}
		for _, j := range c.Jobs() {
			if !testInfraName.MatchString(j.Name) {
				t.Errorf("job name %q", j.Name)
			}
		}
	})
}
