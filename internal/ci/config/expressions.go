package config

import (
	"fmt"
	"strings"
)

// expressions refuses what GitHub would take for an expression in the workflows
// that are made of the file: whoever reads the file sees a text. It also refuses
// labels of runners that no runner has.
func (v *validator) expressions() {
	texts := map[string][]string{
		"github.workflow":       {v.GitHub.Workflow},
		"github.runsOn":         v.GitHub.RunsOn,
		"github.comment.runsOn": v.GitHub.Comment.RunsOn,
		"run.e2eProvider":       {v.Run.E2EProvider},
		"run.without":           v.Run.Without,
		"results.bucket":        {v.Results.Bucket},
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
	for field, labels := range texts {
		for _, label := range labels {
			if strings.HasSuffix(field, "unsOn") && (strings.TrimSpace(label) != label || strings.ContainsAny(label, "[]{},\"")) {
				v.once(field, "%q is not one label of a runner: write several as a list, such as [self-hosted, windows-lab]", clip(label))
			}
		}
	}
	for field, values := range texts {
		for _, value := range values {
			if strings.Contains(value, "${{") {
				v.once(field, "%q has an expression of GitHub's, which does not work here: write what it stands for", clip(value))
			}
		}
	}
}
