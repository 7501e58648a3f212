//go:build unix

package kwok_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kwok"
	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
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

func TestWrongRequestsAreAllNamed(t *testing.T) {
	p := &kwok.Provider{Dir: tempDir(t)}
	_, err := p.Plan(t.Context(), provider.Request{
		Name: "../x", KubernetesVersion: "latest", LinuxNodes: -1, WindowsNodes: 1001, WindowsVersion: "xp",
		Set: map[string]string{kwok.BindAddress: "everywhere", kwok.Commands: "bin", "colour": "red"},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{
		`"../x"`, `"latest"`, "-1 Linux", "1001 Windows", `"xp"`, "ltsc2019, ltsc2022, ltsc2025",
		`bind-address "everywhere"`, `commands "bin"`, `unknown setting "colour": kwok has bind-address, commands, join-address`,
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %q", part, err)
		}
	}
}

func TestPlanMakesNothing(t *testing.T) {
	dir := filepath.Join(tempDir(t), "clusters")
	plan, err := (&kwok.Provider{Dir: dir}).Plan(t.Context(), provider.DefaultRequest())
	if err != nil || len(plan.Steps) == 0 || len(plan.Objects) == 0 {
		t.Errorf("plan %+v, %v", plan, err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder of clusters was made: %v", err)
	}
}

func TestFailingKwokctlIsReported(t *testing.T) {
	script := filepath.Join(tempDir(t), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho what went wrong >&2\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := &kwok.Provider{Binaries: handOut{path: script}, Dir: tempDir(t)}
	_, err := kwoktest.Make(t.Context(), p, provider.DefaultRequest())
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{script + " create cluster --name op-readiness", "exit status 3", "what went wrong"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %q", part, err)
		}
	}
	if err := kwoktest.Remove(t.Context(), p, "op-readiness"); err != nil {
		t.Error(err)
	}
	assertGone(t, p, "op-readiness")
}

// What is in the folder of clusters without a record is not ours, but for what the last
// moment of a removal leaves.
func TestFoldersThatAreNoClusters(t *testing.T) {
	p := &kwok.Provider{Binaries: handOut{}, Dir: tempDir(t)}
	for dir, foreign := range map[string]bool{"somebody/notes": true, "emptied": false, ".new-half": false} {
		if err := os.MkdirAll(filepath.Join(p.Dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(dir, "/")
		if provider.ValidateName(name) != nil {
			continue
		}
		said, err := p.Foreign(t.Context(), name)
		if err != nil || (said != "") != foreign {
			t.Errorf("%s: foreign %q, %v", name, said, err)
		}
	}
	if listed, err := p.List(t.Context()); err != nil || len(listed) > 0 {
		t.Errorf("listed %+v, %v", listed, err)
	}
	for _, name := range []string{"half", "emptied"} {
		if err := kwoktest.Remove(t.Context(), p, name); err != nil {
			t.Error(err)
		}
	}
	left, _ := os.ReadDir(p.Dir)
	if len(left) != 1 || left[0].Name() != "somebody" {
		t.Errorf("left are %v, want somebody's folder alone", left)
	}
}

func TestDownOfNothingIsNoError(t *testing.T) {
	p := &kwok.Provider{Binaries: handOut{}, Dir: tempDir(t)}
	if err := kwoktest.Remove(t.Context(), p, "never-was"); err != nil {
		t.Error(err)
	}
	if err := kwoktest.Remove(t.Context(), p, "../etc"); err == nil {
		t.Error("a name that leaves the folder was accepted")
	}
}
