package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
	"github.com/windows-op-readiness/windows-op-readiness/test/fulldisk"
)

func TestExitCodeOfARun(t *testing.T) {
	for what, c := range map[string]struct {
		script e2etest.Script
		code   int
		says   string
	}{
		"all pass":             {e2etest.Script{}, verdict.ExitReady, "ready"},
		"one fails":            {e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Fail}}}, verdict.ExitNotReady, "expected a Windows node"},
		"one skips itself":     {e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Skip}}}, verdict.ExitInconclusive, "the test skipped itself"},
		"one kills e2e.test":   {e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Kill}}}, verdict.ExitInconclusive, "signal: killed"},
		"one is nowhere":       {e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Silent}}}, verdict.ExitInconclusive, "neither e2e.test's output nor its report"},
		"one is told twice":    {e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Lie}}}, verdict.ExitNotReady, "reconciliation"},
		"its failure is lost":  {e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.FakePass}}}, verdict.ExitNotReady, "reconciliation"},
		"its pass is lost":     {e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Unsaid}}}, verdict.ExitInconclusive, "the output does not have its end"},
		"nothing runs":         {e2etest.Script{Suite: []string{e2etest.Nothing}}, verdict.ExitInconclusive, "ran none of 4 tests"},
		"BeforeSuite fails":    {e2etest.Script{Suite: []string{e2etest.FailBefore}}, verdict.ExitInconclusive, "schedulable nodes"},
		"a failure and a kill": {e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Kill}, "[sig-x] c": {e2etest.Fail}}}, verdict.ExitNotReady, "core-network-c failed"},
	} {
		s := newScene(t, c.script)
		s.want(what, s.main(s.args()...), c.code, c.says)
		if run := s.results(); *run.Manifest.ExitCode != c.code || run.Manifest.Finished.IsZero() {
			t.Errorf("%s: the manifest says %d, finished %v", what, *run.Manifest.ExitCode, run.Manifest.Finished)
		}
		if _, err := os.Stat(filepath.Join(s.dir, "junit_core-network_01.xml")); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		// Judging the folder again says the same.
		s.want(what+", reported", s.main("report", s.dir), c.code)
	}
}

func TestRetriesMakeAFlakyCase(t *testing.T) {
	s := newScene(t, e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Fail, e2etest.Pass}}})
	s.want("a flaky test", s.main(s.args("--retries", "1", "--procs", "2")...), verdict.ExitReady, "flaky", "attempt 2")
}

func TestRunWithoutACluster(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	empty, garbage := filepath.Join(t.TempDir(), "empty"), filepath.Join(t.TempDir(), "garbage")
	s.write(empty, "")
	s.write(garbage, "\x00{")
	closed := httptest.NewServer(nil)
	closed.Close()
	unreachable := filepath.Join(t.TempDir(), "unreachable")
	s.write(unreachable, kubeconfigOf(closed.URL))
	html := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("<html>hello</html>"))
	}))
	defer html.Close()
	other := filepath.Join(t.TempDir(), "other")
	s.write(other, kubeconfigOf(html.URL))
	common := []string{"--e2e-binary", s.fake.Binary(), "--spec-dir", s.specs, "--report-dir", s.dir}
	for what, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"none at all":     {nil, verdict.ExitUsage, "no kubeconfig: name one with --kubeconfig or $KUBECONFIG"},
		"a missing file":  {[]string{"--kubeconfig", "/none"}, verdict.ExitUsage, "there is no kubeconfig at /none"},
		"an empty file":   {[]string{"--kubeconfig", empty}, verdict.ExitUsage, "names no cluster"},
		"garbage":         {[]string{"--kubeconfig", garbage}, verdict.ExitUsage, garbage},
		"another context": {[]string{"--kubeconfig", s.kubeconfig, "--context", "y"}, verdict.ExitUsage, `context "y" does not exist`},
		"no server":       {[]string{"--kubeconfig", unreachable}, verdict.ExitInconclusive, "the API server " + closed.URL + " does not answer"},
		"no Kubernetes":   {[]string{"--kubeconfig", other}, verdict.ExitInconclusive, "is not a Kubernetes API server"},
	} {
		s.want(what, s.main(append(append([]string{"run"}, common...), c.args...)...), c.code, c.says)
		if _, err := os.Stat(s.dir); err == nil {
			t.Errorf("%s: left a report folder", what)
		}
	}
}

