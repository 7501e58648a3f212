//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fsouza/fake-gcs-server/fakestorage"

	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/prow/rehearse"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
)

// rehearsal is a Prow job that runs a scene.
type rehearsal struct {
	*scene
	jobs, bucket string
}

// newRehearsal is a presubmit whose decoration has these times. Without
// upload_ignores_interrupts sidecar would upload twice after an abort, and
// sometimes let the older one win.
func newRehearsal(t *testing.T, script e2etest.Script, timeout, grace string) *rehearsal {
	t.Helper()
	r := &rehearsal{scene: newScene(t, script)}
	temp, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r.jobs, r.bucket = filepath.Join(temp, "jobs.yaml"), filepath.Join(temp, "bucket")
	r.write(r.jobs, fmt.Sprintf(`presubmits:
  example/project:
  - name: pull-readiness
    decorate: true
    always_run: false
    decoration_config: {timeout: %s, grace_period: %s, upload_ignores_interrupts: true}
    spec:
      containers:
      - image: registry.example/op-readiness:v1
        command: [op-readiness]
        args: [run, --kubeconfig=/etc/readiness/kubeconfig, --e2e-binary=%s, --spec-dir=%s]
        volumeMounts: [{name: kubeconfig, mountPath: /etc/readiness}]
      volumes: [{name: kubeconfig, secret: {secretName: cluster}}]
`, timeout, grace, r.fake.Binary(), r.specs))
	return r
}

// args are those of the rehearsal. With $OP_READINESS_TEST_UTILITIES, programs
// built from Prow's cmd/ run around the job.
func (r *rehearsal) args(more ...string) []string {
	if dir := os.Getenv("OP_READINESS_TEST_UTILITIES"); dir != "" {
		more = append(more, "--utilities", dir)
	}
	return append([]string{"prow", "rehearse", "pull-readiness", "--job-config", r.jobs, "--kubeconfig", r.kubeconfig, "--bucket", r.bucket, "--refs", "main:aaaa,7:bbbb"}, more...)
}

// builds are the folders of the builds that finished, the oldest first.
func (r *rehearsal) builds() []string {
	r.t.Helper()
	found, err := filepath.Glob(filepath.Join(r.bucket, "pr-logs/pull/example_project/7/pull-readiness/*/finished.json"))
	if err != nil || len(found) == 0 {
		r.t.Fatalf("builds %q: %v", found, err)
	}
	for i := range found {
		found[i] = filepath.Dir(found[i])
	}
	return found
}

// build is the folder of the one build.
func (r *rehearsal) build() string {
	r.t.Helper()
	found := r.builds()
	if len(found) != 1 {
		r.t.Fatalf("builds %q", found)
	}
	return found[0]
}

