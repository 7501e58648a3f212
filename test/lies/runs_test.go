//go:build unix

package lies

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/plan"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/run"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// planOf plans the embedded standard.
func planOf(t testing.TB, shards int, categories ...specs.Category) *result.Plan {
	t.Helper()
	set, err := specs.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	cases, err := set.For(version)
	if err != nil {
		t.Fatal(err)
	}
	list, err := specs.Catalogue(version)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Make(plan.Request{Cases: cases, Tests: list, Provider: "skeleton", Selection: result.Selection{Categories: categories}, Shards: shards})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// manifestOf describes a cluster that has everything the standard speaks of.
func manifestOf(p *result.Plan, shard int) *result.Manifest {
	m := &result.Manifest{
		Declared: result.Declarations{Reboot: true},
		Schema:   result.ManifestSchema, RunID: "lies", PlanDigest: p.Digest, Shard: shard, Attempt: 1, ToolVersion: "v0.0.0",
		E2EVersion: version, Kubectl: "/usr/bin/kubectl", Steering: "admission policy", Started: time.Now().UTC(),
		Cluster: result.Facts{
			ServerVersion: version, APIGroups: []string{"apps", "metrics.k8s.io", "windows.k8s.io"}, RuntimeClasses: []string{"runhcs-wcow-hypervisor"},
		},
	}
	for i, name := range []string{"linux-0", "linux-1", "windows-0", "windows-1"} {
		n := result.Node{
			Name: name, OS: specs.Linux, Ready: true, KubeletVersion: version, Architecture: "amd64",
			ContainerRuntime: "containerd://2.1.0", PodCIDRs: []string{"10.0.0.0/24", "fd00::/64"},
		}
		if i >= 2 {
			n.OS, n.WindowsBuild = specs.Windows, "10.0.20348"
		}
		m.Cluster.Nodes = append(m.Cluster.Nodes, n)
	}
	return m
}

// bench runs a plan with the lying e2e.test on a cluster that is only played:
// every pod is where the standard wants it.
type bench struct {
	t       testing.TB
	plan    *result.Plan
	options run.Options
	target  *result.PlannedTest // what the lie is about

	stop chan struct{}
	// stopAt is a test at whose start the run is interrupted; "" is none.
	stopAt string
	once   sync.Once

	mu         sync.Mutex
	conditions result.RunConditions
}

func newBench(t testing.TB, lie string, p *result.Plan, shard int) *bench {
	t.Helper()
	b := &bench{t: t, plan: p, stop: make(chan struct{})}
	var names []string
	for i := range p.Tests {
		test := &p.Tests[i]
		if !slices.Contains(names, test.Name) {
			names = append(names, test.Name)
		}
		if b.target == nil && test.Shard == shard && b.gates(test) && len(pods(p, test)) > 0 {
			b.target = test
		}
	}
	m := manifestOf(p, shard)
	folder, err := result.Create(filepath.Join(t.TempDir(), "results"), p, m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { folder.Close() })
	path := install(t, script{Lie: lie, Version: version, Tests: names, Target: b.target.Name})
	b.options = run.Options{
		Plan: p, Manifest: m, Folder: folder, Binary: &e2e.Binary{Path: path, Version: version},
		Env: os.Environ(), Cluster: b, Observer: b, Evidence: b, Steering: b, TempDir: t.TempDir(), Stop: b.stop,
		HealthInterval: time.Minute, ProbeInterval: time.Millisecond, Grace: 5 * time.Second,
	}
	return b
}

// gates reports whether a test serves a case that gates.
func (b *bench) gates(test *result.PlannedTest) bool {
	return slices.ContainsFunc(b.plan.Cases, func(c result.PlannedCase) bool { return c.Gates() && slices.Contains(c.TestIDs, test.ID) })
}

// run runs to the end, or to the interrupt, and finishes the folder as the
// command does. It returns the folder.
func (b *bench) run() string {
	b.t.Helper()
	if err := run.Run(context.Background(), b.options); err != nil && b.stopAt == "" {
		b.t.Fatal(err)
	}
	done := load(b.t, b.options.Folder.Dir())
	if err := report.WriteFolder(b.options.Folder, done, verdict.Judge(done), time.Now().UTC()); err != nil {
		b.t.Fatal(err)
	}
	if err := b.options.Folder.Close(); err != nil {
		b.t.Fatal(err)
	}
	return b.options.Folder.Dir()
}

// resume goes on with a run that was interrupted.
func (b *bench) resume() string {
	b.t.Helper()
	dir := b.options.Folder.Dir()
	folder, err := result.Reopen(dir)
	if err != nil {
		b.t.Fatal(err)
	}
	b.options.Previous = load(b.t, dir)
	b.options.Folder, b.options.Manifest = folder, b.options.Previous.Manifest
	m := b.options.Manifest
	m.Finished, m.Interrupted, m.Scope, m.Verdict, m.Outcomes, m.ExitCode = time.Time{}, false, "", "", nil, nil
	b.stopAt, b.stop = "", make(chan struct{})
	b.options.Stop = b.stop
	if err := folder.WriteJSON(result.ManifestFile, m); err != nil {
		b.t.Fatal(err)
	}
	return b.run()
}

// load reads a results folder.
func load(t testing.TB, dir string) *result.Run {
	t.Helper()
	done, err := result.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func (b *bench) Healthy(context.Context) error                           { return nil }
func (b *bench) RemoveNamespaces(context.Context, []string) (int, error) { return 0, nil }
func (b *bench) Outages(time.Time) string                                { return "" }
func (b *bench) Own(string)                                              {}
func (b *bench) Note(string)                                             {}
func (b *bench) Remove(context.Context) error                            { return nil }

func (b *bench) Event(e result.Event) {
	if e.Type == result.TestStarted && e.Test.Name == b.stopAt {
		b.once.Do(func() { close(b.stop) })
	}
}

func (b *bench) Apply(_ context.Context, conditions result.RunConditions) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conditions = conditions
	return nil
}

// Collect knows a test by its namespace, and the conditions that are in force.
func (b *bench) Collect(_ context.Context, _ string, namespaces []string, _ time.Time) ([]result.Pod, string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.plan.Tests {
		test := &b.plan.Tests[i]
		if test.Conditions == b.conditions && slices.Contains(namespaces, namespaceOf(test.Name)) {
			return pods(b.plan, test), ""
		}
	}
	return nil, ""
}

func (b *bench) CollectRun(context.Context, string, time.Time) ([]result.Pod, string) {
	return nil, "it was killed"
}

func (b *bench) Changes(context.Context, string, map[string]time.Time, time.Time) string {
	return ""
}

// namespaceOf is the namespace that a test names where no API server is.
func namespaceOf(name string) string {
	return "lies-" + result.TestID(name, result.RunConditions{})
}

// pods are those of a test, one for each role and system.
func pods(p *result.Plan, t *result.PlannedTest) []result.Pod {
	var all []result.Pod
	seen := map[string]bool{}
	for i := range p.Cases {
		c := &p.Cases[i]
		if !slices.Contains(c.TestIDs, t.ID) {
			continue
		}
		for _, role := range c.Conditions.Placement {
			systems := role.Systems()
			if len(systems) == 0 {
				systems = []specs.OS{specs.Windows}
			}
			for _, os := range systems {
				key := role.Pods + " " + string(os)
				if seen[key] {
					continue
				}
				seen[key] = true
				pod := result.Pod{
					Namespace: "x-" + string(os), Name: podName(role.Pods), Node: string(os) + "-0", OS: os,
					RuntimeClass: t.Conditions.RuntimeClass, Images: []string{"registry.k8s.io/e2e-test-images/agnhost:2.63.0"},
					Started: true, Phases: []string{"Pending", "Running"}, Observed: time.Now().UTC(),
				}
				if os == specs.Windows {
					pod.WindowsBuild = "10.0.20348"
				}
				if role.NeverStarts {
					pod.Started, pod.Phases = false, []string{"Pending"}
				}
				all = append(all, pod)
			}
		}
	}
	return all
}

// podName returns a name that a regular expression of the specs matches.
func podName(expression string) string {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		panic(err)
	}
	var name func(re *syntax.Regexp) string
	name = func(re *syntax.Regexp) string {
		switch re.Op {
		case syntax.OpLiteral:
			return string(re.Rune)
		case syntax.OpCharClass:
			return string(re.Rune[:1])
		case syntax.OpCapture, syntax.OpAlternate, syntax.OpPlus:
			return name(re.Sub[0])
		case syntax.OpConcat:
			s := ""
			for _, sub := range re.Sub {
				s += name(sub)
			}
			return s
		}
		return ""
	}
	return name(re)
}

