package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/test/githubtest"
)

// withRun puts a run of a fork with one artifact on a stage.
func (s *stage) withRun(data []byte) {
	s.SetRun(githubtest.Run{Repo: "o/r", ID: 16, Attempt: 2, Head: headA, HeadRepo: "fork/r", HeadBranch: "topic", Conclusion: "failure"})
	s.AddArtifact(githubtest.Artifact{Repo: "o/r", Run: 16, Name: "op-readiness-x-merged-attempt-2", Data: data})
}

// download reads the run, lists its artifacts and downloads the first.
func (s *stage) download(ctx context.Context, limit int64) ([]byte, error) {
	s.t.Helper()
	client := s.poster("secret").Client
	run, err := ReadWorkflowRun(ctx, client, "o", "r", 16, 2)
	if err != nil {
		return nil, err
	}
	artifacts, err := run.Results(ctx, client)
	if err != nil {
		return nil, err
	}
	file, err := os.Create(filepath.Join(s.t.TempDir(), "archive"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer file.Close()
	if err := client.Download(ctx, run, artifacts[0], file, limit); err != nil {
		return nil, err
	}
	return os.ReadFile(file.Name())
}

// Whatever happens to one request passes, and what is downloaded is whole.
func TestFaultsThatPassWhileReading(t *testing.T) {
	limit := githubtest.Fault{Status: http.StatusForbidden, Body: `{"message": "You have exceeded a secondary rate limit"}`}
	wait := githubtest.Fault{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"17"}}}
	for name, fault := range map[string]githubtest.Fault{
		"502": {Status: http.StatusBadGateway, Body: "<html>Unicorn!</html>"}, "503": {Status: http.StatusServiceUnavailable}, "429 with a time": wait, "403 secondary": limit,
		"truncated": {After: true}, "no answer": {Hang: true}, "HTML": {Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/html"}}, Body: "<html>Sign in</html>"},
		"a signature that is over": {Status: http.StatusForbidden, Body: "<Error/>"},
	} {
		for _, where := range []string{"/attempts/2", "/artifacts", "/zip", "/blob/"} {
			if name == "a signature that is over" && where != "/blob/" {
				continue
			}
			t.Run(name+" at "+where, func(t *testing.T) {
				onStage(t, func(t *testing.T, s *stage) {
					s.withRun([]byte("the archive"))
					s.Fault = once("GET", where, fault)
					if data, err := s.download(t.Context(), 1<<20); err != nil || string(data) != "the archive" {
						t.Errorf("%q, %v", data, err)
					}
					if told := s.told.text.String(); !strings.Contains(told, "trying again in") || strings.Contains(told, githubtest.Signature()) {
						t.Errorf("it says %q", told)
					}
				})
			})
		}
	}
}

// Errors name what was done and on which host, and never the signed address.
func TestFaultsThatStayWhileReading(t *testing.T) {
	for name, test := range map[string]struct {
		where string
		fault githubtest.Fault
		says  string
	}{
		"no run":              {"/attempts/2", githubtest.Fault{Status: http.StatusNotFound, Body: `{"message": "Not Found"}`}, `reading workflow run 16 of o/r: it is not there, or the token has no permission to see it (404): look at the number, or give a token with "actions: read"`},
		"no artifacts":        {"/artifacts", githubtest.Fault{Status: http.StatusForbidden, Body: `{"message": "Resource not accessible by integration"}`}, `listing the artifacts of run 16 of o/r: the token has no permission (403 Resource not accessible by integration): it needs "actions: read"`},
		"no download":         {"/zip", githubtest.Fault{Status: http.StatusForbidden, Body: `{"message": "Resource not accessible by integration"}`}, `downloading op-readiness-x-merged-attempt-2 of run 16 of o/r: asking where it is: the token has no permission (403`},
		"expired":             {"/zip", githubtest.Fault{Status: http.StatusGone, Body: `{"message": "Artifact has expired"}`}, "downloading op-readiness-x-merged-attempt-2 of run 16 of o/r: it has expired, and GitHub has removed it"},
		"no address":          {"/zip", githubtest.Fault{Status: http.StatusFound}, "GitHub does not lead to an address of https"},
		"not https":           {"/zip", githubtest.Fault{Status: http.StatusFound, Header: http.Header{"Location": {"http://blobs.github.example/blob/1000?" + githubtest.Signature()}}}, "GitHub does not lead to an address of https"},
		"a file":              {"/zip", githubtest.Fault{Status: http.StatusFound, Header: http.Header{"Location": {"file:///etc/passwd"}}}, "GitHub does not lead to an address of https"},
		"with a password":     {"/zip", githubtest.Fault{Status: http.StatusFound, Header: http.Header{"Location": {"https://user:password@blobs.github.example/"}}}, "GitHub does not lead to an address of https"},
		"another archive":     {"/blob/", githubtest.Fault{Status: http.StatusOK, Body: "another"}, "reading from blobs.github.example: its checksum is "},
		"no archive":          {"/blob/", githubtest.Fault{Status: http.StatusNotFound}, "blobs.github.example answers 404: run this again"},
		"down":                {"/blob/", githubtest.Fault{Status: http.StatusServiceUnavailable}, "blobs.github.example answers 503: run this again"},
		"cut off":             {"/blob/", githubtest.Fault{After: true}, "reading from blobs.github.example: unexpected EOF: run this again"},
		"leads on to http":    {"/blob/", githubtest.Fault{Status: http.StatusFound, Header: http.Header{"Location": {"http://evil.example/"}}}, "asking blobs.github.example: it leads elsewhere"},
		"leads in circles":    {"/blob/", githubtest.Fault{Status: http.StatusFound, Header: http.Header{"Location": {"https://blobs.github.example/blob/1000?" + githubtest.Signature()}}}, "asking blobs.github.example: it leads elsewhere"},
		"another run":         {"/attempts/2", githubtest.Fault{Status: http.StatusOK, Body: `{"id": 17, "repository": {"full_name": "o/r"}}`}, `GitHub answers with run 17 of "o/r"`},
		"another repository":  {"/attempts/2", githubtest.Fault{Status: http.StatusOK, Body: `{"id": 16, "repository": {"full_name": "o/x"}}`}, `GitHub answers with run 16 of "o/x"`},
		"a run of no commit":  {"/attempts/2", githubtest.Fault{Status: http.StatusOK, Body: `{"id": 16, "head_sha": "../..", "repository": {"full_name": "o/r"}}`}, "GitHub names no commit of it"},
		"a list of something": {"/artifacts", githubtest.Fault{Status: http.StatusOK, Body: `{"artifacts": 7}`}, "listing the artifacts of run 16 of o/r: json:"},
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, func(t *testing.T, s *stage) {
				s.withRun([]byte("the archive"))
				s.Fault = times(-1, "GET", test.where, test.fault)
				_, err := s.download(t.Context(), 1<<20)
				if err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), githubtest.Signature()) {
					t.Errorf("%v", err)
				}
				if expired := name == "expired"; errors.Is(err, errExpired) != expired {
					t.Errorf("expired: %v", err)
				}
			})
		})
	}
}

