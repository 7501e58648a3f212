package preflight

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/preflight/probe"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

func (c *checker) network() {
	c.dns()
	c.internet()
	c.dualStack()
	c.networkPolicy()
}

func (c *checker) dns() {
	f := Finding{ID: "cluster-dns", Group: groupNetwork, Status: OK, How: "Service and EndpointSlices kube-system/kube-dns", Concerns: []string{"dns"}}
	const fix = "install a cluster DNS (CoreDNS) behind the Service kube-system/kube-dns: the tests of DNS ask for that name"
	switch {
	case c.without("dns"):
		f.Status, f.How, f.Found, f.Fix = Failing, Declared, "declared absent (--without dns)", fix
	case c.DNS.Err != nil:
		c.unknown(f, c.DNS.Err)
		return
	case !c.DNS.Value.Service:
		f.Status, f.Found, f.Fix = Failing, "there is no such Service", fix
	case c.DNS.Value.Ready == 0:
		f.Status, f.Found = Failing, "the Service has no endpoint that is ready"
		f.Fix = "see why the DNS pods are not ready: kubectl -n kube-system get pods -l k8s-app=kube-dns"
	default:
		f.Found = fmt.Sprintf("%d endpoints are ready", c.DNS.Value.Ready)
	}
	c.add(f)
}

func (c *checker) internet() {
	f := Finding{ID: "internet", Group: groupNetwork, Concerns: []string{"internet"}}
	switch {
	case c.Declared.AirGapped:
		c.declaredAbsent(f, "--air-gapped", "")
	case c.without("internet"):
		c.declaredAbsent(f, "--without internet", "")
	default:
		f.Fix = "let pods reach " + probe.Outside + ", as the tests do; or say --air-gapped when the cluster is to have no way to the internet"
		c.add(c.probed(f, probe.Internet, ""))
	}
}

func (c *checker) dualStack() {
	f := Finding{ID: "dual-stack", Group: groupNetwork, Status: OK, How: "nodes: podCIDRs; Service default/kubernetes: ipFamilies", Concerns: []string{"dual-stack"}}
	all, double := len(c.Nodes.Value), c.cluster.Count(result.HasTwoFamilies)
	primary := ""
	if c.Families.Err == nil {
		primary = " (" + strings.Join(c.Families.Value, ", ") + ")"
	}
	switch {
	case c.without("dual-stack"):
		if double > 0 {
			f.Status, f.How, f.Refuses = Failing, Declared, true
			f.Found = fmt.Sprintf("declared absent (--without dual-stack), but pod CIDRs of two families are on %s", text.Count(double, "node"))
			f.Fix = "leave --without dual-stack out: the network is dual-stack"
			c.add(f)
			return
		}
		c.declaredAbsent(f, "--without dual-stack", "")
		return
	case c.Nodes.Err != nil:
		c.unknown(f, c.Nodes.Err)
		return
	}
	switch c.cluster.Stack() {
	case result.SingleStack:
		f.Found = fmt.Sprintf("single-stack%s: every node has one pod CIDR; Extend.ServiceProxy is not asked", primary)
	case result.DualStack:
		f.Found = "dual-stack: every node has pod CIDRs of two families"
	case result.MixedStack:
		f.Status = Warning
		f.Found = fmt.Sprintf("%d of %d nodes have pod CIDRs of two families", double, all)
		f.Fix = "give every node both families, or none"
	default:
		f.Status = Unknown
		f.Found = fmt.Sprintf("%d of %d nodes have no pod CIDR: the network gives addresses in its own way", c.cluster.Count(result.HasNoFamily), all)
		f.Fix = "say --without dual-stack when pods get addresses of one family"
	}
	c.add(f)
}

// networks are recognised by the names of their DaemonSets. enforces says
// whether they can enforce NetworkPolicy; that they do on Windows, only tests
// show.
var networks = []struct {
	name     string
	daemon   *regexp.Regexp
	enforces bool
}{
	{"Antrea", regexp.MustCompile(`^antrea-agent`), true},
	{"AWS VPC CNI", regexp.MustCompile(`^aws-node`), true},
	{"Azure Network Policy Manager", regexp.MustCompile(`^azure-npm`), true},
	{"Calico", regexp.MustCompile(`^(calico-node|canal)`), true},
	{"Cilium", regexp.MustCompile(`^cilium$`), true},
	{"kube-router", regexp.MustCompile(`^kube-router`), true},
	{"OVN-Kubernetes", regexp.MustCompile(`^(ovnkube-node|ovn-kubernetes)`), true},
	{"Azure CNI", regexp.MustCompile(`^(azure-cns|azure-cni)`), false},
	{"Flannel", regexp.MustCompile(`^kube-flannel`), false},
	{"kindnet", regexp.MustCompile(`^kindnet`), true},
}

