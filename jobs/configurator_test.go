package jobs_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	tgconfig "github.com/GoogleCloudPlatform/testgrid/config"
	"github.com/GoogleCloudPlatform/testgrid/config/yamlcfg"
	configpb "github.com/GoogleCloudPlatform/testgrid/pb/config"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"k8s.io/test-infra/testgrid/pkg/configurator/configurator"
	"k8s.io/test-infra/testgrid/pkg/configurator/options"
	"sigs.k8s.io/prow/pkg/flagutil"
	configflagutil "sigs.k8s.io/prow/pkg/flagutil/config"

	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/config"
	"github.com/windows-op-readiness/windows-op-readiness/jobs"
	"github.com/windows-op-readiness/windows-op-readiness/testgrid"
)

// configured is what kubernetes/test-infra's configurator, reading strictly,
// makes of the rendered dashboards and jobs, and of dashboards that are declared
// elsewhere.
func configured(t *testing.T, c *config.Config) *configpb.Configuration {
	t.Helper()
	dir := t.TempDir()
	data, err := testgrid.Render(c)
	if err != nil {
		t.Fatal(err)
	}
	inputs := options.MultiString{filepath.Join(dir, "dashboards.yaml")}
	write(t, inputs[0], data)
	if len(c.TestGrid.DeclaredElsewhere) > 0 {
		elsewhere := &configpb.Configuration{}
		for _, name := range c.TestGrid.DeclaredElsewhere {
			elsewhere.Dashboards = append(elsewhere.Dashboards, &configpb.Dashboard{Name: name})
		}
		inputs = append(inputs, filepath.Join(dir, "elsewhere.yaml"))
		write(t, inputs[1], marshal(t, elsewhere))
	}
	p := prowOf(t, c)
	out := filepath.Join(dir, "config")
	err = configurator.RealMain(&options.Options{
		Inputs:          inputs,
		Oneshot:         true,
		Output:          flagutil.NewStrings(out),
		DefaultYAML:     defaultsPath(t),
		StrictUnmarshal: true,
		ProwConfig:      configflagutil.ConfigOptions{ConfigPath: p.configPath, JobConfigPath: p.jobsDir},
	})
	if err != nil {
		t.Fatalf("the configurator refuses it: %v", err)
	}
	written, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	cfg := &configpb.Configuration{}
	if err := proto.Unmarshal(written, cfg); err != nil {
		t.Fatal(err)
	}
	return cfg
}

func defaultsPath(t *testing.T) string {
	return filepath.Join(testInfra(t), "config/testgrids/default.yaml")
}

// expected is what package testgrid says that it comes to, with the same
// defaults.
func expected(t *testing.T, c *config.Config) *configpb.Configuration {
	t.Helper()
	cfg, err := testgrid.Configuration(c)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(defaultsPath(t))
	if err != nil {
		t.Fatal(err)
	}
	defaults, err := yamlcfg.LoadDefaults(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range cfg.TestGroups {
		yamlcfg.ReconcileTestGroup(g, defaults.DefaultTestGroup)
	}
	for _, d := range cfg.Dashboards {
		for _, tab := range d.DashboardTab {
			yamlcfg.ReconcileDashboardTab(tab, defaults.DefaultDashboardTab)
		}
	}
	return cfg
}

// annotationsCannotSay are the fields of a tab that annotations have no words
// for: the configurator takes its defaults. docs/prow.md lists them.
var annotationsCannotSay = cmp.Options{
	protocmp.IgnoreFields(&configpb.DashboardTab{}, "file_bug_template", "results_url_template", "results_text", "num_columns_recent"),
	protocmp.IgnoreFields(&configpb.DashboardTabAlertOptions{}, "num_passes_to_disable_alert"),
}

// linkPeriodics lets the links of periodic jobs' tabs go to the first repository
// that they clone, as the configurator does.
func linkPeriodics(t *testing.T, c *config.Config, cfg *configpb.Configuration) {
	t.Helper()
	made, err := jobs.Make(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range made.Periodics {
		for _, d := range cfg.Dashboards {
			for _, tab := range d.DashboardTab {
				if tab.TestGroupName != j.Name || strings.HasPrefix(tab.BaseOptions, "include") {
					continue // a category's tabs are in the rendered file
				}
				repository := j.ExtraRefs[0].Org + "/" + j.ExtraRefs[0].Repo
				tab.CodeSearchUrlTemplate.Url = "https://github.com/" + repository + "/compare/<start-custom-0>...<end-custom-0>"
				tab.OpenBugTemplate.Url = "https://github.com/" + repository + "/issues/"
			}
		}
	}
}

func TestTestInfras_configurator_makes_of_annotations_what_generate_testgrid_says(t *testing.T) {
	compared := 0
	for name, c := range configurations(t) {
		if _, err := testgrid.Render(c); err != nil {
			continue // it has no bucket of Google's, or dashboards that TestGrid refuses
		}
		compared++
		t.Run(name, func(t *testing.T) {
			got, want := configured(t, c), expected(t, c)
			if err := tgconfig.Validate(got); err != nil {
				t.Errorf("TestGrid refuses it: %v", err)
			}
			compare := cmp.Options{
				protocmp.Transform(),
				protocmp.SortRepeated(func(a, b *configpb.TestGroup) bool { return a.Name < b.Name }),
				protocmp.SortRepeated(func(a, b *configpb.Dashboard) bool { return a.Name < b.Name }),
				protocmp.SortRepeated(func(a, b *configpb.DashboardTab) bool { return a.Name < b.Name }),
			}
			elsewhere := func(cfg *configpb.Configuration) *configpb.Configuration {
				part := proto.Clone(cfg).(*configpb.Configuration)
				part.Dashboards = slices.DeleteFunc(part.Dashboards, func(d *configpb.Dashboard) bool {
					return !slices.Contains(c.TestGrid.DeclaredElsewhere, d.Name)
				})
				return part
			}
			if c.TestGrid.Tabs == config.TabsFile && len(c.TestGrid.DeclaredElsewhere) > 0 {
				// There annotations make the tabs.
				if diff := cmp.Diff(elsewhere(want), elsewhere(got), compare, annotationsCannotSay); diff != "" {
					t.Errorf("(-generate testgrid +configurator)\n%s", diff)
				}
				for _, cfg := range []*configpb.Configuration{want, got} {
					cfg.Dashboards = slices.DeleteFunc(cfg.Dashboards, func(d *configpb.Dashboard) bool { return slices.Contains(c.TestGrid.DeclaredElsewhere, d.Name) })
				}
			}
			if c.TestGrid.Tabs == config.TabsAnnotations {
				compare = append(compare, annotationsCannotSay)
				linkPeriodics(t, c, want)
				if !strings.HasSuffix(c.TestGrid.BuildURL, "/view/gs") {
					// The configurator links to builds as Prow does, whatever
					// testgrid.buildURL says.
					compare = append(compare, protocmp.IgnoreFields(&configpb.DashboardTab{}, "open_test_template"))
				}
			}
			if diff := cmp.Diff(want, got, compare); diff != "" {
				t.Errorf("(-generate testgrid +configurator)\n%s", diff)
			}
		})
	}
	if compared < 4 {
		t.Errorf("only %d configurations were compared", compared)
	}
}
