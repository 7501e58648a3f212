//go:build linux

package act_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/cli"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/test/act/runner"
	"github.com/windows-op-readiness/windows-op-readiness/test/githubtest"
)

const (
	clusters = "someone/clusters" // the repository that uses this project
	head     = "0123456789abcdef0123456789abcdef01234567"
	pushed   = "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"
	token    = "ghs_thetokenthatmustneverbeseen"
)

// config is of what "generate workflows" makes the workflows of the repository.
const config = `
name: clusters
repository: ` + clusters + `
matrix: {kubernetes: ["1.36"], windows: ["2022"], provider: [kwok]}
run: {categories: [Core.Scheduling], shards: 1}
github: {pullRequests: {branches: [main]}, comment: {id: windows}}
`

// posting is the workflow of a pull request that posts by itself where it can.
const posting = `
name: readiness
on: pull_request
permissions: {pull-requests: write}
jobs:
  readiness:
    runs-on: ubuntu-latest
    steps:
      - uses: windows-op-readiness/windows-op-readiness@v1
        with:
          command: comment
          results: RESULTS
          token: ${{ github.token }}
          args: --summary
`

// stage is GitHub with a pull request from a fork, and a repository that uses this
// project.
type stage struct {
	*githubtest.Server
	t       *testing.T
	runner  *runner.Runner
	api     string
	caller  string
	results string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{Server: githubtest.New(t), t: t, runner: workflows(t)}
	s.api = s.Start()
	s.AddToken(token, githubtest.WorkflowToken)
	s.open(head, false)
	s.caller, s.results = t.TempDir(), filepath.Join(t.TempDir(), "results")
	s.writeResults()
	return s
}

// generated are the workflows that are generated of config, by file.
func generated(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "op-readiness.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if code := cli.Main(t.Context(), []string{"generate", "workflows", "--config", path, "--dir", filepath.Join(dir, "workflows")}, cli.Surroundings{Stdout: &out, Stderr: &out}); code != 0 {
		t.Fatalf("generate workflows: exit code %d: %s", code, &out)
	}
	files := map[string]string{}
	entries, err := os.ReadDir(filepath.Join(dir, "workflows"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, "workflows", e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[".github/workflows/"+e.Name()] = string(data)
	}
	return files
}

// repository makes the repository that uses this project, with workflows.
func (s *stage) repository(files map[string]string) {
	s.t.Helper()
	if err := runner.NewRepository(s.t.Context(), s.caller, files); err != nil {
		s.t.Fatal(err)
	}
}

// open makes the pull request have a head; or closes it.
func (s *stage) open(commit string, closed bool) {
	s.SetPull(githubtest.Pull{Repo: clusters, Number: 7, Head: commit, HeadRepo: "fork/clusters", HeadBranch: "topic", Closed: closed})
}

