package junit

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/test/golden"
)

func TestSplit(t *testing.T) {
	files, err := Split("core-network", []Case{
		{Name: "core-network.dns DNS should work", Time: 1.5},
		{Name: "core-network.hybrid pods", Failure: &Detail{Type: "unproven", Body: "no pod was seen on Windows"}},
		{Name: "core-network.later", Skipped: &Detail{Body: "no test exists"}},
	}, SplitOptions{Suite: Suite{Properties: []Property{{"windows", "10.0.20348"}}}})
	if err != nil || len(files) != 1 {
		t.Fatal(len(files), err)
	}
	if f := files[0]; f.Name != "junit_core-network_01.xml" || f.Counts != (Counts{Tests: 3, Failures: 1, Skipped: 1, Time: 1.5}) {
		t.Errorf("got %s %+v", f.Name, f.Counts)
	}
	golden.Equal(t, golden.Name(t), files[0].Data)
}

// gridName is how TestGrid's updater reads a file name.
var gridName = regexp.MustCompile(`.+/(?:junit((_[^_]+)?(_\d+-\d+)?(_\d+)?|.+)?\.xml)$`)

func TestSplitLosesNoCaseAndStaysWithinTheLimit(t *testing.T) {
	var cases []Case
	for i := range 400 {
		c := Case{Name: fmt.Sprintf("case %03d", i), Time: 1}
		if i%3 == 0 {
			c.Failure = &Detail{Body: strings.Repeat("<&>", i*20)}
		}
		cases = append(cases, c)
	}
	const limit = 100_000
	files, err := Split("serial", cases, SplitOptions{MaxFile: limit})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 10 || len(files) > 110 {
		t.Errorf("%d files", len(files))
	}
	next := 0
	for i, f := range files {
		if want := fmt.Sprintf("junit_serial_%02d.xml", i+1); f.Name != want {
			t.Errorf("got %s, want %s", f.Name, want)
		}
		if m := gridName.FindStringSubmatch("artifacts/" + f.Name); m == nil || m[2] != "_serial" || m[4] != fmt.Sprintf("_%02d", i+1) {
			t.Errorf("TestGrid reads the name %s as %q", f.Name, m)
		}
		if len(f.Data) > limit {
			t.Errorf("%s has %d bytes", f.Name, len(f.Data))
		}
		if _, err := decodeAsGrid(f.Data); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		got, sum := read(t, bytes.NewReader(f.Data), Options{})
		if sum.All != f.Counts {
			t.Errorf("%s: %+v, want %+v", f.Name, sum.All, f.Counts)
		}
		for _, c := range got {
			if c.Name != cases[next].Name {
				t.Fatalf("got %q, want %q", c.Name, cases[next].Name)
			}
			next++
		}
	}
	if next != len(cases) {
		t.Errorf("%d cases of %d", next, len(cases))
	}
}

func TestSplitCutsTheLongTextsOfACase(t *testing.T) {
	long := strings.Repeat("a line with <tags> & \x1b[31mcolour\x1b[0m ☃\n", 50_000)
	c := Case{
		Name: "n", Failure: &Detail{Message: "m", Body: long}, SystemErr: long, SystemOut: "short",
		Properties: make([]Property, 5000),
	}
	for i := range c.Properties {
		c.Properties[i] = Property{fmt.Sprint("p", i), long[:200]}
	}
	before := show([]Case{c})
	files, err := Split("big", []Case{c, {Name: "next"}}, SplitOptions{})
	if err != nil || len(files) != 1 {
		t.Fatal(len(files), err)
	}
	if n := len(files[0].Data); n > 252_000 || n < 150_000 {
		t.Errorf("%d bytes", n)
	}
	if show([]Case{c}) != before {
		t.Error("the caller's case was changed")
	}
	got, _ := read(t, bytes.NewReader(files[0].Data), Options{})
	if got[0].SystemOut != "short" || got[0].Failure.Message != "m" {
		t.Error("short texts were cut")
	}
	for _, s := range []string{got[0].Failure.Body, got[0].SystemErr} {
		if !strings.HasPrefix(s, "a line with") || !strings.HasSuffix(s, "colour ☃\n") || !strings.Contains(s, " bytes cut ...]") {
			t.Errorf("got %.100q … %q", s, s[len(s)-100:])
		}
	}
	if last := got[0].Properties[len(got[0].Properties)-1]; last.Name != "properties-cut" {
		t.Errorf("got %v", last)
	}
}

func TestSplitOfNoCasesGivesNoFiles(t *testing.T) {
	if files, err := Split("none", nil, SplitOptions{}); err != nil || len(files) != 0 {
		t.Error(files, err)
	}
}

func TestSplitRefuses(t *testing.T) {
	for _, tt := range []struct {
		context string
		opts    SplitOptions
		want    string
	}{
		{"", SplitOptions{}, "context"},
		{"core_network", SplitOptions{}, `context "core_network"`},
		{"../x", SplitOptions{}, "context"},
		{"ok", SplitOptions{MaxFile: 1000}, "does not fit"},
		{"ok", SplitOptions{MaxFile: 100_000, MaxCase: 100_000}, "does not fit"},
	} {
		if _, err := Split(tt.context, nil, tt.opts); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Split(%q, %+v): got %v, want %q", tt.context, tt.opts, err, tt.want)
		}
	}
}
