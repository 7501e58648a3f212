// Command preview measures how long 'op-readiness testgrid preview' takes for
// 200 builds of 300 rows: TestGrid's own updater and summarizer, and the HTML
// page. The builds lie in a folder, and in an emulator of Google Cloud Storage
// that answers every request 20 ms late.
//
// Usage, from the root of the repository:
//
//	go run ./test/bench/preview
//
// It makes the builds, builds op-readiness, runs it as a user would, and checks
// what it wrote. The best of three rounds counts. It exits with 1 when a target
// is missed, 2 when it could not measure.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/test/bench/target"

	"github.com/fsouza/fake-gcs-server/fakestorage"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/junit"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/grid"
)

// want is the longest that a preview may take, wherever the builds are.
const want = 10 * time.Second

func main() {
	builds := flag.Int("builds", 200, "how many builds (the target is stated for 200)")
	rows := flag.Int("rows", 300, "how many rows (the target is stated for 300)")
	rounds := flag.Int("rounds", 3, "how often to measure; the best counts")
	flag.Parse()
	target.Exit(run(*builds, *rows, max(1, *rounds), os.Stdout, os.Stderr))
}

func run(builds, rows, rounds int, out, narration io.Writer) error {
	dir, err := os.MkdirTemp("", "bench-preview-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "op-readiness")
	fmt.Fprintln(narration, "bench: building op-readiness")
	build := exec.Command("go", "build", "-o", binary, "./cmd/op-readiness")
	build.Stderr = narration
	if err := build.Run(); err != nil {
		return fmt.Errorf("building op-readiness: %w", err)
	}
	fmt.Fprintf(narration, "bench: making %d builds of %d rows\n", builds, rows)
	bucket := filepath.Join(dir, "bucket")
	if err := makeBuilds(filepath.Join(bucket, "logs", "windows-readiness"), builds, rows); err != nil {
		return err
	}
	page := filepath.Join(dir, "preview.html")
	remote, stop, err := emulate(bucket)
	if err != nil {
		return err
	}
	defer stop()
	missed := false
	for _, c := range []struct {
		where, source string
		env           []string
	}{
		{"a folder", bucket, nil},
		{"a bucket 20 ms away", "gs://" + bucketName, []string{"STORAGE_EMULATOR_HOST=" + remote}},
	} {
		best := time.Duration(0)
		for range rounds {
			elapsed, err := measure(binary, c.source, c.env, page, builds, rows)
			if err != nil {
				return err
			}
			if best == 0 || elapsed < best {
				best = elapsed
			}
		}
		info, err := os.Stat(page)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "preview of %d builds of %d rows in %s: %.2f s, the page has %.1f MB (target: under %.0f s)\n", builds, rows, c.where, best.Seconds(), float64(info.Size())/1e6, want.Seconds())
		missed = missed || best >= want
	}
	if missed {
		fmt.Fprintln(out, "MISSED")
		return target.ErrMissed
	}
	return nil
}

const bucketName = "bucket"

// emulate serves what is in a folder as a bucket, with a delay. It returns the
// server's address, and what ends it.
func emulate(dir string) (address string, stop func(), err error) {
	emulator, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true})
	if err != nil {
		return "", nil, fmt.Errorf("starting the emulator: %w", err)
	}
	err = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		emulator.CreateObject(fakestorage.Object{ObjectAttrs: fakestorage.ObjectAttrs{BucketName: bucketName, Name: filepath.ToSlash(rel)}, Content: content})
		return nil
	})
	if err != nil {
		return "", nil, fmt.Errorf("filling the emulator: %w", err)
	}
	handler := emulator.HTTPHandler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(20 * time.Millisecond)
		handler.ServeHTTP(w, r)
	}))
	return server.URL, server.Close, nil
}

// measure runs op-readiness, and checks that all is in what it wrote.
func measure(binary, source string, env []string, page string, builds, rows int) (time.Duration, error) {
	cmd := exec.Command(binary, "testgrid", "preview", source, "--html", page, "-o", "json")
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	err := cmd.Run()
	elapsed := time.Since(began)
	if err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, stderr.String())
	}
	var p grid.Preview
	if err := json.Unmarshal([]byte(stdout.String()), &p); err != nil {
		return 0, fmt.Errorf("reading the preview: %w", err)
	}
	tabs := p.Tabs()
	if len(tabs) != 1 || len(tabs[0].Columns) != builds || len(tabs[0].Rows) != rows+1 {
		return 0, fmt.Errorf("the preview has not %d builds of %d rows", builds, rows)
	}
	return elapsed, nil
}

// makeBuilds writes builds as 'publish' lays them out, with failures and flakes.
func makeBuilds(dir string, builds, rows int) error {
	now := time.Now()
	for b := range builds {
		folder := filepath.Join(dir, fmt.Sprint(1991000000000000000+b), "artifacts", "shard-1")
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		var cases []junit.Case
		failed := false
		for r := range rows {
			c := junit.Case{Name: fmt.Sprintf("case-%d [sig-network] Networking Granular Checks: Pods should function for intra-pod communication, variant %d [NodeConformance] [Conformance]", r, r), Time: 1.5}
			switch {
			case (r+b)%17 == 0:
				c.Failure = &junit.Detail{Type: "failed", Message: "the pod did not answer", Body: "timed out after 300.001s: dial tcp 10.244.3.17:8080: i/o timeout"}
				failed = true
				cases = append(cases, c)
				if r%2 == 0 {
					c.Failure = nil
					cases = append(cases, c)
				}
				continue
			case r%11 == 0:
				c.Skipped = &junit.Detail{Body: "not-applicable: the cluster has no second pod CIDR"}
			}
			cases = append(cases, c)
		}
		files, err := junit.Split("core-network", cases)
		if err != nil {
			return err
		}
		start := now.Add(time.Duration(b-builds) * time.Hour)
		root := filepath.Dir(filepath.Dir(folder))
		written := map[string][]byte{
			filepath.Join(root, "started.json"):  fmt.Appendf(nil, `{"timestamp": %d}`, start.Unix()),
			filepath.Join(root, "finished.json"): fmt.Appendf(nil, `{"timestamp": %d, "passed": %t, "metadata": {"Commit": "%08x", "kubernetes-version": "v1.36.%d", "windows-version": "10.0.20348"}}`, start.Add(50*time.Minute).Unix(), !failed, b*7919, b/40),
		}
		for _, f := range files {
			written[filepath.Join(folder, f.Name)] = f.Data
		}
		for name, data := range written {
			if err := os.WriteFile(name, data, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
