package testgrid_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/test/golden"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/testgrid"
)

func TestPlans(t *testing.T) {
	b := emulator(t, nil).Bucket
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	run := aRun{id: "20261121-1", start: at, cases: []aCase{passes("net-a"), fails("net-b")}}
	dir := run.write(t)
	golden.Equal(t, "plan-periodic.txt", listing(planned(t, b, periodic, dir)))
	golden.Equal(t, "plan-presubmit.txt", listing(planned(t, b, presubmit, dir)))
	run.shards = 2
	one := run.write(t)
	run.shard = 2
	golden.Equal(t, "plan-shards.txt", listing(planned(t, b, periodic, one, run.write(t))))
}

func content(t *testing.T, b *bucket.Bucket, key string) string {
	t.Helper()
	data, err := b.ReadAll(t.Context(), key, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestWhatProwAndTestGridRead(t *testing.T) {
	for name, c := range map[string]struct {
		run    aRun
		passed bool
		result string
	}{
		"ready":       {aRun{cases: []aCase{passes("net-a")}}, true, "SUCCESS"},
		"not ready":   {aRun{cases: []aCase{fails("net-a")}}, false, "FAILURE"},
		"not proven":  {aRun{cases: everyOutcome()[3:4]}, false, "FAILURE"},
		"interrupted": {aRun{cases: []aCase{passes("net-a")}, stopped: true}, false, "ABORTED"},
		"killed":      {aRun{cases: []aCase{passes("net-a")}, killed: true}, false, "FAILURE"},
	} {
		t.Run(name, func(t *testing.T) {
			p := emulator(t, nil)
			c.run.id, c.run.start = "20261121-1", start
			plan := planned(t, p.Bucket, presubmit, c.run.write(t))
			publish(t, p.Bucket, plan)
			var began, ended map[string]any
			for name, v := range map[string]any{"started.json": &began, "finished.json": &ended} {
				if err := json.Unmarshal([]byte(content(t, p.Bucket, plan.Dir+name)), v); err != nil {
					t.Fatal(err)
				}
			}
			if began["timestamp"] != float64(start.Unix()) || began["pull"] != "123" || began["repo-commit"] != "0123456789abcdef" {
				t.Errorf("started.json: %v", began)
			}
			end := start.Add(time.Hour)
			if c.run.killed {
				end = now
			}
			if ended["timestamp"] != float64(end.Unix()) || ended["passed"] != c.passed || ended["result"] != c.result {
				t.Errorf("finished.json: %v", ended)
			}
			metadata := ended["metadata"].(map[string]any)
			for k, want := range map[string]string{"Commit": "0123456789abcdef", "kubernetes-version": "v1.36.3", "windows-version": "10.0.20348", "run-id": "20261121-1", "container-runtime": "containerd://2.1.0"} {
				if metadata[k] != want {
					t.Errorf("metadata %s is %v, want %s", k, metadata[k], want)
				}
			}
			for k, v := range metadata {
				if _, ok := v.(string); !ok {
					t.Errorf("metadata %s is %v, which TestGrid does not show", k, v)
				}
			}
			url := "gs://readiness/pr-logs/pull/kubernetes_kubernetes/123/pull-windows-readiness/" + plan.Build
			alias, err := p.Stat(t.Context(), "pr-logs/directory/pull-windows-readiness/"+plan.Build+".txt")
			if err != nil || alias.Metadata["x-goog-meta-link"] != url {
				t.Errorf("alias %+v, %v; want a link to %s", alias, err, url)
			}
			if got := content(t, p.Bucket, alias.Key); got != url {
				t.Errorf("the alias holds %q, want %s", got, url)
			}
			log, err := p.Stat(t.Context(), plan.Dir+"artifacts/shard-1/logs/batch-01.log")
			if err != nil || log.ContentEncoding != "gzip" || log.ContentType != "text/plain; charset=utf-8" || log.Size > 1000 {
				t.Errorf("a log: %+v, %v", log, err)
			}
			if got := content(t, p.Bucket, log.Key); got != strings.Repeat("what e2e.test said\n", 200) {
				t.Errorf("the log holds %q", got)
			}
		})
	}
}

// Strings of metadata.json become metadata; whoever wrote it cannot say what
// the run came to.
func TestMetadataOfTheFolder(t *testing.T) {
	p := emulator(t, nil)
	dir := aRun{id: "20261121-1", start: start, cases: []aCase{fails("net-a")}}.write(t)
	writeFile(t, filepath.Join(dir, "metadata.json"), `{"verdict": "ready", "cni": "calico", "links": {"x": 1}, "n": 7, "empty": "", "long": "`+strings.Repeat("x", 2000)+`"}`)
	plan := planned(t, p.Bucket, periodic, dir)
	publish(t, p.Bucket, plan)
	var ended struct{ Metadata map[string]string }
	if err := json.Unmarshal([]byte(content(t, p.Bucket, plan.Dir+"finished.json")), &ended); err != nil {
		t.Fatal(err)
	}
	if ended.Metadata["verdict"] != "not-ready (another standard)" || ended.Metadata["cni"] != "calico" {
		t.Errorf("metadata %v", ended.Metadata)
	}
	for _, key := range []string{"links", "n", "empty", "long"} {
		if v, ok := ended.Metadata[key]; ok {
			t.Errorf("metadata has %s: %.20q", key, v)
		}
	}
}

// A metadata.json that nothing is taken from is not published as if it were.
func TestMetadataThatIsNone(t *testing.T) {
	p := emulator(t, nil)
	for text, why := range map[string]string{
		"":                                "not a JSON object",
		`{"cni": "calico`:                 "not a JSON object",
		`["calico"]`:                      "not a JSON object",
		strings.Repeat(" ", 2<<20) + "{}": "over 1048576 bytes",
	} {
		dir := aRun{id: "20261121-1", start: start, cases: []aCase{passes("net-a")}}.write(t)
		writeFile(t, filepath.Join(dir, "metadata.json"), text)
		plan := planned(t, p.Bucket, periodic, dir)
		if len(plan.Skipped) != 1 || plan.Skipped[0].File != "shard-1/metadata.json" || !strings.Contains(plan.Skipped[0].Reason, why) {
			t.Errorf("%.20q: left out %q, want metadata.json, because of %s", text, plan.Skipped, why)
		}
		if slices.ContainsFunc(plan.Objects, func(o testgrid.Object) bool { return path.Base(o.Key) == "metadata.json" }) {
			t.Errorf("%.20q is published", text)
		}
	}
}

// However long a run's id and scope are, finished.json stays small.
func TestMetadataIsShort(t *testing.T) {
	p := emulator(t, nil)
	run := aRun{id: strings.Repeat("x", 1<<20), start: start}
	for i := range 200 {
		run.cases = append(run.cases, passes(fmt.Sprint("net-with-a-long-name-", i)))
	}
	plan := planned(t, p.Bucket, periodic, run.write(t))
	publish(t, p.Bucket, plan)
	if got := content(t, p.Bucket, plan.Dir+"finished.json"); len(got) > 4<<10 {
		t.Errorf("finished.json has %d bytes", len(got))
	}
}

func TestOnlyWhatIsOfAResultsFolderIsPublished(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("names that other systems do not allow")
	}
	b := emulator(t, nil).Bucket
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	dir := aRun{id: "20261121-1", start: at, cases: []aCase{passes("net-a")}}.write(t)
	for _, name := range []string{
		"kubeconfig", "junit_other_01.xml", "sub/x.log", "finished.json",
		"logs/a#b.log", "logs/a%23b.log", "logs/sub/page.html", "logs/line\nbreak.log", "logs/back\\slash.log", "logs/junit_x.xml", "logs/evil.link.txt", "logs/x.attrs",
		"logs/" + strings.Repeat("long/", 200) + "name.log", "logs/\xff.log",
	} {
		writeFile(t, filepath.Join(dir, name), strings.Repeat("x", 10))
	}
	large, err := os.Create(filepath.Join(dir, "logs", "large.log"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(large.Truncate(1<<30+1), large.Close()); err != nil {
		t.Fatal(err)
	}
	got := listing(planned(t, b, periodic, dir))
	golden.Equal(t, "plan-hostile.txt", strings.ReplaceAll(strings.ReplaceAll(got, strings.Repeat("long/", 200), "long/(200 times)"), dir, "DIR"))
}

// Whoever wrote a folder, and whatever into it: no secret of a known form is
// published, and what a run wrote itself stays as it is.
func TestNoSecretIsPublished(t *testing.T) {
	p := emulator(t, nil)
	const secret = "h1dden0123456789abcdefh1dden"
	says := aCase{id: "net-a", tries: []result.TestRun{{State: result.TestFailed, Message: "curl -H 'Authorization: Bearer " + secret + "'"}}}
	dir := aRun{id: "20261121-1", start: start, cases: []aCase{says}}.write(t)
	for name, text := range map[string]string{
		"logs/kubeconfig":   "users:\n- name: x\n  user:\n    token: " + secret + "\n    client-key-data: " + secret + "\n",
		"logs/batch-02.log": "fine\nAuthorization: Bearer " + secret + "\nfine, too\n",
		"logs/core.bin":     secret,
		"logs/config.json":  `{"users": [{"user": {"token": "` + secret + `"}}], "n": 12345678901234567890}`,
		"metadata.json":     `{"cni": "https://me:` + secret + `@example.com/", "runtime": "containerd"}`,
		"preflight.json":    `{"token": "` + secret + `", "cut off": `,
	} {
		writeFile(t, filepath.Join(dir, name), text)
	}
	plan := planned(t, p.Bucket, periodic, dir)
	publish(t, p.Bucket, plan)
	arrived := map[string]string{}
	for _, key := range p.keys(t) {
		arrived[strings.TrimPrefix(key, plan.Dir)] = content(t, p.Bucket, key)
		if strings.Contains(content(t, p.Bucket, key), "h1dden") {
			t.Errorf("%s holds the secret:\n%s", key, content(t, p.Bucket, key))
		}
	}
	for name, want := range map[string]string{
		"artifacts/shard-1/logs/batch-02.log": "fine\nAuthorization: Bearer [REDACTED]\nfine, too\n",
		"artifacts/shard-1/logs/config.json":  `{"n":12345678901234567890,"users":[{"user":{"token":"[REDACTED]"}}]}` + "\n",
	} {
		if arrived[name] != want {
			t.Errorf("%s is %q, want %q", name, arrived[name], want)
		}
	}
	for _, name := range []string{"plan.json", "run.json", "logs/batch-01.log"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := arrived["artifacts/shard-1/"+name]; got != string(want) {
			t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
		}
	}
}

// A file that is put in the place of a published one, after the plan was made,
// does not lead outside either.
func TestLinksThatAppearLaterAreNotFollowed(t *testing.T) {
	p := emulator(t, nil)
	outside := filepath.Join(t.TempDir(), "secret")
	writeFile(t, outside, strings.Repeat("what e2e.test said\n", 200))
	dir := aRun{id: "20261121-1", start: start, cases: []aCase{passes("net-a")}}.write(t)
	plan := planned(t, p.Bucket, periodic, dir)
	log := filepath.Join(dir, "logs", "batch-01.log")
	if err := errors.Join(os.Remove(log), os.Symlink(outside, log)); err != nil {
		t.Fatal(err)
	}
	publisher := testgrid.Publisher{Bucket: p.Bucket}
	if _, err := publisher.Publish(t.Context(), plan); err == nil || !strings.Contains(err.Error(), "batch-01.log") {
		t.Errorf("got %v", err)
	}
	if has(p.keys(t), "finished.json") || has(p.keys(t), "batch-01.log") {
		t.Errorf("published %q", p.keys(t))
	}
}

func TestFoldersWhoseFilesLieElsewhereAreRefused(t *testing.T) {
	real := aRun{id: "20261121-1", start: start, cases: []aCase{passes("net-a")}}.write(t)
	for _, name := range []string{"plan.json", "run.json", "results.jsonl"} {
		dir := t.TempDir()
		for _, file := range []string{"plan.json", "run.json", "results.jsonl"} {
			if file == name {
				if err := os.Symlink(filepath.Join(real, file), filepath.Join(dir, file)); err != nil {
					t.Fatal(err)
				}
				continue
			}
			data, err := os.ReadFile(filepath.Join(real, file))
			if err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(dir, file), string(data))
		}
		if _, err := testgrid.ReadResults([]string{dir}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFoldersThatAreOnlyLinkedAreRefused(t *testing.T) {
	real := aRun{id: "20261121-1", start: start, cases: []aCase{passes("net-a")}}.write(t)
	downloads := t.TempDir()
	if err := os.Symlink(real, filepath.Join(downloads, "shard-1")); err != nil {
		t.Fatal(err)
	}
	if _, err := testgrid.ReadResults([]string{downloads}); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("got %v", err)
	}
	// What the user names is what the user means.
	if _, err := testgrid.ReadResults([]string{filepath.Join(downloads, "shard-1")}); err != nil {
		t.Error(err)
	}
}

// network fails requests as it is told.
type network struct {
	mu   sync.Mutex
	seen []string
	// fail says whether a request fails before it has done anything, or when
	// it has done all but answer.
	fail func(n int, signature string) (before, after bool)
}

// now sets which requests fail from now on, and returns those seen before.
func (f *network) now(fail func(n int, signature string) (before, after bool)) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := f.seen
	f.seen, f.fail = nil, fail
	return seen
}

func (f *network) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		signature := r.Method + " " + r.URL.Path + " " + r.URL.Query().Get("name") + r.URL.Query().Get("prefix")
		f.mu.Lock()
		f.seen = append(f.seen, signature)
		n, fail := len(f.seen), f.fail
		f.mu.Unlock()
		if fail == nil {
			next.ServeHTTP(w, r)
			return
		}
		switch before, after := fail(n, signature); {
		case before && n%2 == 0:
			w.WriteHeader(http.StatusServiceUnavailable)
		case before:
			panic(http.ErrAbortHandler)
		case after:
			next.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// The network fails at each request in turn: once, and the build is complete;
// that request for ever, or all from then on, and the build is complete, or
// there is an error, no finished.json, and nothing said that is not so. Where a
// request was done, and only its answer is lost, it may be there.
func TestANetworkThatFails(t *testing.T) {
	dir := aRun{id: "20261121-1", start: start, cases: []aCase{passes("net-a"), fails("net-b")}}.write(t)
	once := &network{}
	p := emulator(t, once.around)
	plan := planned(t, p.Bucket, presubmit, dir)
	deliver := func(p *place) error {
		publisher := testgrid.Publisher{Bucket: p.Bucket, Parallel: 1}
		_, err := publisher.Publish(t.Context(), plan)
		return err
	}
	if err := deliver(p); err != nil {
		t.Fatal(err)
	}
	requests, want := once.now(nil), p.keys(t)
	if len(requests) < len(plan.Objects) || len(want) != len(plan.Objects) {
		t.Fatalf("%d requests and %d objects for %d in the plan", len(requests), len(want), len(plan.Objects))
	}
	for n, request := range requests {
		for how, fails := range map[string]func(i int, signature string) bool{
			"once":         func(i int, _ string) bool { return i == n+1 },
			"for ever":     func(i int, signature string) bool { return i > n && signature == request },
			"and all that": func(i int, _ string) bool { return i > n },
		} {
			for _, done := range []bool{false, true} {
				what := fmt.Sprintf("request %d (%s) fails %s, done %v", n+1, request, how, done)
				f := &network{fail: func(i int, signature string) (bool, bool) {
					fail := fails(i, signature)
					return fail && !done, fail && done
				}}
				p := emulator(t, f.around)
				err := deliver(p)
				f.now(nil)
				got := p.keys(t)
				switch {
				case err != nil && how == "once":
					t.Errorf("%s: %v", what, err)
				case err == nil && !slices.Equal(got, want):
					t.Errorf("%s: no error, and %q, want %q", what, got, want)
				case err != nil:
					checkSaid(t, what, err, got)
				}
				if err == nil || has(got, "finished.json") {
					continue // complete, if perhaps without anybody knowing
				}
				// When the network is back, the same command completes the build.
				if err := deliver(p); err != nil {
					t.Errorf("after %s: %v", what, err)
				}
				if got := p.keys(t); !slices.Equal(got, want) {
					t.Errorf("after %s: %q, want %q", what, got, want)
				}
			}
		}
	}
}

// checkSaid holds what an error says of a build against what is in the bucket.
func checkSaid(t *testing.T, what string, err error, keys []string) {
	t.Helper()
	var incomplete *testgrid.IncompleteError
	if !errors.As(err, &incomplete) {
		if len(keys) > 0 {
			t.Errorf("%s: %v; and there are %q", what, err, keys)
		}
		return
	}
	for name, said := range map[string]testgrid.Presence{"started.json": incomplete.Started, "finished.json": incomplete.Finished} {
		if said != testgrid.Unknown && has(keys, name) != (said == testgrid.Present) {
			t.Errorf("%s: %v; and there are %q", what, err, keys)
		}
	}
	for _, key := range keys {
		if strings.HasSuffix(key, "/finished.json") && !strings.Contains(err.Error(), "finished.json is there is not known") {
			t.Errorf("%s: %v; and there is a finished.json", what, err)
		}
	}
}

// Only the answers to finished.json are lost, each time: it is there.
func TestAFinishedWhoseAnswersAreLost(t *testing.T) {
	f := &network{fail: func(_ int, signature string) (bool, bool) {
		return false, strings.HasPrefix(signature, "POST") && strings.Contains(signature, "finished.json")
	}}
	p := emulator(t, f.around)
	dir := aRun{id: "20261121-1", start: start, cases: []aCase{passes("net-a")}}.write(t)
	plan := planned(t, p.Bucket, periodic, dir)
	if sent := publish(t, p.Bucket, plan); sent.Sent != len(plan.Objects) {
		t.Errorf("%+v of %d objects", sent, len(plan.Objects))
	}
}

// An interrupt while finished.json is on its way does not make a complete build
// an incomplete one.
func TestAnInterruptAfterAllHasArrived(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := emulator(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Query().Get("name"), "finished.json") {
				next.ServeHTTP(httptest.NewRecorder(), r)
				cancel()
				panic(http.ErrAbortHandler)
			}
			next.ServeHTTP(w, r)
		})
	})
	dir := aRun{id: "20261121-1", start: start, cases: []aCase{passes("net-a")}}.write(t)
	publisher := testgrid.Publisher{Bucket: p.Bucket}
	if _, err := publisher.Publish(ctx, planned(t, p.Bucket, periodic, dir)); err != nil {
		t.Error(err)
	}
}

