package check

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
	ground "github.com/windows-op-readiness/windows-op-readiness/internal/text"
)

// writeText writes the report for people: a paragraph a finding, as compilers
// do, because objects and reasons are too long for a table.
func (r *Report) writeText(w io.Writer, width int) error {
	out := bufio.NewWriter(w)
	width = cmp.Or(width, 120)
	for _, g := range r.Groups {
		fmt.Fprintf(out, "%s: %s in %s; TestGrid shows %s, %s\n", shown.Line(g.Name), ground.Count(g.Builds, "build"), shown.Line(strings.TrimSuffix(g.Prefix, "/")), ground.Count(g.Columns, "column"), ground.Count(g.Rows, "row"))
	}
	if len(r.Groups) > 0 {
		fmt.Fprintln(out)
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		at := shown.Line(f.Object)
		if where := f.Where(); where != "" {
			at += ", " + shown.Line(where)
		}
		fmt.Fprintf(out, "%s: %s [%s]\n", f.Severity, at, f.Rule)
		for _, part := range []string{f.What, f.Fix} {
			if part == "" {
				continue
			}
			mark := "    "
			if part == f.Fix {
				mark = "  > "
			}
			for _, line := range strings.Split(text.WrapSoft(shown.Line(part), max(40, width-5)), "\n") {
				fmt.Fprintln(out, mark+strings.TrimSpace(line))
				mark = "    "
			}
		}
	}
	if len(r.Findings) > 0 {
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out, r.Sum())
	return out.Flush()
}
