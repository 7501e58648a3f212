package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
)

// runShards runs the shards of one run of the scene into folders of their own
// below the one that is returned.
func runShards(s *scene, shards, attempt string, only ...string) string {
	s.t.Helper()
	artifacts := s.t.TempDir()
	for _, shard := range only {
		s.dir = filepath.Join(artifacts, "shard-"+shard+"-attempt-"+attempt)
		s.main(s.args("--run-id", "nightly", "--shards", shards, "--shard", shard, "--attempt", attempt)...)
	}
	return artifacts
}

func TestMergeJudgesTheWholeRun(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	artifacts := runShards(s, "2", "1", "1", "2")
	s.dir = filepath.Join(t.TempDir(), "merged")
	s.want("two good shards", s.main("merge", artifacts, "--report-dir", s.dir), verdict.ExitReady, "READY", "shard 2 of 2, attempt 1")
	for _, name := range []string{"junit_core-network_01.xml", result.MetadataFile, "logs/shard-1-attempt-1/batch-01.log", "logs/shard-2-attempt-1/batch-01.log"} {
		if _, err := os.Stat(filepath.Join(s.dir, name)); err != nil {
			t.Error(err)
		}
	}
	s.want("the report on it", s.main("report", s.dir), verdict.ExitReady, "READY")
	s.want("a second merge into it", s.main("merge", artifacts, "--report-dir", s.dir), verdict.ExitUsage, "already holds a run")
	s.want("a merge of what is merged", s.main("merge", s.dir, "--report-dir", s.dir+"2"), verdict.ExitUsage, "was merged already")
}

func TestMergeNamesWhatIsMissing(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	artifacts := runShards(s, "2", "1", "2")
	s.want("one of two shards", s.main("merge", artifacts, "--report-dir", filepath.Join(t.TempDir(), "m")),
		verdict.ExitInconclusive, "INCONCLUSIVE", "shard 1 of 2 has no results: nothing accounts for core-network-")
}

func TestMergeOfARerunIsFlaky(t *testing.T) {
	s := newScene(t, e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Fail}}})
	first := runShards(s, "1", "1", "1")
	s.want("the first attempt", s.main("report", s.dir), verdict.ExitNotReady)
	s.fake.Rewrite(t, e2etest.Script{Version: "v1.36.3", Tests: sceneTests})
	second := runShards(s, "1", "2", "1")
	s.want("both attempts", s.main("merge", second, first, "--report-dir", filepath.Join(t.TempDir(), "m")), verdict.ExitReady, "flaky", "passed in attempt 2")
}

func TestMergeUsage(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	s.want("no folder", s.main("merge"), verdict.ExitUsage)
	s.want("no report folder", s.main("merge", t.TempDir()), verdict.ExitUsage, "--report-dir")
	s.want("nothing in it", s.main("merge", t.TempDir(), "--report-dir", s.dir), verdict.ExitUsage, "holds no results folder")
	s.want("it is not there", s.main("merge", "/none", "--report-dir", s.dir), verdict.ExitUsage, "/none")
	s.want("another format", s.main("merge", ".", "--report-dir", s.dir, "-o", "xml"), verdict.ExitUsage, "--output")
	s.want("another run's attempt", s.main(s.args("--attempt", "-1")...), verdict.ExitUsage, "--attempt")
}

func TestAttemptsAreThoseOfTheWorkflow(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	var out, errs strings.Builder
	Main(t.Context(), s.args(), Surroundings{Environ: append(s.environ(), "GITHUB_RUN_ATTEMPT=3"), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
	if n := s.results().Manifest.Attempt; n != 3 {
		t.Errorf("attempt %d, and the workflow runs for the third time", n)
	}
}
