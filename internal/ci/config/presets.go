package config

import "slices"

// sigWindowsPresets are the presets that jobs of sig-windows use, with the
// variables that they set. From kubernetes/test-infra, August 2026:
// config/jobs/kubernetes-sigs/sig-windows/presets.yaml and what it stands on.
var sigWindowsPresets = []Preset{
	{Label: "preset-azure-community", Value: "true", Env: []string{"AZURE_CLIENT_ID", "AZURE_SUBSCRIPTION_ID", "AZURE_TENANT_ID", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_STORAGE_ACCOUNT", "REGISTRY", "USE_LOCAL_KIND_REGISTRY"}},
	{Label: "preset-capz-containerd-2-0-latest", Value: "true", Env: []string{"WINDOWS_CONTAINERD_URL"}},
	{Label: "preset-capz-gmsa-setup", Value: "true", Env: []string{"GMSA"}},
	{Label: "preset-capz-serial-slow", Value: "true", Env: []string{"KUBETEST_WINDOWS_CONFIG", "CONFORMANCE_NODES", "GINKGO_NODES"}},
	{Label: "preset-capz-windows-2019", Value: "true", Env: []string{"WINDOWS_FLAVOR"}},
	{Label: "preset-capz-windows-2022", Value: "true", Env: []string{"WINDOWS_SERVER_VERSION"}},
	{Label: "preset-capz-windows-2025", Value: "true", Env: []string{"GALLERY_IMAGE_NAME"}},
	{Label: "preset-capz-windows-common", Value: "true", Env: []string{"E2E_ARGS", "WINDOWS", "TEST_WINDOWS", "AZURE_NODE_MACHINE_TYPE"}},
	{Label: "preset-capz-windows-common-pull", Value: "true", Env: []string{"WINDOWS", "CONFORMANCE_NODES", "AZURE_NODE_MACHINE_TYPE"}},
	{Label: "preset-capz-windows-parallel", Value: "true", Env: []string{"CONFORMANCE_NODES"}},
	{Label: "preset-dind-enabled", Value: "true", Env: []string{"DOCKER_IN_DOCKER_ENABLED"}},
	{Label: "preset-kind-volume-mounts", Value: "true"},
}

// Presets are the presets that jobs may name: those of sig-windows' jobs, and
// those that the file adds.
func (c *Config) Presets() []Preset {
	all := slices.Clone(sigWindowsPresets)
	if c.Prow != nil {
		all = append(all, c.Prow.Presets...)
	}
	return all
}
