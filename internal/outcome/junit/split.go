package junit

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"

	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
)

// SplitOptions say how Split writes. A zero stands for the default.
type SplitOptions struct {
	// Suite is the head of the one suite in each file: its name, attributes and
	// properties. TestGrid puts a name before those of the cases, so it is best
	// left empty where rows are to be named as the cases are.
	Suite Suite

	MaxFile int // bytes of one file; default 1,000,000
	MaxCase int // bytes of one case; default a quarter of MaxFile
}

// File is one JUnit file, complete.
type File struct {
	Name   string // junit_<context>_<NN>.xml
	Counts Counts
	Data   []byte
}

// contextName is what TestGrid reads back as the context of a file: an
// underscore would end it.
var contextName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*$`)

// minCase leaves room for the head of a case and for the notes of what was cut.
const minCase = 16 << 10

// Split writes the cases, in their order, into files named
// junit_<context>_<NN>.xml, none larger than opts.MaxFile. Texts of a case that
// is too large are cut, the longest first, and say by how much. No cases give
// no files.
func Split(context string, cases []Case, opts SplitOptions) ([]File, error) {
	if !contextName.MatchString(context) {
		return nil, fmt.Errorf("naming JUnit files: context %q: want letters, digits, dots and dashes (TestGrid ends a context at an underscore)", context)
	}
	if opts.MaxFile <= 0 {
		opts.MaxFile = 1_000_000
	}
	if opts.MaxCase <= 0 {
		opts.MaxCase = opts.MaxFile / 4
	}
	opts.Suite.Cases, opts.Suite.Suites = nil, nil
	frame := Counts{Tests: 1e9, Failures: 1e9, Errors: 1e9, Skipped: 1e9, Time: 1e9 * maxSeconds}
	empty := len(wrap(opts.Suite, frame, nil))
	if opts.MaxCase < minCase || empty+opts.MaxCase > opts.MaxFile {
		return nil, fmt.Errorf("splitting JUnit: a case of %d bytes (at least %d) beside %d bytes of head does not fit into a file of %d",
			opts.MaxCase, minCase, empty, opts.MaxFile)
	}

	var files []File
	var body bytes.Buffer
	var counts Counts
	finish := func() {
		if counts.Tests == 0 {
			return
		}
		files = append(files, File{
			Name:   fmt.Sprintf("junit_%s_%02d.xml", context, len(files)+1),
			Counts: counts,
			Data:   wrap(opts.Suite, counts, body.Bytes()),
		})
		body.Reset()
		counts = Counts{}
	}
	var one bytes.Buffer
	for i := range cases {
		one.Reset()
		render(&one, cases[i])
		if one.Len() > opts.MaxCase {
			one.Reset()
			render(&one, fit(cases[i], opts.MaxCase))
		}
		if empty+body.Len()+one.Len() > opts.MaxFile {
			finish()
		}
		body.Write(one.Bytes())
		counts = counts.Plus(cases[i].Counts())
	}
	finish()
	return files, nil
}

// render writes one case as it stands in a file of Split.
func render(to *bytes.Buffer, c Case) {
	p := printer{w: to, depth: 2}
	p.testcase(&c)
	p.flush()
}

// wrap puts the rendered cases into a document.
func wrap(s Suite, c Counts, body []byte) []byte {
	var b bytes.Buffer
	p := printer{w: &b}
	p.raw(header)
	p.head("testsuites", "", nil)
	p.counts(c)
	p.depth++
	p.head("testsuite", s.Name, s.Attrs)
	p.counts(c)
	p.depth++
	p.properties(s.Properties)
	p.flush()
	b.Write(body)
	p.output("system-out", s.SystemOut)
	p.output("system-err", s.SystemErr)
	p.depth--
	p.close("testsuite")
	p.depth--
	p.close("testsuites")
	p.flush()
	return b.Bytes()
}

// fit returns the case with its longest texts cut, so that it renders to at most
// limit bytes.
func fit(c Case, limit int) Case {
	c.Attrs = slices.Clone(c.Attrs)
	c.Properties = slices.Clone(c.Properties)
	for _, d := range []**Detail{&c.Failure, &c.Error, &c.Skipped} {
		if *d != nil {
			clone := **d
			*d = &clone
		}
	}
	if c.Skipped != nil {
		*c.Skipped = withReason(*c.Skipped)
	}

	// Names and numbers of things first: they get a quarter.
	const perThing = 64 // bytes around an attribute or property
	c.Attrs = some(c.Attrs, limit/8, perThing)
	c.Properties = some(c.Properties, limit/4, perThing)
	type text struct {
		s         *string
		attribute bool
		size      int
	}
	var texts []text
	add := func(s *string, attribute bool) {
		*s = shown.Clean(*s)
		texts = append(texts, text{s, attribute, escapedLen(*s, attribute)})
	}
	add(&c.Name, true)
	add(&c.Classname, true)
	for i := range c.Attrs {
		add(&c.Attrs[i].Value, true)
	}
	for i := range c.Properties {
		add(&c.Properties[i].Value, true)
	}
	for _, d := range []*Detail{c.Failure, c.Error, c.Skipped} {
		if d != nil {
			add(&d.Message, true)
			add(&d.Type, true)
			add(&d.Body, false)
		}
	}
	add(&c.SystemOut, false)
	add(&c.SystemErr, false)

	// What the case takes without its texts is fixed. The rest is shared: a text
	// below the level stays whole, the others are cut to it.
	var all bytes.Buffer
	render(&all, c)
	room := limit - all.Len()
	sizes := make([]int, len(texts))
	for i, t := range texts {
		room += t.size
		sizes[i] = t.size
	}
	slices.Sort(sizes)
	level := 0
	for i, size := range sizes {
		level = room / (len(sizes) - i)
		if size > level {
			break
		}
		room -= size
	}
	for _, t := range texts {
		*t.s = cut(*t.s, level, t.attribute)
	}
	return c
}

// some returns as many of the properties as have their names and values begun in
// limit bytes, and says how many are missing.
func some(ps []Property, limit, each int) []Property {
	used := 0
	for i, p := range ps {
		ps[i].Name = cut(shown.Clean(p.Name), 256, true)
		if used += len(ps[i].Name)*6 + 2*each; used > limit {
			return append(ps[:i:i], Property{Name: "properties-cut", Value: fmt.Sprint(len(ps) - i)})
		}
	}
	return ps
}
