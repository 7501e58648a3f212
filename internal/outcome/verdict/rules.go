package verdict

import (
	"fmt"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// The built-in checks that cluster rules name ([specs.Case.Check]).
const (
	CheckLinuxConformance   = "linux-conformance"
	CheckCoreConformance    = "core-conformance"
	CheckFeatureConformance = "feature-conformance"
	CheckNodeCount          = "node-count"
	CheckWindowsVersion     = "windows-version"
	CheckTestImages         = "agnhost-images"
	CheckCoreImages         = "core-images"
)

// sumsUp reports whether a check speaks about the results of other cases.
func sumsUp(check string) bool {
	switch check {
	case CheckCoreConformance, CheckFeatureConformance, CheckTestImages, CheckCoreImages:
		return true
	}
	return false
}

// rule judges a rule from facts, evidence and the results of the other cases.
func (j *judge) rule(c *result.PlannedCase, cases []CaseResult, tested []CategoryResult) CaseResult {
	out := CaseResult{Case: c}
	switch c.Check {
	case CheckLinuxConformance:
		out.Outcome, out.Reason = j.imported(c)
	case CheckCoreConformance:
		out.Outcome, out.Reason = sumUp(tested, specs.Category.Core)
	case CheckFeatureConformance:
		out.Outcome, out.Reason = sumUp(tested, func(c specs.Category) bool { return !c.Core() })
	case CheckNodeCount:
		out.Outcome, out.Reason = j.everywhere(nodeCount)
	case CheckWindowsVersion:
		out.Outcome, out.Reason = j.everywhere(windowsVersion)
		if later := j.joined(); len(later.Nodes) > 0 {
			if o, reason := windowsVersion(later); reason != "" && (severity(o) > severity(out.Outcome) || o == out.Outcome && out.Reason == "") {
				out.Outcome, out.Reason = o, "pods were on nodes that joined later: "+reason
			}
		}
	case CheckTestImages:
		out.Outcome, out.Reason = images(cases, func(specs.Category) bool { return true })
	case CheckCoreImages:
		out.Outcome, out.Reason = images(cases, specs.Category.Core)
	default:
		out.Outcome, out.Reason = NotImplemented, c.Missing
	}
	return out
}

// imported is the outcome of a rule that was decided from something the user
// brought.
func (j *judge) imported(c *result.PlannedCase) (Outcome, string) {
	d, ok := j.run.Decisions[c.ID]
	if !ok {
		return NotTested, "no JUnit of a Linux conformance run was given (--conformance-junit)"
	}
	switch o := Outcome(d.Outcome); o {
	case Passed, Failed, Error:
		return o, d.Reason
	}
	return Error, fmt.Sprintf("the results folder has an outcome %q for it", d.Outcome)
}

// sumUp sums the gating categories up for which of holds. A Core category in
// which nothing was tested is as open as one that is inconclusive.
func sumUp(categories []CategoryResult, of func(specs.Category) bool) (Outcome, string) {
	var failed, open []string
	ready := 0
	for _, c := range categories {
		if !c.Gates || !of(c.Category) {
			continue
		}
		switch {
		case c.Verdict == Ready:
			ready++
		case c.Verdict == NotReady:
			failed = append(failed, string(c.Category))
		case c.Verdict == Inconclusive, c.Category.Core():
			open = append(open, string(c.Category))
		}
	}
	switch {
	case len(failed) > 0:
		return Failed, "not ready: " + strings.Join(failed, ", ")
	case len(open) > 0:
		return NotTested, "inconclusive: " + strings.Join(open, ", ")
	case ready == 0:
		return NotApplicable, "nothing of these categories is asked of this cluster"
	}
	return Passed, ""
}

// everywhere judges a rule by the facts of every cluster that the results come
// from, and returns the worst answer.
func (j *judge) everywhere(rule func(*result.Facts) (Outcome, string)) (Outcome, string) {
	manifests := j.run.Manifests()
	worst, why := rule(&manifests[0].Cluster)
	for _, m := range manifests[1:] {
		if o, reason := rule(&m.Cluster); severity(o) > severity(worst) {
			worst, why = o, fmt.Sprintf("the cluster of shard %d: %s", m.Shard, reason)
		}
	}
	return worst, why
}

func nodeCount(f *result.Facts) (Outcome, string) {
	var missing []string
	enough := true
	for _, os := range []specs.OS{specs.Linux, specs.Windows} {
		schedulable := func(n *result.Node) bool { return n.OS == os && n.Schedulable() }
		all := f.Count(schedulable)
		if f.Count(result.Counting(os)) < result.MinimumNodes {
			missing = append(missing, fmt.Sprintf("%s (%d simulated)", text.Count(all, "schedulable "+systemName(os)+" node"), f.Simulated(schedulable)))
		}
		enough = enough && all >= result.MinimumNodes
	}
	switch {
	case len(missing) == 0:
		return Passed, ""
	case enough:
		return NotTested, "simulated nodes do not count: " + strings.Join(missing, ", ")
	}
	return Failed, fmt.Sprintf("the standard asks for %d of each: %s", result.MinimumNodes, strings.Join(missing, ", "))
}

// AcceptedReleases tells which releases of Windows Server the standard names,
// and why others are accepted.
func AcceptedReleases() string {
	var named, more []string
	for _, r := range specs.WindowsReleases() {
		if r.Standard {
			named = append(named, r.Year)
		} else {
			more = append(more, r.Year)
		}
	}
	return fmt.Sprintf("the standard names %s; %s is accepted because Kubernetes publishes its test images for it",
		strings.Join(named, " and "), strings.Join(more, " and "))
}

// joined are the real Windows nodes that pods were on and that the facts, read before
// the tests, do not have.
func (j *judge) joined() *result.Facts {
	type node struct {
		shard       int
		name, build string
	}
	known := map[node]bool{}
	for _, m := range j.run.Manifests() {
		for i := range m.Cluster.Nodes {
			known[node{shard: m.Shard, name: m.Cluster.Nodes[i].Name}] = true
		}
	}
	later := &result.Facts{}
	for i := range j.run.Pods {
		p := &j.run.Pods[i]
		n := result.Node{Name: p.Node, OS: p.OS, WindowsBuild: p.WindowsBuild, Simulated: p.Simulated}
		test := j.byID[p.Test]
		if test == nil || p.Node == "" || !n.RealWindows() {
			continue
		}
		key := node{shard: test.Shard, name: p.Node}
		if one := j.run.ManifestOf(test.Shard); one != nil {
			key.shard = one.Shard
		}
		seen := node{key.shard, p.Node, "on " + p.WindowsBuild}
		if !known[key] && !known[seen] {
			known[seen] = true
			later.Nodes = append(later.Nodes, n)
		}
	}
	return later
}

func windowsVersion(f *result.Facts) (Outcome, string) {
	var unknown, unsupported []string
	found, beyond := false, false
	for i := range f.Nodes {
		n := &f.Nodes[i]
		if !n.RealWindows() {
			continue
		}
		switch release, ok := specs.LookupWindowsBuild(n.WindowsBuild); {
		case n.WindowsBuild == "":
			unknown = append(unknown, n.Name)
		case !ok:
			unsupported = append(unsupported, n.Name+" runs "+n.WindowsBuild)
		default:
			found, beyond = true, beyond || !release.Standard
		}
	}
	simulated := f.Simulated(result.Is(specs.Windows))
	switch {
	case len(unsupported) > 0:
		return Failed, fmt.Sprintf("%s: %s", AcceptedReleases(), strings.Join(unsupported, ", "))
	case len(unknown) > 0:
		return NotTested, "nodes without the label node.kubernetes.io/windows-build: " + strings.Join(unknown, ", ")
	case beyond:
		return Passed, AcceptedReleases()
	case found:
		return Passed, ""
	case simulated > 0:
		return NotTested, text.AllAre(simulated, "Windows node") + " simulated"
	}
	return Failed, "the cluster has no Windows node"
}

// images checks that every Windows pod that was observed used an image that
// the standard allows, in the gating categories for which of holds.
func images(cases []CaseResult, of func(specs.Category) bool) (Outcome, string) {
	var breaches []string
	observed, good := 0, 0
	for i := range cases {
		c := &cases[i]
		if c.Case.Kind != specs.Requirement || !c.Case.Gates() || !of(c.Case.Category) {
			continue
		}
		if len(c.Images) > 0 && c.Case.Proof == specs.ProofFull {
			breaches = append(breaches, c.Case.ID)
		}
		if len(c.Tests) > 0 && (c.Outcome.Good() || c.Outcome == Unproven) {
			good++
			if c.Evidence != "" {
				observed++
			}
		}
	}
	slices.Sort(breaches)
	switch {
	case len(breaches) > 0:
		return Unproven, "other images were used: " + strings.Join(breaches, ", ")
	case good == 0 || observed < good:
		return NotTested, fmt.Sprintf("the pods of %d of %d passing cases were observed", observed, good)
	}
	return Passed, ""
}
