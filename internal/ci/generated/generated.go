// Package generated compares and writes the files that generators make of
// op-readiness.yaml. What is there and was not generated stays as it is.
package generated

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"

	"github.com/windows-op-readiness/windows-op-readiness/internal/whole"
)

// File is a file as a generator makes it.
type File struct {
	// Name is the file's within the folder of its generator, or its path.
	Name string
	// Data is nil for a file that there is none of: what an earlier
	// configuration made under this name is to go.
	Data []byte
}

// Change is a file that is not what is there.
type Change struct {
	File
	old []byte
}

// mark is in the first lines of every file that a generator may write over.
var mark = []byte("DO NOT EDIT")

// Changes returns the files, by their paths, that are not as they are to be. One
// that is there and was not generated is a [verdict.UsageError], and so is one that
// cannot be read.
func Changes(files []File) ([]Change, error) {
	var changes []Change
	for _, f := range files {
		old, err := os.ReadFile(f.Name)
		missing := errors.Is(err, fs.ErrNotExist)
		switch head, _, _ := bytes.Cut(old, []byte("\n\n")); {
		case err != nil && !missing:
			return nil, verdict.UsageErrorf("reading the generated file: %w", err)
		case missing && f.Data == nil, !missing && f.Data != nil && bytes.Equal(old, f.Data):
			continue
		case len(old) > 0 && !bytes.Contains(head, mark):
			return nil, verdict.UsageErrorf("%s is not a generated file (its head does not say %s), and stays: move it away, or write elsewhere", f.Name, mark)
		}
		changes = append(changes, Change{f, old})
	}
	return changes, nil
}

// Diff is what the change makes of the file that is there; empty where a file
// without content goes.
func (c *Change) Diff() []byte { return diff.Diff(c.Name, c.old, c.Name+" (generated)", c.Data) }

// Apply writes the file, or removes it, and says which. Whoever reads it meanwhile,
// and whoever comes after this process was killed, sees the old one or the new one.
func (c *Change) Apply() (string, error) {
	if c.Data == nil {
		if err := os.Remove(c.Name); err != nil {
			return "", fmt.Errorf("removing the generated file: %w", err)
		}
		return fmt.Sprintf("Removed %s, of which nothing is left", c.Name), nil
	}
	if err := replace(c.Name, c.Data); err != nil {
		return "", fmt.Errorf("writing the generated file: %w", err)
	}
	return "Wrote " + c.Name, nil
}

func replace(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return whole.WriteFile(path, data, 0o644)
}
