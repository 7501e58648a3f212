//go:build unix

package result_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
)

// What stands in the place of a file is neither read nor followed, truncated,
// copied or waited for, by whoever opens a folder.
func TestNothingButFilesIsReadFromAFolder(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "id_rsa")
	const private = "a private key, whose last line has no end"
	if err := os.WriteFile(secret, []byte(private), 0o600); err != nil {
		t.Fatal(err)
	}
	link := func(to string) func(string) error {
		return func(path string) error { return os.Symlink(to, path) }
	}
	pipe := func(path string) error { return syscall.Mkfifo(path, 0o600) }
	folder := func(path string) error { return os.Mkdir(path, 0o700) }
	for what, c := range map[string]struct {
		name string
		put  func(path string) error
		says string
	}{
		"a linked plan":            {result.PlanFile, link(secret), "plan.json is a symbolic link"},
		"a linked manifest":        {result.ManifestFile, link(secret), "run.json is a symbolic link"},
		"linked events":            {result.EventsFile, link(secret), "results.jsonl is a symbolic link"},
		"linked metadata":          {result.MetadataFile, link(secret), "metadata.json is a symbolic link"},
		"a linked preflight":       {result.PreflightFile, link(secret), "preflight.json is a symbolic link"},
		"a link to nothing":        {result.EventsFile, link(secret + "-not"), "results.jsonl is a symbolic link"},
		"a link within the folder": {result.EventsFile, link(result.PlanFile), "results.jsonl is a symbolic link"},
		"a pipe for events":        {result.EventsFile, pipe, "results.jsonl is a pipe"},
		"a pipe for the plan":      {result.PlanFile, pipe, "plan.json is a pipe"},
		"a device for events":      {result.EventsFile, link("/dev/zero"), "results.jsonl is a symbolic link"},
		"a folder for the plan":    {result.PlanFile, folder, "plan.json is a folder"},
		"linked logs":              {result.LogsDir, link(filepath.Dir(secret)), "logs is a symbolic link"},
		"a linked log":             {result.LogsDir + "/batch-01.log", link(secret), "logs/batch-01.log is a symbolic link"},
		"a pipe among the logs":    {result.LogsDir + "/sub", pipe, "logs/sub is a pipe"},
	} {
		dir := folderWith(t, nil)
		path := filepath.Join(dir, result.LogsDir)
		if c.name != result.LogsDir {
			path = filepath.Join(dir, filepath.FromSlash(c.name))
		}
		if err := errors.Join(os.RemoveAll(path), c.put(path)); err != nil {
			t.Fatal(err)
		}
		if _, err := result.Load(dir); err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v, want %q", what, err, c.says)
		}
		if f, err := result.Reopen(dir); err == nil {
			f.Close()
			t.Errorf("%s: the run goes on", what)
		}
		if got, err := os.ReadFile(secret); err != nil || string(got) != private {
			t.Fatalf("%s: the file elsewhere is now %q (%v)", what, got, err)
		}
	}
	// What is named on the command line may be a link.
	at := filepath.Join(t.TempDir(), "results")
	if err := os.Symlink(folderWith(t, nil), at); err != nil {
		t.Fatal(err)
	}
	read(t, at)
}

func TestALogIsNotWrittenThroughALink(t *testing.T) {
	dir := t.TempDir()
	f := create(t, dir)
	elsewhere := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(elsewhere, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, f.Path("logs/batch-01.log")); err != nil {
		t.Fatal(err)
	}
	log, err := f.CreateLog("logs/batch-01.log")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.WriteString("said"); err != nil {
		t.Fatal(err)
	}
	log.Close()
	if kept, _ := os.ReadFile(elsewhere); string(kept) != "kept" {
		t.Errorf("the file elsewhere is now %q", kept)
	}
	if said, _ := os.ReadFile(f.Path("logs/batch-01.log")); string(said) != "said" {
		t.Errorf("the log is %q", said)
	}
	if err := errors.Join(os.RemoveAll(f.Path(result.LogsDir)), os.Symlink(filepath.Dir(elsewhere), f.Path(result.LogsDir))); err != nil {
		t.Fatal(err)
	}
	if _, err := f.CreateLog("logs/batch-02.log"); !errors.Is(err, result.ErrNotRegular) {
		t.Errorf("a log in a linked folder: %v", err)
	}
}