// networkNames are the networks that were recognised, sorted.
func (f *Facts) networkNames() []string {
	var names []string
	for _, d := range f.DaemonSets.Value {
		for _, n := range networks {
			if n.daemon.MatchString(d.Name) && !slices.Contains(names, n.name) {
				names = append(names, n.name)
			}
		}
	}
	slices.Sort(names)
	return names
}

func (c *checker) networkPolicy() {
	f := Finding{ID: "network-policy", Group: groupNetwork, Status: Unknown, How: "DaemonSets: names, a hint only", Concerns: []string{"netpol"}}
	if c.without("netpol") {
		c.declaredAbsent(f, "--without netpol", "")
		return
	}
	const declare = "say --without netpol when the network is not to enforce NetworkPolicy"
	if c.Probes.Made && c.Probes.Err == nil {
		f.Fix = "see why the network does not enforce policies, or " + declare
		if f = c.probed(f, probe.NetworkPolicy, ""); f.How == ByPods {
			c.add(f)
			return
		}
		f.Status, f.How = Unknown, "DaemonSets: names, a hint only"
	}
	if c.DaemonSets.Err != nil {
		c.unknown(f, c.DaemonSets.Err)
		return
	}
	var hints []string
	can := false
	for _, d := range c.DaemonSets.Value {
		for _, n := range networks {
			if n.daemon.MatchString(d.Name) {
				hints = append(hints, fmt.Sprintf("%s (%s/%s)", n.name, d.Namespace, d.Name))
				can = can || n.enforces
			}
		}
	}
	slices.Sort(hints)
	switch {
	case len(hints) == 0:
		f.Found = "no network was recognised; whether it enforces policies, the tests show"
		f.Fix = declare
	case can:
		f.Found = "it looks like " + strings.Join(hints, ", ") + ", which can enforce policies; that it does on Windows, the tests show"
	default:
		f.Status = Warning
		f.Found = "it looks like " + strings.Join(hints, ", ") + ", which does not enforce policies by itself"
		f.Fix = declare
	}
	c.add(f)
}

func (c *checker) features() {
	c.gmsa()
	c.hostProcess()
	c.runtimeClasses()
}

func (c *checker) gmsa() {
	f := Finding{ID: "gmsa", Group: groupFeatures, Status: OK, How: "API discovery", Concerns: []string{"gmsa"}}
	const apiGroup = result.GMSAGroup
	if c.without("gmsa") {
		fact := ""
		if slices.Contains(c.APIGroups.Value, apiGroup) {
			fact = apiGroup + " is served"
		}
		c.declaredAbsent(f, "--without gmsa", fact)
		return
	}
	if c.APIGroups.Err != nil {
		c.unknown(f, c.APIGroups.Err)
		return
	}
	if c.cluster.Lacks(apiGroup) {
		f.Found = apiGroup + " is not served: gMSA is not installed, and not asked"
		c.add(f)
		return
	}
	if len(c.APIGroups.Value) == 0 {
		c.unknown(f, errors.New("the API server lists no API groups"))
		return
	}
	f.Found = apiGroup + " is served, so gMSA is asked"
	c.add(f)

	f = Finding{ID: "gmsa-webhook", Group: groupFeatures, Status: OK, How: "webhook configurations: names", Concerns: []string{"gmsa"}}
	switch {
	case c.GMSAWebhooks.Err != nil:
		c.unknown(f, c.GMSAWebhooks.Err)
	case len(c.GMSAWebhooks.Value) == 0:
		f.Status = Warning
		f.Found = "none whose name has gmsa in it"
		f.Fix = "install the admission webhook: https://github.com/kubernetes-sigs/windows-gmsa"
		c.add(f)
	default:
		f.Found = strings.Join(c.GMSAWebhooks.Value, ", ")
		c.add(f)
	}

	f = Finding{ID: "gmsa-node", Group: groupFeatures, Status: OK, How: "nodes: label " + gmsaNodeLabel, Concerns: []string{"gmsa"}}
	names := c.names(func(n *Node) bool { return n.GMSA })
	switch {
	case c.Nodes.Err != nil:
		c.unknown(f, c.Nodes.Err)
		return
	case len(names) == 1:
		f.Found = names[0]
	default:
		f.Status = Warning
		f.Found = fmt.Sprintf("%d nodes have the label %s=%s, and the tests of gMSA skip themselves unless it is one", len(names), gmsaNodeLabel, gmsaNodeValue)
		f.Fix = fmt.Sprintf("label the one node that is prepared: kubectl label node NAME %s=%s", gmsaNodeLabel, gmsaNodeValue)
	}
	c.add(f)
}

