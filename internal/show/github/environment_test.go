package github

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
)

func fromEvent(t *testing.T, name, payload string) (*Environment, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "event.json")
	if err := os.WriteFile(path, []byte(payload), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": name, "GITHUB_EVENT_PATH": path, "GITHUB_REPOSITORY": "o/r", "GITHUB_SHA": "merge",
		"GITHUB_SERVER_URL": "https://github.com", "GITHUB_RUN_ID": "17", "GITHUB_RUN_ATTEMPT": "2", "GITHUB_WORKFLOW": "readiness",
	}
	return FromEnvironment(func(key string) string { return env[key] })
}

func TestTheHeadOfAPullRequestIsTheSource(t *testing.T) {
	for fork, repo := range map[bool]string{true: "fork/r", false: "O/R"} {
		e, err := fromEvent(t, "pull_request", `{"pull_request": {"number": 7, "head": {"sha": "abc", "repo": {"full_name": "`+repo+`"}}, "base": {"sha": "x", "repo": {"full_name": "o/r"}}}}`)
		if err != nil {
			t.Fatal(err)
		}
		want := result.Source{System: result.GitHubActions, Repository: "o/r", Commit: "abc", Pull: 7, Job: "readiness", Build: "17", URL: "https://github.com/o/r/actions/runs/17"}
		if e.Source() != want || e.Fork != fork || e.Attempt != 2 {
			t.Errorf("head in %s: %+v, fork %v, attempt %d", repo, e.Source(), e.Fork, e.Attempt)
		}
	}
}

func TestAPullRequestOfADeletedForkIsOfAFork(t *testing.T) {
	e, err := fromEvent(t, "pull_request", `{"pull_request": {"number": 7, "head": {"sha": "abc", "repo": null}, "base": {"repo": {"full_name": "o/r"}}}}`)
	if err != nil || !e.Fork {
		t.Errorf("%v, %+v", err, e)
	}
}

func TestOtherEvents(t *testing.T) {
	e, err := fromEvent(t, "schedule", `{"schedule": "0 0 * * *"}`)
	if err != nil || e.Head != "merge" || e.Pull != 0 || e.Fork {
		t.Errorf("%v, %+v", err, e)
	}
	e, err = fromEvent(t, "workflow_run", `{"workflow_run": {"id": 16, "run_attempt": 3, "head_sha": "abc", "head_branch": "topic", "path": ".github/workflows/readiness.yml", "pull_requests": [], "head_repository": {"full_name": "fork/r"}}}`)
	want := Triggering{Run: 16, Attempt: 3, HeadRepo: "fork/r", HeadBranch: "topic", Workflow: ".github/workflows/readiness.yml"}
	if err != nil || e.Head != "abc" || *e.Triggering != want {
		t.Errorf("%v, %+v", err, e)
	}
}

func TestOddEnvironments(t *testing.T) {
	if e, err := FromEnvironment(func(string) string { return "" }); e != nil || err != nil {
		t.Errorf("outside: %v, %v", e, err)
	}
	if _, err := fromEvent(t, "push", "<html>"); err == nil || !strings.Contains(err.Error(), "GITHUB_EVENT_PATH") {
		t.Errorf("HTML: %v", err)
	}
	env := map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_RUN_ID": "x"}
	if _, err := FromEnvironment(func(key string) string { return env[key] }); err == nil || !strings.Contains(err.Error(), "GITHUB_RUN_ID") {
		t.Errorf("a run that is not a number: %v", err)
	}
}

func TestTokensThatCanOnlyRead(t *testing.T) {
	for _, test := range []struct {
		event, actor string
		fork, want   bool
	}{
		{"pull_request", "somebody", true, true}, {"pull_request_review", "somebody", true, true}, {"pull_request", "dependabot[bot]", false, true},
		{"pull_request", "somebody", false, false}, {"pull_request_target", "somebody", true, false}, {"workflow_run", "dependabot[bot]", false, false},
	} {
		e := Environment{Event: test.event, Actor: test.actor, Fork: test.fork}
		if got := e.ReadOnly(); (got != "") != test.want {
			t.Errorf("%+v: %q", test, got)
		}
	}
}