func TestADownloadHasALimit(t *testing.T) {
	for name, artifact := range map[string]githubtest.Artifact{
		"as it is told":       {Data: []byte("x"), Size: 11},
		"as it turns out":     {Data: []byte("12345678901"), Size: 1},
		"and no digest":       {Data: []byte("12345678901"), Size: 1, Digest: "-"},
		"just fits":           {Data: []byte("1234567890")},
		"fits without digest": {Data: []byte("1234567890"), Digest: "-"},
		"an odd digest":       {Data: []byte("1234567890"), Digest: "md5:x"},
	} {
		onStage(t, func(t *testing.T, s *stage) {
			s.SetRun(githubtest.Run{Repo: "o/r", ID: 16, Attempt: 2, Head: headA, HeadRepo: "fork/r", HeadBranch: "topic"})
			artifact.Repo, artifact.Run, artifact.Name = "o/r", 16, "op-readiness-x-merged-attempt-1"
			s.AddArtifact(artifact)
			data, err := s.download(t.Context(), 10)
			if fits := len(artifact.Data) == 10; fits != (err == nil) || fits && len(data) != 10 || !fits && !strings.Contains(err.Error(), "it is too big") {
				t.Errorf("%s: %q, %v", name, data, err)
			}
		})
	}
}

func TestADownloadObeysItsContext(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.withRun([]byte("the archive"))
		s.Fault = times(-1, "GET", "/blob/", githubtest.Fault{Hang: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		if _, err := s.download(ctx, 1<<20); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 2*time.Minute {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// Wherever an answer leads, the token stays with the API.
func TestATokenIsForTheAPIOnly(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.withRun(nil)
		seen := map[string]string{}
		inner := &githubtest.Transport{Handler: s.Server}
		client, err := newClient("https://api.github.example", "secret", "test", &s.told, roundTrip(func(r *http.Request) (*http.Response, error) {
			seen[r.URL.Host] = r.Header.Get("Authorization")
			return inner.RoundTrip(r)
		}))
		if err != nil {
			t.Fatal(err)
		}
		s.Fault = once("GET", "/runs/16", githubtest.Fault{Status: http.StatusTemporaryRedirect, Header: http.Header{"Location": {"https://blobs.github.example/repos/o/r/actions/runs/16"}}})
		_, _ = ReadWorkflowRun(t.Context(), client, "o", "r", 16, 0)
		if seen["api.github.example"] != "Bearer secret" || seen["blobs.github.example"] != "" || len(seen) != 2 {
			t.Errorf("%q", seen)
		}
	})
}

func TestTheNewestAttemptOfEachNameCounts(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		for attempt := 1; attempt <= 11; attempt++ {
			s.SetRun(githubtest.Run{Repo: "o/r", ID: 16, Attempt: attempt, Head: headA, HeadRepo: "fork/r", HeadBranch: "topic"})
		}
		for name, attempts := range map[string][]int{"a": {9, 10, 1}, "b": {2}, "c": {11}} {
			for _, attempt := range attempts {
				s.AddArtifact(githubtest.Artifact{Repo: "o/r", Run: 16, Name: fmt.Sprintf("op-readiness-%s-merged-attempt-%d", name, attempt)})
			}
		}
		client := s.poster("secret").Client
		for attempt, want := range map[int]string{0: "a10 b2 c11", 10: "a10 b2", 9: "a9 b2", 1: "a1"} {
			run, err := ReadWorkflowRun(t.Context(), client, "o", "r", 16, attempt)
			if err != nil {
				t.Fatal(err)
			}
			found, err := run.Results(t.Context(), client)
			var got []string
			for _, a := range found {
				got = append(got, fmt.Sprint(a.Of, a.Attempt))
			}
			if strings.Join(got, " ") != want || err != nil {
				t.Errorf("attempt %d: %q, %v; want %q", attempt, got, err, want)
			}
		}
	})
}

