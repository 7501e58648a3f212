package github

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/actions"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// failure is a case that is not as it should be.
type failure struct {
	cell string
	c    *verdict.CaseResult
	// fresh says that it was good on the base.
	fresh bool
}

func broken(o verdict.Outcome) bool {
	return o == verdict.Failed || o == verdict.Unproven || o == verdict.Error
}

// failures renders those of all cells, of at least limit bytes where there are
// so many, and counts the rest.
func (r *Report) failures(limit int) (sections []string, rest int) {
	all := r.broken()
	size := 0
	for i, f := range all {
		if size > limit {
			return sections, len(all) - i
		}
		section := f.markdown(r.prefix(f.cell))
		size += len(section)
		sections = append(sections, section)
	}
	return sections, 0
}

// Annotations are the failures but for those of trials, of which GitHub Actions shows a few beside the
// workflow run.
func (r *Report) Annotations() []actions.Annotation {
	var out []actions.Annotation
	for _, f := range r.broken() {
		if f.onTrial() {
			continue
		}
		level := actions.Error
		if !f.c.Case.Gates() || f.c.Outcome != verdict.Failed {
			level = actions.Warning
		}
		title := f.c.Case.ID + " " + string(f.c.Outcome)
		if f.cell != "" {
			title = f.cell + ": " + title
		}
		message := text.Cut(f.c.Case.Requirement, maxText)
		if f.c.Reason != "" {
			message += "\n" + text.Cut(f.c.Reason, maxMessage)
		}
		out = append(out, actions.Annotation{Level: level, Title: title, Text: message})
	}
	for _, c := range r.Cells {
		if c.Judgement.Verdict == verdict.Inconclusive {
			out = append(out, actions.Annotation{Level: actions.Warning, Title: strings.TrimSpace(c.Name + " inconclusive"), Text: strings.Join(first(c.Judgement.Reasons, maxReasons), "\n")})
		}
	}
	return out
}

func first(texts []string, n int) []string { return texts[:min(n, len(texts))] }

// onTrial reports whether the failure decides nothing.
func (f failure) onTrial() bool { return f.c.Case.Kind == specs.Trial }

// broken are the failures of all cells: the new ones first, then what gates,
// then failed before unproven before in error; trials come last.
func (r *Report) broken() []failure {
	var all []failure
	for _, cell := range r.Cells {
		fresh := map[string]bool{}
		if cell.Base != nil {
			for _, id := range compare(cell.Judgement, cell.Base).fresh {
				fresh[id] = true
			}
		}
		for i := range cell.Judgement.Cases {
			c := &cell.Judgement.Cases[i]
			if broken(c.Outcome) && !c.SumsUp() {
				all = append(all, failure{cell.Name, c, fresh[c.Case.ID]})
			}
		}
	}
	rank := func(f failure) int {
		n := slices.Index([]verdict.Outcome{verdict.Failed, verdict.Unproven, verdict.Error}, f.c.Outcome)
		if !f.c.Case.Gates() {
			n += 10
		}
		if !f.fresh {
			n += 100
		}
		if f.onTrial() {
			n += 1000
		}
		return n
	}
	slices.SortStableFunc(all, func(a, b failure) int { return cmp.Compare(rank(a), rank(b)) })
	return all
}

// markdown is the failure, folded away, with the name of its cell before it.
func (f failure) markdown(cell string) string {
	var b strings.Builder
	note := ""
	switch {
	case f.onTrial():
		note = ", on trial, which decides nothing"
	case f.fresh:
		note = ", new"
	}
	fmt.Fprintf(&b, "\n<details><summary>%s%s: %s%s</summary>\n", cell, inline(f.c.Case.ID, maxID), f.c.Outcome, note)
	for _, paragraph := range []string{f.requirement(), inline(f.test(), maxText), f.evidence(), block(f.c.Reason, maxMessage)} {
		if paragraph != "" {
			fmt.Fprintf(&b, "\n%s\n", paragraph)
		}
	}
	b.WriteString("\n</details>\n")
	return b.String()
}

// standard are the sentences of the standard, by case; they need no escaping.
var standard = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	if set, err := specs.Embedded(); err == nil {
		for i := range set.Cases {
			out[set.Cases[i].ID] = set.Cases[i].Requirement
		}
	}
	return out
})

// notText is what GitHub or Markdown could make more of than text.
const notText = "<>@#&[]`*_~$\\|"

func (f failure) requirement() string {
	text := f.c.Case.Requirement
	if text == standard()[f.c.Case.ID] && !strings.ContainsAny(text, notText) && !linked().MatchString(text) {
		return text
	}
	return plain(text, maxText)
}

// test is the first test that made the case what it is.
func (f failure) test() string {
	for i := range f.c.Tests {
		if t := &f.c.Tests[i]; t.Outcome != verdict.Passed || f.c.Outcome == verdict.Unproven {
			return t.Test.Name
		}
	}
	return ""
}

// measured is what tests of all cells measured, folded away, a line a case; "" for
// nothing.
func (r *Report) measured() string {
	var lines []string
	for _, cell := range r.Cells {
		for i := range cell.Judgement.Cases {
			c := &cell.Judgement.Cases[i]
			figures := report.Figures(c)
			switch {
			case figures == "":
				continue
			case len(lines) == maxRows:
				return folded("Measured", append(lines, "- and more\n"))
			}
			lines = append(lines, fmt.Sprintf("- %s%s: %s\n", r.prefix(cell.Name), inline(c.Case.ID, maxID), plain(figures, maxText)))
		}
	}
	return folded("Measured", lines)
}

func folded(summary string, lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return fmt.Sprintf("\n<details><summary>%s</summary>\n\n%s\n</details>\n", summary, strings.Join(lines, ""))
}

func (f failure) evidence() string {
	if f.c.Evidence == "" {
		return ""
	}
	return "Evidence: " + plain(f.c.Evidence, maxText)
}
