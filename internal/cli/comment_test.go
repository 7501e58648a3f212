package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/test/githubtest"
)

const (
	commentHead  = "0123456789abcdef0123456789abcdef01234567"
	commentToken = "ghs_thetokenthatmustneverbeseen"
)

// commenting is a pull request on a server that plays GitHub, and somebody who
// runs op-readiness comment.
type commenting struct {
	*githubtest.Server
	t   *testing.T
	dir string
	env map[string]string
}

func newCommenting(t *testing.T) *commenting {
	t.Helper()
	c := &commenting{Server: githubtest.New(t), t: t, dir: t.TempDir()}
	c.AddToken(commentToken, githubtest.WorkflowToken)
	c.SetPull(githubtest.Pull{Repo: "o/r", Number: 7, Head: commentHead, HeadRepo: "o/r", HeadBranch: "topic"})
	c.env = map[string]string{"GITHUB_TOKEN": commentToken, "GITHUB_API_URL": c.Start()}
	return c
}

// results makes a results folder that says it is for a commit.
func (c *commenting) results(name, commit string) string {
	c.t.Helper()
	dir := filepath.Join(c.dir, name)
	if err := os.CopyFS(dir, os.DirFS(recorded)); err != nil {
		c.t.Fatal(err)
	}
	path := filepath.Join(dir, result.ManifestFile)
	data, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	var manifest map[string]any
	if err := json.Unmarshal(data, &manifest); err != nil {
		c.t.Fatal(err)
	}
	if commit != "" {
		manifest["source"] = map[string]any{"system": "github-actions", "repository": "o/r", "commit": commit, "pull": 7, "build": "16"}
	}
	if data, err = json.Marshal(manifest); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		c.t.Fatal(err)
	}
	return dir
}

// inActions sets what a step of a workflow finds around it.
func (c *commenting) inActions(event, payload string, more ...string) {
	c.t.Helper()
	path := filepath.Join(c.dir, "event.json")
	if err := os.WriteFile(path, []byte(payload), 0o600); err != nil {
		c.t.Fatal(err)
	}
	for key, value := range map[string]string{
		"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": event, "GITHUB_EVENT_PATH": path, "GITHUB_REPOSITORY": "o/r", "GITHUB_SHA": "cccccccccccccccccccccccccccccccccccccccc",
		"GITHUB_SERVER_URL": "https://github.com", "GITHUB_RUN_ID": "17", "GITHUB_RUN_ATTEMPT": "2", "GITHUB_WORKFLOW": "readiness", "GITHUB_STEP_SUMMARY": filepath.Join(c.dir, "summary.md"),
	} {
		c.env[key] = value
	}
	for i := 0; i < len(more); i += 2 {
		c.env[more[i]] = more[i+1]
	}
}

