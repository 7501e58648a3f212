package specs

import "slices"

// HyperVClass is the runtime class that the tests of Hyper-V isolation use
// (https://github.com/kubernetes/kubernetes/blob/v1.36.3/test/e2e/windows/hyperv.go#L36).
const HyperVClass = "runhcs-wcow-hypervisor"

// WindowsRelease is a release of Windows Server that a node may run.
type WindowsRelease struct {
	// Year names it, such as "2022", and Build is what nodes are labelled with,
	// such as "10.0.20348".
	Year, Build string
	// Standard says that KEP-2578 names the release. The others are accepted by
	// this program because Kubernetes publishes its test images for them.
	Standard bool
}

var windowsReleases = []WindowsRelease{
	{"2019", "10.0.17763", true},
	{"2022", "10.0.20348", true},
	{"2025", "10.0.26100", false},
}

// WindowsReleases returns the releases of Windows Server that are accepted,
// oldest first.
func WindowsReleases() []WindowsRelease { return slices.Clone(windowsReleases) }

// LookupWindowsBuild returns the accepted release of that build.
func LookupWindowsBuild(build string) (WindowsRelease, bool) {
	for _, r := range windowsReleases {
		if r.Build == build {
			return r, true
		}
	}
	return WindowsRelease{}, false
}
