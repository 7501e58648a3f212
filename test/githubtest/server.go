package githubtest

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Access is what a token may do with pull requests.
type Access int

// What a token may do.
const (
	// Read lets it read, as anybody may in a public repository.
	Read Access = iota
	Write
)

// Token is one that the server knows.
type Token struct {
	Login  string
	Access Access
	// Installation says that it is a workflow's or an app's, which cannot ask who
	// it is.
	Installation bool
	// NoActions takes the right away to read workflow runs and artifacts.
	NoActions bool
}

// WorkflowToken is what a workflow's own token is, with "pull-requests: write".
var WorkflowToken = Token{Login: "github-actions[bot]", Access: Write, Installation: true}

// Pull is a pull request.
type Pull struct {
	Repo   string // "owner/name"
	Number int
	// Head is the hash of its newest commit, on HeadBranch of HeadRepo, which is
	// "" once the fork is gone.
	Head, HeadRepo, HeadBranch string
	Closed, Locked             bool
}

// Comment is a comment on a pull request.
type Comment struct {
	ID      int64
	Author  string
	Body    string
	Changed int // how often it was changed

	repo             string
	pull             int
	created, updated time.Time
	// hidden is how many lists do not show it yet.
	hidden int
}

// Fault is what is done in place of an answer.
type Fault struct {
	// After carries the request out, so that only its answer is lost.
	After bool
	// Status, Header and Body are answered; without a Status the connection ends
	// after the first half of the answer.
	Status int
	Header http.Header
	Body   string
	// Hang gives no answer until the client goes away.
	Hang bool
}

// Server plays GitHub. Its fields may be set before it is used.
type Server struct {
	// Prefix is before all paths: "/api/v3" on a GitHub Enterprise server.
	Prefix string
	// Lag is how many lists do not show a new comment yet.
	Lag int
	// Fault is asked before each request is carried out; nil answers it.
	Fault func(r *http.Request) *Fault

	t           testing.TB
	description *Description

	mu       sync.Mutex
	tokens   map[string]Token
	pulls    []*Pull
	comments []*Comment
	last     int64
	requests []string

	runs      []*Run
	artifacts []*Artifact
	blobs     string
}

// New returns a server without anything in it. Where GitHub's description of its
// API is not to be had, that is logged, and nothing is held against it.
func New(t testing.TB) *Server {
	t.Helper()
	description, err := Describe()
	if err != nil {
		t.Logf("requests are NOT held against GitHub's description of its API: %v: get npm and a network once", err)
	}
	return &Server{t: t, description: description, tokens: map[string]Token{}}
}

// Start lets the server listen, and returns its address.
func (s *Server) Start() string {
	server := httptest.NewServer(s)
	s.t.Cleanup(server.Close)
	s.listenBlobs()
	return server.URL + s.Prefix
}

// AddToken makes a token known.
func (s *Server) AddToken(secret string, token Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[secret] = token
}

// SetPull adds a pull request, or changes the one of that number.
func (s *Server) SetPull(p Pull) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.pull(p.Repo, strconv.Itoa(p.Number)); old != nil {
		*old = p
		return
	}
	s.pulls = append(s.pulls, &p)
}

// AddComment puts a comment on a pull request, and returns its id.
func (s *Server) AddComment(repo string, pull int, author, body string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.add(repo, pull, author, body).ID
}

func (s *Server) add(repo string, pull int, author, body string) *Comment {
	s.last++
	now := time.Now()
	c := &Comment{ID: s.last, Author: author, Body: body, repo: repo, pull: pull, created: now, updated: now}
	s.comments = append(s.comments, c)
	return c
}

// RemoveComment removes a comment.
func (s *Server) RemoveComment(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.comments = slices.DeleteFunc(s.comments, func(c *Comment) bool { return c.ID == id })
}

// Comments returns the comments of a pull request, the oldest first.
func (s *Server) Comments(repo string, pull int) []Comment {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Comment
	for _, c := range s.comments {
		if c.pull == pull && strings.EqualFold(c.repo, repo) {
			out = append(out, *c)
		}
	}
	return out
}

// Requests returns method and path of all requests so far, without the prefix.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// ServeHTTP answers as GitHub does.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, ok := strings.CutPrefix(r.URL.Path, s.Prefix)
	blob := s.isBlob(r)
	if !ok && !blob {
		s.t.Errorf("a request for %s, and the API is below %s", r.URL.Path, s.Prefix)
	}
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+path)
	s.mu.Unlock()
	var fault *Fault
	if s.Fault != nil {
		fault = s.Fault(r)
	}
	if fault != nil && !fault.After {
		fault.answer(w, r, nil)
		return
	}
	route, prefix := s.route, s.Prefix
	if blob {
		route, prefix = s.serveBlob, ""
	}
	http.StripPrefix(prefix, http.HandlerFunc(func(inner http.ResponseWriter, r *http.Request) {
		if fault == nil {
			route(inner, r)
			return
		}
		real := httptest.NewRecorder()
		route(real, r)
		fault.answer(inner, r, real)
	})).ServeHTTP(w, r)
}

