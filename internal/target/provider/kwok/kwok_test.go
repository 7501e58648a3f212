//go:build unix

package kwok_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kwok"
)

// handOut hands out the same file for every binary, or an error.
type handOut struct {
	path string
	err  error
}

func (h handOut) Get(_ context.Context, _ string, names ...binaries.Name) (map[binaries.Name]string, error) {
	paths := map[binaries.Name]string{}
	for _, name := range names {
		paths[name] = h.path
	}
	return paths, h.err
}

func TestWrongOptionsAreAllNamed(t *testing.T) {
	o := kwok.Options{Name: "../x", KubernetesVersion: "latest", LinuxNodes: -1, WindowsNodes: 101, WindowsVersion: "xp", BindAddress: "everywhere", Commands: "bin"}
	err := o.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{`"../x"`, `"latest"`, "-1 Linux", "101 Windows", `"xp"`, "ltsc2019, ltsc2022, ltsc2025", `"everywhere"`, `"bin"`} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %q", part, err)
		}
	}
	if err := kwok.DefaultOptions().Validate(); err != nil {
		t.Errorf("the default: %v", err)
	}
}

func TestWithoutBinariesNothingIsLeft(t *testing.T) {
	want := errors.New("no binaries today")
	p := &kwok.Provider{Binaries: handOut{err: want}, Dir: tempDir(t)}
	if _, err := p.Up(t.Context(), kwok.DefaultOptions()); !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
	assertGone(t, p, "op-readiness")
}

func TestFailingKwokctlIsReportedAndNothingIsLeft(t *testing.T) {
	script := filepath.Join(tempDir(t), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho what went wrong >&2\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := &kwok.Provider{Binaries: handOut{path: script}, Dir: tempDir(t)}
	_, err := p.Up(t.Context(), kwok.DefaultOptions())
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{script + " create cluster --name op-readiness", "exit status 3", "what went wrong"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %q", part, err)
		}
	}
	assertGone(t, p, "op-readiness")
}

func TestFileThatIsNoKubeconfigIsLeftAlone(t *testing.T) {
	file := filepath.Join(tempDir(t), "precious")
	if err := os.WriteFile(file, []byte("my notes"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := &kwok.Provider{Binaries: handOut{}, Dir: tempDir(t)}
	o := kwok.DefaultOptions()
	o.Kubeconfig = file
	_, err := p.Up(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("error %v, want one that names %s", err, file)
	}
	if text, _ := os.ReadFile(file); string(text) != "my notes" {
		t.Errorf("the file is now %q", text)
	}
}

func TestFolderThatIsNotAClusterIsRemoved(t *testing.T) {
	p := &kwok.Provider{Binaries: handOut{err: errors.New("stop here")}, Dir: tempDir(t)}
	if err := os.MkdirAll(filepath.Join(p.Dir, "op-readiness", "kwok"), 0o755); err != nil {
		t.Fatal(err)
	}
	clusters, err := p.List(t.Context())
	if err != nil || len(clusters) != 1 || !strings.Contains(clusters[0].Problem, "half made") {
		t.Errorf("listed %+v, %v; want it half made", clusters, err)
	}
	if _, err := p.Up(t.Context(), kwok.DefaultOptions()); err == nil {
		t.Error("a cluster without binaries")
	}
	assertGone(t, p, "op-readiness")
}

func TestDownOfNothingIsNoError(t *testing.T) {
	p := &kwok.Provider{Binaries: handOut{}, Dir: tempDir(t)}
	if err := p.Down(t.Context(), "never-was"); err != nil {
		t.Error(err)
	}
	if err := p.Down(t.Context(), "../etc"); err == nil {
		t.Error("a name that leaves the folder was accepted")
	}
}