var containerdVersion = regexp.MustCompile(`^containerd://v?(\d+)\.(\d+)`)

// hostProcess is judged from the runtime; the standard's tests of it ask for
// containerd 1.7.
func (c *checker) hostProcess() {
	f := Finding{ID: "host-process", Group: groupFeatures, Status: OK, How: "nodes: containerRuntimeVersion", Concerns: []string{"hpc", "containerd-1.7"}}
	if c.without("hpc") {
		f.Concerns = []string{"hpc"}
		c.declaredAbsent(f, "--without hpc", "")
		return
	}
	if c.Nodes.Err != nil {
		c.unknown(f, c.Nodes.Err)
		return
	}
	var old, other []string
	windows := 0
	for i := range c.Nodes.Value {
		n := &c.Nodes.Value[i]
		if !n.RealWindows() {
			continue
		}
		windows++
		m := containerdVersion.FindStringSubmatch(n.ContainerRuntime)
		if m == nil {
			other = append(other, n.Name)
			continue
		}
		major, _ := strconv.Atoi(m[1])
		minor, _ := strconv.Atoi(m[2])
		if major < 1 || major == 1 && minor < 7 {
			old = append(old, n.Name)
		}
	}
	switch {
	case windows == 0:
		f.Status, f.Found = Unknown, c.noWindows()
	case c.cluster.LacksHostProcess():
		f.Found = "no Windows node runs containerd: HostProcess containers are not asked"
	case len(other) > 0:
		f.Status = Warning
		f.Found = "not containerd, or not known, on " + shorten(other, 5)
		f.Fix = "install containerd 1.7 or newer on every Windows node"
	case len(old) > 0:
		f.Status = Warning
		f.Found = "containerd older than 1.7 on " + shorten(old, 5)
		f.Fix = "upgrade containerd: before 1.7, HostProcess containers mount volumes in another way than the tests expect"
	default:
		f.Found = "containerd 1.7 or newer on " + text.All(windows, "Windows node")
	}
	c.add(f)
}

// processIsolation and [specs.HyperVClass] are the handlers of runtime classes for
// Windows.
const processIsolation = "runhcs-wcow-process"

// isolation reports whether a runtime class's handler is one of containerd's for
// Windows, such as runhcs-wcow-hypervisor-20348.
func isolation(handler string) bool {
	return strings.HasPrefix(handler, processIsolation) || strings.HasPrefix(handler, specs.HyperVClass)
}

// askedClass is about the class that the run gives to pods.
func (c *checker) askedClass() {
	if c.RuntimeClass == "" || c.RuntimeClasses.Err != nil {
		return
	}
	f := Finding{ID: "runtime-class", Group: groupFeatures, Status: OK, How: "RuntimeClasses", Found: "there is one " + c.RuntimeClass}
	if _, ok := c.RuntimeClasses.Value[c.RuntimeClass]; !ok {
		there := slices.Sorted(maps.Keys(c.RuntimeClasses.Value))
		f.Status, f.Refuses = Failing, true
		f.Found = fmt.Sprintf("there is no runtime class %q; there are: %s", c.RuntimeClass, shorten(there, 10))
		if len(there) == 0 {
			f.Found = fmt.Sprintf("there is no runtime class %q, nor any other", c.RuntimeClass)
		}
		f.Fix = "name one that there is with --runtime-class, or make it"
	}
	c.add(f)
}

func (c *checker) runtimeClasses() {
	c.askedClass()
	f := Finding{ID: "runtime-classes", Group: groupFeatures, Status: OK, How: "RuntimeClasses", Concerns: []string{"hyperv"}}
	if c.RuntimeClasses.Err != nil {
		c.unknown(f, c.RuntimeClasses.Err)
		return
	}
	var there []string
	for name, handler := range c.RuntimeClasses.Value {
		if isolation(handler) {
			there = append(there, fmt.Sprintf("%s (%s)", name, handler))
		}
	}
	slices.Sort(there)
	if len(there) > 0 {
		f.Found = strings.Join(there, ", ")
	} else {
		f.Found = fmt.Sprintf("none for %s or %s; pods run in the runtime's own isolation", processIsolation, specs.HyperVClass)
	}
	if c.without("hyperv") {
		fact := ""
		if slices.Contains(c.cluster.RuntimeClasses, specs.HyperVClass) {
			fact = "the runtime class " + specs.HyperVClass + " is there"
		}
		c.declaredAbsent(f, "--without hyperv", fact)
		return
	}
	c.add(f)
}