func (f *Fault) answer(w http.ResponseWriter, r *http.Request, real *httptest.ResponseRecorder) {
	if f.Hang {
		_, _ = io.Copy(io.Discard, r.Body) // so that the server sees the client go
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), f.Header)
	if f.Status != 0 {
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, f.Body)
		return
	}
	half := []byte(`{"id": 1, "bo`)
	if real != nil {
		maps.Copy(w.Header(), real.Header())
		half = real.Body.Bytes()[:real.Body.Len()/2]
	}
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(half)
	if flusher, ok := w.(http.Flusher); ok {
		flusher.Flush()
	}
	panic(http.ErrAbortHandler)
}

// reply is an answer: an error where the status is one.
type reply struct {
	status int
	value  any
	link   string
	// location is where a redirect leads.
	location string
}

func refuse(status int, message string) reply {
	return reply{status: status, value: map[string]string{"message": message, "documentation_url": "https://docs.github.com/rest", "status": strconv.Itoa(status)}}
}

// call is a request of somebody.
type call struct {
	*http.Request
	body  []byte
	token *Token // nil for nobody
}

type operation func(s *Server, c *call) reply

// operations are those that are played, with the paths of GitHub's description.
var operations = map[string]operation{
	"GET /user":                                                 (*Server).getUser,
	"GET /repos/{owner}/{repo}/pulls":                           (*Server).listPulls,
	"GET /repos/{owner}/{repo}/pulls/{pull_number}":             (*Server).getPull,
	"GET /repos/{owner}/{repo}/issues/{issue_number}/comments":  (*Server).listComments,
	"POST /repos/{owner}/{repo}/issues/{issue_number}/comments": (*Server).createComment,
	"GET /repos/{owner}/{repo}/issues/comments/{comment_id}":    (*Server).getComment,
	"PATCH /repos/{owner}/{repo}/issues/comments/{comment_id}":  (*Server).updateComment,
	"DELETE /repos/{owner}/{repo}/issues/comments/{comment_id}": (*Server).deleteComment,

	"GET /repos/{owner}/{repo}/actions/runs/{run_id}":                            (*Server).getRun,
	"GET /repos/{owner}/{repo}/actions/runs/{run_id}/attempts/{attempt_number}":  (*Server).getAttempt,
	"GET /repos/{owner}/{repo}/actions/runs/{run_id}/artifacts":                  (*Server).listArtifacts,
	"GET /repos/{owner}/{repo}/actions/artifacts/{artifact_id}/{archive_format}": (*Server).downloadArtifact,
}

func paths() []string {
	var out []string
	for pattern := range operations {
		_, path, _ := strings.Cut(pattern, " ")
		out = append(out, path)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// route finds the operation that a request is for, and sets the values in its
// path. Of two that match, the one with fewer values is meant.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	best, values := "", map[string]string{}
	for pattern := range operations {
		method, path, _ := strings.Cut(pattern, " ")
		if found, ok := match(path, r.URL.EscapedPath()); ok && method == r.Method && (best == "" || len(found) < len(values)) {
			best, values = pattern, found
		}
	}
	if best == "" {
		s.t.Errorf("%s %s is not played here", r.Method, r.URL)
		http.NotFound(w, r)
		return
	}
	for name, value := range values {
		r.SetPathValue(name, value)
	}
	_, path, _ := strings.Cut(best, " ")
	s.checked(w, r, path, operations[best])
}

// match returns the values that an escaped path has in a template's place.
func match(template, path string) (map[string]string, bool) {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return nil, false
	}
	values := map[string]string{}
	for i := range want {
		part, err := url.PathUnescape(got[i])
		name, isValue := strings.CutPrefix(want[i], "{")
		if err != nil || part == "" && want[i] != "" || !isValue && part != want[i] {
			return nil, false
		}
		if isValue {
			values[strings.TrimSuffix(name, "}")] = part
		}
	}
	return values, true
}

