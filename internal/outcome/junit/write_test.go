package junit

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/windows-op-readiness/windows-op-readiness/test/golden"
)

func TestWrite(t *testing.T) {
	for _, tt := range []struct {
		name  string
		cases []Case
	}{
		{"every field", []Case{
			{Name: "passed <&>", Time: 1234.5},
			{Name: "failed", Failure: &Detail{Message: "a\nb \"c\"", Type: "failed", Body: "x < y && ]]> z\n\ttab\r\n"}},
			{Name: "metric", Properties: []Property{{"seconds", "1.5"}, {"pod", "n/p"}}},
			{Name: "both", Failure: &Detail{Body: "f"}, Skipped: &Detail{Body: "s"}},
		}},
		{"reasons in the body of skipped", []Case{
			{Name: "body", Skipped: &Detail{Message: "short", Body: "long"}},
			{Name: "message only", Skipped: &Detail{Message: "why"}},
			{Name: "blank body", Skipped: &Detail{Message: "why", Body: " \n"}},
			{Name: "control characters only", Skipped: &Detail{Body: "\x1b[0m\x00"}},
			{Name: "nothing", Skipped: &Detail{}},
		}},
		{"times", []Case{
			{Name: "a", Time: 1e-9}, {Name: "b", Time: 1e15}, {Name: "c", Time: math.NaN()},
			{Name: "d", Time: math.Inf(1)}, {Name: "e", Time: -1}, {Name: "f", Time: math.Copysign(0, -1)}, {Name: "g", Time: 100},
		}},
		{"characters", []Case{
			{Name: "nul\x00bell\a\x7f", Failure: &Detail{Body: "\x1b[1;31mred\x1b[0m \x1b]0;title\aand \x1b(Bmore \x1bM \x1b"}},
			{Name: "bad \xff\xfe utf8 \xed\xa0\x80 \ufffe \u2603 \U0001F600"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files, err := Split("x", tt.cases)
			if err != nil || len(files) != 1 {
				t.Fatal(len(files), err)
			}
			got, err := decodeAsGrid(files[0].Data)
			if err != nil || len(got) != len(tt.cases) {
				t.Errorf("TestGrid would read %d cases: %v", len(got), err)
			}
			golden.Equal(t, golden.Name(t), files[0].Data)
		})
	}
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
