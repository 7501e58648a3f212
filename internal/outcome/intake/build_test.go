package intake

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/GoogleCloudPlatform/testgrid/metadata"
	"github.com/fsouza/fake-gcs-server/fakestorage"

	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// gcs is an emulator with the bucket "bkt".
type gcs struct {
	t   *testing.T
	url string
}

func newGCS(t *testing.T) *gcs {
	t.Helper()
	emulator, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true})
	if err != nil {
		t.Fatal(err)
	}
	emulator.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: "bkt"})
	server := httptest.NewServer(emulator.HTTPHandler())
	t.Cleanup(server.Close)
	return &gcs{t, server.URL}
}

func (g *gcs) options() bucket.Options { return bucket.Options{Endpoint: g.url} }

// put makes objects, by key.
func (g *gcs) put(objects map[string]string) {
	g.t.Helper()
	b, err := bucket.Open(g.t.Context(), "gs://bkt", g.options())
	if err != nil {
		g.t.Fatal(err)
	}
	defer b.Close()
	for key, content := range objects {
		o := &bucket.Object{Key: key}
		if packed, ok := strings.CutPrefix(content, "gzip:"); ok {
			var out bytes.Buffer
			w := gzip.NewWriter(&out)
			if _, err := io.WriteString(w, packed); err != nil {
				g.t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				g.t.Fatal(err)
			}
			content, o.ContentEncoding = out.String(), "gzip"
		}
		if o.Sum, err = bucket.SumOf(strings.NewReader(content)); err != nil {
			g.t.Fatal(err)
		}
		o.Open = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }
		if err := b.Put(g.t.Context(), o); err != nil {
			g.t.Fatal(err)
		}
	}
}

func TestResultsOfABuildAreTaken(t *testing.T) {
	g := newGCS(t)
	g.put(map[string]string{
		"logs/j/1/started.json": "{}", "logs/j/1/finished.json": `{"timestamp":1,"passed":true}`, "logs/j/1/build-log.txt": "x",
		"logs/j/1/artifacts/shard-1/run.json": "{}", "logs/j/1/artifacts/shard-1/plan.json": "gzip:{}", "logs/j/1/artifacts/shard-1/logs/batch-01.log": "x",
		"logs/j/1/artifacts/clusters/w/C:\\events": "x", "logs/j/1/artifacts/a/b/c/run.json": "{}", "logs/j/1/artifacts/é/x.log": "",
		"logs/j/12/artifacts/run.json": "{}", // of another build, whose id begins alike
	})
	dir := filepath.Join(t.TempDir(), "in")
	build, err := takeBuild(t.Context(), "gs://bkt/logs/j/1/", g.options(), dir, small)
	if err != nil {
		t.Fatal(err)
	}
	got := tree(t, dir)
	slices.Sort(got)
	if want := []string{"shard-1/plan.json", "shard-1/run.json"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if build.Build != "gs://bkt/logs/j/1" || build.Finished == nil || !Passed(build.Finished) || build.Files != 2 || build.LeftOut != 4 {
		t.Errorf("got %+v", build)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "shard-1", "plan.json")); err != nil || string(data) != "{}" {
		t.Errorf("what was stored as gzip is %q (%v)", data, err)
	}
	limits := small
	limits.Logs = true
	dir = filepath.Join(t.TempDir(), "in")
	inside, err := takeBuild(t.Context(), "gs://bkt/logs/j/1/artifacts", g.options(), dir, limits)
	if err != nil {
		t.Fatal(err)
	}
	if inside.Build != build.Build || inside.Finished == nil {
		t.Errorf("the build around it is %+v", inside)
	}
	if _, err := os.Stat(filepath.Join(dir, "shard-1/logs/batch-01.log")); err != nil {
		t.Error(err)
	}
}

