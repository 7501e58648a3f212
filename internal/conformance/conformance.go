// Package conformance reads the JUnit of a Linux conformance run that the user
// brings. The standard asks for Linux conformance, and running it is not this
// program's business.
package conformance

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/junit"
	"github.com/windows-op-readiness/windows-op-readiness/internal/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// label is in the name of every conformance test.
const label = "[Conformance]"

// Read judges JUnit files: conformance is passed when every conformance test
// that e2e.test has passed in them, and none failed. A test that failed and
// later passed has passed. Unreadable files are an error.
func Read(files []string, tests *specs.TestList) (verdict.Outcome, string, error) {
	wanted := map[string]bool{}
	for _, t := range tests.Tests {
		if strings.Contains(t.Name, label) {
			wanted[t.Name] = true
		}
	}
	passed, failed := map[string]bool{}, map[string]bool{}
	for _, path := range files {
		if err := readFile(path, passed, failed); err != nil {
			return "", "", err
		}
	}
	var failures, missing []string
	for name := range wanted {
		switch {
		case passed[name]:
		case failed[name]:
			failures = append(failures, name)
		default:
			missing = append(missing, name)
		}
	}
	slices.Sort(failures)
	slices.Sort(missing)
	switch {
	case len(failures) > 0:
		return verdict.Failed, fmt.Sprintf("%d conformance tests failed, the first: %s", len(failures), failures[0]), nil
	case len(missing) > 0:
		return verdict.Error, fmt.Sprintf("the JUnit has no result for %d of the %d conformance tests of %s, the first: %s", len(missing), len(wanted), tests.Version, missing[0]), nil
	}
	return verdict.Passed, fmt.Sprintf("all %d conformance tests of %s passed, by the JUnit that was given", len(wanted), tests.Version), nil
}

func readFile(path string, passed, failed map[string]bool) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("conformance JUnit: %w", err)
	}
	defer file.Close()
	keep := func(name string, skipped bool) bool { return !skipped && strings.Contains(name, label) }
	_, err = junit.Read(file, junit.Options{Source: path, Keep: keep}, func(c junit.Case) error {
		// The framework's own report puts the node's type before the name and
		// the labels after it.
		name := strings.TrimPrefix(c.Name, "[It] ")
		if i := strings.LastIndex(name, " ["); i > 0 && strings.Contains(name[i:], ", ") {
			name = name[:i]
		}
		if c.Failure != nil || c.Error != nil {
			failed[name] = true
		} else {
			passed[name] = true
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("conformance JUnit: %w", err)
	}
	return nil
}
