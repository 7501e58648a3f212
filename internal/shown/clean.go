package shown

import (
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

// allowed reports whether XML 1.0 allows the character.
func allowed(r rune) bool {
	switch {
	case r < 0x20:
		return r == '\t' || r == '\n' || r == '\r'
	case r < 0xd800:
		return true
	default:
		return r >= 0xe000 && r <= 0xfffd || r >= 0x10000 && r <= utf8.MaxRune
	}
}
