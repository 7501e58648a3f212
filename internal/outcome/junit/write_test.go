package junit

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/windows-op-readiness/windows-op-readiness/test/golden"
)

func TestWrite(t *testing.T) {
	for _, tt := range []struct {
		name string
		doc  Suites
	}{
		{"nothing", Suites{}},
		{"every field", Suites{
			Name:  "run",
			Attrs: []Property{{"id", "7"}, {"tests", "99"}, {"xmlns", "urn:x"}, {"not a name", "x"}, {"id", "again"}},
			Suites: []Suite{{
				Name:       "core <network>",
				Attrs:      []Property{{"timestamp", "2026-01-02T12:56:00"}, {"disabled", "3"}},
				Properties: []Property{{"kubernetes", "v1.36.3"}},
				Suites:     []Suite{{Name: "inner", Cases: []Case{{Name: "i", Time: 0.1}, {Name: "j", Time: 0.2}}}},
				Cases: []Case{
					{Name: "passed", Classname: "c", Time: 1234.5, Attrs: []Property{{"status", "passed"}, {"time", "no"}}},
					{Name: "failed", Failure: &Detail{Message: "a\nb \"c\"", Type: "failed", Body: "x < y && ]]> z\n\ttab\r\n"}},
					{Name: "error", Error: &Detail{Body: "e"}, SystemOut: "out", SystemErr: "err"},
					{Name: "metric", Properties: []Property{{"seconds", "1.5"}}},
				},
				SystemOut: "of the suite",
			}, {Name: ""}},
		}},
		{"reasons in the body of skipped", Suites{Suites: []Suite{{Cases: []Case{
			{Name: "body", Skipped: &Detail{Message: "short", Body: "long"}},
			{Name: "message only", Skipped: &Detail{Message: "why"}},
			{Name: "blank body", Skipped: &Detail{Message: "why", Body: " \n"}},
			{Name: "control characters only", Skipped: &Detail{Body: "\x1b[0m\x00"}},
			{Name: "nothing", Skipped: &Detail{}},
		}}}}},
		{"times", Suites{Suites: []Suite{{Cases: []Case{
			{Name: "a", Time: 1e-9}, {Name: "b", Time: 1e15}, {Name: "c", Time: math.NaN()},
			{Name: "d", Time: math.Inf(1)}, {Name: "e", Time: -1}, {Name: "f", Time: math.Copysign(0, -1)}, {Name: "g", Time: 100},
		}}}}},
		{"characters", Suites{Suites: []Suite{{Cases: []Case{
			{Name: "nul\x00bell\a\x7f", Failure: &Detail{Body: "\x1b[1;31mred\x1b[0m \x1b]0;title\aand \x1b(Bmore \x1bM \x1b"}},
			{Name: "bad \xff\xfe utf8 \xed\xa0\x80 \ufffe \u2603 \U0001F600"},
		}}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var first, second bytes.Buffer
			n, err := tt.doc.WriteTo(&first)
			if err != nil || n != int64(first.Len()) {
				t.Fatalf("wrote %d of %d bytes: %v", n, first.Len(), err)
			}
			if err := Write(&second, tt.doc); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
				t.Error("writing again gives other bytes")
			}
			if _, err := decodeAsGrid(first.Bytes()); err != nil {
				t.Errorf("TestGrid would not read it: %v", err)
			}
			_, sum := read(t, bytes.NewReader(first.Bytes()), Options{})
			if want := tt.doc.Counts(); sum.All.Tests != want.Tests || sum.All.Failures != want.Failures || sum.All.Errors != want.Errors || sum.All.Skipped != want.Skipped {
				t.Errorf("read back %+v, want %+v", sum.All, want)
			}
			golden.Equal(t, golden.Name(t), first.Bytes())
		})
	}
}

func TestWriteReturnsTheErrorOfItsWriter(t *testing.T) {
	doc := Suites{Suites: []Suite{{SystemOut: strings.Repeat("x", 1<<20)}}}
	full := errors.New("disk full")
	w := &failingWriter{after: 2, err: full}
	if err := Write(w, doc); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	if w.writes > 3 {
		t.Errorf("went on writing %d times after an error", w.writes)
	}
}

type failingWriter struct {
	writes, after int
	err           error
}

func (w *failingWriter) Write(b []byte) (int, error) {
	if w.writes++; w.writes > w.after {
		return 0, w.err
	}
	return len(b), nil
}

func TestCut(t *testing.T) {
	for _, s := range []string{
		strings.Repeat("a", 1000), strings.Repeat("é☃😀", 100), strings.Repeat("<&>\"\r\n", 200), strings.Repeat("]]>", 300),
	} {
		for _, attribute := range []bool{false, true} {
			for limit := 60; limit < 400; limit++ {
				got := cut(s, limit, attribute)
				if n := escapedLen(got, attribute); n > limit || !utf8.ValidString(got) {
					t.Fatalf("cut(%q…, %d): %d bytes: %q", s[:6], limit, n, got)
				}
				if !strings.Contains(got, " bytes cut ...]") {
					t.Fatalf("cut(%q…, %d) does not say so: %q", s[:6], limit, got)
				}
			}
		}
	}
	if got := cut("0123456789"+strings.Repeat("x", 100)+"abcdefghij", 50, false); got != "0123456789xx\n[... 96 bytes cut ...]\nxxabcdefghij" {
		t.Errorf("got %q", got)
	}
	if got := cut("short", 5, false); got != "short" {
		t.Errorf("got %q", got)
	}
}
