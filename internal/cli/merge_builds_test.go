package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
)

// builds is a scene whose standard has two categories with tests and one that
// no job runs, and a bucket for the builds of its jobs.
type builds struct {
	*scene
	gcs     *store
	emulate string
	number  int
}

func newBuilds(t *testing.T, script e2etest.Script) *builds {
	t.Helper()
	b := &builds{scene: newScene(t, script), gcs: newStore(t), number: 1}
	b.emulate = "STORAGE_EMULATOR_HOST=" + strings.TrimPrefix(b.gcs.URL, "http://")
	for category, tests := range map[string]string{"Core.Network": "ab", "Core.Storage": "acd", "Core.Scheduling": "e"} {
		name := strings.ToLower(strings.ReplaceAll(category, ".", "-"))
		spec := "category: " + category + "\ntestCases:\n"
		for _, test := range tests {
			spec += testCase(string(test))
		}
		b.write(filepath.Join(b.specs, name+".yaml"), spec)
	}
	return b
}

// play has the tests end as a script says from now on.
func (b *builds) play(do map[string][]string) {
	b.fake.Rewrite(b.t, e2etest.Script{Version: "v1.36.3", Tests: sceneTests, Do: do})
}

// run runs a category as a Prow job on a commit of pull request 12 does, and
// returns the results folder.
func (b *builds) run(category, commit string, more ...string) string {
	b.t.Helper()
	b.number++
	b.dir = filepath.Join(b.t.TempDir(), "results")
	name := strings.ToLower(strings.ReplaceAll(category, ".", "-"))
	spec := fmt.Sprintf(`{"type":"presubmit","job":"pull-x-%s","buildid":"18367123456789012%02d","refs":{"org":"o","repo":"r","pulls":[{"number":12,"sha":%q}]}}`, name, b.number, commit)
	var out, errs bytes.Buffer
	args := b.args(append([]string{"--category", category}, more...)...)
	Main(context.Background(), args, Surroundings{Environ: append(b.environ(), "JOB_SPEC="+spec), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
	if _, err := os.Stat(filepath.Join(b.dir, result.MetadataFile)); err != nil {
		b.t.Fatalf("%v\n%s%s", err, out.String(), errs.String())
	}
	return b.dir
}

// publish publishes results as a build of the category's job, and returns its
// URL.
func (b *builds) publish(category string, dirs ...string) string {
	b.t.Helper()
	name := strings.ToLower(strings.ReplaceAll(category, ".", "-"))
	args := append(slices.Clone(dirs), "--bucket", "gs://readiness", "--job", "pull-x-"+name, "--type", "presubmit", "--org", "o", "--repo", "r", "--pull", "12")
	got := publishing([]string{b.emulate}, nil, args...)
	b.want("publish", got, verdict.ExitReady)
	return strings.TrimSpace(got.stdout)
}

// job runs a category and publishes it.
func (b *builds) job(category, commit string, more ...string) string {
	b.t.Helper()
	return b.publish(category, b.run(category, commit, more...))
}

// merge merges into a new folder, which becomes the scene's.
func (b *builds) merge(args ...string) said {
	b.t.Helper()
	b.dir = filepath.Join(b.t.TempDir(), "merged")
	return b.mainIn([]string{b.emulate}, append([]string{"merge", "--report-dir", b.dir}, args...)...)
}

// mainIn runs a command with more of an environment.
func (b *builds) mainIn(environ []string, args ...string) said {
	b.t.Helper()
	var out, errs bytes.Buffer
	code := Main(context.Background(), args, Surroundings{
		Environ: append(b.environ(), environ...), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
	})
	return said{code, out.String(), errs.String()}
}

// change puts another content in the place of an object, or removes it.
func (b *builds) change(url string, edit func(old string) string) {
	b.t.Helper()
	dir, name, ok := strings.Cut(strings.TrimPrefix(url, "gs://readiness/"), " ")
	if !ok {
		b.t.Fatal("say BUILD NAME")
	}
	store, err := bucket.Open(b.t.Context(), "gs://readiness", bucket.Options{Endpoint: b.gcs.URL})
	if err != nil {
		b.t.Fatal(err)
	}
	defer store.Close()
	key := dir + "/" + name
	old, err := store.ReadAll(b.t.Context(), key, 1<<20)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := store.Delete(b.t.Context(), key); err != nil {
		b.t.Fatal(err)
	}
	content := edit(string(old))
	if content == "" {
		return
	}
	sum, err := bucket.SumOf(strings.NewReader(content))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := store.Put(b.t.Context(), &bucket.Object{Key: key, Sum: sum, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }}); err != nil {
		b.t.Fatal(err)
	}
}

func replace(from, to string) func(string) string {
	return func(old string) string { return strings.ReplaceAll(old, from, to) }
}

func TestCategoryJobsHaveOneVerdict(t *testing.T) {
	b := newBuilds(t, e2etest.Script{})
	network, storage := b.job("Core.Network", "c1"), b.job("Core.Storage", "c1")
	b.want("without the flag", b.merge(network, storage), verdict.ExitUsage, "not of one run", network, "--across-runs")
	if _, err := os.Stat(filepath.Join(b.dir, result.PlanFile)); err == nil {
		t.Error("a refused merge left results")
	}
	b.want("two categories", b.merge("--across-runs", network, storage), verdict.ExitReady,
		"Windows operational readiness of Core.Network, Core.Storage of another standard (6 requirements, spec files of ", "): READY (0 proven, 5 in part, of 5)",
		"No run covers Cluster.Rules, Core.Scheduling (1 requirement): the verdict says nothing of them")
	merged := b.dir
	for _, name := range []string{"junit_core-network_01.xml", "junit_core-storage_01.xml", result.MetadataFile} {
		if _, err := os.Stat(filepath.Join(merged, name)); err != nil {
			t.Error(err)
		}
	}
	run := b.results()
	if s := run.Manifest.Source; s.Commit != "c1" || s.Pull != 12 || s.Repository != "o/r" || s.Build != "" {
		t.Errorf("the source is %+v", s)
	}
	if len(run.Manifest.Runs) != 2 || run.Manifest.Runs[0].From != network+"/artifacts/shard-1" {
		t.Errorf("the runs are %+v", run.Manifest.Runs)
	}
	b.want("the report on it", b.main("report", merged), verdict.ExitReady, "READY", "No run covers")
	b.want("as a comment", b.main("comment", merged, "--dry-run"), verdict.ExitReady, "Core.Network", "Core.Storage")
	again := b.publish("Core.All", merged)
	b.want("the merged build", b.merge("--across-runs", again, b.job("Core.Scheduling", "c1")), verdict.ExitUsage, "holds several runs already")
	b.want("from folders, in another order", b.merge("--across-runs", storage+"/", network), verdict.ExitReady, "READY")
}

func TestCategoryJobsWithLogs(t *testing.T) {
	b := newBuilds(t, e2etest.Script{})
	dir := b.run("Core.Network", "c1")
	storage := b.job("Core.Storage", "c1")
	b.want("a folder and a build", b.merge("--across-runs", "--logs", dir, storage), verdict.ExitReady, "READY")
	for _, batch := range b.results().Batches {
		if _, err := os.Stat(filepath.Join(b.dir, batch.Log)); err != nil {
			t.Error(err)
		}
	}
}

func TestTheNewestBuildOfACategoryCounts(t *testing.T) {
	b := newBuilds(t, e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Fail}}})
	broken := b.job("Core.Network", "c1")
	storage := b.job("Core.Storage", "c1")
	b.want("with the failure", b.merge("--across-runs", broken, storage), verdict.ExitNotReady, "core-network-b failed")
	b.play(nil)
	healed := b.job("Core.Network", "c1")
	got := b.merge("--across-runs", healed, storage, broken)
	b.want("healed", got, verdict.ExitReady, "flaky  core-network-b", "passed in attempt", "had failed there: core-network-b", "Core.Network: build ", "for 2 cases")
	b.want("healed, as a comment", b.main("comment", b.dir, "--dry-run"), verdict.ExitReady, "replaces the older build", "had failed there", "No run covers Cluster.Rules")

	// A failure is not forgotten because the next build was killed.
	b.play(nil)
	killed := b.job("Core.Network", "c1")
	b.change(killed+" artifacts/shard-1/"+result.EventsFile, func(old string) string {
		var kept []string
		for _, line := range strings.SplitAfter(old, "\n") {
			if !strings.Contains(line, `"test-finished"`) && !strings.Contains(line, `"run-finished"`) {
				kept = append(kept, line)
			}
		}
		return strings.Join(kept, "")
	})
	b.want("healed by nobody", b.merge("--across-runs", killed, storage, broken), verdict.ExitNotReady, "core-network-b failed", "says that it passed, and its results are not ready")
	// Nor is a pass of an older build taken for one of the newest.
	got = b.merge("--across-runs", killed, storage, healed)
	b.want("an older pass", got, verdict.ExitInconclusive, "core-network-a is error")
}

