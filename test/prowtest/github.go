package prowtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/prow/pkg/github"
)

// PullRequest is one on the GitHub of a test.
type PullRequest struct {
	github.PullRequest
	// Files are the paths that it changes.
	Files []string
	// Labels, Comments (all of them Prow's) and Statuses (the state by its
	// context) are what is said of it.
	Labels   []string
	Comments []string
	Statuses map[string]string
}

// GitHub is as much of GitHub's API as the trigger plugin asks for, with state:
// what is posted is there to be read again.
type GitHub struct {
	t       *testing.T
	mu      sync.Mutex
	members []string
	pulls   map[int]*PullRequest
}

// The repository, a member of its organisation, and the user whose token Prow
// has.
const (
	Org    = "example"
	Repo   = "cni"
	Member = "member"
	Bot    = "k8s-ci-robot"
)

// NewGitHub starts a GitHub that ends with the test, and returns it with Prow's
// own client of it.
func NewGitHub(t *testing.T) (*GitHub, github.Client) {
	t.Helper()
	g := &GitHub{t: t, members: []string{Member}, pulls: map[int]*PullRequest{}}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	client, err := github.NewClient(func() []byte { return []byte("token") }, func(b []byte) []byte { return b }, server.URL+"/graphql", server.URL)
	if err != nil {
		t.Fatal(err)
	}
	client.SetMax404Retries(0) // who is not a member now is not one a second later
	return g, client
}

// Open opens a pull request for a branch that changes some files.
func (g *GitHub) Open(number int, author, branch string, files ...string) *PullRequest {
	g.mu.Lock()
	defer g.mu.Unlock()
	repo := github.Repo{Owner: github.User{Login: Org}, Name: Repo, FullName: Org + "/" + Repo}
	p := &PullRequest{
		PullRequest: github.PullRequest{
			Number: number, State: "open", User: github.User{Login: author},
			Base: github.PullRequestBranch{Ref: branch, SHA: "base-of-" + branch, Repo: repo},
			Head: github.PullRequestBranch{Ref: "change", SHA: fmt.Sprintf("head-%d", number), Repo: repo},
		},
		Files: files, Statuses: map[string]string{},
	}
	g.pulls[number] = p
	return p
}

func (g *GitHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.Header.Get("Authorization") == "" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	reply := func(v any) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPost && path[len(path)-1] == "comments" {
			w.WriteHeader(http.StatusCreated)
		}
		if err := json.NewEncoder(w).Encode(v); err != nil {
			g.t.Error(err)
		}
	}
	switch {
	case r.URL.Path == "/user":
		reply(github.UserData{Login: Bot})
	case path[0] == "orgs" && path[2] == "members", path[0] == "repos" && path[3] == "collaborators":
		if slices.Contains(g.members, path[len(path)-1]) {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	case path[0] == "repos" && path[3] == "git":
		branch := strings.Join(path[6:], "/")
		reply(map[string]any{"ref": "refs/heads/" + branch, "object": map[string]string{"sha": "base-of-" + branch}})
	case path[0] == "repos" && path[3] == "commits":
		combined := github.CombinedStatus{}
		for _, p := range g.pulls {
			for context, state := range p.Statuses {
				if p.Head.SHA == path[4] {
					combined.Statuses = append(combined.Statuses, github.Status{Context: context, State: state})
				}
			}
		}
		reply(combined)
	case path[0] == "repos" && (path[3] == "pulls" || path[3] == "issues"):
		number, _ := strconv.Atoi(path[4])
		p, ok := g.pulls[number]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		g.pull(p, r, strings.Join(path[5:], "/"), reply)
	default:
		g.t.Errorf("GitHub does not know %s %s", r.Method, r.URL)
		w.WriteHeader(http.StatusNotFound)
	}
}

// pull is what is below one pull request, and the issue that it is.
func (g *GitHub) pull(p *PullRequest, r *http.Request, what string, reply func(any)) {
	switch name, _ := url.PathUnescape(strings.TrimPrefix(what, "labels/")); {
	case what == "":
		reply(p.PullRequest)
	case what == "files":
		changes := []github.PullRequestChange{}
		for _, f := range p.Files {
			changes = append(changes, github.PullRequestChange{Filename: f, Status: "modified"})
		}
		reply(changes)
	case what == "comments" && r.Method == http.MethodPost:
		var c github.IssueComment
		if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
			g.t.Error(err)
		}
		p.Comments = append(p.Comments, c.Body)
		reply(c)
	case what == "comments":
		comments := []github.IssueComment{}
		for i, body := range p.Comments {
			comments = append(comments, github.IssueComment{ID: i, Body: body, User: github.User{Login: Bot}})
		}
		reply(comments)
	case what == "labels" && r.Method == http.MethodPost:
		var added []string
		if err := json.NewDecoder(r.Body).Decode(&added); err != nil {
			g.t.Error(err)
		}
		p.Labels = append(p.Labels, added...)
		reply([]github.Label{})
	case r.Method == http.MethodDelete:
		p.Labels = slices.DeleteFunc(p.Labels, func(l string) bool { return l == name })
		reply([]github.Label{})
	case what == "labels":
		all := []github.Label{}
		for _, l := range p.Labels {
			all = append(all, github.Label{Name: l})
		}
		reply(all)
	default:
		g.t.Errorf("GitHub does not know %s %s", r.Method, r.URL)
	}
}
