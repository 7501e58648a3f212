package preflight

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
)

// Formats are those that [Report.Write] knows.
func Formats() []report.Format {
	return []report.Format{report.FormatTable, report.FormatJSON, report.FormatMarkdown}
}

// Write writes the report: a line per finding, by group, and then what to do.
func (r *Report) Write(w io.Writer, format report.Format) error {
	switch format {
	case report.FormatJSON:
		t := report.Table{Value: r}
		return t.Write(w, format)
	case report.FormatMarkdown:
		return r.writeMarkdown(w)
	}
	fmt.Fprintf(w, "%s\n\n", r.Line())
	if err := r.table(func(s string) string { return s }).Write(w, report.FormatTable); err != nil {
		return err
	}
	if todo := r.todo(); len(todo) > 0 {
		fmt.Fprint(w, "\nWhat to do:\n")
		for _, t := range todo {
			fmt.Fprintf(w, "  %s %s:\n    %s\n", t.status, strings.Join(t.about, ", "), t.fix)
		}
	}
	_, err := fmt.Fprintf(w, "\n%s\n", r.Line())
	return err
}

// Line sums the report up.
func (r *Report) Line() string {
	word := "TESTABLE"
	if !r.Testable {
		word = "NOT TESTABLE"
	}
	return fmt.Sprintf("Preflight of %s: %s (%d failing, %d warning, %d unknown, %d ok)", r.Server, word, r.Counts[Failing], r.Counts[Warning], r.Counts[Unknown], r.Counts[OK])
}

// WriteShort writes what a run says before it starts: a line in all, and one for
// each finding that fails or is a warning; those that refuse the run with what
// to do.
func (r *Report) WriteShort(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "preflight: %d failing, %d warning, %d unknown, %d ok", r.Counts[Failing], r.Counts[Warning], r.Counts[Unknown], r.Counts[OK])
	if len(r.Probes) > 0 {
		fmt.Fprintf(&text, "; %d probes by pods", len(r.Probes))
	}
	text.WriteString("\n")
	told := map[string]bool{}
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Status != Failing && f.Status != Warning && !f.Refuses {
			continue
		}
		fmt.Fprintf(&text, "  %-7s  %s: %s\n", f.Status, f.ID, f.Found)
		if f.Refuses && !told[f.Fix] {
			told[f.Fix] = true
			fmt.Fprintf(&text, "           fix: %s\n", f.Fix)
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func (r *Report) table(clean func(string) string) *report.Table {
	t := &report.Table{Header: []string{"About", "Status", "Check", "How", "Found"}}
	var group Group
	first := map[string]string{}
	for i := range r.Findings {
		f := &r.Findings[i]
		about := ""
		if f.Group != group {
			group, about = f.Group, string(f.Group)
		}
		found := f.Found
		if strings.HasPrefix(found, "not known: ") { // one error is often that of many
			if first[found] != "" {
				found = "not known: see " + first[found]
			} else {
				first[found] = f.ID
			}
		}
		t.Rows = append(t.Rows, []string{about, string(f.Status), f.ID, clean(f.How), clean(found)})
	}
	return t
}

// fix is what to do about findings of one status.
type fix struct {
	status Status
	about  []string
	fix    string
}

// todo are the findings with a fix, the gravest first; those with the same one
// together.
func (r *Report) todo() []fix {
	var list []fix
	for _, status := range []Status{Failing, Warning, Unknown, OK} {
		for i := range r.Findings {
			f := &r.Findings[i]
			if f.Status != status || f.Fix == "" {
				continue
			}
			at := slices.IndexFunc(list, func(m fix) bool { return m.status == status && m.fix == f.Fix })
			if at < 0 {
				list = append(list, fix{status: status, fix: f.Fix})
				at = len(list) - 1
			}
			list[at].about = append(list[at].about, f.ID+f.keeps())
		}
	}
	return list
}

// keeps says how much of the standard waits for a failing finding.
func (f *Finding) keeps() string {
	switch {
	case f.Status != Failing || len(f.Requirements) == 0:
		return ""
	case len(f.Requirements) == 1:
		return " (1 requirement needs it)"
	}
	return fmt.Sprintf(" (%d requirements need it)", len(f.Requirements))
}

// What a text could do to a page.
var markdownEscapes = strings.NewReplacer(
	"&", "&amp;", "<", "&lt;", ">", "&gt;",
	"\\", "\\\\", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "#", "\\#",
	"@", "@\u200b",
)

func (r *Report) writeMarkdown(w io.Writer) error {
	escape := markdownEscapes.Replace
	fmt.Fprintf(w, "## %s\n\n", escape(r.Line()))
	if err := r.table(escape).Write(w, report.FormatMarkdown); err != nil {
		return err
	}
	if todo := r.todo(); len(todo) > 0 {
		fmt.Fprint(w, "\n### What to do\n\n")
		for _, t := range todo {
			if _, err := fmt.Fprintf(w, "- **%s** %s: %s\n", t.status, escape(strings.Join(t.about, ", ")), escape(t.fix)); err != nil {
				return err
			}
		}
	}
	return nil
}
