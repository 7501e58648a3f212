package config

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

//go:generate bash -c "go run ../../../cmd/op-readiness config schema >../../../docs/op-readiness.schema.json"
//go:generate bash -c "go run ../../../cmd/op-readiness config schema -o markdown >../../../docs/configuration-fields.md"

//go:embed types.go
var typesSource []byte

// schemaID is the name of the schema, and where it can be read.
const schemaID = "https://raw.githubusercontent.com/windows-op-readiness/windows-op-readiness/main/docs/op-readiness.schema.json"

// schema is the JSON Schema of [File], without references, so that it can be
// walked beside a file.
var schema = sync.OnceValue(func() *jsonschema.Schema {
	r := jsonschema.Reflector{
		FieldNameTag:               "yaml",
		RequiredFromJSONSchemaTags: true,
		DoNotReference:             true,
		ExpandedStruct:             true,
		Anonymous:                  true,
		CommentMap:                 comments(reflect.TypeFor[File]().PkgPath()),
	}
	s := r.Reflect(&File{})
	s.Title = "op-readiness.yaml"
	s.ID = schemaID
	walkSchema(s, nil, complete)
	return s
})

// Schema returns the JSON Schema (draft 2020-12) of op-readiness.yaml, with a
// description of every field. https://json-schema.org/draft/2020-12
func Schema() []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(schema()); err != nil {
		panic(err) // the schema is made of this package's own types
	}
	return out.Bytes()
}

// complete adds to a schema what tags cannot say: names that the standard
// defines, and that a mapping of which something is asked is not empty.
func complete(path []string, s *jsonschema.Schema) {
	if len(path) == 0 {
		return
	}
	switch name := path[len(path)-1]; {
	case name == "categories" && s.Type == "array":
		for _, c := range specs.Categories() {
			s.Items.Enum = append(s.Items.Enum, string(c))
		}
	case name == "without":
		for _, c := range specs.Capabilities() {
			s.Items.Enum = append(s.Items.Enum, c.Name)
		}
	case s.Type == "array" && s.Items.Type == "object" && (name == "exclude" || name == "include" || name == "cells"):
		s.Items.MinProperties = length(1)
	case name == "when":
		s.MinProperties = length(1)
	case name == "labels" || name == "env":
		if s.Type == "object" {
			s.MinProperties = length(1)
		}
	case s.Type == "array" && s.Items.Type == "string" && s.Items.Pattern == "" && s.Items.Enum == nil:
		s.Items.MinLength = length(1)
		if strings.HasSuffix(name, "Emails") {
			s.Items.Pattern = `^[^@, ]+@[^@, ]+$`
		}
	}
}

// walkSchema calls visit with every field below s, and the names that lead
// there.
func walkSchema(s *jsonschema.Schema, path []string, visit func([]string, *jsonschema.Schema)) {
	visit(path, s)
	if s.Items != nil {
		s = s.Items
	}
	if s.Properties == nil {
		return
	}
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		walkSchema(p.Value, append(path[:len(path):len(path)], p.Key), visit)
	}
}

// comments are the descriptions of types and fields in types.go, as the
// reflector wants them.
func comments(pkg string) map[string]string {
	file, err := parser.ParseFile(token.NewFileSet(), "types.go", typesSource, parser.ParseComments)
	if err != nil {
		panic(err) // the compiler has read the same file
	}
	all := map[string]string{}
	for _, decl := range file.Decls {
		d, ok := decl.(*ast.GenDecl)
		if !ok || d.Tok != token.TYPE {
			continue
		}
		for _, spec := range d.Specs {
			t := spec.(*ast.TypeSpec)
			fields, ok := t.Type.(*ast.StructType)
			if !ok {
				continue
			}
			all[pkg+"."+t.Name.Name] = oneLine(d.Doc)
			for _, f := range fields.Fields.List {
				for _, name := range f.Names {
					all[fmt.Sprintf("%s.%s.%s", pkg, t.Name.Name, name.Name)] = oneLine(f.Doc)
				}
			}
		}
	}
	return all
}

func oneLine(doc *ast.CommentGroup) string {
	return strings.Join(strings.Fields(doc.Text()), " ")
}

// fillDefaults gives every field that has no value the default of its schema.
func fillDefaults(v reflect.Value, s *jsonschema.Schema) {
	for i := range v.NumField() {
		f, value := v.Type().Field(i), v.Field(i)
		if f.Anonymous {
			fillDefaults(value, s)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		property := s.Properties.Value(name)
		switch {
		case value.Kind() == reflect.Pointer && value.Type().Elem().Kind() == reflect.Struct:
			if !value.IsNil() {
				fillDefaults(value.Elem(), property)
			}
		case value.Kind() == reflect.Struct:
			fillDefaults(value, property)
		case value.Kind() == reflect.Slice && value.Type().Elem().Kind() == reflect.Struct:
			for j := range value.Len() {
				fillDefaults(value.Index(j), property.Items)
			}
		case property.Default != nil && value.IsZero():
			setDefault(value, property.Default)
		}
	}
}

func setDefault(value reflect.Value, def any) {
	if value.Type() == durationType {
		d, err := time.ParseDuration(def.(string))
		if err != nil {
			panic(err) // a tag in types.go, which tests read
		}
		value.SetInt(int64(d))
		return
	}
	switch value.Kind() {
	case reflect.String:
		value.SetString(def.(string))
	default:
		n, err := json.Number(fmt.Sprint(def)).Int64()
		if err != nil {
			panic(err)
		}
		value.SetInt(n)
	}
}
