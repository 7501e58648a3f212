package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/invopop/jsonschema"
	"gopkg.in/yaml.v3"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// DefaultPath is where the file lies in a repository.
const DefaultPath = "op-readiness.yaml"

// Limits of a file; real ones are far below.
const (
	maxFile = 1 << 20
	// maxNodes bounds also what aliases multiply.
	maxNodes = 50_000
	// maxEntries bounds a mapping: decoding one takes the square of it.
	maxEntries = 1000
	// maxProblems is how many problems are kept, maxShown how many are shown.
	maxProblems = 1000
	maxShown    = 50
)

// Load reads the file at path. An error about what it says is Problems, with
// all of it.
func Load(path string) (*Config, error) {
	f, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	defer f.Close()
	return Read(path, f)
}

// Read reads what is in r as Load does a file; name is what problems call it.
func Read(name string, r io.Reader) (*Config, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	return Parse(name, data)
}

// open opens a file that ends by itself: a named pipe would be waited for. What
// a shell hands over as an open file (/dev/stdin, /dev/fd/63) may be a pipe.
func open(path string) (*os.File, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("%w; write one with 'op-readiness config init'", err)
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s is a folder: name the file, such as %s", path, filepath.Join(path, DefaultPath))
	case !info.Mode().IsRegular() && path != "/dev/stdin" && !strings.HasPrefix(path, "/dev/fd/"):
		return nil, fmt.Errorf("%s is not a regular file: name one, or - for standard input", path)
	}
	return os.Open(path)
}

// Parse reads the text of a file; name is what problems call it. Every error is
// Problems, with all that is wrong.
func Parse(name string, data []byte) (*Config, error) {
	r := &reader{file: name, lines: map[string]int{}}
	root := r.document(data)
	if root == nil {
		return nil, r.problems
	}
	r.check(root, schema(), "")
	file := &File{}
	if !r.tooMuch {
		// Where something has the wrong type, the rest is filled all the same.
		if err := root.Decode(file); err != nil && len(r.problems) == 0 {
			r.add(root.Line, "", "%s", strings.TrimPrefix(err.Error(), "yaml: "))
		}
		fillDefaults(reflect.ValueOf(file).Elem(), schema())
	}
	c := &Config{File: *file, path: name, line: r.line}
	if !r.tooMuch {
		// What follows from a value that was refused says nothing new.
		r.problems = append(r.problems, slices.DeleteFunc(c.validate(), func(p Problem) bool { return r.wrong(p.Field) })...)
	}
	if len(r.problems) > 0 {
		return nil, r.problems.sorted().shown(name, r.dropped)
	}
	return c, nil
}

// reader holds a file's YAML nodes, which know their lines, against the schema.
type reader struct {
	file     string
	text     []byte
	problems Problems
	// lines are those of all fields that the file has, by path.
	lines   map[string]int
	visited int
	tooMuch bool
	// dropped is how many problems were not kept.
	dropped int
}

func (r *reader) add(line int, field, format string, args ...any) {
	if len(r.problems) == maxProblems {
		r.dropped++
		return
	}
	r.problems = append(r.problems, Problem{File: r.file, Line: line, Field: field, Message: fmt.Sprintf(format, args...)})
}

// line is that of a field, or of the nearest one around it.
func (r *reader) line(field string) int {
	for {
		if line, ok := r.lines[field]; ok || field == "" {
			return line
		}
		field = field[:max(0, strings.LastIndexAny(field, ".["))]
	}
}

// wrong says that something is already said of a field, of one around it or
// of one in it.
func (r *reader) wrong(field string) bool {
	return slices.ContainsFunc(r.problems, func(p Problem) bool {
		return p.Field != "" && (within(p.Field, field) || within(field, p.Field)) || p.Field == field
	})
}

func within(inner, outer string) bool {
	rest, ok := strings.CutPrefix(inner, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// document parses the one YAML document of a file; nil says that it could not,
// which is noted.
func (r *reader) document(data []byte) *yaml.Node {
	switch {
	case len(data) > maxFile:
		r.add(0, "", "larger than %d bytes: this is not a configuration file", maxFile)
		return nil
	case !utf8.Valid(data):
		r.add(1+bytes.Count(data[:invalidAt(data)], []byte("\n")), "", "not UTF-8: save the file in that encoding")
		return nil
	}
	r.text = data
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF):
		r.add(0, "", "the file is empty: write one with 'op-readiness config init'")
		return nil
	case err != nil:
		r.yamlProblem(err)
		return nil
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		r.add(second.Line, "", "a second document: one file holds one configuration")
		return nil
	case !errors.Is(err, io.EOF):
		r.yamlProblem(err)
		return nil
	}
	return doc.Content[0]
}

