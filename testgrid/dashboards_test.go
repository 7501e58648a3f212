package testgrid_test

import (
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/test/golden"

	"cloud.google.com/go/storage"
	tgconfig "github.com/GoogleCloudPlatform/testgrid/config"
	"github.com/GoogleCloudPlatform/testgrid/config/yamlcfg"
	configpb "github.com/GoogleCloudPlatform/testgrid/pb/config"
	"github.com/GoogleCloudPlatform/testgrid/pkg/updater"
	"github.com/GoogleCloudPlatform/testgrid/util/gcs"
	"github.com/fsouza/fake-gcs-server/fakestorage"
	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	"google.golang.org/api/option"
	"google.golang.org/protobuf/proto"

	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/config"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/grid"
	"github.com/windows-op-readiness/windows-op-readiness/testgrid"
)

// matrix has two cells and two categories.
const matrix = `repository: example/cni
matrix:
  kubernetes: ["1.36"]
  windows: ["2022", "2025"]
run: {categories: [Core.Network, Core.Storage]}
results: {bucket: gs://example-readiness, pathPrefix: windows}
testgrid: {alertEmails: [windows@example.com], columnHeaders: [verdict]}
`

const prowMatrix = `repository: example/cni
matrix:
  kubernetes: [master]
  windows: ["2022"]
  provider: [capz]
  include:
    - {provider: kwok, kubernetes: v1.36.3}
run: {categories: [Core.Network]}
results: {bucket: gs://kubernetes-ci-logs, pathStrategy: legacy, defaultOrg: kubernetes, defaultRepo: kubernetes}
prow:
  profile: capz
  image: kubekins
  presubmits: {dashboards: [sig-windows-presubmit]}
  postsubmit: {args: [image]}
  overrides:
    - when: {branches: [release-1.2]}
      timeout: 3h
testgrid:
  group: sig-windows-op-readiness
  tabs: annotations
  declaredElsewhere: [sig-windows-presubmit]
  buildURL: https://prow.k8s.io/view/gs
  historyURL: https://prow.k8s.io/job-history/gs
`

