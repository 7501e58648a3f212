package verdict

import (
	"fmt"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
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

// Declared says which declaration keeps a case from being tested, whatever the
// cluster; "" where none does.
func Declared(c *result.PlannedCase, d *result.Declarations) string {
	for _, name := range slices.Concat(c.Needs.Condition, c.Needs.Means) {
		if reason := declared(name, d); reason != "" {
			return reason
		}
	}
	return ""
}

// declared says that the cluster was declared to be without a capability, or, of
// leave to reboot nodes, that it was not declared to give it; "" where neither is so.
func declared(name string, d *result.Declarations) string {
	switch {
	case name == "internet" && d.AirGapped:
		return "declared: the cluster is air-gapped (--air-gapped)"
	case slices.Contains(d.Without, name):
		return fmt.Sprintf("declared: the cluster is without %s (--without %[1]s)", name)
	case name == "reboot" && !d.Reboot:
		return "its tests reboot Windows nodes, and nobody has allowed them to (--allow-reboot)"
	}
	return ""
}

// absent says why the cluster does not have a feature of which the standard
// only speaks where it exists; "" where that is not known.
func absent(feature string, m *result.Manifest) string {
	if reason := declared(feature, &m.Declared); reason != "" {
		return reason
	}
	facts := &m.Cluster
	switch feature {
	case "dual-stack":
		if facts.Stack() == result.SingleStack {
			return "every node has a single pod CIDR: the cluster is not dual-stack"
		}
	case "gmsa":
		if facts.Lacks(result.GMSAGroup) {
			return fmt.Sprintf("the API group %s (GMSACredentialSpec) is not served: gMSA is not installed", result.GMSAGroup)
		}
	case "hpc":
		if facts.LacksHostProcess() {
			return "no Windows node runs containerd, which HostProcess containers need"
		}
	case "hyperv":
		if facts.LacksHyperV() {
			return fmt.Sprintf("there is no RuntimeClass %s", specs.HyperVClass)
		}
	}
	return ""
}

// lacking says why a means of testing is not at hand; "" where it is, or
// where only a test can tell.
func lacking(means string, m *result.Manifest) string {
	if reason := declared(means, &m.Declared); reason != "" {
		return reason
	}
	usable := func(os specs.OS) int { return m.Cluster.Count(result.Usable(os)) }
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
		if m.Cluster.Lacks(result.MetricsGroup) {
			return fmt.Sprintf("the API group %s is not served: there is no metrics server", result.MetricsGroup)
		}
	case "linux-worker":
		if usable(specs.Linux) == 0 {
			return "the cluster has no schedulable Linux worker"
		}
	case "untainted-win":
		if usable(specs.Windows) == 0 {
			return "every Windows node is tainted, cordoned or not ready, and the e2e framework places nothing there"
		}
	case "pinned-win":
		return keptOff(m)
	case "2-win":
		if n := usable(specs.Windows); n < result.MinimumNodes {
			return fmt.Sprintf("the cluster has %d schedulable Windows nodes, and the tests need %d", n, result.MinimumNodes)
		}
	}
	return ""
}

// keptOff says why pods that select Windows by themselves would stay pending; ""
// where a Windows node takes them. The steering policy gives them tolerations,
// but for taints by which Kubernetes says that a node is unwell.
func keptOff(m *result.Manifest) string {
	policy := m.Steering != "" && m.Steering != result.SteeringCordon
	takes := func(n *result.Node) bool {
		return n.OS == specs.Windows && n.Ready && !n.Unschedulable && !slices.ContainsFunc(n.Taints, func(taint string) bool {
			return !policy || strings.HasPrefix(taint, "node.kubernetes.io/") || strings.HasPrefix(taint, "node.cloudprovider.kubernetes.io/")
		})
	}
	switch {
	case m.Cluster.Count(takes) > 0:
		return ""
	case policy:
		return "every Windows node is cordoned or not ready, and its pods, which select Windows, would stay pending"
	}
	return "every Windows node is tainted, cordoned or not ready, and its pods, which select Windows, get no toleration; --steer=policy gives them one (Kubernetes 1.36)"
}

// beyondCordon says which of a case's conditions cannot be met by cordoning the
// nodes of the other operating system; "" where all can.
func beyondCordon(c *result.PlannedCase, m *result.Manifest) string {
	const fix = "; --steer=policy can (Kubernetes 1.36)"
	conditions := result.ConditionsOf(c.Conditions)
	steer := conditions.Steer
	other := map[specs.OS]specs.OS{specs.Windows: specs.Linux, specs.Linux: specs.Windows}[steer]
	switch {
	case conditions.RuntimeClass != "":
		return fmt.Sprintf("cordoning nodes does not give its pods runtime class %s%s", conditions.RuntimeClass, fix)
	case conditions.SteerPods != "":
		return fmt.Sprintf("only its pods %q are to be on %s, and cordoning nodes cannot tell pods apart%s", conditions.SteerPods, systemName(steer), fix)
	case slices.ContainsFunc(c.Conditions.Placement, func(p specs.Placement) bool { return slices.Contains(p.Systems(), other) }),
		other == specs.Linux && slices.Contains(c.Needs.Means, "linux-worker"):
		return fmt.Sprintf("it needs pods on %s beside those on %s, and every %[1]s node would be cordoned%s", systemName(other), systemName(steer), fix)
	case m.Cluster.Count(func(n *result.Node) bool { return n.OS == steer && n.Schedulable() }) == 0:
		return fmt.Sprintf("every %s node is tainted, cordoned or not ready, and steering by cordon gives pods no toleration%s", systemName(steer), fix)
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
		nodes, simulated := m.Cluster.Count(result.Is(os)), m.Cluster.Simulated(result.Is(os))
		system := ""
		if os != specs.AnyOS {
			system = systemName(os) + " "
		}
		switch nodes {
		case 0:
			return fmt.Sprintf("the cluster has no %snode, and the case needs containers that run", system)
		case simulated:
			return text.AllAre(nodes, system+"node") + " simulated, and the case needs containers that run"
		}
	}
	return ""
}
