package report

import (
	"strconv"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
)

// Plan is a plan as a table: a row for each test, in the order in which they
// run, and one for each case without a test.
func Plan(p *result.Plan) *Table {
	t := &Table{Header: []string{"Shard", "Phase", "Conditions", "Expected", "Test", "Cases"}, Value: p}
	for i := range p.Tests {
		test := &p.Tests[i]
		t.Rows = append(t.Rows, []string{
			strconv.Itoa(test.Shard), string(test.Phase), test.Conditions.String(),
			test.Duration.Round(time.Second).String(), test.Name, strings.Join(test.Cases, " "),
		})
	}
	for i := range p.Cases {
		if c := &p.Cases[i]; len(c.TestIDs) == 0 {
			t.Rows = append(t.Rows, []string{strconv.Itoa(c.Shard), "", "", "", "(no test)", c.ID})
		}
	}
	t.MaxWidths = map[string]int{"Test": 70, "Cases": 45}
	return t
}
