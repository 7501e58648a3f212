package specs_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/test/golden"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

func list(version string, lines ...string) *specs.TestList {
	l := &specs.TestList{Version: version}
	for _, line := range lines {
		location, name, _ := strings.Cut(line, ": ")
		l.Tests = append(l.Tests, specs.ListedTest{Name: name, Location: location})
	}
	return l
}

func TestDiff(t *testing.T) {
	selecting := func(id, focus string) specs.Case {
		return specs.Case{ID: id, Category: specs.CoreNetwork, Kind: specs.Requirement, Proof: specs.ProofFull, Tests: []specs.Selector{{Focus: focus, Expect: 1}}}
	}
	set := &specs.Set{Cases: []specs.Case{
		selecting("stays", "DNS should resolve"),
		selecting("tagged", "Services should come up"),
		selecting("reworded", "pods reach each other over the node port$"),
		selecting("lost", "Volumes should be read"),
		selecting("moved", "Jobs should end"),
		selecting("more", "Nodes should"),
	}}
	from := list("v1.35.4",
		"a.go:1: [sig] DNS should resolve",
		"a.go:2: [sig] Services should come up",
		"a.go:3: [sig] Windows pods reach each other over the node port",
		"a.go:4: [sig] Volumes should be read",
		"a.go:5: [sig] Jobs should end",
		"a.go:6: [sig] Nodes should boot",
	)
	to := list("v1.36.3",
		"a.go:9: [sig] DNS should resolve",
		"a.go:2: [sig] Services should come up [Slow]",
		"a.go:3: [sig] Windows pods reach each other over a node port of the cluster",
		"b.go:5: [sig] Jobs should end",
		"a.go:6: [sig] Nodes should boot",
		"a.go:7: [sig] Nodes should shut down",
		"c.go:1: [sig-windows] Something else",
	)
	d, err := specs.Diff(set, from, to)
	if err != nil {
		t.Fatal(err)
	}
	want := &specs.ListDiff{
		From: "v1.35.4", To: "v1.36.3", FromTests: 6, ToTests: 7, Gone: 3, New: 4,
		Changes: []specs.Change{
			{Case: "tagged", Kind: specs.Renamed, Before: "[sig] Services should come up", After: "[sig] Services should come up [Slow]", Selected: true},
			{Case: "reworded", Kind: specs.Renamed, Before: "[sig] Windows pods reach each other over the node port", After: "[sig] Windows pods reach each other over a node port of the cluster"},
			{Case: "lost", Kind: specs.Gone, Before: "[sig] Volumes should be read"},
			{Case: "moved", Kind: specs.Moved, Before: "a.go", After: "b.go", Selected: true},
			{Case: "more", Kind: specs.New, After: "[sig] Nodes should shut down", Selected: true},
		},
		NewWindows: []string{"[sig-windows] Something else"},
	}
	if !reflect.DeepEqual(d, want) {
		t.Errorf("got  %+v\nwant %+v", d, want)
	}
}

func TestDiff_of_the_standard_between_the_catalogues(t *testing.T) {
	d, err := specs.Diff(standard(t), catalogue(t, "1.35.4"), catalogue(t, "1.36.3"))
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Changes) != 1 || d.Changes[0].Case != "extra-concurrent-autoscaling" || d.Changes[0].Kind != specs.Renamed || !d.Changes[0].Selected {
		t.Errorf("got changes %+v", d.Changes)
	}
}

func TestExport(t *testing.T) {
	data, err := specs.Export(standard(t), "v1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "export-1.36.3.yaml", string(data))
}

func TestExport_refuses_what_one_skip_cannot_say(t *testing.T) {
	set := &specs.Set{Cases: []specs.Case{{ID: "x", Tests: []specs.Selector{{Focus: "a", Skip: "b"}, {Focus: "c"}}}}}
	if _, err := specs.Export(set, "1.36"); err == nil || !strings.Contains(err.Error(), "exporting x") {
		t.Errorf("got error %v", err)
	}
}

// One focus and one skip of the export select what the case's selectors do.
func TestExport_selects_the_same_tests(t *testing.T) {
	names := catalogue(t, "1.36.3").Names()
	cases, err := standard(t).For("1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		var focus []string
		skip, want := "", 0
		for _, s := range c.Tests {
			focus = append(focus, s.Focus)
			skip = s.Skip
			want += len(s.Match(names))
		}
		if len(focus) == 0 {
			continue
		}
		joined := specs.Selector{Focus: strings.Join(focus, "|"), Skip: skip}
		if got := len(joined.Match(names)); got != want {
			t.Errorf("%s: the joined focus selects %d tests, its selectors %d", c.ID, got, want)
		}
	}
}
