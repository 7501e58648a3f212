package config

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Profiles of Prow jobs.
const (
	// ProfilePlain tests a cluster whose kubeconfig is in a Secret.
	ProfilePlain = "plain"
	// ProfileCAPZ follows the conventions of sig-windows in kubernetes/test-infra.
	ProfileCAPZ = "capz"
)

// Who declares the tabs of Prow jobs (testgrid.tabs).
const (
	TabsFile        = "file"
	TabsAnnotations = "annotations"
)

// How TestGrid shows a category across all cells (testgrid.categories).
const (
	CategoriesTabs       = "tabs"
	CategoriesDashboards = "dashboards"
	CategoriesNone       = "none"
)

// Config is a file that was read and found to be right, with all defaults.
type Config struct {
	File
	path string
	line func(field string) int
}

// Path is the file's, as it was given to Load or Parse.
func (c *Config) Path() string { return c.path }

// Problem is something that is wrong with a field, for what only a later step
// can see; the message ends with the fix.
func (c *Config) Problem(field, format string, args ...any) Problem {
	return Problem{File: c.path, Line: c.line(field), Field: field, Message: fmt.Sprintf(format, args...)}
}

// Org and Repo are the halves of the repository's name.
func (c *Config) Org() string { org, _, _ := strings.Cut(c.Repository, "/"); return org }

// Repo is the repository's name within its organisation.
func (c *Config) Repo() string { _, repo, _ := strings.Cut(c.Repository, "/"); return repo }

// Bucket is the bucket's name without its scheme, "" if the file names none.
func (c *Config) Bucket() string {
	_, name, _ := strings.Cut(c.Results.Bucket, "://")
	return name
}

// GCSPrefix is where TestGrid finds the builds of a job: bucket and folder,
// without gs://.
func (c *Config) GCSPrefix(j Job) string {
	return path.Join(c.Bucket(), c.Results.PathPrefix, j.Folder)
}

// testInfraBuckets belong to kubernetes/test-infra's Prow. Its policy wants the
// prefix of a test group there to end in the group's name, so no group can join
// several jobs.
var testInfraBuckets = []string{"kubernetes-ci-logs", "kubernetes-jenkins"}

// CategoryView is how TestGrid shows categories: one of the constants.
func (c *Config) CategoryView() string {
	switch {
	case c.TestGrid.Categories != "":
		return c.TestGrid.Categories
	case slices.Contains(testInfraBuckets, c.Bucket()):
		return CategoriesDashboards
	}
	return CategoriesTabs
}

// DashboardGroup is the name of the dashboard group.
func (c *Config) DashboardGroup() string {
	if c.TestGrid.Group != "" {
		return c.TestGrid.Group
	}
	return c.Name
}

// PeriodicsDashboard is the dashboard with one tab per cell.
func (c *Config) PeriodicsDashboard() string {
	return c.dashboard(c.TestGrid.Dashboards.Periodics, "-periodics")
}

// PresubmitsDashboard is the dashboard with the tabs of presubmits.
func (c *Config) PresubmitsDashboard() string {
	return c.dashboard(c.TestGrid.Dashboards.Presubmits, "-presubmits")
}

// CategoryDashboard is the dashboard where a category is shown across all
// cells; "" where none is.
func (c *Config) CategoryDashboard(category specs.Category) string {
	switch c.CategoryView() {
	case CategoriesTabs:
		return c.dashboard(c.TestGrid.Dashboards.Categories, "-categories")
	case CategoriesDashboards:
		return c.dashboard(c.TestGrid.Dashboards.Categories, "") + "-" + Slug(category)
	}
	return ""
}

func (c *Config) dashboard(name, suffix string) string {
	if name != "" {
		return name
	}
	return c.DashboardGroup() + suffix
}

// ownDashboards are those that the file declares, whether or not anything is
// on them.
func (c *Config) ownDashboards() []string {
	names := []string{c.PeriodicsDashboard(), c.PresubmitsDashboard()}
	for _, category := range c.Categories() {
		if d := c.CategoryDashboard(category); d != "" && !slices.Contains(names, d) {
			names = append(names, d)
		}
	}
	return names
}

