package prow

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
)

// Deliver copies what Prow's sidecar takes from $ARTIFACTS only, if the results
// folder dir is another one: metadata.json, which must lie there itself to
// become the metadata of finished.json, and JUnit, which may lie anywhere below.
// Where artifacts is "", nothing is to be done.
func Deliver(dir, artifacts string) error {
	if artifacts == "" {
		return nil
	}
	if err := os.MkdirAll(artifacts, 0o755); err != nil {
		return fmt.Errorf("delivering results to $ARTIFACTS: %w", err)
	}
	dir, err := realPath(dir)
	if err != nil {
		return fmt.Errorf("delivering results to $ARTIFACTS: %w", err)
	}
	to, err := realPath(artifacts)
	if err != nil {
		return fmt.Errorf("delivering results to $ARTIFACTS: %w", err)
	}
	if dir == to {
		return nil
	}
	files := []string{filepath.Join(dir, result.MetadataFile)}
	if !strings.HasPrefix(dir, to+string(filepath.Separator)) {
		junit, err := filepath.Glob(filepath.Join(escape(dir), "junit_*.xml"))
		if err != nil {
			return fmt.Errorf("looking for JUnit: %w", err)
		}
		files = append(files, junit...)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, filepath.Base(file)), data, 0o644)
		}
		if err != nil {
			return fmt.Errorf("delivering results to $ARTIFACTS: %w", err)
		}
	}
	return nil
}

// realPath is the absolute path without symbolic links.
func realPath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// escape turns a path into a pattern that matches only itself.
func escape(path string) string {
	if filepath.Separator == '\\' {
		return path // there patterns have no escapes
	}
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`).Replace(path)
}
