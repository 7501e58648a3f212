// Package fork runs the way of a pull request from a fork: its own workflow, whose
// token can only read, and the one of the default branch that comments for it. The
// workflows run on this machine by act, GitHub's API is played by githubtest.
package fork

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/github/githubtest"
	"github.com/windows-op-readiness/windows-op-readiness/internal/result"
)

const (
	project = "windows-op-readiness/windows-op-readiness"
	head    = "0123456789abcdef0123456789abcdef01234567"
	pushed  = "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"
	token   = "ghs_thetokenthatmustneverbeseen"
)

// The caller, as it lies on the default branch of a repository that uses
// comment.yml, and the workflow of a pull request that posts by itself where it
// can.
var workflows = map[string]string{
	"comment.yml": `
name: readiness comment
on:
  workflow_run: {workflows: [readiness], types: [completed]}
permissions: {}
jobs:
  comment:
    permissions: {actions: read, pull-requests: write}
    uses: ` + project + `/.github/workflows/comment.yml@main
`,
	"readiness.yml": `
name: readiness
on: pull_request
permissions: {pull-requests: write}
jobs:
  readiness:
    runs-on: ubuntu-latest
    steps:
      - uses: ` + project + `@main
        with:
          command: comment
          results: RESULTS
          token: ${{ github.token }}
          args: --summary
`,
}

// cacheAction stands in for the action that keeps files between runs.
const cacheAction = "name: nothing\ninputs: {path: {default: ''}, key: {default: ''}}\nruns: {using: composite, steps: [{run: 'true', shell: bash}]}\n"

// stage is GitHub with a pull request from a fork, and a repository that uses this
// project.
type stage struct {
	*githubtest.Server
	t       *testing.T
	api     string
	act     string
	caller  string
	results string
	cache   string // of act, with the tools that jobs keep
	args    []string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	switch {
	case runtime.GOOS == "windows":
		t.Skip("act runs workflows on the host by bash")
	case testing.Short():
		t.Skip("act and op-readiness are built, which takes a minute or more")
	}
	s := &stage{Server: githubtest.New(t), t: t}
	s.api = s.Start()
	s.AddToken(token, githubtest.WorkflowToken)
	s.open(head, false)
	temp := t.TempDir()
	s.act, s.caller, s.results, s.cache = filepath.Join(temp, "act"), filepath.Join(temp, "caller"), filepath.Join(temp, "results"), filepath.Join(temp, "actcache")
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	s.command(filepath.Join(root, "scripts", "act"), "go", "build", "-o", s.act, "github.com/nektos/act")
	s.writeResults(root)
	for name, text := range workflows {
		s.write(filepath.Join(s.caller, ".github", "workflows", name), strings.ReplaceAll(text, "RESULTS", s.results))
	}
	s.command(s.caller, "git", "init", "--quiet", "--initial-branch=main")
	s.command(s.caller, "git", "remote", "add", "origin", "https://github.com/o/r")
	s.command(s.caller, "git", "add", ".")
	s.command(s.caller, "git", "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "--quiet", "--message", "Workflows")
	s.args = []string{
		"--platform", "ubuntu-latest=-self-hosted", "--local-repository", project + "@main=" + root,
		"--env", "GITHUB_API_URL=" + s.api,
	}
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY"} {
		s.args = append(s.args, "--env", name+"="+strings.TrimSpace(s.command(root, "go", "env", name)))
	}
	noCache := filepath.Join(temp, "no-cache")
	s.write(filepath.Join(noCache, "action.yml"), cacheAction)
	action, err := os.ReadFile(filepath.Join(root, "action.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile(`uses: (actions/cache@[0-9a-f]{40})`).FindAllStringSubmatch(string(action), -1) {
		s.args = append(s.args, "--local-repository", match[1]+"="+noCache)
	}
	return s
}

// open makes the pull request have a head; or closes it.
func (s *stage) open(commit string, closed bool) {
	s.SetPull(githubtest.Pull{Repo: "o/r", Number: 7, Head: commit, HeadRepo: "fork/r", HeadBranch: "topic", Closed: closed})
}

func (s *stage) command(dir, name string, args ...string) string {
	s.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	output, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("%s %q: %v: %s%s", name, args, err, output, errs.Bytes())
	}
	return string(output)
}

