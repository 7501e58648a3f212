package junit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Error says where and why an input is refused.
type Error struct {
	Source string // as the caller named it, may be empty
	Line   int    // from 1
	Offset int64  // in bytes, from 0
	Msg    string
}

func (e *Error) Error() string {
	source := e.Source
	if source == "" {
		source = "JUnit"
	}
	return fmt.Sprintf("reading %s: line %d (offset %d): %s", source, e.Line, e.Offset, e.Msg)
}

// token is what the scanner has found.
type token int

const (
	tokenEOF   token = iota
	tokenText        // scanner.text, a piece of character data
	tokenStart       // scanner.tag
	tokenEnd
)

// minWindow is how much of the input is held at least.
const minWindow = 64 << 10

// maxAttrs bounds the attributes of one tag, and so the search for duplicates.
const maxAttrs = 128

// scanner cuts XML into tags and pieces of text. It holds a window of the input
// that grows only for a single tag. It checks everything that makes a document
// well-formed, including in what its caller then ignores.
type scanner struct {
	src    io.Reader
	source string
	limits Limits

	buf   []byte // the window: buf[pos:] is still to be scanned
	pos   int
	valid int   // buf[:valid] are characters that XML allows
	base  int64 // offset of buf[0]
	line  int   // line of buf[0], from 1
	eof   bool

	open    []string // elements that are open, outermost first
	began   bool     // the root element has been seen
	cdata   bool     // inside a CDATA section
	selfEnd bool     // a self-closing tag owes its end

	text    []byte // of the last tokenText, until the next call
	literal bool   // text is from a CDATA section: & means &
	tag     tag    // of the last tokenStart, until the next call
}

// tag is a start tag. Its bytes are valid until the scanner moves on.
type tag struct {
	name  string // without a namespace prefix
	attrs []rawAttr
}

type rawAttr struct {
	name, value []byte
}

func newScanner(src io.Reader, source string, limits Limits) *scanner {
	return &scanner{src: src, source: source, limits: limits, line: 1, buf: make([]byte, 0, minWindow)}
}

// offset is where the scanner stands.
func (s *scanner) offset() int64 { return s.base + int64(s.pos) }

func (s *scanner) fail(format string, args ...any) error { return s.failAt(s.pos, format, args...) }

func (s *scanner) failAt(pos int, format string, args ...any) error {
	return &Error{
		Source: s.source,
		Line:   s.line + bytes.Count(s.buf[:pos], []byte{'\n'}),
		Offset: s.base + int64(pos),
		Msg:    fmt.Sprintf(format, args...),
	}
}

func (s *scanner) truncated() error {
	if n := len(s.open); n > 0 {
		return s.failAt(len(s.buf), "the input is truncated: it ends inside <%s>", s.open[n-1])
	}
	return s.failAt(len(s.buf), "the input is truncated: it ends before the end of a tag")
}

// more reads more of the input behind the window. It moves what is before pos
// out, so positions in the window change but distances from pos do not.
func (s *scanner) more() error {
	if s.eof {
		return s.truncated()
	}
	if s.pos > 0 {
		s.line += bytes.Count(s.buf[:s.pos], []byte{'\n'})
		s.base += int64(s.pos)
		s.valid -= s.pos
		s.buf = s.buf[:copy(s.buf, s.buf[s.pos:])]
		s.pos = 0
	}
	if len(s.buf) == cap(s.buf) {
		if len(s.buf) >= s.limits.Tag {
			return s.fail("a tag, comment or processing instruction is longer than the limit of %d bytes", s.limits.Tag)
		}
		grown := make([]byte, len(s.buf), min(2*cap(s.buf), max(s.limits.Tag, minWindow)))
		copy(grown, s.buf)
		s.buf = grown
	}
	for range 100 {
		n, err := s.src.Read(s.buf[len(s.buf):cap(s.buf)])
		if n < 0 || n > cap(s.buf)-len(s.buf) {
			return fmt.Errorf("reading %s: the reader returned an impossible count", s.source)
		}
		s.buf = s.buf[:len(s.buf)+n]
		switch {
		case errors.Is(err, io.EOF):
			s.eof = true
		case err != nil:
			return fmt.Errorf("reading %s: %w", s.source, err)
		}
		if n > 0 || s.eof {
			if s.base+int64(len(s.buf)) > s.limits.Bytes {
				return s.failAt(len(s.buf), "the input is longer than the limit of %d bytes", s.limits.Bytes)
			}
			return s.validate()
		}
	}
	return fmt.Errorf("reading %s: %w", s.source, io.ErrNoProgress)
}

