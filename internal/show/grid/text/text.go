// Package text renders a preview of TestGrid for terminals and logs.
package text

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/windows-op-readiness/windows-op-readiness/internal/show/grid"
	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
	ground "github.com/windows-op-readiness/windows-op-readiness/internal/text"
)

// Options say how to render.
type Options struct {
	// Width is that of the terminal in columns; 0 means no terminal.
	Width int
	// Colour says that ANSI colours may be used.
	Colour bool
	// Builds is the most builds to show, the newest first; 0 is as many as fit,
	// or ten where there is no terminal.
	Builds int
	// Messages is for how many rows the newest message is shown; below 0, all.
	Messages int
}

const (
	minName = 24
	maxName = 110
	minCell = 6
	maxCell = 10
	noWidth = 160 // where there is no terminal
)

// Write writes each tab: its status, its grid, and why rows did not pass.
func Write(w io.Writer, p *grid.Preview, o Options) error {
	out := &writer{Writer: bufio.NewWriter(w), Options: o}
	for i, tab := range p.Tabs() {
		if i > 0 {
			out.line("")
		}
		out.tab(tab)
	}
	if len(p.Tabs()) == 0 {
		out.line("No tabs.")
	}
	return out.Flush()
}

type writer struct {
	*bufio.Writer
	Options
	cellWidth int // of the tab that is being written
}

