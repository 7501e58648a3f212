package verdict

import (
	"fmt"
	"slices"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Declaration is a feature that the user says the cluster does not have
// (--without, --air-gapped).
type Declaration struct {
	Name string `json:"name"`
	// Yet is a fact of the API that says otherwise; "" where there is none.
	Yet string `json:"yet,omitempty"`
}

// String is the feature, and the fact beside it.
func (d Declaration) String() string {
	if d.Yet == "" {
		return harmless(d.Name)
	}
	return fmt.Sprintf("%s (yet %s)", harmless(d.Name), d.Yet)
}

// declarations are those of all executions of a run, by name.
func declarations(run *result.Run) []Declaration {
	yet := map[string]string{}
	var names []string
	for _, m := range run.Manifests() {
		declared := m.Declared.Without
		if m.Declared.AirGapped {
			declared = append(slices.Clone(declared), "internet")
		}
		for _, name := range declared {
			names = append(names, name)
			if fact := present(name, m); fact != "" {
				yet[name] = fact
			}
		}
	}
	slices.Sort(names)
	var out []Declaration
	for _, name := range slices.Compact(names) {
		out = append(out, Declaration{name, yet[name]})
	}
	return out
}

// present is the fact of the API that shows that a cluster has a feature; ""
// where none does.
func present(feature string, m *result.Manifest) string {
	facts := &m.Cluster
	nodes := func(keep func(*result.Node) bool, have string) string {
		switch n := facts.Count(keep); n {
		case 0:
			return ""
		case 1:
			return "1 node has " + have
		default:
			return fmt.Sprintf("%d nodes have %s", n, have)
		}
	}
	served := func(group string) string {
		if slices.Contains(facts.APIGroups, group) {
			return fmt.Sprintf("the API group %s is served", group)
		}
		return ""
	}
	switch feature {
	case "dual-stack":
		return nodes(result.HasTwoFamilies, "pod CIDRs of two families")
	case "gmsa":
		return served(result.GMSAGroup)
	case "metrics":
		return served(result.MetricsGroup)
	case "hpc":
		return nodes(func(n *result.Node) bool { return n.RealWindows() && n.Containerd() }, "containerd on Windows")
	case "hyperv":
		if slices.Contains(facts.RuntimeClasses, specs.HyperVClass) {
			return "there is a RuntimeClass " + specs.HyperVClass
		}
	}
	return ""
}

// maxDeclared is how many declarations are named: more than there are features.
const maxDeclared = 40

// AsDeclared says what was declared away: " without gmsa and hyperv, as
// declared"; "" where nothing was.
func (j *Judgement) AsDeclared() string {
	if len(j.Declared) == 0 {
		return ""
	}
	var names []string
	for i, d := range j.Declared {
		if i == maxDeclared {
			names = append(names, fmt.Sprintf("%d more", len(j.Declared)-i))
			break
		}
		names = append(names, d.String())
	}
	return " without " + text.And(names) + ", as declared"
}

// Words are the verdict where its scope is not beside it: "ready without gmsa, as
// declared", "ready (another standard)".
func (j *Judgement) Words() string {
	words := string(j.Verdict) + j.AsDeclared()
	if j.Scope.Standard != nil {
		words += " (another standard)"
	}
	return words
}
