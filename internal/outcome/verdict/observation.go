package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Observation is what was observed of one attempt of a test.
type Observation struct {
	Attempt int `json:"attempt"`
	// Evidence tells where the pods ran: "4 pods: 3 on Windows ltsc2022, 1 on
	// Linux"; "" where none were observed.
	Evidence string       `json:"evidence,omitempty"`
	Pods     []result.Pod `json:"pods,omitempty"`
	// Unobserved says why these may not be all; "" where they are.
	Unobserved string `json:"unobserved,omitempty"`
}

// attempt is one of a test.
type attempt struct {
	test   string
	number int
}

// podsOf sorts the pods of a run to the attempts that they belong to. A pod that
// was deleted and made again under its name is there twice: what the first one
// showed counts.
func podsOf(run *result.Run) map[attempt][]result.Pod {
	count := map[attempt]int{}
	for i := range run.Pods {
		count[attempt{run.Pods[i].Test, run.Pods[i].Attempt}]++
	}
	pods := make(map[attempt][]result.Pod, len(count))
	for of, n := range count {
		pods[of] = make([]result.Pod, 0, n)
	}
	for _, p := range run.Pods {
		of := attempt{p.Test, p.Attempt}
		pods[of] = append(pods[of], p)
	}
	for _, of := range pods {
		slices.SortStableFunc(of, func(a, b result.Pod) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
	}
	return pods
}

// observed returns what was observed of each attempt, in their order.
func (j *judge) observed(id string, attempts []result.TestRun) []Observation {
	var out []Observation
	for _, a := range attempts {
		pods := j.pods[attempt{id, a.Attempt}]
		out = append(out, Observation{Attempt: a.Attempt, Evidence: describe(pods), Pods: pods, Unobserved: a.Unobserved})
	}
	return out
}

// describe tells where pods ran: "4 pods: 3 on Windows ltsc2022, 1 on Linux".
func describe(pods []result.Pod) string {
	if len(pods) == 0 {
		return ""
	}
	counts := map[string]int{}
	for _, p := range pods {
		counts[where(p)]++
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

// where tells on what a pod ran.
func where(p result.Pod) string {
	var on string
	switch {
	case p.Node == "":
		return "on no node"
	case p.OS == specs.Windows:
		on = strings.TrimSpace("on Windows " + windowsRelease(p.WindowsBuild))
	case p.OS == specs.Linux:
		on = "on Linux"
	default:
		return "on a node that is not known"
	}
	var more []string
	if p.RuntimeClass != "" {
		more = append(more, p.RuntimeClass)
	}
	if p.Simulated {
		more = append(more, "simulated")
	}
	if len(more) > 0 {
		on += " (" + strings.Join(more, ", ") + ")"
	}
	return on
}

// windowsRelease names a build as its images are tagged, such as "ltsc2022"; one
// that is not known stays as it is.
func windowsRelease(build string) string {
	if r, ok := specs.LookupWindowsBuild(build); ok {
		return "ltsc" + r.Year
	}
	return build
}
