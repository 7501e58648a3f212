package junit

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"

	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
)

const (
	maxFile = 1_000_000   // bytes of one file
	maxCase = maxFile / 4 // bytes of one case
)

// File is one JUnit file, complete.
type File struct {
	Name string // junit_<context>_<NN>.xml
	Data []byte
}

// contextName is what TestGrid reads back as the context of a file: an
// underscore would end it.
var contextName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*$`)

// Split writes the cases, in their order, into files named
// junit_<context>_<NN>.xml, none larger than 1,000,000 bytes. Texts of a case
// that is too large are cut, the longest first, and say by how much. No cases
// give no files.
func Split(context string, cases []Case) ([]File, error) {
	if !contextName.MatchString(context) {
		return nil, fmt.Errorf("naming JUnit files: context %q: want letters, digits, dots and dashes (TestGrid ends a context at an underscore)", context)
	}
	return split(context, cases, maxFile, maxCase), nil
}

func split(context string, cases []Case, maxFile, maxCase int) []File {
	frame := len(document(counts{1e9, 1e9, 1e9, 1e9 * maxSeconds}, nil))
	var files []File
	var body bytes.Buffer
	var sum counts
	finish := func() {
		if sum.tests == 0 {
			return
		}
		files = append(files, File{
			Name: fmt.Sprintf("junit_%s_%02d.xml", context, len(files)+1),
			Data: document(sum, body.Bytes()),
		})
		body.Reset()
		sum = counts{}
	}
	var one bytes.Buffer
	for i := range cases {
		one.Reset()
		render(&one, &cases[i])
		if one.Len() > maxCase {
			one.Reset()
			shorter := fit(cases[i], maxCase)
			render(&one, &shorter)
		}
		if frame+body.Len()+one.Len() > maxFile {
			finish()
		}
		body.Write(one.Bytes())
		sum.add(&cases[i])
	}
	finish()
	return files
}

// fit returns the case with its longest texts cut, so that it renders to at most
// limit bytes.
func fit(c Case, limit int) Case {
	c.Properties = slices.Clone(c.Properties)
	for _, d := range []**Detail{&c.Failure, &c.Skipped} {
		if *d != nil {
			clone := **d
			*d = &clone
		}
	}
	if c.Skipped != nil {
		*c.Skipped = withReason(*c.Skipped)
	}

	// Names and numbers of properties first: they get a quarter.
	c.Properties = some(c.Properties, limit/4)
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
	for i := range c.Properties {
		add(&c.Properties[i].Value, true)
	}
	for _, d := range []*Detail{c.Failure, c.Skipped} {
		if d != nil {
			add(&d.Message, true)
			add(&d.Type, true)
			add(&d.Body, false)
		}
	}

	// What the case takes without its texts is fixed. The rest is shared: a text
	// below the level stays whole, the others are cut to it.
	var all bytes.Buffer
	render(&all, &c)
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
func some(ps []Property, limit int) []Property {
	const around = 2 * 64 // bytes beside name and value
	used := 0
	for i, p := range ps {
		ps[i].Name = cut(shown.Clean(p.Name), 256, true)
		if used += len(ps[i].Name)*6 + around; used > limit {
			return append(ps[:i:i], Property{Name: "properties-cut", Value: fmt.Sprint(len(ps) - i)})
		}
	}
	return ps
}
