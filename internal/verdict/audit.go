package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/result"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// standardImages may be used by Windows workloads of any case.
var standardImages = []string{"agnhost", "pause"}

// audit checks that what passed also proves something: every role was seen
// where the case wants it, and with images that the standard allows.
func audit(c *CaseResult) {
	var problems []string
	var all []result.Pod
	demands := len(c.Case.Conditions.Placement) > 0 || c.Case.Conditions.RuntimeClass != ""
	for _, t := range c.Tests {
		last := t.Observed[len(t.Observed)-1]
		all = append(all, last.Pods...)
		problems = append(problems, misplaced(c.Case, last.Pods)...)
		if last.Unobserved != "" && demands {
			problems = append(problems, "its pods may not all have been seen: "+last.Unobserved)
		}
	}
	c.Images = foreignImages(c.Case, all)
	// The rule for images is the standard's, for its requirements.
	if len(c.Images) > 0 && c.Case.Kind == specs.Requirement && c.Case.Proof == specs.ProofFull {
		problems = append(problems, "it claims full proof with images that the standard does not allow for Windows: "+strings.Join(c.Images, ", "))
	}
	if len(problems) > 0 {
		c.Outcome = Unproven
		c.Reason = strings.Join(distinct(problems), "; ")
	}
}

// distinct returns the texts in their order, each once.
func distinct(texts []string) []string {
	var out []string
	for _, t := range texts {
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

var systemNames = map[specs.OS]string{specs.Windows: "Windows", specs.Linux: "Linux"}

// systemName names an operating system for people.
func systemName(os specs.OS) string { return cmp.Or(systemNames[os], string(os)) }

// misplaced says which roles of a case's placement were not seen where they
// belong, and whether its pods ran under the runtime class that it asks for.
func misplaced(c *result.PlannedCase, pods []result.Pod) []string {
	var problems []string
	class := c.Conditions.RuntimeClass
	if class != "" && !slices.ContainsFunc(pods, func(p result.Pod) bool { return p.Node != "" && p.RuntimeClass == class }) {
		problems = append(problems, "no pod was observed with runtime class "+class)
	}
	needsContainers := c.NeedsContainers()
	for _, role := range c.Conditions.Placement {
		re, err := regexp.Compile(role.Pods)
		if err != nil {
			problems = append(problems, fmt.Sprintf("placement of pods %q: %v", role.Pods, err))
			continue
		}
		seen := map[specs.OS]int{}
		for _, p := range pods {
			// A pod that never was on a node proves nothing either way.
			if p.Node == "" || !re.MatchString(p.Name) {
				continue
			}
			switch {
			case p.Simulated && needsContainers:
				problems = append(problems, fmt.Sprintf("pod %s was on node %s, which is simulated", p.Name, p.Node))
			case needsContainers && !ran(p):
				problems = append(problems, fmt.Sprintf("pod %s was not seen running on node %s", p.Name, p.Node))
			case role.OS == specs.AnyOS, p.OS == role.OS:
				seen[p.OS]++
			case p.OS == "":
				problems = append(problems, fmt.Sprintf("pod %s ran on node %s, whose operating system was not observed", p.Name, p.Node))
			default:
				problems = append(problems, fmt.Sprintf("pod %s ran on %s, and the case wants it on %s", p.Name, systemName(p.OS), systemName(role.OS)))
			}
		}
		for _, os := range role.Systems() {
			if seen[os] == 0 {
				problems = append(problems, fmt.Sprintf("no pod %q was observed on %s", role.Pods, systemName(os)))
			}
		}
		if len(role.Systems()) == 0 && len(seen) == 0 {
			problems = append(problems, fmt.Sprintf("no pod %q was observed", role.Pods))
		}
	}
	return problems
}

// ran reports whether a container of the pod has run.
func ran(p result.Pod) bool {
	return slices.ContainsFunc(p.Phases, func(phase string) bool {
		return phase == "Running" || phase == "Succeeded" || phase == "Failed"
	})
}

// foreignImages lists the images of pods on Windows that neither the standard
// nor the case allows. A node of unknown system may be a Windows node.
func foreignImages(c *result.PlannedCase, pods []result.Pod) []string {
	allowed := slices.Clone(standardImages)
	for _, e := range c.Images {
		allowed = append(allowed, e.Image)
	}
	foreign := map[string]bool{}
	for _, p := range pods {
		if p.Node == "" || p.OS == specs.Linux {
			continue
		}
		for _, image := range p.Images {
			if !slices.Contains(allowed, imageName(image)) {
				foreign[image] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(foreign))
}

// imageName takes registry, tag and digest off an image's reference.
func imageName(ref string) string {
	ref, _, _ = strings.Cut(ref, "@")
	ref = ref[strings.LastIndexByte(ref, '/')+1:]
	name, _, _ := strings.Cut(ref, ":")
	return name
}
