// Package page renders a preview of TestGrid as one self-contained HTML page.
//
// The page asks nothing of any server: style, script and data are in it, and its
// Content-Security-Policy allows no more than these, by their hashes. Names,
// messages and links come from builds and may be hostile; they reach the page
// as text and, if they are harmless addresses, as links.
//
// The grid is a table with the ARIA role grid: one stop of the Tab key, arrow
// keys inside (https://www.w3.org/WAI/ARIA/apg/patterns/grid/). Every cell says
// its result in words, and only what passed has no letter.
package page

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed" // style, script and template
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/grid"
	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
)

//go:embed page.css
var style string

//go:embed page.js
var script string

//go:embed page.html.tmpl
var source string

var page = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{"cells": cells, "plural": text.Count}).Parse(source))
})

// Write writes the page.
func Write(w io.Writer, p *grid.Preview) error {
	v := newView(p)
	var out bytes.Buffer
	if err := page().Execute(&out, v); err != nil {
		return fmt.Errorf("rendering the page: %w", err)
	}
	_, err := w.Write(out.Bytes())
	return err
}

// WriteFile writes the page into a file, and returns that one's URL. Builds in
// folders are linked to relative to it, so that both may move together. A file that
// cannot be made is a [verdict.UsageError].
func WriteFile(name string, p *grid.Preview) (string, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return "", verdict.UsageErrorf("--html: %w", err)
	}
	for _, t := range p.Tabs() {
		for i := range t.Columns {
			u, err := url.Parse(t.Columns[i].URL)
			if err != nil || u.Scheme != "file" {
				continue
			}
			if rel, err := filepath.Rel(filepath.Dir(path), filepath.FromSlash(u.Path)); err == nil {
				t.Columns[i].URL = (&url.URL{Path: filepath.ToSlash(rel) + "/"}).String()
			}
		}
	}
	file, err := os.Create(name)
	if err != nil {
		return "", verdict.UsageErrorf("--html: %w", err)
	}
	if err := errors.Join(Write(file, p), file.Close()); err != nil {
		return "", fmt.Errorf("writing %s: %w", name, err)
	}
	return grid.FileURL(path), nil
}

// view is what the template shows.
type view struct {
	Policy     string
	Style      template.CSS
	Script     template.JS
	Source     string
	Made       string
	MadeISO    string
	Dashboards []dashboardView
	Single     bool // there is no more than one tab
}

type dashboardView struct {
	Name string
	Tabs []tabView
}

type tabView struct {
	ID                           int
	Name, Dashboard, Description string
	Kind, Status                 string
	Message, Alert, LatestGreen  string
	Unwritten                    string
	Limit                        string
	Alerts                       []grid.Alert
	Columns                      []columnView
	Headers                      []headerView
	Rows                         []rowView
	ColumnCount, RowCount        int
	Roomy                        bool
}

type columnView struct {
	Build, Day, Clock, Label string
	Values                   []labelled
	URL                      template.URL
}

type labelled struct{ Name, Value string }

// headerView is a column header, with equal values of neighbours as one.
type headerView struct {
	Name  string
	Spans []spanView
}

type spanView struct {
	Value string
	N     int
}

type rowView struct {
	Name, Has, Newest string
	cells             []grid.Cell
}

func newView(p *grid.Preview) *view {
	v := &view{
		Script: template.JS(script),
		Source: shown.Line(p.Source),
		Made:   p.Made.UTC().Format("2006-01-02 15:04 UTC"), MadeISO: p.Made.UTC().Format("2006-01-02T15:04:05Z"),
		Single: len(p.Tabs()) <= 1,
	}
	widths := map[int]bool{}
	id := 0
	for i := range p.Dashboards {
		d := dashboardView{Name: shown.Line(p.Dashboards[i].Name)}
		for j := range p.Dashboards[i].Tabs {
			id++
			d.Tabs = append(d.Tabs, newTab(id, &p.Dashboards[i].Tabs[j], widths))
		}
		v.Dashboards = append(v.Dashboards, d)
	}
	var css strings.Builder
	css.WriteString(style)
	for _, d := range v.Dashboards {
		for i := range d.Tabs {
			fmt.Fprintf(&css, "#panel%d{--n:%d;--cell:%s}\n", d.Tabs[i].ID, d.Tabs[i].ColumnCount, cellWidth(d.Tabs[i].ColumnCount))
		}
	}
	for _, n := range sortedKeys(widths) {
		fmt.Fprintf(&css, ".header .w%d{flex-basis:calc(%d*var(--cell))}\n", n, n)
	}
	v.Style = template.CSS(css.String())
	v.Policy = fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; script-src 'sha256-%s'; base-uri 'none'; form-action 'none'",
		hash(css.String()), hash(script))
	return v
}

// roomyBuilds is up to how many builds a tab has room for wide columns.
const roomyBuilds = 12

// cellWidth is how wide a column is, so that a few builds can be read well.
func cellWidth(builds int) string {
	switch {
	case builds <= 6:
		return "5.8rem"
	case builds <= roomyBuilds:
		return "3.4rem"
	case builds <= 24:
		return "2.2rem"
	}
	return "1.75rem"
}

