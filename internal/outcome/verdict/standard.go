package verdict

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Standard is one that is not this program's own. What is judged by it is never
// said of the cluster.
type Standard struct {
	// SpecDir is the folder of the spec files; "" where the results name none.
	SpecDir string `json:"specDir,omitempty"`
	// PlannedBy is the version of op-readiness whose standard it may be; ""
	// where there is a SpecDir.
	PlannedBy string `json:"plannedBy,omitempty"`
	// Digest is the standard's; "" where the results have none, or one that is
	// not that of their cases.
	Digest string `json:"digest,omitempty"`
	// Requirements is how many the standard has.
	Requirements int `json:"requirements"`
}

// name tells where the standard comes from: "spec files of DIR, sha256:…".
func (s *Standard) name() string {
	var parts []string
	switch {
	case s.SpecDir != "":
		parts = append(parts, "spec files of "+harmless(ending(s.SpecDir)))
	case s.PlannedBy != "":
		parts = append(parts, "planned by op-readiness "+harmless(s.PlannedBy))
	}
	if s.Digest == "" {
		parts = append(parts, "without a digest of its cases")
	} else {
		parts = append(parts, s.Digest[:len("sha256:")+12])
	}
	return strings.Join(parts, ", ")
}

var (
	harmlessName  = regexp.MustCompile(`^[\w./+~…-]+$`)
	digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// harmless is a name from a results folder that cannot be taken for more than a
// name: quoted where it is not of a name's letters.
func harmless(name string) string {
	name = text.Cut(name, maxName)
	if harmlessName.MatchString(name) {
		return name
	}
	return strconv.Quote(name)
}

// maxName is how much of a name is shown.
const maxName = 80

// otherStandard returns the standard that a run was planned with, nil where it is
// the one that comes with this program: with the same digest, the same counts,
// and the same cases with their tests, of which none that was selected is
// missing.
func otherStandard(run *result.Run) *Standard {
	p := run.Plan
	own, err := builtIn(p.KubernetesVersion)
	same := err == nil && p.StandardDigest == own.digest
	if same && own.planned(p) {
		return nil
	}
	other := &Standard{SpecDir: run.Manifest.SpecDir}
	if other.SpecDir == "" {
		other.PlannedBy = run.Manifest.ToolVersion
	}
	if !same && digestPattern.MatchString(p.StandardDigest) {
		other.Digest = p.StandardDigest
	}
	for _, n := range p.Standard {
		other.Requirements += n
	}
	return other
}

// ownStandard is this program's standard as it stands for a Kubernetes version.
type ownStandard struct {
	digest string
	counts map[specs.Category]int
	cases  map[string]*ownCase
}

// ownCase is a case of it, ready to be compared.
type ownCase struct {
	*specs.Case
	encoded  string
	matchers []*specs.Matcher
}

var builtIns sync.Map // *ownStandard by minor version

// builtIn returns this program's standard for a Kubernetes version.
func builtIn(version string) (*ownStandard, error) {
	v, err := specs.ParseVersion(version)
	if err != nil {
		return nil, err
	}
	if own, ok := builtIns.Load(v.MinorString()); ok {
		return own.(*ownStandard), nil
	}
	set, err := specs.Embedded()
	if err != nil {
		return nil, err
	}
	cases, err := set.For(version)
	if err != nil {
		return nil, err
	}
	own := &ownStandard{counts: map[specs.Category]int{}, cases: map[string]*ownCase{}}
	if own.digest, err = specs.Digest(cases); err != nil {
		return nil, err
	}
	for i := range cases {
		c := &ownCase{Case: &cases[i]}
		data, err := json.Marshal(c.Case)
		if err != nil {
			return nil, err
		}
		c.encoded = string(data)
		for _, s := range c.Tests {
			m, err := s.Compile()
			if err != nil {
				return nil, err
			}
			c.matchers = append(c.matchers, m)
		}
		own.cases[c.ID] = c
		if cases[i].Kind == specs.Requirement {
			own.counts[cases[i].Category]++
		}
	}
	builtIns.Store(v.MinorString(), own)
	return own, nil
}

// planned reports whether a plan was made of this standard.
func (s *ownStandard) planned(p *result.Plan) bool {
	if !maps.Equal(s.counts, p.Standard) {
		return false
	}
	for _, c := range p.Selection.Categories {
		if !slices.Contains(specs.Categories(), c) {
			return false
		}
	}
	tests := make(map[string]*result.PlannedTest, len(p.Tests))
	for i := range p.Tests {
		tests[p.Tests[i].ID] = &p.Tests[i]
	}
	there := map[string]bool{}
	for i := range p.Cases {
		c := &p.Cases[i]
		own := s.cases[c.ID]
		if own == nil || !own.is(&c.Case) || !own.testedBy(c, tests) {
			return false
		}
		there[c.ID] = true
	}
	for id, c := range s.cases {
		if !there[id] && c.Kind != specs.Additional && c.Kind != specs.Trial && wholly(&p.Selection, c.Category) {
			return false
		}
	}
	return true
}

// wholly reports whether a selection holds all of a category.
func wholly(s *result.Selection, c specs.Category) bool {
	return len(s.Cases)+len(s.Labels)+len(s.Capabilities) == 0 && (len(s.Categories) == 0 || slices.Contains(s.Categories, c))
}

// is reports whether a planned case is this one, but for the runtime class that
// planning gives to cases with tests that ask for none (--runtime-class).
func (c *ownCase) is(planned *specs.Case) bool {
	other := *planned
	if c.Conditions.RuntimeClass == "" && len(c.Tests) > 0 {
		other.Conditions.RuntimeClass = ""
	}
	data, err := json.Marshal(&other)
	return err == nil && string(data) == c.encoded
}

// testedBy reports whether the tests that are planned for the case are those
// that it selects, as many as it declares, under its conditions.
func (c *ownCase) testedBy(planned *result.PlannedCase, tests map[string]*result.PlannedTest) bool {
	if planned.Excluded != "" {
		return len(planned.TestIDs) == 0 // it is not tested, and says why
	}
	want := 0
	for _, s := range c.Tests {
		want += s.Expect
	}
	if len(planned.TestIDs) != want {
		return false
	}
	for _, id := range planned.TestIDs {
		t := tests[id]
		if t == nil || t.Conditions != result.ConditionsOf(planned.Conditions) ||
			!slices.ContainsFunc(c.matchers, func(m *specs.Matcher) bool { return m.Matches(t.Name) }) {
			return false
		}
	}
	return true
}

// ending is a path, of which its end tells the most.
func ending(path string) string { return text.CutFront(path, maxName-len("…")) }
