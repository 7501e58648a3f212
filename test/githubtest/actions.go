package githubtest

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Run is one attempt at a run of a workflow.
type Run struct {
	Repo    string // "owner/name"
	ID      int64
	Attempt int // 0 is 1
	// Head is the commit, on HeadBranch of HeadRepo.
	Head, HeadRepo, HeadBranch string
	// Event is "pull_request" where it is "", Path that of a readiness.yml.
	Event, Path string
	// Status is "completed" where it is "", and Conclusion then "success".
	Status, Conclusion string
}

// Artifact is what a run uploaded.
type Artifact struct {
	Repo string
	Run  int64
	Name string
	// Data is the archive.
	Data []byte
	// Size is what GitHub says it has; 0 is the truth.
	Size    int64
	Expired bool
	// Head is the commit that GitHub says it is of; "" is that of the run.
	Head string
	// Digest is the checksum that GitHub tells; "" is the right one, and "-" none,
	// as for artifacts of old.
	Digest string

	id int64
}

// blobs is where artifacts are stored, when the server does not listen: not where
// the API is.
const blobs = "https://blobs.github.example"

// signature is what lets anybody download who has it.
const signature = "sig=a-secret-signature"

// Signature is the part of a download's address that nobody may see.
func Signature() string { return signature }

var (
	//go:embed testdata/workflow-run.json
	runExample []byte
	//go:embed testdata/artifact.json
	artifactExample []byte
)

// SetRun adds an attempt at a run, or changes it.
func (s *Server) SetRun(r Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Attempt = max(r.Attempt, 1)
	for _, old := range s.runs {
		if strings.EqualFold(old.Repo, r.Repo) && old.ID == r.ID && old.Attempt == r.Attempt {
			*old = r
			return
		}
	}
	s.runs = append(s.runs, &r)
}

// AddArtifact gives a run an artifact.
func (s *Server) AddArtifact(a Artifact) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.id = int64(1000 + len(s.artifacts))
	s.artifacts = append(s.artifacts, &a)
}

// run returns an attempt at a run, the newest for attempt 0.
func (s *Server) run(repo, id string, attempt int) *Run {
	var found *Run
	for _, r := range s.runs {
		if strings.EqualFold(r.Repo, repo) && strconv.FormatInt(r.ID, 10) == id && (attempt == 0 || attempt == r.Attempt) && (found == nil || found.Attempt < r.Attempt) {
			found = r
		}
	}
	return found
}

// mayReadActions returns a refusal unless the caller may read runs and artifacts.
func (c *call) mayReadActions() (reply, bool) {
	if c.token != nil && c.token.NoActions {
		return refuse(http.StatusForbidden, "Resource not accessible by integration"), false
	}
	return reply{}, true
}

func (s *Server) getRun(c *call) reply { return s.answerRun(c, 0) }

func (s *Server) getAttempt(c *call) reply {
	attempt, _ := strconv.Atoi(c.PathValue("attempt_number"))
	return s.answerRun(c, max(attempt, 1))
}

func (s *Server) answerRun(c *call, attempt int) reply {
	if refusal, ok := c.mayReadActions(); !ok {
		return refusal
	}
	r := s.run(c.repo(), c.PathValue("run_id"), attempt)
	if r == nil {
		return refuse(http.StatusNotFound, "Not Found")
	}
	return reply{status: http.StatusOK, value: r.fill(example(runExample))}
}

// fill says a run in an example.
func (r *Run) fill(out map[string]any) map[string]any {
	out["id"], out["run_attempt"], out["head_sha"], out["head_branch"] = r.ID, r.Attempt, r.Head, r.HeadBranch
	out["event"], out["path"] = cmp.Or(r.Event, "pull_request"), cmp.Or(r.Path, ".github/workflows/readiness.yml")
	out["status"], out["conclusion"] = cmp.Or(r.Status, "completed"), nil
	if out["status"] == "completed" {
		out["conclusion"] = cmp.Or(r.Conclusion, "success")
	}
	out["html_url"] = fmt.Sprintf("https://github.com/%s/actions/runs/%d", r.Repo, r.ID)
	out["pull_requests"] = []any{} // as for a fork
	out["repository"].(map[string]any)["full_name"], out["repository"].(map[string]any)["id"] = r.Repo, repoID(r.Repo)
	out["head_repository"].(map[string]any)["full_name"], out["head_repository"].(map[string]any)["id"] = r.HeadRepo, repoID(r.HeadRepo)
	return out
}

