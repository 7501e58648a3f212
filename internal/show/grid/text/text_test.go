package text

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/test/golden"

	"github.com/windows-op-readiness/windows-op-readiness/internal/show/grid"
)

// sample has builds of all results.
func sample(builds int) *grid.Preview {
	t := grid.Tab{
		Name: "windows-readiness", Status: "FLAKY", Message: "1 of 4 (25.0%) recent columns passed (13 of 17 or 76.5% cells)",
		Headers: []string{"Commit", "kubernetes-version", "windows-version"},
		Alerts:  []grid.Alert{{Row: "core-network: net-b", Failures: 3}},
	}
	for b := range builds {
		c := grid.Column{Build: fmt.Sprint(1991000000000000000 + builds - b), Started: time.Date(2026, 1, 15, 9, 30, 0, 0, time.UTC).Add(-time.Duration(b) * 7 * time.Hour)}
		if b > 0 {
			c.Headers = []string{fmt.Sprintf("%07x", 0xabc1234+b/2), fmt.Sprintf("v1.36.%d", 3-b/3), "10.0.20348"}
		}
		t.Columns = append(t.Columns, c)
	}
	row := func(name string, cells ...grid.Cell) {
		for len(cells) < builds {
			cells = append(cells, cells[len(cells)-1])
		}
		t.Rows = append(t.Rows, grid.Row{Name: name, Cells: cells[:builds]})
	}
	running, pass := grid.Cell{Result: grid.Running, Icon: "R", Message: "Build still running..."}, grid.Cell{Result: grid.Pass}
	row("core-network: net-a [sig-network] Networking Granular Checks: Pods should function for intra-pod communication: http [NodeConformance] [Conformance]", grid.Cell{Result: grid.NoResult}, pass)
	row("core-network: net-b [sig-network] Services should serve a basic endpoint from pods [Conformance]", grid.Cell{Result: grid.NoResult}, grid.Cell{Result: grid.Fail, Icon: "F", Message: "expected the pod to answer\ntimed out after 300.001s: dial tcp 10.244.3.17:8080: i/o timeout"}, pass)
	row("core-network: net-c", grid.Cell{Result: grid.NoResult}, grid.Cell{Result: grid.Flaky, Icon: "1/2", Message: "1/2 runs passed: refused"}, pass)
	row("core-network: net-d", grid.Cell{Result: grid.NoResult}, grid.Cell{Result: grid.PassWithSkips, Icon: "S", Message: "not-applicable: one CIDR"})
	row("windows-readiness.Overall", running, grid.Cell{Result: grid.Fail}, pass)
	return &grid.Preview{Dashboards: []grid.Dashboard{{Name: "preview", Tabs: []grid.Tab{t}}}}
}

func render(t *testing.T, p *grid.Preview, o Options) string {
	t.Helper()
	var b strings.Builder
	if err := Write(&b, p, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWrite(t *testing.T) {
	for name, c := range map[string]struct {
		builds int
		o      Options
	}{
		"log":      {12, Options{Messages: 20}},
		"terminal": {40, Options{Width: 100, Colour: true, Messages: 20}},
		"narrow":   {4, Options{Width: 60, Messages: 1}},
		"empty":    {0, Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			p := sample(c.builds)
			if c.builds == 0 {
				p = &grid.Preview{Dashboards: []grid.Dashboard{{Tabs: []grid.Tab{{Name: "a", Status: "STALE", Message: "no completed results", Alert: "no completed results"}}}}}
			}
			golden.Equal(t, golden.Name(t), render(t, p, c.o))
		})
	}
}

func TestLinesFitTheTerminal(t *testing.T) {
	for _, width := range []int{60, 80, 120, 200} {
		table, _, _ := strings.Cut(render(t, sample(50), Options{Width: width}), "Not shown")
		for _, line := range strings.Split(table, "\n")[3:] {
			if n := len([]rune(strings.TrimRight(line, " "))); n > width {
				t.Errorf("width %d: a line of %d: %s", width, n, line)
			}
		}
	}
}

func TestHostileTextsInATerminal(t *testing.T) {
	const evil = "a\x1b]0;x\x07\nb\x00\u202ec"
	p := sample(2)
	tab := &p.Dashboards[0].Tabs[0]
	tab.Name, tab.Message, tab.Alert, tab.Headers[0], tab.Alerts[0].Row = evil, evil, evil, evil, evil
	tab.Columns[0].Build, tab.Columns[1].Headers[0] = evil, evil
	tab.Rows[0].Name, tab.Rows[0].Cells[0] = evil, grid.Cell{Result: grid.Fail, Icon: evil, Message: evil}
	if out := render(t, p, Options{Messages: -1}); strings.ContainsAny(out, "\x1b\x07\x00\u202e") {
		t.Errorf("%q", out)
	}
}

func TestAGridThatCannotBeWritten(t *testing.T) {
	var out strings.Builder
	p := &grid.Preview{Dashboards: []grid.Dashboard{{Tabs: []grid.Tab{{Name: "job", Status: "UNKNOWN", Unwritten: "marshal: invalid UTF-8"}}}}}
	if err := Write(&out, p, Options{}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "broken: TestGrid's updater cannot write this grid") || !strings.Contains(got, "testgrid check") || strings.Contains(got, "No builds") {
		t.Errorf("%s", got)
	}
}
