//go:build unix

package binaries_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/process"
)

func TestChangedBinaryIsRefusedWithTheWayOut(t *testing.T) {
	b := newBench(t)
	b.Source = binaries.Build
	path := b.get(binaries.APIServer)[binaries.APIServer]
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, changed := range map[string][]byte{
		"cut short":          whole[:len(whole)/2],
		"empty":              nil,
		"same size, changed": bytes.ReplaceAll(whole, []byte("1.36.3"), []byte("6.66.6")),
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, changed, 0o755); err != nil {
				t.Fatal(err)
			}
			// Writing within the clock's resolution must not hide a change.
			if err := os.Chtimes(path, time.Time{}, time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
			_, err := b.Get(context.Background(), "v1.36.3", binaries.APIServer)
			var corrupt *binaries.CorruptError
			if !errors.As(err, &corrupt) {
				t.Fatalf("error %v, want a CorruptError", err)
			}
			contains(t, err.Error(), path, corrupt.Expected, corrupt.Found, "rm ")

			entries, err := b.List(false)
			if err != nil {
				t.Fatal(err)
			}
			if len(entries) != 1 || entries[0].Problem == "" {
				t.Errorf("listed as %+v, want it with its problem", entries)
			}
		})
	}
	t.Run("fix", func(t *testing.T) {
		for _, file := range []string{path, path + ".manifest.json"} {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
		b.get(binaries.APIServer)
	})
}

func TestVerifyingFindsAChangeThatLooksLikeNone(t *testing.T) {
	b := newBench(t)
	b.Source = binaries.Build
	path := b.get(binaries.APIServer)[binaries.APIServer]
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	content, _ := os.ReadFile(path)
	content[len(content)-2] ^= 1
	if err := os.WriteFile(path, content, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Time{}, info.ModTime()); err != nil {
		t.Fatal(err)
	}
	entries, err := b.List(true)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || !strings.Contains(entries[0].Problem, "SHA-256") {
		t.Errorf("listed as %+v, want a wrong SHA-256", entries)
	}
}

func TestRestoredCopyIsAccepted(t *testing.T) {
	b := newBench(t)
	b.Source = binaries.Build
	path := b.get(binaries.APIServer)[binaries.APIServer]
	// As a CI cache restores it: another time, no permission to execute.
	if err := os.Chtimes(path, time.Time{}, time.Unix(1700000000, 0)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	b.get(binaries.APIServer)
	if builds := b.builds(); len(builds) != 1 {
		t.Errorf("%d builds, want only the first", len(builds))
	}
	if out, err := exec.Command(path, "--version").Output(); err != nil {
		t.Errorf("running it: %v %s", err, out)
	}
}

func TestBinaryOfAnotherVersionInTheFolderIsRefused(t *testing.T) {
	b := newBench(t)
	b.Source = binaries.Build
	path := b.get(binaries.APIServer)[binaries.APIServer]
	other := strings.Replace(path, "v1.36.3", "v1.35.4", 1)
	if err := os.MkdirAll(filepath.Dir(other), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", ".manifest.json"} {
		if err := os.Rename(path+suffix, other+suffix); err != nil {
			t.Fatal(err)
		}
	}
	_, err := b.Get(context.Background(), "v1.35.4", binaries.APIServer)
	if err == nil {
		t.Fatal("v1.36.3 accepted as v1.35.4")
	}
	contains(t, err.Error(), other, "kube-apiserver v1.35.4", "kube-apiserver v1.36.3")
}

func TestInterruptedAttemptIsForgotten(t *testing.T) {
	b := newBench(t)
	b.Source = binaries.Build
	path := b.get(binaries.APIServer)[binaries.APIServer]
	// As after a kill: the file in place, its record not yet; a folder of work.
	if err := os.Remove(path + ".manifest.json"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("half"), 0o755); err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(filepath.Dir(path), ".tmp-123")
	if err := os.MkdirAll(filepath.Join(work, "out"), 0o755); err != nil {
		t.Fatal(err)
	}
	if entries, err := b.List(false); err != nil || len(entries) > 0 {
		t.Errorf("listed %v, %v: what is not complete is not there", entries, err)
	}
	b.get(binaries.APIServer)
	want := []string{"kube-apiserver", "kube-apiserver.manifest.json"}
	if diff := cmp.Diff(want, b.inCache()); diff != "" {
		t.Errorf("cache:\n%s", diff)
	}
	if _, err := os.Stat(work); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stale work is still there: %v", err)
	}
}

