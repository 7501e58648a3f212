//go:build unix

package lies

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
)

const private = "-----BEGIN PRIVATE KEY----- lies"

// impostors are what stands in the place of a file, or of the folder of logs. aside
// has what was there, and beside it private files.
var impostors = map[string]func(t testing.TB, path, aside string) error{
	"a link": func(t testing.TB, path, aside string) error { return os.Symlink(aside, path) },
	"a link to a private file": func(t testing.TB, path, aside string) error {
		key := aside + ".key"
		if err := os.WriteFile(key, []byte(private+"\ncut off"), 0o600); err != nil {
			return err
		}
		return os.Symlink(key, path)
	},
	"a link to nothing": func(t testing.TB, path, aside string) error { return os.Symlink(aside+".gone", path) },
	"a pipe":            func(t testing.TB, path, aside string) error { return syscall.Mkfifo(path, 0o644) },
	"a folder":          func(t testing.TB, path, aside string) error { return os.Mkdir(path, 0o755) },
	"a device":          func(t testing.TB, path, aside string) error { return os.Symlink("/dev/zero", path) },
	"a socket": func(t testing.TB, path, aside string) error {
		// The names of sockets are short.
		dir, err := os.MkdirTemp("", "lies")
		if err != nil {
			return err
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		l, err := net.Listen("unix", filepath.Join(dir, "s"))
		if err != nil {
			return err
		}
		t.Cleanup(func() { l.Close() })
		return os.Rename(filepath.Join(dir, "s"), path)
	},
}

// ours are the files of a results folder that are read, copied or uploaded.
var ours = []string{
	result.PlanFile, result.ManifestFile, result.EventsFile, result.LogsDir, result.LogsDir + "/batch-01.log",
	result.MetadataFile, "junit_core-network_01.xml", "preflight.json",
}

// forge puts an impostor in the place of a file of the scene's folder.
func (s *scene) forge(name string, impostor func(t testing.TB, path, aside string) error) (aside string) {
	s.t.Helper()
	aside = filepath.Join(s.temp, "aside")
	path := filepath.Join(s.dir, name)
	if err := os.Rename(path, aside); err != nil {
		s.t.Fatal(err)
	}
	if info, err := os.Stat(aside); err == nil && info.IsDir() {
		s.write(filepath.Join(aside, "batch-99.log"), private)
	}
	if err := impostor(s.t, path, aside); err != nil {
		s.t.Fatal(err)
	}
	return aside
}

// within ends the test where a command hangs.
func (s *scene) within(limit time.Duration, command string, args ...string) (said, bool) {
	s.t.Helper()
	done := make(chan said, 1)
	go func() { done <- s.main(args...) }()
	select {
	case got := <-done:
		return got, true
	case <-time.After(limit):
		s.t.Errorf("%s hangs", command)
		return said{}, false
	}
}

func TestWhatIsNoFileIsNotReadCopiedUploadedOrWritten(t *testing.T) {
	t.Parallel()
	made := newScene(t, truth)
	made.believed(made.run())
	for _, name := range ours {
		for what, impostor := range impostors {
			t.Run(name+" is "+what, func(t *testing.T) {
				t.Parallel()
				if what == "a folder" && strings.HasPrefix(name, result.LogsDir) {
					return // logs are one, and may hold others
				}
				forged(t, made, name, impostor)
			})
		}
	}
}

// forged has every command meet an impostor.
func forged(t *testing.T, made *scene, name string, impostor func(t testing.TB, path, aside string) error) {
	s := *made
	s.t, s.temp = t, t.TempDir()
	s.dir = filepath.Join(s.temp, "results")
	if err := os.CopyFS(s.dir, os.DirFS(made.dir)); err != nil {
		t.Fatal(err)
	}
	aside := s.forge(name, impostor)
	before := contents(t, aside)
	merged, bucket := filepath.Join(s.temp, "merged"), filepath.Join(s.temp, "bucket")
	for command, args := range map[string][]string{
		"report":  {"report", s.dir},
		"merge":   {"merge", "--logs", "--report-dir", merged, s.dir},
		"publish": {"publish", s.dir, "--bucket", "file://" + bucket, "--job", "lies"},
		"comment": {"comment", s.dir, "--dry-run"},
		"resume":  {"run", "--resume", s.dir},
	} {
		got, ended := s.within(30*time.Second, command, args...)
		if !ended {
			return
		}
		// JUnit is written anew from what else there is, and never read.
		if got.code == verdict.ExitReady && !strings.HasPrefix(name, "junit_") {
			t.Errorf("%s takes it: %s%s", command, got.stdout, got.stderr)
		}
		if strings.Contains(got.stdout+got.stderr, private) {
			t.Errorf("%s prints a private file", command)
		}
	}
	if after := contents(t, aside); !bytes.Equal(before, after) {
		t.Errorf("what is linked was changed: %d bytes, and had %d", len(after), len(before))
	}
	for _, out := range []string{merged, bucket} {
		if bytes.Contains(contents(t, out), []byte(private)) {
			t.Errorf("a private file was copied to %s", out)
		}
	}
}

// contents are those of a file, or of all below a folder, and of what stands
// beside it.
func contents(t testing.TB, path string) []byte {
	t.Helper()
	var all []byte
	for _, top := range []string{path, path + ".key"} {
		_ = filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, data...)
			}
			return nil
		})
	}
	return all
}

func TestAFolderMayBeNamedByALink(t *testing.T) {
	t.Parallel()
	s := newScene(t, truth)
	s.believed(s.run())
	link := filepath.Join(s.temp, "latest")
	if err := os.Symlink(s.dir, link); err != nil {
		t.Fatal(err)
	}
	s.believed(s.main("report", link))
	s.believed(s.main("merge", "--logs", "--report-dir", filepath.Join(s.temp, "merged"), link))
	s.believed(s.main("comment", "--dry-run", link))
	s.believed(s.main("run", "--resume", link))
}