func TestAServerThatGoesAwayHalfWay(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for two minutes")
	}
	t.Parallel() // it is asked again and again, for two minutes
	s := newScene(t, e2etest.Script{Do: map[string][]string{"[sig-x] e [Disruptive]": {e2etest.Outage}}})
	s.want("the run", s.main(s.args()...), verdict.ExitInconclusive, "does not answer", "core-network-e is error", "core-network-f is error")
	run := s.results()
	if a := run.Attempts[run.Plan.Cases[0].TestIDs[0]]; len(a) != 1 || a[0].State != result.TestPassed {
		t.Errorf("what had passed before: %+v", a)
	}
	// It comes back, and the run goes on: what had no fair run is run again.
	if err := os.Remove(s.fake.Outage()); err != nil {
		t.Fatal(err)
	}
	s.fake.Rewrite(t, e2etest.Script{Version: "v1.36.3", Tests: sceneTests})
	s.want("the run that goes on", s.main("run", "--resume", s.dir), verdict.ExitReady)
	if s.starts("[sig-x] a") != 1 {
		t.Errorf("started %q", s.fake.Starts(t))
	}
}

func TestReportFoldersThatCannotBeUsed(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	for what, dir := range map[string]string{
		"a file":                              s.kubeconfig,
		"a path in a file":                    filepath.Join(s.kubeconfig, "results"),
		"a file system that makes no folders": "/proc/op-readiness/results",
	} {
		s.dir = dir
		s.want(what, s.main(s.args()...), verdict.ExitUsage, "report")
	}
	if os.Geteuid() != 0 {
		s.dir = t.TempDir()
		if err := os.Chmod(s.dir, 0o555); err != nil {
			t.Fatal(err)
		}
		s.want("a read-only folder", s.main(s.args()...), verdict.ExitUsage, "--report-dir", "permission denied")
	}
	if len(s.requests) > 0 {
		t.Errorf("the cluster was asked first: %q", s.requests)
	}
}

func TestAFullDisk(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	logs := filepath.Join(s.dir, result.LogsDir)
	if err := os.MkdirAll(logs, 0o755); err != nil {
		t.Fatal(err)
	}
	fulldisk.Mount(t, logs, 4)
	fulldisk.Fill(t, logs)
	s.want("a full disk", s.main(s.args()...), verdict.ExitInconclusive, "no space left on device")
}

func TestAReportFolderThatIsRemovedEndsTheRun(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for as long as a folder may be gone")
	}
	t.Parallel() // it may come back, for 5 s
	s := newScene(t, e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Wait}}})
	done := make(chan said, 1)
	go func() { done <- s.main(s.args()...) }()
	eventually(t, "the run runs a test", func() bool { return s.starts("[sig-x] b") == 1 })
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	s.write(s.fake.Go(), "")
	got := <-done
	s.want("the run", got, verdict.ExitInconclusive, filepath.Join(s.dir, result.EventsFile)+" was removed while the run wrote it")
	if strings.Contains(got.stderr, "[sig-x] b") || s.starts("[sig-x] e [Disruptive]") > 0 {
		t.Errorf("the run went on:\n%s", got.stderr)
	}
}

func TestALockThatStaysIsToldOnce(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	s.leaseStays = true
	got := s.main(s.args()...)
	s.want("the run", got, verdict.ExitReady, "releasing the cluster, which happens by itself after 40s: ")
	if n := strings.Count(got.stderr, "releasing the cluster"); n != 1 {
		t.Errorf("it is told %d times:\n%s", n, got.stderr)
	}
}

