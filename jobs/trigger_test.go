package jobs_test

import (
	"context"
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

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	prowapi "sigs.k8s.io/prow/pkg/apis/prowjobs/v1"
	prowfake "sigs.k8s.io/prow/pkg/client/clientset/versioned/fake"
	prowconfig "sigs.k8s.io/prow/pkg/config"
	"sigs.k8s.io/prow/pkg/github"
	"sigs.k8s.io/prow/pkg/plugins"
	_ "sigs.k8s.io/prow/pkg/plugins/trigger" // registers itself
)

// pullRequest is one on the GitHub of a test.
type pullRequest struct {
	github.PullRequest
	files    []string
	labels   []string
	comments []string
	statuses map[string]string // state by context
}

// gitHub is as much of GitHub's API as the trigger plugin asks for, with state:
// what is posted is there to be read again.
type gitHub struct {
	t       *testing.T
	mu      sync.Mutex
	members []string
	pulls   map[int]*pullRequest
}

// bot is the user whose token Prow has.
const bot = "k8s-ci-robot"

func newGitHub(t *testing.T) (*gitHub, github.Client) {
	t.Helper()
	g := &gitHub{t: t, members: []string{"member"}, pulls: map[int]*pullRequest{}}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	client, err := github.NewClient(func() []byte { return []byte("token") }, func(b []byte) []byte { return b }, server.URL+"/graphql", server.URL)
	if err != nil {
		t.Fatal(err)
	}
	client.SetMax404Retries(0) // who is no member is none a second later
	return g, client
}

// open opens a pull request.
func (g *gitHub) open(number int, author, branch string, files ...string) *pullRequest {
	g.mu.Lock()
	defer g.mu.Unlock()
	repo := github.Repo{Owner: github.User{Login: "example"}, Name: "cni", FullName: "example/cni"}
	p := &pullRequest{
		PullRequest: github.PullRequest{
			Number: number, State: "open", User: github.User{Login: author},
			Base: github.PullRequestBranch{Ref: branch, SHA: "base-of-" + branch, Repo: repo},
			Head: github.PullRequestBranch{Ref: "change", SHA: fmt.Sprintf("head-%d", number), Repo: repo},
		},
		files: files, statuses: map[string]string{},
	}
	g.pulls[number] = p
	return p
}

func (g *gitHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
		reply(github.UserData{Login: bot})
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
			for context, state := range p.statuses {
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
func (g *gitHub) pull(p *pullRequest, r *http.Request, what string, reply func(any)) {
	switch name, _ := url.PathUnescape(strings.TrimPrefix(what, "labels/")); {
	case what == "":
		reply(p.PullRequest)
	case what == "files":
		changes := []github.PullRequestChange{}
		for _, f := range p.files {
			changes = append(changes, github.PullRequestChange{Filename: f, Status: "modified"})
		}
		reply(changes)
	case what == "comments" && r.Method == http.MethodPost:
		var c github.IssueComment
		if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
			g.t.Error(err)
		}
		p.comments = append(p.comments, c.Body)
		reply(c)
	case what == "comments":
		comments := []github.IssueComment{}
		for i, body := range p.comments {
			comments = append(comments, github.IssueComment{ID: i, Body: body, User: github.User{Login: bot}})
		}
		reply(comments)
	case what == "labels" && r.Method == http.MethodPost:
		var added []string
		if err := json.NewDecoder(r.Body).Decode(&added); err != nil {
			g.t.Error(err)
		}
		p.labels = append(p.labels, added...)
		reply([]github.Label{})
	case r.Method == http.MethodDelete:
		p.labels = slices.DeleteFunc(p.labels, func(l string) bool { return l == name })
		reply([]github.Label{})
	case what == "labels":
		all := []github.Label{}
		for _, l := range p.labels {
			all = append(all, github.Label{Name: l})
		}
		reply(all)
	default:
		g.t.Errorf("GitHub does not know %s %s", r.Method, r.URL)
	}
}

// withQuery adds what plugins may ask by GraphQL; the trigger plugin asks nothing.
type withQuery struct{ github.Client }

func (c withQuery) Query(context.Context, any, map[string]any) error {
	return fmt.Errorf("GraphQL is not asked")
}

// comment hands a comment to Prow's trigger plugin, as registered, and returns
// the ProwJobs that it creates.
func comment(t *testing.T, cfg *prowconfig.Config, client github.Client, p *pullRequest, author, body string) []prowapi.ProwJob {
	t.Helper()
	agent := &plugins.ConfigAgent{}
	agent.Set(&plugins.Configuration{Plugins: plugins.Plugins{"example": {Plugins: []string{"trigger"}}}})
	handler, ok := agent.GenericCommentHandlers("example", "cni")["trigger"]
	if !ok {
		t.Fatal("Prow has no plugin called trigger")
	}
	logger := logrus.New()
	logger.SetOutput(&strings.Builder{})
	cluster := prowfake.NewSimpleClientset().ProwV1().ProwJobs(cfg.ProwJobNamespace)
	err := handler(plugins.Agent{
		GitHubClient:  withQuery{client},
		ProwJobClient: cluster,
		Config:        cfg,
		PluginConfig:  agent.Config(),
		Logger:        logrus.NewEntry(logger),
	}, github.GenericCommentEvent{
		Action: github.GenericCommentActionCreated, IsPR: true, IssueState: p.State, Number: p.Number, GUID: "guid",
		Repo: p.Base.Repo, Body: body, User: github.User{Login: author}, IssueAuthor: p.User,
		HTMLURL: "https://github.com/example/cni/pull/1#issuecomment-1",
	})
	if err != nil {
		t.Fatal(err)
	}
	list, err := cluster.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b prowapi.ProwJob) int { return strings.Compare(a.Spec.Job, b.Spec.Job) })
	return list.Items
}