func (c *commenting) main(args ...string) said {
	c.t.Helper()
	var out, errs bytes.Buffer
	var environ []string
	for key, value := range c.env {
		environ = append(environ, key+"="+value)
	}
	code := Main(context.Background(), append([]string{"comment", "--settle", "0s"}, args...), Surroundings{Environ: environ, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
	got := said{code, out.String(), errs.String()}
	if strings.Contains(got.stdout+got.stderr, commentToken) {
		c.t.Errorf("the token is told:\n%s%s", got.stdout, got.stderr)
	}
	for _, comment := range c.Comments("o/r", 7) {
		if strings.Contains(comment.Body, commentToken) {
			c.t.Error("the token is in the comment")
		}
	}
	return got
}

// want reports an end that is not as wanted, and another number of comments.
func (c *commenting) want(got said, code, comments int, says ...string) {
	c.t.Helper()
	for _, text := range says {
		if !strings.Contains(got.stdout+got.stderr, text) {
			c.t.Errorf("it does not say %q:\n%s%s", text, got.stdout, got.stderr)
		}
	}
	if got.code != code {
		c.t.Errorf("exit code %d, want %d\n%s%s", got.code, code, got.stdout, got.stderr)
	}
	if n := len(c.Comments("o/r", 7)); n != comments {
		c.t.Errorf("%d comments, want %d\n%s", n, comments, got.stderr)
	}
}

func pullEvent(headRepo string) string {
	return fmt.Sprintf(`{"pull_request": {"number": 7, "head": {"sha": %q, "repo": {"full_name": %q}}, "base": {"sha": "x", "repo": {"full_name": "o/r"}}}}`, commentHead, headRepo)
}

func TestCommentByHand(t *testing.T) {
	c := newCommenting(t)
	c.AddToken(commentToken, githubtest.Token{Login: "somebody", Access: githubtest.Write})
	flags := []string{c.results("a", ""), "--repo", "o/r", "--pull", "7", "--commit", commentHead}
	c.want(c.main(append(flags, "--run", "1")...), verdict.ExitReady, 1, "o/r#7: comment created https://github.com/o/r/pull/7#issuecomment-1")
	c.want(c.main(append(flags, "--run", "1")...), verdict.ExitReady, 1, "comment unchanged https")
	c.want(c.main(append(flags, "--run", "2")...), verdict.ExitReady, 1, "comment updated https")
	c.want(c.main(append(flags, "--run", "1", "--attempt", "9")...), verdict.ExitReady, 1, "comment left alone: it shows newer results https")
	c.want(c.main(append(flags, "--run", "1", "--comment-id", "nightly")...), verdict.ExitReady, 2, "comment created")
	all := c.Comments("o/r", 7)
	if len(all) == 0 || all[0].Author != "somebody" || !strings.Contains(all[0].Body, "**"+recordedScope+": inconclusive**") || !strings.HasPrefix(all[0].Body, `<!-- op-readiness id="readiness" head="`+commentHead+`" run="2" attempt="1" -->`) {
		t.Errorf("the comments: %.300q", fmt.Sprint(all))
	}
}

func TestCommentDryRunNeedsNothing(t *testing.T) {
	c := newCommenting(t)
	c.env = nil
	got := c.main(c.results("a", commentHead), "--dry-run", "--link", "grid=https://testgrid.k8s.io/windows")
	c.want(got, verdict.ExitReady, 0, "Windows operational readiness", "| Core.Concurrent |", "[grid](<https://testgrid.k8s.io/windows>)")
	if got.stderr != "" || !strings.HasPrefix(got.stdout, "### ") || len(c.Requests()) > 0 {
		t.Errorf("stderr %q, requests %q, stdout %.100q", got.stderr, c.Requests(), got.stdout)
	}
}

func TestCommentInActions(t *testing.T) {
	c := newCommenting(t)
	c.inActions("pull_request", pullEvent("o/r"))
	a, b := c.results("a", commentHead), c.results("b", commentHead)
	c.want(c.main("ltsc2022="+a, "ltsc2025="+b, "--base", "ltsc2022="+c.results("base", headOfBase), "--summary", "--annotate"), verdict.ExitReady, 1,
		"o/r#7: comment created", "::warning title=ltsc2022")
	body := c.Comments("o/r", 7)[0].Body
	for _, text := range []string{`run="17" attempt="2"`, "of 2 clusters", "no difference"} {
		if !strings.Contains(body, text) {
			t.Errorf("the comment does not say %q:\n%s", text, body)
		}
	}
	summary, err := os.ReadFile(c.env["GITHUB_STEP_SUMMARY"])
	if _, rest, _ := strings.Cut(body, "\n"); err != nil || string(summary) != rest {
		t.Errorf("%v; the summary is not the comment:\n%s", err, summary)
	}
}

const headOfBase = "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"

func TestCommentOfAFork(t *testing.T) {
	for name, event := range map[string]struct{ repo, actor string }{"a fork": {"fork/r", "somebody"}, "Dependabot": {"o/r", "dependabot[bot]"}} {
		t.Run(name, func(t *testing.T) {
			c := newCommenting(t)
			c.AddToken(commentToken, githubtest.Token{Login: "github-actions[bot]", Installation: true})
			c.inActions("pull_request", pullEvent(event.repo), "GITHUB_ACTOR", event.actor)
			dir := c.results("a", commentHead)
			c.want(c.main(dir, "--summary"), verdict.ExitReady, 0, "Nothing is posted: the token of a pull request", "read-only", "workflow_run")
			if summary, err := os.ReadFile(c.env["GITHUB_STEP_SUMMARY"]); err != nil || !strings.Contains(string(summary), "Windows operational readiness") {
				t.Errorf("%v: the summary is %s", err, summary)
			}
			delete(c.env, "GITHUB_TOKEN")
			c.want(c.main(dir), verdict.ExitReady, 0, "Nothing is posted")
		})
	}
}

// Where the token could write and does not, somebody can fix it.
func TestCommentWithoutPermission(t *testing.T) {
	for _, event := range []struct{ name, repo string }{{"pull_request", "o/r"}, {"pull_request_target", "fork/r"}} {
		c := newCommenting(t)
		c.AddToken(commentToken, githubtest.Token{Login: "github-actions[bot]", Installation: true})
		c.inActions(event.name, pullEvent(event.repo))
		c.want(c.main(c.results("a", commentHead)), verdict.ExitInconclusive, 0, "commenting on o/r#7: the token has no permission (403 Resource not accessible by integration): it needs \"pull-requests: write\"")
	}
}

func runEvent(headRepo string) string {
	return fmt.Sprintf(`{"workflow_run": {"id": 16, "run_attempt": 3, "head_sha": %q, "head_branch": "topic", "path": ".github/workflows/readiness.yml", "pull_requests": [], "head_repository": {"full_name": %q}}}`, commentHead, headRepo)
}

func TestCommentForTheRunThatTriggered(t *testing.T) {
	c := newCommenting(t)
	c.SetPull(githubtest.Pull{Repo: "o/r", Number: 7, Head: commentHead, HeadRepo: "fork/r", HeadBranch: "topic"})
	c.inActions("workflow_run", runEvent("fork/r"))
	dir := c.results("a", commentHead)
	c.want(c.main(dir), verdict.ExitReady, 1, "o/r#7: comment created")
	body := c.Comments("o/r", 7)[0].Body
	for _, text := range []string{`head="` + commentHead + `" run="16" attempt="3"`, "Reported by ", "readiness", "fork", "which the pull request may have changed"} {
		if !strings.Contains(body, text) {
			t.Errorf("the comment does not say %q:\n%s", text, body)
		}
	}
	for name, commit := range map[string]string{"another commit": headOfBase, "no commit": ""} {
		c.want(c.main(c.results(name, commit)), verdict.ExitUsage, 1, "and the workflow run was for "+commentHead)
	}
	c.env["GITHUB_REPOSITORY"] = "other/r"
	c.want(c.main(dir), verdict.ExitUsage, 1, `the results are for repository "o/r", and this is about other/r`)
	c.env["GITHUB_REPOSITORY"] = "o/r"

	c.inActions("workflow_run", runEvent("another-fork/r"))
	c.want(c.main(dir), verdict.ExitReady, 1, "Nothing is posted: no open pull request of o/r has "+commentHead+" of another-fork/r as its head")
	c.inActions("workflow_run", strings.Replace(runEvent("x"), `{"full_name": "x"}`, "null", 1))
	c.want(c.main(dir), verdict.ExitReady, 1, "Nothing is posted")
	c.SetPull(githubtest.Pull{Repo: "o/r", Number: 7, Head: headOfBase, HeadRepo: "fork/r", HeadBranch: "topic"})
	c.inActions("workflow_run", runEvent("fork/r"))
	c.want(c.main(dir), verdict.ExitReady, 1, "Nothing is posted")
}

func TestCommentAfterAForcePush(t *testing.T) {
	c := newCommenting(t)
	c.SetPull(githubtest.Pull{Repo: "o/r", Number: 7, Head: headOfBase, HeadRepo: "o/r", HeadBranch: "topic"})
	c.inActions("pull_request", pullEvent("o/r"))
	c.want(c.main(c.results("a", commentHead)), verdict.ExitReady, 0, "comment not written: the pull request has another head by now")
}

func TestCommentInProw(t *testing.T) {
	c := newCommenting(t)
	c.AddToken(commentToken, githubtest.Token{Login: "k8s-ci-robot", Access: githubtest.Write})
	file := filepath.Join(c.dir, "token")
	if err := os.WriteFile(file, []byte(commentToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.env = map[string]string{"JOB_SPEC": fmt.Sprintf(`{"type": "presubmit", "job": "pull-windows", "buildid": "1750000000000000001", "refs": {"org": "o", "repo": "r", "base_sha": %q, "pulls": [{"number": 7, "sha": %q}]}}`, headOfBase, commentHead)}
	c.want(c.main(c.results("a", commentHead), "--api", c.Start(), "--token-file", file), verdict.ExitReady, 1, "o/r#7: comment created")
	if body := c.Comments("o/r", 7)[0].Body; !strings.Contains(body, `run="1750000000000000001" attempt="1"`) {
		t.Errorf("%.300s", body)
	}
	c.env["JOB_SPEC"] = `{"type": "periodic", "job": "ci-windows", "buildid": "1750000000000000001", "refs": {"org": "o", "repo": "r", "base_sha": "` + commentHead + `"}}`
	c.want(c.main(c.results("b", commentHead), "--api", c.Start(), "--token-file", file), verdict.ExitUsage, 1, "--pull: which pull request?")
}

func TestCommentRefusesWhatIsWrong(t *testing.T) {
	c := newCommenting(t)
	dir := c.results("a", commentHead)
	whole := []string{"--repo", "o/r", "--pull", "7", "--commit", commentHead, "--run", "1"}
	with := func(args ...string) []string { return append(append([]string{}, whole...), args...) }
	empty := t.TempDir()
	for _, test := range []struct {
		says string
		args []string
	}{
		{"which results? Give a results folder, or --workflow-run with the id", nil},
		{"give one of the two", with(dir, "--workflow-run", "7")},
		{"holds no results folder", with(empty)},
		{"holds no results folder", with("a=" + empty)},
		{`two results are named ""`, with(dir, dir)},
		{`two results are named "a"`, with("a="+dir, "a="+dir)},
		{`--base: no results are named "b"`, with("a="+dir, "--base", "b="+dir)},
		{`--base: two are named ""`, with(dir, "--base", dir, "--base", dir)},
		{"--base: " + empty + " holds no results folder", with(dir, "--base", empty)},
		{`--link: "grid" is not TEXT=URL`, with(dir, "--link", "grid")},
		{`--link: "x=javascript:alert(1)" is not TEXT=URL with an address of http or https`, with(dir, "--link", "x=javascript:alert(1)")},
		{"--comment-id: \"a b\" cannot name a comment: up to 64 letters", with(dir, "--comment-id", "a b")},
		{"--repo: \"o\" is not a repository: give owner/name", with(dir, "--repo", "o")},
		{"--repo: \"o/r/x\" is not a repository", with(dir, "--repo", "o/r/x")},
		{"--pull: which pull request?", with(dir, "--pull", "0")},
		{"--pull: which pull request?", with(dir, "--pull", "-7")},
		{"--commit: \"main\" is not the hash of a commit: 40 (or 64)", with(dir, "--commit", "main")},
		{"the results are for commit \"" + commentHead + "\", and this is about " + headOfBase, with(dir, "--commit", headOfBase)},
		{"--run: which run?", with(dir, "--run", "0")},
		{`invalid argument "-1" for "--run"`, with(dir, "--run", "-1")},
		{"--api: \"github.com\" is not the address of an API: give one such as https://api.github.com", with(dir, "--api", "github.com")},
		{"--token-file: open", with(dir, "--token-file", filepath.Join(empty, "token"))},
		{"--summary: $GITHUB_STEP_SUMMARY is not set", with(dir, "--summary")},
		{"unknown flag: --dryrun", with(dir, "--dryrun")},
	} {
		if got := c.main(test.args...); got.code != verdict.ExitUsage || !strings.Contains(got.stderr, test.says) || got.stdout != "" {
			t.Errorf("%q: exit code %d, %q, %q\nwant %q", test.args, got.code, got.stdout, got.stderr, test.says)
		}
	}
	got := c.main(dir)
	for _, flag := range []string{"--repo", "--pull", "--commit", "--run"} {
		if !strings.Contains(got.stderr, flag+": ") {
			t.Errorf("without all, it does not say %s: %s", flag, got.stderr)
		}
	}
	delete(c.env, "GITHUB_TOKEN")
	c.want(c.main(with(dir)...), verdict.ExitUsage, 0, "there is no token: set $GITHUB_TOKEN, or give --token-file; --dry-run needs none")
	c.env["JOB_SPEC"] = "{"
	c.want(c.main(with(dir)...), verdict.ExitUsage, 0, "$JOB_SPEC is not what Prow puts there")
	delete(c.env, "JOB_SPEC")
	c.inActions("pull_request", "<html>")
	c.want(c.main(with(dir)...), verdict.ExitUsage, 0, "$GITHUB_EVENT_PATH")
	if requests := c.Requests(); len(requests) > 0 {
		t.Errorf("GitHub was asked: %q", requests)
	}
}

func TestCommentSaysWhatGitHubSays(t *testing.T) {
	c := newCommenting(t)
	dir := c.results("a", commentHead)
	whole := []string{dir, "--repo", "o/r", "--commit", commentHead, "--run", "1", "--pull"}
	c.want(c.main(append(whole, "8")...), verdict.ExitInconclusive, 0, "o/r#8: it is not there, or the token has no permission to see it (404)")
	c.env["GITHUB_TOKEN"] = "wrong"
	c.want(c.main(append(whole, "7")...), verdict.ExitInconclusive, 0, "asking whose token it is: the token has no permission: GitHub does not know it (401 Bad credentials)")
	c.env["GITHUB_TOKEN"] = commentToken
	c.SetPull(githubtest.Pull{Repo: "o/r", Number: 7, Head: commentHead, HeadRepo: "o/r", HeadBranch: "topic", Locked: true})
	c.want(c.main(append(whole, "7")...), verdict.ExitReady, 0, "comment not written: the conversation is locked")
	c.Fault = func(*http.Request) *githubtest.Fault {
		return &githubtest.Fault{Status: http.StatusForbidden, Header: http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"4102444800"}}, Body: `{"message": "API rate limit exceeded"}`}
	}
	c.want(c.main(append(whole, "7", "--author", "me")...), verdict.ExitInconclusive, 0, "GitHub's rate limit is reached, until 2100-01-01T00:00:00Z: try again then")
}

func TestCommentIsInterrupted(t *testing.T) {
	c := newCommenting(t)
	signals := make(chan os.Signal, 2)
	c.Fault = func(*http.Request) *githubtest.Fault {
		signals <- os.Interrupt
		return &githubtest.Fault{Status: http.StatusBadGateway}
	}
	var out, errs bytes.Buffer
	code := Main(context.Background(), []string{"comment", c.results("a", commentHead), "--repo", "o/r", "--pull", "7", "--commit", commentHead, "--run", "1"}, Surroundings{
		Environ: []string{"GITHUB_TOKEN=" + commentToken, "GITHUB_API_URL=" + c.env["GITHUB_API_URL"]}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Signals: signals,
	})
	if code != verdict.ExitInterrupted {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
}
