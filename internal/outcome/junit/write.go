package junit

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
)

const header = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"

// document puts rendered cases into a document of one suite. The suite has no
// name: TestGrid would put it before those of the cases.
func document(c counts, cases []byte) []byte {
	numbers := fmt.Sprintf(` tests="%d" failures="%d" errors="0" skipped="%d" time="%s">`+"\n",
		c.tests, c.failures, c.skipped, formatSeconds(c.time))
	var b bytes.Buffer
	b.WriteString(header + "<testsuites" + numbers + `  <testsuite name=""` + numbers)
	b.Write(cases)
	b.WriteString("  </testsuite>\n</testsuites>\n")
	return b.Bytes()
}

// render writes one case.
func render(b *bytes.Buffer, c *Case) {
	const indent = "    "
	b.WriteString(indent + "<testcase")
	attribute(b, "name", c.Name)
	attribute(b, "time", formatSeconds(c.Time))
	if len(c.Properties) == 0 && c.Failure == nil && c.Skipped == nil {
		b.WriteString("/>\n")
		return
	}
	b.WriteString(">\n")
	if len(c.Properties) > 0 {
		b.WriteString(indent + "  <properties>\n")
		for _, p := range c.Properties {
			b.WriteString(indent + "    <property")
			attribute(b, "name", p.Name)
			attribute(b, "value", p.Value)
			b.WriteString("/>\n")
		}
		b.WriteString(indent + "  </properties>\n")
	}
	if c.Failure != nil {
		detail(b, indent+"  ", "failure", *c.Failure)
	}
	if c.Skipped != nil {
		detail(b, indent+"  ", "skipped", withReason(*c.Skipped))
	}
	b.WriteString(indent + "</testcase>\n")
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

func detail(b *bytes.Buffer, indent, element string, d Detail) {
	b.WriteString(indent + "<" + element)
	if d.Message != "" {
		attribute(b, "message", d.Message)
	}
	if d.Type != "" {
		attribute(b, "type", d.Type)
	}
	b.WriteString(">")
	text(b, d.Body, false)
	b.WriteString("</" + element + ">\n")
}

func attribute(b *bytes.Buffer, name, value string) {
	b.WriteString(" " + name + `="`)
	text(b, value, true)
	b.WriteByte('"')
}

// text writes character data or an attribute's value.
func text(b *bytes.Buffer, s string, attribute bool) {
	s = shown.Clean(s)
	from := 0
	for i := range len(s) {
		if e := escape(s, i, attribute); e != "" {
			b.WriteString(s[from:i])
			b.WriteString(e)
			from = i + 1
		}
	}
	b.WriteString(s[from:])
}
