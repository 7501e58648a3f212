package testgrid_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fsouza/fake-gcs-server/fakestorage"

	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
	"github.com/windows-op-readiness/windows-op-readiness/test/recorded"
	"github.com/windows-op-readiness/windows-op-readiness/testgrid"
)

// aRun describes a results folder.
type aRun struct {
	id      string
	start   time.Time
	cases   []aCase
	shards  int // 0 is one; cases are dealt in turn
	shard   int // 0 is the first
	attempt int // 0 is the first
	killed  bool
	stopped bool
}

// aCase is a case with one test, or none.
type aCase struct {
	id      string
	change  func(*result.PlannedCase)
	tries   []result.TestRun
	pod     specs.OS // where a pod named p was seen
	noTest  bool
	decided *result.Decision
}

func passes(id string) aCase {
	return aCase{id: id, tries: []result.TestRun{{State: result.TestPassed, Seconds: 1.5}}}
}

func fails(id string) aCase {
	return aCase{id: id, tries: []result.TestRun{{State: result.TestFailed, Seconds: 2, Message: "[FAILED] the pod did not answer"}}}
}

// onWindows wants the pod p on Windows.
func onWindows(c *result.PlannedCase) {
	c.Conditions.Placement = []specs.Placement{{Pods: "^p$", OS: specs.Windows}}
}

// everyOutcome has a case of each outcome.
func everyOutcome() []aCase {
	flaky := passes("net-flaky")
	flaky.tries = append(fails("").tries, flaky.tries...)
	unproven := passes("net-unproven")
	unproven.change, unproven.pod = onWindows, specs.Linux
	proven := passes("net-passed")
	proven.change, proven.pod = onWindows, specs.Windows
	return []aCase{
		proven, flaky, fails("net-failed"), unproven,
		{id: "net-error", tries: []result.TestRun{{State: result.TestError, Message: "the API server does not answer"}}},
		{id: "net-skipped", tries: []result.TestRun{{State: result.TestSkipped, Message: "[SKIPPED] needs SSH"}}},
		{id: "net-not-tested", decided: &result.Decision{Outcome: string(verdict.NotTested), Reason: "there is no Windows node that runs containers"}},
		{id: "net-not-applicable", decided: &result.Decision{Outcome: string(verdict.NotApplicable), Reason: "no node has pod addresses of two families"}},
		{id: "net-not-implemented", noTest: true, change: func(c *result.PlannedCase) { c.Proof, c.Missing = specs.ProofNone, "A test that reboots all nodes." }},
	}
}

