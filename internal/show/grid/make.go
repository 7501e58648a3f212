package grid

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/GoogleCloudPlatform/testgrid/config"
	configpb "github.com/GoogleCloudPlatform/testgrid/pb/config"
	statepb "github.com/GoogleCloudPlatform/testgrid/pb/state"
	summarypb "github.com/GoogleCloudPlatform/testgrid/pb/summary"
	"github.com/GoogleCloudPlatform/testgrid/pkg/updater"
	"github.com/GoogleCloudPlatform/testgrid/util/gcs"
	"github.com/sirupsen/logrus"
	"google.golang.org/protobuf/proto"
)

// Limits of one update. TestGrid's own are far shorter, and what it does not
// come to it does in the next cycle; here there is only one.
const (
	groupTimeout = 2 * time.Hour
	buildTimeout = 10 * time.Minute
	concurrency  = 4
	maxCycles    = 100
)

// Where the state lies in memory.
const (
	statePrefix   = "gs://preview/"
	gridPrefix    = "grid"
	summaryPrefix = "summary"
)

// now is TestGrid's clock, which cannot be set.
func now() time.Time { return time.Now() }

// Options say how to make a preview.
type Options struct {
	// Source names what is read, for people.
	Source string
	// BuildURL returns where a build is found, given the prefix of its job's
	// builds and its id; "" for nowhere. Nil is what the tab's
	// open_test_template says.
	BuildURL func(prefix, build string) string
	// Shown returns a text with the objects in it as people know them. Nil
	// leaves TestGrid's names of them.
	Shown func(text string) string
	// Ahead reads builds ahead of the updater, several at a time.
	Ahead bool
	// Progress is told of each group before it is read. May be nil.
	Progress func(group string, i, of int)
}

// Make runs TestGrid's updater over the builds that client reads, for every
// test group of cfg, and then its summarizer. cfg must be valid.
func Make(ctx context.Context, client gcs.Client, cfg *configpb.Configuration, o Options) (*Preview, error) {
	var kept state
	configPath, err := gcs.NewPath(statePrefix + "config")
	if err != nil {
		return nil, err
	}
	if err := storeConfig(ctx, kept.client(), *configPath, cfg); err != nil {
		return nil, err
	}
	logrus.SetOutput(io.Discard) // the summarizer takes no logger of its own
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	grids := map[string]*inflated{}
	for i, group := range cfg.GetTestGroups() {
		if o.Progress != nil {
			o.Progress(group.GetName(), i+1, len(cfg.GetTestGroups()))
		}
		gridPath, err := updater.TestGroupPath(*configPath, gridPrefix, group.GetName())
		if err != nil {
			return nil, fmt.Errorf("test group %s: %w", group.GetName(), err)
		}
		reading, stop := context.WithCancel(ctx)
		defer stop()
		reader := client
		if o.Ahead {
			reader = Ahead(reading, client, buildsOf(ctx, client, group))
		}
		update := updater.GCS(reader, groupTimeout, buildTimeout, concurrency, true, updater.SortStarted)
		var unwritten error
		for more, cycle := true, 0; more; cycle++ {
			if cycle == maxCycles {
				return nil, fmt.Errorf("test group %s: TestGrid's updater has not come to the end in %d cycles", group.GetName(), maxCycles)
			}
			more, err = update(ctx, quiet, kept.client(), group, *gridPath)
			if err != nil && ctx.Err() == nil && strings.HasPrefix(err.Error(), "shrink grid: ") {
				unwritten = err // it has read all of it
				break
			}
			if err != nil {
				return nil, fmt.Errorf("test group %s: TestGrid's updater: %w", group.GetName(), err)
			}
		}
		stop()
		if grids[group.GetName()], err = inflate(ctx, kept.client(), *gridPath); err != nil {
			return nil, fmt.Errorf("test group %s: %w", group.GetName(), err)
		}
		grids[group.GetName()].unwritten = unwritten
	}
	if err := summarize(ctx, &kept, *configPath); err != nil {
		return nil, err
	}
	summaries, err := readSummaries(ctx, &kept)
	if err != nil {
		return nil, err
	}
	p := &Preview{Source: o.Source, Made: now().UTC().Truncate(time.Second)}
	for _, d := range cfg.GetDashboards() {
		dashboard := Dashboard{Name: d.GetName(), Tabs: []Tab{}}
		for _, t := range d.GetDashboardTab() {
			tab := newTab(d.GetName(), t, summaries[[2]string{d.GetName(), t.GetName()}])
			if group := config.FindTestGroup(t.GetTestGroupName(), cfg); group != nil {
				if err := tab.fill(group, grids[group.GetName()], t, &o); err != nil {
					return nil, fmt.Errorf("tab %s of dashboard %s: %w", t.GetName(), d.GetName(), err)
				}
			}
			dashboard.Tabs = append(dashboard.Tabs, tab)
		}
		p.Dashboards = append(p.Dashboards, dashboard)
	}
	return p, nil
}