// validate checks the characters of what was read.
func (s *scanner) validate() error {
	const (
		ones = 0x0101010101010101
		high = 0x8080808080808080
	)
	b, i := s.buf, s.valid
	for i < len(b) {
		// Eight bytes at once: none above 0x7f, none below 0x20.
		for i+8 <= len(b) {
			v := binary.LittleEndian.Uint64(b[i:])
			if (v|((v-0x20*ones)&^v))&high != 0 {
				break
			}
			i += 8
		}
		if i >= len(b) {
			break
		}
		c := b[i]
		if c < utf8.RuneSelf {
			if c < 0x20 && c != '\n' && c != '\t' && c != '\r' {
				if c == 0 {
					return s.failAt(i, "NUL byte (is this UTF-8 text?)")
				}
				return s.failAt(i, "control character U+%04X, which XML does not allow", c)
			}
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			if !s.eof && !utf8.FullRune(b[i:]) {
				break // the rest of the character is still to come
			}
			if s.base == 0 && i == 0 && (c == 0xfe || c == 0xff) {
				return s.failAt(i, "the input looks like UTF-16; only UTF-8 is read, convert it first")
			}
			return s.failAt(i, "byte 0x%02x is not UTF-8", c)
		}
		if !allowed(r) {
			return s.failAt(i, "character U+%04X, which XML does not allow", r)
		}
		i += n
	}
	s.valid = i
	return nil
}

// allowed tells whether XML 1.0 allows the character.
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

// ahead makes n bytes available after pos; false at the end of the input.
func (s *scanner) ahead(n int) (bool, error) {
	for s.valid-s.pos < n {
		if s.eof {
			return false, nil
		}
		if err := s.more(); err != nil {
			return false, err
		}
	}
	return true, nil
}

// window is what can be scanned now.
func (s *scanner) window() []byte { return s.buf[s.pos:s.valid] }

// start passes a byte order mark and the XML declaration.
func (s *scanner) start() error {
	const bom = "\ufeff"
	if ok, err := s.ahead(len(bom)); err != nil {
		return err
	} else if ok && bytes.HasPrefix(s.window(), []byte(bom)) {
		s.pos += len(bom)
	}
	if ok, err := s.ahead(6); err != nil || !ok {
		return err
	}
	w := s.window()
	if !bytes.HasPrefix(w, []byte("<?xml")) || !isSpace(w[5]) {
		return nil
	}
	end, err := s.find("?>", len("<?xml"))
	if err != nil {
		return err
	}
	attrs, err := s.attributes(nil, s.pos+len("<?xml"), s.pos+end)
	if err != nil {
		return err
	}
	for _, a := range attrs {
		switch string(a.name) {
		case "version":
			if string(a.value) != "1.0" {
				return s.fail("XML version %q; only 1.0 is read", clip(a.value))
			}
		case "encoding":
			if e := string(a.value); !strings.EqualFold(e, "UTF-8") && !strings.EqualFold(e, "utf8") {
				return s.fail("encoding %q; only UTF-8 is read, convert the input first", clip(a.value))
			}
		case "standalone":
			if v := string(a.value); v != "yes" && v != "no" {
				return s.fail("standalone %q in the XML declaration: want yes or no", clip(a.value))
			}
		default:
			return s.fail("attribute %q in the XML declaration: want version, encoding or standalone", clip(a.name))
		}
	}
	s.pos += end + len("?>")
	return nil
}

// find returns the distance from pos of the next mark, after skipping some
// bytes. All of it is then in the window.
func (s *scanner) find(mark string, skip int) (int, error) {
	for {
		w := s.window()
		if skip < len(w) {
			if i := bytes.Index(w[skip:], []byte(mark)); i >= 0 {
				return skip + i, nil
			}
			skip = max(skip, len(w)-len(mark)+1)
		}
		if err := s.more(); err != nil {
			return 0, err
		}
	}
}

