package junit

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
)

// FuzzRead: whatever the input, reading ends, and what is accepted is what
// encoding/xml accepts and means the same. Pruning it gives a sound document
// with the same cases.
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
		got, sum, err := readAll(bytes.NewReader(data), Options{})
		slowly, _, slowErr := readAll(iotest.OneByteReader(bytes.NewReader(data)), Options{})
		if (err == nil) != (slowErr == nil) || err == nil && show(got) != show(slowly) {
			t.Fatalf("depends on how the input arrives: %v %s, %v %s", err, show(got), slowErr, show(slowly))
		}
		_, none, noneErr := readAll(bytes.NewReader(data), Options{Keep: func(string, bool) bool { return false }})
		if (err == nil) != (noneErr == nil) || err == nil && none.All != sum.All {
			t.Fatalf("depends on what is kept: %v %+v, %v %+v", err, sum.All, noneErr, none.All)
		}
		var pruned bytes.Buffer
		if _, err := Prune(&pruned, bytes.NewReader(data), Options{}); (err == nil) != (noneErr == nil) {
			t.Fatalf("Prune: %v, Read: %v", err, noneErr)
		}
		if err != nil {
			return
		}
		want, err := readSlowly(data)
		if err != nil {
			t.Fatalf("encoding/xml refuses it: %v", err)
		}
		again, _, err := readAll(bytes.NewReader(pruned.Bytes()), Options{})
		if err != nil {
			t.Fatalf("reading the pruned document: %v\n%s", err, pruned.Bytes())
		}
		for i := range again {
			if i < len(got) && got[i].Skipped != nil {
				d := withReason(*got[i].Skipped)
				again[i].Skipped, d = &d, *again[i].Skipped
				if d != *again[i].Skipped {
					t.Fatalf("pruning changes %q to %q", *again[i].Skipped, d)
				}
				again[i].Skipped = got[i].Skipped
			}
			if i < len(got) {
				again[i].Time = got[i].Time // to the nanosecond, never negative
			}
		}
		if show(again) != show(got) {
			t.Fatalf("pruning changes %s to %s", show(got), show(again))
		}
		for i := range got {
			got[i].Attrs = nil
		}
		if show(got) != show(want) {
			t.Fatalf("got %s, encoding/xml reads %s", show(got), show(want))
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
		c := Case{Name: name, Classname: class, Time: seconds, SystemOut: out, SystemErr: body,
			Attrs: []Property{{name, message}, {"status", class}}, Properties: []Property{{class, out}}}
		d := &Detail{Message: message, Type: class, Body: body}
		if kind&1 != 0 {
			c.Failure = d
		}
		if kind&2 != 0 {
			c.Skipped = d
		}
		if kind&4 != 0 {
			c.Error = d
		}
		doc := Suites{Name: out, Suites: []Suite{{Name: message, Cases: []Case{c}, Properties: []Property{{name, body}}, SystemErr: name}}}
		var b bytes.Buffer
		if err := Write(&b, doc); err != nil {
			t.Fatal(err)
		}
		if _, err := decodeAsGrid(b.Bytes()); err != nil {
			t.Fatalf("TestGrid would not read it: %v\n%s", err, b.Bytes())
		}
		got, sum, err := readAll(bytes.NewReader(b.Bytes()), Options{})
		if err != nil {
			t.Fatalf("%v\n%s", err, b.Bytes())
		}
		counts := doc.Counts()
		sum.All.Time, counts.Time = 0, 0
		if len(got) != 1 || sum.All != counts {
			t.Fatalf("%d cases, %+v, want %+v", len(got), sum.All, counts)
		}
		if got[0].Name != shown.Clean(name) || got[0].SystemOut != shown.Clean(out) || got[0].SystemErr != shown.Clean(body) || got[0].Classname != shown.Clean(class) {
			t.Fatalf("got %s\n%s", show(got), b.Bytes())
		}
		if c.Failure != nil && (got[0].Failure.Body != shown.Clean(body) || got[0].Failure.Message != shown.Clean(message)) {
			t.Fatalf("got %s\n%s", show(got), b.Bytes())
		}

		long := func(s string) string { return strings.Repeat(s, 1+20_000/(len(s)+1)) }
		c.Name, c.SystemErr = long(name), long(out)
		files, err := Split("fuzz", []Case{c, c, c}, SplitOptions{MaxFile: 40_000, MaxCase: minCase})
		if err != nil {
			t.Fatal(err)
		}
		tests := 0
		for _, file := range files {
			if len(file.Data) > 40_000 {
				t.Fatalf("%s: %d bytes", file.Name, len(file.Data))
			}
			if _, err := decodeAsGrid(file.Data); err != nil {
				t.Fatal(err)
			}
			tests += file.Counts.Tests
		}
		if tests != 3 {
			t.Fatalf("%d cases of 3", tests)
		}
	})
}
