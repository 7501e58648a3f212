package junit

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
)

// FuzzRead: whatever the input, reading ends, and what is accepted means what
// encoding/xml makes of the whole of it.
func FuzzRead(f *testing.F) {
	f.Add([]byte(mixed))
	f.Add([]byte("<?xml version='1.0' encoding='utf-8'?><testsuite name='a'><!-- c --><testcase name='&#10;' time='1'><failure><![CDATA[]]]]>&amp;\r\n</failure></testcase></testsuite>"))
	f.Add([]byte("<testsuites><testsuite><properties><property name='a'>b</property></properties><system-out>x</system-out></testsuite></testsuites>"))
	f.Add([]byte("\ufeff<a:testsuite xmlns:a='b'/>"))
	f.Add([]byte("<!DOCTYPE a><testsuite/>"))
	if b, err := os.ReadFile("testdata/ginkgo.xml"); err == nil {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := readAll(bytes.NewReader(data))
		slowly, slowErr := readAll(iotest.OneByteReader(bytes.NewReader(data)))
		if (err == nil) != (slowErr == nil) || !slices.Equal(got, slowly) {
			t.Fatalf("depends on how the input arrives: %v %+v, %v %+v", err, got, slowErr, slowly)
		}
		if err != nil {
			return
		}
		want, err := readSlowly(data)
		if err != nil {
			t.Fatalf("encoding/xml refuses it: %v", err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %+v, encoding/xml reads %+v", got, want)
		}
	})
}

// FuzzWrite: whatever the strings, the output is what TestGrid accepts and what
// Read reads back.
func FuzzWrite(f *testing.F) {
	f.Add("name", "class", "message", "body", "out", 1.5, uint8(1))
	f.Add("\x1b[31m\x00", "\xff", "\ufffe", "]]>", "\r\n", -1.0, uint8(2))
	f.Add("]]", "&#0;", "\"'<>", "<![CDATA[", "\x1b]0;", 1e300, uint8(4))
	f.Fuzz(func(t *testing.T, name, class, message, body, out string, seconds float64, kind uint8) {
		c := Case{Name: name, Time: seconds, Properties: []Property{{class, out}}}
		d := &Detail{Message: message, Type: class, Body: body}
		if kind&1 != 0 {
			c.Failure = d
		}
		if kind&2 != 0 {
			c.Skipped = d
		}
		files, err := Split("fuzz", []Case{c})
		if err != nil {
			t.Fatal(err)
		}
		written := files[0].Data
		grid, err := decodeAsGrid(written)
		if err != nil {
			t.Fatalf("TestGrid would not read it: %v\n%s", err, written)
		}
		results, err := readAll(bytes.NewReader(written))
		if err != nil {
			t.Fatalf("%v\n%s", err, written)
		}
		if want := (Result{Name: shown.Clean(name), Failed: kind&1 != 0, Skipped: kind&3 == 2}); !slices.Equal(results, []Result{want}) {
			t.Fatalf("got %+v, want %+v\n%s", results, want, written)
		}
		if p := grid[0].Properties[0]; p.Name != shown.Clean(class) || p.Value != shown.Clean(out) {
			t.Fatalf("got %+v\n%s", p, written)
		}
		if f := grid[0].Failure; f != nil && (f.Value != shown.Clean(body) || f.Message != shown.Clean(message)) {
			t.Fatalf("got %+v\n%s", f, written)
		}

		long := func(s string) string { return strings.Repeat(s, 1+20_000/(len(s)+1)) }
		c.Name, d.Body = long(name), long(out)
		tests := 0
		for _, file := range split("fuzz", []Case{c, c, c}, 40_000, 16<<10) {
			if len(file.Data) > 40_000 {
				t.Fatalf("%s: %d bytes", file.Name, len(file.Data))
			}
			grid, err := decodeAsGrid(file.Data)
			if err != nil {
				t.Fatal(err)
			}
			tests += len(grid)
		}
		if tests != 3 {
			t.Fatalf("%d cases of 3", tests)
		}
	})
}
