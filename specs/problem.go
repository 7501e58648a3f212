package specs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is something wrong in a spec file, or between the specs and a list
// of tests.
type Problem struct {
	// File and Line say where; Line is 0 when it is the whole file.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Case is the id of the case, if it is one case's problem.
	Case    string `json:"case,omitempty"`
	Message string `json:"message"`
}

// String is the problem in one line: "core-network.yaml:12: …".
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d", p.Line)
		}
		b.WriteString(": ")
	}
	if p.Case != "" {
		b.WriteString(p.Case + ": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Warning is what a spec file of an older format says in a way that is
// understood, and that its author may want to fix.
type Warning = Problem

// Problems is the error of loading specs: everything that is wrong, at once.
type Problems []Problem

// Error is one problem per line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// inOrder sorts problems by their place and leaves each once: what several
// aliases stand for is read several times.
func inOrder(problems []Problem) []Problem {
	seen := map[Problem]bool{}
	problems = slices.DeleteFunc(problems, func(p Problem) bool {
		again := seen[p]
		seen[p] = true
		return again
	})
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return problems
}
