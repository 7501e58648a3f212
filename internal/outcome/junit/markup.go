package junit

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

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
	if nameLength(s.buf[s.pos+1:s.pos+2]) == 0 {
		return s.fail("< that does not begin a tag; in text it is written &lt;")
	}
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
	if n > maxName {
		return s.fail("a name is longer than the limit of %d bytes", maxName)
	}
	name := intern(w[1 : 1+n])
	local := name
	if colon := strings.IndexByte(name, ':'); colon >= 0 {
		rest := name[colon+1:]
		if colon == 0 || rest == "" || strings.Contains(rest, ":") {
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
	case "name":
		return "name"
	case "classname":
		return "classname"
	case "status":
		return "status"
	case "time":
		return "time"
	case "testsuites":
		return "testsuites"
	}
	return string(name)
}