// finished checks what Prow says of the build, and returns its results.
func (r *rehearsal) finished(want string) *result.Run {
	r.t.Helper()
	build := r.build()
	var finished struct {
		Result   string            `json:"result"`
		Passed   bool              `json:"passed"`
		Metadata map[string]string `json:"metadata"`
	}
	data, err := os.ReadFile(filepath.Join(build, "finished.json"))
	if err == nil {
		err = json.Unmarshal(data, &finished)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	if finished.Result != want || finished.Passed != (want == "SUCCESS") {
		r.t.Errorf("finished as %s, passed %t; want %s", finished.Result, finished.Passed, want)
	}
	if m := finished.Metadata; m["kubernetes-version"] != "v1.36.3" || m["Commit"] != "bbbb" || m["run-id"] != filepath.Base(build) {
		r.t.Errorf("metadata %v", m)
	}
	for _, name := range []string{"started.json", "build-log.txt", "sidecar-logs.json"} {
		if _, err := os.Stat(filepath.Join(build, name)); err != nil {
			r.t.Error(err)
		}
	}
	if junit, _ := filepath.Glob(filepath.Join(build, "artifacts", "junit_*.xml")); len(junit) != 1 {
		r.t.Errorf("JUnit %q", junit)
	}
	run, err := result.Load(filepath.Join(build, "artifacts"))
	if err != nil {
		r.t.Fatal(err)
	}
	return run
}

func TestRehearseAsProwWould(t *testing.T) {
	r := newRehearsal(t, e2etest.Script{}, "10m", "2m")
	got := r.main(r.args()...)
	r.want("the rehearsal", got, verdict.ExitReady,
		"Rehearsing the presubmit pull-readiness", "timeout 10m0s, then 2m0s of grace",
		"kubeconfig of volume kubeconfig is "+r.kubeconfig,
		"build folder: "+r.bucket, "artifacts/junit_core-network_01.xml", "finished:     SUCCESS (exit code 0",
		"verdict:      ready", "op-readiness testgrid preview "+r.bucket)
	run := r.finished("SUCCESS")
	if m := run.Manifest; m.Source.Pull != 7 || m.Source.Job != "pull-readiness" || m.Source.Repository != "example/project" || m.RunID != filepath.Base(r.build()) {
		t.Errorf("run %s of %+v", m.RunID, m.Source)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "op-readiness-rehearsal-*")); slices.ContainsFunc(left, func(dir string) bool {
		return strings.Contains(got.stderr, dir+"/")
	}) {
		t.Errorf("left behind: %q", left)
	}
	// TestGrid finds the build of the pull request.
	r.want("the grid", r.main("testgrid", "preview", r.bucket), verdict.ExitReady, "pull-readiness", filepath.Base(r.build())[10:])
	// The advice holds, also when builds add up.
	for range 2 {
		r.want("the grid of the job", r.main(r.advised(got, "see the grid: op-readiness ")...), verdict.ExitReady, "pull-readiness.Overall", filepath.Base(r.builds()[0])[10:])
		got = r.main(r.args()...)
	}
}

// advised are the arguments of the command that a line of the output names.
func (r *rehearsal) advised(got said, line string) []string {
	r.t.Helper()
	_, command, ok := strings.Cut(got.stdout, line)
	if !ok {
		r.t.Fatalf("no %q in\n%s", line, got.stdout)
	}
	command, _, _ = strings.Cut(command, "\n")
	return strings.Fields(command)
}

func TestAJobThatFailsIsFailed(t *testing.T) {
	r := newRehearsal(t, e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Fail}}}, "10m", "2m")
	r.want("the rehearsal", r.main(r.args()...), verdict.ExitNotReady, "finished:     FAILURE (exit code 1", "verdict:      not-ready")
	r.finished("FAILURE")
}

// Prow's timeout ends a job whose tests hang, and even those that do not obey.
func TestAJobKilledByItsTimeoutLeavesItsResults(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for a timeout")
	}
	for _, how := range []string{e2etest.Hang, e2etest.Deaf} {
		r := newRehearsal(t, e2etest.Script{Do: map[string][]string{"[sig-x] b": {how}}}, "4s", "12s")
		r.want("the rehearsal, where a test is "+how, r.main(r.args()...), verdict.ExitInconclusive, "finished:     FAILURE (ended by its timeout of 4s", "verdict:      inconclusive")
		run := r.finished("FAILURE")
		if !run.Interrupted || !run.Finished || len(run.Attempts) != 2 {
			t.Errorf("finished %t, interrupted %t, %d tests with a result", run.Finished, run.Interrupted, len(run.Attempts))
		}
		if log, err := os.ReadFile(filepath.Join(r.build(), "build-log.txt")); err != nil || !strings.Contains(string(log), "Process gracefully exited before 12s grace period") {
			t.Errorf("%v: the job did not end within its grace period:\n%s", err, log)
		}
	}
}

