// Package golden compares what a test made with a file that is kept beside it.
// In every package that uses it, 'go test ./PACKAGE -update' writes the files
// anew.
package golden

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write golden files anew, in place of comparing with them")

// Update reports whether -update was given.
func Update() bool { return *update }

// Name is the file name of a test that has one golden file.
func Name(t testing.TB) string { return strings.ReplaceAll(t.Name(), "/", "_") + ".golden" }

// Equal fails the test where got is not what the file testdata/name of its
// package has.
func Equal[T string | []byte](t testing.TB, name string, got T) {
	t.Helper()
	file := filepath.Join("testdata", filepath.FromSlash(name))
	if *update {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(got), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; write it with: go test -update", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("differs from %s; if that is right: go test -update\n(-want +got)\n%s", file, diff)
	}
}
