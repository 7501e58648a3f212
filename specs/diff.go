package specs

import (
	"slices"
	"strings"
)

// ListDiff is what an upgrade changes for the standard.
type ListDiff struct {
	From string `json:"from"`
	To   string `json:"to"`
	// FromTests and ToTests count all tests, Gone and New those that only one
	// of the versions has.
	FromTests int `json:"fromTests"`
	ToTests   int `json:"toTests"`
	Gone      int `json:"gone"`
	New       int `json:"new"`
	// Changes are those of the cases, in the standard's order.
	Changes []Change `json:"changes"`
	// NewWindows are new tests for Windows that no case selects.
	NewWindows []string `json:"newWindows,omitempty"`
}

// ChangeKind says what became of a test.
type ChangeKind string

const (
	// Renamed is a test that has another name now.
	Renamed ChangeKind = "renamed"
	// Gone is a test that is not there any more under any name.
	Gone ChangeKind = "gone"
	// New is a test that a case selects and that was not there before.
	New ChangeKind = "new"
	// Moved is a test that lies in another file now.
	Moved ChangeKind = "moved"
	// Reselected is a test that both versions have and that only one variant
	// of the case selects.
	Reselected ChangeKind = "reselected"
)

// Change is what became of one test of a case.
type Change struct {
	Case string     `json:"case"`
	Kind ChangeKind `json:"kind"`
	// Before and After are the test's names, or files if it moved.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// Selected says that the case selects the test in the later version.
	Selected bool `json:"selected"`
}

// alike is how similar two names must be to be taken for one test.
const alike = 0.8

// Diff compares what the cases of the set select from two lists of tests.
func Diff(set *Set, from, to *TestList) (*ListDiff, error) {
	before, err := set.For(from.Version)
	if err != nil {
		return nil, err
	}
	after, err := set.For(to.Version)
	if err != nil {
		return nil, err
	}
	d := &ListDiff{From: from.Version, To: to.Version, FromTests: len(from.Tests), ToTests: len(to.Tests)}
	old, young := byName(from), byName(to)
	var fresh []ListedTest
	for _, t := range to.Tests {
		if _, was := old[t.Name]; !was {
			fresh = append(fresh, t)
		}
	}
	for _, t := range from.Tests {
		if _, is := young[t.Name]; !is {
			d.Gone++
		}
	}
	d.New = len(fresh)

	selectedBefore := map[string][]string{}
	for i := range before {
		selectedBefore[before[i].ID] = selectedNames(&before[i], from.Names())
	}
	used := map[string]bool{}
	for i := range after {
		c := &after[i]
		selected := selectedNames(c, to.Names())
		for _, name := range selected {
			used[name] = true
		}
		for _, change := range changes(c.ID, selectedBefore[c.ID], selected, old, young, fresh) {
			d.Changes = append(d.Changes, change)
			used[change.After] = true
		}
	}
	for _, t := range fresh {
		if !used[t.Name] && forWindows(t.Name) {
			d.NewWindows = append(d.NewWindows, t.Name)
		}
	}
	return d, nil
}

func changes(id string, before, after []string, old, young map[string]ListedTest, fresh []ListedTest) []Change {
	var all []Change
	renamed := map[string]bool{}
	for _, name := range before {
		now, there := young[name]
		selected := slices.Contains(after, name)
		switch {
		case there && !selected:
			all = append(all, Change{Case: id, Kind: Reselected, Before: name})
		case there && now.File() != old[name].File():
			all = append(all, Change{Case: id, Kind: Moved, Before: old[name].File(), After: now.File(), Selected: true})
		case !there:
			if heir, found := successor(old[name], fresh); found {
				renamed[heir] = true
				all = append(all, Change{Case: id, Kind: Renamed, Before: name, After: heir, Selected: slices.Contains(after, heir)})
			} else {
				all = append(all, Change{Case: id, Kind: Gone, Before: name})
			}
		}
	}
	for _, name := range after {
		_, was := old[name]
		switch {
		case renamed[name] || slices.Contains(before, name):
		case was:
			all = append(all, Change{Case: id, Kind: Reselected, After: name, Selected: true})
		default:
			all = append(all, Change{Case: id, Kind: New, After: name, Selected: true})
		}
	}
	return all
}

// successor finds the new test that is most likely a lost one under another
// name: like it, and rather in the same file.
func successor(lost ListedTest, fresh []ListedTest) (name string, found bool) {
	best := alike
	for _, t := range fresh {
		s := similarity(lost.Name, t.Name)
		if t.File() == lost.File() {
			s += 0.1
		}
		if s > best {
			name, best, found = t.Name, s, true
		}
	}
	return name, found
}

func byName(list *TestList) map[string]ListedTest {
	tests := make(map[string]ListedTest, len(list.Tests))
	for _, t := range list.Tests {
		tests[t.Name] = t
	}
	return tests
}

func selectedNames(c *Case, names []string) []string {
	var all []string
	for _, s := range c.Tests {
		for _, name := range s.Match(names) {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

func forWindows(name string) bool {
	return strings.HasPrefix(name, "[sig-windows]") || strings.Contains(name, "[Feature:Windows") || strings.Contains(name, "Windows")
}
