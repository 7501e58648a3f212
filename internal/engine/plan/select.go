package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// inOrder returns the selection with each name once, and in an order that does
// not depend on how it was asked for.
func inOrder(sel result.Selection) result.Selection {
	rank := func(c specs.Category) int { return slices.Index(specs.Categories(), c) }
	sel.Categories = slices.Clone(sel.Categories)
	slices.SortFunc(sel.Categories, func(a, b specs.Category) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
	sel.Categories = slices.Compact(sel.Categories)
	for _, names := range []*[]string{&sel.Cases, &sel.Labels, &sel.Capabilities} {
		*names = slices.Compact(slices.Sorted(slices.Values(*names)))
	}
	return sel
}

// Select returns the cases that the selection names, in their order. An unknown
// name, and a selection that holds nothing, are errors.
// What is named twice over, such as a category and a label, must both hold;
// additional cases and trials are selected only where they are asked for, or named.
func Select(all []specs.Case, sel *result.Selection) ([]specs.Case, error) {
	known := struct{ ids, labels, capabilities, categories map[string]bool }{
		map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{},
	}
	for i := range all {
		c := &all[i]
		known.ids[c.ID] = true
		known.categories[string(c.Category)] = true
		for _, l := range c.Labels {
			known.labels[l] = true
		}
		for _, n := range needs(c) {
			known.capabilities[n] = true
		}
	}
	var errs []error
	for _, c := range sel.Categories {
		errs = append(errs, unknown("category", string(c), known.categories))
	}
	for _, id := range sel.Cases {
		errs = append(errs, unknown("case", id, known.ids))
	}
	for _, l := range sel.Labels {
		errs = append(errs, unknown("label", l, known.labels))
	}
	for _, c := range sel.Capabilities {
		errs = append(errs, unknown("capability", c, known.capabilities))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var selected []specs.Case
	for i := range all {
		if c := &all[i]; selects(sel, c) {
			selected = append(selected, *c)
		}
	}
	if len(selected) == 0 {
		return nil, errors.New("the selection holds no case: 'op-readiness specs list' shows what there is")
	}
	return selected, nil
}

func selects(sel *result.Selection, c *specs.Case) bool {
	named := []string{c.ID}
	switch {
	case c.Kind == specs.Additional && !sel.Additional, c.Kind == specs.Trial && !sel.Trial:
		if !slices.Contains(sel.Cases, c.ID) {
			return false
		}
	case c.Kind == specs.Trial:
		named = append(named, c.Proves())
	}
	any := func(wanted []string, has []string) bool {
		return len(wanted) == 0 || slices.ContainsFunc(wanted, func(w string) bool { return slices.Contains(has, w) })
	}
	return (len(sel.Categories) == 0 || slices.Contains(sel.Categories, c.Category)) &&
		any(sel.Cases, named) &&
		any(sel.Labels, c.Labels) &&
		any(sel.Capabilities, needs(c))
}

func needs(c *specs.Case) []string {
	return slices.Concat(c.Needs.Condition, c.Needs.Means)
}

// unknown returns an error that suggests the nearest known name, or nil where
// name is known.
func unknown(what, name string, known map[string]bool) error {
	if known[name] {
		return nil
	}
	names := slices.Sorted(maps.Keys(known))
	if len(names) == 0 {
		return fmt.Errorf("unknown %s %q: these specs have none", what, name)
	}
	const few = 30
	fix := "known are " + strings.Join(names, ", ")
	if len(names) > few {
		fix = fmt.Sprintf("'op-readiness specs list' names all %d", len(names))
	}
	if near := specs.Nearest(name, names); near != "" {
		fix = fmt.Sprintf("did you mean %s? %s%s", near, strings.ToUpper(fix[:1]), fix[1:])
	}
	return fmt.Errorf("unknown %s %q: %s", what, name, fix)
}