func invalidAt(data []byte) int {
	at := 0
	for at < len(data) {
		c, size := utf8.DecodeRune(data[at:])
		if c == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}

var yamlLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?`)

// yamlProblem keeps the line that the YAML library puts into its text.
func (r *reader) yamlProblem(err error) {
	m := yamlLine.FindStringSubmatch(err.Error())
	line, _ := strconv.Atoi(m[1])
	if at := tabNear(r.text, line); at > 0 {
		r.add(at, "", "indented with a tab, which YAML does not take: use spaces")
		return
	}
	r.add(line, "", "not YAML: %s", err.Error()[len(m[0]):])
}

// tabNear is the line, at or next to the given one, that is indented with a tab;
// 0 for none. The YAML library counts to where it noticed.
func tabNear(text []byte, line int) int {
	lines := bytes.Split(text, []byte("\n"))
	for _, at := range []int{line, line + 1, line - 1} {
		if at < 1 || at > len(lines) {
			continue
		}
		content := bytes.TrimLeft(lines[at-1], " \t")
		if bytes.IndexByte(lines[at-1][:len(lines[at-1])-len(content)], '\t') >= 0 && len(content) > 0 {
			return at
		}
	}
	return 0
}

// check notes everything in n that s refuses. It knows the keywords of JSON
// Schema that the schema of this package uses; a test holds it against a whole
// implementation.
func (r *reader) check(n *yaml.Node, s *jsonschema.Schema, field string) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if r.visited++; r.visited > maxNodes {
		if !r.tooMuch {
			r.add(n.Line, field, "more than %d values: this is not a configuration file", maxNodes)
		}
		r.tooMuch = true
		return
	}
	if _, ok := r.lines[field]; !ok {
		r.lines[field] = n.Line
	}
	if len(s.OneOf) > 0 {
		s = alternative(s, n)
	}
	if kind := kindOf(n); kind != s.Type && (kind != "integer" || s.Type != "number") {
		r.wrongKind(n, s, kind, field)
		return
	}
	switch s.Type {
	case "object":
		r.checkMapping(n, s, field)
	case "array":
		r.checkList(n, s, field)
	case "string":
		r.checkText(n, s, field)
	case "integer":
		r.checkNumber(n, s, field)
	}
}

// alternative is the one of several schemas that is for what n is.
func alternative(s *jsonschema.Schema, n *yaml.Node) *jsonschema.Schema {
	for _, a := range s.OneOf {
		if a.Type == kindOf(n) {
			return described(a, s)
		}
	}
	return described(s.OneOf[0], s)
}

func described(a, s *jsonschema.Schema) *jsonschema.Schema {
	c := *a
	c.Description = s.Description
	return &c
}

func (r *reader) wrongKind(n *yaml.Node, s *jsonschema.Schema, kind, field string) {
	switch {
	case kind == "null":
		r.add(n.Line, field, "has no value: give it %s, or remove it", kindName(s.Type))
	case s.Type == "string" && n.Kind == yaml.ScalarNode:
		// 1.30 would be 1.3, and yes would be true, to whatever else reads the file.
		r.add(n.Line, field, "is a %s to YAML: write it as text: %q", strings.Replace(kind, "integer", "number", 1), clip(n.Value))
	default:
		r.add(n.Line, field, "must be %s, not %s", kindName(s.Type), saw(n, kind))
	}
}

func saw(n *yaml.Node, kind string) string {
	if n.Kind == yaml.ScalarNode {
		return strconv.Quote(clip(n.Value))
	}
	return kindName(kind)
}

// kindOf is what JSON Schema calls the type of n.
func kindOf(n *yaml.Node) string {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.MappingNode:
		return "object"
	case yaml.SequenceNode:
		return "array"
	}
	switch n.ShortTag() {
	case "!!null":
		return "null"
	case "!!bool":
		return "boolean"
	case "!!int":
		return "integer"
	case "!!float":
		return "number"
	}
	return "string"
}

func kindName(kind string) string {
	switch kind {
	case "object":
		return "a mapping"
	case "array":
		return "a list"
	case "string":
		return "text"
	case "integer":
		return "a whole number"
	case "boolean":
		return "true or false"
	}
	return kind
}

func (r *reader) checkMapping(n *yaml.Node, s *jsonschema.Schema, field string) {
	seen := map[string]int{}
	var kept []*yaml.Node // what may be decoded
	defer func() { n.Content = kept }()
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
			r.add(key.Line, field, "has a key that is not a name: write its fields out")
			continue
		}
		path := key.Value
		if field != "" {
			path = field + "." + key.Value
		}
		if first, again := seen[key.Value]; again {
			r.add(key.Line, path, "is already in line %d: keep one", first)
			continue
		}
		seen[key.Value] = key.Line
		if len(kept) == 2*maxEntries {
			r.add(key.Line, field, "more than %d entries: this is not a configuration file", maxEntries)
			r.tooMuch = true
			return
		}
		r.lines[path] = key.Line
		kept = append(kept, key, value)
		switch property, known := properties(s, key.Value); {
		case known:
			r.check(value, property, path)
		case s.AdditionalProperties != nil && s.AdditionalProperties.Type != "":
			r.check(value, s.AdditionalProperties, path)
		case len(r.problems) == maxProblems:
			r.dropped++
			kept = kept[:len(kept)-2]
		default:
			r.add(key.Line, clip(path), "unknown field: %s", oneOf(key.Value, names(s)))
			kept = kept[:len(kept)-2]
		}
	}
	for _, name := range s.Required {
		if _, ok := seen[name]; !ok {
			property, _ := properties(s, name)
			r.add(r.line(field), field, "has no %s, which it needs. %s", name, property.Description)
		}
	}
	if s.MinProperties != nil && len(seen) < int(*s.MinProperties) {
		r.add(n.Line, field, "is empty: %s", oneOf("", names(s)))
	}
}

func properties(s *jsonschema.Schema, name string) (*jsonschema.Schema, bool) {
	if s.Properties == nil {
		return nil, false
	}
	return s.Properties.Get(name)
}

func names(s *jsonschema.Schema) []string {
	var all []string
	if s.Properties != nil {
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			all = append(all, p.Key)
		}
	}
	return all
}

func (r *reader) checkList(n *yaml.Node, s *jsonschema.Schema, field string) {
	if s.MinItems != nil && len(n.Content) < int(*s.MinItems) {
		r.add(n.Line, field, "has no values: give it at least %d, or remove it if it is optional", *s.MinItems)
	}
	first := map[string]int{}
	for i, entry := range n.Content {
		path := fmt.Sprintf("%s[%d]", field, i)
		r.lines[path] = entry.Line
		if s.UniqueItems && entry.Kind == yaml.ScalarNode {
			if line, again := first[entry.Value]; again {
				r.add(entry.Line, path, "%q is already in line %d: keep one", clip(entry.Value), line)
				continue
			}
			first[entry.Value] = entry.Line
		}
		items := s.Items
		if items.Type != "object" && items.Description == "" {
			items = described(items, s)
		}
		r.check(entry, items, path)
	}
}

func (r *reader) checkText(n *yaml.Node, s *jsonschema.Schema, field string) {
	size := utf8.RuneCountInString(n.Value)
	switch {
	case !mayBreak.MatchString(field) && strings.ContainsFunc(n.Value, breaks):
		r.add(n.Line, field, "%q has a line break, a tab or another control character: write it in one line, without", clip(n.Value))
	case len(s.Enum) > 0 && !slices.Contains(s.Enum, any(n.Value)):
		var allowed []string
		for _, e := range s.Enum {
			allowed = append(allowed, fmt.Sprint(e))
		}
		if c, err := specs.ParseCategory(n.Value); err == nil && slices.Contains(allowed, string(c)) {
			r.add(n.Line, field, "%q is spelled %s here: write that", clip(n.Value), c) // an older name, or small letters
			return
		}
		r.add(n.Line, field, "%q is unknown: %s", clip(n.Value), oneOf(n.Value, allowed))
	case s.MinLength != nil && size < int(*s.MinLength) && size == 0:
		r.add(n.Line, field, "is empty. %s", s.Description)
	case s.MinLength != nil && size < int(*s.MinLength):
		r.add(n.Line, field, "%q is too short: use at least %d characters", clip(n.Value), *s.MinLength)
	case s.MaxLength != nil && size > int(*s.MaxLength):
		r.add(n.Line, field, "%q has %d characters: use at most %d", clip(n.Value), size, *s.MaxLength)
	case s.Pattern == durationPattern && !matches(s.Pattern, n.Value):
		r.add(n.Line, field, "%q is not a duration: write it as 90m, 4h or 1h30m", clip(n.Value))
	case s.Pattern != "" && !matches(s.Pattern, n.Value):
		r.add(n.Line, field, "%q is not what this takes. %s", clip(n.Value), s.Description)
	}
}

// breaks reports whether r ends a line for some reader, or has no shape.
func breaks(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

// mayBreak are the fields that may have several lines: none of them becomes part
// of another text, such as the arguments in a workflow.
var mayBreak = regexp.MustCompile(`^testgrid\.bug\.body$|^prow\..*\benv\.[^.]+$|^prow\.postsubmit\.(command|args)\[`)

func matches(pattern, text string) bool {
	return regexp.MustCompile(pattern).MatchString(text)
}

func (r *reader) checkNumber(n *yaml.Node, s *jsonschema.Schema, field string) {
	i, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 0, 32)
	if err != nil || beyond(s.Minimum, i, -1) || beyond(s.Maximum, i, 1) {
		limits := "at least " + s.Minimum.String()
		if s.Maximum != "" {
			limits = fmt.Sprintf("between %s and %s", s.Minimum, s.Maximum)
		}
		r.add(n.Line, field, "must be a whole number, %s, not %s", limits, clip(n.Value))
	}
}

// beyond says that i lies on the side of the limit that sign points to.
func beyond(limit json.Number, i, sign int64) bool {
	l, err := limit.Int64()
	return err == nil && sign*(i-l) > 0
}
