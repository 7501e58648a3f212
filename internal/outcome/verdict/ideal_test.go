package verdict_test

import (
	"fmt"
	"maps"
	"regexp/syntax"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/plan"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
	"github.com/windows-op-readiness/windows-op-readiness/test/recorded"
)

const version = "v1.36.3"

var began = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

var catalogue = sync.OnceValues(func() (*specs.TestList, error) { return specs.Catalogue(version) })

// planOf plans the embedded standard.
func planOf(t testing.TB, sel result.Selection, shards int) *result.Plan {
	t.Helper()
	set, err := specs.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	cases, err := set.For(version)
	if err != nil {
		t.Fatal(err)
	}
	tests, err := catalogue()
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Make(plan.Request{Cases: cases, Tests: tests, Provider: "skeleton", Selection: sel, Shards: shards})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// manifestOf describes a cluster that has everything the standard speaks of.
func manifestOf(p *result.Plan, shard int) *result.Manifest {
	m := &result.Manifest{
		Declared: result.Declarations{Reboot: true},
		Schema:   result.ManifestSchema, RunID: "ideal", PlanDigest: p.Digest, Shard: shard, Attempt: 1,
		E2EVersion: version, Kubectl: "/usr/bin/kubectl", Steering: "admission policy", Started: began,
		Cluster: result.Facts{ServerVersion: version, APIGroups: []string{"apps", "metrics.k8s.io", "windows.k8s.io"}},
	}
	for i := range 4 {
		n := result.Node{
			Name: fmt.Sprintf("linux-%d", i), OS: specs.Linux, Ready: true,
			ContainerRuntime: "containerd://2.1.0", PodCIDRs: []string{"10.0.0.0/24", "fd00::/64"},
		}
		if i >= 2 {
			n.Name, n.OS, n.WindowsBuild = fmt.Sprintf("windows-%d", i-2), specs.Windows, "10.0.20348"
		}
		m.Cluster.Nodes = append(m.Cluster.Nodes, n)
	}
	return m
}

// observation is a pod of a test, with the role that it plays.
func observation(p *result.Plan, t *result.PlannedTest) []result.Pod {
	var pods []result.Pod
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
					Test: t.ID, Attempt: 1, Namespace: "x-" + string(os), Name: podName(role.Pods), Node: string(os) + "-0", OS: os, Phases: []string{"Pending", "Running"},
					Images: []string{"registry.k8s.io/e2e-test-images/nginx:1.15-4"}, Started: !role.NeverStarts,
				}
				if role.NeverStarts && role.OS == specs.AnyOS {
					pod.Node, pod.OS, pod.Phases = "", "", []string{"Pending"}
				}
				if pod.OS == specs.Windows {
					pod.PodOS = specs.Windows
					pod.WindowsBuild = "10.0.20348"
					pod.Images = []string{"mirror.example:5000/e2e/agnhost:2.63.0", "registry.k8s.io/pause@sha256:00"}
				}
				pods = append(pods, pod)
			}
		}
	}
	return pods
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

