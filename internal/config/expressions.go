package config

import (
	"fmt"
	"strings"
)

// expressions refuses what GitHub would take for an expression in the workflows
// that are made of the file: whoever reads the file sees a text.
func (v *validator) expressions() {
	texts := map[string][]string{
		"github.workflow": {v.GitHub.Workflow},
		"github.runsOn":   v.GitHub.RunsOn,
		"run.e2eProvider": {v.Run.E2EProvider},
		"run.without":     v.Run.Without,
		"results.bucket":  {v.Results.Bucket},
	}
	if p := v.GitHub.PullRequests; p != nil {
		texts["github.pullRequests.branches"], texts["github.pullRequests.paths"] = p.Branches, p.Paths
	}
	if p := v.GitHub.Publish; p != nil {
		texts["github.publish.workloadIdentityProvider"] = []string{p.WorkloadIdentityProvider}
		texts["github.publish.serviceAccount"] = []string{p.ServiceAccount}
	}
	for i, o := range v.GitHub.Overrides {
		texts[fmt.Sprintf("github.overrides[%d].runsOn", i)] = o.RunsOn
	}
	for field, values := range texts {
		for _, value := range values {
			if strings.Contains(value, "${{") {
				v.once(field, "%q has an expression of GitHub's, which does not work here: write what it stands for", clip(value))
			}
		}
	}
}
