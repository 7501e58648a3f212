package e2e_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
)

// A cluster that a run cannot remove is a failed case, and is named; once it can be
// removed, the command that the run names does it.
func TestAClusterThatIsLeftIsAFailure(t *testing.T) {
	t.Parallel()
	need(t)
	if os.Geteuid() != 0 {
		t.Skip("it mounts a filesystem, which takes root")
	}
	cache, err := binaries.DefaultDir(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	dir, ledger := filepath.Join(t.TempDir(), "results"), t.TempDir()
	command := func(args ...string) (*exec.Cmd, *bytes.Buffer) {
		cmd, said := exec.Command(os.Args[0], args...), &bytes.Buffer{}
		cmd.Env = append(os.Environ(), "OP_READINESS_TEST_MAIN=1", "OP_READINESS_LEDGER="+ledger)
		cmd.Stdout, cmd.Stderr = said, said
		return cmd, said
	}
	cmd, said := command(append([]string{"run", "--cluster", "kwok", "--report-dir", dir}, caseArgs(endpointSlice, deployment)...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a test runs", func() bool { return events(dir, result.TestStarted) > 0 })
	_, name, _ := strings.Cut(read(t, dir).Manifest.Target.Made, "/")
	held := filepath.Join(cache, "clusters", name, "held")
	if err := errors.Join(os.Mkdir(held, 0o700), unix.Mount("none", held, "tmpfs", 0, "")); err != nil {
		_ = cmd.Wait()
		t.Skipf("a folder cannot be made to stay: %v", err)
	}
	if code := exitCode(cmd.Wait()); code != verdict.ExitInconclusive {
		t.Errorf("exit code %d, want %d", code, verdict.ExitInconclusive)
	}
	remedy := "op-readiness cluster down " + name
	if !strings.Contains(said.String(), "cluster "+name+" is left behind") || !strings.Contains(said.String(), remedy) {
		t.Errorf("it is not said what is left, and what removes it:\n%s", said)
	}
	failed := 0
	files, _ := filepath.Glob(filepath.Join(dir, "junit_*.xml"))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, after, found := strings.Cut(string(data), `name="cluster teardown"`); found && strings.Contains(after, "<failure") && strings.Contains(after, remedy) {
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("%d of %q hold a failed case of the teardown, want one", failed, files)
	}
	if down, said := command("cluster", "down", name); down.Run() == nil {
		t.Errorf("it is said to be gone:\n%s", said)
	}
	if err := unix.Unmount(held, 0); err != nil {
		t.Fatal(err)
	}
	if down, said := command("cluster", "down", name); down.Run() != nil {
		t.Errorf("it cannot be removed:\n%s", said)
	}
	if _, err := os.Stat(filepath.Dir(held)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", filepath.Dir(held), err)
	}
}
