package tempdir_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/tempdir"
)

// TestMain lets this binary be a process that makes a folder, and is killed.
func TestMain(m *testing.M) {
	if os.Getenv("TEMPDIR_TEST_HOLDS") != "" {
		dir, err := tempdir.New()
		if err == nil {
			err = os.WriteFile(filepath.Join(dir.Path, "report.json"), nil, 0o600)
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(dir.Path)
		select {}
	}
	os.Exit(m.Run())
}

// another starts a process that has a folder in temp, and returns it.
func another(t *testing.T, temp string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TEMPDIR_TEST_HOLDS=1", "TMPDIR="+temp, "TMP="+temp, "TEMP="+temp)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kill(cmd) })
	lines := bufio.NewScanner(out)
	lines.Scan()
	if _, err := os.Stat(lines.Text()); err != nil {
		t.Fatalf("the process said %q: %v", lines.Text(), err)
	}
	return cmd, lines.Text()
}

func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill() // it may be dead
	_ = cmd.Wait()         // it was killed
}

// inTemp makes a folder for temporary files of the test's own.
func inTemp(t *testing.T) string {
	t.Helper()
	temp := t.TempDir()
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		t.Setenv(name, temp)
	}
	return temp
}

func names(t *testing.T, temp string) []string {
	t.Helper()
	entries, err := os.ReadDir(temp)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, filepath.Join(temp, e.Name()))
	}
	return out
}

func TestAFolderOfAKilledProcessIsRemovedByTheNext(t *testing.T) {
	temp := inTemp(t)
	killed, left := another(t, temp)
	_, living := another(t, temp)
	kill(killed)
	dir, err := tempdir.New()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{living, dir.Path}
	slices.Sort(want)
	if got := names(t, temp); !slices.Equal(got, want) {
		t.Errorf("there are %q, want %q; %s was left", got, want, left)
	}
	if err := os.MkdirAll(filepath.Join(dir.Path, "a", "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := dir.RemoveAll(); err != nil {
		t.Error(err)
	}
	if got := names(t, temp); !slices.Equal(got, []string{living}) {
		t.Errorf("there are %q, want %q", got, living)
	}
}

// Whatever else has such a name is none of ours.
func TestWhatOnlyHasTheNameStays(t *testing.T) {
	temp := inTemp(t)
	const lock = ".op-readiness-lock"
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	for _, dir := range []string{
		filepath.Join(temp, "op-readiness-rehearsal-1"), filepath.Join(temp, "op-readiness-odd", lock), filepath.Join(temp, "op-readiness-linked"), elsewhere,
	} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{filepath.Join(temp, "op-readiness-file"), filepath.Join(elsewhere, lock)} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"op-readiness-link": elsewhere, "op-readiness-linked/" + lock: filepath.Join(elsewhere, lock)} {
		if err := os.Symlink(to, filepath.Join(temp, from)); err != nil {
			t.Skipf("links cannot be made here: %v", err)
		}
	}
	before := names(t, temp)
	dir, err := tempdir.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.RemoveAll(); err != nil {
		t.Fatal(err)
	}
	if after := names(t, temp); !slices.Equal(before, after) {
		t.Errorf("there are %q, want %q", after, before)
	}
	if left := names(t, elsewhere); len(left) != 1 {
		t.Errorf("behind the link there is %q", left)
	}
}