// A script does not pass Prow's interrupt on: the run stops by itself when the
// timeout of the job comes, and leaves the grace period to the script.
func TestAJobInAScriptStopsAtTheTimeout(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for a timeout")
	}
	r := newRehearsal(t, e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Hang}}}, "4s", "30s")
	command := fmt.Sprintf(`trap : INT; op-readiness run --e2e-binary=%s --spec-dir=%s; code=$?; echo "teardown after $code"; exit $code`, r.fake.Binary(), r.specs)
	r.want("the rehearsal", r.main(r.args("--command", command)...), verdict.ExitInconclusive, "finished:     FAILURE", "teardown after 3")
	if run := r.finished("FAILURE"); !run.OutOfTime || run.Interrupted || len(run.Attempts) != 2 {
		t.Errorf("out of time %t, interrupted %t, %d tests with a result", run.OutOfTime, run.Interrupted, len(run.Attempts))
	}
}

func TestAnAbortedJobLeavesItsResults(t *testing.T) {
	r := newRehearsal(t, e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Hang}}}, "10m", "1m")
	signals := make(chan os.Signal)
	done := make(chan said, 1)
	go func() { done <- r.mainWith(signals, r.args()...) }()
	eventually(t, "the test that hangs has started", func() bool { return r.starts("[sig-x] b") == 1 })
	signals <- syscall.SIGTERM
	r.want("the rehearsal", <-done, verdict.ExitInterrupted, "finished:     ABORTED (aborted", "verdict:      inconclusive")
	run := r.finished("ABORTED")
	if !run.Interrupted || run.Batches[0].Exit != "exit code 1" || *run.Manifest.ExitCode != verdict.ExitInterrupted {
		t.Errorf("interrupted %t, batch %+v, manifest %+v", run.Interrupted, run.Batches[0], run.Manifest)
	}
}

func TestARehearsalStoppedTwiceKillsTheJob(t *testing.T) {
	r := newRehearsal(t, e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Deaf}}}, "10m", "5m")
	signals := make(chan os.Signal)
	done := make(chan said, 1)
	go func() { done <- r.mainWith(signals, r.args()...) }()
	eventually(t, "the test that does not stop has started", func() bool { return r.starts("[sig-x] b") == 1 })
	signals <- os.Interrupt
	signals <- os.Interrupt
	r.want("the rehearsal", <-done, verdict.ExitInterrupted, "killed: its build has no finished.json")
}

