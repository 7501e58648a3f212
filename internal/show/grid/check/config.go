package check

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/GoogleCloudPlatform/testgrid/config/yamlcfg"
	configpb "github.com/GoogleCloudPlatform/testgrid/pb/config"
	"gopkg.in/yaml.v3"

	"github.com/windows-op-readiness/windows-op-readiness/internal/show/grid"
	"github.com/windows-op-readiness/windows-op-readiness/testgrid"
)

// notRead are fields of a test group that TestGrid does not read where results
// come from Google Cloud Storage.
var notRead = []string{"ignore_pending", "ignore_built", "ignore_skip", "enable_flaky_status", "fallback_grouping", "primary_grouping", "tests_name_policy", "max_test_runtime_hours", "gather_test_groups"}

// IsConfig reports whether name is a YAML file, or a folder of them and
// nothing else.
func IsConfig(name string) bool {
	isYAML := func(name string) bool { return slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(name)) }
	if strings.Contains(name, "://") {
		return false
	}
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() {
		return err == nil && isYAML(name)
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return false
	}
	found := false
	for _, e := range entries {
		if e.Name() == "run.json" || e.IsDir() {
			return false
		}
		found = found || isYAML(e.Name())
	}
	return found
}

// Config checks a TestGrid configuration, a file or a folder: by TestGrid's own
// config.Validate, after the defaults of testgrid.k8s.io, and by the stricter
// rules of its newest version and of kubernetes/test-infra. An error is about
// reading it at all.
func Config(name string) (*Report, error) {
	r := &Report{Source: name}
	files, err := yamlFiles(name)
	if err != nil {
		return nil, err
	}
	cfg := &configpb.Configuration{}
	places := map[string]place{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the configuration: %w", err)
		}
		if base := filepath.Base(file); base == "default.yaml" || base == "default.yml" {
			continue
		}
		var strict configpb.Configuration
		if err := yamlcfg.Update(&strict, data, grid.Defaults(), true); err != nil {
			f := Finding{Severity: Error, Rule: "config-yaml", Object: file, What: err.Error(), Fix: "write it as config.proto of TestGrid has it"}
			if m := lineOf.FindStringSubmatch(err.Error()); m != nil {
				_, _ = fmt.Sscan(m[1], &f.Line)
			}
			if m := unknownField.FindStringSubmatch(err.Error()); m != nil {
				f.Field, f.Line = m[1], lineOfKey(data, m[1])
				f.What = fmt.Sprintf("TestGrid does not know the field %q; the merger of configurations drops a file with it", m[1])
				f.Fix = "fix its spelling, or remove it"
			}
			r.add(f)
		}
		if err := yamlcfg.Update(cfg, data, grid.Defaults(), false); err != nil {
			continue // said already
		}
		find(file, data, places)
	}
	if len(r.Findings) == 0 || len(cfg.GetTestGroups())+len(cfg.GetDashboards()) > 0 {
		for _, problem := range once(problems(testgrid.ValidateConfig(cfg))) {
			r.add(finding(name, problem, places))
		}
		r.advise(name, cfg, places)
	}
	r.finish()
	return r, nil
}

// areOne is in what testgrid.ValidateConfig says of two groups of one
// normalised name.
const areOne = "are one to TestGrid"

// once leaves out what both TestGrid and the stricter rules say of a name.
func once(all []error) []string {
	var texts []string
	short := map[string]bool{}
	twice := false
	for _, err := range all {
		text := err.Error()
		texts = append(texts, text)
		twice = twice || strings.Contains(text, areOne)
		if m := entity.FindStringSubmatch(text); m != nil && (strings.Contains(text, "at least 3 alphanumeric") || strings.Contains(text, "prefixed with any of")) {
			short[m[1]] = true
		}
	}
	return slices.DeleteFunc(texts, func(text string) bool {
		if strings.HasPrefix(text, "found duplicate name after normalizing: (TestGroup)") {
			return twice // the other one has both names
		}
		m := refusedName.FindStringSubmatch(text)
		return m != nil && short[m[1]]
	})
}

func yamlFiles(name string) ([]string, error) {
	var files []string
	err := yamlcfg.SeekYAMLFiles([]string{name}, func(path string, _ os.FileInfo) error {
		files = append(files, path)
		return nil
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s holds no .yaml file", name)
	}
	return files, err
}

// problems takes a joined error apart.
func problems(err error) []error {
	if err == nil {
		return nil
	}
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) {
		return several.Unwrap()
	}
	return []error{err}
}

// place is where something of a name is declared.
type place struct {
	file string
	line int
}

var (
	lineOf       = regexp.MustCompile(`line (\d+)`)
	unknownField = regexp.MustCompile(`unknown field "([^"]+)"`)
	quoted       = regexp.MustCompile(`"([^"]+)"`)
	refusedName  = regexp.MustCompile(`"([^"]+)" (?:has fewer than 3 letters|begins with [a-z]+, which TestGrid keeps)`)
	ownFix       = regexp.MustCompile(`^(.+): ((?:use|make|begin|add|rename) [^:]+)$`)
	entity       = regexp.MustCompile(`\((?:TestGroup|Dashboard|DashboardTab|DashboardGroup|Dashboard/DashboardGroup)\) ([^:]+)`)
)

// reference begins the key of where a name is referred to.
const reference = "reference to "

