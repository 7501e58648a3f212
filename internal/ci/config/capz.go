package config

import (
	"strings"
	"time"
)

// capzSetup is how long run-capz-e2e.sh is assumed to make a cluster, to install
// what it needs, to collect logs and to remove it.
const capzSetup = 45 * time.Minute

// Setup is how long a job on the cell is assumed to take beside its tests.
func (c Cell) Setup() time.Duration {
	if c.Provider == ProviderCAPZ {
		return capzSetup
	}
	return 5 * time.Minute
}

// JobLabels are all labels of a Prow job: those of its profile, and its
// settings' over them. The profile's are what sig-windows' jobs in
// kubernetes/test-infra have, August 2026:
// config/jobs/kubernetes-sigs/sig-windows/release-master-windows.yaml.
func (c *Config) JobLabels(j Job) map[string]string {
	if j.Kind == Postsubmit || j.Cell.Provider != ProviderCAPZ {
		return j.Settings.Labels
	}
	labels := map[string]string{
		"preset-azure-community":                 "true",
		"preset-capz-windows-" + j.Cell.Windows:  "true",
		"preset-dind-enabled":                    "true",
		"preset-kind-volume-mounts":              "true",
		"preset-capz-windows-common" + c.pull(j): "true",
	}
	// Without a preset, run-capz-e2e.sh takes containerd 1.7; a nightly one has
	// an address instead.
	if j.Cell.Runtime == "containerd" || j.Cell.Runtime == "containerd-2.0" {
		labels["preset-capz-containerd-2-0-latest"] = "true"
	}
	return merged(labels, j.Settings.Labels)
}

// pull ends the name of the preset for jobs that build the Kubernetes of a pull
// request.
func (c *Config) pull(j Job) string {
	if c.BuildsKubernetes(j) {
		return "-pull"
	}
	return ""
}

// BuildsKubernetes says that the job tests the Kubernetes of a pull request,
// which run-capz-e2e.sh builds, and not the newest of a branch.
func (c *Config) BuildsKubernetes(j Job) bool {
	return j.Kind == Presubmit && j.Cell.Provider == ProviderCAPZ && strings.EqualFold(c.Repository, "kubernetes/kubernetes")
}