// writeResults makes a results folder that says it is of run 16, of what a real
// run left.
func (s *stage) writeResults() {
	s.t.Helper()
	if err := os.CopyFS(s.results, os.DirFS(filepath.Join(root, "internal", "cli", "testdata", "report", "results"))); err != nil {
		s.t.Fatal(err)
	}
	path := filepath.Join(s.results, result.ManifestFile)
	data, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	var manifest map[string]any
	if err := json.Unmarshal(data, &manifest); err != nil {
		s.t.Fatal(err)
	}
	manifest["source"] = result.Source{System: result.GitHubActions, Repository: clusters, Commit: head, Pull: 7, Build: "16"}
	if data, err = json.Marshal(manifest); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// ends makes an attempt at run 16 end, with its results as an artifact.
func (s *stage) ends(attempt int, conclusion string) {
	s.t.Helper()
	s.ended(16, attempt, conclusion, "readiness", s.results)
}

// ended makes an attempt at a run end, with results as an artifact.
func (s *stage) ended(id int64, attempt int, conclusion, name, results string) {
	s.t.Helper()
	s.SetRun(githubtest.Run{Repo: clusters, ID: id, Attempt: attempt, Head: head, HeadRepo: "fork/clusters", HeadBranch: "topic", Conclusion: conclusion})
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	if err := w.AddFS(os.DirFS(results)); err != nil {
		s.t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		s.t.Fatal(err)
	}
	s.AddArtifact(githubtest.Artifact{Repo: clusters, Run: id, Name: fmt.Sprintf("op-readiness-%s-merged-attempt-%d", name, attempt), Data: archive.Bytes()})
}

// runs runs the workflow that an event triggers, and fails unless it ends well or
// badly as wanted, says all these, and the pull request has so many comments.
func (s *stage) runs(event, payload string, ok bool, comments int, says ...string) {
	s.t.Helper()
	log := run(s.t, s.runner, runner.Workflow{
		Repository: s.caller, Event: event, Payload: payload, Run: runID + 5, Artifacts: s.t.TempDir(),
		Secrets: map[string]string{"GITHUB_TOKEN": token}, Env: map[string]string{"GITHUB_API_URL": s.api},
	})
	if log.Failed == ok {
		s.t.Errorf("%s: the jobs came to %v", event, log.Jobs)
	}
	for _, text := range says {
		if !strings.Contains(log.Said, text) {
			s.t.Errorf("%s: no step says %q", event, text)
		}
	}
	if strings.Contains(log.Text()+log.Said, token) {
		s.t.Errorf("%s: the token is told", event)
	}
	if n := len(s.Comments(clusters, 7)); n != comments {
		s.t.Errorf("%s: there are %d comments, and should be %d", event, n, comments)
	}
	if s.t.Failed() {
		s.t.FailNow()
	}
}

// triggered is the event of a completed attempt at a run.
func triggered(id int64, attempt int) string {
	return fmt.Sprintf(`{"action": "completed", "workflow_run": {"id": %d, "run_attempt": %d, "event": "pull_request", "head_sha": %q, "head_branch": "topic", "path": ".github/workflows/clusters.yml", "pull_requests": [], "head_repository": {"full_name": "fork/clusters"}}}`, id, attempt, head)
}

// opened is the event of the pull request. Its title and branch are a script,
// where they are taken for one.
var opened = fmt.Sprintf(`{"action": "opened", "pull_request": {"number": 7, "title": "$(touch pwned)\"; touch pwned #", "head": {"sha": %q, "ref": "$(touch${IFS}pwned)", "repo": {"full_name": "fork/clusters"}}, "base": {"sha": %q, "ref": "main", "repo": {"full_name": %q}}}}`, head, pushed, clusters)

const commenter = ".github/workflows/clusters-comment.yml"

// The generated workflows as they are: that of the pull request, whose results are
// what the one that comments then finds.
func TestTheGeneratedWorkflowsFromAPullRequestToItsComment(t *testing.T) {
	needKubernetes(t)
	s := newStage(t)
	files := generated(t)
	s.repository(files)
	id, artifacts := int64(runID+6), t.TempDir()
	s.AddToken(token, githubtest.Token{Login: "github-actions[bot]", Installation: true}) // as a fork's is
	log := run(t, s.runner, runner.Workflow{
		Repository: s.caller, Event: "pull_request", Payload: opened, Run: int(id), Artifacts: artifacts,
		Secrets: map[string]string{"GITHUB_TOKEN": token}, Env: map[string]string{"GITHUB_API_URL": s.api},
	})
	jobs(t, log, map[string]string{"plan": "success", "shard 1 of 1": "success", "merge": "success", "publish": "", "verdict": "success"})
	if _, err := os.Stat(filepath.Join(s.caller, "pwned")); err == nil || len(s.Comments(clusters, 7)) > 0 {
		t.Errorf("the pull request's branch was run (%v), or there are comments: %v", err, s.Comments(clusters, 7))
	}
	found, err := filepath.Glob(filepath.Join(artifacts, fmt.Sprint(id), "op-readiness-*-merged-attempt-1"))
	if err != nil || len(found) != 1 {
		t.Fatalf("merged results: %v, %v", found, err)
	}
	cell := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(found[0]), "op-readiness-"), "-merged-attempt-1")

	s.AddToken(token, githubtest.WorkflowToken)
	s.ended(id, 1, "success", cell, found[0])
	s.runs("workflow_run", triggered(id, 1), true, 1, "someone/clusters#7: comment created")
	body := s.Comments(clusters, 7)[0].Body
	for _, text := range []string{fmt.Sprintf(`<!-- op-readiness id="windows" head="%s" run="%d" attempt="1" -->`, head, id), "| Core.Scheduling |", "readiness of " + cell + ": inconclusive", "simulated", "which the pull request may have changed"} {
		if !strings.Contains(body, text) {
			t.Errorf("the comment does not say %q:\n%s", text, body)
		}
	}
	// What a push triggers is none of its business.
	push := strings.Replace(triggered(id, 1), `"event": "pull_request"`, `"event": "push"`, 1)
	if log, err := s.runner.Run(t.Context(), runner.Workflow{Repository: s.caller, Event: "workflow_run", Payload: push, Artifacts: artifacts}); err == nil {
		t.Errorf("after a push, these jobs ran: %v", log.Jobs)
	}
}