func (s *stage) write(path, text string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// writeResults makes a results folder that says it is of run 16, of what a real
// run left.
func (s *stage) writeResults(root string) {
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
	manifest["source"] = result.Source{System: result.GitHubActions, Repository: "o/r", Commit: head, Pull: 7, Build: "16"}
	if data, err = json.Marshal(manifest); err != nil {
		s.t.Fatal(err)
	}
	s.write(path, string(data))
}

// ends makes an attempt at run 16 end, with its results as an artifact.
func (s *stage) ends(attempt int, conclusion string) {
	s.t.Helper()
	s.SetRun(githubtest.Run{Repo: "o/r", ID: 16, Attempt: attempt, Head: head, HeadRepo: "fork/r", HeadBranch: "topic", Conclusion: conclusion})
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	if err := w.AddFS(os.DirFS(s.results)); err != nil {
		s.t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		s.t.Fatal(err)
	}
	s.AddArtifact(githubtest.Artifact{Repo: "o/r", Run: 16, Name: fmt.Sprintf("op-readiness-readiness-merged-attempt-%d", attempt), Data: archive.Bytes()})
}

// runs runs the workflow that an event triggers, and fails unless it ends well or
// badly as wanted, says all these, and the pull request has so many comments.
func (s *stage) runs(event, payload string, ok bool, comments int, says ...string) {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "event.json")
	s.write(path, payload)
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.act, append([]string{event, "--eventpath", path, "--secret", "GITHUB_TOKEN=" + token}, s.args...)...)
	cmd.Dir = s.caller
	// A job gets nothing of this environment but PATH.
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+s.cache, "HOME="+s.cache)
	output, err := cmd.CombinedOutput()
	if (err == nil) != ok {
		s.t.Errorf("%s: %v", event, err)
	}
	for _, text := range says {
		if !strings.Contains(string(output), text) {
			s.t.Errorf("%s: it does not say %q", event, text)
		}
	}
	if strings.Contains(string(output), token) {
		s.t.Errorf("%s: the token is told", event)
	}
	if n := len(s.Comments("o/r", 7)); n != comments {
		s.t.Errorf("%s: there are %d comments, and should be %d", event, n, comments)
	}
	if s.t.Failed() {
		s.t.Fatalf("%s", output)
	}
}

// triggered is the event of a completed attempt at run 16.
func triggered(attempt int) string {
	return fmt.Sprintf(`{"action": "completed", "workflow_run": {"id": 16, "run_attempt": %d, "head_sha": %q, "head_branch": "topic", "path": ".github/workflows/readiness.yml", "pull_requests": [], "head_repository": {"full_name": "fork/r"}}}`, attempt, head)
}

func TestAForkFromItsPushToTheComment(t *testing.T) {
	s := newStage(t)

	// The fork's own run: its token can only read, and nothing fails for it.
	s.AddToken(token, githubtest.Token{Login: "github-actions[bot]", Installation: true})
	s.runs("pull_request", fmt.Sprintf(`{"pull_request": {"number": 7, "head": {"sha": %q, "ref": "topic", "repo": {"full_name": "fork/r"}}, "base": {"sha": %q, "ref": "main", "repo": {"full_name": "o/r"}}}}`, head, pushed), true, 0,
		"Nothing is posted: the token of a pull request from a fork is read-only")
	s.AddToken(token, githubtest.WorkflowToken)

	// What it triggers comments once, however often it runs.
	s.ends(1, "failure")
	s.runs("workflow_run", triggered(1), true, 1, "o/r#7: comment created https://github.com/o/r/pull/7#issuecomment-1")
	s.runs("workflow_run", triggered(1), true, 1, "o/r#7: comment unchanged")
	if body := s.Comments("o/r", 7)[0].Body; !strings.HasPrefix(body, `<!-- op-readiness id="readiness" head="`+head+`" run="16" attempt="1" -->`) || !strings.Contains(body, "Reported by <code>&#46;github&#47;workflows&#47;readiness&#46;yml of fork&#47;r</code>, which the pull request may have changed.") {
		t.Errorf("the comment is\n%s", body)
	}

	// A rerun replaces it, and the first attempt, late, does not.
	s.ends(2, "success")
	s.runs("workflow_run", triggered(2), true, 1, "o/r#7: comment updated")
	s.runs("workflow_run", triggered(1), true, 1, "o/r#7: comment left alone: it tells newer results")

	// Nobody writes on what has moved on, or is over.
	s.ends(3, "success")
	s.open(pushed, false)
	s.runs("workflow_run", triggered(3), true, 1, "Nothing is posted: o/r#7 has another head by now")
	s.open(head, true)
	s.runs("workflow_run", triggered(3), true, 1, "Nothing is posted: o/r#7 is closed")
	if body := s.Comments("o/r", 7)[0].Body; !strings.Contains(body, `attempt="2"`) {
		t.Errorf("the comment is\n%s", body)
	}

	// What the maintainer can mend is an error.
	s.open(head, false)
	s.AddToken(token, githubtest.Token{Login: "github-actions[bot]", Installation: true})
	s.runs("workflow_run", triggered(3), false, 1, `it needs "pull-requests: write"`)
	s.AddToken(token, githubtest.Token{Login: "github-actions[bot]", Access: githubtest.Write, Installation: true, NoActions: true})
	s.runs("workflow_run", triggered(3), false, 1, `it needs "actions: read"`)
}