// A test that two categories share has an answer in each run.
func TestWhatRunsShareIsJudgedApart(t *testing.T) {
	b := newBuilds(t, e2etest.Script{})
	network := b.job("Core.Network", "c1")
	b.play(map[string][]string{"[sig-x] a": {e2etest.Fail}})
	storage := b.job("Core.Storage", "c1")
	for _, order := range [][]string{{network, storage}, {storage, network}} {
		b.want("one fails", b.merge(append(order, "--across-runs")...), verdict.ExitNotReady, "passed  core-network-a", "failed  core-storage-a")
	}
}

func TestBuildsOfDifferentThingsAreRefused(t *testing.T) {
	b := newBuilds(t, e2etest.Script{})
	network := b.job("Core.Network", "c1")
	for name, c := range map[string]struct {
		edit func(string) string
		want []string
	}{
		"another commit":       {replace(`"c1"`, `"c2"`), []string{"tested commit c1", "c2", "one commit", network}},
		"another pull request": {replace(`"pull": 12`, `"pull": 13`), []string{"is of pull request 12", "13"}},
		"another repository":   {replace(`"o/r"`, `"evil/r"`), []string{"is of repository o/r", "evil/r"}},
		"another plan":         {replace(`"planDigest": "sha256:`, `"planDigest": "sha256:0`), []string{"they cannot have one verdict", "plan.json was changed"}},
		"another format":       {replace(`"schema": 1`, `"schema": 9`), []string{"/artifacts/shard-1/run.json: schema 9 is not known", "gs://readiness/pr-logs"}},
		"no JSON":              {func(string) string { return "<html>" }, []string{"gs://readiness/pr-logs", "run.json"}},
		"no shard":             {replace(`"shard": 1`, `"shard": 7`), []string{"it is shard 7 of a plan of 1"}},
	} {
		storage := b.job("Core.Storage", "c1")
		b.change(storage+" artifacts/shard-1/run.json", c.edit)
		got := b.merge("--across-runs", network, storage)
		b.want(name, got, verdict.ExitUsage, c.want...)
		if strings.Contains(got.stderr, os.TempDir()+"/op-readiness") {
			t.Errorf("%s: names a folder that nobody knows: %s", name, got.stderr)
		}
	}
	storage := b.job("Core.Storage", "c1")
	b.write(filepath.Join(b.specs, "core-scheduling.yaml"), "category: Core.Scheduling\ntestCases:\n"+testCase("f"))
	changed := b.job("Core.Network", "c1")
	b.want("another standard", b.merge("--across-runs", changed, storage), verdict.ExitUsage, "has a standard of", "the same spec files")
}