func TestTwoRunsIntoOneFolder(t *testing.T) {
	s := newScene(t, e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Wait}}})
	first := make(chan said, 1)
	go func() { first <- s.main(s.args()...) }()
	eventually(t, "the first run runs a test", func() bool { return s.starts("[sig-x] b") == 1 })
	s.want("a second run", s.main(s.args()...), verdict.ExitUsage, "already holds a run", "--resume "+s.dir)
	s.want("a resume beside it", s.main("run", "--resume", s.dir), verdict.ExitUsage, "another op-readiness is writing into it")
	s.write(s.fake.Go(), "")
	s.want("the first run", <-first, verdict.ExitReady)
	s.want("a later run", s.main(s.args()...), verdict.ExitUsage, "already holds a run")
	if run := s.results(); run.Executions != 1 || len(run.Problems) > 0 {
		t.Errorf("%d executions, problems %q", run.Executions, run.Problems)
	}
}

func TestRunUsage(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	for args, says := range map[string][]string{
		"--category Core.Netwrk":           {"--category", `"Core.Netwrk"`, "Core.Network", "Core.Storage"},
		"--case core-network-aa":           {`unknown case "core-network-aa": did you mean core-network-a?`},
		"--capability exek":                {`unknown capability "exek"`},
		"--label api":                      {`unknown label "api"`},
		"--provider locall":                {`unknown provider "locall"; did you mean local?`, "skeleton"},
		"--provider vagrant":               {`unknown provider "vagrant". Known: `, "skeleton"},
		"--without gmssa":                  {`unknown capability "gmssa"; did you mean gmsa?`},
		"--shards 2 --shard 3":             {"there is no shard 3 of 2"},
		"--shard 2":                        {"--shard 2: of how many? Write it as --shard 2/3"},
		"--shard 3/2":                      {"there is no shard 3 of 2"},
		"--shard 2/3 --shards 4":           {"--shard 2/3 and --shards 4", "leave --shards out"},
		"--shards 3":                       {"which of them is to run? Say --shard 1/3", "the same --run-id"},
		"--shard 1/3":                      {"give each of them the same --run-id"},
		"--shard 0":                        {"--shard", "which of how many, such as 2/3"},
		"--shard 2/":                       {"--shard", "which of how many, such as 2/3"},
		"--shard 2/3/4":                    {"--shard", "which of how many, such as 2/3"},
		"--lock=false --wait":              {"--wait", "--lock=false"},
		"--shards 0":                       {"--shards"},
		"--procs -1":                       {"--procs"},
		"--retries -1":                     {"--retries"},
		"--cluster docker":                 {"use kwok, kind"},
		"--cluster kwok":                   {"leave one of them out"},
		"--log-format yaml":                {"use text, json"},
		"-o yaml":                          {"--output"},
		"--conformance-junit /none.xml":    {"--conformance-junit"},
		"--resume x":                       {"leave --report-dir out"},
		"--no-such-flag":                   {"unknown flag", "See 'op-readiness run --help'"},
		"--categories Core.Network":        {"unknown flag: --categories; did you mean --category?"},
		"extra":                            {"takes flags only, and not \"extra\"", "--category"},
		"core.network":                     {"write 'op-readiness run --category Core.Network'"},
		"core-network-pod-ip-win-to-linux": {"write 'op-readiness run --case core-network-pod-ip-win-to-linux'"},
		"--e2e-arg=--host=https://x":       {"--e2e-arg", "another API server", "use op-readiness's own flag --kubeconfig"},
		"--e2e-arg=--clean-start=true":     {"--e2e-arg", "deletes all namespaces"},
		"--e2e-arg=--no-such=1":            {"knows no flag --no-such of e2e.test"},
		"--kubernetes-version latest":      {"--kubernetes-version"},
		"--kubernetes-version v1.35.4":     {"v1.36.3, and v1.35.4 is asked for"},
	} {
		s.want(args, s.main(s.args(strings.Fields(args)...)...), verdict.ExitUsage, says...)
	}
	if starts := s.fake.Starts(t); len(starts) > 0 {
		t.Errorf("started %q", starts)
	}
	for _, id := range []string{" ", "nightly 17", "nightly\t"} {
		s.want("a run id with blanks", s.main(s.args("--run-id", id)...), verdict.ExitUsage, fmt.Sprintf("--run-id: %q has blanks in it", id), "nightly-17")
	}
	s.want("a resume of nothing", s.main("run", "--resume", t.TempDir()), verdict.ExitUsage, "holds no run to resume")
}