// buildsOf lists the builds of a group in the order in which the updater reads
// them. What goes wrong, the updater will say.
func buildsOf(ctx context.Context, client gcs.Lister, group *configpb.TestGroup) []gcs.Build {
	var all []gcs.Build
	for _, prefix := range strings.Split(PrefixOf(group), ",") {
		p, err := gcs.NewPath("gs://" + strings.TrimSuffix(strings.TrimSpace(prefix), "/") + "/")
		if err != nil {
			continue
		}
		builds, err := gcs.ListBuilds(ctx, client, *p, nil)
		if err == nil {
			all = append(all, builds...)
		}
	}
	gcs.Sort(all)
	slices.Reverse(all)
	return all
}

// storeConfig puts cfg where the summarizer looks for it.
func storeConfig(ctx context.Context, client gcs.Client, path gcs.Path, cfg *configpb.Configuration) error {
	content, err := config.MarshalBytes(cfg)
	if err != nil {
		return fmt.Errorf("TestGrid would not take the configuration: %w", err)
	}
	if _, err := client.Upload(ctx, path, content, false, ""); err != nil {
		return fmt.Errorf("keeping the configuration: %w", err)
	}
	return nil
}

// inflated is a grid as the updater wrote it, decoded.
type inflated struct {
	columns []updater.InflatedColumn
	rows    []string
	bytes   int64
	// unwritten is why TestGrid's updater could not write the grid.
	unwritten error
}

func inflate(ctx context.Context, client gcs.Client, path gcs.Path) (*inflated, error) {
	stored, attrs, err := gcs.DownloadGrid(ctx, client, path)
	if err != nil {
		return nil, fmt.Errorf("reading the grid: %w", err)
	}
	g := &inflated{}
	if attrs != nil {
		g.bytes = attrs.Size
	}
	if stored == nil {
		stored = &statepb.Grid{}
	}
	// All columns, also those that say to have started in milliseconds.
	if g.columns, _, err = updater.InflateGrid(ctx, stored, time.Unix(-1<<62, 0), time.Unix(1<<62, 0)); err != nil {
		return nil, fmt.Errorf("decoding the grid: %w", err)
	}
	for _, row := range stored.GetRows() {
		g.rows = append(g.rows, row.GetName())
	}
	return g, nil
}

// readSummaries returns what the summarizer wrote, by dashboard and tab.
func readSummaries(ctx context.Context, s *state) (map[[2]string]*summarypb.DashboardTabSummary, error) {
	summaries := map[[2]string]*summarypb.DashboardTabSummary{}
	objects, err := s.store.List(ctx, summaryPrefix+"/", true)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		r, _, err := s.store.Open(ctx, o.Name)
		if err != nil {
			return nil, err
		}
		var content bytes.Buffer
		_, err = content.ReadFrom(r)
		r.Close()
		if err != nil {
			return nil, fmt.Errorf("reading the summary: %w", err)
		}
		var d summarypb.DashboardSummary
		if err := proto.Unmarshal(content.Bytes(), &d); err != nil {
			return nil, fmt.Errorf("decoding the summary: %w", err)
		}
		for _, t := range d.GetTabSummaries() {
			summaries[[2]string{t.GetDashboardName(), t.GetDashboardTabName()}] = t
		}
	}
	return summaries, nil
}

func newTab(dashboard string, t *configpb.DashboardTab, s *summarypb.DashboardTabSummary) Tab {
	tab := Tab{
		Dashboard: dashboard, Name: t.GetName(), Group: t.GetTestGroupName(), Description: t.GetDescription(),
		BaseOptions: t.GetBaseOptions(), Columns: []Column{}, Rows: []Row{},
		Status: s.GetOverallStatus().String(), Message: s.GetStatus(), Alert: s.GetAlert(), LatestGreen: s.GetLatestGreen(),
	}
	for _, f := range s.GetFailingTestSummaries() {
		tab.Alerts = append(tab.Alerts, Alert{
			Row: f.GetDisplayName(), Failures: int(f.GetFailCount()), Message: f.GetFailureMessage(),
			FailedFirst: f.GetFailBuildId(), FailedLast: f.GetLatestFailBuildId(), PassedLast: f.GetPassBuildId(),
		})
	}
	return tab
}

