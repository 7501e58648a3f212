package junit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/windows-op-readiness/windows-op-readiness/test/golden"
)

func TestPrune(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   func() string
		keep Keep
	}{
		{"ginkgo", func() string {
			b, err := os.ReadFile("testdata/ginkgo.xml")
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}, NotSkipped},
		{"skipped by name", func() string { return mixed }, func(name string, _ bool) bool { return name == "skipped" }},
		{"nested suites", func() string {
			return `<testsuite name="a" tests="77" time="x" id="1"><properties><property name="p" value="v"/></properties>
<testsuite name="b"><testcase name="1" time="1"><skipped/></testcase><testcase name="2" time="2"/><system-out>of b</system-out></testsuite>
<testsuite name="c"><testcase name="3"><error>e</error></testcase></testsuite><testcase name="4" time="4"/><unknown/></testsuite>`
		}, NotSkipped},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			sum, err := Prune(&out, strings.NewReader(tt.in()), Options{Keep: tt.keep})
			if err != nil {
				t.Fatal(err)
			}
			golden.Equal(t, golden.Name(t), out.Bytes())
			_, again := read(t, &out, Options{})
			if again.All != sum.Kept {
				t.Errorf("wrote %+v, want %+v", again.All, sum.Kept)
			}
		})
	}
}

// large is a document of which much is kept.
func large(cases int) string {
	var b strings.Builder
	b.WriteString(`<testsuites><testsuite name="s">`)
	for i := range cases {
		fmt.Fprintf(&b, `<testcase name="skip %d"><skipped/></testcase><testcase name="%d" time="1"><failure>%s</failure></testcase>`, i, i, strings.Repeat("x", 1000))
	}
	b.WriteString(`</testsuite><testsuite name="t"><testcase name="last"><error>e</error></testcase></testsuite></testsuites>`)
	return b.String()
}

func TestPruneReadsTwiceWhatItCannotHold(t *testing.T) {
	const n = 3 * MaxHeld / 1000
	junk := "not XML: the document begins where the file stands"
	src := strings.NewReader(junk + large(n))
	if _, err := src.Seek(int64(len(junk)), io.SeekStart); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	sum, err := Prune(&out, src, Options{Keep: NotSkipped})
	if err != nil {
		t.Fatal(err)
	}
	want := Counts{Tests: n + 1, Failures: n, Errors: 1, Time: n}
	if sum.Kept != want || sum.All.Skipped != n {
		t.Errorf("got %+v, want %+v kept", sum, want)
	}
	grid, err := decodeAsGrid(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if s := grid.Suites[0]; s.Tests != n || s.Failures != n || len(s.Results) != n || grid.Suites[1].Tests != 1 {
		t.Errorf("counts in the file are wrong: %d %d %d", s.Tests, s.Failures, len(s.Results))
	}

	// Both ways write the same.
	small := large(10)
	var once, twice bytes.Buffer
	if _, err := Prune(&once, strings.NewReader(small), Options{}); err != nil {
		t.Fatal(err)
	}
	p := newPruner(strings.NewReader(small), Options{}, &spool{full: true})
	p.counting = true
	if err := p.document(); err != nil {
		t.Fatal(err)
	}
	q := newPruner(strings.NewReader(small), Options{}, &twice)
	q.counted = p.counted
	if err := q.document(); err != nil {
		t.Fatal(err)
	}
	if once.String() != twice.String() {
		t.Errorf("once:\n%s\ntwice:\n%s", once.String(), twice.String())
	}
}

func TestPruneOfAStream(t *testing.T) {
	stream := func(n int) io.Reader { return io.MultiReader(strings.NewReader(large(n))) }
	if _, err := Prune(io.Discard, stream(100), Options{}); err != nil {
		t.Errorf("a small one: %v", err)
	}
	var out bytes.Buffer
	if _, err := Prune(&out, stream(3*MaxHeld/1000), Options{Source: "stdin"}); !errors.Is(err, ErrTooMuchKept) || !strings.Contains(err.Error(), "stdin") {
		t.Errorf("a large one: got %v, want ErrTooMuchKept", err)
	}
	if out.Len() > 0 {
		t.Error("something was written")
	}
}

func TestPruneWritesNothingOfABrokenInput(t *testing.T) {
	var out bytes.Buffer
	_, err := Prune(&out, strings.NewReader(mixed[:len(mixed)-5]), Options{Source: "f.xml"})
	var e *Error
	if !errors.As(err, &e) || out.Len() > 0 {
		t.Errorf("got %v, wrote %d bytes", err, out.Len())
	}
}

func TestPruneNoticesThatItsInputChanged(t *testing.T) {
	src := &changing{first: large(3 * MaxHeld / 1000), second: mixed}
	if _, err := Prune(io.Discard, src, Options{}); err == nil || !strings.Contains(err.Error(), "changed while") {
		t.Errorf("got %v", err)
	}
}

// changing is another document after it was sought in.
type changing struct {
	first, second string
	*strings.Reader
}

func (c *changing) Read(b []byte) (int, error) {
	if c.Reader == nil {
		c.Reader = strings.NewReader(c.first)
	}
	return c.Reader.Read(b)
}

func (c *changing) Seek(_ int64, whence int) (int64, error) {
	if whence == io.SeekStart {
		c.Reader = strings.NewReader(c.second)
	}
	return 0, nil
}

func TestPruneReturnsTheErrorOfItsWriter(t *testing.T) {
	full := errors.New("disk full")
	for _, n := range []int{10, 3 * MaxHeld / 1000} {
		if _, err := Prune(&failingWriter{err: full}, strings.NewReader(large(n)), Options{}); !errors.Is(err, full) {
			t.Errorf("%d cases: got %v", n, err)
		}
	}
	if _, err := Prune(io.Discard, iotest.ErrReader(full), Options{}); !errors.Is(err, full) {
		t.Errorf("got %v, want the error of the reader", err)
	}
}