func TestSkew(t *testing.T) {
	s := newScene(t, e2etest.Script{Version: "v1.34.4"})
	s.want("two minor versions", s.main(s.args()...), verdict.ExitUsage, "too far apart: e2e.test is v1.34.4, the API server v1.36.3")
	s = newScene(t, e2etest.Script{Version: "v1.35.4"})
	s.want("one minor version", s.main(s.args()...), verdict.ExitReady, "warning: e2e.test is v1.35.4 and the API server v1.36.3")
}

func TestDryRunTouchesNoCluster(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	s.want("a dry run", s.main(s.args("--dry-run")...), verdict.ExitReady, "would run exactly 6 tests", "core-network-a")
	s.want("the dry run of one shard", s.main(s.args("--dry-run", "--shard", "1/2")...), verdict.ExitReady, "would run exactly 3 tests")
	if _, err := os.Stat(s.dir); err == nil || len(s.requests) > 0 {
		t.Errorf("report folder: %v, requests %q", err, s.requests)
	}
	s.fake.Rewrite(t, e2etest.Script{Version: "v1.36.3", Tests: sceneTests, Suite: []string{e2etest.Nothing}})
	s.want("a binary that does nothing", s.main(s.args("--dry-run")...), verdict.ExitInconclusive, "does not say what it would run")
}

func TestBareCommand(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	talk := []string{"--category", "Core.Network", "--provider", "local", "--kubeconfig", s.kubeconfig, "--e2e-binary", s.fake.Binary(), "--test-directory", s.specs, "--report-dir", s.dir}
	s.want("a dry run", s.main(append(talk, "--dry-run")...), verdict.ExitReady, "would run exactly 6 tests")
	s.want("a run", s.main(talk...), verdict.ExitReady, "Results: "+s.dir)
	if run := s.results(); run.Plan.Provider != "local" || len(run.Attempts) != 6 {
		t.Errorf("provider %s, %d tests", run.Plan.Provider, len(run.Attempts))
	}
	s.want("no flags", s.main(), verdict.ExitReady, "Available Commands")
	s.want("help", s.main("--help"), verdict.ExitReady, "Available Commands", "--category")
	s.want("an unknown command", s.main("rnu"), verdict.ExitUsage, `unknown command "rnu"; did you mean run?`, "cluster, comment, completion")
	s.want("an unknown flag", s.main("--catgory", "x"), verdict.ExitUsage, "unknown flag: --catgory; did you mean --category?")
	s.want("a category", s.main("Core.Network"), verdict.ExitUsage, "write 'op-readiness run --category Core.Network'")
	s.want("a flag of run that the talk does not show", s.main("--retries", "-1"), verdict.ExitUsage, "--retries: not less than 0")
	s.want("a command and a typo below it", s.main("specs", "lst"), verdict.ExitUsage, "lst")
	s.want("an unknown category", s.main("--category", "Core"), verdict.ExitUsage, "Core.Network")
	for _, args := range []string{"version", "--version"} {
		s.want(args, s.main(args), verdict.ExitReady, "op-readiness "+toolVersion()+"\n")
	}
}

