//go:build linux

package act_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/cli"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kwok"
	"github.com/windows-op-readiness/windows-op-readiness/test/act/runner"
)

const root = "../.."

var made string // what the runner made, to be removed at the end

func TestMain(m *testing.M) {
	code := m.Run()
	if made != "" {
		os.RemoveAll(made)
	}
	os.Exit(code)
}

// shared is the runner of all tests: the first one builds op-readiness, through the
// action, and the others restore it from the cache of workflows.
var shared = sync.OnceValues(func() (*runner.Runner, error) {
	dir, err := os.MkdirTemp("", "op-readiness-act-")
	if err != nil {
		return nil, err
	}
	made = dir
	return runner.New(context.Background(), root, dir)
})

func workflows(t *testing.T) *runner.Runner {
	t.Helper()
	r, err := shared()
	if errors.Is(err, runner.ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// needKubernetes skips the test when binaries are not in the cache.
func needKubernetes(t *testing.T) {
	t.Helper()
	dir, err := binaries.DefaultDir(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	store := &binaries.Store{Dir: dir, Progress: os.Stderr}
	missing, err := store.Missing(t.Context(), binaries.Pinned, append(kwok.Needs(), binaries.E2ETest)...)
	if err != nil {
		t.Fatal(err)
	}
	if len(missing) > 0 {
		t.Skipf("not in the cache: %v: run make binaries", missing)
	}
}

// caller is a second repository, with one workflow.
func caller(t *testing.T, workflow string) string {
	t.Helper()
	dir := t.TempDir()
	if err := runner.NewRepository(t.Context(), dir, map[string]string{".github/workflows/clusters.yml": workflow}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func run(t *testing.T, r *runner.Runner, w runner.Workflow) *runner.Log {
	t.Helper()
	log, err := r.Run(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("workflow:\n%s\nSteps said:\n%s", log.Text(), log.Said)
		}
	})
	return log
}

// job is the result of the job whose name ends as given, "" where it did not run.
func job(log *runner.Log, name string) string {
	for full, result := range log.Jobs {
		if named(full, name) {
			return result
		}
	}
	return ""
}

// step is the result of a step of a job: of a matrix, act calls all jobs failed
// when one is. The steps of a composite action come before it, with its name.
func step(log *runner.Log, job, name string) string {
	result := ""
	for _, s := range log.Steps {
		if named(s.Job, job) && s.Name == name {
			result = s.Result
		}
	}
	return result
}

// named reports whether a job, by its full name, is the one of a name. act numbers
// those of a matrix.
func named(full, name string) bool {
	last := full[strings.LastIndex(full, "/")+1:]
	return last == name || strings.HasPrefix(last, name+"-")
}

// worth is the step of a shard that tells whether it is red.
const worth = "Is it worth another attempt?"

func jobs(t *testing.T, log *runner.Log, want map[string]string) {
	t.Helper()
	for name, result := range want {
		if got := job(log, name); got != result {
			t.Errorf("job %s: %q, want %q", name, got, result)
		}
	}
}

// says reports texts that no step said.
func says(t *testing.T, log *runner.Log, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(log.Said, text) {
			t.Errorf("no step says %q", text)
		}
	}
}

const sharded = `
on: push
jobs:
  readiness:
    uses: windows-op-readiness/windows-op-readiness/.github/workflows/readiness.yml@v1
    with:
      name: ltsc2022
      cluster: kwok
      shards: 3
      allow-inconclusive: true
      publish-bucket: %s
      publish-job: clusters-ltsc2022
      args: |
        --case=extra-network-endpointslice-objects,extra-network-service-status
        --case=extra-concurrent-replicaset,extra-scheduling-gates
        --case=core-storage-hostpath-write
  after:
    needs: readiness
    if: always()
    runs-on: ubuntu-latest
    steps:
      - run: echo "$OUTPUTS"
        env:
          OUTPUTS: ${{ toJSON(needs.readiness.outputs) }}
`

// runID is that of the workflow run which is run again; no other has it on this
// machine.
var runID = 1_000_000 + os.Getpid()

func TestAKilledShardIsHealedByRunningItAgain(t *testing.T) {
	needKubernetes(t)
	r := workflows(t)
	artifacts, bucket := t.TempDir(), t.TempDir()
	w := runner.Workflow{Repository: caller(t, fmt.Sprintf(sharded, "file://"+bucket)), Run: runID, Artifacts: artifacts}

	killed := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { killed <- killShard(ctx, 2) }()
	t.Cleanup(func() {
		clusterIsGone(t, filepath.Join(artifacts, strconv.Itoa(runID), "op-readiness-ltsc2022-shard-2-of-3-attempt-1"))
	})
	log := run(t, r, w)
	cancel()
	if err := <-killed; err != nil {
		t.Fatal(err)
	}

	jobs(t, log, map[string]string{"plan": "success", "shard 2 of 3": "failure", "merge": "success", "publish": "success", "verdict": "success"})
	for shard, want := range map[string]string{"shard 1 of 3": "success", "shard 2 of 3": "failure", "shard 3 of 3": "success"} {
		if got := step(log, shard, worth); got != want {
			t.Errorf("attempt 1, %s: %q, want %q", shard, got, want)
		}
	}
	says(t, log, "this shard is without a verdict; another attempt may change that", "inconclusive: 0 of 1 requirements are proven")
	if text := strings.Join(log.Summaries, ""); !strings.Contains(text, "shard 2 (attempt 1) was killed") {
		t.Errorf("the job summary does not say what is missing:\n%s", text)
	}
	first := merged(t, artifacts, 1)
	if first.verdict.Verdict != verdict.Inconclusive || !slices.ContainsFunc(first.run.Problems, func(p string) bool { return strings.Contains(p, "shard 2 (attempt 1) was killed") }) {
		t.Errorf("attempt 1 is %s, problems %q", first.verdict.Verdict, first.run.Problems)
	}

	w.Attempt, w.Matrix = 2, []string{"shard:2"} // as "Re-run failed jobs" does
	log = run(t, r, w)
	if log.Failed {
		t.Errorf("attempt 2 failed: %v", log.Jobs)
	}
	jobs(t, log, map[string]string{"shard 1 of 3": "", "shard 2 of 3": "success", "shard 3 of 3": "", "merge": "success", "publish": "success", "verdict": "success", "after": "success"})
	says(t, log, `"verdict": "inconclusive"`, `"proven": "0"`, `"total": "1"`, `"artifact": "op-readiness-ltsc2022-merged-attempt-2"`)
	second := merged(t, artifacts, 2)
	if len(second.run.Problems) > 0 {
		t.Errorf("attempt 2 has problems: %q", second.run.Problems)
	}
	for _, c := range second.verdict.Cases {
		// Where the scheduler puts pods is chance; so is, on Windows, their image.
		if want := c.Case.ID != "core-storage-hostpath-write"; (c.Outcome == verdict.Passed || c.Outcome == verdict.Unproven) != want {
			t.Errorf("attempt 2: %s is %s: %s", c.Case.ID, c.Outcome, c.Reason)
		}
	}
	want := []string{"merged-attempt-1", "merged-attempt-2", "plan", "shard-1-of-3-attempt-1", "shard-2-of-3-attempt-1", "shard-2-of-3-attempt-2", "shard-3-of-3-attempt-1"}
	var names []string
	entries, _ := os.ReadDir(filepath.Join(artifacts, strconv.Itoa(runID)))
	for _, e := range entries {
		names = append(names, strings.TrimPrefix(e.Name(), "op-readiness-ltsc2022-"))
	}
	if !slices.Equal(names, want) {
		t.Errorf("artifacts %q, want %q", names, want)
	}
	if builds, _ := filepath.Glob(filepath.Join(bucket, "logs", "clusters-ltsc2022", "*", "finished.json")); len(builds) != 2 {
		t.Errorf("%d builds are published, want one for each attempt", len(builds))
	}
}

type judged struct {
	run     *result.Run
	verdict *verdict.Judgement
}

func merged(t *testing.T, artifacts string, attempt int) judged {
	t.Helper()
	run, err := result.Load(filepath.Join(artifacts, strconv.Itoa(runID), fmt.Sprintf("op-readiness-ltsc2022-merged-attempt-%d", attempt)))
	if err != nil {
		t.Fatal(err)
	}
	return judged{run, verdict.Judge(run)}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in time it did not happen: %s", what)
		}
	}
}

