// Mkcatalogue keeps the lists of tests that package specs carries. It reads
// what "e2e.test --list-tests" prints, or op-readiness.test, from standard input and
// writes it to specs/catalogue, or with -check compares it with what is there.
//
//	e2e.test --list-tests | go run ./specs/mkcatalogue v1.36.3
//	op-readiness.test --list-tests | go run ./specs/mkcatalogue op-readiness
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mkcatalogue:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("mkcatalogue", flag.ContinueOnError)
	check := flags.Bool("check", false, "compare with the catalogue instead of writing it")
	dir := flags.String("dir", filepath.Join("specs", "catalogue"), "folder of the catalogues")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("give the Kubernetes version of the list, such as v1.36.3, or op-readiness")
	}
	if flags.Arg(0) == string(specs.OpReadiness) {
		return own(in, out, *check, *dir)
	}
	version, err := specs.ParseVersion(flags.Arg(0))
	if err != nil {
		return err
	}
	if version.Patch < 0 {
		return fmt.Errorf("%s has no patch: give the whole version, such as v1.36.3", version)
	}
	list, err := specs.ParseTestList(in)
	if err != nil {
		return err
	}
	name := "v" + version.String()
	if list.Version != "" && list.Version != name {
		return fmt.Errorf("the list is of Kubernetes %s, not %s", list.Version, name)
	}
	if *check {
		known, err := specs.Catalogue(name)
		if err != nil {
			return err
		}
		if !slices.Equal(known.Tests, list.Tests) {
			return fmt.Errorf("the catalogue of Kubernetes %s (%d tests) is not what e2e.test lists (%d tests): run scripts/catalogue.sh", name, len(known.Tests), len(list.Tests))
		}
		fmt.Fprintf(out, "%s: %d tests, as in the catalogue\n", name, len(list.Tests))
		return nil
	}
	packed, err := specs.PackCatalogue(list)
	if err != nil {
		return err
	}
	file := filepath.Join(*dir, name+".txt.gz")
	if err := os.WriteFile(file, packed, 0o644); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %d tests\n", file, len(list.Tests))
	return nil
}

// own keeps the list of op-readiness.test.
func own(in io.Reader, out io.Writer, check bool, dir string) error {
	list, err := specs.ParseTestList(in)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "op-readiness.txt")
	if check {
		known := specs.OwnTests()
		if !slices.Equal(known.Tests, list.Tests) {
			return fmt.Errorf("%s (%d tests) is not what op-readiness.test lists (%d tests): run scripts/catalogue.sh", file, len(known.Tests), len(list.Tests))
		}
		fmt.Fprintf(out, "op-readiness: %d tests, as in the catalogue\n", len(list.Tests))
		return nil
	}
	var text bytes.Buffer
	if err := specs.WriteTestList(&text, list); err != nil {
		return err
	}
	if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %d tests\n", file, len(list.Tests))
	return nil
}
