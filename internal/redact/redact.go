// Package redact takes secrets out of text before it is stored or shown: what
// stands in kubeconfigs, in Secrets, in dumps of HTTP requests, and keys that
// are known by their form. It finds forms and fields, not every secret there
// can be.
package redact

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Mask stands where a secret was.
const Mask = "[REDACTED]"

var patterns = []struct {
	re   *regexp.Regexp
	with string
}{
	// HTTP headers, as Go's dumps and klog print them.
	{regexp.MustCompile(`(?i)\b((?:proxy-)?authorization["']?\s*[:=]\s*\[?["']?(?:bearer|basic|negotiate)\s+)[^\s"',\]]+`), "${1}" + Mask},
	{regexp.MustCompile(`(?i)\b(bearer\s+)[A-Za-z0-9._~+/-]{16,}=*`), "${1}" + Mask},
	// JSON web tokens: service account tokens, OIDC; also as Secrets hold them.
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*`), Mask},
	{regexp.MustCompile(`\bZXlK[A-Za-z0-9+/]{40,}=*`), Mask},
	// Fields of kubeconfig files, docker configs and Secrets.
	{regexp.MustCompile(`(?i)((?:client-key-data|client-certificate-data|\.dockerconfigjson|id-token|refresh[-_]token|access[-_]?token|client[-_]?secret|secret[-_]?access[-_]?key|account[-_]?key|password|passwd)["']?\s*[:=]\s*["']?)[^\s"',;}]+`), "${1}" + Mask},
	{regexp.MustCompile(`(?m)(^[\s-]*token:\s*["']?|["'](?:token|auth|identitytoken)["']:\s*["'])[^\s"',}]{8,}`), "${1}" + Mask},
	// Passwords in addresses.
	{regexp.MustCompile(`(\b[a-z][a-z0-9+.-]*://[^\s/:@"']+:)[^\s/@"']+@`), "${1}" + Mask + "@"},
	// Keys of cloud providers and of GitHub, by their fixed beginnings.
	{regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`), Mask},
	{regexp.MustCompile(`\bya29\.[A-Za-z0-9_-]{20,}`), Mask},
	{regexp.MustCompile(`\bgh[pousr]_[A-Za-z0-9]{20,}\b`), Mask},
	{regexp.MustCompile(`\bgithub_pat_[A-Za-z0-9_]{20,}\b`), Mask},
	{regexp.MustCompile(`([?&](?:sig|X-Amz-Signature|X-Amz-Security-Token|X-Goog-Signature)=)[^&\s"']+`), "${1}" + Mask},
}

var privateKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`)

// beginnings are in every text, in lower case, that one of the patterns finds
// something in, but for passwords in addresses.
var beginnings = []string{
	"authorization", `auth"`, "auth'", "bearer", "eyj", "zxlk", "client-key-data", "client-certificate-data", "dockerconfigjson",
	"token", "passw", "accountkey", "account-key", "account_key", "clientsecret", "client-secret", "client_secret",
	"secretaccess", "secret-access", "secret_access",
	"akia", "asia", "ya29.", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_",
	"sig=", "x-amz-s", "x-goog-s", "private key",
}

// candidates are the beginnings with the same first two letters, and byPair says
// which of candidates two letters have; 0 is none.
var candidates, byPair = func() ([][]string, *[1 << 16]uint8) {
	lists, by := [][]string{nil}, new([1 << 16]uint8)
	for _, b := range beginnings {
		pair := int(b[0])<<8 | int(b[1])
		if by[pair] == 0 {
			by[pair] = uint8(len(lists))
			lists = append(lists, nil)
		}
		lists[by[pair]] = append(lists[by[pair]], b)
	}
	return lists, by
}()

// hint returns where in s a pattern could find something, or -1 for nowhere.
// Most lines of a log hold nothing, and trying every pattern takes many times as
// long.
func hint[text string | []byte](s text) int {
	var last byte
	scheme := false // there was "//" in this line: an address may follow
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= utf8.RuneSelf:
			return i // patterns know letters that are others in lower case
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		case c == '\n':
			scheme = false
		case c == '/' && last == '/':
			scheme = true
		case c == '@' && scheme:
			return i
		}
		if list := byPair[int(last)<<8|int(c)]; list != 0 && begins(s[i-1:], candidates[list]) {
			return i - 1
		}
		last = c
	}
	return -1
}

// begins reports whether s, of which two letters fit, has one of beginnings.
func begins[text string | []byte](s text, beginnings []string) bool {
	for _, b := range beginnings {
		if len(s) >= len(b) && s[2]|0x20 == b[2]|0x20 && strings.EqualFold(string(s[:len(b)]), b) {
			return true
		}
	}
	return false
}

// String returns s without what looks like a secret.
func String(s string) string {
	if hint(s) < 0 {
		return s
	}
	s = privateKey.ReplaceAllString(s, Mask)
	for _, p := range patterns {
		s = p.re.ReplaceAllString(s, p.with)
	}
	return s
}

// Writer writes to an underlying writer, line by line, without secrets. Close
// writes a last line that had no end.
type Writer struct {
	w    io.Writer
	line []byte
	// cut says that the rest of a line that was too long is dropped.
	cut   bool
	inKey bool
	err   error
}

// NewWriter returns a Writer on w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// maxLine bounds what is held back. What is longer is cut: in pieces, a secret
// could slip through between two of them.
const maxLine = 1 << 20

const cutNote = " … (the rest of the line is cut)"

// Write takes the next piece of text.
func (w *Writer) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 && w.err == nil {
		if lines := w.plain(p); lines > 0 {
			_, w.err = w.w.Write(p[:lines])
			p = p[lines:]
			continue
		}
		piece, end := p, bytes.IndexByte(p, '\n')
		if end >= 0 {
			piece = p[:end]
		}
		if room := maxLine - len(w.line); len(piece) > room {
			w.cut = true
			piece = piece[:room]
		}
		w.line = append(w.line, piece...)
		if end < 0 {
			break
		}
		w.flush("\n")
		p = p[end+1:]
	}
	return n, w.err
}