// target is a lie about one test of a bench.
func target(body func(ginkgo.SpecContext, *program)) func(int) lie {
	return func(int) lie {
		return lie{each: func(name string, p *program) func(ginkgo.SpecContext, *program) {
			if name == p.Target {
				return body
			}
			return nil
		}}
	}
}

// firstTime does one thing the first time that the target runs, and is honest
// after that.
func firstTime(body func(ginkgo.SpecContext, *program)) func(ginkgo.SpecContext, *program) {
	return func(ctx ginkgo.SpecContext, p *program) {
		marker := filepath.Join(p.dir, "ran")
		if _, err := os.Stat(marker); err == nil {
			honest(ctx, p)
			return
		}
		if err := os.WriteFile(marker, nil, 0o644); err != nil {
			panic(err)
		}
		body(ctx, p)
	}
}

var (
	failsOnce   = tell("the target fails once", target(firstTime(namely(fails))))
	failsAlways = tell("the target fails always", target(namely(fails)))
	hangsOnce   = tell("the target hangs once", target(firstTime(hangs)))
)

// namely names its namespace before it does something.
func namely(body func(ginkgo.SpecContext, *program)) func(ginkgo.SpecContext, *program) {
	return func(ctx ginkgo.SpecContext, p *program) {
		defer ginkgo.By(fmt.Sprintf("Destroying namespace %q for this suite.", namespaceOf(p.Target)))
		body(ctx, p)
	}
}