// GitHubSettingsFor are the settings of a cell's jobs in GitHub Actions, with
// defaults, and with the cell in the Secret's name: capitals and underscores,
// as GitHub wants it.
func (c *Config) GitHubSettingsFor(cell Cell) GitHubSettings {
	s := GitHubSettings{RunsOn: Values{"ubuntu-latest"}, KubeconfigSecret: "KUBECONFIG"}
	settings := []GitHubSettings{c.GitHub.GitHubSettings}
	for _, o := range c.GitHub.Overrides {
		if o.When.Matches(cell) {
			settings = append(settings, o.GitHubSettings)
		}
	}
	for _, over := range settings {
		if len(over.RunsOn) > 0 {
			s.RunsOn = over.RunsOn
		}
		if over.KubeconfigSecret != "" {
			s.KubeconfigSecret = over.KubeconfigSecret
		}
	}
	s.KubeconfigSecret = strings.ToUpper(strings.ReplaceAll(cell.Expand(s.KubeconfigSecret), "-", "_"))
	return s
}

// CommentID tells the comment of these workflows from others on a pull request.
func (c *Config) CommentID() string {
	if c.GitHub != nil && c.GitHub.Comment.ID != "" {
		return c.GitHub.Comment.ID
	}
	return c.Name
}

// PullRequestCells are the cells that GitHub Actions test for a pull request.
func (c *Config) PullRequestCells() []Cell {
	if c.GitHub == nil || c.GitHub.PullRequests == nil {
		return nil
	}
	cells := selected(c.Cells(), c.GitHub.PullRequests.Cells)
	if len(c.GitHub.PullRequests.Cells) == 0 {
		cells = withoutCAPZ(cells)
		return cells[:min(1, len(cells))]
	}
	return cells
}

// ScheduledCells are the cells that GitHub Actions test by themselves.
func (c *Config) ScheduledCells() []Cell {
	if c.GitHub == nil || c.GitHub.Scheduled == nil {
		return nil
	}
	if len(c.GitHub.Scheduled.Cells) == 0 {
		return withoutCAPZ(c.Cells())
	}
	return selected(c.Cells(), c.GitHub.Scheduled.Cells)
}

// PeriodicCells are the cells that Prow tests by itself.
func (c *Config) PeriodicCells() []Cell {
	if c.Prow == nil || c.Prow.Periodics.Disabled {
		return nil
	}
	return selected(c.Cells(), c.Prow.Periodics.Cells)
}

// selected are the cells that one of the selectors matches, all for none.
func selected(cells []Cell, by []Selector) []Cell {
	if len(by) == 0 {
		return cells
	}
	return slices.DeleteFunc(cells, func(cell Cell) bool {
		return !slices.ContainsFunc(by, func(s Selector) bool { return s.Matches(cell) })
	})
}

func withoutCAPZ(cells []Cell) []Cell {
	return slices.DeleteFunc(cells, func(cell Cell) bool { return cell.Provider == ProviderCAPZ })
}

// GitHubCron is when GitHub Actions run the matrix, "" for never.
func (c *Config) GitHubCron() string {
	if c.GitHub == nil || c.GitHub.Scheduled == nil {
		return ""
	}
	return c.gitHubSchedule().Resolve(c.Name + "-github").Cron
}

func (c *Config) gitHubSchedule() Schedule {
	s := Schedule{Every: c.GitHub.Scheduled.Every, Cron: c.GitHub.Scheduled.Cron}
	if s.Every == 0 && s.Cron == "" {
		s.Every = everyDay
	}
	return s
}

// Warnings are what the file says and its author may not mean.
func (c *Config) Warnings() []string {
	var all []string
	seen := map[string]bool{}
	inProw := c.PeriodicCells()
	for _, cell := range c.ScheduledCells() {
		if slices.Contains(inProw, cell) {
			all = append(all, fmt.Sprintf("the cell %s is run by Prow and by GitHub Actions, and both publish as %s: see prow.periodics.cells and github.scheduled.cells", cell.Title, c.PeriodicName(cell)))
		}
	}
	cells := c.Cells()
	outside := map[Cell]bool{}
	for _, j := range c.Jobs() {
		if j.Kind == Presubmit && !slices.Contains(cells, j.Cell) && !outside[j.Cell] {
			outside[j.Cell] = true
			all = append(all, fmt.Sprintf("%s tests the cell %s, which the matrix does not have: see prow.presubmits.cell, and cell of prow.overrides", j.Name, j.Cell.Title))
		}
	}
	for _, cell := range cells {
		version := cell.Version()
		if version == "" || seen[version] {
			continue
		}
		seen[version] = true
		if note, err := specs.CheckVersion(version); err == nil && note != "" {
			all = append(all, note)
		}
	}
	return all
}
