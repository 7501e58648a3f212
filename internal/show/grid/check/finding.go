package check

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
)

// Severity says how much a finding costs.
type Severity string

// The severities.
const (
	// Error is a result that TestGrid loses, refuses, or shows as another.
	Error Severity = "error"
	// Warning is what may be lost, or may be shown wrongly.
	Warning Severity = "warning"
	// Note is good to know.
	Note Severity = "note"
)

// Finding is one thing that is not as it should be.
type Finding struct {
	Severity Severity `json:"severity"`
	// Rule is a short name of what is broken, the same for all of its kind.
	Rule string `json:"rule"`
	// Object is the object, folder, or part of the configuration.
	Object string `json:"object"`
	// Line is where in the object; 0 when not known.
	Line int `json:"line,omitempty"`
	// Field is the part of it that is meant, or "".
	Field string `json:"field,omitempty"`
	// What is what was found, and what TestGrid makes of it.
	What string `json:"what"`
	// Fix is what to do.
	Fix string `json:"fix"`
}

// Where is the place of a finding in its object.
func (f *Finding) Where() string {
	var parts []string
	if f.Line > 0 {
		parts = append(parts, fmt.Sprintf("line %d", f.Line))
	}
	if f.Field != "" {
		parts = append(parts, f.Field)
	}
	return strings.Join(parts, ", ")
}

// Group is what TestGrid makes of a test group.
type Group struct {
	Name   string `json:"name"`
	Prefix string `json:"prefix"`
	// Builds is how many TestGrid lists; Columns and Rows are of its grid,
	// which leaves out what is too old.
	Builds  int `json:"builds"`
	Columns int `json:"columns"`
	Rows    int `json:"rows"`
	// Bytes is the size of the grid as TestGrid stores it.
	Bytes int64 `json:"bytes"`
}

// Report is what was checked, and what was found.
type Report struct {
	Source   string    `json:"source"`
	Groups   []Group   `json:"groups,omitempty"`
	Findings []Finding `json:"findings"`

	of   map[string]int // findings by rule
	said map[Finding]bool
	// untold is how many findings were left out.
	untold map[Severity]int
	// empty are the jobs without builds.
	empty []string
}

// maxOfRule is how many findings of one rule are shown.
const maxOfRule = 50

// add notes a finding, once: several test groups may read the same builds.
func (r *Report) add(f Finding) {
	if r.of == nil {
		r.of, r.said, r.untold = map[string]int{}, map[Finding]bool{}, map[Severity]int{}
	}
	if r.said[f] {
		return
	}
	r.said[f] = true
	if r.of[f.Rule]++; r.of[f.Rule] > maxOfRule {
		r.untold[f.Severity]++
		return
	}
	r.Findings = append(r.Findings, f)
}

// finish puts the findings in order, the worst first, and says how many were
// left out.
func (r *Report) finish() {
	order := []Severity{Error, Warning, Note}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Severity), slices.Index(order, b.Severity)), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Line, b.Line))
	})
	for i := len(r.Findings) - 1; i >= 0; i-- {
		if n := r.of[r.Findings[i].Rule] - maxOfRule; n > 0 {
			r.Findings[i].What += fmt.Sprintf(" (and %d more of this kind)", n)
			r.of[r.Findings[i].Rule] = 0
		}
	}
	if r.Findings == nil {
		r.Findings = []Finding{}
	}
}

// Count returns how many findings have a severity, with those that were left
// out.
func (r *Report) Count(s Severity) int {
	n := r.untold[s]
	for i := range r.Findings {
		if r.Findings[i].Severity == s {
			n++
		}
	}
	return n
}

// Write writes the report. Width is that of the terminal, 0 for none.
func (r *Report) Write(w io.Writer, format report.Format, width int) error {
	findings := report.Table{Header: []string{"severity", "rule", "object", "where", "finding", "fix"}, Value: r}
	for i := range r.Findings {
		f := &r.Findings[i]
		findings.Rows = append(findings.Rows, []string{string(f.Severity), f.Rule, f.Object, f.Where(), f.What, f.Fix})
	}
	switch format {
	case report.FormatJSON, report.FormatCSV:
		return findings.Write(w, format)
	case report.FormatTable:
		return r.writeText(w, width)
	}
	groups := report.Table{Header: []string{"test group", "prefix", "builds", "columns", "rows"}}
	for _, g := range r.Groups {
		groups.Rows = append(groups.Rows, []string{g.Name, g.Prefix, fmt.Sprint(g.Builds), fmt.Sprint(g.Columns), fmt.Sprint(g.Rows)})
	}
	if len(groups.Rows) > 0 {
		if err := groups.Write(w, format); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	if len(findings.Rows) > 0 {
		if err := findings.Write(w, format); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	_, err := fmt.Fprintln(w, r.Sum())
	return err
}

// Sum says in a sentence what was found.
func (r *Report) Sum() string {
	e, w, n := r.Count(Error), r.Count(Warning), r.Count(Note)
	switch {
	case e == 0 && w == 0 && n == 0:
		return "No problems found."
	case e == 0 && w == 0:
		return fmt.Sprintf("No problems found; %s.", text.Count(n, "note"))
	}
	return fmt.Sprintf("%s, %s, %s.", text.Count(e, "error"), text.Count(w, "warning"), text.Count(n, "note"))
}