// A start of which nothing arrived does not show, and is not said to.
func TestWhatAnIncompleteBuildLooksLike(t *testing.T) {
	dir := aRun{id: "20261121-1", start: start, cases: []aCase{passes("net-a")}}.write(t)
	for broken, c := range map[string]struct {
		job  testgrid.Job
		says string
	}{
		"latest-build.txt": {periodic, "there is no finished.json, so the build shows as running"},
		".txt":             {presubmit, "there is no alias, so TestGrid does not show the build"},
		"run.json":         {presubmit, "there is no finished.json, so the build shows as running"},
		"finished.json":    {periodic, "there is no finished.json, so the build shows as running"},
	} {
		f := &network{fail: func(_ int, signature string) (bool, bool) {
			return strings.HasPrefix(signature, "POST") && strings.Contains(signature, broken), false
		}}
		p := emulator(t, f.around)
		publisher := testgrid.Publisher{Bucket: p.Bucket, Parallel: 1}
		if _, err := publisher.Publish(t.Context(), planned(t, p.Bucket, c.job, dir)); err == nil || !strings.HasSuffix(err.Error(), c.says) {
			t.Errorf("without %s: %v; want %q", broken, err, c.says)
		}
	}
	f := &network{fail: func(_ int, signature string) (bool, bool) { return strings.Contains(signature, "started.json"), false }}
	p := emulator(t, f.around)
	publisher := testgrid.Publisher{Bucket: p.Bucket}
	if _, err := publisher.Publish(t.Context(), planned(t, p.Bucket, periodic, dir)); err == nil || strings.Contains(err.Error(), "shows") {
		t.Errorf("without started.json: %v", err)
	}
}