func TestRehearseRefusesWhatItCannotDo(t *testing.T) {
	r := newRehearsal(t, e2etest.Script{}, "10m", "1m")
	jobs := filepath.Join("..", "ci", "prow", "rehearse", "testdata", "jobs.yaml")
	refs := []string{"--job-config", jobs, "--refs", "main:aaaa,7:bbbb"}
	periodic := []string{"--job-config", jobs}
	for what, c := range map[string]struct {
		args []string
		says []string
	}{
		"a typo":                  {append(refs, "pull-readines", "--kubeconfig", r.kubeconfig), []string{`has no job "pull-readines"; did you mean pull-readiness?`}},
		"no cluster":              {append(refs, "pull-readiness"), []string{"pull-readiness tests a cluster: name it with --kubeconfig, or make one with --cluster kwok"}},
		"another image, too":      {append(periodic, "--refs", "main:aaaa", "post-image"), []string{"container test runs /run.sh of the image image-builder"}},
		"privileged":              {append(refs, "pull-privileged", "--kubeconfig", r.kubeconfig), []string{"container test is privileged", "--command"}},
		"another image":           {append(refs, "pull-other", "--kubeconfig", r.kubeconfig), []string{"runs make of the image golang:1.26", "--env TOKEN=VALUE", "volume docker is the node's /var/run/docker, mounted at /var/run/docker", "--volume docker=DIR"}},
		"two of a name":           {[]string{"--job-config", jobs, "pull-twice", "--kubeconfig", r.kubeconfig}, []string{"pull-twice is there 2 times", "on release-1.0"}},
		"not decorated":           {append(refs, "pull-plain", "--kubeconfig", r.kubeconfig), []string{"it is not decorated", "decorate: true"}},
		"a pull for a periodic":   {append(periodic, "ci-readiness", "--pull", "3"), []string{"ci-readiness is periodic"}},
		"no pull for a presubmit": {[]string{"--job-config", jobs, "pull-readiness", "--refs", "main:aaaa", "--kubeconfig", r.kubeconfig}, []string{"names no pull request: say main:aaaa,NUMBER:SHA"}},
		"another branch":          {[]string{"--job-config", jobs, "pull-readiness", "--refs", "dev:aaaa,1:b", "--kubeconfig", r.kubeconfig}, []string{"of example/project, a presubmit on main"}},
		"no such folder":          {[]string{"--job-config", "nowhere", "x"}, []string{"reading jobs: stat nowhere", "op-readiness generate prow"}},
		"no such kubeconfig":      {append(refs, "pull-readiness", "--kubeconfig", "nowhere"), []string{"--kubeconfig: stat nowhere"}},
		"no such utilities":       {append(refs, "pull-readiness", "--kubeconfig", r.kubeconfig, "--utilities", t.TempDir()), []string{"--utilities: ", "initupload", "name a folder with the programs"}},
		"no such volume":          {append(refs, "pull-readiness", "--kubeconfig", r.kubeconfig, "--volume", "a=nowhere"), []string{"--volume a: stat nowhere"}},
		"a folder with a space":   {append(refs, "pull-readiness", "--kubeconfig", r.kubeconfig, "--bucket", "a b"), []string{"because of a character in its path"}},
		"both":                    {append(refs, "pull-readiness", "--kubeconfig", r.kubeconfig, "--cluster", "kwok"), []string{"leave one of them out"}},
	} {
		r.want(what, r.main(append([]string{"prow", "rehearse"}, c.args...)...), verdict.ExitUsage, c.says...)
	}
}

// The dry run says what would be done, and does nothing.
func TestRehearseDryRun(t *testing.T) {
	r := newRehearsal(t, e2etest.Script{}, "10m", "1m")
	got := r.main(r.args("--dry-run")...)
	r.want("the dry run", got, verdict.ExitReady, "build folder: file://"+r.bucket+"/pr-logs/pull/example_project/7/pull-readiness/", "PULL_REFS=main:aaaa,7:bbbb", "command:      op-readiness run --kubeconfig=/")
	if _, err := os.Stat(r.bucket); err == nil {
		t.Error("a dry run made the bucket")
	}
}

// A job that makes its cluster is not given another.
func TestRehearseMakesNoClusterBesideTheJobs(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	jobs := filepath.Join("..", "ci", "prow", "rehearse", "testdata", "jobs.yaml")
	s.want("a periodic", s.main("prow", "rehearse", "ci-readiness", "--job-config", jobs, "--cluster", "kwok", "--dry-run"), verdict.ExitReady,
		"--cluster kwok is not needed: ci-readiness makes its cluster itself")
	// Nor does what stands for a job that makes an image need one.
	s.want("a postsubmit", s.main("prow", "rehearse", "post-image", "--job-config", jobs, "--refs", "main:aaaa", "--command", "make image", "--dry-run"), verdict.ExitReady,
		"command:      make image")
}

// In a bucket Prow keeps the alias by which TestGrid finds the build itself.
func TestRehearseIntoABucket(t *testing.T) {
	emulator, err := fakestorage.NewServerWithOptions(fakestorage.Options{Scheme: "http", Host: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(emulator.Stop)
	emulator.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: "example-results"})
	r := newRehearsal(t, e2etest.Script{}, "10m", "1m")
	const bucket = "gs://example-results"
	r.want("the rehearsal", r.main(r.args("--bucket", bucket, "--endpoint", emulator.URL())...), verdict.ExitReady,
		"build folder: "+bucket+"/pr-logs/pull/example_project/7/pull-readiness/", "artifacts/metadata.json", "finished:     SUCCESS")
	r.want("the grid", r.main("testgrid", "preview", bucket, "--endpoint", emulator.URL(), "--anonymous"), verdict.ExitReady, "pull-readiness", "core-network-a")
}