func TestBuildsOfOtherClustersAreInconclusive(t *testing.T) {
	b := newBuilds(t, e2etest.Script{})
	network := b.job("Core.Network", "c1")
	for name, c := range map[string]struct {
		edit func(string) string
		want string
	}{
		"another Windows":    {replace("10.0.20348", "10.0.26100"), "not of one kind: what Windows nodes run is 10.0.20348"},
		"another runtime":    {replace("containerd://2.0.0", "containerd://1.7.0"), "not of one kind: what Windows nodes run"},
		"another Kubernetes": {replace(`"serverVersion": "v1.36.3"`, `"serverVersion": "v1.35.0"`), "the version of Kubernetes is v1.36.3"},
		"a simulated one":    {replace(`"os": "windows",`, `"os": "windows", "simulated": true,`), "simulated"},
		"no commit":          {replace(`"commit": "c1",`, ``), "does not say which commit it tested, and others do"},
		"another network":    {replace(`"nodes": [`, `"networks": ["Calico"], "nodes": [`), "the network is unknown in"},
	} {
		storage := b.job("Core.Storage", "c1")
		b.change(storage+" artifacts/shard-1/run.json", c.edit)
		b.want(name, b.merge("--across-runs", network, storage), verdict.ExitInconclusive, c.want, "INCONCLUSIVE")
	}
}

