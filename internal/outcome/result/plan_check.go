package result

import (
	"fmt"
	"maps"
	"slices"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Check returns an error where the plan's cases disagree with the counts of the
// standard that it carries: no category has more requirements planned than the
// standard has, and where the whole standard is selected, none has fewer.
func (p *Plan) Check() error {
	const fix = "it was changed, or something else than op-readiness made it: plan and run again"
	planned := map[specs.Category]int{}
	seen := map[string]bool{}
	for i := range p.Cases {
		c := &p.Cases[i]
		if seen[c.ID] {
			return fmt.Errorf("case %q is planned twice: %s", Cut(c.ID, 100), fix)
		}
		seen[c.ID] = true
		if c.Kind == specs.Requirement {
			planned[c.Category]++
		}
	}
	all := maps.Clone(planned)
	for c := range p.Standard {
		all[c] = p.Standard[c]
	}
	for _, c := range slices.Sorted(maps.Keys(all)) {
		if n, of := planned[c], p.Standard[c]; n > of || p.Selection.Whole() && n < of {
			return fmt.Errorf("it plans %d requirements of %q, and counts %d in its standard: %s", n, Cut(string(c), 100), of, fix)
		}
	}
	return nil
}
