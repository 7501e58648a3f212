package junit

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Clean returns s as it can stand in XML: terminal escape sequences and
// characters that XML 1.0 does not allow are removed, and U+FFFD stands for
// bytes that are not UTF-8.
func Clean(s string) string {
	i := firstDirty(s)
	if i == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i < len(s) {
		b.WriteString(s[:i])
		s = s[i:]
		switch r, n := utf8.DecodeRuneInString(s); {
		case s[0] == '\x1b':
			s = s[escapeSequence(s):]
		case r == utf8.RuneError && n == 1:
			b.WriteRune(utf8.RuneError)
			for r == utf8.RuneError && n == 1 { // one sign for a run of bytes
				s = s[1:]
				r, n = utf8.DecodeRuneInString(s)
			}
		default:
			s = s[n:]
		}
		i = firstDirty(s)
	}
	b.WriteString(s)
	return b.String()
}

// firstDirty returns the index of the first byte that cannot stay, or the length.
func firstDirty(s string) int {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c < 0x20 && c != '\n' && c != '\t' && c != '\r' {
				return i
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || !allowed(r) {
			return i
		}
		i += n
	}
	return len(s)
}

// escapeSequence returns the length of the terminal escape sequence that s
// begins with (ECMA-48), or 1 for an escape character alone.
func escapeSequence(s string) int {
	const longest = 4096
	if len(s) < 2 {
		return 1
	}
	switch c := s[1]; {
	case c == '[': // parameters, intermediates, a final byte
		i := 2
		for i < len(s) && i < longest && s[i] >= 0x20 && s[i] <= 0x3f {
			i++
		}
		if i < len(s) && s[i] >= 0x40 && s[i] <= 0x7e {
			return i + 1
		}
		return i
	case c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_': // a string up to its terminator
		for i := 2; i < len(s) && i < longest && s[i] != '\n'; i++ {
			if s[i] == '\a' {
				return i + 1
			}
			if s[i] == '\x1b' { // its terminator, or another sequence that breaks it off
				if i+1 < len(s) && s[i+1] == '\\' {
					return i + 2
				}
				break
			}
		}
		return 2
	case c >= 0x20 && c <= 0x2f: // intermediates, a final byte
		i := 2
		for i < len(s) && i < longest && s[i] >= 0x20 && s[i] <= 0x2f {
			i++
		}
		if i < len(s) && s[i] >= 0x30 && s[i] <= 0x7e {
			return i + 1
		}
		return i
	case c >= 0x30 && c <= 0x7e:
		return 2
	}
	return 1
}

// plain are the characters that stand for themselves everywhere.
var plain = func() (t [256]bool) {
	for c := ' '; c <= '~'; c++ {
		t[c] = !strings.ContainsRune(`&<>"`, c)
	}
	return t
}()

// isPlain tells, at once for what is commonest, that s is clean and needs no
// escape.
func isPlain(s string) bool {
	for i := range len(s) {
		if !plain[s[i]] {
			return false
		}
	}
	return true
}

// escape returns what stands for the byte at i of clean text, or "" if it
// stands for itself.
func escape(s string, i int, attribute bool) string {
	switch s[i] {
	case '&':
		return "&amp;"
	case '<':
		return "&lt;"
	case '\r':
		return "&#xD;"
	case '>': // only ]]> is not allowed, but nobody expects a bare one in an attribute
		if attribute || i > 0 && s[i-1] == ']' {
			return "&gt;"
		}
	case '"':
		if attribute {
			return "&#34;"
		}
	case '\n':
		if attribute {
			return "&#xA;"
		}
	case '\t':
		if attribute {
			return "&#x9;"
		}
	}
	return ""
}

// escapedLen returns the length of clean text when it is escaped.
func escapedLen(s string, attribute bool) int {
	n := len(s)
	for i := range len(s) {
		if s[i] <= '>' {
			if e := escape(s, i, attribute); e != "" {
				n += len(e) - 1
			}
		}
	}
	return n
}

// cut shortens clean text to at most limit bytes when escaped: the beginning and
// the end stay, and between them stands how much is missing. A text that is
// short enough is returned as it is.
func cut(s string, limit int, attribute bool) string {
	if len(s) <= limit && escapedLen(s, attribute) <= limit {
		return s
	}
	note := func(n int) string {
		if attribute {
			return fmt.Sprintf(" [... %d bytes cut ...] ", n)
		}
		return fmt.Sprintf("\n[... %d bytes cut ...]\n", n)
	}
	room := max(0, limit-escapedLen(note(len(s)), attribute))
	head, tail := 0, len(s)
	for used := 0; head < len(s); head++ {
		if used += width(s, head, attribute); used > room/2 {
			break
		}
	}
	for used := 0; tail > head; tail-- {
		if used += width(s, tail-1, attribute); used > room/2 {
			break
		}
	}
	for head > 0 && head < len(s) && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return s[:head] + note(tail-head) + s[tail:]
}

// width is how many bytes the byte at i becomes at most.
func width(s string, i int, attribute bool) int {
	if s[i] == '>' {
		return len("&gt;") // the text before it may be cut off
	}
	return max(1, len(escape(s, i, attribute)))
}

// maxSeconds is more than any time of a test, and bounds how long it is written.
const maxSeconds = 1e12

// plainSeconds is a time as it is written: never negative, never not a number.
func plainSeconds(f float64) float64 {
	if !(f > 0) || math.IsInf(f, 0) {
		return 0
	}
	return min(f, maxSeconds)
}

// formatSeconds writes seconds without an exponent, to the nanosecond.
func formatSeconds(f float64) string {
	s := strconv.FormatFloat(plainSeconds(f), 'f', 9, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}
