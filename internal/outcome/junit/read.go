package junit

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Result is what a document says of one test case.
type Result struct {
	Name    string
	Failed  bool // there is a failure or an error, whatever else there is
	Skipped bool // and not Failed
}

// limits bound what is read.
type limits struct {
	input   int64 // bytes of the whole
	element int64 // bytes of one testcase, or of anything else in a suite
	depth   int   // of elements in elements
}

var defaultLimits = limits{input: 1 << 30, element: 4 << 20, depth: 32}

// Read calls each for every test case, in the order of the input. Test cases
// stand directly in suites; those in elements that JUnit does not define are
// none. An error names the source and the line; what each was told before it is
// not to be trusted.
func Read(r io.Reader, source string, each func(Result)) error {
	return read(r, source, defaultLimits, each)
}

func read(r io.Reader, source string, bounds limits, each func(Result)) error {
	in := &limited{Reader: bufio.NewReader(r), limits: bounds}
	if start, _ := in.Peek(len(byteOrderMark)); string(start) == byteOrderMark {
		_, _ = in.Discard(len(byteOrderMark)) // it has been peeked at
	}
	decoder := xml.NewDecoder(in)
	decoder.CharsetReader = charset
	p := parser{depthLimit: bounds.depth, each: each}
	for {
		if p.depth == p.suites {
			in.within = 0
		}
		token, err := decoder.Token()
		if err == nil {
			err = p.token(token)
		} else if errors.Is(err, io.EOF) && p.depth == 0 {
			if p.began {
				return nil
			}
			err = errors.New("no root element: want <testsuites> or <testsuite>")
		}
		if err != nil {
			line, _ := decoder.InputPos()
			return fmt.Errorf("reading %s: line %d: %w", source, line, p.explain(err))
		}
	}
}

const byteOrderMark = "\ufeff"

// errNotUTF8 is the fix for another encoding, declared or found.
var errNotUTF8 = errors.New("only UTF-8 is read; convert the input first")

func charset(name string, in io.Reader) (io.Reader, error) {
	if strings.EqualFold(name, "utf8") {
		return in, nil
	}
	return nil, errNotUTF8
}

// limited ends the input where a limit is exceeded. The decoder reads it byte by
// byte, so that it holds no more than the limit of an element.
type limited struct {
	*bufio.Reader
	limits      limits
	all, within int64 // bytes read of the input, and of the element
}

// ReadByte implements [io.ByteReader].
func (l *limited) ReadByte() (byte, error) {
	l.all++
	l.within++
	switch {
	case l.all > l.limits.input:
		return 0, fmt.Errorf("the input is longer than the limit of %d bytes", l.limits.input)
	case l.within > l.limits.element:
		return 0, fmt.Errorf("an element is longer than the limit of %d bytes", l.limits.element)
	}
	return l.Reader.ReadByte()
}

// parser makes results of tokens.
type parser struct {
	each       func(Result)
	depthLimit int

	began  bool // the root element has been seen
	depth  int  // elements that are open
	suites int  // how many of these, from the root, are suites
	inCase bool // the one in the innermost suite is a testcase
	result Result
}

// explain says where an error is, and replaces the decoder's words that help
// nobody.
func (p *parser) explain(err error) error {
	if syntax := (*xml.SyntaxError)(nil); errors.As(err, &syntax) {
		switch err = errors.New(syntax.Msg); syntax.Msg {
		case "unexpected EOF":
			err = errors.New("the input is truncated")
		case "invalid UTF-8":
			err = fmt.Errorf("invalid UTF-8: %w", errNotUTF8)
		}
	}
	if p.inCase {
		return fmt.Errorf("test case %q: %w", clip(p.result.Name), err)
	}
	return err
}

func (p *parser) token(token xml.Token) error {
	switch t := token.(type) {
	case xml.StartElement:
		return p.start(t)
	case xml.EndElement:
		p.end()
	case xml.CharData:
		if p.depth == 0 && len(bytes.TrimSpace(t)) > 0 {
			return errors.New("text outside the root element: this is not JUnit")
		}
	case xml.Directive:
		return errors.New("a document type or other declaration, which is not allowed here: remove it")
	}
	return nil
}

func (p *parser) start(e xml.StartElement) error {
	name := e.Name.Local
	suite := name == "testsuite" || name == "testsuites"
	inSuite := p.depth == p.suites
	switch {
	case p.depth == p.depthLimit:
		return fmt.Errorf("<%s> is deeper than the limit of %d elements", clip(name), p.depthLimit)
	case p.depth == 0 && p.began:
		return fmt.Errorf("<%s> after the root element", clip(name))
	case p.depth == 0 && !suite:
		return fmt.Errorf("the root element is <%s>: want <testsuites> or <testsuite>", clip(name))
	case inSuite && suite:
		p.began = true
		p.suites++
	case inSuite && name == "testcase":
		p.inCase = true
		if err := p.testcase(e); err != nil {
			return err
		}
	case p.inCase && p.depth == p.suites+1:
		p.result.Failed = p.result.Failed || name == "failure" || name == "error"
		p.result.Skipped = p.result.Skipped || name == "skipped"
	}
	p.depth++
	return nil
}

func (p *parser) end() {
	p.depth--
	p.suites = min(p.suites, p.depth)
	if p.inCase && p.depth == p.suites {
		p.inCase = false
		p.result.Skipped = p.result.Skipped && !p.result.Failed
		p.each(p.result)
	}
}

// testcase begins a result.
func (p *parser) testcase(e xml.StartElement) error {
	p.result = Result{}
	seen := map[string]bool{}
	for _, a := range e.Attr {
		if a.Name.Space != "" {
			continue
		}
		name := a.Name.Local
		if seen[name] {
			return fmt.Errorf("attribute %q twice", clip(name))
		}
		seen[name] = true
		if name == "name" {
			p.result.Name = a.Value
		}
		if name == "time" && !isSeconds(a.Value) {
			return fmt.Errorf("time %q is not a number of seconds", clip(a.Value))
		}
	}
	return nil
}

// isSeconds reports whether s is nothing, or a plain number. Some writers put
// thousands separators in.
func isSeconds(s string) bool {
	if s = strings.TrimSpace(s); s == "" {
		return true
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, ",", ""), 64)
	return err == nil && !math.IsInf(f, 0) && !strings.ContainsAny(s, "xXpPnN")
}

// clip shortens a piece of the input for a message.
func clip(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}
