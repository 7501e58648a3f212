package specs_test

import (
	"slices"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

func TestSelector_matches_as_ginkgo_does(t *testing.T) {
	names := []string{"[sig-windows] DNS works", "[sig-windows] DNS works [Slow]", "[sig-network] Services work"}
	for _, tt := range []struct {
		name     string
		selector specs.Selector
		want     []int
	}{
		{"anywhere in the name", specs.Selector{Focus: "DNS"}, []int{0, 1}},
		{"the start is the suite's", specs.Selector{Focus: `^\[sig-windows\]`}, nil},
		{"with the suite's name", specs.Selector{Focus: `^Kubernetes e2e suite \[sig-windows\]`}, []int{0, 1}},
		{"the suite's name itself", specs.Selector{Focus: "e2e suite"}, []int{0, 1, 2}},
		{"the end is the name's", specs.Selector{Focus: "works$"}, []int{0}},
		{"skip takes away", specs.Selector{Focus: "DNS", Skip: `\[Slow\]`}, []int{0}},
		{"a skip that is empty takes nothing", specs.Selector{Focus: "DNS", Skip: ""}, []int{0, 1}},
		{"an empty branch of skip takes everything", specs.Selector{Focus: "DNS", Skip: `|\[Slow\]`}, nil},
		{"no focus selects everything", specs.Selector{}, []int{0, 1, 2}},
		{"what does not compile selects nothing", specs.Selector{Focus: "["}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var want []string
			for _, i := range tt.want {
				want = append(want, names[i])
			}
			if got := tt.selector.Match(names); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	if _, err := (specs.Selector{Focus: "a", Skip: "["}).Compile(); err == nil {
		t.Error("a broken skip compiles")
	}
}
