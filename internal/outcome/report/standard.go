package report

import (
	"slices"
	"strconv"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Cases is a table of cases as they stand for one Kubernetes version.
func Cases(cases []specs.Case) *Table {
	t := &Table{
		Header:    []string{"Category", "Case", "Kind", "Proof", "Tests", "Phase", "Duration", "Requirement"},
		MaxWidths: map[string]int{"Requirement": 80},
		Value:     cases,
	}
	for _, c := range cases {
		duration := ""
		if c.Duration > 0 {
			duration = strings.Replace(c.Duration.String(), "m0s", "m", 1)
		}
		t.Rows = append(t.Rows, []string{
			string(c.Category), c.ID, string(c.Kind), string(c.Proof), expected(c.Tests), string(c.Phase), duration, c.Requirement,
		})
	}
	return t
}

// expected is how many tests the selectors declare; files of other formats
// cannot say it.
func expected(selectors []specs.Selector) string {
	sum := 0
	for _, s := range selectors {
		if s.Expect == 0 {
			return "?"
		}
		sum += s.Expect
	}
	return strconv.Itoa(sum)
}

// Problems is a table of what is wrong with spec files.
func Problems(problems []specs.Problem) *Table {
	t := &Table{Header: []string{"File", "Line", "Case", "Problem"}, Value: append([]specs.Problem{}, problems...)}
	for _, p := range problems {
		t.Rows = append(t.Rows, []string{p.File, strconv.Itoa(p.Line), p.Case, p.Message})
	}
	return t
}

// Coverage is a table of how much of the standard versions of Kubernetes can
// prove: a row per category, and one for all of them.
func Coverage(versions []*specs.VersionCoverage) *Table {
	t := &Table{Header: []string{"Kubernetes", "Category", "Full", "Part", "None", "Requirements", "On trial"}, Value: versions}
	for _, v := range versions {
		for _, line := range append(slices.Clone(v.Categories), v.Total) {
			category := string(line.Category)
			if category == "" {
				category = "all"
			}
			t.Rows = append(t.Rows, []string{
				v.Kubernetes, category, strconv.Itoa(line.Full), strconv.Itoa(line.Part), strconv.Itoa(line.None), strconv.Itoa(line.Requirements), strconv.Itoa(line.Trial),
			})
		}
	}
	return t
}

// SpecsDiff is a table of what an upgrade of Kubernetes changes for the standard.
func SpecsDiff(d *specs.ListDiff) *Table {
	t := &Table{
		Header:    []string{"Case", "Change", "Before", "After", "Selected"},
		MaxWidths: map[string]int{"Before": 60, "After": 60},
		Value:     d,
	}
	for _, c := range d.Changes {
		selected := "no"
		if c.Selected {
			selected = "yes"
		}
		t.Rows = append(t.Rows, []string{c.Case, string(c.Kind), c.Before, c.After, selected})
	}
	return t
}
