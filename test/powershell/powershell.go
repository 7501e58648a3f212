// Package powershell parses PowerShell by a real grammar, tree-sitter-powershell, where
// no PowerShell can be run. What parses may still be wrong in every other way.
package powershell

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os/exec"

	"github.com/windows-op-readiness/windows-op-readiness/test/npm"
)

// The grammar, and what runs it: https://github.com/airbus-cert/tree-sitter-powershell
var (
	grammar = npm.Package{
		Name: "tree-sitter-powershell", Version: "0.26.4",
		Sum: "sha512-5RwNW/qN/cKArZY0znvTOG+OWSau7Agel5K0A8KQ5Nubw/4SyZ5KC02RKCaYcA2ur5UQ8esyxe9+6yXup2MXkw==",
	}
	runtime = npm.Package{
		Name: "web-tree-sitter", Version: "0.27.1",
		Sum: "sha512-qtx0VyUyNRHtL3ze7+v0hCKB/sLcAmY7ZAVp/ZK/bCj0yED8ptvNrr7Vd7DwDyKDWN9baqcUx4uaD2r2ql+6IA==",
	}
)

//go:embed parse.cjs
var parse string

// SyntaxError is a place in a script that is no PowerShell; lines and columns count
// from 1.
type SyntaxError struct {
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Text   string `json:"text"`
}

func (e SyntaxError) String() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Text) }

// Parser parses scripts, in node.
type Parser struct{ node, library, runtime, grammar string }

// Find returns a parser; the error says what is missing on this machine.
func Find() (*Parser, error) {
	var p Parser
	var err error
	if p.node, err = exec.LookPath("node"); err != nil {
		return nil, err
	}
	for _, f := range []struct {
		path *string
		of   npm.Package
		name string
	}{
		{&p.library, runtime, "web-tree-sitter.cjs"},
		{&p.runtime, runtime, "web-tree-sitter.wasm"},
		{&p.grammar, grammar, "tree-sitter-powershell.wasm"},
	} {
		if *f.path, err = f.of.File(f.name); err != nil {
			return nil, err
		}
	}
	return &p, nil
}

// Errors returns the syntax errors of scripts, by their names.
func (p *Parser) Errors(ctx context.Context, scripts map[string]string) (map[string][]SyntaxError, error) {
	asked, err := json.Marshal(map[string]any{"library": p.library, "runtime": p.runtime, "grammar": p.grammar, "scripts": scripts})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, p.node, "-e", parse)
	var said, failure bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(asked), &said, &failure
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("running %s: %w\n%s", p.node, err, failure.Bytes())
	}
	var found map[string][]SyntaxError
	if err := json.Unmarshal(said.Bytes(), &found); err != nil {
		return nil, fmt.Errorf("what %s says: %w", p.node, err)
	}
	return found, nil
}
