package grid

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"cloud.google.com/go/storage"
	"github.com/GoogleCloudPlatform/testgrid/config"
	"github.com/GoogleCloudPlatform/testgrid/config/yamlcfg"
	configpb "github.com/GoogleCloudPlatform/testgrid/pb/config"
	"github.com/GoogleCloudPlatform/testgrid/util/gcs"
	"google.golang.org/api/iterator"
)

// Defaults are what testgrid.k8s.io fills in where a configuration says nothing
// (config/testgrids/default.yaml in kubernetes/test-infra), as far as it
// decides what a grid looks like.
func Defaults() *yamlcfg.DefaultConfiguration {
	return &yamlcfg.DefaultConfiguration{
		DefaultTestGroup: &configpb.TestGroup{
			DaysOfResults: defaultDays, NumColumnsRecent: 10,
			NumFailuresToAlert: 3, NumPassesToDisableAlert: 1, //nolint:staticcheck // deprecated, and still what the updater goes by
			ColumnHeader: []*configpb.TestGroup_ColumnHeader{{ConfigurationValue: "Commit"}, {ConfigurationValue: "infra-commit"}},
		},
		DefaultDashboardTab: &configpb.DashboardTab{NumColumnsRecent: 10},
	}
}

// defaultDays is for how many days testgrid.k8s.io keeps results.
const defaultDays = 14

