// Package shown makes texts of others fit to be shown, in a terminal, a log, a
// page or a comment: names and messages from clusters, results folders, buckets
// and servers. What Markdown, HTML or a spreadsheet would make of a text is for
// those who write these.
package shown

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line returns s as one line, with single blanks between its words, and
// otherwise as Lines does.
func Line(s string) string {
	if !ordinary(s) {
		s = Lines(s)
	}
	return strings.Join(strings.Fields(s), " ")
}

// Lines returns s without terminal sequences, control characters and bytes that
// are not UTF-8; its lines stay. What cannot be seen, such as directions of
// writing and spaces of no width, is written as its code point: it could make one
// text look like another. Of the marks that combine with a letter, the first few
// stay. No word of it is a command to the runner of GitHub Actions.
func Lines(s string) string {
	if ordinary(s) {
		return s
	}
	s = Clean(strings.ReplaceAll(s, "\r\n", "\n"))
	var b strings.Builder
	b.Grow(len(s))
	marks := 0
	for _, r := range s {
		if r >= utf8.RuneSelf && unicode.In(r, unicode.Mn, unicode.Me) && !invisible(r) {
			if marks++; marks <= maxMarks {
				b.WriteRune(r)
			}
			continue
		}
		marks = 0
		switch {
		case r == '\n':
			b.WriteByte('\n')
		case r == '\t':
			b.WriteString("    ")
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		case unicode.IsControl(r):
		case r >= utf8.RuneSelf && invisible(r):
			fmt.Fprintf(&b, `\u{%04x}`, r)
		default:
			b.WriteRune(r)
		}
	}
	return bracket.Replace(colons.ReplaceAllString(b.String(), "$1: :$2"))
}

// maxMarks is how many marks stay with a letter: no script that is in use needs
// more.
const maxMarks = 4

// ordinary reports, at once for what is commonest, that Lines would change
// nothing.
func ordinary(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ' && c != '\n', c > '~':
			return false
		case c == '[' && i > 1 && s[i-1] == '#', c == ':' && i > 0 && s[i-1] == ':':
			return false
		}
	}
	return true
}

// invisible are the characters beyond ASCII that have no shape of their own:
// what is in Unicode's Default_Ignorable_Code_Point, as it is derived in
// https://www.unicode.org/reports/tr44/#Default_Ignorable_Code_Point, all other
// format characters, private ones, and those that are blank.
func invisible(r rune) bool {
	return unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Cf, unicode.Variation_Selector, unicode.Co) || unicode.Is(blank, r)
}

// blank are the characters that are drawn as nothing, and are neither spaces nor
// ignorable.
var blank = &unicode.RangeTable{
	R16: []unicode.Range16{{Lo: 0x2800, Hi: 0x2800, Stride: 1}}, // the Braille pattern without dots
	R32: []unicode.Range32{
		{Lo: 0x13441, Hi: 0x13446, Stride: 1}, // Egyptian blanks and lost signs
		{Lo: 0x1d159, Hi: 0x1d159, Stride: 1}, // a note without a head
	},
}

var (
	// colons may come to begin a line, where a table is wrapped. An IPv6 address
	// begins with a digit there.
	colons  = regexp.MustCompile(`(^|\s)::([^\s0-9])`)
	bracket = strings.NewReplacer("##[", "# #[")
)

// NoCommand returns a line, without its end, that the runner of GitHub Actions
// takes for no command: it obeys ::command:: at the start of a line, behind
// blanks, and ##[command] anywhere in it
// (https://github.com/actions/runner/blob/main/src/Runner.Common/ActionCommand.cs).
func NoCommand(line string) string {
	text := strings.TrimLeftFunc(line, func(r rune) bool {
		return r <= ' ' || r >= 0x7f && (unicode.IsSpace(r) || unicode.IsControl(r) || invisible(r))
	})
	if rest, is := strings.CutPrefix(text, "::"); is {
		line = line[:len(line)-len(text)] + ": :" + rest
	}
	return bracket.Replace(line)
}
