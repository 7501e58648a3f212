// Package text says for people how many there are, names a few of many, and cuts
// what is long.
package text

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Count is "1 case", "2 cases".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// All is all of n things: "the only node", "both nodes", "all 3 nodes".
func All(n int, what string) string {
	switch n {
	case 1:
		return "the only " + what
	case 2:
		return "both " + what + "s"
	}
	return "all " + Count(n, what)
}

// AllAre is All with its verb: "the only node is".
func AllAre(n int, what string) string {
	if n == 1 {
		return All(n, what) + " is"
	}
	return All(n, what) + " are"
}

// Few names as many as most of names: "a, b and 3 more".
func Few(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// And is "a, b and c".
func And(names []string) string { return join(names, " and ") }

// Or is "a, b or c".
func Or(names []string) string { return join(names, " or ") }

func join(names []string, last string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	n := len(names) - 1
	return strings.Join(names[:n], ", ") + last + names[n]
}

// Head is the beginning of s, of at most limit bytes, without a part of a
// character at its end.
func Head(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := limit
	for end > max(0, limit-utf8.UTFMax) && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// Cut is s, or its beginning of at most limit bytes and "…".
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return Head(s, limit) + "…"
}

// CutFront is s, or "…" and its end of at most limit bytes.
func CutFront(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	begin := len(s) - limit
	for begin < min(len(s), len(s)-limit+utf8.UTFMax) && !utf8.RuneStart(s[begin]) {
		begin++
	}
	return "…" + s[begin:]
}
