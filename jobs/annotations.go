package jobs

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/config"
)

// annotations are what kubernetes/test-infra's tools read of a job: its
// description, its tabs where annotations make them (testgrid.tabs, and on
// dashboards that are declared elsewhere), and whether releases of Kubernetes
// copy it. A variant for branches has none of tabs: it would make those of its
// name a second time.
func annotations(c *config.Config, j config.Job, variant bool) map[string]string {
	a := map[string]string{"description": j.Description}
	s := j.Settings
	dashboards := slices.Clone(s.Dashboards)
	if c.TestGrid.Tabs != config.TabsAnnotations {
		dashboards = slices.DeleteFunc(dashboards, func(d string) bool { return !slices.Contains(c.TestGrid.DeclaredElsewhere, d) })
	}
	if len(dashboards) > 0 && !variant && strings.HasPrefix(c.Results.Bucket, "gs://") {
		a["testgrid-dashboards"] = strings.Join(dashboards, ", ")
		a["testgrid-tab-name"] = j.Tab
		a["testgrid-num-columns-recent"] = strconv.Itoa(c.RecentRuns(j))
		a["testgrid-num-failures-to-alert"] = strconv.Itoa(c.TestGrid.FailuresToAlert)
		a["testgrid-days-of-results"] = strconv.Itoa(c.TestGrid.DaysOfResults)
		// One mail is enough, of the first tab.
		if len(s.AlertEmails) > 0 && dashboards[0] == s.Dashboards[0] {
			a["testgrid-alert-email"] = strings.Join(s.AlertEmails, ",")
		}
		if j.Kind == config.Periodic {
			a["testgrid-alert-stale-results-hours"] = strconv.Itoa(c.StaleHours(j))
		}
	}
	if !variant && forks(c, j) {
		a["fork-per-release"] = "true"
		if j.Cell.Provider == config.ProviderCAPZ {
			a["fork-per-release-replacements"] = "KUBERNETES_VERSION=latest -> KUBERNETES_VERSION=latest-{{.Version}}"
		}
	}
	return a
}

// forks says that each release of Kubernetes gets a copy of the job, for its
// branch: of jobs that test master. A copy of a presubmit keeps its name and is
// for branch release-X.Y of the repository, so the original must not be, which
// its branches have to say.
func forks(c *config.Config, j config.Job) bool {
	if !c.Prow.ForkPerRelease || j.Kind == config.Postsubmit || j.Cell.Kubernetes != config.BranchMaster {
		return false
	}
	return j.Kind == config.Periodic || len(j.Branches) > 0 && !slices.ContainsFunc(j.Branches, matchesRelease)
}

func matchesRelease(branch string) bool {
	re, err := regexp.Compile(branch)
	return err != nil || re.MatchString("release-1.99")
}
