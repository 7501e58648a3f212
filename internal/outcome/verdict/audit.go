package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// standardImages may be used by Windows workloads of any case.
var standardImages = []string{"agnhost", "pause"}

// audit checks that what passed also proves something: every role was seen
// where the case wants it, and with images that the standard allows.
func audit(c *CaseResult) {
	var found problems
	roles := rolesOf(c.Case, &found)
	demands := len(c.Case.Conditions.Placement) > 0 || c.Case.Conditions.RuntimeClass != ""
	for _, t := range c.Tests {
		last := t.Observed[len(t.Observed)-1]
		misplaced(c.Case, roles, last.Pods, &found)
		nameless(t.Test.Name, last.Pods, &found)
		if last.Unobserved != "" && demands {
			found.add("its pods may not all have been seen: " + last.Unobserved)
		}
	}
	c.Images = foreignImages(c)
	// The rule for images is the standard's, for its requirements.
	if len(c.Images) > 0 && c.Case.Kind == specs.Requirement && c.Case.Proof == specs.ProofFull {
		found.add("it claims full proof with images that the standard does not allow for Windows: " + text.Few(c.Images, maxProblems))
	}
	if len(found.texts) > 0 {
		c.Outcome = Unproven
		c.Reason = found.String()
	}
}

// How many problems of a case are named, and how many of the pods of one role
// in one test: there may be hundreds of thousands.
const (
	maxProblems = 20
	maxPods     = 3
)

// problems are what an audit found, in that order, each once, and as many as can
// be read.
type problems struct {
	texts []string
	more  int
}

func (p *problems) add(text string) {
	switch {
	case slices.Contains(p.texts, text):
	case len(p.texts) == maxProblems:
		p.more++
	default:
		p.texts = append(p.texts, text)
	}
}

func (p *problems) String() string {
	text := strings.Join(p.texts, "; ")
	if p.more > 0 {
		text += fmt.Sprintf("; and %d more", p.more)
	}
	return text
}

var systemNames = map[specs.OS]string{specs.Windows: "Windows", specs.Linux: "Linux"}

// systemName names an operating system for people.
func systemName(os specs.OS) string { return cmp.Or(systemNames[os], string(os)) }

// role is a placement whose pods can be told.
type role struct {
	specs.Placement
	names *regexp.Regexp
}

func rolesOf(c *result.PlannedCase, found *problems) []role {
	var roles []role
	for _, p := range c.Conditions.Placement {
		re, err := regexp.Compile(p.Pods)
		if err != nil {
			found.add(fmt.Sprintf("placement of pods %q: %v", p.Pods, err))
			continue
		}
		roles = append(roles, role{p, re})
	}
	return roles
}

// misplaced says which roles of a case's placement were not seen where they
// belong in one of its tests, and whether its pods ran under the runtime class
// that it asks for.
func misplaced(c *result.PlannedCase, roles []role, pods []result.Pod, found *problems) {
	class := c.Conditions.RuntimeClass
	if class != "" && !slices.ContainsFunc(pods, func(p result.Pod) bool { return p.Node != "" && p.RuntimeClass == class }) {
		found.add("no pod was observed with runtime class " + class)
	}
	containers := c.NeedsContainers()
	for _, r := range roles {
		seen := map[specs.OS]bool{}
		wrong := 0
		for i := range pods {
			p := &pods[i]
			if !r.names.MatchString(p.Name) {
				continue
			}
			switch problem := r.wrong(p, containers); {
			case problem == "" && (p.Node != "" || r.NeverStarts):
				seen[p.OS] = true
			case problem == "": // a pod that never was on a node proves nothing
			default:
				if wrong++; wrong <= maxPods {
					found.add(problem)
				}
			}
		}
		if wrong > maxPods {
			found.add(fmt.Sprintf("and %d more pods %q", wrong-maxPods, r.Pods))
		}
		for _, os := range r.Systems() {
			if !seen[os] {
				found.add(fmt.Sprintf("no pod %q was observed on %s", r.Pods, systemName(os)))
			}
		}
		if len(r.Systems()) == 0 && len(seen) == 0 {
			found.add(fmt.Sprintf("no pod %q was observed", r.Pods))
		}
	}
}

// wrong says what is wrong with a pod of the role; "" where nothing is.
// containers says that the case needs containers that run.
func (r *role) wrong(p *result.Pod, containers bool) string {
	switch {
	case r.NeverStarts && p.Started:
		return fmt.Sprintf("pod %s started on node %s, and it must not", p.Name, p.Node)
	case p.Node == "":
		return ""
	case p.Simulated && containers:
		return fmt.Sprintf("pod %s was on node %s, which is simulated", p.Name, p.Node)
	case containers && !p.Started && !r.NeverStarts:
		return fmt.Sprintf("pod %s was not seen running on node %s", p.Name, p.Node)
	case r.OS == specs.AnyOS, p.OS == r.OS:
		return ""
	case p.OS == "":
		return fmt.Sprintf("pod %s ran on node %s, whose operating system was not observed", p.Name, p.Node)
	}
	return fmt.Sprintf("pod %s ran on %s, and the case wants it on %s", p.Name, systemName(p.OS), systemName(r.OS))
}

// nameless says which pods of a test of suite op-readiness ran on Windows without
// saying so in spec.os, as the standard asks of tests and that suite promises.
func nameless(test string, pods []result.Pod, found *problems) {
	if specs.SuiteOf(test) != specs.OpReadiness {
		return
	}
	for i := range pods {
		if p := &pods[i]; p.OS == specs.Windows && p.PodOS == "" {
			found.add(fmt.Sprintf("pod %s ran on Windows without spec.os", p.Name))
		}
	}
}

// foreignImages lists the images of pods on Windows that neither the standard
// nor the case allows. A node of unknown system may be a Windows node.
func foreignImages(c *CaseResult) []string {
	allowed := slices.Clone(standardImages)
	for _, e := range c.Case.Images {
		allowed = append(allowed, e.Image)
	}
	foreign := map[string]bool{}
	for _, t := range c.Tests {
		pods := t.Observed[len(t.Observed)-1].Pods
		for i := range pods {
			p := &pods[i]
			if p.Node == "" || p.OS == specs.Linux {
				continue
			}
			for _, image := range p.Images {
				if !slices.Contains(allowed, imageName(image)) {
					foreign[image] = true
				}
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
