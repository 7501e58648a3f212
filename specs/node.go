package specs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// Limits of a spec file. The standard's own are far below.
const (
	maxFile = 1 << 20
	// maxNodes bounds what is looked at, so also what aliases multiply. How
	// deep a file nests is bounded by what its fields may hold.
	maxNodes = 200_000
)

// reader reads one spec file from its YAML nodes, which know their lines, and
// gathers every problem on the way.
type reader struct {
	file     string
	problems []Problem
	warnings []Warning
	visited  int
}

func (r *reader) problem(line int, id, format string, args ...any) {
	r.problems = append(r.problems, Problem{File: r.file, Line: line, Case: id, Message: fmt.Sprintf(format, args...)})
}

func (r *reader) warn(line int, format string, args ...any) {
	r.warnings = append(r.warnings, Warning{File: r.file, Line: line, Message: fmt.Sprintf(format, args...)})
}

// errTooMuch ends the reading of a file that exceeds the limits.
var errTooMuch = errors.New("too much")

// document parses a file of one YAML document.
func (r *reader) document(data []byte) (*yaml.Node, bool) {
	if len(data) > maxFile {
		r.problem(0, "", "larger than %d bytes: split it into several files", maxFile)
		return nil, false
	}
	if !utf8.Valid(data) {
		line := 1
		for rest := data; len(rest) > 0; {
			c, size := utf8.DecodeRune(rest)
			if c == utf8.RuneError && size == 1 {
				break
			}
			if c == '\n' {
				line++
			}
			rest = rest[size:]
		}
		r.problem(line, "", "not UTF-8: save the file in that encoding")
		return nil, false
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF):
		r.problem(0, "", "the file is empty")
		return nil, false
	case err != nil:
		r.yamlProblem(err)
		return nil, false
	}
	var second yaml.Node
	switch err := decoder.Decode(&second); {
	case err == nil:
		r.problem(second.Line, "", "a second document: put it into a file of its own")
		return nil, false
	case !errors.Is(err, io.EOF):
		r.yamlProblem(err)
		return nil, false
	}
	return doc.Content[0], true
}

var yamlLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?`)

// yamlProblem keeps the line that the YAML library puts into its text.
func (r *reader) yamlProblem(err error) {
	text := err.Error()
	m := yamlLine.FindStringSubmatch(text)
	line, _ := strconv.Atoi(m[1])
	r.problem(line, "", "not YAML: %s", text[len(m[0]):])
}

// resolve follows aliases and counts, and panics with errTooMuch beyond the
// limits: the anchors of a file can make it far larger than its bytes.
func (r *reader) resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		r.count(n)
		n = n.Alias
	}
	r.count(n)
	return n
}

func (r *reader) count(n *yaml.Node) {
	if r.visited++; r.visited > maxNodes {
		r.problem(n.Line, "", "its aliases make more than %d values: write them out", maxNodes)
		panic(errTooMuch)
	}
}

// guard runs read and survives the limits; the problem is noted by then.
func (r *reader) guard(read func()) {
	defer func() {
		cause := recover()
		err, _ := cause.(error)
		if cause != nil && !errors.Is(err, errTooMuch) {
			panic(cause)
		}
	}()
	read()
}

// field is what to do with one key of a mapping.
type field struct {
	name string
	read func(key, value *yaml.Node)
}

// mapping reads the keys of n that fields name, and reports all others, keys
// that come twice, and anything that is not a mapping.
func (r *reader) mapping(n *yaml.Node, what string, fields []field) bool {
	n = r.resolve(n)
	if n.Kind != yaml.MappingNode {
		r.problem(n.Line, "", "%s must be a mapping, not %s", what, kindOf(n))
		return false
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := r.resolve(n.Content[i])
		if first, again := seen[key.Value]; again {
			r.problem(key.Line, "", "field %q is already in line %d", key.Value, first)
			continue
		}
		seen[key.Value] = key.Line
		known := false
		for _, f := range fields {
			if f.name == key.Value && key.Kind == yaml.ScalarNode {
				f.read(key, n.Content[i+1])
				known = true
			}
		}
		if !known {
			names := make([]string, len(fields))
			for i, f := range fields {
				names[i] = f.name
			}
			r.problem(key.Line, "", "unknown field %q in %s%s", clip(key.Value), what, didYouMean(key.Value, names))
		}
	}
	return true
}

// sequence calls read with every entry of n. Null is an empty one.
func (r *reader) sequence(n *yaml.Node, what string, read func(*yaml.Node)) {
	n = r.resolve(n)
	if isNull(n) {
		return
	}
	if n.Kind != yaml.SequenceNode {
		r.problem(n.Line, "", "%s must be a list, not %s", what, kindOf(n))
		return
	}
	for _, entry := range n.Content {
		read(entry)
	}
}

// text reads a scalar as it is written: 1.30 stays "1.30". Null is "".
func (r *reader) text(n *yaml.Node, what string) string {
	n = r.resolve(n)
	if isNull(n) {
		return ""
	}
	if n.Kind != yaml.ScalarNode {
		r.problem(n.Line, "", "%s must be text, not %s", what, kindOf(n))
		return ""
	}
	return n.Value
}

// texts reads a list of scalars; one scalar is a list of one.
func (r *reader) texts(n *yaml.Node, what string) []string {
	if s := r.resolve(n); s.Kind == yaml.ScalarNode && !isNull(s) {
		return []string{s.Value}
	}
	var all []string
	r.sequence(n, what, func(entry *yaml.Node) {
		if e := r.resolve(entry); e.Kind == yaml.ScalarNode {
			all = append(all, r.text(e, what))
		} else {
			r.problem(entry.Line, "", "an entry of %s must be text, not %s", what, kindOf(e))
		}
	})
	return all
}

// number reads a whole number from 1 on.
func (r *reader) number(n *yaml.Node, what string) int {
	text := r.text(n, what)
	i, err := strconv.Atoi(text)
	if err != nil || i < 1 {
		r.problem(n.Line, "", "%s must be a whole number, at least 1, not %q", what, clip(text))
	}
	return i
}

func (r *reader) duration(n *yaml.Node, what string) time.Duration {
	text := r.text(n, what)
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > 24*time.Hour {
		r.problem(n.Line, "", "%s must be a time such as 90s or 15m, up to 24h, not %q", what, clip(text))
		return 0
	}
	return d
}

// oneOf reads a scalar that must be one of allowed.
func (r *reader) oneOf(n *yaml.Node, what string, allowed ...string) string {
	text := r.text(n, what)
	for _, a := range allowed {
		if text == a {
			return text
		}
	}
	r.problem(n.Line, "", "%s %q is unknown%s", what, clip(text), didYouMean(text, allowed))
	return ""
}

// pattern reads a regular expression.
func (r *reader) pattern(n *yaml.Node, what string) string {
	text := r.text(n, what)
	if _, err := regexp.Compile(text); err != nil {
		r.problem(n.Line, "", "%s %q is not a regular expression: %s", what, clip(text), strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return text
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func kindOf(n *yaml.Node) string {
	switch {
	case isNull(n):
		return "nothing"
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	}
	return fmt.Sprintf("%q", clip(n.Value))
}

func clip(text string) string {
	if len(text) > 120 {
		return strings.ToValidUTF8(text[:120], "") + "…"
	}
	return text
}
