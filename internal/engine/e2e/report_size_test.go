package e2e

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
)

// source writes a text that is never in memory as a whole, and notes how much
// memory is in use while it is read.
type source struct {
	io.Reader
	read, next int
	peak       uint64
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if s.read += n; s.read >= s.next {
		s.next = s.read + 1<<20
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		s.peak = max(s.peak, now.HeapAlloc)
	}
	return n, err
}

// repeated reads text n times over, with its number in it.
func repeated(n int, text func(i int) string) io.Reader {
	i, rest := 0, ""
	return readerFunc(func(p []byte) (int, error) {
		if rest == "" {
			if i == n {
				return 0, io.EOF
			}
			rest = text(i)
			i++
		}
		read := copy(p, rest)
		rest = rest[read:]
		return read, nil
	})
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A report of 250 MiB takes little memory, whatever is long in it.
func TestMemoryForAHugeReport(t *testing.T) {
	const size, budget = 250 << 20, 200 << 20
	much := strings.Repeat("much is printed. ", 1<<20/17)
	long := func(bytes int) io.Reader { return repeated(bytes/len(much), func(int) string { return much }) }
	spec := func(i int, rest string) string {
		return fmt.Sprintf(`{"ContainerHierarchyTexts":["[sig-x]"],"LeafNodeType":"It","LeafNodeText":"number %d","RunTime":1,%s},`, i, rest)
	}
	const last = `{"LeafNodeType":"It","LeafNodeText":"the last","State":"passed","RunTime":1}]}]`
	var asked []string
	for i := range 250 {
		asked = append(asked, fmt.Sprintf("[sig-x] number %d", i))
	}
	for what, c := range map[string]struct {
		specs io.Reader
		bad   string
	}{
		"much of many tests": {specs: repeated(250, func(i int) string {
			return spec(i, `"State":"passed","CapturedGinkgoWriterOutput":"`+much+`"`)
		})},
		"long failures of all that was asked for": {specs: repeated(250, func(i int) string {
			return spec(i, `"State":"failed","Failure":{"Message":"`+much+`"}`)
		})},
		"tests that nobody asked for": {specs: repeated(90_000, func(i int) string {
			return spec(i+1000, `"State":"failed","CapturedGinkgoWriterOutput":"`+much[:2700]+`"`)
		})},
		"more tests than there are": {specs: repeated(size/120, func(i int) string { return spec(i+1000, `"State":"failed"`) }), bad: "it lists over 100000 tests and nodes"},
		"nodes that failed": {specs: repeated(250, func(int) string {
			return `{"LeafNodeType":"AfterSuite","State":"failed","Failure":{"Message":"` + much + `"}},`
		})},
		"15 MiB of one test": {specs: repeated(16, func(i int) string {
			return spec(i, `"State":"passed","CapturedGinkgoWriterOutput":"`+strings.Repeat(much, 15)+`"`)
		})},
		"all of one field": {
			specs: io.MultiReader(strings.NewReader(`{"State":"passed","CapturedGinkgoWriterOutput":"`), long(size), strings.NewReader(`"},`)),
			bad:   "one of its fields has over 16 MiB",
		},
		"all of a list of small things": {
			specs: io.MultiReader(strings.NewReader(`{"SpecEvents":[0`), repeated(size/8, func(int) string { return ",1234567" }), strings.NewReader(`]},`)),
			bad:   "one of its fields has over 16 MiB",
		},
		"all of one name": {
			specs: io.MultiReader(strings.NewReader(`{"LeafNodeText":"`), long(size), strings.NewReader(`"},`)),
			bad:   "one of its fields has over 16 MiB",
		},
		"all of a field's name": {
			specs: io.MultiReader(strings.NewReader(`{"`), long(size), strings.NewReader(`":1},`)),
			bad:   "one of its fields has over 16 MiB",
		},
		"all of it blanks": {
			specs: repeated(size/len(much), func(int) string { return strings.Repeat(" ", len(much)) }),
			bad:   "one of its fields has over 16 MiB",
		},
		"nested": {
			specs: io.MultiReader(strings.NewReader(`{"SpecEvents":`), repeated(size, func(int) string { return "[" })),
			bad:   "exceeded max depth",
		},
	} {
		t.Run(what, func(t *testing.T) {
			runtime.GC()
			var before runtime.MemStats
			runtime.ReadMemStats(&before)
			s := &source{Reader: io.MultiReader(strings.NewReader(`[{"SuiteSucceeded":true,"SpecReports":[`), c.specs, strings.NewReader(last))}
			report, err := readReport(s, append(asked, "the last"))
			if c.bad == "" && (err != nil || report.Tests["the last"].State != "passed") || c.bad != "" && (err == nil || !strings.Contains(err.Error(), c.bad)) {
				t.Errorf("error %v, want %q", err, c.bad)
			}
			if used := max(s.peak, before.HeapAlloc) - before.HeapAlloc; used > budget {
				t.Errorf("%d MiB read took %d MiB of memory", s.read>>20, used>>20)
			} else {
				t.Logf("%d MiB read, at most %d MiB of memory", s.read>>20, used>>20)
			}
		})
	}
}
