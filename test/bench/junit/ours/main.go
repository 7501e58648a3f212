// Command ours prunes JUnit files in place with internal/outcome/junit: our side of the
// benchmark, as a process.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/junit"
)

func main() {
	all := flag.Bool("keep-all", false, "keep skipped cases too")
	flag.Parse()
	if err := run(*all, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(all bool, files []string, out io.Writer) error {
	keep := junit.NotSkipped
	if all {
		keep = nil
	}
	for _, name := range files {
		sum, err := prune(name, keep)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: kept %d of %d\n", name, sum.Kept.Tests, sum.All.Tests)
	}
	return nil
}

// prune replaces a file by its pruned copy once that is complete.
func prune(name string, keep junit.Keep) (sum junit.Summary, err error) {
	src, err := os.Open(name)
	if err != nil {
		return sum, err
	}
	defer src.Close()
	dst, err := os.CreateTemp(filepath.Dir(name), ".prune-*")
	if err != nil {
		return sum, err
	}
	defer func() {
		if err != nil {
			dst.Close()
			os.Remove(dst.Name())
		}
	}()
	w := bufio.NewWriterSize(dst, 64<<10)
	if sum, err = junit.Prune(w, src, junit.Options{Source: name, Keep: keep}); err != nil {
		return sum, err
	}
	if err = w.Flush(); err != nil {
		return sum, err
	}
	if err = dst.Close(); err != nil {
		return sum, err
	}
	return sum, os.Rename(dst.Name(), name)
}