func TestWhyThereIsNoPullRequest(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.SetPull(githubtest.Pull{Repo: "o/r", Number: 7, Head: headB, HeadRepo: "fork/r", HeadBranch: "topic"})
		s.SetPull(githubtest.Pull{Repo: "o/r", Number: 8, Head: headA, HeadRepo: "fork/r", HeadBranch: "done", Closed: true})
		for branch, want := range map[string]string{
			"topic": "o/r#7 has another head by now than " + headA, "done": "o/r#8 is closed", "other": "no open pull request of o/r has " + headA + " of fork/r as its head", "": "no open pull request",
		} {
			open, why, err := Resolve(t.Context(), s.poster("secret").Client, "o", "r", "fork/r", branch, headA)
			if len(open) > 0 || err != nil || !strings.Contains(why, want) {
				t.Errorf("%q: %v, %q, %v", branch, open, why, err)
			}
		}
	})
}

func TestOnlyWhatIsThereIsUpdated(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		p := s.poster("secret")
		p.UpdateOnly = true
		for _, want := range []struct {
			done     Done
			comments int
		}{{doneAbsent, 0}, {doneUpdated, 1}} {
			done, _, err := p.Post(t.Context(), pr7, marked(2, 1), "new")
			if done != want.done || err != nil || len(s.Comments("o/r", 7)) != want.comments {
				t.Errorf("%q, %v, %d comments", done, err, len(s.Comments("o/r", 7)))
			}
			s.AddComment("o/r", 7, ActionsBot, marked(1, 1).String()+"old")
		}
	})
}

func TestAClosedPullRequestIsLeftAloneWhereItMatters(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.SetPull(githubtest.Pull{Repo: "o/r", Number: 7, Head: headA, HeadRepo: "o/r", HeadBranch: "topic", Closed: true})
		p := s.poster("secret")
		p.OpenOnly = true
		if done, page, err := p.Post(t.Context(), pr7, marked(1, 1), "first"); done != doneClosed || page != "" || err != nil || len(s.Comments("o/r", 7)) > 0 {
			t.Errorf("%q, %q, %v", done, page, err)
		}
	})
}