// readConfig reads a TestGrid configuration: a YAML file, or a folder of them.
// What it leaves out is filled in with [Defaults], after those of a default.yaml
// beside it. It is not validated.
func readConfig(name string) (*configpb.Configuration, error) {
	cfg := &configpb.Configuration{}
	defaults := Defaults()
	var files []string
	err := yamlcfg.SeekYAMLFiles([]string{name}, func(path string, _ os.FileInfo) error {
		files = append(files, path)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("TestGrid configuration: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("TestGrid configuration: %s holds no .yaml file", name)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("TestGrid configuration: %w", err)
		}
		if isDefaults(file) {
			continue
		}
		if err := yamlcfg.Update(cfg, data, defaults, false); err != nil {
			return nil, fmt.Errorf("TestGrid configuration %s: %w", file, err)
		}
	}
	return cfg, nil
}

// isDefaults reports whether a file holds defaults, which TestGrid knows by
// its name.
func isDefaults(file string) bool {
	return strings.HasSuffix(file, "default.yaml") || strings.HasSuffix(file, "default.yml")
}

// Standard returns a configuration with a tab for each prefix ("bucket/folder"),
// its rows named as those of a run with several shards: by category, then by
// test.
func Standard(days int, prefixes ...string) *configpb.Configuration {
	cfg := &configpb.Configuration{}
	dashboard := &configpb.Dashboard{Name: "preview"}
	names := map[string]bool{}
	for _, prefix := range prefixes {
		name := jobOf(prefix)
		if names[config.Normalize(name)] || len(name) < 3 {
			name = strings.ReplaceAll(strings.Trim(prefix, "/"), "/", " ")
		}
		// TestGrid refuses names that differ in case or punctuation alone.
		for i, plain := 2, name; names[config.Normalize(name)]; i++ {
			name = fmt.Sprintf("%s (%d)", plain, i)
		}
		names[config.Normalize(name)] = true
		cfg.TestGroups = append(cfg.TestGroups, standardGroup(name, prefix, days))
		dashboard.DashboardTab = append(dashboard.DashboardTab, &configpb.DashboardTab{Name: name, TestGroupName: name, NumColumnsRecent: 10})
	}
	cfg.Dashboards = []*configpb.Dashboard{dashboard}
	return cfg
}

// standardGroup is a test group as a run of several shards wants it.
func standardGroup(name, prefix string, days int) *configpb.TestGroup {
	group := &configpb.TestGroup{
		Name: name, GcsPrefix: prefix, DaysOfResults: int32(days), NumColumnsRecent: 10,
		DisableProwjobAnalysis: true,
		TestNameConfig: &configpb.TestNameConfig{
			NameElements: []*configpb.TestNameConfig_NameElement{{TargetConfig: "Context"}, {TargetConfig: "Tests name"}},
			NameFormat:   "%s: %s",
		},
		ColumnHeader: []*configpb.TestGroup_ColumnHeader{
			{ConfigurationValue: "Commit"}, {ConfigurationValue: "kubernetes-version"}, {ConfigurationValue: "windows-version"}, {ConfigurationValue: "verdict"},
		},
	}
	yamlcfg.ReconcileTestGroup(group, Defaults().DefaultTestGroup)
	return group
}

// Only returns of a configuration what concerns one test group: the group, and
// the tabs that show it.
func Only(cfg *configpb.Configuration, group string) (*configpb.Configuration, error) {
	g := config.FindTestGroup(group, cfg)
	if g == nil {
		var names []string
		for _, g := range cfg.GetTestGroups() {
			names = append(names, g.GetName())
		}
		slices.Sort(names)
		return nil, fmt.Errorf("there is no test group %q in the configuration; it has: %s", group, strings.Join(names, ", "))
	}
	only := &configpb.Configuration{TestGroups: []*configpb.TestGroup{g}}
	for _, d := range cfg.GetDashboards() {
		kept := &configpb.Dashboard{Name: d.GetName()}
		for _, t := range d.GetDashboardTab() {
			if t.GetTestGroupName() == group {
				kept.DashboardTab = append(kept.DashboardTab, t)
			}
		}
		if len(kept.DashboardTab) > 0 {
			only.Dashboards = append(only.Dashboards, kept)
		}
	}
	return only, nil
}

// errNoBuilds says that a place holds no builds.
var errNoBuilds = errors.New("no builds")

// Find returns the prefixes ("bucket/folder", without a slash at the end) at or
// below prefix whose children are builds, as Prow lays them out: the prefix
// itself, or else each job in logs/ and in pr-logs/directory/.
func Find(ctx context.Context, client gcs.Lister, prefix string) ([]string, error) {
	prefix = strings.TrimSuffix(prefix, "/")
	here, err := list(ctx, client, prefix)
	if err != nil {
		return nil, err
	}
	if here.builds {
		return []string{prefix}, nil
	}
	var places []string
	for _, dir := range here.folders {
		switch dir {
		case "logs":
			places = append(places, prefix+"/logs")
		case "pr-logs":
			places = append(places, prefix+"/pr-logs/directory")
		}
	}
	switch {
	case len(places) > 0:
	case slices.Contains(here.folders, "directory"):
		places = []string{prefix + "/directory"}
	default:
		places = []string{prefix}
	}
	var found []string
	for _, place := range places {
		jobs, err := list(ctx, client, place)
		if err != nil {
			return nil, err
		}
		for _, job := range jobs.folders {
			l, err := list(ctx, client, place+"/"+job)
			if err != nil {
				return nil, err
			}
			if l.builds {
				found = append(found, place+"/"+job)
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: builds are folders with a number for a name, in logs/JOB/ or pr-logs/directory/JOB/ of a bucket", errNoBuilds)
	}
	return found, nil
}

type listing struct {
	folders []string
	builds  bool
}

func list(ctx context.Context, client gcs.Lister, prefix string) (*listing, error) {
	path, err := gcs.NewPath("gs://" + prefix + "/")
	if err != nil {
		return nil, err
	}
	l := &listing{}
	it := client.Objects(ctx, *path, "/", "")
	for {
		o, err := it.Next()
		if errors.Is(err, iterator.Done) {
			return l, nil
		}
		if err != nil {
			return nil, fmt.Errorf("listing gs://%s/: %w", prefix, err)
		}
		if o.Prefix != "" {
			name := jobOf(o.Prefix)
			l.folders = append(l.folders, name)
			l.builds = l.builds || isNumber(name)
		} else if name, isText := strings.CutSuffix(jobOf(o.Name), ".txt"); isText {
			l.builds = l.builds || isNumber(name) || linkOf(o) != ""
		}
	}
}

func linkOf(o *storage.ObjectAttrs) string {
	for _, key := range linkKeys {
		if link := o.Metadata[key]; link != "" {
			return link
		}
	}
	return ""
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
