package specs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Lint finds what is wrong with the cases in the face of the tests that there
// are: for each list, every case that counts for its version must match as
// many tests as it declares, and run them in a phase that they bear. Without a
// list, only what the cases say by themselves is looked at.
func Lint(set *Set, lists ...*TestList) []Problem {
	var problems []Problem
	for _, e := range set.empty {
		problems = append(problems, Problem{File: e.file, Line: e.line,
			Message: fmt.Sprintf("category %s is empty: give it a case or delete the file", e.category)})
	}
	for i := range set.Cases {
		problems = append(problems, set.lintCase(&set.Cases[i])...)
	}
	for _, list := range lists {
		problems = append(problems, set.lintAgainst(list)...)
	}
	return inOrder(problems)
}

func (s *Set) problem(c *Case, line int, format string, args ...any) Problem {
	o := s.origin(c)
	if line == 0 {
		line = o.line
	}
	return Problem{File: o.file, Line: line, Case: c.ID, Message: fmt.Sprintf(format, args...)}
}

// lintCase looks at one case. Cases of other formats cannot say more.
func (s *Set) lintCase(c *Case) []Problem {
	if len(c.Tests) == 0 || s.origin(c).foreign {
		return nil
	}
	var problems []Problem
	if c.Kind == Requirement && !demandsWindows(c) {
		problems = append(problems, s.problem(c, 0,
			"no placement puts a pod on Windows: nothing would show that the tests ran there"))
	}
	if c.Conditions.Steer != "" && !slices.Contains(c.Needs.Means, "steer") {
		problems = append(problems, s.problem(c, 0, "the tests are steered to %s: add steer to needs.means", c.Conditions.Steer))
	}
	return problems
}

func demandsWindows(c *Case) bool {
	return slices.ContainsFunc(c.Conditions.Placement, func(p Placement) bool {
		return slices.Contains(p.Systems(), Windows)
	})
}

func (s *Set) lintAgainst(list *TestList) []Problem {
	cases, err := s.For(list.Version)
	if err != nil {
		return []Problem{{Message: fmt.Sprintf("the list of tests does not say for which Kubernetes it is: %v", err)}}
	}
	names := slices.Concat(list.Names(), OwnTests().Names())
	var problems []Problem
	var near *index
	for i := range cases {
		c := &cases[i]
		o := s.origin(c)
		served := map[string]bool{}
		for j, selector := range c.Tests {
			line := 0
			if j < len(o.tests) {
				line = o.tests[j]
			}
			matched := selector.Match(names)
			if len(matched) == 0 {
				if near == nil {
					near = newIndex(names)
				}
				problems = append(problems, s.problem(c, line, "focus %q matches no test of Kubernetes %s%s%s",
					selector.Focus, list.Version, hint(near.nearest(literal(selector.Focus), 3)), builtIn(c, list.Version, names)))
				continue
			}
			if selector.Expect > 0 && len(matched) != selector.Expect {
				problems = append(problems, s.problem(c, line, "focus %q matches %d tests of Kubernetes %s, not the %d that it expects:%s",
					selector.Focus, len(matched), list.Version, selector.Expect, listed(matched, 5)))
			}
			for _, name := range matched {
				if served[name] {
					problems = append(problems, s.problem(c, line, "%q is selected twice in Kubernetes %s", name, list.Version))
				}
				served[name] = true
				if o.foreign {
					continue
				}
				if text := lintTest(c, name); text != "" {
					problems = append(problems, s.problem(c, line, "%q %s", name, text))
				}
			}
		}
		if !o.foreign {
			problems = append(problems, s.lintReferences(c, list, served)...)
		}
	}
	return problems
}

// lintTest finds what in a test's tags does not go with the case.
func lintTest(c *Case, name string) string {
	switch {
	case strings.Contains(name, "[Disruptive]") && c.Phase != Disruptive:
		return fmt.Sprintf("is [Disruptive], but the case's phase is %s", c.Phase)
	case strings.Contains(name, "[Serial]") && c.Phase == Parallel:
		return "is [Serial], but the case's phase is parallel"
	case strings.Contains(name, "[LinuxOnly]"):
		return "is [LinuxOnly]: it shows nothing about Windows"
	}
	return ""
}

var sourceLink = regexp.MustCompile(`^https://github\.com/kubernetes/kubernetes/blob/(v[^/]+)/(test/e2e/[^#]+)#L(\d+)$`)

// lintReferences checks that links into the source of the list's version point
// at tests, and, where the case has tests, at its own.
func (s *Set) lintReferences(c *Case, list *TestList, served map[string]bool) []Problem {
	var problems []Problem
	for _, ref := range c.References {
		m := sourceLink.FindStringSubmatch(ref)
		if m == nil || m[1] != list.Version {
			continue
		}
		location := m[2] + ":" + m[3]
		if !slices.ContainsFunc(list.Tests, func(t ListedTest) bool {
			return t.Location == location && (len(served) == 0 || served[t.Name])
		}) {
			problems = append(problems, s.problem(c, 0, "reference %s is not where one of its tests is", ref))
		}
	}
	return problems
}

// literal is what a person would read in a regular expression.
func literal(expression string) string {
	return strings.NewReplacer(`\[`, "[", `\]`, "]", `\(`, "(", `\)`, ")", `\.`, ".", ".*", " ", "|", " ", "^", "", "$", "").Replace(expression)
}

func hint(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; most like it:" + listed(names, len(names))
}

// builtIn tells how the standard that comes with this program tests the same
// requirement; "" if it does not, or is where the case comes from.
func builtIn(c *Case, version string, names []string) string {
	standard, err := Embedded()
	if err != nil {
		return ""
	}
	cases, err := standard.For(version)
	if err != nil {
		return ""
	}
	var best *Case
	like := 0.8
	for i := range cases {
		if s := similarity(c.Requirement, cases[i].Requirement); s > like && cases[i].ID != c.ID {
			best, like = &cases[i], s
		}
	}
	if best == nil || len(best.Tests) == 0 {
		return ""
	}
	return fmt.Sprintf("\n  the built-in standard tests that requirement (%s) with:", best.ID) + listed(selectedNames(best, names), 3)
}

func listed(names []string, most int) string {
	var b strings.Builder
	for i, name := range names {
		if i == most {
			fmt.Fprintf(&b, "\n    and %d more", len(names)-most)
			break
		}
		b.WriteString("\n    " + name)
	}
	return b.String()
}