// base is a run, honest and whole, that single changes are made of.
type base struct {
	name, dir string
	ready     bool
}

// bases are made by the engine itself, of the embedded standard.
func bases(t *testing.T) []base {
	t.Helper()
	some := []specs.Category{specs.CoreNetwork, specs.ExtendWorker}
	ideal := newBench(t, truth, planOf(t, 1), 1)
	flaky := newBench(t, failsOnce, planOf(t, 1, some...), 1)
	flaky.options.Retries = 1
	failed := newBench(t, failsAlways, planOf(t, 1, some...), 1)
	resumed := newBench(t, hangsOnce, planOf(t, 1, some...), 1)
	resumed.stopAt = resumed.target.Name
	resumed.run()
	all := []base{
		{"ideal", ideal.run(), true}, {"flaky", flaky.run(), true}, {"failed", failed.run(), false}, {"resumed", resumed.resume(), true},
	}
	two := planOf(t, 2, some...)
	merged := filepath.Join(t.TempDir(), "merged")
	s := newScene(t, truth)
	s.main("merge", "--report-dir", merged, newBench(t, truth, two, 1).run(), newBench(t, truth, two, 2).run())
	all = append(all, base{"merged", merged, true})
	for _, b := range all {
		j := verdict.Judge(load(t, b.dir))
		if (j.Verdict == verdict.Ready) != b.ready || !b.ready && j.Verdict != verdict.NotReady {
			t.Fatalf("the %s run is %s: %s", b.name, j.Verdict, strings.Join(j.Reasons, "; "))
		}
	}
	return all
}