func TestAPublicationGoesOnWhereItWas(t *testing.T) {
	run := aRun{id: "20261121-1", start: start, cases: []aCase{passes("net-a"), fails("net-b")}}
	dir := run.write(t)
	f := &network{fail: func(_ int, signature string) (bool, bool) { return strings.Contains(signature, "run.json"), false }}
	p := emulator(t, f.around)
	plan := planned(t, p.Bucket, periodic, dir)
	publisher := testgrid.Publisher{Bucket: p.Bucket, Parallel: 1}
	_, err := publisher.Publish(t.Context(), plan)
	var incomplete *testgrid.IncompleteError
	if !errors.As(err, &incomplete) || !slices.Contains(incomplete.Missing, plan.Dir+"artifacts/shard-1/run.json") || !slices.Contains(incomplete.Missing, plan.Dir+"finished.json") {
		t.Fatalf("got %v, which misses %q", err, incomplete)
	}
	arrived := len(p.keys(t))
	f.now(nil)
	sent, err := publisher.Publish(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	if len(incomplete.Missing) != len(plan.Objects)-arrived || sent.Kept != arrived || sent.Sent != len(incomplete.Missing) {
		t.Errorf("%d objects of %d had arrived, %d were said to be missing; then %+v", arrived, len(plan.Objects), len(incomplete.Missing), sent)
	}
	uploads := 0
	for _, request := range f.now(nil) {
		if strings.Contains(request, "/upload/") {
			uploads++
		}
	}
	if uploads != sent.Sent {
		t.Errorf("%d uploads for %d objects", uploads, sent.Sent)
	}
	// What changed in between is sent again.
	if err := p.Delete(t.Context(), plan.Dir+"finished.json"); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "logs", "batch-01.log"), "other")
	if sent, err := publisher.Publish(t.Context(), planned(t, p.Bucket, periodic, dir)); err != nil || sent.Sent != 2 {
		t.Errorf("one log changed: %+v, %v", sent, err)
	}
	if got := content(t, p.Bucket, plan.Dir+"artifacts/shard-1/logs/batch-01.log"); got != "other" {
		t.Errorf("the log holds %q", got)
	}
}

