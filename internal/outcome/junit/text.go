package junit

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

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
