package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fsouza/fake-gcs-server/fakestorage"

	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
	"github.com/windows-op-readiness/windows-op-readiness/testgrid"
)

// store is a GCS emulator with the bucket "readiness".
type store struct {
	*httptest.Server
	hook func(*http.Request)
}

func newStore(t *testing.T) *store {
	t.Helper()
	emulator, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true})
	if err != nil {
		t.Fatal(err)
	}
	emulator.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: "readiness"})
	s := &store{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.hook != nil {
			s.hook(r)
		}
		emulator.HTTPHandler().ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *store) keys(t *testing.T) []string {
	t.Helper()
	b, err := bucket.Open(t.Context(), "gs://readiness", bucket.Options{Endpoint: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var keys []string
	if err := b.List(t.Context(), bucket.ListOptions{}, func(a *bucket.Attrs) error {
		keys = append(keys, a.Key)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return keys
}

// publishing runs publish with an environment of its own.
func publishing(environ []string, signals <-chan os.Signal, args ...string) said {
	var out, errs bytes.Buffer
	code := Main(context.Background(), append([]string{"publish"}, args...), Surroundings{
		Environ: environ, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Signals: signals,
	})
	return said{code, out.String(), errs.String()}
}

func TestPublishCommand(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	s.want("run", s.main(s.args()...), verdict.ExitReady)
	gcs := newStore(t)
	emulator := []string{"STORAGE_EMULATOR_HOST=" + strings.TrimPrefix(gcs.URL, "http://")}
	flags := []string{"--bucket", "gs://readiness", "--job", "windows-readiness"}
	with := func(more ...string) []string { return append(append([]string{}, more...), flags...) }

	dry := publishing(emulator, nil, with(s.dir, "--dry-run")...)
	s.want("dry run", dry, verdict.ExitReady, "finished.json", "latest-build.txt", "gzip")
	if keys := gcs.keys(t); len(keys) > 0 {
		t.Fatalf("a dry run published %q", keys)
	}
	var plan struct {
		Build, URL string
		Objects    []struct{ Key string }
	}
	if err := json.Unmarshal([]byte(publishing(emulator, nil, with(s.dir, "--dry-run", "-o", "json")...).stdout), &plan); err != nil {
		t.Fatal(err)
	}
	got := publishing(emulator, nil, with(s.dir)...)
	s.want("publish", got, verdict.ExitReady, "ready")
	if got.stdout != plan.URL+"\n" || plan.URL != "gs://readiness/logs/windows-readiness/"+plan.Build {
		t.Errorf("printed %q, want %s", got.stdout, plan.URL)
	}
	if keys := gcs.keys(t); len(keys) != len(plan.Objects) {
		t.Errorf("published %q, planned %v", keys, plan.Objects)
	}
	s.want("the same again", publishing(emulator, nil, with(s.dir)...), verdict.ExitUsage, "--replace", "--attempt")
	s.want("attempt 1", publishing(emulator, nil, with(s.dir, "--attempt", "1")...), verdict.ExitUsage, "say 2 or more")
	second := publishing(emulator, nil, with(s.dir, "--attempt", "2")...)
	s.want("attempt 2", second, verdict.ExitReady)
	if second.stdout <= got.stdout {
		t.Errorf("attempt 2 is %s, which is not after %s", second.stdout, got.stdout)
	}
	s.want("in its place", publishing(emulator, nil, with(s.dir, "--replace")...), verdict.ExitReady, "20 minutes")

	flags[3] = "other-job"
	begun := publishing(emulator, nil, with("start")...)
	s.want("start", begun, verdict.ExitReady)
	id := strings.TrimSpace(begun.stdout)
	if len(id) != 19 {
		t.Errorf("start printed %q", begun.stdout)
	}
	s.want("finish, found", publishing(emulator, nil, with("finish", s.dir)...), verdict.ExitReady, "/"+id)
	s.want("finish again", publishing(emulator, nil, with("finish", s.dir)...), verdict.ExitUsage, "of this very run", "/"+id, "--replace")
	s.want("finish again, as is said", publishing(emulator, nil, with("finish", s.dir, "--replace")...), verdict.ExitReady, "/"+id)
	s.want("publish what is finished", publishing(emulator, nil, with(s.dir)...), verdict.ExitUsage, "of this very run", "/"+id, "--replace", "--attempt N")
	s.want("publish in its place", publishing(emulator, nil, with(s.dir, "--replace")...), verdict.ExitReady, "/"+id)
	s.want("finish by id", publishing(emulator, nil, with("finish", s.dir, "--build-id", id)...), verdict.ExitUsage, "--replace")
	s.want("JSON", publishing(emulator, nil, with("start", "-o", "json")...), verdict.ExitReady, `"build": "`)
}

// The build of a run that goes on would be finished before the run is.
func TestPublishOfARunThatGoesOn(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	s.want("run", s.main(s.args()...), verdict.ExitReady)
	gcs := newStore(t)
	emulator := []string{"STORAGE_EMULATOR_HOST=" + gcs.URL}
	args := []string{s.dir, "--bucket", "gs://readiness", "--job", "x"}
	writer, err := result.Reopen(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	s.want("it goes on", publishing(emulator, nil, args...), verdict.ExitUsage, "still writes there", "testgrid preview")
	if keys := gcs.keys(t); len(keys) > 0 {
		t.Errorf("there are %q", keys)
	}
	s.want("dry run", publishing(emulator, nil, append(args, "--dry-run")...), verdict.ExitReady)
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	s.want("it has ended", publishing(emulator, nil, args...), verdict.ExitReady)
}

// A build whose id is ahead of the clock keeps all of now out: whoever makes
// one is told, and whoever meets one is told what helps.
func TestPublishAheadOfTheClock(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	s.want("run", s.main(s.args()...), verdict.ExitReady)
	gcs := newStore(t)
	emulator := []string{"STORAGE_EMULATOR_HOST=" + gcs.URL}
	to := func(job string, args ...string) said {
		return publishing(emulator, nil, append(args, "--bucket", "gs://readiness", "--job", job)...)
	}
	s.want("of 2064", to("far", "start", "--build-id", "2995312502753579301"), verdict.ExitReady, "build 2995312502753579301 is of 2064-11-30", "larger --build-id")
	s.want("behind 2064", to("far", s.dir, "--attempt", "2"), verdict.ExitUsage, "a --job of its own")
	soon, err := testgrid.BuildID(time.Now().Add(30*time.Minute), "x")
	if err != nil {
		t.Fatal(err)
	}
	s.want("soon", to("near", "start", "--build-id", soon), verdict.ExitReady)
	for name, got := range map[string]said{"start": to("near", "start"), "attempt 2": to("near", s.dir, "--attempt", "2")} {
		s.want(name, got, verdict.ExitUsage, "try again then")
		if strings.Contains(got.stderr, "--attempt N") {
			t.Errorf("%s: what is advised leads to the same refusal: %s", name, got.stderr)
		}
	}
}

func TestPublishRefusesWrongFlags(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	s.want("run", s.main(s.args()...), verdict.ExitReady)
	for text, args := range map[string][]string{
		"--bucket: it is missing": {"--job", "x"},
		"--job is missing":        {"--bucket", "gs://readiness"},
		"not the URL of a bucket": {"--job", "x", "--bucket", "readiness"},
		"--type \"daily\"":        {"--job", "x", "--bucket", "gs://readiness", "--type", "daily"},
		"--pull 0":                {"--job", "x", "--bucket", "gs://readiness", "--type", "presubmit", "--org", "a", "--repo", "b"},
		"--default-org":           {"--job", "x", "--bucket", "gs://readiness", "--type", "presubmit", "--org", "a", "--repo", "b", "--pull", "1", "--path-strategy", "legacy"},
		"--build-id":              {"--job", "x", "--bucket", "gs://readiness", "--build-id", "7"},
		"--parallel 1000":         {"--job", "x", "--bucket", "gs://readiness", "--parallel", "1000"},
		"use one of them":         {"--job", "x", "--bucket", "gs://readiness", "--attempt", "2", "--replace"},
		"--output \"csv\"":        {"--job", "x", "--bucket", "gs://readiness", "-o", "csv"},
		"link \"x y\"":            {"--job", "x", "--bucket", "gs://readiness", "--link", "x y=https://x", "--dry-run"},
		"holds no results folder": {"--job", "x", "--bucket", "gs://readiness", "--dry-run", t.TempDir()},
		"--endpoint":              {"--job", "x", "--bucket", "gs://readiness", "--endpoint", "ht tp://x"},
		"none.yaml":               {"--job", "x", "--config", "none.yaml"},
	} {
		s.want(text, publishing(nil, nil, append([]string{s.dir}, args...)...), verdict.ExitUsage, text)
	}
	s.want("no folder", publishing(nil, nil, "--job", "x", "--bucket", "gs://readiness"), verdict.ExitUsage, "which results?", "op-readiness publish results")
	s.want("finish no folder", publishing(nil, nil, "finish", "--job", "x", "--bucket", "gs://readiness"), verdict.ExitUsage, "op-readiness publish finish results")
}

// The sidecar of a Prow job publishes what the job leaves; to a folder, and to
// look, publish works there too.
func TestPublishUnderProw(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	s.want("run", s.main(s.args()...), verdict.ExitReady)
	gcs := newStore(t)
	decorated := []string{`JOB_SPEC={"type":"periodic","job":"x","buildid":"1","decoration_config":{"timeout":"2h"}}`, "PROW_JOB_ID=1", "ARTIFACTS=/logs/artifacts", "STORAGE_EMULATOR_HOST=" + gcs.URL}
	plain := append([]string{`JOB_SPEC={"type":"periodic","job":"x","buildid":"1"}`}, decorated[1:]...)
	args := []string{s.dir, "--bucket", "gs://readiness", "--job", "x"}
	s.want("decorated", publishing(decorated, nil, args...), verdict.ExitUsage, "sidecar", "/logs/artifacts", "--report-dir")
	s.want("start", publishing(decorated, nil, append([]string{"start"}, args[1:]...)...), verdict.ExitUsage, "sidecar")
	s.want("malformed", publishing([]string{"JOB_SPEC={"}, nil, args...), verdict.ExitUsage, "JOB_SPEC")
	s.want("dry run", publishing(decorated, nil, append(args, "--dry-run")...), verdict.ExitReady)
	s.want("not decorated", publishing(plain, nil, args...), verdict.ExitReady)
	folder, err := bucket.FileURL(filepath.Join(t.TempDir(), "bucket"))
	if err != nil {
		t.Fatal(err)
	}
	s.want("to a folder", publishing(decorated, nil, s.dir, "--bucket", folder, "--job", "x"), verdict.ExitReady)
}

func TestPublishIsInterrupted(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	s.want("run", s.main(s.args()...), verdict.ExitReady)
	gcs := newStore(t)
	emulator := []string{"STORAGE_EMULATOR_HOST=" + gcs.URL}
	signals := make(chan os.Signal, 1)
	gcs.hook = func(r *http.Request) {
		if strings.Contains(r.URL.RawQuery, "run.json") {
			signals <- os.Interrupt
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		}
	}
	args := []string{s.dir, "--bucket", "gs://readiness", "--job", "x", "--parallel", "1"}
	got := publishing(emulator, signals, args...)
	s.want("interrupted", got, verdict.ExitInterrupted, "interrupted", "remain to be sent", "shows as running", "The same command goes on")
	gcs.hook = nil
	s.want("going on", publishing(emulator, nil, args...), verdict.ExitReady, "were there")
}

// builds are the ids of the job's builds.
func (s *store) builds(t *testing.T, job string) []string {
	t.Helper()
	var ids []string
	for _, key := range s.keys(t) {
		if rest, ok := strings.CutPrefix(key, "logs/"+job+"/"); ok {
			if id, _, ok := strings.Cut(rest, "/"); ok && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// An attempt that broke off goes on as the build that it has begun, and is
// published once.
func TestPublishGoesOnWithAnAttempt(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	s.want("run", s.main(s.args()...), verdict.ExitReady)
	gcs := newStore(t)
	emulator := []string{"STORAGE_EMULATOR_HOST=" + gcs.URL}
	args := []string{s.dir, "--bucket", "gs://readiness", "--job", "x"}
	s.want("attempt 1", publishing(emulator, nil, args...), verdict.ExitReady)
	ctx, kill := context.WithCancel(t.Context())
	gcs.hook = func(r *http.Request) {
		if r.Method == http.MethodPost && strings.Contains(r.URL.RawQuery, "results.jsonl") {
			_, _ = io.Copy(io.Discard, r.Body)
			kill() // it says nothing any more that anybody could use
			panic(http.ErrAbortHandler)
		}
	}
	attempt := slices.Concat(args, []string{"--attempt", "2"})
	var none bytes.Buffer
	if code := Main(ctx, append([]string{"publish"}, attempt...), Surroundings{Environ: emulator, Stdin: strings.NewReader(""), Stdout: &none, Stderr: &none}); code == verdict.ExitReady {
		t.Fatal("was not killed")
	}
	gcs.hook = nil
	begun := gcs.builds(t, "x")
	if len(begun) != 2 {
		t.Fatalf("builds %q", begun)
	}
	s.want("dry run", publishing(emulator, nil, append(attempt, "--dry-run")...), verdict.ExitReady, "logs/x/"+begun[1]+"/finished.json")
	s.want("going on", publishing(emulator, nil, attempt...), verdict.ExitReady, "which goes on", "/"+begun[1], "were there")
	s.want("once more", publishing(emulator, nil, attempt...), verdict.ExitUsage, "published already", "--attempt 3", "--build-id "+begun[1]+" --replace")
	if got := gcs.builds(t, "x"); !slices.Equal(got, begun) {
		t.Errorf("builds %q, want %q", got, begun)
	}
	s.want("in its place", publishing(emulator, nil, append(attempt, "--build-id", begun[1], "--replace")...), verdict.ExitReady, "/"+begun[1])
	s.want("attempt 3", publishing(emulator, nil, append(args, "--attempt", "3")...), verdict.ExitReady)
	if got := gcs.builds(t, "x"); len(got) != 3 {
		t.Errorf("builds %q, want three", got)
	}
}

// What 'merge' made of the shards of a run, and of a second attempt at one, is
// published like a run: once, and as the next attempt where that is asked for.
func TestPublishWhatWasMerged(t *testing.T) {
	s := newScene(t, e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Fail}}})
	first := runShards(s, "2", "1", "1", "2")
	s.fake.Rewrite(t, e2etest.Script{Version: "v1.36.3", Tests: sceneTests})
	second := runShards(s, "2", "2", "1", "2")
	merged := filepath.Join(t.TempDir(), "merged")
	s.want("merge", s.main("merge", first, second, "--report-dir", merged), verdict.ExitReady, "flaky")
	gcs := newStore(t)
	emulator := []string{"STORAGE_EMULATOR_HOST=" + gcs.URL}
	flags := []string{"--bucket", "gs://readiness", "--job", "x"}
	with := func(args ...string) []string { return append(args, flags...) }
	got := publishing(emulator, nil, with(merged)...)
	s.want("publish", got, verdict.ExitReady, "; ready")
	id := path.Base(strings.TrimSpace(got.stdout))
	keys := strings.Join(gcs.keys(t), "\n")
	for _, name := range []string{"junit_core-network_01.xml", "run.json", "logs/shard-1-attempt-1/batch-01.log", "logs/shard-2-attempt-2/batch-01.log"} {
		if want := "logs/x/" + id + "/artifacts/merged/" + name; !strings.Contains(keys, want) {
			t.Errorf("no %s in\n%s", want, keys)
		}
	}
	s.want("its shards", publishing(emulator, nil, with(first, second)...), verdict.ExitUsage, id, "of this very run")
	s.want("attempt 2", publishing(emulator, nil, with(merged, "--attempt", "2")...), verdict.ExitUsage, "attempt 2 of this run is published already", id, "--attempt 3")
	s.want("attempt 3", publishing(emulator, nil, with(merged, "--attempt", "3")...), verdict.ExitReady)
	if ids := gcs.builds(t, "x"); len(ids) != 2 || ids[0] != id {
		t.Errorf("builds %q", ids)
	}
}

// A workflow that runs for the second time says so to 'run' and to 'publish',
// and by then the job may have newer builds.
func TestPublishTheSecondAttemptAtAWorkflow(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	runShards(s, "1", "2", "1")
	gcs := newStore(t)
	emulator := []string{"STORAGE_EMULATOR_HOST=" + gcs.URL}
	flags := []string{"--bucket", "gs://readiness", "--job", "x"}
	s.want("another run", publishing(emulator, nil, append([]string{"start"}, flags...)...), verdict.ExitReady)
	args := append([]string{s.dir, "--attempt", "2"}, flags...)
	s.want("attempt 2", publishing(emulator, nil, args...), verdict.ExitReady, "; ready")
	s.want("once more", publishing(emulator, nil, args...), verdict.ExitUsage, "attempt 2 of this run is published already")
	runShards(s, "1", "3", "1")
	args[0] = s.dir
	s.want("an older attempt", publishing(emulator, nil, args...), verdict.ExitUsage, "the run itself is attempt 3; say 3 or more")
}

// What finish would do, a dry run of it shows.
func TestPublishFinishPlansTheBuildThatWasStarted(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	gcs := newStore(t)
	emulator := []string{"STORAGE_EMULATOR_HOST=" + gcs.URL}
	flags := []string{"--bucket", "gs://readiness", "--job", "x"}
	begun := publishing(emulator, nil, append([]string{"start"}, flags...)...)
	s.want("start", begun, verdict.ExitReady)
	s.want("run", s.main(s.args()...), verdict.ExitReady)
	finish := append([]string{"finish", s.dir, "--dry-run"}, flags...)
	s.want("dry run", publishing(emulator, nil, finish...), verdict.ExitReady, "logs/x/"+strings.TrimSpace(begun.stdout)+"/finished.json")
	s.want("another job", publishing(emulator, nil, append(finish, "--job", "y")...), verdict.ExitUsage, "no build of the job waits")
	dir := filepath.Join(t.TempDir(), "bucket")
	folder, err := bucket.FileURL(dir)
	if err != nil {
		t.Fatal(err)
	}
	s.want("no folder", publishing(nil, nil, append(finish, "--bucket", folder)...), verdict.ExitUsage, "no build of the job waits")
	s.want("an attempt", publishing(nil, nil, s.dir, "--bucket", folder, "--job", "x", "--attempt", "2", "--dry-run"), verdict.ExitReady, "finished.json")
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a dry run made the folder: %v", err)
	}
}

// A refusal says how to go on with flags that the command has.
func TestPublishAdvisesFlagsThatThereAre(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	s.want("run", s.main(s.args()...), verdict.ExitReady)
	gcs := newStore(t)
	emulator := []string{"STORAGE_EMULATOR_HOST=" + gcs.URL}
	flags := []string{"--bucket", "gs://readiness", "--job", "x"}
	with := func(args ...string) []string { return append(args, flags...) }
	got := publishing(emulator, nil, with(s.dir)...)
	s.want("publish", got, verdict.ExitReady)
	id := path.Base(strings.TrimSpace(got.stdout))
	older := "1" + strings.Repeat("0", 18)
	for name, c := range map[string]struct {
		args     []string
		says     string
		saysFlag string
	}{
		"publish, held":      {with(s.dir), "of this very run", "--attempt"},
		"publish, backwards": {with(s.dir, "--build-id", older), "the job has a newer build", "--attempt"},
		"start, held":        {with("start", "--build-id", id), "another run", "--build-id"},
		"start, backwards":   {with("start", "--build-id", older), "the job has a newer build", "--build-id"},
		"finish, held":       {with("finish", s.dir, "--build-id", id), "of this very run", "--replace"},
	} {
		got := publishing(emulator, nil, c.args...)
		s.want(name, got, verdict.ExitUsage, c.says, c.saysFlag)
		for _, field := range strings.FieldsFunc(got.stderr, func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') }) {
			if !strings.HasPrefix(field, "--") {
				continue
			}
			help := append(slices.Clone(c.args[:1]), "--help")
			if c.args[0] == s.dir {
				help = help[1:]
			}
			if known := publishing(nil, nil, help...).stdout; !strings.Contains(known, field+" ") {
				t.Errorf("%s: advises %s, which the command does not have:\n%s", name, field, got.stderr)
			}
		}
	}
	// Prow's ids are larger than any of ours.
	s.want("as Prow", publishing(emulator, nil, with("start", "--build-id", "2124339650113613824")...), verdict.ExitReady)
	s.want("behind Prow", publishing(emulator, nil, with(s.dir, "--attempt", "2")...), verdict.ExitUsage, "a --job of its own")
}

// Nobody takes the build of another run by mistake.
func TestPublishRefusesTheBuildOfAnotherRun(t *testing.T) {
	one, two := newScene(t, e2etest.Script{}), newScene(t, e2etest.Script{})
	one.want("run", one.main(one.args()...), verdict.ExitReady)
	two.want("run", two.main(two.args()...), verdict.ExitReady)
	gcs := newStore(t)
	emulator := []string{"STORAGE_EMULATOR_HOST=" + gcs.URL}
	flags := []string{"--bucket", "gs://readiness", "--job", "x"}
	first := publishing(emulator, nil, append([]string{one.dir}, flags...)...)
	one.want("publish", first, verdict.ExitReady)
	id := path.Base(strings.TrimSpace(first.stdout))
	run, err := result.Load(one.dir)
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{two.dir, "--build-id", id}, flags...)
	one.want("another run", publishing(emulator, nil, args...), verdict.ExitUsage, "is of run "+run.Manifest.RunID, "--replace")
	one.want("in its place", publishing(emulator, nil, append(args, "--replace")...), verdict.ExitReady, "/"+id)
}

// Everything that is wrong with flags is said at once.
func TestPublishSaysAllThatIsWrong(t *testing.T) {
	got := publishing(nil, nil, "results", "--type", "presubmit", "--path-strategy", "short", "--attempt", "0", "--parallel", "0", "--link", "A=x", "-o", "csv", "--build-id", "7")
	newScene(t, e2etest.Script{}).want("all", got, verdict.ExitUsage,
		"--bucket", "--job is missing", "--path-strategy", "--org is missing", "--repo is missing", "--pull 0", "--attempt 0", "--parallel 0", `link "A"`, "--output", "--build-id")
}

// What a bucket refuses is said with the permission that is missing.
func TestPublishSaysWhatIsMissing(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	s.want("run", s.main(s.args()...), verdict.ExitReady)
	gcs := newStore(t)
	emulator := []string{"STORAGE_EMULATOR_HOST=" + gcs.URL}
	s.want("no bucket", publishing(emulator, nil, s.dir, "--bucket", "gs://missing", "--job", "x"), verdict.ExitInconclusive, "gcloud storage buckets create gs://missing")
	url, err := bucket.FileURL(filepath.Join(t.TempDir(), "a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	s.want("no folder", publishing(nil, nil, s.dir, "--bucket", url, "--job", "x"), verdict.ExitInconclusive, "make its parent folder first")
	denied := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		gcs.Config.Handler.ServeHTTP(w, r)
	}))
	defer denied.Close()
	s.want("read only", publishing(nil, nil, s.dir, "--bucket", "gs://readiness", "--endpoint", denied.URL, "--job", "x"), verdict.ExitInconclusive, "storage.objects.create")
}

func TestPublishTakesItsPlaceFromTheConfiguration(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	s.want("run", s.main(s.args()...), verdict.ExitReady)
	dir := t.TempDir()
	t.Chdir(dir)
	s.write(filepath.Join(dir, "op-readiness.yaml"), "repository: example/cni\nmatrix: {kubernetes: ['1.36'], windows: ['2022']}\nresults: {bucket: gs://example-readiness, pathPrefix: windows/ci, pathStrategy: legacy, defaultOrg: example, defaultRepo: cni}\n")
	presubmit := []string{s.dir, "--dry-run", "--job", "pull-x", "--type", "presubmit", "--org", "example", "--repo", "cni", "--pull", "7"}
	s.want("configured", publishing(nil, nil, presubmit...), verdict.ExitReady, "gs://example-readiness/windows/ci/pr-logs/pull/7/pull-x/")
	s.want("a flag wins", publishing(nil, nil, append(presubmit, "--path-strategy", "explicit")...), verdict.ExitReady, "pr-logs/pull/example_cni/7/pull-x/")
	s.want("another bucket", publishing(nil, nil, append(presubmit, "--bucket", "gs://other-bucket")...), verdict.ExitReady, "gs://other-bucket/pr-logs/pull/example_cni/7/pull-x/")
}

func TestPublishLinksTheWorkflowRun(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	s.want("run", s.main(s.args()...), verdict.ExitReady)
	actions := []string{"GITHUB_ACTIONS=true", "GITHUB_RUN_ID=42", "GITHUB_SERVER_URL=https://github.com", "GITHUB_REPOSITORY=example/cni"}
	s.want("in a workflow", publishing(actions, nil, s.dir, "--bucket", "gs://readiness", "--job", "x", "--dry-run"), verdict.ExitReady, "artifacts/workflow-run.link.txt")
}