// find collects where names are declared, and where they are referred to.
func find(file string, data []byte, places map[string]place) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return
	}
	refer := func(name *yaml.Node) {
		if _, ok := places[reference+name.Value]; !ok {
			places[reference+name.Value] = place{file, name.Line}
		}
	}
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		for i, child := range n.Content {
			if n.Kind == yaml.MappingNode && i%2 == 0 && child.Value == "test_group_name" {
				refer(n.Content[i+1])
			}
			if n.Kind == yaml.MappingNode && i%2 == 0 && child.Value == "dashboard_names" {
				for _, name := range n.Content[i+1].Content {
					refer(name)
				}
			}
			if n.Kind == yaml.MappingNode && i%2 == 0 && child.Value == "name" {
				value := n.Content[i+1]
				for _, key := range []string{value.Value, normalise(value.Value)} {
					// Of two of one name, the second is the one to fix.
					if old, ok := places[key]; !ok || old.file != file || key != value.Value {
						places[key] = place{file, value.Line}
					}
				}
			}
			walk(child)
		}
	}
	walk(&doc)
}

func lineOfKey(data []byte, key string) int {
	for i, line := range strings.Split(string(data), "\n") {
		if strings.HasPrefix(strings.TrimLeft(line, " -"), key+":") {
			return i + 1
		}
	}
	return 0
}

func normalise(s string) string {
	return strings.ToLower(regexp.MustCompile(`[^a-zA-Z0-9]+`).ReplaceAllString(s, ""))
}

// finding makes one of a problem that a validation found.
func finding(name, problem string, places map[string]place) Finding {
	f := Finding{Severity: Error, Rule: "config", Object: name, What: problem, Fix: fixOf(problem)}
	if m := ownFix.FindStringSubmatch(problem); m != nil {
		f.What, f.Fix = m[1], m[2]
	}
	var names []string
	for _, m := range append(quoted.FindAllStringSubmatch(problem, -1), entity.FindAllStringSubmatch(problem, -1)...) {
		names = append(names, strings.TrimSpace(m[1]))
	}
	declared := func(name string) (place, bool) {
		p, ok := places[name]
		if !ok {
			p, ok = places[reference+name]
		}
		return p, ok
	}
	for _, n := range names {
		if p, ok := declared(n); ok {
			f.Object, f.Line = p.file, p.line
			if strings.HasPrefix(problem, "found duplicate") || strings.Contains(problem, areOne) {
				continue // the last one named is the second one
			}
			break
		}
	}
	if strings.Contains(problem, "duplicate name") || strings.Contains(problem, areOne) {
		f.Rule = "config-duplicate"
	}
	return f
}

// fixOf tells what to do about a problem.
func fixOf(problem string) string {
	for _, m := range []struct{ has, fix string }{
		{"found duplicate name", "rename one: TestGrid compares letters and digits only"},
		{areOne, "rename one"},
		{"could not find the referenced", "declare it, or fix the name"},
		{"must be referenced by at least", "add a tab that shows it, or remove it"},
		{"at least 3 alphanumeric", "use a longer name"},
		{"prefixed with any of", "begin the name with another word"},
		{"days_of_results", "set days_of_results, such as 14"},
		{"num_columns_recent", "set num_columns_recent, such as 10"},
		{"contains no tabs", "add a tab, or remove the dashboard"},
		{"more than 1 Dashboard Group", "leave it in one dashboard group"},
		{"gcs_prefix or result_source", "set gcs_prefix: bucket/folder"},
		{"tab can't be named 'Summary'", "use another name"},
		{"field missing or unset: TestGroups", "declare test_groups; a configuration has one at least"},
		{"field missing or unset: Dashboards", "declare dashboards; a configuration has one at least"},
		{"must only set one value", "write one of configuration_value, property, label"},
		{"name must begin with the group's", "rename it, or move it to another dashboard group"},
		{"wants one", "show the group in one tab of the dashboard"},
	} {
		if strings.Contains(problem, m.has) {
			return m.fix
		}
	}
	return "fix it in the configuration"
}

// advise tells what is valid, and does not do what it seems to.
func (r *Report) advise(name string, cfg *configpb.Configuration, places map[string]place) {
	at := func(what string) Finding {
		if p, ok := places[what]; ok {
			return Finding{Object: p.file, Line: p.line}
		}
		return Finding{Object: name}
	}
	for _, g := range cfg.GetTestGroups() {
		f := at(g.GetName())
		f.Field = "test group " + g.GetName()
		if h := g.GetColumnHeader(); len(h) > 0 && h[0].GetConfigurationValue() != "Commit" && g.GetNumFailuresToAlert() > 0 { //nolint:staticcheck // deprecated, and still what the updater goes by
			f.Severity, f.Rule, f.What, f.Fix = Note, "config-header", "alerts name builds by the first column header, which is not Commit", "put configuration_value: Commit first"
			r.add(f)
		}
		for _, prefix := range strings.Split(grid.PrefixOf(g), ",") {
			if prefix = strings.TrimSpace(prefix); strings.Contains(prefix, "://") || strings.HasPrefix(prefix, "/") || path.Clean(prefix) != strings.TrimSuffix(prefix, "/") {
				f.Severity, f.Rule, f.What, f.Fix = Error, "config-prefix", fmt.Sprintf("gcs_prefix %q is not bucket/folder", prefix), "write the bucket and the folder, without gs://"
				r.add(f)
			}
		}
	}
	for file := range filesOf(places) {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for _, key := range notRead {
			if line := lineOfKey(data, key); line > 0 {
				r.add(Finding{Severity: Note, Rule: "config-not-read", Object: file, Line: line, Field: key, What: "TestGrid does not read it for results in Google Cloud Storage", Fix: "remove it"})
			}
		}
	}
}

func filesOf(places map[string]place) map[string]bool {
	files := map[string]bool{}
	for _, p := range places {
		files[p.file] = true
	}
	return files
}