// plain is how much of p are whole lines that can be written as they are.
func (w *Writer) plain(p []byte) int {
	if len(w.line) > 0 || w.cut || w.inKey || len(p) > maxLine {
		return 0
	}
	if at := hint(p); at >= 0 {
		p = p[:at]
	}
	return bytes.LastIndexByte(p, '\n') + 1
}

var (
	keyBegins = regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----`)
	keyEnds   = regexp.MustCompile(`-----END [A-Z ]*PRIVATE KEY-----`)
	// keyLine is a line of a private key, alone or behind a log's prefix.
	keyLine = regexp.MustCompile(`^\s*[A-Za-z0-9+/=]*\s*$|[A-Za-z0-9+/=]{40,}\s*$|(?:Proc-Type|DEK-Info): `)
)

// flush writes the line. The lines of a private key are dropped up to its end,
// or up to one that can be no part of it: who mentions a key's beginning does
// not silence the rest of the log.
func (w *Writer) flush(end string) {
	line := string(w.line)
	w.line = w.line[:0]
	if w.cut {
		w.cut = false
		line = wholeWords(line) + cutNote
	}
	if w.inKey {
		if at := keyEnds.FindStringIndex(line); at != nil {
			w.inKey = false
			if line = line[at[1]:]; line == "" {
				return
			}
		} else if keyLine.MatchString(line) {
			return
		}
		w.inKey = false
	}
	if at := keyBegins.FindAllStringIndex(line, -1); at != nil && !keyEnds.MatchString(line[at[len(at)-1][1]:]) {
		w.inKey = true
	}
	_, w.err = io.WriteString(w.w, String(line)+end)
}

// wholeWords takes the last word of a line that was cut off: it may be the
// beginning of a secret, which only the whole of it would give away.
func wholeWords(line string) string {
	for i := len(line) - 1; i >= 0; i-- {
		if line[i] == ' ' || line[i] == '\t' {
			return line[:i]
		}
	}
	return ""
}

// Close writes what is left. It does not close the underlying writer.
func (w *Writer) Close() error {
	if w.err == nil && (len(w.line) > 0 || w.cut) {
		w.flush("")
	}
	return w.err
}
