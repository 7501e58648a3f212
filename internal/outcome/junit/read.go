package junit

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Limits bound what is read. A zero stands for the default.
type Limits struct {
	Bytes  int64 // of the input; default 1 GiB
	Case   int   // bytes of one testcase, or of another element in a suite; default 4 MiB
	Tag    int   // bytes of one tag with its attributes, one comment; default 1 MiB
	Depth  int   // of elements in elements; default 32
	Suites int   // in the input; default 100,000
}

func (l Limits) withDefaults() Limits {
	orDefault := func(n *int, d int) {
		if *n <= 0 {
			*n = d
		}
	}
	orDefault(&l.Case, 4<<20)
	orDefault(&l.Tag, 1<<20)
	orDefault(&l.Depth, 32)
	orDefault(&l.Suites, 100_000)
	if l.Bytes <= 0 {
		l.Bytes = 1 << 30
	}
	return l
}

// Keep tells whether a case is wanted. It must depend on nothing but its
// arguments and may be called several times for a case. A case is skipped if it
// says so and neither failed nor had an error.
type Keep func(name string, skipped bool) bool

// NotSkipped keeps the cases that ran.
func NotSkipped(_ string, skipped bool) bool { return !skipped }

// Options say what to read.
type Options struct {
	Source string // how errors name the input, a file name for example
	Keep   Keep   // nil keeps every case
	Limits Limits
}

// Summary tells what was read.
type Summary struct {
	All  Counts // every case of the input
	Kept Counts // the cases that Keep wanted
}

// Read calls each for every case that is wanted, in the order of the input. What
// is not wanted is checked but not decoded. An error of each ends the reading
// and is returned as it is; one about the input is an *Error. The summary
// is of what was read until then.
func Read(r io.Reader, opts Options, each func(Case) error) (Summary, error) {
	p := newParser(r, opts)
	p.onCase = func(c *Case) error {
		own := *c
		own.Attrs = slices.Clone(c.Attrs)
		for _, d := range []**Detail{&own.Failure, &own.Error, &own.Skipped} {
			if *d != nil {
				clone := **d
				*d = &clone
			}
		}
		return each(own)
	}
	err := p.document()
	return p.sum, err
}

const (
	maxChildren   = 100    // elements directly in a case
	maxProperties = 10_000 // of a case or suite
	maxSuiteName  = 32 << 10
)

// parser turns tokens into cases. Its on-functions, where they are set, are
// called in the order of the input.
type parser struct {
	*scanner
	keep    Keep
	sum     Summary
	suites  int      // seen so far
	path    []string // names of the open suites, shared with the cases
	raw     []byte   // text under construction
	class   string   // the last classname: most cases have the same
	current Case     // the case being read; it and what it points to are used again
	details [3]Detail

	onSuite      func(name string, t tag) error // its start
	onProperties func([]Property) error         // of a suite
	onOutput     func(element, text string) error
	onCase       func(*Case) error // valid until it returns
	onCounts     func(kept Counts) // one case, when it is kept
	onSuiteEnd   func() error
}

func newParser(r io.Reader, opts Options) *parser {
	keep := opts.Keep
	if keep == nil {
		keep = func(string, bool) bool { return true }
	}
	return &parser{scanner: newScanner(r, opts.Source, opts.Limits.withDefaults()), keep: keep}
}

// document reads all of the input.
func (p *parser) document() error {
	if err := p.start(); err != nil {
		return err
	}
	t, err := p.next()
	if err != nil {
		return err
	}
	if t != tokenStart || p.tag.name != "testsuites" && p.tag.name != "testsuite" {
		return p.fail("the root element is <%s>: want <testsuites> or <testsuite>", clip(p.tag.name))
	}
	if err := p.suite(); err != nil {
		return err
	}
	_, err = p.next() // nothing but comments may follow
	return err
}

