package specs

import (
	"cmp"
	"fmt"
	"regexp"
)

// SuiteName is what ginkgo puts before the name of every test, of either suite,
// when it holds a focus or a skip against it.
const SuiteName = "Kubernetes e2e suite"

// Matcher is a compiled [Selector].
type Matcher struct {
	suite       Suite
	focus, skip *regexp.Regexp
}

// Compile prepares the selector for matching. It obeys ginkgo: the expressions
// are held, unanchored, against the suite's name, a space and the test's name,
// and an empty one filters nothing.
func (s Selector) Compile() (*Matcher, error) {
	m := &Matcher{suite: cmp.Or(s.Suite, Kubernetes)}
	var err error
	if s.Focus != "" {
		if m.focus, err = regexp.Compile(s.Focus); err != nil {
			return nil, fmt.Errorf("focus: %w", err)
		}
	}
	if s.Skip != "" {
		if m.skip, err = regexp.Compile(s.Skip); err != nil {
			return nil, fmt.Errorf("skip: %w", err)
		}
	}
	return m, nil
}

// Matches reports whether the test of that name is of the selector's suite, and
// ginkgo would run it.
func (m *Matcher) Matches(name string) bool {
	if SuiteOf(name) != m.suite {
		return false
	}
	text := SuiteName + " " + name
	return (m.focus == nil || m.focus.MatchString(text)) && (m.skip == nil || !m.skip.MatchString(text))
}

// Match returns those of names that ginkgo would run, in their order. A
// selector that does not compile matches nothing.
func (s Selector) Match(names []string) []string {
	m, err := s.Compile()
	if err != nil {
		return nil
	}
	var matched []string
	for _, name := range names {
		if m.Matches(name) {
			matched = append(matched, name)
		}
	}
	return matched
}