// killShard kills op-readiness when the first test of a shard has begun.
func killShard(ctx context.Context, shard int) error {
	return kill(ctx, runID, "ltsc2022", func(args []string) bool {
		if !slices.Contains(args, fmt.Sprintf("--shard=%d", shard)) {
			return false
		}
		i := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "--report-dir=") })
		events, _ := os.ReadFile(filepath.Join(strings.TrimPrefix(args[i], "--report-dir="), result.EventsFile))
		return bytes.Contains(events, fmt.Appendf(nil, `"type":%q`, result.TestStarted))
	})
}

// kill kills the op-readiness of a workflow's run, by the workflow's name, as soon as
// ready says so of its arguments.
func kill(ctx context.Context, run int, name string, ready func(args []string) bool) error {
	for ; ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
		processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			return err
		}
		for _, p := range processes {
			data, _ := os.ReadFile(p)
			args := strings.Split(string(data), "\x00")
			if filepath.Base(args[0]) != "op-readiness" || !slices.Contains(args, fmt.Sprintf("--run-id=github-%d-%s", run, name)) || !ready(args) {
				continue
			}
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p)))
			if err != nil {
				return err
			}
			return syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return errors.New("the run never came that far")
}

// clusterIsGone checks that the action's last step has removed the cluster of a shard
// that was killed.
func clusterIsGone(t *testing.T, folder string) {
	t.Helper()
	killed, err := result.Load(folder)
	if err != nil {
		t.Error(err)
		return
	}
	_, name, made := strings.Cut(killed.Manifest.Target.Made, "/")
	var out, errs bytes.Buffer
	code := cli.Main(context.Background(), []string{"cluster", "list", "-o", "json"}, cli.Surroundings{Environ: os.Environ(), Stdout: &out, Stderr: &errs})
	if !made || code != 0 || strings.Contains(out.String(), `"name": "`+name+`"`) {
		t.Errorf("cluster %s of the killed shard, exit code %d, %s:\n%s", killed.Manifest.Target.Made, code, &errs, &out)
	}
}