func (w *writer) line(format string, args ...any) {
	fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

func (w *writer) paint(s string, colours text.Colors) string {
	if !w.Colour || s == "" || len(colours) == 0 {
		return s
	}
	return colours.EscapeSeq() + s + "\x1b[0m"
}

func (w *writer) tab(t *grid.Tab) {
	w.line("%s  %s  %s", shown.Line(t.Name), w.paint(t.Status, statusColours(t.Status)), shown.Line(t.Message))
	if t.Alert != "" && t.Alert != t.Message {
		w.line("%s", shown.Line(t.Alert))
	}
	if t.Unwritten != "" {
		w.line("%s TestGrid's updater cannot write this grid, and shows what it had before: %s", w.paint("broken:", text.Colors{text.FgRed, text.Bold}), shown.Line(t.Unwritten))
		w.line("'op-readiness testgrid check' says which object it is.")
		return
	}
	for _, a := range t.Alerts {
		times := "once"
		if a.Failures != 1 {
			times = fmt.Sprintf("%d times in a row", a.Failures)
		}
		w.line("%s %s, %s", w.paint("alert:", text.Colors{text.FgRed, text.Bold}), shown.Line(a.Row), times)
	}
	if len(t.Columns) == 0 || len(t.Rows) == 0 {
		w.line("No builds: TestGrid shows an empty grid.")
		return
	}
	w.line("")
	name, builds := w.measure(t)
	w.header(name, "build", t, builds, func(c *grid.Column) string { return ground.CutFront(shown.Line(c.Build), w.cellWidth-1) })
	w.header(name, "started, UTC", t, builds, func(c *grid.Column) string {
		if c.Started.IsZero() {
			return "?"
		}
		return c.Started.UTC().Format("01-02")
	})
	w.header(name, "", t, builds, func(c *grid.Column) string {
		if c.Started.IsZero() {
			return ""
		}
		return c.Started.UTC().Format("15:04")
	})
	for i, h := range t.Headers {
		w.values(name, shown.Line(h), builds, func(b int) string {
			if c := &t.Columns[b]; i < len(c.Headers) {
				return shown.Line(c.Headers[i])
			}
			return ""
		})
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		var b strings.Builder
		b.WriteString(pad(shorten(shown.Line(r.Name), name), name))
		for _, c := range r.Cells[:builds] {
			b.WriteString(" " + w.cell(c))
		}
		w.line("%s", b.String())
	}
	w.line("")
	if n := len(t.Columns) - builds; n > 0 {
		w.line("Not shown: %d older. --builds, -o json and --html show them.", n)
	}
	w.line("ok passed, S skipped, F failed, R running, 1/2 one of two attempts passed")
	w.messages(t, builds)
}

// measure returns the width of the names, and how many builds are shown.
func (w *writer) measure(t *grid.Tab) (name, builds int) {
	width := cmp.Or(w.Width, noWidth)
	for i := range t.Rows {
		name = max(name, text.StringWidthWithoutEscSequences(shown.Line(t.Rows[i].Name)))
	}
	for _, h := range t.Headers {
		name = max(name, len(shown.Line(h)))
	}
	w.cellWidth = minCell
	for i := range t.Columns {
		for _, value := range t.Columns[i].Headers {
			w.cellWidth = min(maxCell, max(w.cellWidth, len(shown.Line(value))))
		}
	}
	most := w.Builds
	if most == 0 && w.Width == 0 {
		most = 10
	}
	if most == 0 {
		most = max(1, (width-max(minName, min(name, width*2/5)))/(w.cellWidth+1))
	}
	builds = min(most, len(t.Columns))
	name = min(name, maxName)
	if room := width - builds*(w.cellWidth+1); name > room {
		name = max(minName, room)
	}
	return max(name, len("started, UTC")), builds
}

func (w *writer) header(name int, title string, t *grid.Tab, builds int, value func(*grid.Column) string) {
	var b strings.Builder
	b.WriteString(pad(title, name))
	for i := range builds {
		b.WriteString(" " + pad(value(&t.Columns[i]), w.cellWidth))
	}
	w.line("%s", w.paint(strings.TrimRight(b.String(), " "), text.Colors{text.Faint}))
}

// values writes a column header: a value that several neighbours have stands
// above the first.
func (w *writer) values(name int, title string, builds int, value func(build int) string) {
	var b strings.Builder
	b.WriteString(pad(shorten(title, name), name))
	for i := 0; i < builds; {
		n := 1
		for i+n < builds && value(i+n) == value(i) {
			n++
		}
		width := n*(w.cellWidth+1) - 1
		b.WriteString(" " + pad(shorten(cmp.Or(value(i), "-"), width), width))
		i += n
	}
	w.line("%s", w.paint(strings.TrimRight(b.String(), " "), text.Colors{text.Faint}))
}

func (w *writer) cell(c grid.Cell) string {
	mark, colours := look(c)
	return w.paint(pad(shorten(mark, w.cellWidth), w.cellWidth), colours)
}

// look returns what stands in a cell: TestGrid's icon, or a word for what it
// would tell by colour alone.
func look(c grid.Cell) (mark string, colours text.Colors) {
	switch c.Result {
	case grid.NoResult, "":
		return "", nil
	case grid.Pass, "BUILD_PASSED":
		mark, colours = "ok", text.Colors{text.FgGreen}
	case grid.PassWithSkips, "PASS_WITH_ERRORS":
		mark, colours = "S", text.Colors{text.FgHiBlack}
	case grid.Running:
		mark, colours = "R", text.Colors{text.FgCyan}
	case grid.Flaky:
		mark, colours = "~", text.Colors{text.FgMagenta, text.Bold}
	case grid.Fail, grid.ToolFail, "TIMED_OUT", "CATEGORIZED_FAIL", "BUILD_FAIL":
		mark, colours = "F", text.Colors{text.FgRed, text.Bold}
	default:
		mark, colours = "?", text.Colors{text.FgYellow}
	}
	return cmp.Or(shown.Line(c.Icon), mark), colours
}

// messages writes why rows did not pass in the newest build in which they had
// a result.
func (w *writer) messages(t *grid.Tab, builds int) {
	type said struct {
		row  *grid.Row
		at   int
		cell grid.Cell
	}
	var all []said
	for i := range t.Rows {
		r := &t.Rows[i]
		at := slices.IndexFunc(r.Cells[:builds], func(c grid.Cell) bool { return c.Result != grid.NoResult && c.Result != grid.Running })
		if at < 0 {
			continue
		}
		switch c := r.Cells[at]; c.Result {
		case grid.Pass, grid.PassWithSkips, "BUILD_PASSED":
		default:
			all = append(all, said{r, at, c})
		}
	}
	if len(all) == 0 || w.Messages == 0 {
		return
	}
	w.line("")
	for i, s := range all {
		if w.Messages > 0 && i == w.Messages {
			w.line("… and %d more that did not pass", len(all)-i)
			return
		}
		mark, colours := look(s.cell)
		w.line("%s %s", w.paint(pad(mark, 4), colours), shown.Line(s.row.Name))
		message := cmp.Or(shown.Line(s.cell.Message), "(no message)")
		if s.at > 0 {
			message += fmt.Sprintf(" (build %s)", shown.Line(t.Columns[s.at].Build))
		}
		for _, line := range strings.Split(text.WrapSoft(message, max(40, cmp.Or(w.Width, 120)-5)), "\n") {
			w.line("     %s", strings.TrimSpace(line))
		}
	}
}

func statusColours(status string) text.Colors {
	switch status {
	case "PASS":
		return text.Colors{text.FgGreen, text.Bold}
	case "FAIL", "BROKEN":
		return text.Colors{text.FgRed, text.Bold}
	case "FLAKY":
		return text.Colors{text.FgMagenta, text.Bold}
	}
	return text.Colors{text.FgYellow, text.Bold}
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-text.StringWidthWithoutEscSequences(s)))
}

// shorten keeps both ends of what is wider than width, if there is room: names
// differ at either.
func shorten(s string, width int) string {
	if text.StringWidthWithoutEscSequences(s) <= width {
		return s
	}
	runes := []rune(s)
	if width < 48 {
		return text.Trim(s, max(0, width-1)) + "…"
	}
	back := width / 4
	return text.Trim(s, width-back-1) + "…" + string(runes[len(runes)-back:])
}
