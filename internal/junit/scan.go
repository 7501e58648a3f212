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
			if s.base == 0 && i == 0 && len(b) > 1 && (b[0] == 0xfe && b[1] == 0xff || b[0] == 0xff && b[1] == 0xfe) {
				return s.failAt(i, "the input is UTF-16; only UTF-8 is read, convert it first")
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

// instruction passes a processing instruction.
func (s *scanner) instruction() error {
	end, err := s.find("?>", 2)
	if err != nil {
		return err
	}
	w := s.window()[2:end]
	n := nameLength(w)
	if n == 0 || n < len(w) && !isSpace(w[n]) {
		return s.fail("a processing instruction without a name")
	}
	if strings.EqualFold(string(w[:n]), "xml") {
		return s.fail("an XML declaration that is not at the beginning")
	}
	s.pos += end + 2
	return nil
}

// declaration passes a comment or enters a CDATA section; nothing else that
// begins with <! is allowed.
func (s *scanner) declaration() error {
	const comment, cdata = "<!--", "<![CDATA["
	if ok, err := s.ahead(len(comment)); err != nil {
		return err
	} else if ok && bytes.HasPrefix(s.window(), []byte(comment)) {
		end, err := s.find("--", len(comment))
		if err != nil {
			return err
		}
		if ok, err := s.ahead(end + 3); err != nil {
			return err
		} else if !ok {
			return s.truncated()
		}
		if s.buf[s.pos+end+2] != '>' {
			return s.failAt(s.pos+end, "-- inside a comment")
		}
		s.pos += end + 3
		return nil
	}
	if ok, err := s.ahead(len(cdata)); err != nil {
		return err
	} else if ok && bytes.HasPrefix(s.window(), []byte(cdata)) {
		if len(s.open) == 0 {
			return s.fail("a CDATA section outside the root element")
		}
		s.pos += len(cdata)
		s.cdata = true
		return nil
	}
	return s.fail("a document type or other declaration, which is not allowed here: remove it")
}

// endTag passes an end tag that closes the innermost element.
func (s *scanner) endTag() error {
	end, err := s.find(">", 2)
	if err != nil {
		return err
	}
	w := s.window()[2:end]
	n := nameLength(w)
	for _, c := range w[n:] {
		if !isSpace(c) {
			return s.fail("an end tag that is not well-formed")
		}
	}
	if len(s.open) == 0 {
		return s.fail("</%s> without a start", clip(w[:n]))
	}
	if want := s.open[len(s.open)-1]; string(w[:n]) != want {
		return s.fail("</%s> where </%s> is due", clip(w[:n]), clip(want))
	}
	s.open = s.open[:len(s.open)-1]
	s.pos += end + 1
	return nil
}

// startTag reads a start tag into s.tag.
func (s *scanner) startTag() error {
	// Find its end first: a > in quotes is not it.
	i := 1
	var quote byte
scan:
	for {
		w := s.window()
		for i < len(w) {
			if quote != 0 {
				n := bytes.IndexByte(w[i:], quote)
				if n < 0 {
					i = len(w)
					break
				}
				i += n + 1
				quote = 0
				continue
			}
			switch c := w[i]; c {
			case '>':
				break scan
			case '"', '\'':
				quote = c
			case '<':
				return s.failAt(s.pos+i, "< inside a tag")
			}
			i++
		}
		if err := s.more(); err != nil {
			return err
		}
	}

	w := s.window()[:i]
	n := nameLength(w[1:])
	if n == 0 {
		return s.fail("< that does not begin a tag; in text it is written &lt;")
	}
	if n > maxName {
		return s.fail("a name is longer than the limit of %d bytes", maxName)
	}
	name := intern(w[1 : 1+n])
	local := name
	if prefix, rest, ok := strings.Cut(name, ":"); ok {
		if prefix == "" || rest == "" || strings.Contains(rest, ":") {
			return s.fail("<%s> is not a name", name)
		}
		local = intern([]byte(rest))
	}
	end := i
	if w[end-1] == '/' {
		s.selfEnd = true
		end--
	}
	if end < 1+n {
		return s.fail("a tag that is not well-formed")
	}
	attrs, err := s.attributes(s.tag.attrs[:0], s.pos+1+n, s.pos+end)
	if err != nil {
		return err
	}
	if len(s.open) == 0 {
		if s.began {
			return s.fail("<%s> after the root element", name)
		}
		s.began = true
	}
	if len(s.open) >= s.limits.Depth {
		return s.fail("elements are nested deeper than the limit of %d", s.limits.Depth)
	}
	s.tag = tag{name: local, attrs: attrs}
	s.open = append(s.open, name)
	s.pos += i + 1
	return nil
}

// attributes reads what stands between the name of a tag and its end.
func (s *scanner) attributes(attrs []rawAttr, from, to int) ([]rawAttr, error) {
	b := s.buf[:to]
	i := from
	for {
		space := i
		for i < to && isSpace(b[i]) {
			i++
		}
		if i == to {
			return attrs, nil
		}
		if i == space {
			return nil, s.failAt(i, "attributes that no space separates")
		}
		n := nameLength(b[i:])
		if n == 0 {
			return nil, s.failAt(i, "an attribute without a name")
		}
		if n > maxName {
			return nil, s.failAt(i, "a name is longer than the limit of %d bytes", maxName)
		}
		name := b[i : i+n]
		i += n
		for i < to && isSpace(b[i]) {
			i++
		}
		if i == to || b[i] != '=' {
			return nil, s.failAt(i, "attribute %q without a value", name)
		}
		i++
		for i < to && isSpace(b[i]) {
			i++
		}
		if i == to || b[i] != '"' && b[i] != '\'' {
			return nil, s.failAt(i, "attribute %q without quotes", name)
		}
		n = bytes.IndexByte(b[i+1:], b[i])
		if n < 0 {
			return nil, s.failAt(i, "attribute %q without a closing quote", name)
		}
		value := b[i+1 : i+1+n]
		if bytes.IndexByte(value, '<') >= 0 {
			return nil, s.failAt(i, "< in attribute %q; there it is written &lt;", name)
		}
		if err := s.references(value, i+1); err != nil {
			return nil, err
		}
		if bytes.Count(name, []byte{':'}) > 1 {
			return nil, s.failAt(i, "%q is not a name", name)
		}
		i += n + 2
		for _, a := range attrs {
			if bytes.Equal(a.name, name) {
				return nil, s.failAt(i, "attribute %q twice", name)
			}
		}
		if len(attrs) == maxAttrs {
			return nil, s.failAt(i, "a tag has more attributes than the limit of %d", maxAttrs)
		}
		attrs = append(attrs, rawAttr{name, value})
	}
}

// references checks the references in a text that begins at pos.
func (s *scanner) references(text []byte, pos int) error {
	for at := 0; ; {
		i := bytes.IndexByte(text[at:], '&')
		if i < 0 {
			return nil
		}
		at += i
		_, n := reference(text[at:])
		if n == 0 {
			bad := text[at:min(len(text), at+maxReference)]
			if j := bytes.IndexByte(bad, ';'); j >= 0 {
				bad = bad[:j+1]
			}
			return s.failAt(pos+at, "%q is not a reference that XML defines; a plain & is written &amp;", bad)
		}
		at += n
	}
}

// reference reads a reference such as &amp; or &#10; and returns its character
// and length. The length is 0 for anything else.
func reference(b []byte) (rune, int) {
	if len(b) > maxReference {
		b = b[:maxReference]
	}
	end := bytes.IndexByte(b, ';')
	if end < 0 {
		return 0, 0
	}
	name := b[1:end]
	switch string(name) {
	case "lt":
		return '<', end + 1
	case "gt":
		return '>', end + 1
	case "amp":
		return '&', end + 1
	case "apos":
		return '\'', end + 1
	case "quot":
		return '"', end + 1
	}
	if len(name) < 2 || name[0] != '#' {
		return 0, 0
	}
	digits, radix := name[1:], rune(10)
	if digits[0] == 'x' {
		digits, radix = digits[1:], 16
	}
	var r rune
	for _, c := range digits {
		var d rune
		switch {
		case c >= '0' && c <= '9':
			d = rune(c - '0')
		case radix == 16 && c >= 'a' && c <= 'f':
			d = rune(c-'a') + 10
		case radix == 16 && c >= 'A' && c <= 'F':
			d = rune(c-'A') + 10
		default:
			return 0, 0
		}
		if r = r*radix + d; r > utf8.MaxRune {
			return 0, 0
		}
	}
	if len(digits) == 0 || !allowed(r) {
		return 0, 0
	}
	return r, end + 1
}

// decode appends text to dst: references replaced unless it is literal, and
// line breaks of any kind turned into \n. References have been checked.
func decode(dst, text []byte, literal bool) []byte {
	if bytes.IndexByte(text, '\r') < 0 && (literal || bytes.IndexByte(text, '&') < 0) {
		return append(dst, text...)
	}
	from := 0
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '&' && !literal:
			dst = append(dst, text[from:i]...)
			r, n := reference(text[i:])
			dst = utf8.AppendRune(dst, r)
			i += max(n, 1)
			from = i
		case c == '\r':
			dst = append(append(dst, text[from:i]...), '\n')
			if i++; i < len(text) && text[i] == '\n' {
				i++
			}
			from = i
		default:
			i++
		}
	}
	return append(dst, text[from:]...)
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// nameLength returns the length of the name that b begins with. Names outside
// ASCII, which JUnit does not have, are not names here.
func nameLength(b []byte) int {
	for i, c := range b {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', c == ':':
		case i > 0 && (c >= '0' && c <= '9' || c == '-' || c == '.'):
		default:
			return i
		}
	}
	return len(b)
}

// intern returns the name as a string, without an allocation if JUnit has it.
func intern(name []byte) string {
	switch string(name) {
	case "testcase":
		return "testcase"
	case "skipped":
		return "skipped"
	case "failure":
		return "failure"
	case "error":
		return "error"
	case "system-out":
		return "system-out"
	case "system-err":
		return "system-err"
	case "properties":
		return "properties"
	case "property":
		return "property"
	case "testsuite":
		return "testsuite"
	case "testsuites":
		return "testsuites"
	}
	return string(name)
}
