package github

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
)

// Environment is what a step of a workflow finds around it:
// https://docs.github.com/en/actions/reference/workflows-and-actions/variables
type Environment struct {
	// API and Server are addresses; Repository is "owner/name".
	API, Server, Repository string
	Event                   string
	Workflow                string
	Run                     uint64
	Attempt                 int
	// Head is the commit that the event is about: the head of the pull request,
	// not the merge commit that is checked out.
	Head string
	// Pull is the number of the pull request; 0 where the event is not about
	// one, or does not say which.
	Pull int
	// Fork says that the head of the pull request is in another repository.
	Fork bool
	// Actor is the login that caused the event.
	Actor string
	// Triggering is the workflow run that a workflow_run event is about; nil for
	// other events.
	Triggering *Triggering
}

// Triggering is a workflow run that another one reports on.
type Triggering struct {
	Run        uint64
	Attempt    int
	HeadRepo   string // "owner/name"
	HeadBranch string
	Workflow   string // its file
}

// event is what we read of an event's payload:
// https://docs.github.com/en/webhooks/webhook-events-and-payloads
type event struct {
	PullRequest *struct {
		Number int `json:"number"`
		Head   ref `json:"head"`
		Base   ref `json:"base"`
	} `json:"pull_request"`
	WorkflowRun *struct {
		ID             uint64 `json:"id"`
		RunAttempt     int    `json:"run_attempt"`
		HeadSHA        string `json:"head_sha"`
		HeadBranch     string `json:"head_branch"`
		Path           string `json:"path"`
		HeadRepository repo   `json:"head_repository"`
	} `json:"workflow_run"`
}

type ref struct {
	SHA  string `json:"sha"`
	Repo repo   `json:"repo"`
}

type repo struct {
	FullName string `json:"full_name"`
}

// maxEvent is far more than GitHub delivers.
const maxEvent = 64 << 20

// FromEnvironment returns what surrounds a step of a workflow; nil outside of
// GitHub Actions. getenv returns the value of a variable, "" where it is not set.
func FromEnvironment(getenv func(string) string) (*Environment, error) {
	if getenv("GITHUB_ACTIONS") != "true" {
		return nil, nil
	}
	e := &Environment{
		API:        getenv("GITHUB_API_URL"),
		Server:     getenv("GITHUB_SERVER_URL"),
		Repository: getenv("GITHUB_REPOSITORY"),
		Event:      getenv("GITHUB_EVENT_NAME"),
		Workflow:   getenv("GITHUB_WORKFLOW"),
		Head:       getenv("GITHUB_SHA"),
		Actor:      getenv("GITHUB_ACTOR"),
	}
	var errs []error
	number := func(key string, set func(uint64)) {
		if value := getenv(key); value != "" {
			n, err := strconv.ParseUint(value, 10, 63)
			if err != nil {
				errs = append(errs, fmt.Errorf("$%s is not a number: %q", key, text.Cut(value, maxCell)))
			}
			set(n)
		}
	}
	number("GITHUB_RUN_ID", func(n uint64) { e.Run = n })
	number("GITHUB_RUN_ATTEMPT", func(n uint64) { e.Attempt = int(n) })
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if path := getenv("GITHUB_EVENT_PATH"); path != "" {
		if err := e.readEvent(path); err != nil {
			return nil, fmt.Errorf("$GITHUB_EVENT_PATH: %w", err)
		}
	}
	return e, nil
}

func (e *Environment) readEvent(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() > maxEvent {
		return fmt.Errorf("%s has %d bytes, and at most %d are read", path, info.Size(), maxEvent)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var payload event
	if err := json.Unmarshal(data, &payload); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if p := payload.PullRequest; p != nil {
		e.Pull, e.Head = p.Number, p.Head.SHA
		e.Fork = !strings.EqualFold(p.Head.Repo.FullName, p.Base.Repo.FullName)
	}
	if r := payload.WorkflowRun; r != nil {
		e.Head = r.HeadSHA
		e.Triggering = &Triggering{Run: r.ID, Attempt: r.RunAttempt, HeadRepo: r.HeadRepository.FullName, HeadBranch: r.HeadBranch, Workflow: r.Path}
	}
	return nil
}

// ReadOnly says why the workflow's token can only read, whatever the workflow
// asks for; "" where it may write:
// https://docs.github.com/en/actions/reference/workflows-and-actions/events-that-trigger-workflows#workflows-in-forked-repositories
func (e *Environment) ReadOnly() string {
	if !strings.HasPrefix(e.Event, "pull_request") || e.Event == "pull_request_target" {
		return ""
	}
	switch {
	case e.Fork:
		return "the token of a pull request from a fork is read-only"
	case e.Actor == "dependabot[bot]":
		return "the token of a pull request of Dependabot is read-only"
	}
	return ""
}

// Source is what the workflow tests.
func (e *Environment) Source() result.Source {
	s := result.Source{System: result.GitHubActions, Repository: e.Repository, Commit: e.Head, Pull: e.Pull, Job: e.Workflow}
	if e.Run > 0 {
		s.Build = strconv.FormatUint(e.Run, 10)
		s.URL = e.RunURL()
	}
	return s
}

// RunURL is the page of the workflow run.
func (e *Environment) RunURL() string {
	return fmt.Sprintf("%s/%s/actions/runs/%d", e.Server, e.Repository, e.Run)
}