// checked carries an operation out, and holds request and answer against the
// description.
func (s *Server) checked(w http.ResponseWriter, r *http.Request, path string, operation operation) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var described *exchange
	if s.description != nil {
		if described, err = s.description.request(r, path, body); err != nil {
			s.t.Errorf("%s %s is not as GitHub describes it: %v\n%.500s", r.Method, r.URL, err, body)
		}
	}
	answer := s.carryOut(&call{Request: r, body: body}, operation)
	data, err := json.Marshal(answer.value)
	if err != nil {
		s.t.Error(err)
	}
	header := http.Header{"Content-Type": {"application/json; charset=utf-8"}}
	if answer.link != "" {
		header.Set("Link", answer.link)
	}
	switch {
	case answer.location != "":
		data, header = nil, http.Header{"Location": {answer.location}}
	case answer.status == http.StatusNoContent:
		data, header = nil, http.Header{}
	}
	if described != nil {
		if err := described.answer(answer.status, header, data); err != nil {
			s.t.Errorf("the answer to %s %s is not as GitHub describes it: %v", r.Method, r.URL, err)
		}
	}
	maps.Copy(w.Header(), header)
	w.WriteHeader(answer.status)
	_, _ = w.Write(data)
}

func (s *Server) carryOut(c *call, operation operation) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	if secret, ok := strings.CutPrefix(c.Header.Get("Authorization"), "Bearer "); ok {
		token, known := s.tokens[secret]
		if !known {
			return refuse(http.StatusUnauthorized, "Bad credentials")
		}
		c.token = &token
	}
	return operation(s, c)
}

// mayWrite returns a refusal unless the caller may write.
func (c *call) mayWrite() (reply, bool) {
	switch {
	case c.token == nil:
		return refuse(http.StatusUnauthorized, "Requires authentication"), false
	case c.token.Access < Write && c.token.Installation:
		return refuse(http.StatusForbidden, "Resource not accessible by integration"), false
	case c.token.Access < Write:
		return refuse(http.StatusForbidden, "Resource not accessible by personal access token"), false
	}
	return reply{}, true
}

func (s *Server) getUser(c *call) reply {
	switch {
	case c.token == nil:
		return refuse(http.StatusUnauthorized, "Requires authentication")
	case c.token.Installation:
		return refuse(http.StatusForbidden, "Resource not accessible by integration")
	}
	user := example(userExample)
	user["login"], user["user_view_type"] = c.token.Login, "public"
	return reply{status: http.StatusOK, value: user}
}

func (c *call) repo() string { return c.PathValue("owner") + "/" + c.PathValue("repo") }

func (s *Server) pull(repo, number string) *Pull {
	for _, p := range s.pulls {
		if strings.EqualFold(p.Repo, repo) && strconv.Itoa(p.Number) == number {
			return p
		}
	}
	return nil
}

func (s *Server) getPull(c *call) reply {
	p := s.pull(c.repo(), c.PathValue("pull_number"))
	if p == nil {
		return refuse(http.StatusNotFound, "Not Found")
	}
	return reply{status: http.StatusOK, value: p.fill(example(pullExample))}
}

func (s *Server) listPulls(c *call) reply {
	query := c.URL.Query()
	found := []any{}
	for _, p := range s.pulls {
		owner, _, _ := strings.Cut(p.HeadRepo, "/")
		state := "open"
		if p.Closed {
			state = "closed"
		}
		wanted := cmp.Or(query.Get("state"), "open")
		if strings.EqualFold(p.Repo, c.repo()) && (wanted == "all" || wanted == state) && (query.Get("head") == "" || query.Get("head") == owner+":"+p.HeadBranch) {
			found = append(found, p.fill(example(simplePullExample)))
		}
	}
	return paged(c, found)
}

func (s *Server) listComments(c *call) reply {
	if s.pull(c.repo(), c.PathValue("issue_number")) == nil {
		return refuse(http.StatusNotFound, "Not Found")
	}
	found := []any{}
	for _, comment := range s.comments {
		if strings.EqualFold(comment.repo, c.repo()) && strconv.Itoa(comment.pull) == c.PathValue("issue_number") {
			if comment.hidden > 0 {
				comment.hidden--
				continue
			}
			found = append(found, comment.json())
		}
	}
	return paged(c, found)
}

// paged answers with one page of a list, and links to the others.
func paged(c *call, all []any) reply {
	query := c.URL.Query()
	size, _ := strconv.Atoi(cmp.Or(query.Get("per_page"), "30"))
	page, _ := strconv.Atoi(cmp.Or(query.Get("page"), "1"))
	size, page = max(1, min(size, 100)), max(page, 1)
	from := min((page-1)*size, len(all))
	to := min(from+size, len(all))
	answer := reply{status: http.StatusOK, value: all[from:to]}
	if to < len(all) {
		query.Set("page", strconv.Itoa(page+1))
		answer.link = fmt.Sprintf(`<%s>; rel="next"`, &url.URL{Scheme: "https", Host: "api.github.com", Path: c.URL.Path, RawQuery: query.Encode()})
	}
	return answer
}

// MaxBody is the longest body that is taken, in bytes.
const MaxBody = 65_536