func TestHostileBuildsAreRefused(t *testing.T) {
	g := newGCS(t)
	many := map[string]string{}
	for i := range small.Entries + 1 {
		many[fmt.Sprintf("many/artifacts/%d", i)] = ""
	}
	g.put(many)
	g.put(map[string]string{
		"slip/artifacts/../run.json": "{}", "slip/finished.json": "{}",
		"slash/artifacts//run.json": "{}",
		"case/artifacts/run.json":   "{}", "case/artifacts/s/run.json": "{}", "case/artifacts/S/plan.json": "{}",
		"device/artifacts/nul/run.json":     "{}",
		"control/artifacts/a\x1b[/run.json": "{}",
		"large/artifacts/run.json":          noise(int(small.File) + 1),
		"bomb/artifacts/run.json":           "gzip:" + strings.Repeat("0", int(small.File)+1),
		"together/artifacts/a/run.json":     noise(50 << 10), "together/artifacts/b/run.json": noise(50 << 10), "together/artifacts/c/run.json": noise(50 << 10),
	})
	for name, want := range map[string]string{
		"many": "over 20 objects", "slip": `artifacts/../run.json": its path leads upwards`, "slash": "absolute path", "case": "by case only", "device": "cannot be one everywhere",
		"control": "control characters", "large": "65536 bytes are allowed", "bomb": "over 65536 bytes, unpacked", "together": "over 131072 bytes",
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			_, err := takeBuild(t.Context(), "gs://bkt/"+name, g.options(), filepath.Join(parent, "in"), small)
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "gs://bkt/"+name) {
				t.Errorf("got %v, want it refused with %q", err, want)
			}
			if left, _ := os.ReadDir(parent); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// A folder as a bucket can have what a bucket cannot.
func TestLinksInAFolderAreRefused(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, link := range map[string]func(build string) error{
		"a file": func(build string) error { return os.Symlink(secret, filepath.Join(build, "artifacts", "run.json")) },
	} {
		build := t.TempDir()
		if err := os.Mkdir(filepath.Join(build, "artifacts"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := link(build); err != nil {
			t.Skip("there are no symbolic links here")
		}
		url, err := bucket.FileURL(build)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := takeBuild(t.Context(), url, bucket.Options{}, filepath.Join(t.TempDir(), "in"), small); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What finished.json says is read as TestGrid reads it, which shows nothing of a
// build where it cannot.
func TestReadFinished(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		passed  bool
		unread  string
	}{
		"passed":                  {`{"timestamp": 1, "passed": true}`, true, ""},
		"by its result":           {`{"timestamp": 1, "result": "SUCCESS"}`, true, ""},
		"passed before result":    {`{"timestamp": 1, "passed": false, "result": "SUCCESS"}`, false, ""},
		"result after passed":     {`{"timestamp": 1, "passed": true, "result": "FAILURE"}`, true, ""},
		"an unknown field":        {`{"timestamp": 1, "passed": true, "more": [1]}`, true, ""},
		"neither":                 {`{}`, false, ""},
		"metadata that are none":  {`{"timestamp": 1, "passed": true, "metadata": "x"}`, false, "metadata"},
		"a fraction of a second":  {`{"timestamp": 1.5, "passed": true}`, false, "timestamp"},
		"something after the end": {`{"timestamp": 1, "passed": true} {}`, false, "after top-level value"},
		"too much":                {`{"timestamp": 1, "passed": true}` + strings.Repeat(" ", 1<<20), false, "over 1 MiB"},
	} {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "logs/j/1"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "logs/j/1/finished.json"), []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		url, err := bucket.FileURL(dir)
		if err != nil {
			t.Fatal(err)
		}
		b, err := bucket.Open(t.Context(), url, bucket.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		f, unread, err := ReadFinished(t.Context(), b, "logs/j/1/")
		if err != nil || (f == nil) != (c.unread != "") || (unread == "") != (c.unread == "") || !strings.Contains(unread, c.unread) || f != nil && Passed(f) != c.passed {
			t.Errorf("%s: %+v, %q, %v", name, f, unread, err)
		}
		if f, unread, err := ReadFinished(t.Context(), b, ""); f != nil || unread != "" || err != nil {
			t.Errorf("none: %+v, %q, %v", f, unread, err)
		}
	}
}

func TestNewestBuildOfAJob(t *testing.T) {
	g := newGCS(t)
	g.put(map[string]string{
		"logs/said/latest-build.txt": "7\n", "logs/said/7/finished.json": "{}", "logs/said/8/started.json": "{}",
		"logs/runs/latest-build.txt": "10", "logs/runs/10/started.json": "{}", "logs/runs/9/finished.json": "{}", "logs/runs/8/finished.json": "{}",
		"logs/silly/latest-build.txt": "../../secret", "logs/silly/3/finished.json": "{}", "logs/silly/name/finished.json": "{}",
		"logs/none/latest-build.txt": "4", "logs/none/4/started.json": "{}",
		"dir/j/5.txt": "gs://bkt/pulls/5/j/5", "pulls/5/j/5/finished.json": "{}",
		"dir/evil/6.txt": "gs://secret/pulls/6", "dir/file/6.txt": "file:///etc",
	})
	for name, c := range map[string]struct {
		want string
		err  error
	}{
		"logs/said/": {"gs://bkt/logs/said/7", nil}, "logs/said/8": {"gs://bkt/logs/said/8", nil}, "logs/runs": {"gs://bkt/logs/runs/9", nil}, "logs/silly": {"gs://bkt/logs/silly/3", nil},
		"logs/none": {"", ErrNoResults}, "logs/nobody": {"", ErrNoResults}, "dir/j": {"gs://bkt/pulls/5/j/5", nil}, "dir/evil": {"", ErrRefused}, "dir/file": {"", ErrRefused},
	} {
		got, err := newestBuild(t.Context(), "gs://bkt/"+name, g.options())
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %q, %v; want %q, %v", name, got, err, c.want, c.err)
		}
	}
}

// FuzzWanted holds every name that is taken to lie below where it goes, on
// every operating system.
func FuzzWanted(f *testing.F) {
	for _, name := range []string{"run.json", "a/b/plan.json", "logs/x.log", "../run.json", "a/../run.json", "/run.json", `a\run.json`, "c:run.json", "con/run.json", "a /run.json", "a//run.json", "./run.json"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if harmless(name) != nil {
			return
		}
		take, err := wanted(name, true)
		if !take || err != nil {
			return
		}
		if !filepath.IsLocal(name) || strings.ContainsAny(name, "\\:*?\"<>|\x00") || strings.Count(name, "/") > maxFolders+1+maxLogDirs {
			t.Errorf("took %q", name)
		}
		for _, part := range strings.Split(name, "/") {
			if part == "" || strings.HasSuffix(part, ".") || strings.HasSuffix(part, " ") || device.MatchString(part) {
				t.Errorf("took %q", name)
			}
		}
	})
}

func TestDoubts(t *testing.T) {
	yes, no := true, false
	inconclusive := &result.Run{
		Plan:     &result.Plan{Shards: 1, Standard: map[specs.Category]int{}},
		Manifest: &result.Manifest{Shard: 1},
	}
	for name, c := range map[string]struct {
		build taken
		want  string
	}{
		"a folder":       {taken{}, ""},
		"no end":         {taken{Build: "gs://bkt/1"}, "has no finished.json"},
		"a ruin":         {taken{Build: "gs://bkt/1", Unread: "why"}, "cannot be read: why"},
		"no time":        {taken{Build: "gs://bkt/1", Finished: &metadata.Finished{Passed: &yes}}, "no time"},
		"passed":         {taken{Build: "gs://bkt/1", Finished: &metadata.Finished{Timestamp: new(int64(1)), Passed: &yes}}, "says that it passed, and its results are not ready"},
		"passed in word": {taken{Build: "gs://bkt/1", Finished: &metadata.Finished{Timestamp: new(int64(1)), Result: "SUCCESS"}}, "says that it passed"},
		"failed":         {taken{Build: "gs://bkt/1", Finished: &metadata.Finished{Timestamp: new(int64(1)), Passed: &no, Result: "SUCCESS"}}, ""},
	} {
		got := strings.Join(c.build.Doubts([]*result.Run{inconclusive}, inconclusive, verdict.Judge(inconclusive)), "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
