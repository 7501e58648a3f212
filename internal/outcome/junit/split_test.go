package junit

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/test/golden"
)

func TestSplit(t *testing.T) {
	windows := []Property{{"windows", "10.0.20348"}}
	files, err := Split("core-network", []Case{
		{Name: "core-network.dns DNS should work", Time: 1.5, Properties: windows},
		{Name: "core-network.hybrid pods", Failure: &Detail{Type: "unproven", Body: "no pod was seen on Windows"}},
		{Name: "core-network.later", Skipped: &Detail{Body: "no test exists"}},
	})
	if err != nil || len(files) != 1 {
		t.Fatal(len(files), err)
	}
	if name := files[0].Name; name != "junit_core-network_01.xml" {
		t.Errorf("got %s", name)
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
	files := split("serial", cases, limit, limit/4)
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
		got, err := decodeAsGrid(f.Data)
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
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
		Name: "n", Failure: &Detail{Message: "m", Body: long}, Skipped: &Detail{Type: "short", Body: long},
		Properties: make([]Property, 5000),
	}
	for i := range c.Properties {
		c.Properties[i] = Property{fmt.Sprint("p", i), long[:200]}
	}
	before := fmt.Sprintf("%v %v %v", c, *c.Failure, *c.Skipped)
	files, err := Split("big", []Case{c, {Name: "next"}})
	if err != nil || len(files) != 1 {
		t.Fatal(len(files), err)
	}
	if n := len(files[0].Data); n > 252_000 || n < 150_000 {
		t.Errorf("%d bytes", n)
	}
	if fmt.Sprintf("%v %v %v", c, *c.Failure, *c.Skipped) != before {
		t.Error("the caller's case was changed")
	}
	got, err := decodeAsGrid(files[0].Data)
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Failure.Message != "m" {
		t.Error("a short text was cut")
	}
	for _, s := range []string{got[0].Failure.Value, got[0].Skipped.Value} {
		if !strings.HasPrefix(s, "a line with") || !strings.HasSuffix(s, "colour ☃\n") || !strings.Contains(s, " bytes cut ...]") {
			t.Errorf("got %.100q … %q", s, s[len(s)-100:])
		}
	}
	if last := got[0].Properties[len(got[0].Properties)-1]; last.Name != "properties-cut" {
		t.Errorf("got %v", last)
	}
}

func TestSplitOfNoCasesGivesNoFiles(t *testing.T) {
	if files, err := Split("none", nil); err != nil || len(files) != 0 {
		t.Error(files, err)
	}
}

func TestSplitRefuses(t *testing.T) {
	for _, context := range []string{"", "core_network", "../x"} {
		if _, err := Split(context, nil); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("context %q", context)) {
			t.Errorf("Split(%q): got %v", context, err)
		}
	}
}