// write makes a results folder, as a run does.
func (r aRun) write(t testing.TB) string {
	t.Helper()
	r.shards, r.shard, r.attempt = max(1, r.shards), max(1, r.shard), max(1, r.attempt)
	plan := &result.Plan{
		Schema: result.PlanSchema, KubernetesVersion: "v1.36.3", Provider: "skeleton", Shards: r.shards,
		Standard: map[specs.Category]int{specs.CoreNetwork: len(r.cases)},
	}
	for i, c := range r.cases {
		planned := result.PlannedCase{
			Case: specs.Case{
				ID: c.id, Category: specs.CoreNetwork, Kind: specs.Requirement, Proof: specs.ProofFull,
				Requirement: "Ability to do " + c.id + ".",
			},
			Shard: i%r.shards + 1,
		}
		if c.change != nil {
			c.change(&planned)
		}
		if c.decided != nil {
			switch c.decided.Outcome {
			case string(verdict.NotApplicable):
				planned.Needs.Condition = []string{"dual-stack"}
			case string(verdict.NotTested):
				planned.Needs.Means = []string{"kubectl"}
			}
		}
		plan.Selection.Cases = append(plan.Selection.Cases, c.id)
		if !c.noTest {
			test := result.PlannedTest{
				Name: "[sig-network] " + c.id + " should work [Conformance]", Conditions: result.ConditionsOf(planned.Conditions), Phase: specs.Parallel,
				Duration: time.Minute, Timeout: time.Hour, Cases: []string{c.id}, Shard: planned.Shard,
			}
			test.ID = result.TestID(test.Name, test.Conditions)
			planned.TestIDs = []string{test.ID}
			plan.Tests = append(plan.Tests, test)
		}
		plan.Cases = append(plan.Cases, planned)
	}
	var err error
	if plan.Digest, err = plan.ComputeDigest(); err != nil {
		t.Fatal(err)
	}
	manifest := &result.Manifest{
		Schema: result.ManifestSchema, RunID: r.id, PlanDigest: plan.Digest, Shard: r.shard, Attempt: r.attempt, ToolVersion: "v0.1.0", E2EVersion: "v1.36.3", Started: r.start,
		Cluster: result.Facts{ServerVersion: "v1.36.3", Nodes: []result.Node{
			{Name: "l", OS: specs.Linux, Ready: true, PodCIDRs: []string{"10.0.0.0/24"}},
			{Name: "w", OS: specs.Windows, Ready: true, WindowsBuild: "10.0.20348", ContainerRuntime: "containerd://2.1.0", PodCIDRs: []string{"10.0.1.0/24"}},
		}},
	}
	dir := filepath.Join(t.TempDir(), "results")
	folder, err := result.Create(dir, plan, manifest)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	var decided []result.Decision
	tries := map[string][]recorded.Try{}
	for i, c := range r.cases {
		planned := &plan.Cases[i]
		if planned.Shard != r.shard {
			continue
		}
		if c.decided != nil {
			decided = append(decided, result.Decision{ID: c.id, Outcome: c.decided.Outcome, Reason: c.decided.Reason})
		}
		for _, try := range c.tries {
			one := recorded.Try{TestRun: try}
			if c.pod != "" {
				one.Pods = []result.Pod{{Namespace: "x", Name: "p", Node: map[specs.OS]string{specs.Linux: "l", specs.Windows: "w"}[c.pod], OS: c.pod, WindowsBuild: map[specs.OS]string{specs.Windows: "10.0.20348"}[c.pod], Images: []string{"registry.k8s.io/e2e-test-images/agnhost:2.63.0"}}}
			}
			tries[planned.TestIDs[0]] = append(tries[planned.TestIDs[0]], one)
		}
	}
	events := recorded.Execution(plan, r.shard, r.start, decided, func(t *result.PlannedTest) []recorded.Try { return tries[t.ID] })
	if r.killed {
		events = events[:len(events)-1]
	} else {
		end := &events[len(events)-1]
		end.Time, end.Interrupted = r.start.Add(time.Hour), r.stopped
	}
	if err := folder.Append(events...); err != nil {
		t.Fatal(err)
	}
	if err := folder.WriteFile("logs/batch-01.log", []byte(strings.Repeat("what e2e.test said\n", 200))); err != nil {
		t.Fatal(err)
	}
	if !r.killed {
		run, err := result.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(run.Problems) > 0 {
			t.Fatalf("the fixture has problems: %q", run.Problems)
		}
		if err := report.WriteFolder(folder, run, verdict.Judge(run), r.start.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// start is not long ago: TestGrid looks at days, and reads young columns again.
var start = time.Now().Add(-3 * time.Hour).Truncate(time.Second)

// now is when results are published.
var now = start.Add(90 * time.Minute)

var periodic = testgrid.Job{Name: "windows-readiness", Type: testgrid.Periodic, Strategy: testgrid.StrategyExplicit}

// place is a bucket in an emulator.
type place struct {
	*bucket.Bucket
	server   *fakestorage.Server
	endpoint string
}

const bucketName = "readiness"

// emulator starts a GCS emulator behind around, which may be nil.
func emulator(t testing.TB, around func(http.Handler) http.Handler) *place {
	t.Helper()
	server, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true})
	if err != nil {
		t.Fatal(err)
	}
	server.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: bucketName})
	handler := server.HTTPHandler()
	if around != nil {
		handler = around(handler)
	}
	listener := httptest.NewServer(handler)
	t.Cleanup(listener.Close)
	p := &place{server: server, endpoint: listener.URL}
	if p.Bucket, err = bucket.Open(t.Context(), "gs://"+bucketName, bucket.Options{Endpoint: p.endpoint, Retry: hasty}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// hasty repeats without waiting long.
var hasty = bucket.Retry{Attempts: 3, Wait: time.Millisecond, MaxWait: time.Millisecond}

// keys are those of all objects, sorted.
func (p *place) keys(t testing.TB) []string {
	t.Helper()
	return keysOf(t, p.Bucket)
}

func keysOf(t testing.TB, b *bucket.Bucket) []string {
	t.Helper()
	keys := []string{}
	if err := b.List(t.Context(), bucket.ListOptions{}, func(a *bucket.Attrs) error {
		keys = append(keys, a.Key)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return keys
}

func has(keys []string, name string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { return strings.HasSuffix(k, "/"+name) })
}

// planned plans the build that results in folders make.
func planned(t testing.TB, b *bucket.Bucket, job testgrid.Job, dirs ...string) *testgrid.UploadPlan {
	t.Helper()
	plan, err := planOf(t, b, job, "", dirs...)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// resultsIn reads the results in folders.
func resultsIn(t testing.TB, dirs ...string) *testgrid.Results {
	t.Helper()
	r, err := testgrid.ReadResults(dirs)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func planOf(t testing.TB, b *bucket.Bucket, job testgrid.Job, build string, dirs ...string) (*testgrid.UploadPlan, error) {
	t.Helper()
	r, err := testgrid.ReadResults(dirs)
	if err != nil {
		return nil, err
	}
	if build == "" {
		if build, err = r.BuildID(); err != nil {
			return nil, err
		}
	}
	const commit = "0123456789abcdef"
	o := &testgrid.Options{Job: job, Build: build, URL: b.URL, Compress: b.Decompresses(), Log: []byte("the report\n"), Links: map[string]string{"workflow-run": "https://ci.example/1"}}
	return testgrid.NewUploadPlan(o, r, r.Started(&job, commit), r.Finished(map[string]string{"Commit": commit}, now))
}

func publish(t testing.TB, b *bucket.Bucket, plan *testgrid.UploadPlan) testgrid.Progress {
	t.Helper()
	p := testgrid.Publisher{Bucket: b}
	sent, err := p.Publish(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	return sent
}

func writeFile(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// listing is a plan in short.
func listing(p *testgrid.UploadPlan) string {
	var b strings.Builder
	for i := range p.Objects {
		o := &p.Objects[i]
		fmt.Fprintf(&b, "%-8s %s (%s", o.Step, o.Key, o.ContentType)
		if o.ContentEncoding != "" {
			fmt.Fprintf(&b, ", %s", o.ContentEncoding)
		}
		if len(o.Metadata) > 0 {
			fmt.Fprintf(&b, ", %v", o.Metadata)
		}
		b.WriteString(")\n")
	}
	for _, s := range p.Skipped {
		fmt.Fprintf(&b, "skipped  %s: %s\n", s.File, s.Reason)
	}
	return b.String()
}
