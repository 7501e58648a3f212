package check

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rulesOfCode returns the rules of all findings in this package: what is
// assigned to a field Rule, and the second argument of the helper field.
func rulesOfCode(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var rules []string
	add := func(e ast.Expr) {
		lit, ok := e.(*ast.BasicLit)
		if !ok {
			t.Errorf("a rule is not a literal: %#v", e)
			return
		}
		rule, err := strconv.Unquote(lit.Value)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, rule)
	}
	inspect := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Rule" {
				if _, variable := n.Value.(*ast.Ident); !variable { // of the helper
					add(n.Value)
				}
			}
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if s, ok := left.(*ast.SelectorExpr); ok && s.Sel.Name == "Rule" {
					add(n.Rhs[i])
				}
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "field" {
				add(n.Args[1])
			}
		}
		return true
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, inspect)
	}
	slices.Sort(rules)
	return slices.Compact(rules)
}

func TestEveryRuleIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/testgrid-preview.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for line := range strings.Lines(string(page)) {
		// The first cell of a table's row, with nothing but names in code.
		if m := regexp.MustCompile("^\\| (`[a-z0-9-]+`(?:, `[a-z0-9-]+`)*) \\|").FindStringSubmatch(line); m != nil {
			for rule := range strings.SplitSeq(m[1], ", ") {
				documented = append(documented, strings.Trim(rule, "`"))
			}
		}
	}
	rules := rulesOfCode(t)
	if len(rules) < 40 {
		t.Errorf("%d rules in the code, which cannot be all: %v", len(rules), rules)
	}
	for _, rule := range rules {
		if !slices.Contains(documented, rule) {
			t.Errorf("docs/testgrid-preview.md does not have the rule %q", rule)
		}
	}
	for _, rule := range documented {
		if !slices.Contains(rules, rule) {
			t.Errorf("docs/testgrid-preview.md has the rule %q, which no finding has", rule)
		}
	}
}
