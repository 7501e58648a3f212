package preflight

import (
	"fmt"
	"io"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/report"
)

// Formats are those that [Report.Write] knows.
func Formats() []report.Format {
	return []report.Format{report.FormatTable, report.FormatJSON, report.FormatMarkdown}
}

// Write writes the report: a line a finding, by group, and then what to do.
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
		for _, f := range todo {
			fmt.Fprintf(w, "  %s %s%s:\n    %s\n", f.Status, f.ID, f.keeps(), f.Mend)
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

func (r *Report) table(clean func(string) string) *report.Table {
	t := &report.Table{Header: []string{"About", "Status", "Check", "How", "Found"}}
	var group Group
	for i := range r.Findings {
		f := &r.Findings[i]
		about := ""
		if f.Group != group {
			group, about = f.Group, string(f.Group)
		}
		t.Rows = append(t.Rows, []string{about, string(f.Status), f.ID, clean(f.How), clean(f.Found)})
	}
	return t
}

// todo are the findings with a mend, the gravest first.
func (r *Report) todo() []*Finding {
	var list []*Finding
	for _, status := range []Status{Failing, Warning, Unknown, OK} {
		for i := range r.Findings {
			if f := &r.Findings[i]; f.Status == status && f.Mend != "" {
				list = append(list, f)
			}
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
		return ", which 1 requirement needs"
	}
	return fmt.Sprintf(", which %d requirements need", len(f.Requirements))
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
		for _, f := range todo {
			if _, err := fmt.Fprintf(w, "- **%s** %s%s: %s\n", f.Status, escape(f.ID), f.keeps(), escape(f.Mend)); err != nil {
				return err
			}
		}
	}
	return nil
}

var (
	annotationText  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	annotationTitle = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// WriteAnnotations writes GitHub workflow commands: an error for each finding
// that keeps the cluster from being judged ready, a warning for each warning.
//
// Format: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
func (r *Report) WriteAnnotations(w io.Writer) error {
	for i := range r.Findings {
		f := &r.Findings[i]
		level := "warning"
		switch {
		case f.blocks():
			level = "error"
		case f.Status != Warning:
			continue
		}
		text := f.Found
		if f.Mend != "" {
			text += "\nTo mend: " + f.Mend
		}
		if _, err := fmt.Fprintf(w, "::%s title=%s::%s\n", level, annotationTitle.Replace("preflight "+f.ID), annotationText.Replace(text)); err != nil {
			return err
		}
	}
	return nil
}