func (c *call) text() (string, reply, bool) {
	var body struct {
		Body string `json:"body"`
	}
	if err := json.Unmarshal(c.body, &body); err != nil {
		return "", refuse(http.StatusBadRequest, "Problems parsing JSON"), false
	}
	if len(body.Body) > MaxBody || strings.TrimSpace(body.Body) == "" {
		return "", refuse(http.StatusUnprocessableEntity, "Validation Failed"), false
	}
	return body.Body, reply{}, true
}

func (s *Server) createComment(c *call) reply {
	p := s.pull(c.repo(), c.PathValue("issue_number"))
	if p == nil {
		return refuse(http.StatusNotFound, "Not Found")
	}
	if refusal, ok := c.mayWrite(); !ok {
		return refusal
	}
	if p.Locked {
		return refuse(http.StatusForbidden, "Unable to create comment because issue is locked.")
	}
	text, refusal, ok := c.text()
	if !ok {
		return refusal
	}
	comment := s.add(p.Repo, p.Number, c.token.Login, text)
	comment.hidden = s.Lag
	return reply{status: http.StatusCreated, value: comment.json()}
}

// own returns a comment that the caller may write, or a refusal.
func (s *Server) own(c *call) (*Comment, reply) {
	comment := s.comment(c)
	if comment == nil {
		return nil, refuse(http.StatusNotFound, "Not Found")
	}
	if refusal, ok := c.mayWrite(); !ok {
		return nil, refusal
	}
	if p := s.pull(comment.repo, strconv.Itoa(comment.pull)); p != nil && p.Locked {
		return nil, refuse(http.StatusForbidden, "Unable to update comment because issue is locked.")
	}
	return comment, reply{}
}

func (s *Server) comment(c *call) *Comment {
	for _, comment := range s.comments {
		if strings.EqualFold(comment.repo, c.repo()) && strconv.FormatInt(comment.ID, 10) == c.PathValue("comment_id") {
			return comment
		}
	}
	return nil
}

func (s *Server) getComment(c *call) reply {
	comment := s.comment(c)
	if comment == nil {
		return refuse(http.StatusNotFound, "Not Found")
	}
	return reply{status: http.StatusOK, value: comment.json()}
}

func (s *Server) updateComment(c *call) reply {
	comment, refusal := s.own(c)
	if comment == nil {
		return refusal
	}
	text, refusal, ok := c.text()
	if !ok {
		return refusal
	}
	comment.Body, comment.updated = text, time.Now()
	comment.Changed++
	return reply{status: http.StatusOK, value: comment.json()}
}

func (s *Server) deleteComment(c *call) reply {
	comment, refusal := s.own(c)
	if comment == nil {
		return refusal
	}
	s.comments = slices.DeleteFunc(s.comments, func(other *Comment) bool { return other == comment })
	return reply{status: http.StatusNoContent}
}

// Examples of the description, each with what a test says in it.
var (
	//go:embed testdata/issue-comment.json
	commentExample []byte
	//go:embed testdata/pull-request.json
	pullExample []byte
	//go:embed testdata/pull-request-simple.json
	simplePullExample []byte
	//go:embed testdata/user.json
	userExample []byte
)

func example(data []byte) map[string]any {
	var out map[string]any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&out); err != nil {
		panic(err)
	}
	return out
}

func (c *Comment) json() map[string]any {
	out := example(commentExample)
	out["id"], out["body"] = c.ID, c.Body
	out["url"] = fmt.Sprintf("https://api.github.com/repos/%s/issues/comments/%d", c.repo, c.ID)
	out["html_url"] = fmt.Sprintf("https://github.com/%s/pull/%d#issuecomment-%d", c.repo, c.pull, c.ID)
	out["created_at"], out["updated_at"] = c.created.UTC().Format(time.RFC3339), c.updated.UTC().Format(time.RFC3339)
	out["user"].(map[string]any)["login"] = c.Author
	return out
}

// fill says a pull request in an example.
func (p *Pull) fill(out map[string]any) map[string]any {
	out["number"], out["locked"] = p.Number, p.Locked
	out["requested_teams"] = []any{} // that of the example is not as the description has it
	if out["state"] = "open"; p.Closed {
		out["state"] = "closed"
	}
	head, base := out["head"].(map[string]any), out["base"].(map[string]any)
	head["sha"], head["ref"] = p.Head, p.HeadBranch
	if p.HeadRepo == "" {
		head["repo"] = nil
	} else {
		owner, name, _ := strings.Cut(p.HeadRepo, "/")
		repo := head["repo"].(map[string]any)
		repo["full_name"], repo["name"] = p.HeadRepo, name
		repo["owner"].(map[string]any)["login"] = owner
	}
	base["repo"].(map[string]any)["full_name"] = p.Repo
	return out
}
