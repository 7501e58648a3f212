package rehearse

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
)

// A finished.json that says only that it passed is one.
func TestUploadedResult(t *testing.T) {
	for content, want := range map[string]string{
		"":                                      "",
		`{"timestamp": 1, "passed": true}`:      "SUCCESS",
		`{"timestamp": 1, "passed": false}`:     "FAILURE",
		`{"passed": false, "result":"ABORTED"}`: "ABORTED",
	} {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "logs/j/1"), 0o755); err != nil {
			t.Fatal(err)
		}
		if content != "" {
			if err := os.WriteFile(filepath.Join(dir, "logs/j/1/finished.json"), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		url, err := bucket.FileURL(dir)
		if err != nil {
			t.Fatal(err)
		}
		b, err := (&RehearsalPlan{Build: "logs/j/1"}).Uploaded(t.Context(), url, bucket.Options{})
		if err != nil || b.Result != want {
			t.Errorf("%s: %+v, %v", content, b, err)
		}
	}
}
