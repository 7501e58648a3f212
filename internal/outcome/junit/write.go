package junit

import (
	"io"
	"strconv"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
)

// Write writes the document. The only errors are those of w.
func Write(w io.Writer, doc Suites) error {
	_, err := doc.WriteTo(w)
	return err
}

// WriteTo writes the document to w.
func (s Suites) WriteTo(w io.Writer) (int64, error) {
	p := &printer{w: w}
	p.raw(header)
	p.head("testsuites", s.Name, s.Attrs)
	p.counts(s.Counts())
	p.depth++
	for i := range s.Suites {
		p.suite(&s.Suites[i])
	}
	p.depth--
	p.close("testsuites")
	p.flush()
	return p.n, p.err
}

const header = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"

// printer writes elements. It keeps the first error and ignores what follows.
type printer struct {
	w     io.Writer
	b     []byte
	n     int64
	err   error
	depth int
}

const printerBuffer = 32 << 10

func (p *printer) flush() {
	if p.err == nil && len(p.b) > 0 {
		var n int
		n, p.err = p.w.Write(p.b)
		p.n += int64(n)
	}
	p.b = p.b[:0]
}

// room flushes when there is enough to write.
func (p *printer) room() {
	if len(p.b) >= printerBuffer {
		p.flush()
	}
}

func (p *printer) raw(s string) {
	for len(s) > printerBuffer {
		p.b = append(p.b, s[:printerBuffer]...)
		p.flush()
		s = s[printerBuffer:]
	}
	p.b = append(p.b, s...)
	p.room()
}

func (p *printer) indent() {
	for range p.depth {
		p.b = append(p.b, ' ', ' ')
	}
}

// text writes character data or an attribute's value.
func (p *printer) text(s string, attribute bool) {
	if isPlain(s) {
		p.raw(s)
		return
	}
	p.escaped(shown.Clean(s), attribute)
}

// escaped writes clean text.
func (p *printer) escaped(s string, attribute bool) {
	from := 0
	for i := range len(s) {
		if s[i] > '>' {
			continue
		}
		if e := escape(s, i, attribute); e != "" {
			p.raw(s[from:i])
			p.raw(e)
			from = i + 1
		}
	}
	p.raw(s[from:])
}

func (p *printer) attr(name, value string) {
	p.b = append(append(append(p.b, ' '), name...), '=', '"')
	p.text(value, true)
	p.b = append(p.b, '"')
}

// attrs writes the further attributes that may be written.
func (p *printer) attrs(attrs []Property, reserved ...string) {
next:
	for i, a := range attrs {
		if !writableName(a.Name) {
			continue
		}
		for _, name := range reserved {
			if a.Name == name {
				continue next
			}
		}
		for _, b := range attrs[:i] {
			if a.Name == b.Name {
				continue next
			}
		}
		p.attr(a.Name, a.Value)
	}
}

func writableName(name string) bool {
	return name != "" && name != "xmlns" && len(name) <= maxName &&
		nameLength([]byte(name)) == len(name) && !strings.Contains(name, ":")
}

// head begins a testsuites or testsuite tag, up to where the counts go.
func (p *printer) head(element, name string, attrs []Property) {
	p.indent()
	p.raw("<" + element)
	if name != "" || element == "testsuite" {
		p.attr("name", name)
	}
	p.attrs(attrs, "name", "tests", "failures", "errors", "skipped", "disabled", "time")
}

// counts ends a tag that head began.
func (p *printer) counts(c Counts) {
	p.b = appendCounts(p.b, c)
	p.room()
}

func appendCounts(b []byte, c Counts) []byte {
	for _, n := range []struct {
		name string
		n    int
	}{{"tests", c.Tests}, {"failures", c.Failures}, {"errors", c.Errors}, {"skipped", c.Skipped}} {
		b = append(append(append(b, ' '), n.name...), '=', '"')
		b = append(strconv.AppendInt(b, int64(n.n), 10), '"')
	}
	b = append(b, ` time="`...)
	b = append(b, formatSeconds(c.Time)...)
	return append(b, '"', '>', '\n')
}

func (p *printer) close(element string) {
	p.indent()
	p.raw("</" + element + ">\n")
}

func (p *printer) suite(s *Suite) {
	p.head("testsuite", s.Name, s.Attrs)
	p.counts(s.Counts())
	p.depth++
	p.properties(s.Properties)
	for i := range s.Suites {
		p.suite(&s.Suites[i])
	}
	for i := range s.Cases {
		p.testcase(&s.Cases[i])
	}
	p.output("system-out", s.SystemOut)
	p.output("system-err", s.SystemErr)
	p.depth--
	p.close("testsuite")
}

func (p *printer) properties(ps []Property) {
	if len(ps) == 0 {
		return
	}
	p.indent()
	p.raw("<properties>\n")
	p.depth++
	for _, prop := range ps {
		p.indent()
		p.raw("<property")
		p.attr("name", prop.Name)
		p.attr("value", prop.Value)
		p.raw("/>\n")
	}
	p.depth--
	p.close("properties")
}

func (p *printer) testcase(c *Case) {
	p.indent()
	p.raw("<testcase")
	p.attr("name", c.Name)
	if c.Classname != "" {
		p.attr("classname", c.Classname)
	}
	p.attrs(c.Attrs, "name", "classname", "time")
	p.raw(` time="` + formatSeconds(c.Time) + `"`)
	if len(c.Properties) == 0 && c.Failure == nil && c.Error == nil && c.Skipped == nil && c.SystemOut == "" && c.SystemErr == "" {
		p.raw("/>\n")
		return
	}
	p.raw(">\n")
	p.depth++
	p.properties(c.Properties)
	p.detail("failure", c.Failure)
	p.detail("error", c.Error)
	if c.Skipped != nil {
		d := withReason(*c.Skipped)
		p.detail("skipped", &d)
	}
	p.output("system-out", c.SystemOut)
	p.output("system-err", c.SystemErr)
	p.depth--
	p.close("testcase")
}

// withReason puts the reason of a skipped case into the body, where TestGrid
// looks for it.
func withReason(d Detail) Detail {
	if d.Body = shown.Clean(d.Body); strings.TrimSpace(d.Body) == "" {
		if d.Body = shown.Clean(d.Message); strings.TrimSpace(d.Body) == "" {
			d.Body = "skipped"
		}
	}
	return d
}

func (p *printer) detail(element string, d *Detail) {
	if d == nil {
		return
	}
	p.indent()
	p.raw("<" + element)
	if d.Message != "" {
		p.attr("message", d.Message)
	}
	if d.Type != "" {
		p.attr("type", d.Type)
	}
	p.raw(">")
	p.text(d.Body, false)
	p.raw("</" + element + ">\n")
}

func (p *printer) output(element, text string) {
	if text = shown.Clean(text); text == "" {
		return
	}
	p.indent()
	p.raw("<" + element + ">")
	p.escaped(text, false)
	p.raw("</" + element + ">\n")
}