func TestDoubtfulBuildsAreInconclusive(t *testing.T) {
	b := newBuilds(t, e2etest.Script{})
	network := b.job("Core.Network", "c1")
	for name, c := range map[string]struct {
		object string
		edit   func(string) string
		code   int
		want   string
	}{
		"not finished":       {"finished.json", replaceAll(""), verdict.ExitInconclusive, "has no finished.json: it still runs, or was killed"},
		"finished, a ruin":   {"finished.json", replaceAll("{"), verdict.ExitInconclusive, "the finished.json of build gs://readiness/"},
		"finished, no end":   {"finished.json", replaceAll(`{"passed":true}`), verdict.ExitInconclusive, "no time of its end"},
		"did not pass":       {"finished.json", replace(`"passed": true`, `"passed": false`), verdict.ExitInconclusive, "did not pass, and its results are ready"},
		"half its events":    {"artifacts/shard-1/results.jsonl", func(s string) string { return s[:len(s)/2] }, verdict.ExitInconclusive, "says that it passed"},
		"no events":          {"artifacts/shard-1/results.jsonl", replaceAll(""), verdict.ExitInconclusive, "results.jsonl is missing"},
		"no plan":            {"artifacts/shard-1/plan.json", replaceAll(""), verdict.ExitUsage, "plan.json"},
		"no results":         {"artifacts/shard-1/run.json", replaceAll(""), verdict.ExitUsage, "holds no results folder: no run.json in artifacts"},
		"results from above": {"artifacts/shard-1/run.json", replace(`"runID": "`, `"runID": "\u001b[31m`), verdict.ExitReady, "READY"},
	} {
		storage := b.job("Core.Storage", "c1")
		b.change(storage+" "+c.object, c.edit)
		got := b.merge("--across-runs", network, storage)
		b.want(name, got, c.code, c.want)
		if c.code == verdict.ExitInconclusive {
			b.want(name+", by its artifacts", b.merge("--across-runs", network, storage+"/artifacts/shard-1"), c.code, c.want)
		}
		if strings.Contains(got.stdout+got.stderr, "\x1b") {
			t.Errorf("%s: control characters of the results reach the terminal", name)
		}
	}
}

func replaceAll(with string) func(string) string { return func(string) string { return with } }

