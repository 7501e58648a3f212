package shown_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
)

func TestWhatIsShownOfATextOfOthers(t *testing.T) {
	for text, want := range map[string]string{
		"as it is, at [fd00::1]:80 and ::1":   "as it is, at [fd00::1]:80 and ::1",
		"Grüße aus Łódź, שָׁלוֹם, việt, ก็":   "Grüße aus Łódź, שָׁלוֹם, việt, ก็",
		"\x1b[31mred\x1b[0m \x1b]0;x\x07\x7f": "red ",
		"a\r\nb\rc\td":                        "a\nb c    d",
		"a\u00a0b\u2028c\u3000d\u0085e":       "a b c d e",
		"a\xffb\xc3":                          "a\ufffdb\ufffd",
		"\u202egnp.exe\u202c":                 `\u{202e}gnp.exe\u{202c}`,
		"a\u200bb\u2060c\ufeffd\u00ade":       `a\u{200b}b\u{2060}c\u{feff}d\u{00ad}e`,
		"a\u2800b\u17b4c\u2065d\u3164e":       `a\u{2800}b\u{17b4}c\u{2065}d\u{3164}e`,
		"a\U000e0041b\U0001d159c\ufe0fd":      `a\u{e0041}b\u{1d159}c\u{fe0f}d`,
		"Z" + strings.Repeat("\u0301", 1000):  "Z" + strings.Repeat("\u0301", 4),
		"::error::a\n  ::error::b ::error::c": ": :error::a\n  : :error::b : :error::c",
		"a ##[error]b ###[c":                  "a # #[error]b ## #[c",
		"\x00:\x00:error::a #\x01#[error]":    ": :error::a # #[error]",
	} {
		if got := shown.Lines(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
		if got, want := shown.Line(text), strings.Join(strings.Fields(want), " "); got != want {
			t.Errorf("%q is shown in one line as %q, want %q", text, got, want)
		}
		if got, want := shown.Lines(want), want; got != want {
			t.Errorf("%q is shown as %q the second time", want, got)
		}
	}
}

// Of https://www.unicode.org/Public/UCD/latest/ucd/DerivedCoreProperties.txt, the
// ranges of Default_Ignorable_Code_Point.
func TestNoCharacterThatCanBeIgnoredIsShown(t *testing.T) {
	for _, r := range [][2]rune{
		{0xad, 0xad}, {0x34f, 0x34f}, {0x61c, 0x61c}, {0x115f, 0x1160}, {0x17b4, 0x17b5}, {0x180b, 0x180f}, {0x200b, 0x200f}, {0x202a, 0x202e}, {0x2060, 0x206f},
		{0x3164, 0x3164}, {0xfe00, 0xfe0f}, {0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xfff0, 0xfff8}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
	} {
		for c := r[0]; c <= r[1]; c++ {
			if got := shown.Lines("a" + string(c) + "b"); strings.ContainsRune(got, c) {
				t.Errorf("%U is shown as %q", c, got)
			}
		}
	}
}

// What the runner takes for a command, but for the names: its TryParseV2 and
// TryParse.
var command = regexp.MustCompile(`^\s*::.*::|##\[.*\]`)

func FuzzNoLineIsACommand(f *testing.F) {
	for _, s := range []string{"::error::x", " \t::set-output name=a::b", ":::error::x", "\u00a0::add-mask::x", "a ##[set-output name=a]b", "###[x]##[x]", "\v::x::", "a\r::x::y", "\u200b::x::"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for what, got := range map[string]string{"Lines": shown.Lines(text), "Line": shown.Line(text)} {
			for line := range strings.SplitSeq(got, "\n") {
				if line = strings.TrimLeftFunc(line, unicode.IsSpace); strings.HasPrefix(line, "::") && !regexp.MustCompile(`^::[0-9]`).MatchString(line) && line != "::" && !strings.HasPrefix(line, ":: ") || strings.Contains(line, "##[") {
					t.Errorf("%s of %q has the line %q", what, text, line)
				}
			}
		}
		for line := range strings.SplitSeq(text, "\n") {
			if got := shown.NoCommand(line); command.MatchString(strings.TrimLeftFunc(got, unicode.IsSpace)) {
				t.Errorf("%q became %q", line, got)
			}
		}
	})
}
