// Package release_test makes a release as .github/workflows/release.yml does, up
// to what is published.
package release_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/zip"
)

// clone returns a fresh clone of this repository's commit, in a folder of its
// own.
func clone(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is missing: install it to test releases")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Skip("these sources are no git repository, so there is nothing to release")
	}
	dir := filepath.Join(t.TempDir(), "clone")
	must(t, "", "git", "clone", "--quiet", "--no-tags", "file://"+root, dir)
	return dir
}

// command runs a program in dir, where nothing of the caller's Git setup is
// known, and returns what it prints.
func command(dir string, args ...string) (string, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func must(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := command(dir, args...)
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return out
}

// Who imports the module or installs the program from its source gets it as a
// zip, and Windows checks out no other names than those that may be in one.
func TestTheSourceCanBeAModule(t *testing.T) {
	checked, err := zip.CheckDir(clone(t))
	if err != nil {
		t.Error(err)
	}
	if len(checked.Valid) < 500 || !slices.ContainsFunc(checked.Valid, func(f string) bool { return filepath.Base(f) == "action.yml" }) {
		t.Errorf("only %d files would be in the module", len(checked.Valid))
	}
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestTwoBuildsOfAReleaseAreTheSame(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("releases are built where bash is")
	}
	platform := runtime.GOOS + "/" + runtime.GOARCH
	name := "op-readiness_v1.2.3_" + runtime.GOOS + "_" + runtime.GOARCH
	var commits []string
	var binaries, sums [][]byte
	for _, goflags := range []string{"", "-tags=whatever -ldflags=-v"} {
		t.Setenv("GOFLAGS", goflags) // what the environment says does not matter
		dir := clone(t)
		dist := filepath.Join(t.TempDir(), "dist")
		must(t, dir, "scripts/release.sh", "build", "v1.2.3", dist, platform)
		commits = append(commits, must(t, dir, "scripts/release.sh", "commit", "v1.2.3", filepath.Join(dist, "checksums.txt")))
		if pinned := read(t, dir, "scripts/action/checksums.txt"); !bytes.Equal(pinned, read(t, dist, "checksums.txt")) {
			t.Errorf("the action's source has the checksums %s", pinned)
		}
		binaries, sums = append(binaries, read(t, dist, name)), append(sums, read(t, dist, "checksums.txt"))
		if out := must(t, dir, filepath.Join(dist, name), "version"); out != "op-readiness v1.2.3\n" {
			t.Errorf("the binary says %q", out)
		}
	}
	if commits[0] != commits[1] {
		t.Errorf("two commits, %q", commits)
	}
	if !bytes.Equal(binaries[0], binaries[1]) || !bytes.Equal(sums[0], sums[1]) {
		t.Errorf("two builds differ: %s and %s", sums[0], sums[1])
	}
	if !regexp.MustCompile(`^[0-9a-f]{64}  ` + regexp.QuoteMeta(name) + "\n$").Match(sums[0]) {
		t.Errorf("checksums.txt: %q", sums[0])
	}
}

// checksums is a file as a build of the version makes it.
func checksums(t *testing.T, version string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "checksums.txt")
	if err := os.WriteFile(path, []byte(strings.Repeat("0", 64)+"  op-readiness_"+version+"_linux_amd64\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// action is a use of this project's action; the name of a reusable workflow goes
// on with a slash.
var action = regexp.MustCompile(`(?m)^[^#\n]*uses: windows-op-readiness/windows-op-readiness@(\S+)`)

// The reusable workflows name the action by the branch on main, and by their own
// version in a release.
func TestWorkflowsNameTheActionOfTheirVersion(t *testing.T) {
	refs := func(dir string) map[string]int {
		found := map[string]int{}
		for _, file := range []string{"readiness.yml", "comment.yml"} {
			all := action.FindAllSubmatch(read(t, dir, ".github/workflows", file), -1)
			if len(all) == 0 {
				t.Errorf("%s does not use the action", file)
			}
			for _, m := range all {
				found[string(m[1])]++
			}
		}
		return found
	}
	dir := clone(t)
	if on := refs(dir); len(on) != 1 || on["main"] == 0 {
		t.Errorf("on main: %v", on)
	}
	must(t, dir, "scripts/release.sh", "commit", "v1.2.3", checksums(t, "v1.2.3"))
	if on := refs(dir); len(on) != 1 || on["v1.2.3"] == 0 {
		t.Errorf("in the release: %v", on)
	}
	if out := must(t, dir, "git", "show", "--stat=200", "--format=", "HEAD"); strings.Count(out, "|") != 4 {
		t.Errorf("the release changes more than the workflows and the checksums:\n%s", out)
	}
	if out := must(t, dir, "git", "tag", "--points-at", "HEAD"); out != "v1.2.3\n" {
		t.Errorf("tags %q", out)
	}
}

func TestWhatIsNoRelease(t *testing.T) {
	dir := clone(t)
	refused := func(says string, args ...string) {
		t.Helper()
		if out, err := command(dir, append([]string{"scripts/release.sh"}, args...)...); err == nil || !strings.Contains(out, says) {
			t.Errorf("%q: %v, %s", args, err, out)
		}
	}
	for _, version := range []string{"", "1.2.3", "v1", "v1.2", "v01.2.3", "v1.2.3-", "v1.2.3; rm -rf x", "v1.2.3\nv2.0.0"} {
		refused("is not a version", "commit", version, checksums(t, version))
		refused("is not a version", "build", version, t.TempDir())
	}
	for _, sums := range []string{"", filepath.Join(dir, "README.md"), checksums(t, "v1.2.4")} {
		refused("is not the checksums.txt", "commit", "v1.2.3", sums)
	}
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("changed\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	refused("not committed", "commit", "v1.2.3", checksums(t, "v1.2.3"))
	refused("not committed", "build", "v1.2.3", t.TempDir())
	for version, want := range map[string]string{"v1.2.3": "v1\n", "v12.0.0": "v12\n", "v1.2.3-rc.1": "", "v0.1.0": "v0\n"} {
		if out := must(t, dir, "scripts/release.sh", "major", version); out != want {
			t.Errorf("%s moves %q", version, out)
		}
	}
}