func TestPlacesWithoutABuild(t *testing.T) {
	b := newBuilds(t, e2etest.Script{})
	network := b.job("Core.Network", "c1")
	job := network[:strings.LastIndex(network, "/")]
	empty := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"twice":             {[]string{network, network + "/"}, "named twice"},
		"a build and below": {[]string{"--across-runs", network, network + "/artifacts"}, "both attempt 1 of shard 1"},
		"a job":             {[]string{job}, "the folder of a job, and not of one build: name one of its builds, such as " + network},
		"nothing":           {[]string{"gs://readiness/nowhere/1"}, "nothing lies there"},
		"no bucket":         {[]string{"gs://nobody/logs/j/1"}, "no such bucket"},
		"no folder":         {[]string{"file://" + empty + "/none"}, "does not exist"},
		"an empty folder":   {[]string{"file://" + empty}, "nothing lies there"},
		"no URL":            {[]string{"https://storage.googleapis.com/readiness/1"}, "gs://NAME"},
		"with dots":         {[]string{"gs://readiness/../x"}, "'..'"},
	} {
		b.want(name, b.merge(c.args...), verdict.ExitUsage, c.want)
	}
	if left, err := os.ReadDir(empty); err != nil || len(left) > 0 {
		t.Errorf("looking made %v (%v)", left, err)
	}
}

// Shards of one run that lie in a build, and a shard that ran again elsewhere.
func TestShardsInABuild(t *testing.T) {
	b := newBuilds(t, e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Fail}}})
	first, second := b.run("Core.Network", "c1", "--run-id", "n", "--shards", "2", "--shard", "1"), b.run("Core.Network", "c1", "--run-id", "n", "--shards", "2", "--shard", "2")
	build := b.publish("Core.Network", first, second)
	b.want("a failing shard", b.merge(build), verdict.ExitNotReady, "shard 1 of 2, attempt 1: "+build+"/artifacts/shard-1", "core-network-b failed")
	b.play(nil)
	var again []string
	for _, shard := range []string{"1", "2"} {
		again = append(again, b.run("Core.Network", "c1", "--run-id", "n", "--shards", "2", "--shard", shard, "--attempt", "2"))
	}
	b.want("and its healing", b.merge(append(again, build)...), verdict.ExitReady, "flaky")
	storage := b.job("Core.Storage", "c1")
	b.want("beside another run", b.merge(append(again, "--across-runs", storage, build)...), verdict.ExitReady, "flaky", "0 proven, 5 in part, of 5")
	b.want("without a shard", b.merge("--across-runs", storage, first), verdict.ExitNotReady+2, "nothing accounts for")
}

// What the merged folder says of itself holds when it is read elsewhere.
func TestAForgedMergeIsInconclusive(t *testing.T) {
	b := newBuilds(t, e2etest.Script{})
	network, storage := b.job("Core.Network", "c1"), b.job("Core.Storage", "c1")
	b.want("merge", b.merge("--across-runs", network, storage), verdict.ExitReady)
	path := filepath.Join(b.dir, result.ManifestFile)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		edit func(m map[string]any)
		want string
	}{
		"a shard of a stranger": {func(m map[string]any) { m["shards"].([]any)[1].(map[string]any)["runID"] = "stranger" }, "is of another run: stranger"},
		"of another commit": {func(m map[string]any) {
			m["shards"].([]any)[1].(map[string]any)["source"].(map[string]any)["commit"] = "c2"
		}, "is of another commit: c2"},
		"without a shard":       {func(m map[string]any) { m["shards"] = m["shards"].([]any)[:1] }, "nothing accounts for core-storage-a"},
		"without runs":          {func(m map[string]any) { delete(m, "runs") }, "is of another run"},
		"shards beyond numbers": {func(m map[string]any) { m["runs"].([]any)[1].(map[string]any)["firstShard"] = -1 << 60 }, "is of another run"},
	} {
		var m map[string]any
		if err := json.Unmarshal(data, &m); err != nil {
			t.Fatal(err)
		}
		c.edit(m)
		forged, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		b.write(path, string(forged))
		b.want(name, b.main("report", b.dir), verdict.ExitInconclusive, c.want)
	}
}