// What cannot be started did not run into its timeout.
func TestRehearseSaysWhatCannotBeStarted(t *testing.T) {
	r := newRehearsal(t, e2etest.Script{}, "10m", "1m")
	r.want("the rehearsal", r.main(r.args("--command", "no-such-program")...), verdict.ExitInconclusive, "finished:     FAILURE (exit code 127: its command was not found")
}

// A shell command stands for a job that cannot run here, with its environment.
func TestRehearseCommand(t *testing.T) {
	r := newRehearsal(t, e2etest.Script{}, "10m", "1m")
	command := `env > "$ARTIFACTS/env.txt"; ls "$ARTIFACTS/.." > "$ARTIFACTS/ls.txt"; echo '{"kubernetes-version": "v1.36.3", "Commit": "bbbb"}' > "$ARTIFACTS/metadata.json"; exit 7`
	got := r.main("prow", "rehearse", "pull-privileged", "--job-config", filepath.Join("..", "ci", "prow", "rehearse", "testdata", "jobs.yaml"),
		"--kubeconfig", r.kubeconfig, "--bucket", r.bucket, "--refs", "main:aaaa,7:bbbb", "--command", command, "--env", "EXTRA=a b")
	r.want("the rehearsal", got, verdict.ExitInconclusive, "finished:     FAILURE (exit code 7", "none: the job left no results")
	found, _ := filepath.Glob(filepath.Join(r.bucket, "pr-logs/pull/example_project/7/pull-privileged/*/artifacts/env.txt"))
	if len(found) != 1 {
		t.Fatalf("found %q\n%s", found, got.stderr)
	}
	env, _ := os.ReadFile(found[0])
	for _, want := range []string{"KUBECONFIG=" + r.kubeconfig, "EXTRA=a b", "JOB_TYPE=presubmit", "PULL_NUMBER=7", "CI=true", "REPO_OWNER=example", `JOB_SPEC={"type":"presubmit"`} {
		if !strings.Contains("\n"+string(env), "\n"+want) {
			t.Errorf("no %q in the job's environment:\n%s", want, env)
		}
	}
}

// A rehearsal that is killed aborts its job, which leaves its results all the
// same, and the next rehearsal removes what else is left.
func TestARehearsalThatIsKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a process of its parent's end")
	}
	r := newRehearsal(t, e2etest.Script{Do: map[string][]string{"[sig-x] b": {e2etest.Hang, e2etest.Pass}}}, "10m", "1m")
	temp, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", temp)
	log, err := os.Create(filepath.Join(temp, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(os.Args[0], r.args()...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(r.environ(), "OP_READINESS_TEST_MAIN=1", "TMPDIR="+temp), log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the test that hangs has started", func() bool { return r.starts("[sig-x] b") == 1 })
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	// Its processes go on until all is uploaded, and have its folder.
	eventually(t, "the folder is removed", func() bool {
		removed, err := rehearse.Sweep(func(cluster string) error { return fmt.Errorf("there is no cluster %s", cluster) })
		return err == nil && len(removed) == 1
	})
	if run := r.finished("ABORTED"); !run.Interrupted || !run.Finished {
		t.Errorf("interrupted %t, finished %t", run.Interrupted, run.Finished)
	}
	if left, _ := filepath.Glob(filepath.Join(temp, "op-readiness-rehearsal-*")); len(left) != 0 {
		t.Errorf("left are %q", left)
	}
	killed := filepath.Base(r.build())[10:]
	r.want("another rehearsal", r.main(r.args()...), verdict.ExitReady)
	r.want("the grid of both", r.main("testgrid", "preview", r.bucket), verdict.ExitReady, killed)
	r.want("the check of both", r.main("testgrid", "check", r.bucket), verdict.ExitReady)
}