func TestNoShardLeavesResults(t *testing.T) {
	r := workflows(t)
	const token = "a-token-that-nobody-may-see"
	kubeconfig := `apiVersion: v1
kind: Config
current-context: nowhere
clusters: [{name: nowhere, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: nowhere, context: {cluster: nowhere, user: me}}]
users: [{name: me, user: {token: ` + token + `}}]
`
	artifacts := t.TempDir()
	log := run(t, r, runner.Workflow{Run: runID + 1, Artifacts: artifacts, Secrets: map[string]string{"KUBECONFIG_CONTENT": kubeconfig}, Repository: caller(t, `
on: push
jobs:
  readiness:
    uses: windows-op-readiness/windows-op-readiness/.github/workflows/readiness.yml@v1
    with:
      shards: 2
      categories: Core.Network
      kubernetes-version: v1.36.3
    secrets:
      kubeconfig: ${{ secrets.KUBECONFIG_CONTENT }}
`)})
	jobs(t, log, map[string]string{"plan": "success", "shard 1 of 2": "failure", "shard 2 of 2": "failure", "merge": "success", "publish": "", "verdict": "failure"})
	says(t, log, "127.0.0.1:1", "no shard left results that could be merged")
	if text := strings.Join(log.Summaries, ""); !strings.Contains(text, "inconclusive") {
		t.Errorf("the job summary does not say that it is inconclusive: %q", text)
	}
	// What the runner is asked to mask, it does not show.
	if strings.Contains(log.Text(), token) || strings.Contains(strings.ReplaceAll(log.Said, "::add-mask::"+token, ""), token) {
		t.Error("the log holds the token")
	}
	files := 0
	if err := filepath.WalkDir(artifacts, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(token)) {
			t.Errorf("artifact %s holds the token", path)
		}
		return err
	}); err != nil || files == 0 {
		t.Errorf("%d files in artifacts, %v", files, err)
	}
}

func TestWrongInputsOfTheWorkflowEndItBeforeAnyShard(t *testing.T) {
	r := workflows(t)
	log := run(t, r, runner.Workflow{Run: runID + 2, Artifacts: t.TempDir(), Repository: caller(t, `
on: push
jobs:
  name:
    uses: windows-op-readiness/windows-op-readiness/.github/workflows/readiness.yml@v1
    with: {name: "a/b", cluster: kwok}
  flag:
    uses: windows-op-readiness/windows-op-readiness/.github/workflows/readiness.yml@v1
    with: {name: flag, cluster: kwok, args: "--steer=sideways"}
  time:
    uses: windows-op-readiness/windows-op-readiness/.github/workflows/readiness.yml@v1
    with: {name: time, cluster: kwok, timeout-minutes: 3}
`)})
	for name, result := range log.Jobs {
		if result == "success" || strings.Contains(name, "shard") {
			t.Errorf("job %s: %s", name, result)
		}
	}
	says(t, log, "name: it becomes part of artifacts' names", `--steer: unknown way "sideways"`, "timeout-minutes: at least 10")
}