func TestAForkFromItsPushToTheComment(t *testing.T) {
	s := newStage(t)
	s.repository(map[string]string{commenter: generated(t)[commenter], ".github/workflows/posting.yml": strings.ReplaceAll(posting, "RESULTS", s.results)})

	// The fork's own run: its token can only read, and nothing fails for it.
	s.AddToken(token, githubtest.Token{Login: "github-actions[bot]", Installation: true})
	s.runs("pull_request", opened, true, 0, "Nothing is posted: the token of a pull request from a fork is read-only")
	s.AddToken(token, githubtest.WorkflowToken)

	// What it triggers comments once, however often it runs.
	s.ends(1, "failure")
	s.runs("workflow_run", triggered(16, 1), true, 1, "someone/clusters#7: comment created https://github.com/someone/clusters/pull/7#issuecomment-1")
	s.runs("workflow_run", triggered(16, 1), true, 1, "someone/clusters#7: comment unchanged")
	if body := s.Comments(clusters, 7)[0].Body; !strings.HasPrefix(body, `<!-- op-readiness id="windows" head="`+head+`" run="16" attempt="1" -->`) || !strings.Contains(body, "Reported by <code>&#46;github&#47;workflows&#47;readiness&#46;yml of fork&#47;clusters</code>, which the pull request may have changed.") {
		t.Errorf("the comment is\n%s", body)
	}

	// A rerun replaces it, and the first attempt, late, does not.
	s.ends(2, "success")
	s.runs("workflow_run", triggered(16, 2), true, 1, "someone/clusters#7: comment updated")
	s.runs("workflow_run", triggered(16, 1), true, 1, "someone/clusters#7: comment left alone: it shows newer results")

	// Nobody writes on what has moved on, or is over.
	s.ends(3, "success")
	s.open(pushed, false)
	s.runs("workflow_run", triggered(16, 3), true, 1, "Nothing is posted: someone/clusters#7 has another head by now")
	s.open(head, true)
	s.runs("workflow_run", triggered(16, 3), true, 1, "Nothing is posted: someone/clusters#7 is closed")
	if body := s.Comments(clusters, 7)[0].Body; !strings.Contains(body, `attempt="2"`) {
		t.Errorf("the comment is\n%s", body)
	}

	// What the maintainer can fix is an error.
	s.open(head, false)
	s.AddToken(token, githubtest.Token{Login: "github-actions[bot]", Installation: true})
	s.runs("workflow_run", triggered(16, 3), false, 1, `it needs "pull-requests: write"`)
	s.AddToken(token, githubtest.Token{Login: "github-actions[bot]", Access: githubtest.Write, Installation: true, NoActions: true})
	s.runs("workflow_run", triggered(16, 3), false, 1, `it needs "actions: read"`)
}
