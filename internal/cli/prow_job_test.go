package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
)

// inProw runs a command in the environment of a decorated presubmit.
func (s *scene) inProw(signals <-chan os.Signal, artifacts, grace string, args ...string) said {
	var out, errs bytes.Buffer
	code := Main(context.Background(), args, Surroundings{
		Environ: append(s.environ(), "ARTIFACTS="+artifacts, "BUILD_ID=1750000000000000001",
			`JOB_SPEC={"type":"presubmit","job":"pull-windows-op-readiness","buildid":"1750000000000000001","prowjobid":"x",`+
				`"refs":{"org":"o","repo":"r","base_ref":"main","base_sha":"aaaa","pulls":[{"number":7,"author":"me","sha":"bbbb"}]},`+
				`"decoration_config":{"timeout":"1h0m0s","grace_period":"`+grace+`"}}`),
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Signals: signals,
	})
	return said{code, out.String(), errs.String()}
}

func TestInAProwJobTheRunFindsWhatItNeeds(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	got := s.inProw(nil, s.dir, "15m0s", "run", "--kubeconfig", s.kubeconfig, "--e2e-binary", s.fake.Binary(), "--spec-dir", s.specs)
	s.want("the run", got, verdict.ExitReady)
	m := s.results().Manifest
	if m.RunID != "1750000000000000001" || m.Source.Pull != 7 || m.Source.Commit != "bbbb" || m.Source.Job != "pull-windows-op-readiness" {
		t.Errorf("run %s of %+v", m.RunID, m.Source)
	}
}

// Decoration looks for metadata.json in $ARTIFACTS itself, and for JUnit below.
func TestResultsElsewhereAreDeliveredToProw(t *testing.T) {
	for what, c := range map[string]struct {
		dir   func(artifacts string) string
		junit int
	}{
		"below":   {func(artifacts string) string { return filepath.Join(artifacts, "shard-1") }, 0},
		"outside": {func(string) string { return filepath.Join(t.TempDir(), "results") }, 1},
	} {
		s := newScene(t, e2etest.Script{})
		artifacts := filepath.Join(t.TempDir(), "[artifacts]")
		s.dir = c.dir(artifacts)
		s.want(what, s.inProw(nil, artifacts, "15m0s", s.args()...), verdict.ExitReady)
		if data, err := os.ReadFile(filepath.Join(artifacts, "metadata.json")); err != nil || !strings.Contains(string(data), `"Commit": "bbbb"`) {
			t.Errorf("%s: metadata %v: %s", what, err, data)
		}
		entries, _ := os.ReadDir(artifacts)
		junit := 0
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), "junit_") {
				junit++
			}
		}
		if junit != c.junit {
			t.Errorf("%s: %d JUnit files in $ARTIFACTS, want %d", what, junit, c.junit)
		}
	}
}

// Prow's entrypoint passes a SIGTERM on as SIGINT and SIGTERM.
func TestAnAbortByProwIsOneInterrupt(t *testing.T) {
	s := newScene(t, e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Hang}}})
	signals := make(chan os.Signal)
	done := make(chan said, 1)
	go func() { done <- s.inProw(signals, s.dir, "15m0s", s.args()...) }()
	eventually(t, "the test that hangs has started", func() bool { return s.starts("[sig-x] b") == 1 })
	signals <- os.Interrupt
	signals <- syscall.SIGTERM
	s.want("the run", <-done, verdict.ExitInterrupted)
	if run := s.results(); run.Batches[0].Exit != "exit code 1" || !run.Interrupted {
		t.Errorf("the tests did not stop gracefully: %+v", run.Batches[0])
	}
}

// A job that has little time after the interrupt does not wait two minutes for
// e2e.test, and what it knew at the interrupt is on disk at once.
func TestAShortGracePeriodIsKept(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for a grace period")
	}
	s := newScene(t, e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Deaf}}})
	signals := make(chan os.Signal)
	done := make(chan said, 1)
	go func() { done <- s.inProw(signals, s.dir, "8s", s.args()...) }()
	eventually(t, "the test that does not stop has started", func() bool { return s.starts("[sig-x] b") == 1 })
	signals <- os.Interrupt
	eventually(t, "results so far are written", func() bool {
		_, err := os.Stat(filepath.Join(s.dir, "metadata.json"))
		return err == nil
	})
	if run := s.results(); run.Finished || !run.Manifest.Finished.IsZero() {
		t.Errorf("the run passes for finished while it stops: %+v", run.Manifest)
	}
	s.want("the run", <-done, verdict.ExitInterrupted)
	if run := s.results(); run.Batches[0].Exit != "signal: killed" || !run.Finished {
		t.Errorf("finished %t, batch %+v", run.Finished, run.Batches[0])
	}
}

func TestTimeLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for a time limit")
	}
	s := newScene(t, e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Hang, e2etest.Pass}}})
	s.want("the run", s.main(s.args("--time-limit", "3s")...), verdict.ExitInconclusive, "the run's time is up: stopping", "the run's time was up before its turn")
	run := s.results()
	if run.Interrupted || !run.OutOfTime || !run.Manifest.OutOfTime || *run.Manifest.ExitCode != verdict.ExitInconclusive {
		t.Errorf("manifest %+v", run.Manifest)
	}
	s.want("the run that goes on", s.main("run", "--resume", s.dir), verdict.ExitReady)
	if m := s.results().Manifest; m.OutOfTime {
		t.Error("the run that came to its end passes for one out of time")
	}
	s.want("too little", s.main(s.args("--time-limit", "1ms")...), verdict.ExitUsage, "--time-limit: at least 1s, not 1ms")
}

// A script that cleans up after this program keeps some of the job's time.
func TestBeforeTimeout(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	args := []string{"run", "--kubeconfig", s.kubeconfig, "--e2e-binary", s.fake.Binary(), "--spec-dir", s.specs}
	s.want("time enough", s.inProw(nil, s.dir, "15m0s", append(args, "--before-timeout", "20m")...), verdict.ExitReady)
	s.want("all time used", s.inProw(nil, filepath.Join(t.TempDir(), "late"), "15m0s", append(args, "--before-timeout", "60m")...), verdict.ExitInconclusive,
		"no time is left to test", "1h0m0s of --before-timeout", "give the job a longer timeout")
	s.want("no job", s.main(s.args("--before-timeout", "20m")...), verdict.ExitUsage, "--before-timeout: this is not a decorated Prow job", "use --time-limit")
	s.want("too little", s.main(s.args("--before-timeout", "1ms")...), verdict.ExitUsage, "--before-timeout: at least 1s, not 1ms")
}