// fill adds the grid to a tab.
func (t *Tab) fill(group *configpb.TestGroup, g *inflated, tab *configpb.DashboardTab, o *Options) error {
	keep, err := rowFilter(tab.GetBaseOptions())
	if err != nil {
		return err
	}
	buildURL, shown := o.BuildURL, o.Shown
	if shown == nil {
		shown = func(text string) string { return text }
	}
	if buildURL == nil {
		buildURL = func(prefix, build string) string {
			return strings.NewReplacer("<gcs_prefix>", prefix, "<changelist>", build, "<test-id>", jobOf(prefix)+"/"+build).Replace(tab.GetOpenTestTemplate().GetUrl())
		}
	}
	t.Bytes = g.bytes
	if g.unwritten != nil {
		t.Unwritten = shown(g.unwritten.Error())
		t.Message, t.Alert = "", "" // that there is no grid
	}
	for _, h := range group.GetColumnHeader() {
		t.Headers = append(t.Headers, h.GetConfigurationValue()+h.GetProperty()+h.GetLabel())
	}
	for _, c := range g.columns {
		column := Column{Build: c.Column.GetBuild(), Headers: slices.Clone(c.Column.GetExtra())}
		column.Started = startOf(c.Column.GetStarted())
		if column.Build != "" {
			column.URL = buildURL(prefixOf(group, &c), column.Build)
		}
		t.Columns = append(t.Columns, column)
	}
	for _, name := range g.rows {
		if !keep(name) {
			continue
		}
		row := Row{Name: name, Cells: make([]Cell, len(g.columns))}
		for i := range g.columns {
			c := g.columns[i].Cells[name]
			row.Cells[i] = Cell{Result: Result(c.Result.String()), Icon: c.Icon, Message: shown(c.Message), Metrics: c.Metrics}
		}
		t.Rows = append(t.Rows, row)
	}
	return nil
}

// startOf is the start of a column, in milliseconds since 1970; zero when that is
// none. TestGrid puts a build that could not be read some hundredths of a
// millisecond after the one before it, or after 1970 when there is none; and a
// start that was written in milliseconds is after the year 9999.
func startOf(ms float64) time.Time {
	const year9999 = 253_402_300_799_999
	if ms < 1000 || ms > year9999 || ms != math.Trunc(ms) {
		return time.Time{}
	}
	return time.UnixMilli(int64(ms)).UTC()
}

// PrefixOf returns where a test group's builds lie: "bucket/folder", and
// several of them with commas between.
func PrefixOf(group *configpb.TestGroup) string {
	if p := group.GetResultSource().GetGcsConfig().GetGcsPrefix(); p != "" {
		return p
	}
	return group.GetGcsPrefix()
}

// prefixOf returns the prefix of a build's job. Where a group joins several,
// the cells' ids, "job/build", say which it is.
func prefixOf(group *configpb.TestGroup, c *updater.InflatedColumn) string {
	prefixes := strings.Split(PrefixOf(group), ",")
	for i := range prefixes {
		prefixes[i] = strings.TrimSuffix(strings.TrimSpace(prefixes[i]), "/")
	}
	if len(prefixes) > 1 {
		for _, cell := range c.Cells {
			job, _, _ := strings.Cut(cell.CellID, "/")
			if i := slices.IndexFunc(prefixes, func(p string) bool { return jobOf(p) == job }); i >= 0 {
				return prefixes[i]
			}
		}
	}
	return prefixes[0]
}

// rowFilter reads the options by which a tab shows only some rows of its group.
// TestGrid's summarizer heeds them when it computes the status, its pages when
// they show the grid.
func rowFilter(baseOptions string) (func(name string) bool, error) {
	values, err := url.ParseQuery(baseOptions)
	if err != nil {
		return nil, fmt.Errorf("base_options %q: %w", baseOptions, err)
	}
	compile := func(key string) (all []*regexp.Regexp, err error) {
		for _, v := range values[key] {
			re, err := regexp.Compile(v)
			if err != nil {
				return nil, fmt.Errorf("base_options %q: %s: %w", baseOptions, key, err)
			}
			all = append(all, re)
		}
		return all, nil
	}
	include, err1 := compile("include-filter-by-regex")
	exclude, err2 := compile("exclude-filter-by-regex")
	return func(name string) bool {
		return !slices.ContainsFunc(include, func(re *regexp.Regexp) bool { return !re.MatchString(name) }) &&
			!slices.ContainsFunc(exclude, func(re *regexp.Regexp) bool { return re.MatchString(name) })
	}, errors.Join(err1, err2)
}

// jobOf is the last element of a prefix, by which TestGrid names the rows
// Overall and Pod.
func jobOf(prefix string) string {
	prefix = strings.TrimSuffix(prefix, "/")
	return prefix[strings.LastIndex(prefix, "/")+1:]
}
