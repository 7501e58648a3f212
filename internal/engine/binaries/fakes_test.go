//go:build unix

package binaries_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
)

// These tests are for Unix: what stands in for Kubernetes are shell scripts.

// TestMain lets this test binary stand in for two other programs, so that the
// tests need no shell: the go command, and a second op-readiness.
func TestMain(m *testing.M) {
	switch os.Getenv("BINARIES_TEST_ROLE") {
	case "go":
		os.Exit(fakeGo(os.Args[1:]))
	case "second-process":
		os.Exit(secondProcess())
	case "sleeper":
		time.Sleep(time.Hour)
	}
	os.Exit(m.Run())
}

// fakeGo does what the store asks of the go command, without building: what it
// "builds" are scripts that report the version given by the ldflags. It is
// steered by files in $FAKE_GO:
//
//	log        each command it was given, one per line
//	fail       when there: builds fail, printing its content
//	hold       when there: builds wait until it is gone
//	hang       when there: builds start a child, note its id in it, and wait
//	env        what go env prints, instead of a new Go
//	upstream   the go.mod that go list finds
//	generated  gets the go.mod that go mod tidy was given
func fakeGo(args []string) int {
	dir := os.Getenv("FAKE_GO")
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(log, strings.Join(args, " "))
	log.Close()
	switch args[0] {
	case "env":
		if text, err := os.ReadFile(filepath.Join(dir, "env")); err == nil {
			fmt.Printf("%s", text)
		} else {
			fmt.Print("go1.99.0\nlocal\n")
		}
		return 0
	case "list":
		fmt.Println(filepath.Join(dir, "upstream"))
		return 0
	case "mod":
		mod, err := os.ReadFile("go.mod")
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "generated"), mod, 0o644)
		}
		if err != nil {
			panic(err)
		}
		return 0
	}
	if text, err := os.ReadFile(filepath.Join(dir, "fail")); err == nil {
		fmt.Fprintf(os.Stderr, "%s", text)
		return 1
	}
	if _, err := os.Stat(filepath.Join(dir, "hang")); err == nil {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "BINARIES_TEST_ROLE=sleeper")
		if err := child.Start(); err != nil {
			panic(err)
		}
		id := []byte(fmt.Sprint(child.Process.Pid))
		if err := os.WriteFile(filepath.Join(dir, "hang.new"), id, 0o644); err != nil {
			panic(err)
		}
		if err := os.Rename(filepath.Join(dir, "hang.new"), filepath.Join(dir, "hang")); err != nil {
			panic(err)
		}
		if err := child.Wait(); err != nil {
			panic(err)
		}
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "hold")); err != nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	var out, version string
	var packages []string
	for i := 1; i < len(args); i++ {
		switch args[i] {
		case "-o":
			out = args[i+1]
			i++
		case "-ldflags":
			_, version, _ = strings.Cut(args[i+1], "gitVersion=")
			version, _, _ = strings.Cut(version, " ")
			i++
		default:
			if !strings.HasPrefix(args[i], "-") {
				packages = append(packages, args[i])
			}
		}
	}
	for _, pkg := range packages {
		file := out
		if strings.HasSuffix(out, string(filepath.Separator)) {
			file += path.Base(pkg)
		}
		if err := os.WriteFile(file, program(filepath.Base(file), version), 0o755); err != nil {
			panic(err)
		}
	}
	return 0
}

// program returns a script that reports its version as the real program does.
func program(name, version string) []byte {
	says := map[string]string{
		"kubectl":  "Client Version: " + version,
		"e2e.test": version,
		"ginkgo":   "Ginkgo Version 2.28.1",
		"etcd":     "etcd Version: 3.6.8",
		"kwok":     "kwok version v0.8.0 go1.26.0 (linux/amd64)",
		"kwokctl":  "kwokctl version v0.8.0 go1.26.0 (linux/amd64)",
	}[name]
	if says == "" {
		says = "Kubernetes " + version
	}
	return []byte("#!/bin/sh\necho '" + says + "'\n")
}

// bench is a store in a temporary folder, a fake go command and a fake release.
type bench struct {
	*binaries.Store
	t        *testing.T
	told     *lines
	goDir    string
	server   *httptest.Server
	mu       sync.Mutex
	files    map[string]http.HandlerFunc
	requests []string
}

// newBench returns a bench whose release publishes nothing yet.
func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, told: &lines{}, goDir: t.TempDir(), files: map[string]http.HandlerFunc{}}
	b.server = httptest.NewServer(b)
	t.Cleanup(func() {
		b.server.CloseClientConnections()
		b.server.Close()
	})
	b.Store = &binaries.Store{
		Dir:           t.TempDir(),
		Progress:      b.told,
		KubernetesURL: b.server.URL + "/k8s",
		EtcdURL:       b.server.URL + "/etcd",
		SourceURL:     b.server.URL + "/source",
		ProbeTimeout:  time.Minute,
		StallTimeout:  time.Minute,
		Go:            os.Args[0],
		Environ: append(os.Environ(), "BINARIES_TEST_ROLE=go", "FAKE_GO="+b.goDir,
			"GORACE=atexit_sleep_ms=0"), // the race detector lets each process linger for a second
	}
	return b
}

func (b *bench) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	b.requests = append(b.requests, r.URL.Path)
	handler := b.files[r.URL.Path]
	b.mu.Unlock()
	if handler == nil {
		http.NotFound(w, r)
		return
	}
	handler(w, r)
}

func (b *bench) handle(path string, handler http.HandlerFunc) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.files[path] = handler
}

func (b *bench) serve(path string, content []byte) {
	b.handle(path, func(w http.ResponseWriter, _ *http.Request) { send(w, content) })
}

// send writes a body; a client that has gone away is its own business.
func send(w http.ResponseWriter, content []byte) { _, _ = w.Write(content) }

// publish serves a file with its checksum beside it.
func (b *bench) publish(path string, content []byte) {
	b.serve(path, content)
	b.serve(path+".sha256", []byte(sum(content)))
}

func (b *bench) asked() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.requests...)
}

// steer writes one of fakeGo's files.
func (b *bench) steer(name, content string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.goDir, name), []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// builds returns the build commands that the fake go was given.
func (b *bench) builds() []string {
	log, _ := os.ReadFile(filepath.Join(b.goDir, "log"))
	var builds []string
	for _, line := range strings.Split(string(log), "\n") {
		if strings.HasPrefix(line, "build ") || strings.HasPrefix(line, "test ") {
			builds = append(builds, line)
		}
	}
	return builds
}

// get obtains names of v1.36.3 and fails the test when that fails.
func (b *bench) get(names ...binaries.Name) map[binaries.Name]string {
	b.t.Helper()
	paths, err := b.Get(context.Background(), "v1.36.3", names...)
	if err != nil {
		b.t.Fatal(err)
	}
	return paths
}

// inCache returns the names of all files in the cache but locks.
func (b *bench) inCache() []string {
	b.t.Helper()
	var found []string
	err := filepath.Walk(b.Dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() && filepath.Base(filepath.Dir(path)) != "locks" {
			found = append(found, info.Name())
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return found
}

func sum(content []byte) string {
	hash := sha256.Sum256(content)
	return hex.EncodeToString(hash[:])
}

// tarball returns a .tar.gz of files.
func tarball(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	for name, content := range files {
		header := &tar.Header{Name: name, Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	archive.Close()
	zipped.Close()
	return packed.Bytes()
}

// lines collects what is written and lets tests wait for it.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// await waits until ok says true; the test's own time limit is the only one.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for i := 0; !ok(); i++ {
		if i%500 == 499 {
			t.Logf("still waiting: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func contains(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
}