// next returns the next token. Comments and processing instructions are passed.
func (s *scanner) next() (token, error) {
	if s.selfEnd {
		s.selfEnd = false
		s.open = s.open[:len(s.open)-1]
		return tokenEnd, nil
	}
	for {
		if s.cdata {
			if t, err := s.nextCDATA(); t == tokenText || err != nil {
				return t, err
			}
		}
		ok, err := s.ahead(1)
		if err != nil {
			return 0, err
		}
		if !ok {
			switch {
			case s.valid < len(s.buf):
				return 0, s.failAt(s.valid, "the input ends inside a character")
			case len(s.open) > 0:
				return 0, s.truncated()
			case !s.began:
				return 0, s.fail("no root element: want <testsuites> or <testsuite>")
			}
			return tokenEOF, nil
		}
		if s.buf[s.pos] != '<' {
			t, err := s.nextText()
			if t == tokenText || err != nil {
				return t, err
			}
			continue
		}
		if ok, err := s.ahead(2); err != nil {
			return 0, err
		} else if !ok {
			return 0, s.truncated()
		}
		switch s.buf[s.pos+1] {
		case '/':
			return tokenEnd, s.endTag()
		case '?':
			err = s.instruction()
		case '!':
			err = s.declaration()
		default:
			return tokenStart, s.startTag()
		}
		if err != nil {
			return 0, err
		}
	}
}

// maxName is the longest name of an element or attribute.
const maxName = 256

// clip shortens a piece of the input for a message.
func clip[T ~string | ~[]byte](b T) string {
	if len(b) > 60 {
		return string(b[:60]) + "…"
	}
	return string(b)
}

// maxReference is longer than any reference that is understood.
const maxReference = 16

// nextText returns text up to the next tag or the end of the window.
func (s *scanner) nextText() (token, error) {
	for {
		w := s.window()
		end := bytes.IndexByte(w, '<')
		if end < 0 {
			// What may go on behind the window waits: a reference, a line
			// break of two characters, the start of "]]>".
			end = len(w)
			if !s.eof {
				if i := bytes.LastIndexByte(w[max(0, end-maxReference):], '&'); i >= 0 {
					i += max(0, end-maxReference)
					if bytes.IndexByte(w[i:], ';') < 0 {
						end = i
					}
				}
				for n := 0; n < 2 && end > 0 && w[end-1] == ']'; n++ {
					end--
				}
				if end > 0 && w[end-1] == '\r' {
					end--
				}
			}
			if end == 0 {
				if err := s.more(); err != nil {
					return 0, err
				}
				continue
			}
		}
		s.text, s.literal = w[:end], false
		if len(s.open) == 0 {
			if i := bytes.IndexFunc(s.text, func(r rune) bool { return r >= utf8.RuneSelf || !isSpace(byte(r)) }); i >= 0 {
				if s.began {
					return 0, s.failAt(s.pos+i, "text after the root element")
				}
				return 0, s.failAt(s.pos+i, "text before the root element: this is not XML")
			}
			s.pos += end
			return tokenEOF, nil // not an end: the caller goes on
		}
		if i := bytes.Index(s.text, []byte("]]>")); i >= 0 {
			return 0, s.failAt(s.pos+i, "]]> outside a CDATA section")
		}
		if err := s.references(s.text, s.pos); err != nil {
			return 0, err
		}
		s.pos += end
		return tokenText, nil
	}
}

// nextCDATA returns a piece of a CDATA section, or tokenEOF when it is over.
func (s *scanner) nextCDATA() (token, error) {
	const mark = "]]>"
	for {
		w := s.window()
		end := bytes.Index(w, []byte(mark))
		if end == 0 {
			s.pos += len(mark)
			s.cdata = false
			return tokenEOF, nil
		}
		if end < 0 {
			end = len(w)
			for n := 0; n < 2 && end > 0 && w[end-1] == ']'; n++ {
				end--
			}
			if end > 0 && w[end-1] == '\r' {
				end--
			}
		}
		if end > 0 {
			s.text, s.literal = w[:end], true
			s.pos += end
			return tokenText, nil
		}
		if err := s.more(); err != nil {
			return 0, err
		}
	}
}
