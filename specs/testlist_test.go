package specs_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

const listHead = "The following spec names can be used with 'ginkgo run --focus/skip':\n"

func TestParseTestList(t *testing.T) {
	list, err := specs.ParseTestList(strings.NewReader(listHead +
		"    k8s.io/kubernetes@v1.36.3/test/e2e/windows/dns.go:43: [sig-windows] DNS works: [Slow]\n" +
		"    ../go/src/k8s.io/kubernetes/test/e2e/apps/cronjob.go:7: [sig-apps] CronJob runs\n" +
		"\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []specs.ListedTest{
		{Name: "[sig-apps] CronJob runs", Location: "test/e2e/apps/cronjob.go:7"},
		{Name: "[sig-windows] DNS works: [Slow]", Location: "test/e2e/windows/dns.go:43"},
	}
	if !slices.Equal(list.Tests, want) || list.Version != "v1.36.3" {
		t.Errorf("got %+v", list)
	}
}

func TestParseTestList_refuses_garbage(t *testing.T) {
	const test = "    test/e2e/a.go:1: a\n"
	for name, tt := range map[string]struct{ text, want string }{
		"nothing":              {"", "it is empty"},
		"blank":                {"\n\n", `line 1 is ""`},
		"another program":      {"usage: e2e.test [flags]\n", `line 1 is "usage: e2e.test [flags]"`},
		"no tests":             {listHead + "\n", "has no tests"},
		"cut off":              {listHead + test, "cut off after 1 tests"},
		"cut off in a line":    {listHead + test + "    test/e2e/b.g", `line 3 is "    test/e2e/b.g"`},
		"a log line":           {listHead + test + "E1121 06:22 oops\n\n", `line 3 is "E1121 06:22 oops"`},
		"something after":      {listHead + test + "\npanic: oops\n", `line 4 is "panic: oops" after its end`},
		"a line without end":   {listHead + "    test/e2e/a.go:1: " + strings.Repeat("x", 100_000), "a line is longer"},
		"a line that is bytes": {listHead + "\xff\xfe\n", "line 2 is"},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := specs.ParseTestList(strings.NewReader(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v and error %v, want %q in it", list, err, tt.want)
			}
		})
	}
}

func TestWriteTestList_is_read_back(t *testing.T) {
	list := &specs.TestList{Tests: []specs.ListedTest{{Name: "[a] b", Location: "test/e2e/a.go:1"}, {Name: "[c] d: e", Location: "test/e2e/c.go:22"}}}
	var out bytes.Buffer
	if err := specs.WriteTestList(&out, list); err != nil {
		t.Fatal(err)
	}
	back, err := specs.ParseTestList(&out)
	if err != nil || !slices.Equal(back.Tests, list.Tests) {
		t.Errorf("got %+v, %v", back, err)
	}
	one, err := specs.PackCatalogue(list)
	if err != nil {
		t.Fatal(err)
	}
	two, _ := specs.PackCatalogue(list)
	if !bytes.Equal(one, two) {
		t.Error("the same list is packed into different bytes")
	}
}

func TestCatalogue(t *testing.T) {
	versions := specs.Catalogues()
	if !slices.Contains(versions, "v1.35.4") || !slices.Contains(versions, "v1.36.3") {
		t.Fatalf("got catalogues %v", versions)
	}
	list, err := specs.Catalogue("1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Tests) != 7579 || list.Version != "v1.36.3" {
		t.Errorf("got %d tests of %s", len(list.Tests), list.Version)
	}
	for _, version := range []string{"1.36", "1.36.4", "v1.36.3/../../x", "soon"} {
		if _, err := specs.Catalogue(version); err == nil {
			t.Errorf("%s: got no error", version)
		}
	}
}
