package github

import (
	"fmt"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// outcomes are those of a judgement's cases, by id, but for trials; none without a
// judgement.
func outcomes(j *verdict.Judgement) map[string]verdict.Outcome {
	out := map[string]verdict.Outcome{}
	if j == nil {
		return out
	}
	for i := range j.Cases {
		if c := &j.Cases[i]; c.Case.Kind != specs.Trial {
			out[c.Case.ID] = c.Outcome
		}
	}
	return out
}

// change is what is different from the base in one cell.
type change struct {
	// fresh are broken here and good on the base, fixed the other way round,
	// known broken in both.
	fresh, fixed, known []string
	// apart are categories that only one of the two ran.
	apart []string
}

// compare holds a judgement against that of the base: only categories that ran
// in both, and of them only cases that came to an answer in both.
func compare(j, base *verdict.Judgement) change {
	var out change
	before := outcomes(base)
	for i := range j.Cases {
		c := &j.Cases[i]
		then, ran := before[c.Case.ID]
		if c.SumsUp() || !ran || !answered(j, c.Case.Category) || !answered(base, c.Case.Category) {
			continue
		}
		switch {
		case broken(c.Outcome) && then.Good():
			out.fresh = append(out.fresh, c.Case.ID)
		case c.Outcome.Good() && broken(then):
			out.fixed = append(out.fixed, c.Case.ID)
		case broken(c.Outcome) && broken(then):
			out.known = append(out.known, c.Case.ID)
		}
	}
	var all []specs.Category
	for _, k := range slices.Concat(j.Categories, base.Categories) {
		if !slices.Contains(all, k.Category) {
			all = append(all, k.Category)
		}
	}
	for _, category := range all {
		if answered(j, category) != answered(base, category) {
			out.apart = append(out.apart, string(category))
		}
	}
	return out
}

// answered reports whether anything of a category was run.
func answered(j *verdict.Judgement, category specs.Category) bool {
	c := categoryOf(j, category)
	if c == nil {
		return false
	}
	return c.Outcomes[verdict.Passed]+c.Outcomes[verdict.Flaky]+c.Outcomes[verdict.Failed]+c.Outcomes[verdict.Unproven]+c.Outcomes[verdict.Error] > 0
}

// compared tells the changes of all cells that have a base; nothing is claimed
// of the others.
func (r *Report) compared(b *strings.Builder) {
	for i, cell := range r.Cells {
		if cell.Base == nil || i >= maxRows {
			continue
		}
		c := compare(cell.Judgement, cell.Base)
		fmt.Fprintf(b, "\n%s**Against the base:** ", r.prefix(cell.Name))
		var parts []string
		for _, group := range []struct {
			what string
			ids  []string
		}{{"newly failing", c.fresh}, {"fixed", c.fixed}, {"already failing there", c.known}} {
			if len(group.ids) > 0 {
				parts = append(parts, fmt.Sprintf("%d %s (%s)", len(group.ids), group.what, list(group.ids, maxNames, inline)))
			}
		}
		if len(parts) == 0 {
			parts = []string{"no difference"}
		}
		b.WriteString(strings.Join(parts, "; ") + ".")
		if len(c.apart) > 0 {
			fmt.Fprintf(b, " Not compared, because only one of the two ran them: %s.", list(c.apart, maxNames, plain))
		}
		b.WriteByte('\n')
	}
}