func TestArtifactsIsTheReportFolder(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	var out, errs strings.Builder
	code := Main(t.Context(), []string{"run", "--kubeconfig", s.kubeconfig, "--e2e-binary", s.fake.Binary(), "--spec-dir", s.specs},
		Surroundings{Environ: append(s.environ(), "ARTIFACTS="+s.dir), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
	if code != verdict.ExitReady || len(s.results().Attempts) != 6 {
		t.Errorf("exit code %d: %s", code, &errs)
	}
}

func TestInterruptOnceStopsGracefully(t *testing.T) {
	s := newScene(t, e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Hang, e2etest.Pass}}})
	signals := make(chan os.Signal)
	done := make(chan said, 1)
	go func() { done <- s.mainWith(signals, s.args()...) }()
	eventually(t, "the test that hangs has started", func() bool { return s.starts("[sig-x] b") == 1 })
	signals <- os.Interrupt
	s.want("the run", <-done, verdict.ExitInterrupted, "stopping; a second signal stops at once", "Results: "+s.dir)
	run := s.results()
	if !run.Interrupted || *run.Manifest.ExitCode != verdict.ExitInterrupted || run.Batches[0].Exit != "exit code 1" {
		t.Errorf("interrupted %t, exit code %d, batch %+v", run.Interrupted, *run.Manifest.ExitCode, run.Batches[0])
	}
	if files, _ := filepath.Glob(filepath.Join(s.dir, "junit_*.xml")); len(files) != 1 {
		t.Errorf("JUnit files %q", files)
	}
	if !slices.ContainsFunc(s.selectors, func(selector string) bool { return strings.Contains(selector, run.Batches[0].SuiteRunID) }) {
		t.Errorf("namespaces asked for: %q, want those of %s", s.selectors, run.Batches[0].SuiteRunID)
	}
	s.want("the run that goes on", s.main("run", "--resume", s.dir), verdict.ExitReady)
	if s.starts("[sig-x] a") != 1 || s.starts("[sig-x] b") != 2 {
		t.Errorf("started %q", s.fake.Starts(t))
	}
}

func TestInterruptTwiceStopsAtOnce(t *testing.T) {
	s := newScene(t, e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Deaf}}})
	signals := make(chan os.Signal)
	done := make(chan said, 1)
	go func() { done <- s.mainWith(signals, s.args()...) }()
	eventually(t, "the test that does not stop has started", func() bool { return s.starts("[sig-x] b") == 1 })
	signals <- os.Interrupt
	signals <- os.Interrupt
	s.want("the run", <-done, verdict.ExitInterrupted)
	if run := s.results(); run.Batches[0].Exit != "signal: killed" {
		t.Errorf("batch %+v", run.Batches[0])
	}
}

func TestProgressAsJSONLines(t *testing.T) {
	s := newScene(t, e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Secret}}})
	got := s.main(s.args("--log-format", "json")...)
	s.want("the run", got, verdict.ExitNotReady)
	events := 0
	for _, line := range strings.Split(got.stderr, "\n") {
		var e result.Event
		if strings.HasPrefix(line, "{") {
			if err := json.Unmarshal([]byte(line), &e); err != nil || e.Type == "" {
				t.Errorf("line %q: %v", line, err)
			}
			events++
		}
	}
	if events < 15 || strings.Contains(got.stderr+got.stdout, e2etest.Password) {
		t.Errorf("%d events:\n%s", events, got.stderr)
	}
}

func TestProgressInGitHubActions(t *testing.T) {
	s := newScene(t, e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Fail}}})
	var out, errs strings.Builder
	Main(t.Context(), s.args(), Surroundings{Environ: append(s.environ(), "GITHUB_ACTIONS=true"), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
	text := errs.String()
	if strings.Count(text, "##[group]") != 2 || strings.Count(text, "##[endgroup]") != 2 || !strings.Contains(text, "FAILED") {
		t.Errorf("progress:\n%s", text)
	}
}

func TestReportRefusesTwoSetsOfCases(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	s.want("both flags", s.main("report", "--specs", "recorded", "--spec-dir", s.specs, s.dir), verdict.ExitUsage, "--specs and --spec-dir")
}
