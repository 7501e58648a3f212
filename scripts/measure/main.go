// Command measure prints how large the program is, and what of it is wider than
// it needs to be. Nothing that it finds is an error.
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	module  = "github.com/windows-op-readiness/windows-op-readiness/"
	program = "./cmd/op-readiness"
	cli     = "internal/cli"
)

func main() {
	for _, measure := range []func() error{lines, exports, binary} {
		if err := measure(); err != nil {
			fmt.Println("not measured:", err)
		}
	}
}

// row is something with a number.
type row struct {
	name string
	n    float64
}

// print prints the largest rows.
func print(title, unit string, rows []row, most int) {
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.name, b.name)) })
	fmt.Printf("\n%s\n", title)
	for _, r := range rows[:min(most, len(rows))] {
		fmt.Printf("  %8s%s  %s\n", strconv.FormatFloat(r.n, 'f', -1, 64), unit, r.name)
	}
}

// lines counts the lines of what is linked, without blank ones and comments.
func lines() error {
	out, err := run("go", "list", "-deps", "-f", `{{if and .Module .Module.Main}}{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{end}}`, program)
	if err != nil {
		return err
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	total := 0.0
	packages := map[string]float64{}
	var files, others []row
	for file := range strings.FieldsSeq(strings.ReplaceAll(out, root+"/", "")) {
		src, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		n := countLines(src)
		total += n
		packages[path.Dir(file)] += n
		files = append(files, row{file, n})
	}
	fmt.Printf("%.0f lines of code are linked, %.0f of them of %s\n", total, packages[cli], cli)
	for name, n := range packages {
		if name != cli {
			others = append(others, row{name, n})
		}
	}
	print("the largest other packages", " lines", others, 5)
	print("the largest files", " lines", files, 5)
	return nil
}

// countLines counts the lines on which there is a token.
func countLines(src []byte) float64 {
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, 0)
	n, last := 0, 0
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return float64(n)
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue
		}
		first := file.Line(pos)
		end := first + strings.Count(literal, "\n")
		n += end - max(first-1, last)
		last = end
	}
}

// initTrace is a line of GODEBUG=inittrace=1: a package and its time.
var initTrace = regexp.MustCompile(`(?m)^init (\S+) @\S+ ms, (\S+) ms clock`)

// binary measures the program as it is released: its size, and what it does
// before main.
func binary() error {
	dir, err := os.MkdirTemp("", "measure-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "op-readiness")
	if _, err := run("go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, program); err != nil {
		return err
	}
	info, err := os.Stat(binary)
	if err != nil {
		return err
	}
	fmt.Printf("\n%.1f MB: the stripped binary\n", float64(info.Size())/1e6)

	cmd := exec.Command(binary, "--version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace bytes.Buffer
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		return err
	}
	var inits []row
	total := 0.0
	for _, m := range initTrace.FindAllStringSubmatch(trace.String(), -1) {
		ms, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return err
		}
		total += ms
		inits = append(inits, row{m[1], ms})
	}
	print(fmt.Sprintf("the slowest of %d package initialisations, %.1f ms together", len(inits), total), " ms", inits, 10)
	return nil
}

func run(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return string(out), nil
}