func sortedKeys(set map[int]bool) []int {
	keys := make([]int, 0, len(set))
	for k := range set {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base64.StdEncoding.EncodeToString(sum[:])
}

func newTab(id int, t *grid.Tab, widths map[int]bool) tabView {
	kind, status := statusOf(t.Status)
	v := tabView{
		ID: id, Name: shown.Line(t.Name), Dashboard: shown.Line(t.Dashboard), Description: shown.Line(t.Description), Kind: kind, Status: status,
		Message: shown.Line(t.Message), Alert: shown.Line(t.Alert), Unwritten: shown.Line(t.Unwritten), LatestGreen: shown.Line(t.LatestGreen), Limit: shown.Line(t.BaseOptions),
		ColumnCount: len(t.Columns), RowCount: len(t.Rows), Roomy: len(t.Columns) <= roomyBuilds,
	}
	for _, a := range t.Alerts {
		v.Alerts = append(v.Alerts, grid.Alert{Row: shown.Line(a.Row), Failures: a.Failures, Message: shown.Line(a.Message)})
	}
	for i := range t.Columns {
		v.Columns = append(v.Columns, newColumn(&t.Columns[i], t.Headers))
	}
	for h, name := range t.Headers {
		header := headerView{Name: shown.Line(name)}
		for i := range t.Columns {
			value := ""
			if h < len(t.Columns[i].Headers) {
				value = shown.Line(t.Columns[i].Headers[h])
			}
			if last := len(header.Spans) - 1; last >= 0 && header.Spans[last].Value == value {
				header.Spans[last].N++
			} else {
				header.Spans = append(header.Spans, spanView{Value: value, N: 1})
			}
		}
		for _, s := range header.Spans {
			widths[s.N] = true
		}
		v.Headers = append(v.Headers, header)
	}
	for i := range t.Rows {
		v.Rows = append(v.Rows, newRow(&t.Rows[i]))
	}
	return v
}

func newColumn(c *grid.Column, headers []string) columnView {
	v := columnView{Build: shown.Line(c.Build), Day: "?", Label: "build " + shown.Line(c.Build), URL: harmless(c.URL)}
	if !c.Started.IsZero() {
		started := c.Started.UTC()
		v.Day, v.Clock = started.Format("01-02"), started.Format("15:04")
		v.Values = append(v.Values, labelled{"Started", started.Format("2006-01-02 15:04:05 UTC")})
		v.Label += ", started " + started.Format("2006-01-02 15:04 UTC")
	}
	for i, name := range headers {
		if i < len(c.Headers) && c.Headers[i] != "" {
			v.Values = append(v.Values, labelled{shown.Line(name), shown.Line(c.Headers[i])})
			v.Label += ", " + shown.Line(name) + " " + shown.Line(c.Headers[i])
		}
	}
	return v
}

func newRow(r *grid.Row) rowView {
	v := rowView{Name: shown.Line(r.Name), cells: r.Cells}
	has := map[string]bool{}
	for i, c := range r.Cells {
		k, _ := kindOf(c.Result)
		if has[k] = true; i == 0 {
			v.Newest = k
		}
	}
	for _, k := range []string{"fail", "flaky", "skip", "run", "odd"} {
		if has[k] {
			v.Has += k + " "
		}
	}
	v.Has = strings.TrimSpace(v.Has)
	return v
}

// kindOf returns the class of a cell and its result in words.
func kindOf(r grid.Result) (class, words string) {
	switch r {
	case grid.NoResult, "":
		return "none", "no result"
	case grid.Pass, "BUILD_PASSED":
		return "pass", "passed"
	case grid.PassWithSkips:
		return "skip", "skipped"
	case "PASS_WITH_ERRORS":
		return "skip", "passed with errors"
	case grid.Running:
		return "run", "running"
	case grid.Flaky:
		return "flaky", "flaky"
	case grid.Fail:
		return "fail", "failed"
	case grid.ToolFail:
		return "fail", "not readable"
	case "TIMED_OUT", "CATEGORIZED_FAIL", "BUILD_FAIL":
		return "fail", inWords(r)
	}
	return "odd", inWords(r)
}

func inWords(r grid.Result) string { return strings.ToLower(strings.ReplaceAll(string(r), "_", " ")) }

// statusOf returns the class of a tab's status, and the status in words.
func statusOf(s string) (class, words string) {
	switch s {
	case "PASS":
		return "pass", "Passing"
	case "FAIL":
		return "fail", "Failing"
	case "FLAKY":
		return "flaky", "Flaky"
	case "BROKEN":
		return "fail", "Broken"
	case "STALE":
		return "odd", "Stale"
	}
	return "odd", "Unknown"
}

// mark is what stands in a cell: TestGrid's icon, or a letter for what would
// otherwise be told by its colour alone.
func mark(c grid.Cell, class string) string {
	icon := shown.Line(c.Icon)
	if icon != "" {
		return string([]rune(icon)[:min(5, len([]rune(icon)))])
	}
	switch class {
	case "fail":
		return "F"
	case "flaky":
		return "~"
	case "run":
		return "R"
	case "odd":
		return "?"
	}
	return ""
}

// cells renders the cells of a row. A template would take ten times as long.
func cells(r rowView) template.HTML {
	var b strings.Builder
	for _, c := range r.cells {
		class, words := kindOf(c.Result)
		if message := shown.Lines(c.Message); message != "" {
			words += ": " + message
		}
		b.WriteString(`<td role="gridcell" class="`)
		b.WriteString(class)
		b.WriteString(`" aria-label="`)
		b.WriteString(template.HTMLEscapeString(words))
		b.WriteString(`">`)
		b.WriteString(template.HTMLEscapeString(mark(c, class)))
		b.WriteString("</td>")
	}
	return template.HTML(b.String())
}

// harmless returns an address that may be followed: on the web, a file, or
// relative to the page; "" for all others.
func harmless(address string) template.URL {
	u, err := url.Parse(address)
	if err != nil || address == "" {
		return ""
	}
	switch cmp.Or(strings.ToLower(u.Scheme), "relative") {
	case "http", "https", "file", "relative":
		return template.URL(u.String())
	}
	return ""
}
