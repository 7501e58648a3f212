package conformance_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/conformance"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

const (
	a = "[sig-x] a should work [Conformance]"
	b = "[sig-x] b should work [NodeConformance] [Conformance]"
	c = "[sig-x] c [LinuxOnly] [Conformance]"
	d = "[sig-x] d is no such test"
)

var list = &specs.TestList{Version: "v1.36.3", Tests: []specs.ListedTest{{Name: a}, {Name: b}, {Name: c}, {Name: d}}}

func file(t *testing.T, cases ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "junit_01.xml")
	if err := os.WriteFile(path, []byte(`<testsuites><testsuite name="Kubernetes e2e suite">`+strings.Join(cases, "")+`</testsuite></testsuites>`), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func passed(name string) string { return `<testcase name="` + name + `" time="1"></testcase>` }
func failed(name string) string {
	return `<testcase name="` + name + `"><failure>no</failure></testcase>`
}
func errored(name string) string { return `<testcase name="` + name + `"><error>no</error></testcase>` }
func skipped(name string) string {
	return `<testcase name="` + name + `"><skipped message="x"></skipped></testcase>`
}

func TestOutcome(t *testing.T) {
	for what, test := range map[string]struct {
		files   []string
		outcome verdict.Outcome
		says    string
	}{
		"all passed":                {[]string{file(t, passed(a), passed(b), passed(c))}, verdict.Passed, "all 3 conformance tests of v1.36.3 passed"},
		"in several files":          {[]string{file(t, passed(a)), file(t, passed(c), passed(b))}, verdict.Passed, ""},
		"others skipped and failed": {[]string{file(t, passed(a), passed(b), passed(c), failed(d), skipped("[sig-x] e"))}, verdict.Passed, ""},
		"names as ginkgo writes them": {[]string{file(t, passed("[It] "+a+" [sig-x, Conformance]"), passed("[It] "+b), passed(c+" [LinuxOnly, Conformance]"))},
			verdict.Passed, ""},
		"one failed":              {[]string{file(t, passed(a), failed(b), passed(c))}, verdict.Failed, "1 conformance tests failed, the first: " + b},
		"one in error":            {[]string{file(t, passed(a), errored(b), passed(c))}, verdict.Failed, b},
		"two failed":              {[]string{file(t, failed(c), failed(b), passed(a))}, verdict.Failed, "2 conformance tests failed, the first: " + b},
		"failed, and then passed": {[]string{file(t, failed(a), passed(b), passed(c)), file(t, passed(a))}, verdict.Passed, ""},
		"passed, and then failed": {[]string{file(t, passed(a), passed(b), passed(c)), file(t, failed(a))}, verdict.Failed, a},
		"run again in one file":   {[]string{file(t, failed(a), passed(b), passed(c), passed(a))}, verdict.Passed, ""},
		"failed, and then skipped": {[]string{file(t, failed(a), passed(b), passed(c)), file(t, skipped(a))},
			verdict.Failed, a},
		"one missing":             {[]string{file(t, passed(a), passed(b))}, verdict.Error, "no result for 1 of the 3 conformance tests of v1.36.3, the first: " + c},
		"one skipped":             {[]string{file(t, passed(a), passed(b), skipped(c))}, verdict.Error, c},
		"one failed, one missing": {[]string{file(t, passed(a), failed(b))}, verdict.Failed, b},
		"another version's":       {[]string{file(t, passed(a+" x"), passed(b), passed(c))}, verdict.Error, a},
		"nothing in the file":     {[]string{file(t)}, verdict.Error, "no result for 3 of the 3"},
		"no files":                {nil, verdict.Error, "no result for 3 of the 3"},
		"a skip that failed, too": {[]string{file(t, passed(a), passed(b), `<testcase name="`+c+`"><skipped/><failure>x</failure></testcase>`)}, verdict.Failed, c},
		"conformance in the suite's name only": {[]string{file(t, passed("x"), passed(b), passed(c))},
			verdict.Error, a},
	} {
		outcome, reason, err := conformance.Read(test.files, list)
		if err != nil || outcome != test.outcome || !strings.Contains(reason, test.says) {
			t.Errorf("%s: %s (%s), %v, want %s with %q", what, outcome, reason, err, test.outcome, test.says)
		}
	}
}

func TestABinaryWithoutConformanceTestsPassesNothing(t *testing.T) {
	none := &specs.TestList{Version: "v1.36.3", Tests: []specs.ListedTest{{Name: d}}}
	outcome, reason, err := conformance.Read([]string{file(t, passed(d))}, none)
	if err != nil || outcome != verdict.Error || !strings.Contains(reason, "no conformance tests") {
		t.Errorf("%s (%s), %v", outcome, reason, err)
	}
}

func TestUnreadableFiles(t *testing.T) {
	truncated := filepath.Join(t.TempDir(), "junit.xml")
	if err := os.WriteFile(truncated, []byte(`<testsuites><testsuite><testcase name="`+a+`"/>`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{truncated, t.TempDir(), filepath.Join(t.TempDir(), "none.xml")} {
		_, _, err := conformance.Read([]string{file(t, passed(a), passed(b), passed(c)), path}, list)
		if err == nil || !strings.Contains(err.Error(), "conformance JUnit") || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestTheRealList takes every conformance test of a real e2e.test through.
func TestTheRealList(t *testing.T) {
	tests, err := specs.Catalogue("v1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	var cases []string
	for _, listed := range tests.Tests {
		if strings.Contains(listed.Name, "[Conformance]") {
			cases = append(cases, passed("[It] "+strings.NewReplacer("&", "&amp;", "<", "&lt;", `"`, "&quot;").Replace(listed.Name)))
		}
	}
	if len(cases) != 446 {
		t.Errorf("%d conformance tests, and Kubernetes has 446", len(cases))
	}
	if outcome, reason, err := conformance.Read([]string{file(t, cases...)}, tests); outcome != verdict.Passed {
		t.Errorf("%s (%s), %v", outcome, reason, err)
	}
	if outcome, reason, err := conformance.Read([]string{file(t, cases[1:]...)}, tests); outcome != verdict.Error {
		t.Errorf("without one: %s (%s), %v", outcome, reason, err)
	}
}