func TestManyInOneProcessBuildOnce(t *testing.T) {
	b := newBench(t)
	b.Source = binaries.Build
	var group sync.WaitGroup
	for range 8 {
		store := &binaries.Store{Dir: b.Dir, Source: binaries.Build, Go: b.Go, Environ: b.Environ}
		group.Add(1)
		go func() {
			defer group.Done()
			if _, err := store.Get(context.Background(), "v1.36.3", binaries.APIServer, binaries.Etcd); err != nil {
				t.Error(err)
			}
		}()
	}
	group.Wait()
	if builds := b.builds(); len(builds) != 2 {
		t.Errorf("builds %q, want one of each component", builds)
	}
}

// secondProcess is another op-readiness that wants the same binary.
func secondProcess() int {
	store := &binaries.Store{
		Dir: os.Getenv("SECOND_DIR"), Source: binaries.Build, Progress: os.Stderr, Go: os.Args[0],
		Environ: append(os.Environ(), "BINARIES_TEST_ROLE=go"),
	}
	paths, err := store.Get(context.Background(), "v1.36.3", binaries.APIServer)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(paths[binaries.APIServer])
	return 0
}

func TestSecondProcessWaitsForTheFirstAndSaysSo(t *testing.T) {
	b := newBench(t)
	b.Source = binaries.Build
	b.steer("hold", "")
	first := make(chan error, 1)
	go func() {
		_, err := b.Get(context.Background(), "v1.36.3", binaries.APIServer)
		first <- err
	}()
	await(t, "the first to build", func() bool { return len(b.builds()) == 1 })

	second := exec.Command(os.Args[0])
	second.Env = append(os.Environ(), "BINARIES_TEST_ROLE=second-process", "SECOND_DIR="+b.Dir, "FAKE_GO="+b.goDir)
	var told, out lines
	second.Stdout, second.Stderr = &out, &told
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "the second to wait", func() bool {
		return strings.Contains(told.String(), "waiting for another op-readiness")
	})
	if err := os.Remove(filepath.Join(b.goDir, "hold")); err != nil {
		t.Fatal(err)
	}
	if err := <-first; err != nil {
		t.Error(err)
	}
	if err := second.Wait(); err != nil {
		t.Errorf("second process: %v\n%s", err, told.String())
	}
	if path := b.get(binaries.APIServer)[binaries.APIServer]; strings.TrimSpace(out.String()) != path {
		t.Errorf("second process got %q, want %q", out.String(), path)
	}
	if builds := b.builds(); len(builds) != 1 {
		t.Errorf("%d builds, want 1", len(builds))
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	b := newBench(t)
	b.Source = binaries.Build
	b.steer("hold", "")
	first := make(chan error, 1)
	go func() {
		_, err := b.Get(context.Background(), "v1.36.3", binaries.APIServer)
		first <- err
	}()
	await(t, "the first to build", func() bool { return len(b.builds()) == 1 })

	ctx, cancel := context.WithCancel(context.Background())
	var told lines
	second := &binaries.Store{Dir: b.Dir, Source: binaries.Build, Go: b.Go, Environ: b.Environ, Progress: &told}
	ended := make(chan error, 1)
	go func() {
		_, err := second.Get(ctx, "v1.36.3", binaries.APIServer)
		ended <- err
	}()
	await(t, "the second to wait", func() bool { return strings.Contains(told.String(), "waiting") })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	os.Remove(filepath.Join(b.goDir, "hold"))
	if err := <-first; err != nil {
		t.Error(err)
	}
}

func TestCancelledBuildLeavesNoProcessAndNoFile(t *testing.T) {
	b := newBench(t)
	b.Source = binaries.Build
	b.steer("hang", "")
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := b.Get(ctx, "v1.36.3", binaries.APIServer)
		ended <- err
	}()
	var child int
	await(t, "the compiler to start", func() bool {
		text, _ := os.ReadFile(filepath.Join(b.goDir, "hang"))
		_, err := fmt.Sscan(string(text), &child)
		return err == nil
	})
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	await(t, "the go command's child to end", func() bool { return !process.Alive(child, 0) })
	if left := b.inCache(); len(left) > 0 {
		t.Errorf("left in the cache: %q", left)
	}
}

