package grid

import "time"

// Preview is what TestGrid would show.
type Preview struct {
	// Source is what was read, for people.
	Source string `json:"source"`
	// Made is when.
	Made time.Time `json:"made"`
	// Dashboards are in the order of the configuration.
	Dashboards []Dashboard `json:"dashboards"`
}

// Tabs returns the tabs of all dashboards.
func (p *Preview) Tabs() []*Tab {
	var tabs []*Tab
	for i := range p.Dashboards {
		for j := range p.Dashboards[i].Tabs {
			tabs = append(tabs, &p.Dashboards[i].Tabs[j])
		}
	}
	return tabs
}

// Dashboard is a list of tabs.
type Dashboard struct {
	Name string `json:"name"`
	Tabs []Tab  `json:"tabs"`
}

// Tab is a grid with what the summarizer says of it.
type Tab struct {
	Dashboard   string `json:"dashboard"`
	Name        string `json:"name"`
	Group       string `json:"group"`
	Description string `json:"description,omitempty"`
	// Status is PASS, FAIL, FLAKY, STALE, BROKEN or UNKNOWN.
	Status string `json:"status"`
	// Message is the summarizer's sentence: how many columns and cells passed.
	Message string `json:"message"`
	// Alert says why a tab is stale or could not be summarized.
	Alert string `json:"alert,omitempty"`
	// Unwritten is why TestGrid's updater cannot write the grid: what TestGrid
	// shows stays as it was, without what came since. Else it is empty.
	Unwritten string `json:"unwritten,omitempty"`
	// LatestGreen is the first header, or else the build, of the newest column
	// without a failure.
	LatestGreen string `json:"latestGreen,omitempty"`
	// Alerts are the rows that would be alerted about.
	Alerts []Alert `json:"alerts,omitempty"`
	// BaseOptions are how the tab limits what it shows of its group; here, the
	// rows are limited already.
	BaseOptions string `json:"baseOptions,omitempty"`
	// Headers names the values of each column's Headers.
	Headers []string `json:"headers,omitempty"`
	// Columns are the builds, the newest first.
	Columns []Column `json:"columns"`
	// Rows are sorted by name, as TestGrid sorts them.
	Rows []Row `json:"rows"`
	// Bytes is the size of the grid as TestGrid stores it, compressed. Above
	// 2,000,000 it removes messages, then old columns.
	Bytes int64 `json:"bytes"`
}

// Alert is a row that failed often enough to alert someone.
type Alert struct {
	Row      string `json:"row"`
	Failures int    `json:"failures"`
	Message  string `json:"message,omitempty"`
	// FailedFirst and FailedLast are values of the first column header, or
	// builds where there is none.
	FailedFirst string `json:"failedFirst,omitempty"`
	FailedLast  string `json:"failedLast,omitempty"`
	PassedLast  string `json:"passedLast,omitempty"`
}

// Column is one build.
type Column struct {
	Build   string    `json:"build"`
	Started time.Time `json:"started,omitzero"`
	Headers []string  `json:"headers,omitempty"`
	// URL leads to the build; empty when there is nowhere to lead.
	URL string `json:"url,omitempty"`
}

// Row is one test through all builds.
type Row struct {
	Name string `json:"name"`
	// Cells has one for each column.
	Cells []Cell `json:"cells"`
}

// Cell is the result of one row in one build.
type Cell struct {
	Result Result `json:"result"`
	// Icon is the short text that TestGrid writes into the cell.
	Icon string `json:"icon,omitempty"`
	// Message is what it shows when the cell is pointed at.
	Message string `json:"message,omitempty"`
	// Metrics are numbers of the cell, such as test-duration-minutes.
	Metrics map[string]float64 `json:"metrics,omitempty"`
}

// Result is one of TestGrid's results of a cell, by the name it has in
// pb/test_status.
type Result string

// The results that the reading of builds yields.
const (
	NoResult      Result = "NO_RESULT"
	Pass          Result = "PASS"
	PassWithSkips Result = "PASS_WITH_SKIPS"
	Running       Result = "RUNNING"
	Unknown       Result = "UNKNOWN"
	Fail          Result = "FAIL"
	Flaky         Result = "FLAKY"
	ToolFail      Result = "TOOL_FAIL"
)