func TestAnInterruptedPublicationSaysWhatIsMissing(t *testing.T) {
	dir := aRun{id: "20261121-1", start: start, cases: []aCase{passes("net-a")}}.write(t)
	ctx, cancel := context.WithCancel(t.Context())
	f := &network{fail: func(_ int, signature string) (bool, bool) {
		if strings.Contains(signature, "run.json") {
			cancel()
		}
		return false, false
	}}
	p := emulator(t, f.around)
	plan := planned(t, p.Bucket, periodic, dir)
	publisher := testgrid.Publisher{Bucket: p.Bucket, Parallel: 1}
	_, err := publisher.Publish(ctx, plan)
	var incomplete *testgrid.IncompleteError
	if !errors.As(err, &incomplete) || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "finished.json") {
		t.Fatalf("got %v", err)
	}
	if has(p.keys(t), "finished.json") {
		t.Error("there is a finished.json")
	}
}

func TestBuildsThatAreThereAlready(t *testing.T) {
	p := emulator(t, nil)
	run := aRun{id: "20261121-1", start: start, cases: []aCase{fails("net-a"), passes("net-b")}}
	dir := run.write(t)
	publisher := testgrid.Publisher{Bucket: p.Bucket}
	first := planned(t, p.Bucket, periodic, dir)
	publish(t, p.Bucket, first)
	before := p.keys(t)

	again := planned(t, p.Bucket, periodic, dir)
	if sent, err := publisher.Publish(t.Context(), again); !errors.Is(err, testgrid.ErrHeld) || sent.Sent > 0 {
		t.Errorf("the same build again: %+v, %v", sent, err)
	}
	older := run
	older.id, older.start = "20261120-1", start.Add(-time.Hour)
	if sent, err := publisher.Publish(t.Context(), planned(t, p.Bucket, periodic, older.write(t))); !errors.Is(err, testgrid.ErrBackwards) || sent.Sent > 0 {
		t.Errorf("an older build: %+v, %v", sent, err)
	}
	if got := p.keys(t); !slices.Equal(got, before) {
		t.Errorf("there are %q now, and were %q", got, before)
	}

	// As another attempt it is a build of its own.
	second, err := planOf(t, p.Bucket, periodic, buildID(t, now, run.id), dir)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, p.Bucket, second)

	// It can take the place of the first one, with nothing left of that.
	writeFile(t, filepath.Join(dir, "logs", "batch-01.log"), "other")
	if err := os.Rename(filepath.Join(dir, "logs", "batch-01.log"), filepath.Join(dir, "logs", "batch-02.log")); err != nil {
		t.Fatal(err)
	}
	var notes []string
	publisher.Replace, publisher.Note = true, func(s string) { notes = append(notes, s) }
	if _, err := publisher.Publish(t.Context(), planned(t, p.Bucket, periodic, dir)); err != nil {
		t.Fatal(err)
	}
	keys := p.keys(t)
	if slices.Contains(keys, first.Dir+"artifacts/shard-1/logs/batch-01.log") || !slices.Contains(keys, first.Dir+"artifacts/shard-1/logs/batch-02.log") || !slices.Contains(keys, first.Dir+"finished.json") {
		t.Errorf("after replacing there are %q", keys)
	}
	if !slices.ContainsFunc(notes, func(s string) bool { return strings.Contains(s, "20 minutes") }) {
		t.Errorf("notes %q do not say that TestGrid may not look", notes)
	}
	if got := content(t, p.Bucket, "logs/windows-readiness/latest-build.txt"); got != second.Build {
		t.Errorf("latest-build.txt is %s, want the newest one: %s", got, second.Build)
	}
}

