package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
)

const uncheckedMinor = "no case was checked against Kubernetes 1.32: test one of 1.33, 1.34, 1.35, 1.36"

func TestAMinorThatNobodyCheckedIsRefused(t *testing.T) {
	s := newScene(t, e2etest.Script{Version: "v1.32.13"})
	s.version = "v1.32.13"
	empty := filepath.Join(t.TempDir(), "cache")
	for what, args := range map[string][]string{
		"a plan":                          {"plan", "--kubernetes-version", "v1.32.13"},
		"a plan as a matrix":              {"plan", "--kubernetes-version", "v1.32.13", "-o", "github-matrix"},
		"a plan of a binary":              {"plan", "--e2e-binary", s.fake.Binary()},
		"a dry run":                       {"run", "--dry-run", "--kubernetes-version", "v1.32.13"},
		"a dry run of a binary":           {"run", "--dry-run", "--e2e-binary", s.fake.Binary()},
		"a run":                           {"run", "--kubeconfig", s.kubeconfig, "--report-dir", s.dir},
		"a run of a binary":               {"run", "--kubeconfig", s.kubeconfig, "--report-dir", s.dir, "--e2e-binary", s.fake.Binary()},
		"a run on a cluster of this tool": {"run", "--cluster", "kwok", "--report-dir", s.dir, "--kubernetes-version", "v1.32.13"},
	} {
		if slices.Index(args, "--e2e-binary") < 0 {
			args = append(args, "--cache-dir", empty)
		}
		s.want(what, s.main(args...), verdict.ExitUsage, uncheckedMinor)
		for _, left := range []string{s.dir, empty} {
			if _, err := os.Stat(left); err == nil {
				t.Errorf("%s: left %s", what, left)
			}
		}
	}
	// Spec files that are brought know themselves for which versions they are.
	s.want("other spec files", s.main("run", "--dry-run", "--e2e-binary", s.fake.Binary(), "--spec-dir", s.specs), verdict.ExitReady, "exactly 6 tests")
	s.write(filepath.Join(s.specs, "core-network.yaml"), `category: Core.Network
cases:
  - id: core-network-a
    requirement: Ability to a
    proof: full
    kubernetes: {from: "1.33"}
    tests:
      - focus: '\[sig-x\] a( \[|$)'
        expect: 1
    conditions:
      placement:
        - {pods: ^a$, os: windows}
    phase: parallel
    duration: 1m
`)
	s.want("spec files of later versions", s.main("run", "--dry-run", "--e2e-binary", s.fake.Binary(), "--spec-dir", s.specs), verdict.ExitUsage,
		"no case of "+s.specs+" has a test for Kubernetes v1.32.13")
}

func TestAMinorThatIsNewerThanAllThatAreKnownIsRun(t *testing.T) {
	const note = "no case was checked against Kubernetes 1.37: the newest is 1.36"
	s := newScene(t, e2etest.Script{Version: "v1.37.0"})
	s.version = "v1.37.0"
	ran := s.main(s.args()...)
	s.want("a run", ran, verdict.ExitReady, "READY")
	if !strings.Contains(ran.stderr, "warning: "+note) || !strings.Contains(ran.stdout, note) {
		t.Errorf("neither the narration nor the verdict says %q\nstdout:\n%s\nstderr:\n%s", note, ran.stdout, ran.stderr)
	}
	s.want("its report", s.main("report", s.dir), verdict.ExitReady, note)
	s.want("a dry run", s.main(s.args("--dry-run")...), verdict.ExitReady, "warning: "+note)
	s.want("a plan", s.main("plan", "--e2e-binary", s.fake.Binary(), "--spec-dir", s.specs), verdict.ExitReady, "warning: "+note)
}

func TestWhatSelectsNoTestSaysWhy(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	const host = `category: Extend.HostProcess
cases:
  - id: case-h
    requirement: The test a passes on the host.
    proof: full
    tests: [{focus: '\[sig-x\] a( \[|$)', expect: 1}]
    needs: {condition: [hpc]}
    conditions: {placement: [{pods: x, os: windows}]}
    phase: parallel
    duration: 1m
  - {id: case-n, requirement: Nothing shows it., proof: none, missing: A test.}
`
	s.write(filepath.Join(s.specs, "extend-hostprocess.yaml"), host)
	const declared = "case-h: declared: the cluster is without hpc (--without hpc)"
	s.want("a dry run without a capability", s.main(s.args("--dry-run", "--category", "Extend.HostProcess", "--without", "hpc")...), verdict.ExitInconclusive,
		"would run exactly 0 tests", declared, "case-n: no test exists")
	s.want("a dry run with it", s.main(s.args("--dry-run", "--category", "Extend.HostProcess")...), verdict.ExitReady, "would run exactly 1 test")
	s.want("a run without a capability", s.main(s.args("--category", "Extend.HostProcess", "--without", "hpc")...), verdict.ExitInconclusive,
		"There is nothing to run", declared, "no requirement in scope was tested and passed")
	for _, args := range [][]string{
		{"plan", "--e2e-binary", s.fake.Binary(), "--spec-dir", s.specs, "--case", "case-n", "--shards", "2"},
		{"plan", "--e2e-binary", s.fake.Binary(), "--spec-dir", s.specs, "--case", "case-n", "-o", "github-matrix"},
		s.args("--dry-run", "--case", "case-n", "--shards", "2", "--shard", "2"),
	} {
		s.want(strings.Join(args, " "), s.main(args...), verdict.ExitInconclusive, "There is nothing to run", "case-n: no test exists")
	}
	s.want("rules", s.main("plan", "--category", "Cluster.Rules"), verdict.ExitInconclusive, "and 5 more: rules are decided from facts, not by tests")
}

func TestAnEmptyShardSaysSoAndIsNoFailure(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	const shards = 7
	const says = "shard 7 of 7 is empty: the plan's 6 tests are in other shards"
	s.want("the plan", s.main("plan", "--e2e-binary", s.fake.Binary(), "--spec-dir", s.specs, "--shards", fmt.Sprint(shards)), verdict.ExitReady, "shard 7 of 7: empty, with nothing to run")
	s.want("its dry run", s.main(s.args("--dry-run", "--shards", fmt.Sprint(shards), "--shard", fmt.Sprint(shards))...), verdict.ExitReady, says)
	merge := []string{"merge"}
	top := s.dir
	for shard := 1; shard <= shards; shard++ {
		s.dir = filepath.Join(top, fmt.Sprint(shard))
		merge = append(merge, s.dir)
		ran := s.main(s.args("--shards", fmt.Sprint(shards), "--shard", fmt.Sprint(shard), "--run-id", "r")...)
		s.want(fmt.Sprintf("shard %d", shard), ran, verdict.ExitReady)
		if shard == shards {
			s.want("the empty shard", ran, verdict.ExitReady, says, "NOT-ASKED", "there is nothing to run and nothing to judge here")
			if m := s.results().Manifest; m.Verdict != string(verdict.NotAsked) || *m.ExitCode != verdict.ExitReady {
				t.Errorf("its manifest says %s, %d", m.Verdict, *m.ExitCode)
			}
			s.want("its report", s.main("report", s.dir), verdict.ExitReady, "NOT-ASKED")
		}
	}
	s.want("all of them", s.main(append(merge, "--report-dir", filepath.Join(top, "merged"))...), verdict.ExitReady, "READY (0 proven, 6 in part")
	s.want("without the empty one", s.main(append(merge[:shards], "--report-dir", filepath.Join(top, "lacking"))...), verdict.ExitInconclusive, "shard 7 of 7 has no results")
}
