// Package conformance reads the JUnit of a Linux conformance run that the user
// brings. The standard asks for Linux conformance, and running it is not this
// program's business.
package conformance

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/junit"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// label is in the name of every conformance test.
const label = "[Conformance]"

// Read judges JUnit files: conformance is passed when every conformance test
// that e2e.test has passed in them. Of a test that was run again, the last
// result counts, in the order of the files. Unreadable files are an error.
func Read(files []string, tests *specs.TestList) (verdict.Outcome, string, error) {
	wanted := map[string]bool{}
	for _, t := range tests.Tests {
		if strings.Contains(t.Name, label) {
			wanted[t.Name] = true
		}
	}
	if len(wanted) == 0 {
		return verdict.Error, fmt.Sprintf("e2e.test %s has no conformance tests to compare the JUnit with", tests.Version), nil
	}
	passed := map[string]bool{}
	for _, path := range files {
		if err := readFile(path, passed); err != nil {
			return "", "", err
		}
	}
	var failures, missing []string
	for name := range wanted {
		if ok, ran := passed[name]; !ran {
			missing = append(missing, name)
		} else if !ok {
			failures = append(failures, name)
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

// readFile notes of each conformance test that ran whether it passed.
func readFile(path string, passed map[string]bool) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("conformance JUnit: %w", err)
	}
	defer file.Close()
	err = junit.Read(file, path, func(r junit.Result) {
		if r.Skipped || !strings.Contains(r.Name, label) {
			return
		}
		// Ginkgo's own report puts the node's type before the name, and may put
		// the labels after it.
		name := strings.TrimPrefix(r.Name, "[It] ")
		if i := strings.LastIndex(name, " ["); i > 0 && strings.Contains(name[i:], ", ") {
			name = name[:i]
		}
		passed[name] = !r.Failed
	})
	if err != nil {
		return fmt.Errorf("conformance JUnit: %w", err)
	}
	return nil
}
