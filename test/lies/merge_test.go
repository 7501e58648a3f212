//go:build unix

package lies

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
)

// shardsOf runs two shards of one run, and returns their folders.
func (s *scene) shardsOf() []string {
	s.t.Helper()
	var dirs []string
	for _, shard := range []string{"1", "2"} {
		s.dir = filepath.Join(s.t.TempDir(), "shard")
		s.believed(s.run("--shards", "2", "--shard", shard, "--run-id", "lies"))
		s.manifest(func(m *result.Manifest) { m.Source.Commit = "c1" })
		dirs = append(dirs, s.dir)
	}
	return dirs
}

func (s *scene) merge(dirs ...string) said {
	s.t.Helper()
	return s.main(append([]string{"merge", "--report-dir", filepath.Join(s.t.TempDir(), "merged")}, dirs...)...)
}

func TestShardsThatAreNotAlike(t *testing.T) {
	t.Parallel()
	s := newScene(t, truth)
	dirs := s.shardsOf()
	s.believed(s.merge(dirs...), "READY")
	windows := func(change func(n *result.Node)) func(m *result.Manifest) {
		return func(m *result.Manifest) {
			for i := range m.Cluster.Nodes {
				if m.Cluster.Nodes[i].OS == "windows" {
					change(&m.Cluster.Nodes[i])
				}
			}
		}
	}
	for what, change := range map[string]func(m *result.Manifest){
		"another version of op-readiness": func(m *result.Manifest) { m.ToolVersion = "v9.8.7" },
		"no version of op-readiness":      func(m *result.Manifest) { m.ToolVersion = "" },
		"another version of Kubernetes":   func(m *result.Manifest) { m.Cluster.ServerVersion = "v1.36.0" },
		"another e2e.test":                func(m *result.Manifest) { m.E2EVersion = "v1.36.0" },
		"another Windows build":           windows(func(n *result.Node) { n.WindowsBuild = "10.0.26100" }),
		"another runtime":                 windows(func(n *result.Node) { n.ContainerRuntime = "containerd://1.7.0" }),
		"another kubelet":                 windows(func(n *result.Node) { n.KubeletVersion = "v1.35.0" }),
		"other declarations":              func(m *result.Manifest) { m.Declared.Without = []string{"gmsa"} },
		"an air-gapped cluster":           func(m *result.Manifest) { m.Declared.AirGapped = true },
		"simulated nodes":                 windows(func(n *result.Node) { n.Simulated = true }),
		"another run":                     func(m *result.Manifest) { m.RunID = "truth" },
		"another plan":                    func(m *result.Manifest) { m.PlanDigest = "sha256:0" },
		"the same shard":                  func(m *result.Manifest) { m.Shard = 1 },
		"another commit":                  func(m *result.Manifest) { m.Source.Commit = "c2" },
	} {
		s.dir = copyOf(t, dirs[1])
		s.manifest(change)
		if got := s.merge(dirs[0], s.dir); got.code == 0 {
			t.Errorf("a shard of %s is merged into %s", what, got.stdout)
		}
	}
	for what, change := range map[string]func(m *result.Manifest){
		"other names of nodes": windows(func(n *result.Node) { n.Name += "-of-another-cluster" }),
		"another API group":    func(m *result.Manifest) { m.Cluster.APIGroups = append(m.Cluster.APIGroups, "x.example") },
		"a node more": func(m *result.Manifest) {
			n := m.Cluster.Nodes[3]
			n.Name = "windows-2"
			m.Cluster.Nodes = append(m.Cluster.Nodes, n)
		},
	} {
		s.dir = copyOf(t, dirs[1])
		s.manifest(change)
		if got := s.merge(dirs[0], s.dir); got.code != 0 {
			t.Errorf("a shard of %s is not merged: %s%s", what, got.stdout, got.stderr)
		}
	}
	if got := s.merge(dirs[0]); got.code == 0 {
		t.Errorf("one shard of two is %s", got.stdout)
	}
}

var leaksAtFirst = tell("an older attempt that leaks", once(lie{after: func(*program) { ginkgo.Fail("it leaks") }}))

// attempts are two of one shard, the newer one without a result of the third
// test.
func (s *scene) attempts(older []string) []string {
	s.t.Helper()
	dirs := []string{filepath.Join(s.t.TempDir(), "one"), filepath.Join(s.t.TempDir(), "two")}
	for i, dir := range dirs {
		s.dir = dir
		args := []string{"--run-id", "lies", "--attempt", []string{"1", "2"}[i]}
		if i == 0 {
			args = append(args, older...)
		}
		s.run(args...)
	}
	id := result.TestID(third, result.RunConditions{})
	s.edit(func(e *result.Event) bool {
		if e.Batch != nil && e.Batch.Tests == 3 {
			e.Batch.Tests = 2
		}
		return (e.Test == nil || e.Test.ID != id) && (e.Pod == nil || e.Pod.Test != id)
	})
	return dirs
}

func TestANewestAttemptThatLacksAResult(t *testing.T) {
	t.Parallel()
	s := newScene(t, truth)
	dirs := s.attempts(nil)
	s.disbelieved(s.main("report", dirs[1]))
	s.disbelieved(s.merge(dirs...))
}

func TestASuiteFailureOfAnOlderAttempt(t *testing.T) {
	t.Parallel()
	s := newScene(t, leaksAtFirst)
	dirs := s.attempts([]string{"--retries", "0"})
	s.disbelieved(s.merge(dirs...))
}

func TestABuildIsNotMoreThanItsFolders(t *testing.T) {
	t.Parallel()
	s := newScene(t, truth)
	dirs := s.shardsOf()
	merged := filepath.Join(t.TempDir(), "merged")
	s.believed(s.main("merge", "--report-dir", merged, dirs[0], dirs[1]))
	s.dir = merged
	for what, change := range map[string]func(m *result.Manifest){
		"a shard less":          func(m *result.Manifest) { m.Shards = m.Shards[:1] },
		"a shard twice":         func(m *result.Manifest) { m.Shards[1] = m.Shards[0] },
		"no shards":             func(m *result.Manifest) { m.Shards = nil },
		"a shard of its own":    func(m *result.Manifest) { m.Shard = 1 },
		"a shard not finished":  func(m *result.Manifest) { m.Shards[0].Finished = time.Time{} },
		"a shard interrupted":   func(m *result.Manifest) { m.Shards[0].Interrupted = true },
		"a shard of a problem":  func(m *result.Manifest) { m.Problems = []string{"x"} },
		"a shard of other runs": func(m *result.Manifest) { m.Shards[0].RunID = "x" },
	} {
		s.dir = copyOf(t, merged)
		s.manifest(func(m *result.Manifest) {
			before, _ := json.Marshal(m)
			change(m)
			if after, _ := json.Marshal(m); string(before) == string(after) {
				t.Fatalf("%s changes nothing", what)
			}
		})
		if got := s.main("report", s.dir); got.code == 0 {
			t.Errorf("%s: %s", what, got.stdout)
		}
	}
}
