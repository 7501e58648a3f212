package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// exports prints the exported names of internal packages that no other package
// names, tests of others and external tests among them. A type that an exported
// name is made of counts as named, and constants that stand together count as one.
func exports() error {
	list, err := run("git", "ls-files", "*.go")
	if err != nil {
		return err
	}
	named := map[string]bool{}
	declared := map[string][]string{} // what counts as one, by its first name
	for name := range strings.FieldsSeq(list) {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := path.Dir(name)
		uses(file, named)
		if !strings.HasSuffix(name, "_test.go") && strings.HasPrefix(dir, "internal/") {
			declares(file, dir, declared, named)
		}
	}
	var unused []string
	for _, names := range declared {
		if !slices.ContainsFunc(names, func(name string) bool { return named[name] }) {
			unused = append(unused, names...)
		}
	}
	slices.Sort(unused)
	fmt.Printf("\n%d exported names that only their own package uses\n", len(unused))
	for _, name := range unused {
		fmt.Printf("  %s\n", name)
	}
	return nil
}

// uses notes what a file names of the packages it imports.
func uses(file *ast.File, named map[string]bool) {
	imports := map[string]string{}
	for _, i := range file.Imports {
		full, err := strconv.Unquote(i.Path.Value)
		if rest, ours := strings.CutPrefix(full, module); err == nil && ours {
			as := path.Base(rest)
			if i.Name != nil {
				as = i.Name.Name
			}
			imports[as] = rest
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && imports[x.Name] != "" {
				named[imports[x.Name]+"."+s.Sel.Name] = true
			}
		}
		return true
	})
}

// declares notes the exported names of a file, and names what they are made of.
func declares(file *ast.File, dir string, declared map[string][]string, named map[string]bool) {
	add := func(names []*ast.Ident, madeOf ast.Expr) (exported []string) {
		for _, name := range names {
			if name.IsExported() {
				exported = append(exported, dir+"."+name.Name)
			}
		}
		if madeOf != nil && len(exported) > 0 {
			mention(madeOf, func(name string) {
				if name = dir + "." + name; name != exported[0] {
					named[name] = true
				}
			})
		}
		return exported
	}
	note := func(names []string) {
		if len(names) > 0 {
			declared[names[0]] = names
		}
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl: // a method is not noted, but names what it is made of
			if names := add([]*ast.Ident{d.Name}, d.Type); d.Recv == nil {
				note(names)
			}
		case *ast.GenDecl:
			var constants []string
			for _, spec := range d.Specs {
				if s, ok := spec.(*ast.TypeSpec); ok {
					note(add([]*ast.Ident{s.Name}, s.Type))
				} else if s, ok := spec.(*ast.ValueSpec); ok && d.Tok == token.CONST {
					constants = append(constants, add(s.Names, s.Type)...)
				} else if ok {
					note(add(s.Names, s.Type))
				}
			}
			note(constants)
		}
	}
}

// mention calls each for every name in a type, but not of fields that are not
// exported.
func mention(n ast.Node, each func(string)) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			each(n.Name)
		case *ast.StructType:
			for _, field := range n.Fields.List {
				if len(field.Names) == 0 || slices.ContainsFunc(field.Names, (*ast.Ident).IsExported) {
					mention(field.Type, each)
				}
			}
			return false
		}
		return true
	})
}