func buildID(t *testing.T, at time.Time, run string) string {
	t.Helper()
	id, err := testgrid.BuildID(at, run)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// While a build is replaced it never looks finished.
func TestReplacingRemovesFinishedFirst(t *testing.T) {
	f := &network{}
	p := emulator(t, f.around)
	dir := aRun{id: "20261121-1", start: start, cases: []aCase{passes("net-a")}}.write(t)
	publish(t, p.Bucket, planned(t, p.Bucket, periodic, dir))
	writeFile(t, filepath.Join(dir, "logs", "batch-01.log"), "other")
	f.now(func(_ int, signature string) (bool, bool) { return strings.Contains(signature, "batch-01.log"), false })
	publisher := testgrid.Publisher{Bucket: p.Bucket, Replace: true}
	if _, err := publisher.Publish(t.Context(), planned(t, p.Bucket, periodic, dir)); err == nil {
		t.Error("no error")
	}
	f.now(nil)
	if has(p.keys(t), "finished.json") {
		t.Error("there is a finished.json beside a log that is not of its run")
	}
}

// Objects of another run in the folder would show in its grid.
func TestStrangersInTheFolder(t *testing.T) {
	p := emulator(t, nil)
	dir := aRun{id: "20261121-1", start: start, cases: []aCase{passes("net-a")}}.write(t)
	plan := planned(t, p.Bucket, periodic, dir)
	put := func(key string) {
		data := "x"
		sum, err := bucket.SumOf(strings.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Put(t.Context(), &bucket.Object{Key: key, ContentType: "text/plain", Sum: sum, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(data)), nil }}); err != nil {
			t.Fatal(err)
		}
	}
	put(plan.Dir + "started.json")
	put(plan.Dir + "prowjob.json")
	put(plan.Dir + "artifacts/shard-9/junit_x_01.xml")
	publisher := testgrid.Publisher{Bucket: p.Bucket}
	if _, err := publisher.Publish(t.Context(), plan); !errors.Is(err, testgrid.ErrHeld) || !strings.Contains(err.Error(), "junit_x_01.xml") {
		t.Errorf("got %v", err)
	}
	publisher.Replace = true
	if _, err := publisher.Publish(t.Context(), plan); err != nil {
		t.Error(err)
	}
	if keys := p.keys(t); has(keys, "junit_x_01.xml") || !has(keys, "prowjob.json") {
		t.Errorf("there are %q", keys)
	}
}

