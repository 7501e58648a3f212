//go:build linux || darwin

// Command judge measures how long it takes to read and to judge the results of a
// run that saw very many pods.
//
// Usage, from the root of the repository:
//
//	go run ./test/bench/judge
//
// It makes two results folders of the whole standard in which every test passed
// and 450,000 pods were observed, each on a simulated node, where it should not
// have been: in one they are spread over all tests, in the other they are all of
// one test. Each is read and judged, as 'op-readiness report' does it, and must
// come to the verdict that nothing is proven. It exits with 1 when a target is
// missed, 2 when it could not measure.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/test/bench/target"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/plan"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
	"github.com/windows-op-readiness/windows-op-readiness/test/recorded"
)

const (
	pods    = 450_000
	version = "v1.36.3"
	// simulated is the node where all pods are.
	simulated = "windows-s"
	// want is the target: the time of reading and judging.
	want = 10 * time.Second
)

func main() { target.Exit(run()) }

func run() error {
	dir, err := os.MkdirTemp("", "bench-judge-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p, err := makePlan()
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tsize\tread\tjudged\tin all\ttarget\t")
	var missed error
	for _, spread := range []bool{true, false} {
		where := "all of one test"
		if spread {
			where = fmt.Sprintf("spread over %d tests", len(p.Tests))
		}
		fmt.Fprintf(os.Stderr, "bench: making %d pods, %s\n", pods, where)
		folder := filepath.Join(dir, fmt.Sprint(spread))
		if err := makeRun(folder, p, spread); err != nil {
			return err
		}
		m, err := measure(folder)
		if err != nil {
			return err
		}
		word := "PASS"
		if m.read+m.judged > want {
			word, missed = "FAIL", target.ErrMissed
		}
		fmt.Fprintf(w, "%d pods, %s\t%.0f MB\t%.1f s\t%.1f s\t%.1f s\t< %.0f s\t%s\n",
			pods, where, float64(m.size)/1e6, m.read.Seconds(), m.judged.Seconds(), (m.read + m.judged).Seconds(), want.Seconds(), word)
	}
	return errors.Join(w.Flush(), missed)
}

func makePlan() (*result.Plan, error) {
	set, err := specs.Embedded()
	if err != nil {
		return nil, err
	}
	cases, err := set.For(version)
	if err != nil {
		return nil, err
	}
	tests, err := specs.Catalogue(version)
	if err != nil {
		return nil, err
	}
	return plan.Make(plan.Request{Cases: cases, Tests: tests, Provider: "skeleton", Shards: 1})
}

// makeRun writes the results folder of a run in which every test passed.
func makeRun(dir string, p *result.Plan, spread bool) error {
	began := time.Now().Add(-time.Hour).UTC()
	facts := result.Facts{ServerVersion: version, APIGroups: []string{"apps", "windows.k8s.io", "metrics.k8s.io"}}
	for _, name := range []string{"linux-1", "linux-2", "windows-1", "windows-2", simulated} {
		n := result.Node{Name: name, OS: specs.Linux, Ready: true, ContainerRuntime: "containerd://2.1.4", PodCIDRs: []string{"10.0.0.0/24", "fd00::/64"}}
		if name >= "windows" {
			n.OS, n.WindowsBuild, n.Simulated = specs.Windows, "10.0.20348", name == simulated
		}
		facts.Nodes = append(facts.Nodes, n)
	}
	folder, err := result.Create(dir, p, &result.Manifest{
		Schema: result.ManifestSchema, RunID: "bench", PlanDigest: p.Digest, Shard: 1, Attempt: 1, E2EVersion: version,
		Steering: "admission policy", Kubectl: "kubectl", Started: began, Cluster: facts,
	})
	if err != nil {
		return err
	}
	defer folder.Close()
	role := prefixes(p)
	crowded := slices.IndexFunc(p.Tests, func(t result.PlannedTest) bool { return role[t.ID] != "" })
	tries := map[string][]recorded.Try{}
	for i := range p.Tests {
		each := 0
		if spread {
			each = pods*(i+1)/len(p.Tests) - pods*i/len(p.Tests)
		} else if i == crowded {
			each = pods
		}
		id := p.Tests[i].ID
		tries[id] = []recorded.Try{{TestRun: result.TestRun{State: result.TestPassed, Seconds: 1}, Pods: observed(cmp.Or(role[id], "pod-"), each)}}
	}
	return folder.Append(recorded.Execution(p, 1, began, nil, func(t *result.PlannedTest) []recorded.Try { return tries[t.ID] })...)
}

// prefixes are the beginnings of the names of pods that play a role in a test, by
// its id, where a role is as simple as "^prefix-".
func prefixes(p *result.Plan) map[string]string {
	simple := regexp.MustCompile(`^\^([a-z-]+-)$`)
	found := map[string]string{}
	for _, c := range p.Cases {
		for _, place := range c.Conditions.Placement {
			if m := simple.FindStringSubmatch(place.Pods); m != nil {
				for _, id := range c.TestIDs {
					found[id] = m[1]
				}
			}
		}
	}
	return found
}

// observed are so many pods of one attempt.
func observed(prefix string, pods int) []result.Pod {
	var out []result.Pod
	for i := range pods {
		out = append(out, result.Pod{
			Namespace: "x-1", Name: fmt.Sprint(prefix, pods-i), Node: simulated, OS: specs.Windows, WindowsBuild: "10.0.20348", Simulated: true, Started: true,
			Images: []string{"registry.k8s.io/pause"},
		})
	}
	return out
}

// measured is how long one folder took.
type measured struct {
	size         int64
	read, judged time.Duration
}

func measure(dir string) (m measured, err error) {
	events, err := os.Stat(filepath.Join(dir, result.EventsFile))
	if err != nil {
		return m, err
	}
	m.size = events.Size()
	began := time.Now()
	run, err := result.Load(dir)
	if err != nil {
		return m, err
	}
	m.read = time.Since(began)
	j := verdict.Judge(run)
	m.judged = time.Since(began) - m.read
	if len(run.Problems) > 0 {
		return m, fmt.Errorf("the folder cannot be measured: %s", run.Problems[0])
	}
	if len(run.Pods) != pods || j.Verdict != verdict.Inconclusive || j.Outcomes[verdict.Unproven] == 0 {
		return m, fmt.Errorf("%d pods were read, and the verdict is %s with %d unproven cases", len(run.Pods), j.Verdict, j.Outcomes[verdict.Unproven])
	}
	return m, nil
}