// repoID is a number that a repository has and no other.
func repoID(repo string) int64 {
	sum := sha256.Sum256([]byte(strings.ToLower(repo)))
	return int64(sum[0])<<16 | int64(sum[1])<<8 | int64(sum[2])
}

func (s *Server) listArtifacts(c *call) reply {
	if refusal, ok := c.mayReadActions(); !ok {
		return refusal
	}
	r := s.run(c.repo(), c.PathValue("run_id"), 0)
	if r == nil {
		return refuse(http.StatusNotFound, "Not Found")
	}
	found := []any{}
	for _, a := range s.artifacts {
		if strings.EqualFold(a.Repo, r.Repo) && a.Run == r.ID && (c.URL.Query().Get("name") == "" || c.URL.Query().Get("name") == a.Name) {
			found = append(found, a.json(r))
		}
	}
	slices.Reverse(found) // GitHub lists the newest first
	answer := paged(c, found)
	answer.value = map[string]any{"total_count": len(found), "artifacts": answer.value}
	return answer
}

func (a *Artifact) json(r *Run) map[string]any {
	out := example(artifactExample)
	base := fmt.Sprintf("https://api.github.com/repos/%s/actions/artifacts/%d", a.Repo, a.id)
	out["id"], out["name"], out["expired"], out["url"], out["archive_download_url"] = a.id, a.Name, a.Expired, base, base+"/zip"
	out["size_in_bytes"] = cmp.Or(a.Size, int64(len(a.Data)))
	out["expires_at"] = time.Now().Add(90 * 24 * time.Hour).UTC().Format(time.RFC3339)
	if a.Expired {
		out["expires_at"] = "2020-03-21T14:59:22Z"
	}
	out["digest"] = cmp.Or(a.Digest, fmt.Sprintf("sha256:%x", sha256.Sum256(a.Data)))
	if a.Digest == "-" {
		delete(out, "digest")
	}
	run := out["workflow_run"].(map[string]any)
	run["id"], run["repository_id"], run["head_sha"], run["head_branch"] = a.Run, repoID(a.Repo), cmp.Or(a.Head, r.Head), r.HeadBranch
	run["head_repository_id"] = repoID(r.HeadRepo)
	return out
}

func (s *Server) downloadArtifact(c *call) reply {
	switch {
	case c.token == nil:
		return refuse(http.StatusUnauthorized, "Requires authentication")
	case c.token.NoActions:
		return refuse(http.StatusForbidden, "Resource not accessible by integration")
	}
	for _, a := range s.artifacts {
		if strings.EqualFold(a.Repo, c.repo()) && strconv.FormatInt(a.id, 10) == c.PathValue("artifact_id") {
			if a.Expired {
				return refuse(http.StatusGone, "Artifact has expired")
			}
			return reply{status: http.StatusFound, location: fmt.Sprintf("%s/blob/%d?%s", cmp.Or(s.blobs, blobs), a.id, signature)}
		}
	}
	return refuse(http.StatusNotFound, "Not Found")
}

// isBlob reports whether a request is for the place where artifacts are stored.
func (s *Server) isBlob(r *http.Request) bool {
	place, err := url.Parse(cmp.Or(s.blobs, blobs))
	return err == nil && cmp.Or(r.Host, r.URL.Host) == place.Host
}

// serveBlob gives an artifact to whoever has its address. A token there is given
// away.
func (s *Server) serveBlob(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" {
		s.t.Errorf("%s %s carries a token to another host", r.Method, r.URL.Path)
	}
	id, _ := strings.CutPrefix(r.URL.Path, "/blob/")
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.artifacts {
		if strconv.FormatInt(a.id, 10) == id && r.URL.RawQuery == signature {
			w.Header().Set("Content-Type", "application/zip")
			w.Header().Set("Content-Length", strconv.Itoa(len(a.Data)))
			_, _ = w.Write(a.Data)
			return
		}
	}
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(http.StatusForbidden)
	_, _ = w.Write([]byte(`<?xml version="1.0" encoding="utf-8"?><Error><Code>AuthenticationFailed</Code></Error>`))
}

// listenBlobs starts the place where artifacts are stored.
func (s *Server) listenBlobs() {
	server := httptest.NewServer(s)
	s.t.Cleanup(server.Close)
	// Another name of the same machine, so that it is another host to a client.
	s.blobs = strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
}
