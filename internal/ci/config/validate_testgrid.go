package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// NameProblem says why TestGrid would refuse a name, "" if it would not. Its
// newest rules; the configuration that is uploaded is dropped as a whole for
// one bad name.
func NameProblem(name string) string {
	switch n := Normalise(name); {
	case !testGridName.MatchString(name):
		return `has a character that TestGrid refuses: use letters, digits, spaces and _.~<>()|[]",@/-`
	case len(n) < 3:
		return "has fewer than 3 letters and digits, which TestGrid refuses: make it longer"
	case len(n) > 2048:
		return "has more than 2048 letters and digits, which TestGrid refuses: make it shorter"
	default:
		for _, prefix := range []string{"dashboard", "alerter", "summary", "bugs"} {
			if strings.HasPrefix(n, prefix) {
				return "begins with " + prefix + ", which TestGrid keeps for itself: begin it otherwise"
			}
		}
	}
	return ""
}

// testGridName is nameRegex of TestGrid's config/config.go, mid 2026.
var testGridName = regexp.MustCompile(`^[a-zA-Z0-9_.~<>()|\[\]",@/ –-]+$`)

func (v *validator) testGrid() {
	t := &v.TestGrid
	group := v.DashboardGroup()
	named := map[string]string{"testgrid.group": t.Group, "testgrid.dashboards.periodics": t.Dashboards.Periodics, "testgrid.dashboards.presubmits": t.Dashboards.Presubmits, "testgrid.dashboards.categories": t.Dashboards.Categories}
	for _, field := range slices.Sorted(maps.Keys(named)) {
		name := named[field]
		if name == "" {
			continue
		}
		if problem := NameProblem(name); problem != "" {
			v.add(field, "%q %s", name, problem)
		}
		elsewhere := slices.Contains(t.DeclaredElsewhere, name)
		if field != "testgrid.group" && !elsewhere && !strings.HasPrefix(name, group) {
			v.add(field, "%q does not begin with the dashboard group's name, as kubernetes/test-infra wants it: call it %s-…, or set testgrid.group", name, group)
		}
	}
	if problem := NameProblem(v.Name); problem != "" {
		v.add("name", "%q %s", v.Name, problem)
	}
	for i, name := range t.DeclaredElsewhere {
		if strings.HasPrefix(name, group+"-") {
			v.add(fmt.Sprintf("testgrid.declaredElsewhere[%d]", i), "%q begins with the dashboard group's name, and kubernetes/test-infra wants such a dashboard in that group, which is declared here: remove it here, or rename it there", name)
		}
	}
	own := append([]string{group}, v.ownDashboards()...)
	seen := map[string]string{}
	for i, name := range own {
		if first, again := seen[Normalise(name)]; again {
			what := "the dashboard"
			if i > 0 && first == group {
				what = "the dashboard group"
			}
			v.add("testgrid.dashboards", "%q and %s %q are one name to TestGrid, which compares letters and digits only: rename one", name, what, first)
		}
		seen[Normalise(name)] = name
	}
	if v.CategoryView() == CategoriesTabs && slices.Contains(testInfraBuckets, v.Bucket()) {
		v.add("testgrid.categories", "tabs joins the results of several jobs in one test group, which kubernetes/test-infra refuses for gs://%s: use dashboards or none", v.Bucket())
	}
	for i, h := range t.ColumnHeaders {
		if slices.Contains(BaseColumnHeaders(), h) {
			v.add(fmt.Sprintf("testgrid.columnHeaders[%d]", i), "%q is always there: remove it", h)
		}
	}
}

// BaseColumnHeaders are the rows above every grid. Commit comes first: alerts
// and links to compared sources use the first one.
func BaseColumnHeaders() []string { return []string{"Commit", "kubernetes-version", "windows-version"} }
