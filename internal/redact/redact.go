// Package redact takes secrets out of text before it is stored or shown: what
// stands in kubeconfigs, in Secrets, in command lines, in dumps of HTTP requests,
// and keys that are known by their form, for which it has the rules of gitleaks
// (https://github.com/gitleaks/gitleaks, MIT license). It finds forms and fields,
// not every secret there can be.
package redact

import (
	"bytes"
	"io"
	"strings"
)

// Mask stands where a secret was.
const Mask = "[REDACTED]"

// String returns s without what looks like a secret.
func String(s string) string {
	if first(keywordsOf(), s) < 0 {
		return s
	}
	var b strings.Builder
	var text lines
	for line := range strings.Lines(s) {
		body, ended := strings.CutSuffix(line, "\n")
		body, keep := text.clean(body)
		if b.WriteString(body); ended && keep {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// lines takes secrets out of the lines of a text, in their order.
type lines struct {
	// inKey says that the line before was of a private key; its lines come behind
	// a prefix of that shape, if any.
	inKey  bool
	prefix string
}

const (
	keyBegin = `-{4,5} ?BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-{4,5}`
	keyEnd   = `-{4,5} ?END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-{4,5}`
)

var (
	keyBegins = lazy(keyBegin)
	keyEnds   = lazy(keyEnd)
	keyInLine = lazy(keyBegin + `.*?(?:` + keyEnd + `|$)`)
	// keyLine is a line of a private key, alone or behind a log's prefix.
	keyLine = lazy(`^\s*[A-Za-z0-9+/=]*\s*$|[A-Za-z0-9+/=]{40,}\s*$|(?:Proc-Type|DEK-Info|Version|Comment): `)
	// lastWord is what may be the last line of a private key behind a prefix.
	lastWord = lazy(`[A-Za-z0-9+/]+={0,2}\s*$`)
	digits   = lazy(`[0-9]+`)
)

// shape is a log's prefix with every number as the same: times go on.
func shape(prefix string) string { return digits().ReplaceAllString(prefix, "0") }

// clean returns a line without secrets, and whether there is to be a line at
// all. The lines of a private key are dropped up to its end, or up to one that
// can be no part of it: who mentions a key's beginning does not silence the
// rest of the text.
func (l *lines) clean(line string) (clean string, keep bool) {
	if l.inKey {
		if at := keyEnds().FindStringIndex(line); at != nil {
			l.inKey = false
			if line = line[at[1]:]; strings.TrimSpace(line) == "" {
				return "", false
			}
		} else if keyLine().MatchString(line) || l.behindPrefix(line) {
			return "", false
		}
		l.inKey = false
	}
	found := keywordsOf().all(line)
	if found.has(privateKey) {
		if at := keyBegins().FindAllStringIndex(line, -1); at != nil {
			last := at[len(at)-1]
			if l.inKey = !keyEnds().MatchString(line[last[1]:]); l.inKey && strings.TrimSpace(line[last[1]:]) == "" {
				l.prefix = shape(line[:last[0]])
			} else {
				l.prefix = ""
			}
			line = keyInLine().ReplaceAllString(line, Mask)
		}
	}
	all := rules()
	for i := range all {
		if found.has(i) && strings.Contains(line, all[i].also) {
			line = all[i].apply(line)
		}
	}
	return line, true
}

func (l *lines) behindPrefix(line string) bool {
	at := lastWord().FindStringIndex(line)
	return at != nil && strings.TrimSpace(l.prefix) != "" && shape(line[:at[0]]) == l.prefix
}

// Writer writes to an underlying writer, line by line, without secrets. Close
// writes a last line that had no end.
type Writer struct {
	w    io.Writer
	line []byte
	// cut says that the rest of a line that was too long is dropped.
	cut  bool
	text lines
	err  error
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
	if len(w.line) > 0 || w.cut || w.text.inKey || len(p) > maxLine {
		return 0
	}
	if at := first(keywordsOf(), p); at >= 0 {
		p = p[:at]
	}
	return bytes.LastIndexByte(p, '\n') + 1
}

// flush writes the line.
func (w *Writer) flush(end string) {
	line := string(w.line)
	w.line = w.line[:0]
	if w.cut {
		w.cut = false
		line = wholeWords(line) + cutNote
	}
	if line, keep := w.text.clean(line); keep {
		_, w.err = io.WriteString(w.w, line+end)
	}
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