func load(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := config.Parse("op-readiness.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// defaults are those of testgrid.k8s.io, as far as they could change a tab.
const defaults = `
default_test_group: {days_of_results: 15, tests_name_policy: 2, num_columns_recent: 10, alert_stale_results_hours: 0, num_failures_to_alert: 3, num_passes_to_disable_alert: 1, column_header: [{configuration_value: Commit}]}
default_dashboard_tab:
  open_test_template: {url: https://prow.k8s.io/view/gs/<gcs_prefix>/<changelist>}
  file_bug_template: {url: https://github.com/kubernetes/kubernetes/issues/new, options: [{key: title, value: "E2E: <test-name>"}]}
  results_text: See these results on Prow
  num_columns_recent: 10
  code_search_url_template: {url: https://github.com/kubernetes/kubernetes/compare/<start-custom-0>...<end-custom-0>}
`

// read is the rendered file as TestGrid's own reader has it.
func read(t *testing.T, data []byte) *configpb.Configuration {
	t.Helper()
	def, err := yamlcfg.LoadDefaults([]byte(defaults))
	if err != nil {
		t.Fatal(err)
	}
	cfg := &configpb.Configuration{}
	if err := yamlcfg.Update(cfg, data, &def, true); err != nil {
		t.Fatalf("TestGrid cannot read it: %v", err)
	}
	return cfg
}

func TestRender(t *testing.T) {
	for name, text := range map[string]string{
		"tabs":        matrix,
		"one_cell":    strings.Replace(matrix, `, "2025"`, "", 1),
		"dashboards":  strings.Replace(matrix, "testgrid: {", "testgrid: {categories: dashboards, ", 1),
		"annotations": prowMatrix,
		"file":        strings.NewReplacer("tabs: annotations", "tabs: file", "  declaredElsewhere: [sig-windows-presubmit]\n", "", "{dashboards: [sig-windows-presubmit]}", "{}").Replace(prowMatrix),
	} {
		t.Run(name, func(t *testing.T) {
			c := load(t, text)
			data, err := testgrid.Render(c)
			if err != nil {
				t.Fatal(err)
			}
			again, err := testgrid.Render(load(t, text))
			if err != nil || string(again) != string(data) {
				t.Errorf("rendered again, it is another (%v)", err)
			}
			golden.Equal(t, "TestRender_"+name+".golden", string(data))
			cfg := read(t, data)
			if name != "annotations" {
				if err := tgconfig.Validate(cfg); err != nil {
					t.Errorf("TestGrid refuses it: %v", err)
				}
				if err := testgrid.ValidateConfig(cfg); err != nil {
					t.Errorf("test-infra, or the newest TestGrid, refuses it: %v", err)
				}
			}
			for _, g := range cfg.TestGroups {
				if g.ColumnHeader[0].ConfigurationValue != "Commit" {
					t.Errorf("group %s: the first header is %v, and alerts use it as the commit", g.Name, g.ColumnHeader[0])
				}
			}
		})
	}
}

func TestRender_with_annotations_leaves_Prows_tabs_to_them(t *testing.T) {
	c := load(t, prowMatrix)
	data, err := testgrid.Render(c)
	if err != nil {
		t.Fatal(err)
	}
	cfg := read(t, data)
	groups := map[string]bool{}
	for _, g := range cfg.TestGroups {
		groups[g.Name] = true
	}
	for _, j := range c.Jobs() {
		if !groups[j.Name] {
			t.Errorf("no test group of %s: annotations would make one without names of rows and headers", j.Name)
		}
	}
	for _, d := range cfg.Dashboards {
		if d.Name == "sig-windows-presubmit" {
			t.Errorf("%s is declared elsewhere, and twice would be an error", d.Name)
		}
		for _, tab := range d.DashboardTab {
			if tab.BaseOptions == "" {
				t.Errorf("dashboard %s has the tab %s, which annotations make, too", d.Name, tab.Name)
			}
		}
	}
}

func TestRender_refuses_a_bucket_that_TestGrid_cannot_read(t *testing.T) {
	_, err := testgrid.Render(load(t, strings.Replace(matrix, "gs://example-readiness", "s3://example-readiness", 1)))
	if err == nil || !strings.Contains(err.Error(), "gs://NAME") {
		t.Errorf("got %v", err)
	}
}

func TestRender_refuses_when_nothing_is_published(t *testing.T) {
	_, err := testgrid.Render(load(t, matrix+"github: {kubeconfigSecret: \"K_{cell}\", scheduled: {}}\n"))
	if err == nil || !strings.Contains(err.Error(), "github.publish") {
		t.Errorf("got %v", err)
	}
}

// put adds a finished build of a job, with one JUnit file a category: results
// say by category whether its one test passed.
func put(store *grid.Memory, c *config.Config, j config.Job, started time.Time, results map[string]bool) {
	dir := path.Join(c.Results.PathPrefix, j.Folder, fmt.Sprint(started.UnixMilli()*1e6))
	file := func(name, text string) {
		store.Put(grid.Object{Name: dir + "/" + name, Updated: started}, []byte(text))
	}
	passed := true
	for category, ok := range results {
		failure := ""
		if !ok {
			passed, failure = false, "<failure>no answer</failure>"
		}
		file("artifacts/1/junit_"+category+"_01.xml", fmt.Sprintf(`<testsuites><testsuite><testcase name="%s-a [sig-x] works" time="1">%s</testcase></testsuite></testsuites>`, category, failure))
	}
	file("started.json", fmt.Sprintf(`{"timestamp": %d}`, started.Unix()))
	file("finished.json", fmt.Sprintf(`{"timestamp": %d, "passed": %t, "result": "X", "metadata": {"Commit": "c%d", "kubernetes-version": "v1.36.3", "windows-version": "10.0.20348", "verdict": "ready"}}`, started.Unix()+60, passed, started.Unix()))
}

// TestConfiguration_shows_categories_across_cells holds both ways of showing a
// category against TestGrid's own updater and summarizer: one cell's network
// fails, the other's does not, and storage nowhere.
func TestConfiguration_shows_categories_across_cells(t *testing.T) {
	for _, view := range []string{"tabs", "dashboards"} {
		t.Run(view, func(t *testing.T) {
			c := load(t, strings.Replace(matrix, "testgrid: {", "testgrid: {categories: "+view+", ", 1))
			cfg, err := testgrid.Configuration(c)
			if err != nil {
				t.Fatal(err)
			}
			store := &grid.Memory{}
			jobs := c.Jobs()
			for i := range 3 {
				at := time.Now().Add(-time.Duration(10+5*i) * time.Hour)
				put(store, c, jobs[0], at, map[string]bool{"core-network": true, "core-storage": true})
				put(store, c, jobs[1], at.Add(time.Minute), map[string]bool{"core-network": false, "core-storage": true})
			}
			preview, err := grid.Make(t.Context(), grid.ClientOf(store), cfg, grid.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, tab := range preview.Tabs() {
				got[tab.Dashboard+" "+tab.Name] = tab.Status
			}
			want := map[string]string{
				"windows-op-readiness-periodics 1.36-ltsc2022": "PASS",
				"windows-op-readiness-periodics 1.36-ltsc2025": "FAIL",
			}
			if view == "tabs" {
				want["windows-op-readiness-categories Core.Network"] = "FAIL"
				want["windows-op-readiness-categories Core.Storage"] = "PASS"
			} else {
				want["windows-op-readiness-core-network 1.36-ltsc2022"] = "PASS"
				want["windows-op-readiness-core-network 1.36-ltsc2025"] = "FAIL"
				want["windows-op-readiness-core-storage 1.36-ltsc2022"] = "PASS"
				want["windows-op-readiness-core-storage 1.36-ltsc2025"] = "PASS"
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("status of tabs, -want +got:\n%s", diff)
			}
			for _, tab := range preview.Tabs() {
				if tab.BaseOptions == "" {
					continue
				}
				only := regexp.MustCompile(`^core-network: core-network-a |^core-storage: core-storage-a `)
				for _, row := range tab.Rows {
					if !only.MatchString(row.Name) {
						t.Errorf("tab %s has the row %q of something else", tab.Name, row.Name)
					}
				}
				if tab.Name == "Core.Network" {
					var names []string
					for _, row := range tab.Rows {
						names = append(names, row.Name)
					}
					want := []string{
						"core-network: core-network-a [sig-x] works (ci-windows-op-readiness-1-36-ltsc2022)",
						"core-network: core-network-a [sig-x] works (ci-windows-op-readiness-1-36-ltsc2025)",
					}
					if diff := cmp.Diff(want, names); diff != "" {
						t.Errorf("rows, -want +got:\n%s", diff)
					}
					if len(tab.Columns) != 6 {
						t.Errorf("%d columns, want one a build of each cell", len(tab.Columns))
					}
				}
			}
		})
	}
}

// Alerts of one cell come from its own tab, and once.
func TestConfiguration_mails_once(t *testing.T) {
	cfg, err := testgrid.Configuration(load(t, matrix))
	if err != nil {
		t.Fatal(err)
	}
	mails := map[string]int{}
	for _, d := range cfg.Dashboards {
		for _, tab := range d.DashboardTab {
			if tab.AlertOptions.AlertMailToAddresses != "" {
				mails[tab.TestGroupName]++
			}
		}
	}
	want := map[string]int{"ci-windows-op-readiness-1-36-ltsc2022": 1, "ci-windows-op-readiness-1-36-ltsc2025": 1}
	if diff := cmp.Diff(want, mails); diff != "" {
		t.Error(diff)
	}
}

func TestValidateConfig_refuses(t *testing.T) {
	good := func(t *testing.T) *configpb.Configuration {
		cfg, err := testgrid.Configuration(load(t, matrix))
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	if err := testgrid.ValidateConfig(good(t)); err != nil {
		t.Fatalf("the good one: %v", err)
	}
	for name, tt := range map[string]struct {
		spoil func(*configpb.Configuration)
		want  []string
	}{
		"two groups of one normalised name": {
			func(c *configpb.Configuration) {
				twin := proto.Clone(c.TestGroups[0]).(*configpb.TestGroup)
				twin.Name = "CI windows_op_readiness 1.36 ltsc2022"
				c.TestGroups = append(c.TestGroups, twin)
			},
			[]string{`"ci-windows-op-readiness-1-36-ltsc2022" and "CI windows_op_readiness 1.36 ltsc2022" are one`, "rename"},
		},
		"a name that only the newest TestGrid refuses": {
			func(c *configpb.Configuration) { c.Dashboards[0].DashboardTab[0].Name = "a: b" },
			[]string{`tab of dashboard windows-op-readiness-periodics "a: b" has a character`},
		},
		"a tab called Summary": {
			func(c *configpb.Configuration) { c.Dashboards[0].DashboardTab[0].Name = "Summary" },
			[]string{"Summary"},
		},
		"a dashboard without its group's prefix": {
			func(c *configpb.Configuration) { c.DashboardGroups[0].Name = "sig-windows" },
			[]string{"must begin with the group's"},
		},
		"a dashboard outside its group": {
			func(c *configpb.Configuration) {
				g := c.DashboardGroups[0]
				g.DashboardNames = slices.Delete(g.DashboardNames, 0, 1)
			},
			[]string{`"windows-op-readiness-periodics" is not in group`},
		},
		"a group twice on a dashboard": {
			func(c *configpb.Configuration) {
				d := c.Dashboards[0]
				twin := proto.Clone(d.DashboardTab[0]).(*configpb.DashboardTab)
				twin.Name = "again"
				d.DashboardTab = append(d.DashboardTab, twin)
			},
			[]string{"in the tabs \"1.36-ltsc2022\" and \"again\""},
		},
		"Prow's bucket under another name": {
			func(c *configpb.Configuration) { c.TestGroups[0].GcsPrefix = "kubernetes-ci-logs/logs/other" },
			[]string{"end in the group's name"},
		},
		"several at once": {
			func(c *configpb.Configuration) {
				c.TestGroups[0].DaysOfResults = 0
				c.Dashboards[1].Name = "bugs"
			},
			[]string{"days_of_results should be positive", "begins with bugs"},
		},
		"nothing": {func(c *configpb.Configuration) { proto.Reset(c) }, []string{"TestGroups"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := good(t)
			tt.spoil(cfg)
			err := testgrid.ValidateConfig(cfg)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in:\n%v", want, err)
				}
			}
		})
	}
}

// TestConfiguration_joined_groups_miss_builds_that_come_late pins the price of
// joining cells in one group, which docs/testgrid.md names: the updater asks
// for builds above the newest that it has seen in any of the folders.
func TestConfiguration_joined_groups_miss_builds_that_come_late(t *testing.T) {
	c := load(t, matrix)
	cfg, err := testgrid.Configuration(c)
	if err != nil {
		t.Fatal(err)
	}
	jobs := c.Jobs()
	p := emulator(t, nil)
	publishBuild := func(j config.Job, started time.Time) {
		store := &grid.Memory{}
		put(store, c, j, started, map[string]bool{"core-network": true})
		objects, err := store.List(t.Context(), "", true)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			r, _, err := store.Open(t.Context(), o.Name)
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			p.server.CreateObject(fakestorage.Object{ObjectAttrs: fakestorage.ObjectAttrs{BucketName: bucketName, Name: o.Name}, Content: data})
		}
	}
	raw, err := storage.NewClient(t.Context(), option.WithEndpoint(p.endpoint+"/storage/v1/"), option.WithoutAuthentication(), storage.WithJSONReads())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	client := gcs.NewClient(raw)
	log := logrus.New()
	log.SetOutput(io.Discard)
	columns := func(group *configpb.TestGroup) int {
		group = proto.Clone(group).(*configpb.TestGroup)
		group.GcsPrefix = strings.ReplaceAll(group.GcsPrefix, c.Bucket(), bucketName)
		path, err := gcs.NewPath("gs://" + bucketName + "/grid/" + group.Name)
		if err != nil {
			t.Fatal(err)
		}
		read := updater.GCS(client, time.Minute, time.Minute, 4, true, updater.SortStarted)
		if _, err := read(t.Context(), log, client, group, *path); err != nil {
			t.Fatalf("TestGrid's updater: %v", err)
		}
		state, _, err := gcs.DownloadGrid(t.Context(), client, *path)
		if err != nil {
			t.Fatal(err)
		}
		return len(state.Columns)
	}
	own := tgconfig.FindTestGroup(jobs[1].Name, cfg)
	joined := tgconfig.FindTestGroup(c.CategoryGroup("Core.Network"), cfg)

	day := time.Now().Add(-24 * time.Hour)
	publishBuild(jobs[1], day.Add(-24*time.Hour))
	publishBuild(jobs[0], day)
	if got := columns(joined); got != 2 {
		t.Fatalf("the joined group has %d columns, want 2", got)
	}
	if got := columns(own); got != 1 {
		t.Fatalf("the cell's group has %d columns, want 1", got)
	}
	publishBuild(jobs[1], day.Add(-time.Minute)) // started first, published last
	if got := columns(own); got != 2 {
		t.Errorf("the cell's group has %d columns, want 2", got)
	}
	if got := columns(joined); got != 2 {
		t.Errorf("the joined group has %d columns: it does not miss late builds any more, so docs/testgrid.md can say so", got)
	}
	publishBuild(jobs[1], day.Add(time.Minute)) // started last, published last
	if got := columns(joined); got != 3 {
		t.Errorf("the joined group has %d columns, want 3", got)
	}
}
