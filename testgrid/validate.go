package testgrid

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	tgconfig "github.com/GoogleCloudPlatform/testgrid/config"
	configpb "github.com/GoogleCloudPlatform/testgrid/pb/config"
	"github.com/hashicorp/go-multierror"

	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/config"
)

// prowPrefixes are where kubernetes/test-infra's Prow uploads; groups that read
// from there must be named for one job
// (config/tests/testgrids/config_test.go in kubernetes/test-infra).
var prowPrefixes = []string{
	"kubernetes-jenkins/logs/", "kubernetes-jenkins/pr-logs/directory/",
	"kubernetes-ci-logs/logs/", "kubernetes-ci-logs/pr-logs/directory/",
}

// ValidateConfig says everything for which TestGrid, in its newest version, or
// kubernetes/test-infra's tests would refuse a configuration: TestGrid's own
// config.Validate of the version that this program has, the stricter rules for
// names that came later, and test-infra's for dashboards. The error joins one
// error a problem.
func ValidateConfig(cfg *configpb.Configuration) error {
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if err := tgconfig.Validate(cfg); err != nil {
		var several *multierror.Error
		if errors.As(err, &several) {
			problems = append(problems, several.Errors...)
		} else {
			problems = append(problems, err)
		}
	}
	name := func(what, name string) {
		if problem := config.NameProblem(name); problem != "" {
			add("%s %q %s", what, name, problem)
		}
	}
	groups := map[string]string{}
	for _, g := range cfg.GetTestGroups() {
		name("test group", g.Name)
		if first, again := groups[config.Normalise(g.Name)]; again {
			add("test groups %q and %q are one to TestGrid, which compares letters and digits only: rename one", first, g.Name)
		}
		groups[config.Normalise(g.Name)] = g.Name
		prefix := g.GetGcsPrefix()
		if slices.ContainsFunc(prowPrefixes, func(p string) bool { return strings.Contains(prefix, p) }) && prefix != path.Join(path.Dir(prefix), g.Name) {
			add("test group %q reads %q: kubernetes/test-infra wants that to end in the group's name", g.Name, prefix)
		}
	}
	grouped := map[string]string{}
	for _, g := range cfg.GetDashboardGroups() {
		name("dashboard group", g.Name)
		for _, d := range g.DashboardNames {
			grouped[d] = g.Name
			if !strings.HasPrefix(d, g.Name) {
				add("dashboard %q in group %q: its name must begin with the group's", d, g.Name)
			}
		}
	}
	for _, d := range cfg.GetDashboards() {
		name("dashboard", d.Name)
		for _, g := range cfg.GetDashboardGroups() {
			if strings.HasPrefix(d.Name, g.Name+"-") && grouped[d.Name] == "" {
				add("dashboard %q is not in group %q, though its name begins with it: add it there", d.Name, g.Name)
			}
		}
		shown := map[string]string{}
		for _, t := range d.DashboardTab {
			name("tab of dashboard "+d.Name, t.Name)
			if first, again := shown[t.TestGroupName]; again {
				add("dashboard %q shows test group %q in the tabs %q and %q: kubernetes/test-infra wants one", d.Name, t.TestGroupName, first, t.Name)
			}
			shown[t.TestGroupName] = t.Name
		}
	}
	return errors.Join(problems...)
}
