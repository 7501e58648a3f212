package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/config"
)

// The name becomes part of an expression in a workflow.
func TestNamesOfGitHubsSecrets(t *testing.T) {
	const file = `name: clusters
repository: o/r
matrix: {kubernetes: ["1.36"], windows: ["2022"], provider: [existing]}
github: {kubeconfigSecret: %q, pullRequests: {}}
`
	for name, says := range map[string]string{
		"KUBECONFIG": "", "KUBECONFIG_{cell}": "", "kube-{windows}": "", "_x": "",
		"K}} ${{ github.token": "is not a secret name", "A || github.token": "is not a secret name", "9LIVES": "is not a secret name",
		"A B": "is not a secret name", "github_token": "which GitHub keeps for itself", "K_{nothing}": "stands for nothing",
	} {
		_, err := config.Parse("op-readiness.yaml", fmt.Appendf(nil, file, name))
		if said := fmt.Sprint(err); (says == "") != (err == nil) || !strings.Contains(said, says) {
			t.Errorf("%q: %v, want %q", name, err, says)
		}
	}
}
