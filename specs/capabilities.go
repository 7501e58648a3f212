package specs

import "slices"

// Capability is something of a cluster or of the runner that a case may need,
// by one of the names of [Capabilities].
type Capability struct {
	Name string `json:"name"`
	// Means says in one line what is there when the capability is.
	Means string `json:"means"`
	// Containers says that it takes containers that really run, so that
	// simulated nodes never have it.
	Containers bool `json:"containers"`
	// Feature says that clusters may do without it: only then can it be a
	// condition under which the standard asks for a requirement.
	Feature bool `json:"feature"`
}

var capabilities = []Capability{
	{Name: "configz", Means: "the API server's proxy to the kubelets' configuration", Containers: true},
	{Name: "containerd-1.7", Means: "Windows nodes that run containerd 1.7 or newer", Containers: true},
	{Name: "containers", Means: "containers that really run and end", Containers: true},
	{Name: "dns", Means: "a cluster DNS that answers behind the Service kube-system/kube-dns", Containers: true},
	{Name: "dual-stack", Means: "pods and Services with addresses of both families", Feature: true},
	{Name: "exec", Means: "commands run in a container, through the API", Containers: true},
	{Name: "gmsa", Means: "group managed service accounts, with credential specs and a domain", Containers: true, Feature: true},
	{Name: "gpu", Means: "Windows nodes with a DirectX device", Containers: true, Feature: true},
	{Name: "graceful-shutdown", Means: "the kubelets' feature gate WindowsGracefulNodeShutdown", Containers: true},
	{Name: "hpc", Means: "HostProcess containers on Windows", Containers: true, Feature: true},
	{Name: "hpc-rename", Means: "something that gives HostProcess containers agnhost under the name agnhost.exe", Containers: true},
	{Name: "hyperv", Means: "the runtime class " + HyperVClass, Containers: true, Feature: true},
	{Name: "internet", Means: "pods that reach the internet; not so on an air-gapped cluster", Containers: true, Feature: true},
	{Name: "kubectl", Means: "a kubectl program beside e2e.test, with which tests run commands in containers", Containers: true},
	{Name: "linux-worker", Means: "a schedulable Linux node"},
	{Name: "log-query", Means: "the kubelets' feature gate NodeLogQuery, switched on in their configuration", Containers: true},
	{Name: "logs", Means: "containers' logs, through the API", Containers: true},
	{Name: "metrics", Means: "a metrics server with figures of Windows pods", Containers: true},
	{Name: "netpol", Means: "a network that enforces NetworkPolicy", Containers: true, Feature: true},
	{Name: "nodeport", Means: "pods that reach the nodes' internal IPs", Containers: true},
	{Name: "pinned-win", Means: "Windows nodes for pods that select Windows themselves: untainted, or steered by policy, which adds tolerations"},
	{Name: "reboot", Means: "leave to reboot Windows nodes", Containers: true},
	{Name: "smb", Means: "an SMB share that gMSA pods may write to", Containers: true},
	{Name: "stats", Means: "the API server's proxy to the kubelets' statistics and metrics", Containers: true},
	{Name: "steer", Means: "pods can be steered to an operating system while a test runs"},
	{Name: "2-win", Means: "two schedulable Windows nodes"},
	{Name: "untainted-win", Means: "Windows nodes without a taint that keeps tests' pods away"},
}

// Capabilities returns all capabilities, by name.
func Capabilities() []Capability {
	all := slices.Clone(capabilities)
	slices.SortFunc(all, func(a, b Capability) int { return compareText(a.Name, b.Name) })
	return all
}

// LookupCapability returns the capability of that name.
func LookupCapability(name string) (Capability, bool) {
	for _, c := range capabilities {
		if c.Name == name {
			return c, true
		}
	}
	return Capability{}, false
}

// NeedsContainers reports whether anything that the case needs takes
// containers that really run.
func (c *Case) NeedsContainers() bool {
	for _, name := range slices.Concat(c.Needs.Condition, c.Needs.Means) {
		if capability, ok := LookupCapability(name); ok && capability.Containers {
			return true
		}
	}
	return false
}

func capabilityNames(featuresOnly bool) []string {
	var names []string
	for _, c := range Capabilities() {
		if c.Feature || !featuresOnly {
			names = append(names, c.Name)
		}
	}
	return names
}

// checks are the built-in checks of rules, by the name that a spec file uses.
var checks = []string{
	"agnhost-images",
	"core-conformance",
	"core-images",
	"feature-conformance",
	"linux-conformance",
	"node-count",
	"pod-os",
	"windows-version",
}

// Checks returns the names that Case.Check may have.
func Checks() []string { return slices.Clone(checks) }
