package github

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
)

// inline writes at most about limit bytes of s as one line of code, safe in a
// paragraph, a list, a table cell and a heading.
func inline(s string, limit int) string {
	// What is left away is not looked at: a text may be a megabyte.
	const slack = 4
	s = text.Cut(shown.Line(text.Cut(s, slack*limit)), limit)
	if s == "" {
		return ""
	}
	var b strings.Builder
	b.WriteString("<code>")
	for _, r := range s {
		switch {
		case r == ' ', r == '-', r >= utf8.RuneSelf, unicode.IsLetter(r), unicode.IsDigit(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "&#%d;", r)
		}
	}
	b.WriteString("</code>")
	return b.String()
}

var (
	// prose is text of which neither Markdown nor GitHub makes anything: words with
	// the punctuation of prose.
	prose = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^` + word + `(?: ` + word + `)*$`) })
	// linked is what GitHub makes links of in such a text: commits, issues,
	// advisories, addresses.
	linked = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b(?:[0-9a-f]{7,}\b|GH-|GHSA-|CVE-|www\.|https?:)`)
	})
	// item is the number of a list.
	item = regexp.MustCompile(`^[0-9]+[.)](?: |$)`)
)

const word = `\(?[A-Za-z0-9]+(?:[.'-][A-Za-z0-9]+)*\)?[.,:;]?`

// plain writes at most about limit bytes of s as one line: as it is where it is
// made of words, else as [inline] does.
func plain(s string, limit int) string {
	if len(s) <= limit && prose().MatchString(s) && !linked().MatchString(s) && !item.MatchString(s) {
		return s
	}
	return inline(s, limit)
}

// block writes at most about limit bytes of s as a block of code, which must
// begin a line.
func block(s string, limit int) string {
	s = strings.Trim(text.Cut(shown.Lines(text.Cut(s, 2*limit)), limit), "\n")
	if s == "" {
		return ""
	}
	fence, run := 3, 0
	for _, r := range s {
		if r != '`' {
			run = 0
			continue
		}
		if run++; run >= fence {
			fence = run + 1
		}
	}
	f := strings.Repeat("`", fence)
	return f + "text\n" + s + "\n" + f
}

// ValidLink reports whether address is one of the web, and holds no password.
func ValidLink(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http") && u.User == nil
}

// link writes a link with a text of this package's own; only the text where
// the address is not one of the web.
func link(text, address string) string {
	if !ValidLink(address) {
		return text
	}
	u, err := url.Parse(address)
	if err != nil {
		return text
	}
	var safe strings.Builder
	for _, c := range []byte(u.String()) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte("<>\\|`()[]*@", c) >= 0 {
			fmt.Fprintf(&safe, "%%%02X", c)
		} else {
			safe.WriteByte(c)
		}
	}
	return fmt.Sprintf("[%s](<%s>)", text, safe.String())
}