const triggered = `repository: example/cni
matrix:
  kubernetes: ["1.36", "1.35"]
  windows: ["2022"]
run: {categories: [Core.Network, Core.Storage]}
prow:
  image: registry.example.com/op-readiness:v1
  kubeconfigSecret: kubeconfig-{cell}
  presubmits:
    branches: [^main$, ^release-1\.2$]
    runIfChanged: ["cni/**"]
    cell: {kubernetes: "1.36"}
  overrides:
    - {when: {branches: [release-1.2]}, cell: {kubernetes: "1.35"}}
`

// TestTrigger holds comments against the jobs that Prow starts for them: what
// each of them runs, and on which cluster.
func TestTrigger(t *testing.T) {
	const (
		whole   = "pull-windows-op-readiness"
		network = whole + "-core-network"
		storage = whole + "-core-storage"
	)
	cfg := prowOf(t, parse(t, triggered)).load(t)
	for what, c := range map[string]struct {
		comment, by, author string
		branch, file        string
		failed              []string
		// want are the jobs, as "NAME SECRET"; says is in the answer.
		want []string
		says string
	}{
		"the whole plan":                         {comment: "/test " + whole, want: []string{whole + " kubeconfig-1-36-ltsc2022"}},
		"with other words around":                {comment: "Let us see.\n/test " + whole + "\nThanks!", want: []string{whole + " kubeconfig-1-36-ltsc2022"}},
		"one category, and not the whole":        {comment: "/test " + network, want: []string{network + " kubeconfig-1-36-ltsc2022"}},
		"categories side by side":                {comment: "/test " + network + " " + storage, want: []string{network + " kubeconfig-1-36-ltsc2022", storage + " kubeconfig-1-36-ltsc2022"}},
		"categories on two lines":                {comment: "/test " + network + "\n/test " + storage, want: []string{network + " kubeconfig-1-36-ltsc2022", storage + " kubeconfig-1-36-ltsc2022"}},
		"a branch with another cluster":          {comment: "/test " + whole, branch: "release-1.2", want: []string{whole + " kubeconfig-1-35-ltsc2022"}},
		"a branch that only begins so":           {comment: "/test " + whole, branch: "release-1.20", says: "No presubmit jobs available for example/cni@release-1.20"},
		"a branch without jobs":                  {comment: "/test " + whole, branch: "feature", says: "No presubmit jobs available for example/cni@feature"},
		"all, and the change concerns it":        {comment: "/test all", file: "cni/bridge/bridge.go", want: []string{whole + " kubeconfig-1-36-ltsc2022"}},
		"all, and the change does not":           {comment: "/test all", file: "docs/cni/bridge.md", says: "No jobs can be run with `/test all`"},
		"by name though the change does not":     {comment: "/test " + whole, file: "docs/cni/bridge.md", want: []string{whole + " kubeconfig-1-36-ltsc2022"}},
		"retest what failed":                     {comment: "/retest", failed: []string{network}, want: []string{network + " kubeconfig-1-36-ltsc2022"}},
		"retest with nothing to":                 {comment: "/retest"},
		"retest-required leaves optional ones":   {comment: "/retest-required", failed: []string{network}},
		"a typo":                                 {comment: "/test pull-windows-op-readines", says: "The specified target(s) for `/test` were not found"},
		"a typo is answered with what there is":  {comment: "/test pull-windows-op-readines", says: "`/test " + network + "`"},
		"nothing named":                          {comment: "/test", says: "/test " + whole},
		"a stranger":                             {comment: "/test " + whole, by: "stranger", author: "stranger", says: "Cannot trigger testing until a trusted user reviews"},
		"a stranger on a member's pull request":  {comment: "/test " + whole, by: "stranger", want: []string{whole + " kubeconfig-1-36-ltsc2022"}},
		"a member on a stranger's pull request":  {comment: "/test " + whole, author: "stranger", want: []string{whole + " kubeconfig-1-36-ltsc2022"}},
		"a member lets a stranger's be tested":   {comment: "/ok-to-test", author: "stranger", file: "cni/a.go", want: []string{whole + " kubeconfig-1-36-ltsc2022"}},
		"Prow's own answers":                     {comment: "/test " + whole, by: bot},
		"a comment that only speaks of the jobs": {comment: "What does `/test " + whole + "` do?"},
	} {
		t.Run(what, func(t *testing.T) {
			server, client := newGitHub(t)
			p := server.open(1, orElse(c.author, "member"), orElse(c.branch, "main"), orElse(c.file, "README.md"))
			for _, context := range c.failed {
				p.statuses[context] = github.StatusFailure
			}
			var got []string
			for _, j := range comment(t, cfg, client, p, orElse(c.by, "member"), c.comment) {
				got = append(got, j.Spec.Job+" "+j.Spec.PodSpec.Volumes[0].Secret.SecretName)
				refs := j.Spec.Refs
				if j.Spec.Type != prowapi.PresubmitJob || j.Spec.Context != j.Spec.Job || len(refs.Pulls) != 1 || refs.Pulls[0].SHA != p.Head.SHA || refs.BaseSHA != p.Base.SHA {
					t.Errorf("%s tests %+v, reports as %s", j.Spec.Job, refs, j.Spec.Context)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("jobs (-want +got):\n%s", diff)
			}
			if answers := strings.Join(p.comments, "\n"); c.says == "" && answers != "" || !strings.Contains(answers, c.says) {
				t.Errorf("the answer is %q, want %q", answers, c.says)
			}
		})
	}
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// TestTrigger_a_stranger_after_ok_to_test follows one pull request: refused,
// vouched for, and then tested for its author, too.
func TestTrigger_a_stranger_after_ok_to_test(t *testing.T) {
	cfg := prowOf(t, parse(t, triggered)).load(t)
	server, client := newGitHub(t)
	p := server.open(7, "stranger", "main", "docs/a.md")
	p.labels = []string{"needs-ok-to-test"}
	const line = "/test pull-windows-op-readiness-core-storage"
	if jobs := comment(t, cfg, client, p, "stranger", line); len(jobs) != 0 || len(p.comments) != 1 {
		t.Fatalf("a stranger starts %d jobs, and is answered %q", len(jobs), p.comments)
	}
	comment(t, cfg, client, p, "member", "/ok-to-test")
	if diff := cmp.Diff([]string{"ok-to-test"}, p.labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if jobs := comment(t, cfg, client, p, "stranger", line); len(jobs) != 1 || jobs[0].Spec.Job != "pull-windows-op-readiness-core-storage" {
		t.Errorf("after /ok-to-test it starts %d jobs", len(jobs))
	}
}