func TestTheActionOfACheckout(t *testing.T) {
	r := workflows(t)
	dir := t.TempDir()
	if err := r.Checkout(t.Context(), dir, map[string]string{".github/workflows/ci.yml": `
on: push
jobs:
  try:
    runs-on: ubuntu-latest
    strategy:
      fail-fast: false
      matrix:
        include:
          - {command: plan, categories: "Core.Network, Core.Storage", shards: "2", args: --label=none}
          - {command: plan, categories: "Core.Network, Core.Storage", shards: "2"}
          - {command: merge}
          - {command: sideways}
          - {command: plan, args: "$(touch pwned)"}
    steps:
      - uses: actions/checkout@v5
      - id: it
        uses: ./
        with:
          command: ${{ matrix.command }}
          categories: ${{ matrix.categories }}
          shards: ${{ matrix.shards }}
          args: ${{ matrix.args }}
      - if: always()
        run: |
          echo 'matrix of ${{ matrix.command }}: ${{ steps.it.outputs.matrix }}'
          op-readiness version
          ls
`}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, ".github/workflows/readiness.yml")); err != nil {
		t.Fatal(err)
	}
	log := run(t, r, runner.Workflow{Repository: dir, Run: runID + 3, Artifacts: t.TempDir()})
	for i, want := range []string{"failure", "success", "failure", "failure", "failure"} {
		if got := step(log, fmt.Sprintf("try-%d", i+1), "./"); got != want {
			t.Errorf("job %d: %q, want %q", i+1, got, want)
		}
	}
	says(t, log,
		`matrix of plan: {"include":[{"shard":1,"shards":2,`,
		`results: name the results folders, one per line`,
		`command: "sideways" is not known: use run, plan`,
		`takes flags only, and not "$(touch pwned)"`,
	)
	if slices.Contains(strings.Fields(log.Said), "pwned") {
		t.Error("an input was run")
	}
}

// The texts of a results folder, on both streams, are not commands: not where it
// is merged, nor where it cannot be read.
func TestAHostileResultsFolderCommandsNothing(t *testing.T) {
	r := workflows(t)
	files := map[string]string{".github/workflows/ci.yml": `
on: push
jobs:
  try:
    runs-on: ubuntu-latest
    strategy:
      fail-fast: false
      matrix: {folder: [texts, broken]}
    steps:
      - uses: actions/checkout@v5
      - id: it
        uses: ./
        with: {command: merge, results: "${{ matrix.folder }}"}
      - if: always()
        run: |
          echo 'of ${{ matrix.folder }}: verdict <${{ steps.it.outputs.verdict }}>, proven <${{ steps.it.outputs.proven }}>'
          echo 'a harmless word'
`}
	const hostile = "x\n::set-output name=verdict::ready\n##[set-output name=proven]99\n::add-mask::harmless\n##[add-mask]harmless\r::stop-commands::y ##[error]forged"
	recorded := filepath.Join(root, "internal", "cli", "testdata", "report", "results")
	text, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{result.PlanFile, result.ManifestFile, result.EventsFile} {
		data, err := os.ReadFile(filepath.Join(recorded, name))
		if err != nil {
			t.Fatal(err)
		}
		said := regexp.MustCompile(`("(?:message|osImage|containerRuntime|e2eVersion|name)":\s*)"[^"]*"`).ReplaceAllFunc(data, func(field []byte) []byte {
			if name == result.PlanFile {
				return field
			}
			return append(field[:bytes.IndexByte(field, ':')+1:bytes.IndexByte(field, ':')+1], text...)
		})
		files["texts/"+name], files["broken/"+name] = string(said), hostile
	}
	dir := t.TempDir()
	if err := r.Checkout(t.Context(), dir, files); err != nil {
		t.Fatal(err)
	}
	log := run(t, r, runner.Workflow{Repository: dir, Run: runID + 4, Artifacts: t.TempDir()})
	says(t, log, "of broken: verdict <>, proven <>")
	if strings.Contains(log.Said, "verdict <ready>") || strings.Contains(log.Said, "proven <99>") || !strings.Contains(log.Text(), "a harmless word") {
		t.Error("a results folder commands the runner")
	}
}
