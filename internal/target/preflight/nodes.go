package preflight

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// documentedReleases are the releases of Windows Server that the documentation
// of a Kubernetes version names for nodes: 2019 and 2022 up to 1.34, 2022 and
// 2025 since 1.35
// (https://kubernetes.io/docs/concepts/windows/intro/#windows-os-version-support,
// changed by https://github.com/kubernetes/website/pull/53724).
func documentedReleases(v specs.Version) []string {
	if v.Major == 1 && v.Minor < 35 {
		return []string{"2019", "2022"}
	}
	return []string{"2022", "2025"}
}

// system is how an operating system is written for people.
func system(os specs.OS) string {
	switch os {
	case specs.Windows:
		return "Windows"
	case specs.Linux:
		return "Linux"
	}
	return string(os)
}

func (c *checker) nodes() {
	if err := c.Nodes.Err; err != nil {
		for _, id := range []string{
			"node-count", "node-os", "windows-nodes", "linux-worker", "node-ready", "node-taints", "windows-version", "windows-version-supported",
			"kubelet-skew", "kube-proxy-skew", "container-runtime", "windows-memory",
		} {
			c.unknown(Finding{ID: id, Group: groupNodes, How: "nodes", Vital: id == "node-count"}, err)
		}
		return
	}
	c.nodeCount()
	c.usableNodes()
	c.readiness()
	c.taints()
	c.windowsVersions()
	c.kubelets()
	c.kubeProxy()
	c.containerRuntime()
	c.memory()
}

