package whole_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/whole"
)

func TestAFileIsReplacedAndNothingIsLeftBesideIt(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, content := range []string{"first", "second"} {
		if err := whole.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(path); err != nil || string(data) != content {
			t.Errorf("%v: it holds %q, want %q", err, data, content)
		}
	}
	// What cannot be put in its place leaves it as it was.
	taken := filepath.Join(dir, "folder")
	if err := os.MkdirAll(filepath.Join(taken, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{taken, filepath.Join(dir, "nowhere", "file")} {
		if err := whole.WriteFile(path, nil, 0o644); err == nil || !strings.Contains(err.Error(), "writing "+path+": ") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, whole.Prefix+"*")); err != nil || len(left) > 0 {
		t.Errorf("%v: left are %q", err, left)
	}
}
