package testgrid

import (
	"bytes"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	configpb "github.com/GoogleCloudPlatform/testgrid/pb/config"
	yaml3 "gopkg.in/yaml.v3"
	"sigs.k8s.io/yaml"

	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/config"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// ConfigPath is where the rendered configuration lies in a repository.
const ConfigPath = "testgrid/dashboards.yaml"

// Names of configuration values that TestGrid's updater knows by itself.
const (
	contextValue = "Context"
	testValue    = "Tests name"
	jobValue     = "Job name"
)

// Configuration makes TestGrid's configuration of what the file declares:
//
//   - a test group per job, read from its folder in the bucket, with rows named
//     "category: case test";
//   - a tab per periodic job on the dashboard of periodics, so one per cell of the
//     matrix, and one per presubmit on that of presubmits;
//   - each category across all cells: a tab whose test group joins the jobs of
//     all cells (testgrid.categories: tabs), or a dashboard whose tabs are those
//     of the cells, narrowed to the category's rows (dashboards);
//   - one dashboard group around them.
//
// It has the tabs of Prow's jobs also where testgrid.tabs says that annotations
// make them, and the dashboards that are declared elsewhere, as far as such tabs
// are on them: this is what comes of the rendered file and the annotations
// together.
func Configuration(c *config.Config) (*configpb.Configuration, error) {
	return newBuilder(c).build(true)
}

// Render writes the configuration as the file that 'generate testgrid' makes:
// always the same bytes for the same file. It is validated. Where annotations
// make the tabs of Prow's jobs, it has their test groups, for which there are
// no annotations, and their dashboards without them. It never has dashboards
// that are declared elsewhere.
func Render(c *config.Config) ([]byte, error) {
	whole, err := Configuration(c)
	if err != nil {
		return nil, err
	}
	if err := ValidateConfig(whole); err != nil {
		return nil, fmt.Errorf("%s makes a configuration that TestGrid would refuse: %w", c.Path(), err)
	}
	b := newBuilder(c)
	cfg, err := b.build(c.TestGrid.Tabs != config.TabsAnnotations)
	if err != nil {
		return nil, err
	}
	cfg.Dashboards = slices.DeleteFunc(cfg.Dashboards, func(d *configpb.Dashboard) bool { return b.elsewhere(d.Name) })
	return marshal(cfg, c.Path())
}

func marshal(cfg *configpb.Configuration, source string) ([]byte, error) {
	data, err := yaml.Marshal(cfg)
	if err != nil {
		return nil, fmt.Errorf("writing TestGrid's configuration: %w", err)
	}
	var doc yaml3.Node
	if err := yaml3.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("writing TestGrid's configuration: %w", err)
	}
	nameFirst(&doc)
	var out bytes.Buffer
	fmt.Fprintf(&out, "# Generated from %s by 'op-readiness generate testgrid'. DO NOT EDIT.\n", path.Base(strings.ReplaceAll(source, `\`, "/")))
	enc := yaml3.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(&doc); err != nil {
		return nil, fmt.Errorf("writing TestGrid's configuration: %w", err)
	}
	return out.Bytes(), nil
}

// nameFirst moves the names of things before what is said of them.
func nameFirst(n *yaml3.Node) {
	for _, child := range n.Content {
		nameFirst(child)
	}
	if n.Kind != yaml3.MappingNode {
		return
	}
	for i := 2; i < len(n.Content); i += 2 {
		if n.Content[i].Value == "name" {
			key, value := n.Content[i], n.Content[i+1]
			n.Content = append([]*yaml3.Node{key, value}, slices.Delete(n.Content, i, i+2)...)
			return
		}
	}
}

type builder struct {
	*config.Config
	jobs       []config.Job
	cfg        *configpb.Configuration
	dashboards map[string]*configpb.Dashboard
}

func newBuilder(c *config.Config) *builder {
	return &builder{Config: c, cfg: &configpb.Configuration{}, dashboards: map[string]*configpb.Dashboard{}}
}

func (b *builder) build(prowTabs bool) (*configpb.Configuration, error) {
	if !strings.HasPrefix(b.Results.Bucket, "gs://") {
		return nil, fmt.Errorf("%s: results.bucket is %q, and TestGrid reads Google Cloud Storage only: set it to gs://NAME", b.Path(), b.Results.Bucket)
	}
	for _, j := range b.Jobs() {
		// A presubmit's variants for branches publish under one name.
		again := len(b.jobs) > 0 && b.jobs[len(b.jobs)-1].Name == j.Name
		if j.Published && !again {
			b.jobs = append(b.jobs, j)
		}
	}
	if len(b.jobs) == 0 {
		return nil, fmt.Errorf("%s: no job publishes results, so there is nothing to show: see prow and github.publish", b.Path())
	}
	for _, j := range b.jobs {
		b.cfg.TestGroups = append(b.cfg.TestGroups, b.group(j))
		for i, name := range j.Settings.Dashboards {
			tab := b.jobTab(j)
			if i > 0 {
				tab.AlertOptions.AlertMailToAddresses = "" // one mail is enough
			}
			d := b.dashboard(name)
			if prowTabs || !j.InProw {
				d.DashboardTab = append(d.DashboardTab, tab)
			}
		}
	}
	for _, category := range b.Categories() {
		b.category(category)
	}
	group := &configpb.DashboardGroup{Name: b.DashboardGroup()}
	for _, d := range b.cfg.Dashboards {
		if !b.elsewhere(d.Name) {
			group.DashboardNames = append(group.DashboardNames, d.Name)
		}
	}
	if len(group.DashboardNames) > 0 {
		b.cfg.DashboardGroups = []*configpb.DashboardGroup{group}
	}
	return b.cfg, nil
}

func (b *builder) elsewhere(dashboard string) bool {
	return slices.Contains(b.TestGrid.DeclaredElsewhere, dashboard)
}

// dashboard is the one of that name.
func (b *builder) dashboard(name string) *configpb.Dashboard {
	d, ok := b.dashboards[name]
	if !ok {
		d = &configpb.Dashboard{Name: name}
		b.dashboards[name] = d
		b.cfg.Dashboards = append(b.cfg.Dashboards, d)
	}
	return d
}

// group is the test group of a job.
func (b *builder) group(j config.Job) *configpb.TestGroup {
	g := &configpb.TestGroup{
		Name:             j.Name,
		GcsPrefix:        b.GCSPrefix(j),
		DaysOfResults:    int32(b.TestGrid.DaysOfResults),
		NumColumnsRecent: int32(b.RecentRuns(j)),
		// Only Prow writes what is analysed.
		DisableProwjobAnalysis: !j.InProw || j.InGitHub && b.GitHub.Publish != nil,
		// Deprecated, and still what the updater alerts by, and what
		// kubernetes/test-infra's tests want.
		NumFailuresToAlert:      int32(b.TestGrid.FailuresToAlert), //nolint:staticcheck // as above
		NumPassesToDisableAlert: int32(b.TestGrid.PassesToEndAlert),
		IsExternal:              true,
		UseKubernetesClient:     true, //nolint:staticcheck // as above
	}
	if j.Kind == config.Postsubmit {
		g.ColumnHeader = headers(config.BaseColumnHeaders()[:1])
		return g
	}
	keys := append(config.BaseColumnHeaders(), b.TestGrid.ColumnHeaders...)
	if !slices.Contains(keys, verdictHeader) {
		keys = append(keys, verdictHeader)
	}
	g.ColumnHeader = headers(keys)
	g.TestNameConfig = rowNames("%s: %s", contextValue, testValue)
	return g
}

// verdictHeader is above every grid of readiness: beside the verdict's word, it
// says what was declared away, and that it is not over this program's standard.
const verdictHeader = "verdict"

func headers(keys []string) []*configpb.TestGroup_ColumnHeader {
	var all []*configpb.TestGroup_ColumnHeader
	for _, key := range keys {
		all = append(all, &configpb.TestGroup_ColumnHeader{ConfigurationValue: key})
	}
	return all
}

func rowNames(format string, values ...string) *configpb.TestNameConfig {
	c := &configpb.TestNameConfig{NameFormat: format}
	for _, v := range values {
		c.NameElements = append(c.NameElements, &configpb.TestNameConfig_NameElement{TargetConfig: v})
	}
	return c
}

// jobTab is the tab of a job's own test group.
func (b *builder) jobTab(j config.Job) *configpb.DashboardTab {
	tab := b.tab(j.Tab, j.Name, j.Description)
	tab.NumColumnsRecent = int32(b.RecentRuns(j))
	tab.OpenTestTemplate = &configpb.LinkTemplate{Url: b.TestGrid.BuildURL + "/<gcs_prefix>/<changelist>"}
	tab.ResultsUrlTemplate = &configpb.LinkTemplate{Url: b.TestGrid.HistoryURL + "/<gcs_prefix>"}
	tab.ResultsText = "See all builds of this job"
	tab.AlertOptions.AlertMailToAddresses = strings.Join(j.Settings.AlertEmails, ",")
	if j.Kind == config.Periodic {
		tab.AlertOptions.AlertStaleResultsHours = int32(b.StaleHours(j))
	}
	return tab
}

// tab is what all tabs have.
func (b *builder) tab(name, group, description string) *configpb.DashboardTab {
	bug := b.TestGrid.Bug
	if bug.URL == "" {
		bug.URL = "https://github.com/" + b.Repository + "/issues/new"
	}
	return &configpb.DashboardTab{
		Name:          name,
		TestGroupName: group,
		Description:   description,
		FileBugTemplate: &configpb.LinkTemplate{
			Url:     bug.URL,
			Options: []*configpb.LinkOptionsTemplate{{Key: "title", Value: bug.Title}, {Key: "body", Value: bug.Body}},
		},
		OpenBugTemplate:       &configpb.LinkTemplate{Url: "https://github.com/" + b.Repository + "/issues/"},
		CodeSearchUrlTemplate: &configpb.LinkTemplate{Url: "https://github.com/" + b.Repository + "/compare/<start-custom-0>...<end-custom-0>"},
		AlertOptions: &configpb.DashboardTabAlertOptions{
			NumFailuresToAlert:      int32(b.TestGrid.FailuresToAlert),
			NumPassesToDisableAlert: int32(b.TestGrid.PassesToEndAlert),
		},
	}
}

// category shows one category across the cells. Beside real cells, simulated
// ones do not count: they say nothing of Windows.
func (b *builder) category(category specs.Category) {
	var cells, simulated []config.Job
	for _, j := range b.jobs {
		switch {
		case j.Kind != config.Periodic:
		case j.Cell.Provider == config.ProviderKwok:
			simulated = append(simulated, j)
		default:
			cells = append(cells, j)
		}
	}
	if len(cells) == 0 {
		cells = simulated
	}
	if len(cells) == 0 {
		return
	}
	filter := categoryFilter(category)
	switch b.CategoryView() {
	case config.CategoriesTabs:
		b.categoryTab(category, cells, filter)
	case config.CategoriesDashboards:
		d := b.dashboard(b.CategoryDashboard(category))
		for _, j := range cells {
			tab := b.jobTab(j)
			tab.Description = fmt.Sprintf("%s of: %s", category, j.Description)
			tab.BaseOptions = filter
			tab.AlertOptions.AlertMailToAddresses = "" // the cell's own tab mails
			d.DashboardTab = append(d.DashboardTab, tab)
		}
	}
}

// categoryFilter keeps the rows of a category. TestGrid's summarizer applies it
// before it decides the tab's status, and its page when it opens the tab.
func categoryFilter(category specs.Category) string {
	return "include-filter-by-regex=" + url.PathEscape("^"+config.Slug(category)+":")
}

// categoryTab is one tab over all cells. A tab shows one test group, so there
// is one that joins the folders of all their jobs, which TestGrid's updater
// takes as a comma list: each build is a column, each test of each cell a row.
// Each category has a group of its own, for kubernetes/test-infra wants no
// group twice on a dashboard.
func (b *builder) categoryTab(category specs.Category, cells []config.Job, filter string) {
	d := b.dashboard(b.CategoryDashboard(category))
	g := b.group(cells[0])
	g.Name = b.CategoryGroup(category)
	if len(cells) == 1 {
		tab := b.jobTab(cells[0])
		tab.Name, tab.TestGroupName = string(category), g.Name
		tab.Description, tab.BaseOptions = fmt.Sprintf("%s of: %s", category, cells[0].Description), filter
		tab.AlertOptions.AlertMailToAddresses = ""
		b.cfg.TestGroups = append(b.cfg.TestGroups, g)
		d.DashboardTab = append(d.DashboardTab, tab)
		return
	}
	// Builds of all cells share the columns, so a cell has a result in few of
	// the recent ones.
	g.NumColumnsRecent *= int32(len(cells))
	g.DisableProwjobAnalysis = true
	// Case and test before the job, so that the cells' rows of a test are
	// neighbours.
	g.TestNameConfig = rowNames("%s: %s (%s)", contextValue, testValue, jobValue)
	var prefixes []string
	stale := 0
	for _, j := range cells {
		prefixes = append(prefixes, b.GCSPrefix(j))
		stale = max(stale, b.StaleHours(j))
	}
	g.GcsPrefix = strings.Join(prefixes, ",")
	b.cfg.TestGroups = append(b.cfg.TestGroups, g)

	tab := b.tab(string(category), g.Name, fmt.Sprintf("%s on %d cells of the matrix. A build that is published long after it started can be missing here, never on its cell's own tab", category, len(cells)))
	tab.BaseOptions = filter
	tab.NumColumnsRecent = g.NumColumnsRecent
	// Where a group joins jobs, the id of a cell's run is "JOB/BUILD".
	tab.OpenTestTemplate = &configpb.LinkTemplate{Url: b.TestGrid.BuildURL + "/" + path.Dir(prefixes[0]) + "/<test-id>"}
	tab.ResultsUrlTemplate = &configpb.LinkTemplate{Url: b.TestGrid.HistoryURL + "/" + path.Dir(prefixes[0])}
	tab.ResultsText = "See the builds of all jobs"
	tab.AlertOptions.AlertStaleResultsHours = int32(stale)
	d.DashboardTab = append(d.DashboardTab, tab)
}
