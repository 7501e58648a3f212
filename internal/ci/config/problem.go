package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Problem is one thing that is wrong in a file.
type Problem struct {
	// File and Line say where; Line is 0 when it is the whole file.
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	// Field is the field's path, such as matrix.windows[1]; "" is the file's.
	Field string `json:"field,omitempty"`
	// Message says what is wrong, and ends with the fix.
	Message string `json:"message"`
	// More is how many problems this one stands for that are not shown; else 0.
	More int `json:"more,omitempty"`
}

// String is the problem in one line: "op-readiness.yaml:7: matrix.windows[1]: …".
func (p Problem) String() string {
	text := p.File
	if p.Line > 0 {
		text += fmt.Sprintf(":%d", p.Line)
	}
	if p.Field != "" {
		text += ": " + p.Field
	}
	return text + ": " + p.Message
}

// Problems is the error of reading a file: everything that is wrong, in the
// file's order.
type Problems []Problem

// Error is one problem per line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// Count is how many problems there are, with those that are not shown.
func (p Problems) Count() int {
	n := 0
	for _, problem := range p {
		n += max(1, problem.More)
	}
	return n
}

// shown is what is shown of the problems of a file, of which as many as dropped
// were not kept.
func (p Problems) shown(file string, dropped int) Problems {
	more := len(p) - maxShown + dropped
	if more <= 0 {
		return p
	}
	return append(p[:maxShown:maxShown], Problem{File: file, More: more, Message: fmt.Sprintf("and %d more problems, which are shown when these are fixed", more)})
}

func (p Problems) sorted() Problems {
	slices.SortStableFunc(p, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return slices.Compact(p)
}

// oneOf is the fix of an unknown name: what there is, and what was likely
// meant.
func oneOf(name string, allowed []string) string {
	fix := "there is none"
	if len(allowed) > 0 {
		fix = "use " + text.Or(allowed)
	}
	if near := specs.Nearest(name, allowed); near != "" && len(allowed) > 1 {
		fix += "; did you mean " + near + "?"
	}
	return fix
}

func clip(s string) string { return text.Cut(s, 120) }

// Error is the problem in one line.
func (p Problem) Error() string { return p.String() }
