package steer

import (
	"encoding/json"
	"slices"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
)

// mark says, in an annotation, whose a policy or a cordon is.
type mark struct {
	Run string `json:"run"`
	// Conditions are those of the group of tests, as people read them.
	Conditions string `json:"conditions"`
	// Members are the processes that need it; see [Member.ID].
	Members []string `json:"members"`
	// Token is the policy's own: it ends the name, and is added to the probe.
	Token string `json:"token,omitempty"`
}

// readMark reads an annotation that anybody may have written. What it cannot
// read is the mark of no run.
func readMark(text string) mark {
	var m mark
	if json.Unmarshal([]byte(text), &m) != nil {
		return mark{}
	}
	return m
}

func (m mark) String() string {
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // strings only
	}
	return string(text)
}

// of reports whether the mark is of a run's group with these conditions.
func (m mark) of(run string, c result.RunConditions) bool {
	return m.Run == run && m.Conditions == c.String()
}

func (m mark) with(id string) mark {
	if !slices.Contains(m.Members, id) {
		m.Members = append(slices.Clone(m.Members), id)
	}
	return m
}

// without is the mark with fewer members; nil when none is left.
func (m mark) without(drop func(id string) bool) *mark {
	m.Members = slices.DeleteFunc(slices.Clone(m.Members), drop)
	if len(m.Members) == 0 {
		return nil
	}
	return &m
}
