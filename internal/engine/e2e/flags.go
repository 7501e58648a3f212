package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Flags are the settings of e2e.test that are the same for all batches.
type Flags struct {
	Kubeconfig string
	// Context is the kubeconfig's context; "" is its current one.
	Context string
	// Provider is the e2e framework's; "" is [DefaultProvider].
	Provider string
	// Kubectl is the kubectl that tests run; "" finds it on the path.
	Kubectl string
	// NonBlockingTaints are keys of taints that do not make the suite wait
	// for a node, beside the control plane's.
	NonBlockingTaints []string
	// AllowedNotReadyNodes is how many nodes may be not ready; -1 waits for none.
	AllowedNotReadyNodes int
	// DNSDomain is the cluster's; "" is "cluster.local".
	DNSDomain string
	// DockerConfig holds credentials with which nodes pull test images.
	DockerConfig string
	// RepoList overrides the registries of test images (KUBE_TEST_REPO_LIST).
	RepoList string
	// Extra are further arguments, as they are; see [CheckExtra].
	Extra []string
}

// DefaultProvider is the e2e framework's provider for clusters that it knows
// nothing special about. With "local", tests of SSH no longer skip themselves.
const DefaultProvider = "skeleton"

// Providers are those that the e2e framework knows.
func Providers() []string {
	return []string{"aws", "azure", "gce", "gke", "kubemark", "local", "openstack", "skeleton", "vsphere"}
}

// Args returns the command line of e2e.test for a Windows cluster, without
// what selects tests.
func (f *Flags) Args() []string {
	provider := f.Provider
	if provider == "" {
		provider = DefaultProvider
	}
	taints := append([]string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}, f.NonBlockingTaints...)
	args := []string{
		// Without this the framework skips [sig-windows] and places
		// NetworkPolicy tests on Linux.
		"--node-os-distro=windows",
		"--provider=" + provider,
		"--non-blocking-taints=" + strings.Join(taints, ","),
		fmt.Sprintf("--allowed-not-ready-nodes=%d", f.AllowedNotReadyNodes),
		// The framework would look for a script of the Kubernetes repository.
		"--disable-log-dump=true",
	}
	for _, optional := range []struct{ flag, value string }{
		{"--kubeconfig", f.Kubeconfig},
		{"--context", f.Context},
		{"--kubectl-path", f.Kubectl},
		{"--dns-domain", f.DNSDomain},
		{"--e2e-docker-config-file", f.DockerConfig},
		{"--kube-test-repo-list", f.RepoList},
	} {
		if optional.value != "" {
			args = append(args, optional.flag+"="+optional.value)
		}
	}
	return append(args, f.Extra...)
}

// maxFocus keeps one argument well below what Linux allows (128 KiB).
const maxFocus = 64 << 10

// FocusArgs returns the flags that select exactly the tests with the given
// full names.
func FocusArgs(names []string) []string {
	var args []string
	var focus strings.Builder
	add := func() {
		if focus.Len() > 0 {
			args = append(args, "--ginkgo.focus=^"+regexp.QuoteMeta(specs.SuiteName+" ")+"("+focus.String()+")$")
			focus.Reset()
		}
	}
	for _, name := range names {
		quoted := regexp.QuoteMeta(name)
		if focus.Len()+len(quoted) > maxFocus {
			add()
		}
		if focus.Len() > 0 {
			focus.WriteByte('|')
		}
		focus.WriteString(quoted)
	}
	add()
	return args
}

// BatchArgs returns the command line of e2e.test for one batch: the tests
// with the given names, one after the other in an order that seed determines.
// report is where ginkgo writes its JSON report; timeout is a limit for the
// whole batch, far above what it may take.
func (f *Flags) BatchArgs(names []string, seed int64, report string, timeout time.Duration) []string {
	args := append(f.Args(),
		"--ginkgo.v",
		"--ginkgo.no-color",
		"--ginkgo.flake-attempts=1",
		fmt.Sprintf("--ginkgo.seed=%d", seed),
		fmt.Sprintf("--ginkgo.timeout=%v", timeout),
		"--ginkgo.json-report="+report,
	)
	return append(args, FocusArgs(names)...)
}
