// Package redact takes secrets out of text before it is stored or shown.
package redact

import (
	"bytes"
	"io"
	"regexp"
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
	// JSON web tokens: service account tokens, OIDC.
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*`), Mask},
	// Fields of kubeconfig files, docker configs and Secrets.
	{regexp.MustCompile(`(?i)((?:client-key-data|client-certificate-data|\.dockerconfigjson|id-token|refresh-token|access[-_]?token|client[-_]?secret|password|passwd)["']?\s*[:=]\s*["']?)[^\s"',}]+`), "${1}" + Mask},
	// Keys of cloud providers and of GitHub, by their fixed beginnings.
	{regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`), Mask},
	{regexp.MustCompile(`\bgh[pousr]_[A-Za-z0-9]{20,}\b`), Mask},
	{regexp.MustCompile(`\bgithub_pat_[A-Za-z0-9_]{20,}\b`), Mask},
	{regexp.MustCompile(`([?&](?:sig|X-Amz-Signature|X-Goog-Signature)=)[^&\s"']+`), "${1}" + Mask},
}

var privateKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`)

// String returns s without what looks like a secret.
func String(s string) string {
	s = privateKey.ReplaceAllString(s, Mask)
	for _, p := range patterns {
		s = p.re.ReplaceAllString(s, p.with)
	}
	return s
}

// Writer writes to an underlying writer, line by line, without secrets. Close
// writes a last line that had no end.
type Writer struct {
	w     io.Writer
	line  []byte
	inKey bool
	err   error
}

// NewWriter returns a Writer on w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// maxLine bounds what is held back; a longer line is written in pieces.
const maxLine = 1 << 20

// Write takes the next piece of text.
func (w *Writer) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 && w.err == nil {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			w.line = append(w.line, p...)
			if len(w.line) > maxLine {
				w.flush()
			}
			break
		}
		w.line = append(w.line, p[:i+1]...)
		w.flush()
		p = p[i+1:]
	}
	return n, w.err
}

// flush writes the line. The lines of a private key are dropped up to its end.
func (w *Writer) flush() {
	line := w.line
	w.line = w.line[:0]
	begins := bytes.Contains(line, []byte("-----BEGIN ")) && bytes.Contains(line, []byte("PRIVATE KEY-----"))
	ends := bytes.Contains(line, []byte("-----END ")) && bytes.Contains(line, []byte("PRIVATE KEY-----"))
	switch {
	case w.inKey:
		w.inKey = !ends
		return
	case begins && !ends:
		w.inKey = true
		line = []byte(Mask + "\n")
	}
	_, w.err = io.WriteString(w.w, String(string(line)))
}

// Close writes what is left. It does not close the underlying writer.
func (w *Writer) Close() error {
	if len(w.line) > 0 {
		w.flush()
	}
	return w.err
}