// ideal writes the results folder of a run in which everything went as the
// standard wants it, and reads it back.
func ideal(t testing.TB, p *result.Plan, shard int) *result.Run {
	t.Helper()
	run, err := result.Load(idealFolder(t, p, shard))
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func idealFolder(t testing.TB, p *result.Plan, shard int) string {
	t.Helper()
	dir := t.TempDir()
	folder, err := result.Create(dir, p, manifestOf(p, shard))
	if err != nil {
		t.Fatal(err)
	}
	var decided []result.Decision
	for i := range p.Cases {
		if c := &p.Cases[i]; c.Check == verdict.CheckLinuxConformance && c.Shard == shard {
			decided = append(decided, result.Decision{ID: c.ID, Outcome: string(verdict.Passed)})
		}
	}
	events := recorded.Execution(p, shard, began, decided, func(test *result.PlannedTest) []recorded.Try {
		return []recorded.Try{{TestRun: result.TestRun{State: result.TestPassed, Seconds: 1}, Pods: observation(p, test)}}
	})
	if err := folder.Append(events...); err != nil {
		t.Fatal(err)
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// copyOf returns a run that can be changed without changing the original, but
// for its plan.
func copyOf(run *result.Run) *result.Run {
	c := *run
	m := *run.Manifest
	m.Cluster.Nodes = slices.Clone(m.Cluster.Nodes)
	c.Manifest = &m
	c.Attempts = maps.Clone(run.Attempts)
	c.Unfinished = maps.Clone(run.Unfinished)
	c.Decisions = maps.Clone(run.Decisions)
	c.Pods = slices.Clone(run.Pods)
	c.Problems = slices.Clone(run.Problems)
	return &c
}

// gates reports whether a test serves a case that gates.
func gates(p *result.Plan, test *result.PlannedTest) bool {
	return slices.ContainsFunc(test.Cases, func(id string) bool { return caseOf(p, id).Gates() })
}

func caseOf(p *result.Plan, id string) *result.PlannedCase {
	i := slices.IndexFunc(p.Cases, func(c result.PlannedCase) bool { return c.ID == id })
	if i < 0 {
		panic("no case " + id)
	}
	return &p.Cases[i]
}

func outcomeOf(t testing.TB, j *verdict.Judgement, id string) *verdict.CaseResult {
	t.Helper()
	for i := range j.Cases {
		if j.Cases[i].Case.ID == id {
			return &j.Cases[i]
		}
	}
	t.Fatalf("the judgement has no case %s", id)
	return nil
}

// want judges a run and compares verdict and exit code.
func want(t testing.TB, what string, run *result.Run, v verdict.Verdict, code int) *verdict.Judgement {
	t.Helper()
	j := verdict.Judge(run)
	if j.Verdict != v || j.ExitCode() != code {
		t.Errorf("%s: %s with exit code %d, want %s with %d; reasons %q", what, j.Verdict, j.ExitCode(), v, code, j.Reasons)
	}
	if (j.Verdict == verdict.Ready) != (len(j.Reasons) == 0) {
		t.Errorf("%s: %s for the reasons %q", what, j.Verdict, j.Reasons)
	}
	return j
}

func ready(t testing.TB, what string, run *result.Run) *verdict.Judgement {
	t.Helper()
	return want(t, what, run, verdict.Ready, verdict.ExitReady)
}

func inconclusive(t testing.TB, what string, run *result.Run) *verdict.Judgement {
	t.Helper()
	return want(t, what, run, verdict.Inconclusive, verdict.ExitInconclusive)
}

func TestIdealResultsAreReady(t *testing.T) {
	for _, additional := range []bool{false, true} {
		p := planOf(t, result.Selection{Additional: additional}, 1)
		j := ready(t, "the ideal folder", ideal(t, p, 1))
		want := verdict.Counts{}
		for i := range p.Cases {
			c := &p.Cases[i]
			if c.Kind != specs.Requirement {
				continue
			}
			want.Total++
			switch c.Proof {
			case specs.ProofFull:
				want.Proven++
			case specs.ProofPart:
				want.Parts++
			}
		}
		if j.Counts != want || want.Proven == 0 || want.Parts == 0 {
			t.Errorf("the counts are %v, and the specs have %v", j.Counts, want)
		}
		if j.Scope.Kind != verdict.ScopeCluster || len(j.Beside) != 0 {
			t.Errorf("scope %q, beside %q", j.Scope, j.Beside)
		}
		for _, c := range j.Categories {
			if c.Verdict != verdict.Ready {
				t.Errorf("%s is %s", c.Category, c.Verdict)
			}
		}
		for i := range j.Cases {
			if c := &j.Cases[i]; !c.Outcome.Good() && c.Outcome != verdict.NotImplemented {
				t.Errorf("%s is %s: %s", c.Case.ID, c.Outcome, c.Reason)
			}
		}
	}
}

// changes of one test, each with what becomes of the cases that it serves.
var testChanges = map[string]struct {
	change  func(run *result.Run, id string)
	outcome verdict.Outcome
	verdict verdict.Verdict
	code    int
}{
	"failed":  {finished(result.TestFailed), verdict.Failed, verdict.NotReady, verdict.ExitNotReady},
	"skipped": {finished(result.TestSkipped), verdict.NotTested, verdict.Inconclusive, verdict.ExitInconclusive},
	"error":   {finished(result.TestError), verdict.Error, verdict.Inconclusive, verdict.ExitInconclusive},
	"missing": {
		func(run *result.Run, id string) { delete(run.Attempts, id) },
		verdict.Error, verdict.Inconclusive, verdict.ExitInconclusive,
	},
	"unfinished": {
		func(run *result.Run, id string) {
			run.Unfinished[id] = run.Attempts[id][0]
			delete(run.Attempts, id)
		},
		verdict.Error, verdict.Inconclusive, verdict.ExitInconclusive,
	},
	"failed, and then in error": {
		finished(result.TestFailed, result.TestError), verdict.Failed, verdict.NotReady, verdict.ExitNotReady,
	},
	"failed, and then skipped": {
		finished(result.TestFailed, result.TestSkipped), verdict.Failed, verdict.NotReady, verdict.ExitNotReady,
	},
	"passed, and then failed": {
		finished(result.TestPassed, result.TestFailed), verdict.Failed, verdict.NotReady, verdict.ExitNotReady,
	},
}

// finished gives a test attempts that ended in these states.
func finished(states ...result.TestState) func(run *result.Run, id string) {
	return func(run *result.Run, id string) {
		var attempts []result.TestRun
		for i, state := range states {
			attempts = append(attempts, result.TestRun{ID: id, Attempt: i + 1, Batch: "01", State: state, Message: "because"})
		}
		run.Attempts[id] = attempts
	}
}

func TestEveryTestOfAGatingCaseCounts(t *testing.T) {
	p := planOf(t, result.Selection{Additional: true}, 1)
	base := ideal(t, p, 1)
	counts := map[bool]int{}
	for i := range p.Tests {
		test := &p.Tests[i]
		counts[gates(p, test)]++
		for what, change := range testChanges {
			what = fmt.Sprintf("%s (%s) %s", test.Name, test.Conditions, what)
			run := copyOf(base)
			change.change(run, test.ID)
			var j *verdict.Judgement
			if gates(p, test) {
				j = want(t, what, run, change.verdict, change.code)
			} else {
				j = ready(t, what, run)
			}
			for _, id := range test.Cases {
				if c := outcomeOf(t, j, id); c.Outcome != change.outcome {
					t.Errorf("%s: %s is %s, want %s", what, id, c.Outcome, change.outcome)
				}
			}
		}
	}
	if counts[true] < 20 || counts[false] < 20 {
		t.Errorf("%d gating tests and %d others: the plan is not the whole standard", counts[true], counts[false])
	}
}

func TestARetryThatPassesIsFlakyAndReady(t *testing.T) {
	p := planOf(t, result.Selection{}, 1)
	base := ideal(t, p, 1)
	for i := range p.Tests {
		test := &p.Tests[i]
		run := copyOf(base)
		finished(result.TestFailed, result.TestPassed)(run, test.ID)
		for k := range run.Pods {
			if run.Pods[k].Test == test.ID {
				run.Pods[k].Attempt = 2
			}
		}
		j := ready(t, test.Name+" flaky", run)
		for _, id := range test.Cases {
			if c := outcomeOf(t, j, id); c.Outcome != verdict.Flaky {
				t.Errorf("%s: %s is %s", test.Name, id, c.Outcome)
			}
		}
		if j.Counts != verdict.Judge(base).Counts {
			t.Errorf("%s: flaky cases count as %v", test.Name, j.Counts)
		}
		// Pods of the attempt that failed prove nothing for the one that passed.
		for k := range run.Pods {
			if run.Pods[k].Test == test.ID {
				run.Pods[k].Attempt = 1
			}
		}
		if gates(p, test) {
			inconclusive(t, test.Name+" flaky, with the pods of the first attempt", run)
		}
		// An attempt in error before a pass is not a failure.
		run = copyOf(base)
		finished(result.TestError, result.TestPassed)(run, test.ID)
		for k := range run.Pods {
			if run.Pods[k].Test == test.ID {
				run.Pods[k].Attempt = 2
			}
		}
		if c := outcomeOf(t, ready(t, test.Name+" after an error", run), test.Cases[0]); c.Outcome != verdict.Passed {
			t.Errorf("%s after an error is %s", test.Name, c.Outcome)
		}
	}
}
