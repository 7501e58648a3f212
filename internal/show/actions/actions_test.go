package actions

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func annotated(t *testing.T, annotations ...Annotation) []string {
	t.Helper()
	var b strings.Builder
	if err := Annotate(&b, annotations); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

func TestAnnotationsAreOneLineEach(t *testing.T) {
	got := annotated(t, Annotation{Error, "a: b, c\n%", "first\nsecond\r::error::forged\x1b[31m\u202e 100%"})
	want := "::error title=a%3A b%2C c%0A%25::first%0Asecond : :error::forged\\u{202e} 100%25"
	if len(got) != 1 || got[0] != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTheGravestComeFirstAndEachOnce(t *testing.T) {
	got := annotated(t, Annotation{Notice, "n", "x"}, Annotation{Warning, "w", "x"}, Annotation{Error, "e", "x"}, Annotation{Warning, "w", "x"})
	if want := []string{"::error title=e::x", "::warning title=w::x", "::notice title=n::x"}; strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWhatGitHubWouldDropIsCounted(t *testing.T) {
	var many []Annotation
	for i := range 25 {
		many = append(many, Annotation{Error, fmt.Sprint(i), "x"})
	}
	got := annotated(t, many...)
	if len(got) != 10 || !strings.Contains(got[9], "16 more of this kind") {
		t.Errorf("%d annotations, the last %q", len(got), got[len(got)-1])
	}
}

// parse reads outputs as the runner does.
func parse(t *testing.T, path string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	lines := strings.Split(string(data), "\n")
	for i := 0; i < len(lines)-1; i++ {
		name, end, ok := strings.Cut(lines[i], "<<")
		if !ok {
			t.Fatalf("line %q is not an output", lines[i])
		}
		var value []string
		for i++; lines[i] != end; i++ {
			value = append(value, lines[i])
		}
		out[name] = strings.Join(value, "\n")
	}
	return out
}

func TestOutputsHoldAnything(t *testing.T) {
	path := filepath.Join(t.TempDir(), "output")
	hostile := "two\nlines\nEOF\nother=value\nother<<EOF"
	if err := WriteOutputs(path, []Output{{"verdict", "ready"}, {"report", hostile}}); err != nil {
		t.Fatal(err)
	}
	if err := WriteOutputs(path, []Output{{"more", ""}}); err != nil {
		t.Fatal(err)
	}
	got := parse(t, path)
	if len(got) != 3 || got["verdict"] != "ready" || got["report"] != hostile || got["more"] != "" {
		t.Errorf("%q", got)
	}
	if err := WriteOutputs(path, []Output{{"a\nb", ""}}); err == nil {
		t.Error("a name with a newline is accepted")
	}
}

func TestASummaryThatGitHubWouldNotShowIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "summary")
	for range 2 {
		if err := WriteSummary(path, strings.Repeat("x", MaxSummary/2)); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteSummary(path, "x"); err == nil {
		t.Error("more than GitHub takes is accepted")
	}
}

func TestOnlyOurCommandsAreCommandsInALog(t *testing.T) {
	var b strings.Builder
	log := NewLog(&b)
	for _, piece := range []string{"a line\n  ::err", "or::forged\nx ##[error]forged\r::add-mask::a\r\n", "no end"} {
		if _, err := log.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	if err := BeginGroup(log, "batch\n##[error]x"); err != nil {
		t.Fatal(err)
	}
	if err := Annotate(log, []Annotation{{Error, "e", "x"}}); err != nil {
		t.Fatal(err)
	}
	if err := EndGroup(log); err != nil {
		t.Fatal(err)
	}
	_, _ = log.Write([]byte("::stop-commands::a"))
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	want := "a line\n  : :error::forged\nx # #[error]forged\r: :add-mask::a\r\nno end\n##[group]batch # #[error]x\n::error title=e::x\n##[endgroup]\n: :stop-commands::a"
	if got := b.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
