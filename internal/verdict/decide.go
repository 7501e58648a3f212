package verdict

import (
	"fmt"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/result"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Decide says whether a case is to be tested on the cluster that the manifest
// describes: "" when it is, otherwise the outcome that it has without a test,
// and why.
//
// [NotApplicable] needs a fact of the API or a declaration. What is merely
// unknown never excuses a requirement.
func Decide(c *result.PlannedCase, m *result.Manifest) (Outcome, string) {
	if c.Kind == specs.Rule {
		return "", ""
	}
	for _, feature := range c.Needs.Condition {
		if reason := absent(feature, m); reason != "" {
			return NotApplicable, reason
		}
	}
	if c.Proof == specs.ProofNone {
		return NotImplemented, c.Missing
	}
	if c.Excluded != "" {
		return NotTested, c.Excluded
	}
	if reason := nowhereToRun(c, m); reason != "" {
		return NotTested, reason
	}
	if conditions := result.ConditionsOf(c.Conditions); conditions != (result.RunConditions{}) {
		switch m.Steering {
		case "":
			return NotTested, lacking("steer", m)
		case result.SteeringCordon:
			if reason := beyondCordon(c, m); reason != "" {
				return NotTested, reason
			}
		}
	}
	for _, means := range c.Needs.Means {
		if reason := lacking(means, m); reason != "" {
			return NotTested, reason
		}
	}
	return "", ""
}

const declaredAirGapped = "declared: the cluster is air-gapped (--air-gapped)"

// absent says why the cluster does not have a feature of which the standard
// only speaks where it exists; "" where that is not known.
func absent(feature string, m *result.Manifest) string {
	if feature == "internet" && m.Declared.AirGapped {
		return declaredAirGapped
	}
	if slices.Contains(m.Declared.Without, feature) {
		return fmt.Sprintf("declared: the cluster is without %s (--without %s)", feature, feature)
	}
	facts := &m.Cluster
	switch feature {
	case "dual-stack":
		single := func(n *result.Node) bool { return len(n.PodCIDRs) == 1 && n.PodCIDRs[0] != "" }
		if len(facts.Nodes) > 0 && facts.Count(single) == len(facts.Nodes) {
			return "every node has a single pod CIDR: the cluster is not dual-stack"
		}
	case "gmsa":
		if len(facts.APIGroups) > 0 && !slices.Contains(facts.APIGroups, "windows.k8s.io") {
			return "the API group windows.k8s.io (GMSACredentialSpec) is not served: gMSA is not installed"
		}
	case "hpc":
		windows := func(n *result.Node) bool { return n.OS == specs.Windows }
		other := func(n *result.Node) bool {
			return windows(n) && n.ContainerRuntime != "" && !strings.HasPrefix(n.ContainerRuntime, "containerd://")
		}
		if count := facts.Count(windows); count > 0 && facts.Count(other) == count {
			return "no Windows node runs containerd, which HostProcess containers need"
		}
	case "hyperv":
		const class = "runhcs-wcow-hypervisor"
		if facts.RuntimeClasses != nil && !slices.Contains(facts.RuntimeClasses, class) {
			return fmt.Sprintf("there is no RuntimeClass %s", class)
		}
	}
	return ""
}

// lacking says why a means of testing is not at hand; "" where it is, or
// where only a test can tell.
func lacking(means string, m *result.Manifest) string {
	if slices.Contains(m.Declared.Without, means) {
		return fmt.Sprintf("declared: the cluster is without %s (--without %s)", means, means)
	}
	if means == "internet" && m.Declared.AirGapped {
		return declaredAirGapped
	}
	count := func(os specs.OS, worker bool) int {
		return m.Cluster.Count(func(n *result.Node) bool {
			return n.OS == os && n.Schedulable() && (!worker || !n.ControlPlane)
		})
	}
	switch means {
	case "kubectl":
		if m.Kubectl == "" {
			return "no kubectl was found, which its tests run: put one on the path or name it with --kubectl"
		}
	case "steer":
		if m.Steering == "" {
			return "its pods say nothing about their operating system, and were not steered to Windows"
		}
	case "metrics":
		if groups := m.Cluster.APIGroups; len(groups) > 0 && !slices.Contains(groups, "metrics.k8s.io") {
			return "the API group metrics.k8s.io is not served: there is no metrics server"
		}
	case "linux-worker":
		if count(specs.Linux, true) == 0 {
			return "the cluster has no schedulable Linux worker"
		}
	case "untainted-win":
		if count(specs.Windows, false) == 0 {
			return "every Windows node is tainted, cordoned or not ready, and the e2e framework places nothing there"
		}
	case "2-win":
		if n := count(specs.Windows, false); n < 2 {
			return fmt.Sprintf("the cluster has %d schedulable Windows nodes, and the tests need 2", n)
		}
	}
	return ""
}

// beyondCordon says which of a case's conditions cannot be met by cordoning the
// nodes of the other operating system; "" where all can.
func beyondCordon(c *result.PlannedCase, m *result.Manifest) string {
	const mend = "; --steer=policy can (Kubernetes 1.36)"
	conditions := result.ConditionsOf(c.Conditions)
	steer := conditions.Steer
	other := map[specs.OS]specs.OS{specs.Windows: specs.Linux, specs.Linux: specs.Windows}[steer]
	switch {
	case conditions.RuntimeClass != "":
		return fmt.Sprintf("cordoning nodes does not give its pods runtime class %s%s", conditions.RuntimeClass, mend)
	case conditions.SteerPods != "":
		return fmt.Sprintf("only its pods %q are to be on %s, and cordoning nodes cannot tell pods apart%s", conditions.SteerPods, systemName(steer), mend)
	case slices.ContainsFunc(c.Conditions.Placement, func(p specs.Placement) bool { return slices.Contains(p.Systems(), other) }),
		other == specs.Linux && slices.Contains(c.Needs.Means, "linux-worker"):
		return fmt.Sprintf("it needs pods on %s beside those on %s, and every %[1]s node would be cordoned%s", systemName(other), systemName(steer), mend)
	case m.Cluster.Count(func(n *result.Node) bool { return n.OS == steer && n.Schedulable() }) == 0:
		return fmt.Sprintf("every %s node is tainted, cordoned or not ready, and steering by cordon gives pods no toleration%s", systemName(steer), mend)
	}
	return ""
}

// nowhereToRun says which role of a case that needs running containers has no
// real node.
func nowhereToRun(c *result.PlannedCase, m *result.Manifest) string {
	if !c.NeedsContainers() {
		return ""
	}
	roles := []specs.OS{}
	for _, p := range c.Conditions.Placement {
		roles = append(roles, p.Systems()...)
	}
	if len(roles) == 0 {
		roles = append(roles, specs.AnyOS)
	}
	for _, os := range roles {
		on := func(n *result.Node) bool { return os == specs.AnyOS || n.OS == os }
		nodes := m.Cluster.Count(on)
		simulated := m.Cluster.Count(func(n *result.Node) bool { return on(n) && n.Simulated })
		system := ""
		if os != specs.AnyOS {
			system = systemName(os) + " "
		}
		switch nodes {
		case 0:
			return fmt.Sprintf("the cluster has no %snode, and the case needs containers that run", system)
		case simulated:
			return fmt.Sprintf("all %d %snodes are simulated, and the case needs containers that run", nodes, system)
		}
	}
	return ""
}
