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
func (j *judge) audit(c *CaseResult) {
	var problems []string
	var all []result.Pod
	for _, t := range c.Tests {
		last := t.Attempts[len(t.Attempts)-1]
		pods := j.pods(t.Test.ID, last.Attempt)
		all = append(all, pods...)
		problems = append(problems, misplaced(c.Case, pods)...)
		if last.Unobserved != "" && len(c.Case.Conditions.Placement) > 0 {
			problems = append(problems, "its pods may not all have been seen: "+last.Unobserved)
		}
	}
	c.Evidence = describe(all)
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

// pods returns the pods of one attempt of a test. A pod that was deleted and
// made again under its name is there twice: what the first one showed counts.
func (j *judge) pods(id string, attempt int) []result.Pod {
	var out []result.Pod
	for _, p := range j.run.Pods {
		if p.Test == id && p.Attempt == attempt {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b result.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
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

// describe tells where pods ran: "4 pods: 3 on Windows 10.0.20348, 1 on Linux".
func describe(pods []result.Pod) string {
	if len(pods) == 0 {
		return ""
	}
	counts := map[string]int{}
	for _, p := range pods {
		where := "on no node"
		switch p.OS {
		case specs.Windows:
			where = strings.TrimSpace("on Windows " + p.WindowsBuild)
		case specs.Linux:
			where = "on Linux"
		}
		if p.Simulated {
			where += " (simulated)"
		}
		counts[where]++
	}
	parts := []string{}
	for _, where := range slices.Backward(slices.Sorted(maps.Keys(counts))) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[where], where))
	}
	if len(pods) == 1 {
		return "1 pod, " + strings.TrimPrefix(parts[0], "1 ")
	}
	return fmt.Sprintf("%d pods: %s", len(pods), strings.Join(parts, ", "))
}
