//go:build unix

package binaries_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/test/golden"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries/pins"
)

func TestFailedBuildReportsItsCommandAndTheEndOfItsOutput(t *testing.T) {
	b := newBench(t)
	b.Source = binaries.Build
	b.steer("fail", strings.Repeat("go: downloading something\n", 1000)+"main.go:1:1: it does not compile\n")
	_, err := b.Get(context.Background(), "v1.36.3", binaries.APIServer)
	var command *binaries.CommandError
	if !errors.As(err, &command) {
		t.Fatalf("error %v, want a CommandError", err)
	}
	contains(t, err.Error(), "build -mod=readonly -trimpath", "k8s.io/kubernetes/cmd/kube-apiserver", "it does not compile")
	if len(err.Error()) > 8000 {
		t.Errorf("the error has %d bytes: the whole output", len(err.Error()))
	}
	if left := b.inCache(); len(left) > 0 {
		t.Errorf("left in the cache: %q", left)
	}
}

func TestLongStepsSayHowLongTheyTake(t *testing.T) {
	b := newBench(t)
	b.Source = binaries.Build
	b.get(binaries.APIServer, binaries.E2ETest, binaries.Etcd)
	contains(t, b.told.String(),
		"kubernetes v1.36.3: building kube-apiserver (up to 6m0s from a cold build cache, seconds from a warm one)",
		"kubernetes v1.36.3: building e2e.test (up to 5m0s",
		"etcd v3.6.8: building etcd (up to 40s")
}

func TestTooOldGoIsNamedWithTheOneThatIsNeeded(t *testing.T) {
	b := newBench(t)
	b.Source = binaries.Build
	b.steer("env", "go1.20.5\nlocal\n")
	_, err := b.Get(context.Background(), "v1.36.3", binaries.APIServer)
	if err == nil {
		t.Fatal("no error")
	}
	contains(t, err.Error(), "needs Go 1.26.0 or newer", "go1.20.5", "GOTOOLCHAIN=auto")
}

func TestOldGoThatMayFetchANewerOneIsFine(t *testing.T) {
	b := newBench(t)
	b.Source = binaries.Build
	b.steer("env", "go1.21.5\nauto\n")
	b.get(binaries.APIServer)
}

func TestWithoutGoTheErrorSaysWhereToGetIt(t *testing.T) {
	b := newBench(t)
	b.Go = filepath.Join(t.TempDir(), "go")
	_, err := b.Get(context.Background(), "v1.36.3", binaries.APIServer)
	if err == nil {
		t.Fatal("no error")
	}
	contains(t, err.Error(), "needs Go", "https://go.dev/dl/")
}

// A version that is not pinned is built from a generated module that replaces
// Kubernetes' staging modules by the released ones.
func TestVersionThatIsNotPinned(t *testing.T) {
	b := newBench(t)
	b.Source = binaries.Build
	upstream, err := os.ReadFile("testdata/upstream.mod")
	if err != nil {
		t.Fatal(err)
	}
	b.steer("upstream", string(upstream))
	_, err = b.Get(context.Background(), "v1.44.2", binaries.APIServer)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(b.goDir, "generated"))
	if err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "generated.mod", got)
	contains(t, b.builds()[0], "gitVersion=v1.44.2", "gitMinor=44")
	contains(t, b.told.String(), "not a pinned version")
}

func TestVersions(t *testing.T) {
	for in, want := range map[string]string{
		"v1.36.3": "v1.36.3", "1.36.3": "v1.36.3", "v1.37.0-rc.1": "v1.37.0-rc.1",
		"v1.36": "", "latest": "", "": "", "v2.0.0": "", "v1.36.3+k3s1": "", "v1.36.3/../..": "", "v01.36.3": "",
	} {
		got, err := binaries.ParseVersion(in)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("ParseVersion(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
}

func TestPinsAreComplete(t *testing.T) {
	pinned := binaries.PinnedVersions()
	if len(pinned) == 0 || pinned[len(pinned)-1] != binaries.Pinned {
		t.Errorf("pinned are %q: the newest is not binaries.Pinned, %s", pinned, binaries.Pinned)
	}
	if !slices.Equal(pins.Versions("kwok"), []string{binaries.KwokVersion}) {
		t.Errorf("kwok is pinned at %q, used is %s", pins.Versions("kwok"), binaries.KwokVersion)
	}
	for _, version := range pinned {
		mod, sums, ok := pins.Read("kubernetes", version)
		if !ok || len(sums) == 0 {
			t.Errorf("%s has no go.sum", version)
		}
		_, after, _ := strings.Cut(string(mod), "go.etcd.io/etcd/client/v3 ")
		etcd := strings.Fields(after)[0]
		if _, _, ok := pins.Read("etcd", etcd); !ok {
			t.Errorf("%s requires etcd %s, which is not pinned", version, etcd)
		}
	}
}

// The smallest real thing: ginkgo, from its pinned module, with the real go.
func TestRealBuildOfGinkgo(t *testing.T) {
	probe := exec.Command("go", "mod", "download", "-json", "github.com/onsi/ginkgo/v2@v2.28.1")
	probe.Dir = t.TempDir()
	if out, err := probe.CombinedOutput(); err != nil {
		t.Skipf("no Go module proxy within reach: %v %s", err, out)
	}
	store := &binaries.Store{Dir: t.TempDir(), Source: binaries.Build}
	paths, err := store.Get(t.Context(), binaries.Pinned, binaries.Ginkgo)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(paths[binaries.Ginkgo], "version").Output()
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(out), "Ginkgo Version 2.28.1")
	entries, err := store.List(true)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Source != binaries.Build || entries[0].Problem != "" {
		t.Errorf("listed as %+v", entries)
	}
}