func TestPublishElsewhere(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	backend := s3mem.New()
	for _, name := range []string{"readiness", "other"} {
		if err := backend.CreateBucket(name); err != nil {
			t.Fatal(err)
		}
	}
	s3 := httptest.NewServer(gofakes3.New(backend).Server())
	defer s3.Close()
	folder, err := bucket.FileURL(filepath.Join(t.TempDir(), "bucket"))
	if err != nil {
		t.Fatal(err)
	}
	for url, o := range map[string]bucket.Options{
		"s3://readiness":  {Endpoint: s3.URL, Retry: hasty},
		"s3://other/some": {Endpoint: s3.URL, Retry: hasty},
		folder:            {},
	} {
		t.Run(url, func(t *testing.T) {
			b, err := bucket.Open(t.Context(), url, o)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			dir := aRun{id: "20261121-1", start: start, cases: []aCase{passes("net-a")}}.write(t)
			plan := planned(t, b, presubmit, dir)
			publish(t, b, plan)
			if keys := keysOf(t, b); len(keys) != len(plan.Objects) {
				t.Errorf("%d objects, want %d: %q", len(keys), len(plan.Objects), keys)
			}
			alias, err := b.Stat(t.Context(), "pr-logs/directory/pull-windows-readiness/"+plan.Build+".txt")
			if err != nil || alias.Metadata["x-goog-meta-link"] != plan.URL || !strings.HasPrefix(plan.URL, url) {
				t.Errorf("alias %+v, %v; want a link to %s", alias, err, plan.URL)
			}
			if got := content(t, b, plan.Dir+"artifacts/shard-1/logs/batch-01.log"); !strings.HasPrefix(got, "what e2e.test said") {
				t.Errorf("a log holds %.20q: nothing here decompresses it", got)
			}
			publisher := testgrid.Publisher{Bucket: b}
			if _, err := publisher.Publish(t.Context(), plan); !errors.Is(err, testgrid.ErrHeld) {
				t.Errorf("again: %v", err)
			}
			// Without its end it is one that goes on, and sends nothing twice.
			if b.Scheme == bucket.File { // as a publication leaves it that was killed
				writeFile(t, filepath.Join(b.Dir, filepath.FromSlash(plan.Dir), "build-log.txt.18a2b3.tmp"), "half")
			}
			if err := b.Delete(t.Context(), plan.Dir+"finished.json"); err != nil {
				t.Fatal(err)
			}
			if sent, err := publisher.Publish(t.Context(), plan); err != nil || sent.Sent != 1 {
				t.Errorf("going on: %+v, %v", sent, err)
			}
			if keys := keysOf(t, b); len(keys) != len(plan.Objects) {
				t.Errorf("%d objects, want %d: %q", len(keys), len(plan.Objects), keys)
			}
		})
	}
}

func TestFindingTheBuildThatWasStarted(t *testing.T) {
	for _, job := range []testgrid.Job{periodic, presubmit} {
		p := emulator(t, nil)
		publisher := testgrid.Publisher{Bucket: p.Bucket}
		begin := func(job testgrid.Job, at time.Time) string {
			id := buildID(t, at, fmt.Sprint(at))
			plan, err := testgrid.PlanStart(&testgrid.Options{Job: job, Build: id, URL: p.URL}, testgrid.NewStarted(&job, at, ""))
			if err != nil {
				t.Fatal(err)
			}
			publish(t, p.Bucket, plan)
			return id
		}
		results := resultsIn(t, aRun{id: "x", start: start, cases: []aCase{passes("net-a")}}.write(t))
		find := func() (string, error) { return publisher.Find(t.Context(), &job, results, now) }
		begin(job, start.Add(-48*time.Hour)) // forgotten
		if id, err := find(); !errors.Is(err, testgrid.ErrNotStarted) {
			t.Errorf("found %q, %v", id, err)
		}
		want := begin(job, start.Add(-time.Minute))
		other := presubmit
		other.Pull++
		begin(other, start.Add(-time.Second)) // the same job on another pull request
		if id, err := find(); err != nil || id != want {
			t.Errorf("found %q, %v, want %s", id, err, want)
		}
		second := begin(job, start.Add(time.Minute))
		if id, err := find(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), second) {
			t.Errorf("found %q, %v; want both to be named", id, err)
		}
	}
}