func (c *checker) names(keep func(*Node) bool) []string {
	var names []string
	for i := range c.Nodes.Value {
		if n := &c.Nodes.Value[i]; keep(n) {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names
}

// nodeCount is the rule of the standard: simulated nodes do not count.
func (c *checker) nodeCount() {
	f := Finding{ID: "node-count", Group: groupNodes, Status: OK, How: "nodes", Concerns: []string{"cluster-node-count"}, Vital: true}
	var parts, fixes []string
	for _, os := range []specs.OS{specs.Linux, specs.Windows} {
		all, simulated := c.cluster.Count(result.Is(os)), c.cluster.Simulated(result.Is(os))
		schedulable := c.cluster.Count(result.Counting(os))
		part := fmt.Sprintf("%d of %d %s nodes can be scheduled to", schedulable, all-simulated, system(os))
		switch {
		case all == 0:
			part = fmt.Sprintf("no %s node", system(os))
		case simulated == all:
			part = fmt.Sprintf("%d simulated %s nodes, which do not count", all, system(os))
		case simulated > 0:
			part += fmt.Sprintf(" (and %d simulated, which do not count)", simulated)
		}
		parts = append(parts, part)
		if schedulable < result.MinimumNodes {
			f.Status = Failing
			fixes = append(fixes, fmt.Sprintf("%d %s", result.MinimumNodes-schedulable, system(os)))
		}
	}
	f.Found = strings.Join(parts, "; ")
	if f.Status == Failing {
		f.Fix = fmt.Sprintf("the standard asks for %d of each that are ready, not cordoned and not tainted: add, or untaint, %s", result.MinimumNodes, strings.Join(fixes, " and "))
	}
	c.add(f)
	c.honesty()
}

// honesty is about nodes that contradict themselves: what runs there proves
// nothing.
func (c *checker) honesty() {
	f := Finding{ID: "node-os", Group: groupNodes, Status: OK, How: "nodes: operatingSystem, osImage, kernelVersion, labels", Found: "what nodes report and their labels agree"}
	var odd []string
	for i := range c.Nodes.Value {
		n := &c.Nodes.Value[i]
		switch {
		case n.Contradiction != "":
			odd = append(odd, n.Name+" "+n.Contradiction)
		case n.OS != specs.Linux && n.OS != specs.Windows:
			odd = append(odd, fmt.Sprintf("%s is of the system %q", n.Name, n.OS))
		}
	}
	if slices.Sort(odd); len(odd) > 0 {
		f.Status, f.Found = Failing, shorten(odd, 5)
		f.Fix = "find out what these nodes are, and remove labels that kubelets do not set themselves: what runs on them is not taken for proof"
	}
	c.add(f)
}

// usableNodes are those on which the e2e framework would put something,
// simulated or not.
func (c *checker) usableNodes() {
	usable := func(os specs.OS) (int, string) {
		all, simulated := c.cluster.Count(result.Usable(os)), c.cluster.Simulated(result.Usable(os))
		if simulated == 0 {
			return all, ""
		}
		return all, fmt.Sprintf(" (%d simulated)", simulated)
	}
	windows, note := usable(specs.Windows)
	f := Finding{ID: "windows-nodes", Group: groupNodes, Status: OK, How: "nodes", Concerns: []string{"2-win", "untainted-win"}}
	f.Found = "tests can use " + text.Count(windows, "Windows node") + note
	if windows < result.MinimumNodes {
		f.Status = Failing
		f.Fix = "the e2e framework uses only nodes without taints: take the taints off for the run, or add nodes"
	}
	if windows == 0 && (c.Steer == "cordon" || c.Steer == "off" || c.Steering.Err == nil && c.Steering.Value == "") {
		f.Concerns = append(f.Concerns, "pinned-win")
	}
	if c.cluster.Count(result.Is(specs.Windows)) == 0 {
		f.Refuses = true
		f.Found = "the cluster has no Windows node"
		f.Fix = "add 2 Windows nodes: nothing can be tested without"
	}
	c.add(f)
	linux, note := usable(specs.Linux)
	f = Finding{ID: "linux-worker", Group: groupNodes, Status: OK, How: "nodes", Concerns: []string{"linux-worker"}}
	f.Found = "tests can use " + text.Count(linux, "Linux worker") + note
	if linux == 0 {
		f.Status = Failing
		f.Fix = "add a Linux worker: traffic between the systems cannot be tested without"
	}
	c.add(f)
}

func (c *checker) readiness() {
	f := Finding{ID: "node-ready", Group: groupNodes, Status: OK, How: "nodes: condition Ready", Found: text.AllAre(len(c.Nodes.Value), "node") + " ready"}
	if bad := c.names(func(n *Node) bool { return !n.Ready }); len(bad) > 0 {
		f.Status = Warning
		f.Found = "not ready: " + shorten(bad, 5)
		f.Fix = fmt.Sprintf("the suite waits for them, and fails: repair or remove them, cordon them, or use run --allowed-not-ready-nodes %d", len(bad))
	}
	c.add(f)
}

// controlPlaneTaints do not make the suite wait.
var controlPlaneTaints = []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}

func (c *checker) taints() {
	byTaint := map[string][]string{}
	var keys []string
	for i := range c.Nodes.Value {
		n := &c.Nodes.Value[i]
		for _, t := range n.Taints {
			key, _, _ := strings.Cut(t, ":")
			key, _, _ = strings.Cut(key, "=")
			if n.Unschedulable || slices.Contains(controlPlaneTaints, key) {
				continue
			}
			byTaint[t] = append(byTaint[t], n.Name)
			if !strings.HasPrefix(key, "node.kubernetes.io/") && !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	f := Finding{ID: "node-taints", Group: groupNodes, Status: OK, How: "nodes: taints", Found: "none that keep pods away, but for control planes"}
	if len(byTaint) > 0 {
		f.Status = Warning
		var parts []string
		for t, names := range byTaint {
			slices.Sort(names)
			parts = append(parts, fmt.Sprintf("%s on %s", t, shorten(names, 3)))
		}
		slices.Sort(parts)
		slices.Sort(keys)
		f.Found = strings.Join(parts, "; ")
		f.Fix = "the suite waits for such nodes, and fails: take the taints off"
		if len(keys) > 0 {
			f.Fix += ", or use run --non-blocking-taints " + strings.Join(keys, ",")
		}
	}
	c.add(f)
	if cordoned := c.names(func(n *Node) bool { return n.Unschedulable }); len(cordoned) > 0 {
		c.add(Finding{ID: "node-cordoned", Group: groupNodes, Status: Warning, How: "nodes: unschedulable", Found: "cordoned: " + shorten(cordoned, 5), Fix: "kubectl uncordon them, if they are to be tested"})
	}
}

func (c *checker) windowsVersions() {
	f := Finding{ID: "windows-version", Group: groupNodes, Status: OK, How: "nodes: label node.kubernetes.io/windows-build", Concerns: []string{"cluster-windows-os-version"}}
	builds := map[string]int{}
	var unlabelled, foreign []string
	for i := range c.Nodes.Value {
		n := &c.Nodes.Value[i]
		_, accepted := specs.LookupWindowsBuild(n.WindowsBuild)
		switch {
		case !n.RealWindows():
		case n.WindowsBuild == "":
			unlabelled = append(unlabelled, n.Name)
		case !accepted:
			foreign = append(foreign, n.Name+" "+n.WindowsBuild)
			fallthrough
		default:
			builds[n.WindowsBuild]++
		}
	}
	var parts []string
	beyond := false
	for build, count := range builds {
		r, _ := specs.LookupWindowsBuild(build)
		beyond = beyond || !r.Standard
		parts = append(parts, fmt.Sprintf("%d with %s (Windows Server %s)", count, build, r.Year))
	}
	slices.Sort(parts)
	f.Found = strings.Join(parts, ", ")
	if beyond {
		f.Found += ": " + verdict.AcceptedReleases()
	}
	switch {
	case len(foreign) > 0:
		f.Status = Failing
		f.Found = strings.Join(foreign, ", ") + ": " + verdict.AcceptedReleases()
		f.Fix = "use nodes of these releases of Windows Server"
	case len(unlabelled) > 0:
		f.Status = Unknown
		f.Found = "without the label: " + shorten(unlabelled, 5)
		f.Fix = "find out why the kubelet did not set the label"
	case len(builds) == 0:
		f.Status = Unknown
		f.Found = c.noWindows()
	}
	c.add(f)
	c.supported(builds)
}

// noWindows says why nothing can be said of real Windows nodes.
func (c *checker) noWindows() string {
	if all := c.cluster.Count(result.Is(specs.Windows)); all > 0 {
		return text.AllAre(all, "Windows node") + " simulated"
	}
	return "the cluster has no Windows node"
}

// supported holds the releases against the documentation of the server's
// version.
func (c *checker) supported(builds map[string]int) {
	f := Finding{ID: "windows-version-supported", Group: groupNodes, Status: OK, How: "nodes, Kubernetes' documentation"}
	v, err := specs.ParseVersion(c.Version.Value)
	switch {
	case c.Version.Err != nil:
		c.unknown(f, c.Version.Err)
		return
	case err != nil:
		c.unknown(f, err)
		return
	case len(builds) == 0:
		f.Status, f.Found = Unknown, c.noWindows()
		c.add(f)
		return
	}
	documented := documentedReleases(v)
	var other []string
	for build := range builds {
		if r, _ := specs.LookupWindowsBuild(build); !slices.Contains(documented, r.Year) {
			other = append(other, cmp.Or(r.Year, build))
		}
	}
	slices.Sort(other)
	f.Found = fmt.Sprintf("Kubernetes %s documents Windows Server %s", v.MinorString(), strings.Join(documented, " and "))
	if len(other) > 0 {
		f.Status = Warning
		f.Found += ", the cluster has " + strings.Join(other, ", ")
		f.Fix = "prefer a documented pair: https://kubernetes.io/docs/concepts/windows/intro/#windows-os-version-support"
	}
	c.add(f)
}

// olderAllowed is how many minor versions older than the API server a kubelet or
// kube-proxy of a version may be; neither may be newer.
func olderAllowed(v specs.Version) int {
	if v.Major == 1 && v.Minor < 25 {
		return 2
	}
	return 3
}

// skewed reports whether a kubelet or kube-proxy is outside of the version skew
// policy.
func skewed(server, v specs.Version) bool {
	behind := server.Minor - v.Minor
	return v.Major != server.Major || behind < 0 || behind > olderAllowed(v)
}

// serverVersion is the API server's.
func (c *checker) serverVersion() (specs.Version, error) {
	if c.Version.Err != nil {
		return specs.Version{}, c.Version.Err
	}
	return specs.ParseVersion(c.Version.Value)
}

const skewFix = "upgrade: a %s is never newer than the API server, and at most 3 minor versions older: https://kubernetes.io/releases/version-skew-policy/"

func (c *checker) kubelets() {
	f := Finding{ID: "kubelet-skew", Group: groupNodes, Status: OK, How: "nodes: kubeletVersion"}
	server, err := c.serverVersion()
	if err != nil {
		c.unknown(f, err)
		return
	}
	var bad, mute []string
	versions := map[string]bool{}
	for i := range c.Nodes.Value {
		n := &c.Nodes.Value[i]
		v, err := specs.ParseVersion(n.KubeletVersion)
		if err != nil {
			mute = append(mute, n.Name)
			continue
		}
		versions[v.MinorString()] = true
		if skewed(server, v) {
			bad = append(bad, fmt.Sprintf("%s %s", n.Name, n.KubeletVersion))
		}
	}
	slices.Sort(bad)
	switch {
	case len(bad) > 0:
		f.Status = Warning
		f.Found = fmt.Sprintf("outside of the version skew policy for a server %s: %s", c.Version.Value, shorten(bad, 5))
		f.Fix = fmt.Sprintf(skewFix, "kubelet")
	case len(mute) > 0 || len(versions) == 0:
		f.Status = Unknown
		f.Found = "nodes without a version: " + shorten(mute, 5)
		if len(mute) == 0 {
			f.Found = "the cluster has no node"
		}
	default:
		f.Found = fmt.Sprintf("%s with a server %s", sortedKeys(versions), server.MinorString())
	}
	c.add(f)
}

func sortedKeys(set map[string]bool) string {
	var keys []string
	for k := range set {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return strings.Join(keys, ", ")
}

var imageVersion = regexp.MustCompile(`:(v\d+\.\d+\.\d+)`)

// kubeProxy takes the image of a DaemonSet for a hint. What nodes report as
// kubeProxyVersion is the kubelet's own, and gone since Kubernetes 1.33
// (https://kep.k8s.io/4004).
func (c *checker) kubeProxy() {
	f := Finding{ID: "kube-proxy-skew", Group: groupNodes, How: "DaemonSets: tags of images"}
	if c.DaemonSets.Err != nil {
		c.unknown(f, c.DaemonSets.Err)
		return
	}
	server, err := c.serverVersion()
	if err != nil {
		c.unknown(f, err)
		return
	}
	f.Status, f.Found = Unknown, "no DaemonSet kube-proxy shows its version"
	var parts []string
	for _, d := range c.DaemonSets.Value {
		if !strings.HasPrefix(d.Name, "kube-proxy") {
			continue
		}
		for _, image := range d.Images {
			m := imageVersion.FindStringSubmatch(image)
			if m == nil {
				continue
			}
			v, err := specs.ParseVersion(m[1])
			if err != nil {
				continue
			}
			parts = append(parts, d.Name+" "+m[1])
			if f.Status != Warning {
				f.Status = OK
			}
			if skewed(server, v) {
				f.Status = Warning
				f.Fix = fmt.Sprintf(skewFix, "kube-proxy")
			}
		}
	}
	if len(parts) > 0 {
		slices.Sort(parts)
		f.Found = strings.Join(parts, ", ") + " with a server " + server.MinorString()
	}
	c.add(f)
}

func (c *checker) containerRuntime() {
	f := Finding{ID: "container-runtime", Group: groupNodes, Status: OK, How: "nodes: containerRuntimeVersion"}
	versions := map[string]bool{}
	var other, mute []string
	for i := range c.Nodes.Value {
		n := &c.Nodes.Value[i]
		switch {
		case n.Simulated:
			continue
		case n.ContainerRuntime == "":
			mute = append(mute, n.Name)
			continue
		case n.OS == specs.Windows && !n.Containerd():
			other = append(other, n.Name)
		}
		versions[fmt.Sprintf("%s: %s", system(n.OS), n.ContainerRuntime)] = true
	}
	f.Found = sortedKeys(versions)
	switch {
	case len(other) > 0:
		f.Status = Warning
		f.Found += "; not containerd on " + shorten(other, 5)
		f.Fix = "HostProcess containers need containerd: install 1.7 or newer on Windows nodes"
	case len(mute) > 0:
		f.Status = Unknown
		f.Found = "nodes that do not say: " + shorten(mute, 5)
	case len(versions) == 0:
		f.Status = Unknown
		f.Found = text.AllAre(len(c.Nodes.Value), "node") + " simulated"
		if len(c.Nodes.Value) == 0 {
			f.Found = "the cluster has no node"
		}
	}
	c.add(f)
}

// memory is capacity against allocatable. Windows pages where Linux kills.
func (c *checker) memory() {
	f := Finding{ID: "windows-memory", Group: groupNodes, Status: OK, How: "nodes: memory capacity and allocatable"}
	var none, mute []string
	var least, most int64 = -1, 0
	for i := range c.Nodes.Value {
		n := &c.Nodes.Value[i]
		kept := n.Capacity - n.Allocatable
		switch {
		case !n.RealWindows():
			continue
		case n.Capacity == 0 || n.Allocatable == 0:
			mute = append(mute, n.Name)
			continue
		case kept <= 0:
			none = append(none, n.Name)
		}
		if least < 0 || kept < least {
			least = kept
		}
		most = max(most, kept)
	}
	slices.Sort(none)
	switch {
	case len(none) > 0:
		f.Status = Warning
		f.Found = "nothing kept back for Windows itself on " + shorten(none, 5)
		f.Fix = "set systemReserved or kubeReserved memory for the kubelet: Windows does not kill when memory runs out, it pages, and tests time out"
	case len(mute) > 0:
		f.Status, f.Found = Unknown, "nodes that do not say: "+shorten(mute, 5)
	case least < 0:
		f.Status, f.Found = Unknown, c.noWindows()
	default:
		const mebi = 1 << 20
		f.Found = fmt.Sprintf("%d MiB kept back on each Windows node", least/mebi)
		if most > least {
			f.Found = fmt.Sprintf("%d to %d MiB kept back on Windows nodes", least/mebi, most/mebi)
		}
	}
	c.add(f)
}
