package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/preflight/probe"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// ProbeTargets returns what pods can find something out about; none where the
// nodes are not known.
func (f *Facts) ProbeTargets() []probe.Target {
	var nodes []result.Node
	for i := range f.Nodes.Value {
		nodes = append(nodes, f.Nodes.Value[i].Node)
	}
	return probe.Targets(nodes)
}

// IsolationClasses are the names of the runtime classes that the standard's
// tests, or --runtime-class, may ask for, and that there are.
func (f *Facts) IsolationClasses() []string {
	var names []string
	for name, handler := range f.RuntimeClasses.Value {
		if isolation(handler) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// probes adds findings for what has no other than those of pods.
func (c *checker) probes() {
	f := c.probed(Finding{
		ID: "test-images", Group: groupRun, Concerns: []string{"containers"},
		Fix: "let the nodes reach the registries, or name a mirror with --kube-test-repo-list",
	}, probe.TestImages, "")
	if c.noWindowsPulls() {
		f.Refuses = true
	}
	c.add(f)
	if !c.without("dns") {
		c.add(c.probed(Finding{
			ID: "dns-answers", Group: groupNetwork, Concerns: []string{"dns"},
			Fix: "see why pods get no answer: the DNS pods, kube-proxy and the network of the nodes; see also --dns-domain",
		}, probe.DNS, ""))
	}
	if windows := c.cluster.Count((*result.Node).RealWindows); windows > 0 && !c.without("hpc") {
		c.add(c.probed(Finding{
			ID: "host-process-pod", Group: groupFeatures, Concerns: []string{"hpc"},
			Fix: "see why the pod does not start; say --without hpc when the cluster is not to have HostProcess containers",
		}, probe.HostProcess, ""))
	}
	for _, class := range c.IsolationClasses() {
		f := Finding{
			ID: "runtime-class-" + class, Group: groupFeatures,
			Fix: "see why pods of the class do not start, or remove the RuntimeClass",
		}
		if class == specs.HyperVClass {
			if c.without("hyperv") {
				continue
			}
			f.Concerns = []string{"hyperv"}
		}
		c.add(c.probed(f, probe.RuntimeClass, class))
	}
}

// noWindowsPulls reports whether no Windows node could get an image that tests
// need. Tests that pull with credentials may do what probes cannot.
func (c *checker) noWindowsPulls() bool {
	failed, all := 0, 0
	for i := range c.Probes.Results {
		if r := &c.Probes.Results[i]; r.Kind == probe.TestImages && r.OS == specs.Windows {
			all++
			if r.State == probe.Failed {
				failed++
			}
		}
	}
	return all > 0 && failed == all && !c.Probes.Credentials
}

// probed fills a finding with what probes of a kind have found out. The fix
// given is for when they failed.
func (c *checker) probed(f Finding, kind probe.Kind, class string) Finding {
	fix := f.Fix
	f.Status, f.How, f.Fix = Unknown, NotAsked, ""
	switch {
	case c.Nodes.Err != nil:
		f.Found = "not known: " + c.Nodes.Err.Error()
		return f
	case !c.Probes.Made:
		f.Found, f.Fix = "only pods can tell", "let pods find out: op-readiness preflight --probe"
		return f
	case c.Probes.Err != nil:
		f.How, f.Found = ByPods, "not known: "+c.Probes.Err.Error()
		f.Fix = "grant what the error names (the role: op-readiness preflight --print-rbac), or find the cause and ask again"
		return f
	}
	var parts []string
	count := map[probe.State]int{}
	windows := false
	for i := range c.Probes.Results {
		r := &c.Probes.Results[i]
		if r.Kind != kind || r.Class != class {
			continue
		}
		windows = windows || r.OS == specs.Windows
		count[r.State]++
		part := describeTarget(r)
		switch found := r.Found; {
		case r.State == probe.OK && found == "":
			part += ": ok"
		case r.State == probe.OK:
			part += ": " + found
		default:
			part += fmt.Sprintf(": %s: %s", r.State, found)
		}
		parts = append(parts, part)
	}
	if len(parts) > 0 {
		f.How = ByPods
	}
	switch all := c.cluster.Count(result.Is(specs.Windows)); {
	case windows:
	case all == 0:
		parts = append(parts, "the cluster has no Windows node")
	case c.cluster.Count((*result.Node).RealWindows) == 0:
		parts = append(parts, text.AllAre(all, "Windows node")+" simulated: not probed there")
	case slices.ContainsFunc(c.ProbeTargets(), func(t probe.Target) bool { return t.OS == specs.Windows }):
		parts = append(parts, "not probed: nothing that is selected needs it")
	default:
		parts = append(parts, "no Windows node is ready and not cordoned: not probed there")
	}
	switch {
	case count[probe.Failed] > 0:
		f.Status, f.Fix = Failing, fix
	case count[probe.Unknown] == 0 && windows:
		f.Status = OK
	}
	f.Found = strings.Join(parts, "; ")
	return f
}

func describeTarget(r *probe.Result) string {
	system := r.System()
	if release, ok := specs.LookupWindowsBuild(r.Build); ok {
		system = "Windows Server " + release.Year
	}
	if r.Node == "" {
		return system
	}
	return fmt.Sprintf("%s (%s)", system, r.Node)
}