// Half a build says whose it is from its first object on, and no other run
// goes on with it.
func TestABuildOfAnotherRun(t *testing.T) {
	theirs := aRun{id: "theirs", start: start, cases: []aCase{passes("net-a")}}
	ours := aRun{id: "ours", start: start.Add(time.Hour), cases: []aCase{passes("net-a")}}
	their, our := theirs.write(t), ours.write(t)
	for _, begun := range []bool{false, true} {
		for _, broken := range []string{"latest-build.txt", "batch-01.log", "finished.json", "none"} {
			f := &network{fail: func(_ int, signature string) (bool, bool) { return strings.Contains(signature, broken), false }}
			p := emulator(t, f.around)
			first := planned(t, p.Bucket, periodic, their)
			if begun {
				// Whoever started it did not know the run.
				if broken == "latest-build.txt" {
					continue
				}
				only, err := testgrid.PlanStart(&testgrid.Options{Job: periodic, Build: first.Build, URL: p.URL}, testgrid.NewStarted(&periodic, start, ""))
				if err != nil {
					t.Fatal(err)
				}
				publish(t, p.Bucket, only)
			}
			publisher := testgrid.Publisher{Bucket: p.Bucket}
			if _, err := publisher.Publish(t.Context(), first); (err == nil) != (broken == "none") {
				t.Fatalf("without %s: %v", broken, err)
			}
			f.now(nil)
			before := p.keys(t)
			second, err := planOf(t, p.Bucket, periodic, first.Build, our)
			if err != nil {
				t.Fatal(err)
			}
			_, err = publisher.Publish(t.Context(), second)
			if !errors.Is(err, testgrid.ErrTaken) || !strings.Contains(err.Error(), "theirs") || !strings.Contains(err.Error(), "ours") {
				t.Errorf("begun %v, without %s: %v", begun, broken, err)
			}
			if got := p.keys(t); !slices.Equal(got, before) {
				t.Errorf("begun %v, without %s: there are %q, and were %q", begun, broken, got, before)
			}
			publisher.Replace = true
			if _, err := publisher.Publish(t.Context(), second); err != nil {
				t.Errorf("begun %v, without %s, replaced: %v", begun, broken, err)
			}
			if got := content(t, p.Bucket, first.Dir+"artifacts/shard-1/run.json"); !strings.Contains(got, `"ours"`) {
				t.Errorf("begun %v, without %s: replaced by %s", begun, broken, got)
			}
		}
	}
}

// A run finds the build that it has begun, among those of others.
func TestFindingTheRunsOwnBuild(t *testing.T) {
	f := &network{}
	p := emulator(t, f.around)
	publisher := testgrid.Publisher{Bucket: p.Bucket, Parallel: 1}
	begin := func(at time.Time) string {
		plan, err := testgrid.PlanStart(&testgrid.Options{Job: periodic, Build: buildID(t, at, fmt.Sprint(at)), URL: p.URL}, testgrid.NewStarted(&periodic, at, ""))
		if err != nil {
			t.Fatal(err)
		}
		publish(t, p.Bucket, plan)
		return plan.Build
	}
	finish := func(id, dir string) error {
		plan, err := planOf(t, p.Bucket, periodic, id, dir)
		if err != nil {
			t.Fatal(err)
		}
		_, err = publisher.Publish(t.Context(), plan)
		return err
	}
	first := begin(start.Add(-2 * time.Minute))
	one := aRun{id: "one", start: start, cases: []aCase{passes("net-a")}}.write(t)
	f.now(func(_ int, signature string) (bool, bool) { return strings.Contains(signature, "batch-01.log"), false })
	if err := finish(first, one); err == nil {
		t.Fatal("no error")
	}
	f.now(nil)
	second := begin(start.Add(-time.Minute))
	two := aRun{id: "two", start: start, cases: []aCase{passes("net-a")}}.write(t)
	for dir, want := range map[string]string{one: first, two: second} {
		if id, err := publisher.Find(t.Context(), &periodic, resultsIn(t, dir), now); err != nil || id != want {
			t.Errorf("found %s, %v; want %s", id, err, want)
		}
	}
}

// Results that are published are found, whatever the build's id, so that no run
// becomes two columns; a further attempt at the run is a build of its own.
func TestFindingResultsThatArePublished(t *testing.T) {
	p := emulator(t, nil)
	publisher := testgrid.Publisher{Bucket: p.Bucket}
	begin := func(at time.Time) string {
		plan, err := testgrid.PlanStart(&testgrid.Options{Job: periodic, Build: buildID(t, at, fmt.Sprint(at)), URL: p.URL}, testgrid.NewStarted(&periodic, at, ""))
		if err != nil {
			t.Fatal(err)
		}
		publish(t, p.Bucket, plan)
		return plan.Build
	}
	later := start.Add(5 * time.Hour)
	run := aRun{id: "one", start: start, cases: []aCase{passes("net-a")}}
	dir := run.write(t)
	one := resultsIn(t, dir)
	if id, err := publisher.Elsewhere(t.Context(), &periodic, one, later); id != "" || err != nil {
		t.Errorf("in an empty bucket: %q, %v", id, err)
	}
	first := begin(start.Add(-2 * time.Minute))
	plan, err := planOf(t, p.Bucket, periodic, first, dir)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, p.Bucket, plan)

	second := begin(start.Add(4*time.Hour - time.Minute))
	looks := map[string]func(*testgrid.Results) (string, error){
		"finish": func(r *testgrid.Results) (string, error) { return publisher.Find(t.Context(), &periodic, r, later) },
		"publish": func(r *testgrid.Results) (string, error) {
			return publisher.Elsewhere(t.Context(), &periodic, r, later)
		},
	}
	for what, look := range looks {
		publisher.Replace = false
		if id, err := look(one); !errors.Is(err, testgrid.ErrHeld) || !strings.Contains(err.Error(), first) {
			t.Errorf("%s: %q, %v; want a refusal that names %s", what, id, err, first)
		}
		publisher.Replace = true
		if id, err := look(one); id != first || err != nil {
			t.Errorf("%s in its place: %q, %v; want %s", what, id, err, first)
		}
	}
	publisher.Replace = false
	run.attempt, run.start = 2, start.Add(4*time.Hour)
	another := aRun{id: "two", start: run.start, cases: run.cases}
	for _, r := range []aRun{run, another} {
		results := resultsIn(t, r.write(t))
		if id, err := looks["finish"](results); id != second || err != nil {
			t.Errorf("finish attempt %d of %s: %q, %v; want %s", r.attempt, r.id, id, err, second)
		}
		if id, err := looks["publish"](results); id != "" || err != nil {
			t.Errorf("publish attempt %d of %s: %q, %v; want its own", r.attempt, r.id, id, err)
		}
	}
}