// suite reads what a testsuites or testsuite element holds.
func (p *parser) suite() error {
	if p.suites++; p.suites > p.limits.Suites {
		return p.fail("more suites than the limit of %d", p.limits.Suites)
	}
	if p.onSuite != nil {
		if err := p.onSuite(p.tag.name, p.tag); err != nil {
			return err
		}
	}
	outer := p.path
	if name := p.attr("name"); name != "" && p.tag.name == "testsuite" {
		if len(name) > maxSuiteName {
			return p.fail("the name of a suite is longer than the limit of %d bytes", maxSuiteName)
		}
		p.path = append(slices.Clip(outer), name)
	}
	for {
		t, err := p.next()
		if err != nil {
			return err
		}
		switch t {
		case tokenText:
			continue
		case tokenEnd:
			p.path = outer
			if p.onSuiteEnd != nil {
				return p.onSuiteEnd()
			}
			return nil
		}
		from := p.offset()
		switch name := p.tag.name; {
		case name == "testcase":
			err = p.testcase()
		case name == "testsuite" || name == "testsuites":
			err = p.suite()
		case name == "properties" && p.onProperties != nil:
			var ps []Property
			if ps, err = p.properties(nil, from); err == nil {
				err = p.onProperties(ps)
			}
		case (name == "system-out" || name == "system-err") && p.onOutput != nil:
			var text string
			if text, err = p.content(from, true); err == nil {
				err = p.onOutput(name, text)
			}
		default:
			_, err = p.content(from, false)
		}
		if err != nil {
			return err
		}
	}
}

// testcase reads a case and hands it on if it is wanted.
func (p *parser) testcase() error {
	from := p.offset()
	at := p.pos
	var name string
	seconds := 0.0
	for _, a := range p.tag.attrs {
		switch string(a.name) {
		case "name":
			name = p.value(a.value)
		case "time":
			s, err := parseSeconds(p.value(a.value))
			if err != nil {
				return p.failAt(at, "test case %q: %v", clip(name), err)
			}
			seconds = s
		}
	}

	wanted := [2]bool{p.keep(name, false), p.keep(name, true)}
	decoding := wanted[0] || wanted[1]
	c := &p.current
	*c = Case{Name: name, Time: seconds, Suites: p.path, Attrs: c.Attrs[:0]}
	if decoding {
		c.Classname = p.attr("classname")
		p.class = c.Classname
		c.Attrs = p.otherAttrs(c.Attrs, "name", "classname", "time")
	}
	var failure, errored, skipped bool
	p.details = [3]Detail{}
	details := &p.details
	for children := 0; ; {
		t, err := p.next()
		if err != nil {
			return err
		}
		if n := p.offset() - from; n > int64(p.limits.Case) {
			return p.tooLong("test case", name)
		}
		if t == tokenText {
			continue
		}
		if t == tokenEnd {
			break
		}
		if children++; children > maxChildren {
			return p.fail("test case %q has more elements than the limit of %d", clip(name), maxChildren)
		}
		switch p.tag.name {
		case "failure":
			err = p.detail(&details[0], failure, decoding, from)
			failure = true
		case "error":
			err = p.detail(&details[1], errored, decoding, from)
			errored = true
		case "skipped":
			err = p.detail(&details[2], skipped, decoding, from)
			skipped = true
		case "system-out":
			err = p.output(&c.SystemOut, decoding, from)
		case "system-err":
			err = p.output(&c.SystemErr, decoding, from)
		case "properties":
			if decoding {
				c.Properties, err = p.properties(c.Properties, from)
				break
			}
			fallthrough
		default:
			_, err = p.content(from, false)
		}
		if err != nil {
			return err
		}
	}

	counts := count(failure, errored, skipped, seconds)
	p.sum.All = p.sum.All.Plus(counts)
	keep := wanted[0]
	if counts.Skipped > 0 {
		keep = wanted[1]
	}
	if !keep {
		return nil
	}
	p.sum.Kept = p.sum.Kept.Plus(counts)
	if p.onCounts != nil {
		p.onCounts(counts)
	}
	if p.onCase == nil {
		return nil
	}
	if failure {
		c.Failure = &details[0]
	}
	if errored {
		c.Error = &details[1]
	}
	if skipped {
		c.Skipped = &details[2]
	}
	return p.onCase(c)
}

// detail reads a failure, error or skipped element. A case may have several of
// a kind: nothing of them is lost.
func (p *parser) detail(d *Detail, again, decoding bool, from int64) error {
	if !decoding {
		_, err := p.content(from, false)
		return err
	}
	message, typ := p.attr("message"), p.attr("type")
	body, err := p.content(from, true)
	if err != nil {
		return err
	}
	if !again {
		*d = Detail{Message: message, Type: typ, Body: body}
		return nil
	}
	if message != d.Message {
		d.Message = joined(d.Message, message)
	}
	if typ != d.Type {
		d.Type = joined(d.Type, typ)
	}
	d.Body = joined(d.Body, body)
	return nil
}