func TestListIsSortedAndComplete(t *testing.T) {
	b := newBench(t)
	b.Source = binaries.Build
	b.Now = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	b.get(binaries.Kwok, binaries.Scheduler, binaries.APIServer)
	entries, err := b.List(true)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, fmt.Sprintf("%s %s %s %s %q", e.Name, e.Version, e.Source, e.Obtained.Format(time.RFC3339), e.Problem))
	}
	want := []string{
		`kube-apiserver v1.36.3 build 2026-01-02T03:04:05Z ""`,
		`kube-scheduler v1.36.3 build 2026-01-02T03:04:05Z ""`,
		`kwok v0.8.0 build 2026-01-02T03:04:05Z ""`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := json.Marshal(entries); err != nil {
		t.Error(err)
	}
}

func TestOwnTestsAreForSomeVersionsOnly(t *testing.T) {
	b := newBench(t)
	if _, err := b.Get(context.Background(), "v1.33.4", binaries.E2ETest, binaries.OpReadinessTest); err == nil || !strings.Contains(err.Error(), "op-readiness.test is for Kubernetes 1.34 and newer") {
		t.Errorf("got %v", err)
	}
	if found := b.inCache(); len(found) > 0 {
		t.Errorf("in the cache are %q", found)
	}
}

// Each change of the sources makes another op-readiness.test: those that nobody has
// asked for in days go, and a run that goes on keeps its own.
func TestUnusedBuildsOfOwnTestsAreRemoved(t *testing.T) {
	b := newBench(t)
	b.Source = binaries.Build
	now := time.Date(2026, 1, 20, 3, 4, 5, 0, time.UTC)
	b.Now = func() time.Time { return now }
	own := b.get(binaries.OpReadinessTest, binaries.E2ETest)[binaries.OpReadinessTest]
	dir := filepath.Dir(own)
	const record = ".manifest.json"
	for name, age := range map[string]time.Duration{
		"op-readiness.test-0ld000": 4 * 24 * time.Hour, "op-readiness.test-1n0use": 24 * time.Hour, "e2e.test": 400 * 24 * time.Hour, filepath.Base(own): 400 * 24 * time.Hour,
	} {
		for _, file := range []string{filepath.Join(dir, name), filepath.Join(dir, name) + record} {
			if _, err := os.Stat(file); err != nil {
				if err := os.WriteFile(file, []byte("{}"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := os.Chtimes(filepath.Join(dir, name)+record, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"e2e.test", "e2e.test" + record, "op-readiness.test-1n0use", "op-readiness.test-1n0use" + record, filepath.Base(own), filepath.Base(own) + record}
	slices.Sort(want)
	for _, days := range []int{0, 1} {
		now = now.Add(time.Duration(days) * 24 * time.Hour)
		b.get(binaries.OpReadinessTest)
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, e := range entries {
			left = append(left, e.Name())
		}
		if diff := cmp.Diff(want, left); diff != "" {
			t.Errorf("after %d days: %s", days, diff)
		}
	}
}

func TestMissingTellsWhatGetWouldObtain(t *testing.T) {
	b := newBench(t)
	b.Source = binaries.Build
	b.get(binaries.APIServer)
	missing, err := b.Missing(context.Background(), "1.36.3", binaries.APIServer, binaries.Etcd, binaries.Kwok)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]binaries.Name{binaries.Etcd, binaries.Kwok}, missing); diff != "" {
		t.Error(diff)
	}
}

func TestCacheFolderComesFromTheEnvironmentFirst(t *testing.T) {
	dir, err := binaries.DefaultDir(func(key string) string {
		return map[string]string{"OP_READINESS_CACHE": "/some/where"}[key]
	})
	if err != nil || dir != "/some/where" {
		t.Errorf("got %q, %v", dir, err)
	}
}

func TestWithoutAnyCacheFolderTheErrorNamesTheVariable(t *testing.T) {
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	_, err := binaries.DefaultDir(func(string) string { return "" })
	if err == nil {
		t.Skip("this system has a cache folder all the same")
	}
	contains(t, err.Error(), "OP_READINESS_CACHE")
}