// An attempt that was published in part is found, whatever of it arrived.
func TestFindingAnAttempt(t *testing.T) {
	run := aRun{id: "x", start: start, cases: []aCase{passes("net-a")}}
	dir := run.write(t)
	results := resultsIn(t, dir)
	for _, job := range []testgrid.Job{periodic, presubmit} {
		for _, broken := range []string{"/" + job.Name + "/", "latest-build.txt", ".log", "finished.json", "none"} {
			f := &network{}
			p := emulator(t, f.around)
			publisher := testgrid.Publisher{Bucket: p.Bucket, Parallel: 1}
			build := buildID(t, start.Add(time.Hour), run.id)
			o := &testgrid.Options{Job: job, Build: build, URL: p.URL}
			began := results.Started(&job, "")
			began.Metadata["attempt"] = "2"
			plan, err := testgrid.NewUploadPlan(o, results, began, results.Finished(nil, now))
			if err != nil {
				t.Fatal(err)
			}
			uploads := 0
			f.now(func(_ int, signature string) (bool, bool) {
				if strings.HasPrefix(signature, "POST") {
					uploads++
				}
				// The first upload is started.json, whatever fails.
				return uploads > 1 && strings.Contains(signature, broken), false
			})
			if _, err := publisher.Publish(t.Context(), plan); (err == nil) != (broken == "none") {
				t.Fatalf("%s without %s: %v", job.Type, broken, err)
			}
			f.now(nil)
			id, finished, err := publisher.Attempted(t.Context(), &job, results, 2, now)
			if err != nil || id != build || finished != (broken == "none") {
				t.Errorf("%s without %s: found %q, finished %v, %v; want %s", job.Type, broken, id, finished, err, build)
			}
			other := resultsIn(t, aRun{id: "y", start: start, cases: []aCase{passes("net-a")}}.write(t))
			for what, find := range map[string]func() (string, bool, error){
				"another attempt": func() (string, bool, error) { return publisher.Attempted(t.Context(), &job, results, 3, now) },
				"another run":     func() (string, bool, error) { return publisher.Attempted(t.Context(), &job, other, 2, now) },
			} {
				if id, _, err := find(); err != nil || id != "" {
					t.Errorf("%s: found %q, %v", what, id, err)
				}
			}
		}
	}
}

func TestLinks(t *testing.T) {
	b := emulator(t, nil).Bucket
	for name, link := range map[string]string{"../x": "https://x", "x": "javascript:alert(1)", "y": "/etc/passwd", "z": "https://", "w": "https://user:secret@example.com/", "v": "https://example.com/x?sig=abcdef"} {
		r, err := testgrid.ReadResults([]string{aRun{id: "1", start: start, cases: []aCase{passes("net-a")}}.write(t)})
		if err != nil {
			t.Fatal(err)
		}
		o := &testgrid.Options{Job: periodic, Build: buildID(t, start, "1"), URL: b.URL, Links: map[string]string{name: link}}
		if _, err := testgrid.NewUploadPlan(o, r, r.Started(&periodic, ""), r.Finished(nil, now)); err == nil {
			t.Errorf("%s=%s is a link", name, link)
		}
	}
}

// Nothing that is planned leaves the build's folder.
func TestKeysStayInTheBuild(t *testing.T) {
	b := emulator(t, nil).Bucket
	plan := planned(t, b, periodic, aRun{id: "1", start: start, cases: everyOutcome()}.write(t))
	for _, o := range plan.Objects {
		if path.Clean(o.Key) != o.Key || o.Step != testgrid.StepLatest && !strings.HasPrefix(o.Key, plan.Dir) {
			t.Errorf("%s is not below %s", o.Key, plan.Dir)
		}
	}
}

func TestALoneShardIsNoSuccess(t *testing.T) {
	shard := aRun{id: "1", start: start, shard: 1, shards: 2, cases: []aCase{passes("net-a")}}
	r, err := testgrid.ReadResults([]string{shard.write(t)})
	if err != nil {
		t.Fatal(err)
	}
	if f := r.Finished(nil, now); *f.Passed || f.Result != "FAILURE" || f.Metadata["verdict"] != "inconclusive (another standard)" {
		t.Errorf("passed %v, %s, %v", *f.Passed, f.Result, f.Metadata)
	}
}

func TestOnlyARunThatFollowedItFinishesABuild(t *testing.T) {
	p := emulator(t, nil)
	publisher := testgrid.Publisher{Bucket: p.Bucket}
	id := buildID(t, start, "x")
	plan, err := testgrid.PlanStart(&testgrid.Options{Job: periodic, Build: id, URL: p.URL}, testgrid.NewStarted(&periodic, start, ""))
	if err != nil {
		t.Fatal(err)
	}
	publish(t, p.Bucket, plan)
	for began, want := range map[time.Time]error{
		start.Add(time.Hour):         nil,
		start.Add(-30 * time.Second): nil, // clocks differ
		start.Add(-time.Hour):        testgrid.ErrOlder,
	} {
		if err := publisher.Began(t.Context(), &periodic, id, began); !errors.Is(err, want) {
			t.Errorf("a run of %v for a build of %v: %v", began, start, err)
		}
	}
	if err := publisher.Began(t.Context(), &periodic, buildID(t, now, "y"), now); !errors.Is(err, testgrid.ErrNotStarted) {
		t.Errorf("a build that nobody started: %v", err)
	}
}