func (p *parser) output(dst *string, decoding bool, from int64) error {
	text, err := p.content(from, decoding)
	*dst = joined(*dst, text)
	return err
}

// joined puts the second text on a line of its own behind the first.
func joined(a, b string) string {
	switch {
	case b == "":
		return a
	case a == "":
		return b
	case strings.HasSuffix(a, "\n"):
		return a + b
	}
	return a + "\n" + b
}

// content reads up to the end of the element just begun and returns the text
// that stands directly in it, if that is wanted.
func (p *parser) content(from int64, want bool) (string, error) {
	p.raw = p.scratch()
	for depth := 1; depth > 0; {
		t, err := p.next()
		if err != nil {
			return "", err
		}
		if p.offset()-from > int64(p.limits.Case) {
			return "", p.tooLong("element", p.lastOpen())
		}
		switch t {
		case tokenStart:
			depth++
		case tokenEnd:
			depth--
		case tokenText:
			if !want || depth != 1 {
				continue
			}
			p.raw = decode(p.raw, p.text, p.literal)
		}
	}
	return string(p.raw), nil
}

// properties reads the property elements of a properties element.
func (p *parser) properties(ps []Property, from int64) ([]Property, error) {
	for {
		t, err := p.next()
		if err != nil {
			return nil, err
		}
		if p.offset()-from > int64(p.limits.Case) {
			return nil, p.tooLong("element", "properties")
		}
		switch t {
		case tokenEnd:
			return ps, nil
		case tokenStart:
			is := p.tag.name == "property"
			prop := Property{Name: p.attr("name"), Value: p.attr("value")}
			text, err := p.content(from, is)
			if err != nil {
				return nil, err
			}
			if prop.Value == "" {
				prop.Value = text
			}
			if len(ps) == maxProperties {
				return nil, p.fail("more properties in one element than the limit of %d", maxProperties)
			}
			if is {
				ps = append(ps, prop)
			}
		}
	}
}

func (p *parser) lastOpen() string {
	if n := len(p.open); n > 0 {
		return p.open[n-1]
	}
	return ""
}

func (p *parser) tooLong(what, name string) error {
	return p.fail("%s %q is longer than the limit of %d bytes", what, clip(name), p.limits.Case)
}

// scratch returns an empty buffer to decode into. It is used again, however
// large it became: the limit of a case bounds it.
func (p *parser) scratch() []byte { return p.raw[:0] }

// value returns the value that an attribute stands for.
func (p *parser) value(raw []byte) string {
	p.raw = decode(p.scratch(), raw, false)
	switch string(p.raw) { // the commonest, without an allocation
	case p.class:
		return p.class
	case "skipped":
		return "skipped"
	case "passed":
		return "passed"
	case "0":
		return "0"
	}
	return string(p.raw)
}

// attr returns the value of an attribute of the current tag.
func (p *parser) attr(name string) string {
	for _, a := range p.tag.attrs {
		if string(a.name) == name {
			return p.value(a.value)
		}
	}
	return ""
}

// otherAttrs appends the attributes of the current tag but the named ones and
// those of name spaces.
func (p *parser) otherAttrs(out []Property, but ...string) []Property {
	for _, a := range p.tag.attrs {
		if name := intern(a.name); !slices.Contains(but, name) && name != "xmlns" && !strings.Contains(name, ":") {
			out = append(out, Property{Name: name, Value: p.value(a.value)})
		}
	}
	return out
}

// parseSeconds reads a time attribute. Beside plain numbers it understands the
// thousands separators that some writers put in.
func parseSeconds(s string) (float64, error) {
	t := strings.TrimSpace(s)
	if t == "" {
		return 0, nil
	}
	f, err := strconv.ParseFloat(t, 64)
	if err != nil && strings.Contains(t, ",") {
		f, err = strconv.ParseFloat(strings.ReplaceAll(t, ",", ""), 64)
	}
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || strings.ContainsAny(t, "xX_pPnN") {
		return 0, fmt.Errorf("time %q is not a number of seconds", clip(s))
	}
	return f, nil
}
