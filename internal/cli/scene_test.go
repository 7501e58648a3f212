package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
)

// scene is a cluster that is only played, a fake e2e.test, and a standard of
// one requirement for each of its tests.
type scene struct {
	t          *testing.T
	fake       e2etest.Folder
	dir        string // for results
	specs      string
	kubeconfig string
	server     string
	podCIDRs   []string // of every node
	version    string   // of the API server
	leaseStays bool     // nobody may delete it

	mu        sync.Mutex
	requests  []string
	selectors []string // of namespaces that were asked for
	lease     map[string]any
	writes    int
}

// sceneTests are the tests of a scene, in two batches.
var sceneTests = []string{"[sig-x] a", "[sig-x] b", "[sig-x] c", "[sig-x] d", "[sig-x] e [Disruptive]", "[sig-x] f [Disruptive]"}

func newScene(t *testing.T, script e2etest.Script) *scene {
	t.Helper()
	if script.Version == "" {
		script.Version = "v1.36.3"
	}
	script.Tests = sceneTests
	s := &scene{t: t, fake: e2etest.Install(t, script), version: "v1.36.3"}
	temp := t.TempDir()
	s.dir, s.specs, s.kubeconfig = filepath.Join(temp, "results"), filepath.Join(temp, "specs"), filepath.Join(temp, "kubeconfig")
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(server.Close)
	s.server = server.URL
	s.write(s.kubeconfig, kubeconfigOf(server.URL))
	spec := "category: Core.Network\ntestCases:\n"
	for _, name := range sceneTests {
		spec += testCase(name[8:9])
	}
	if err := os.Mkdir(s.specs, 0o755); err != nil {
		t.Fatal(err)
	}
	s.write(filepath.Join(s.specs, "core-network.yaml"), spec)
	return s
}

// testCase is a case of the reference implementation's format, which does not say
// where pods must run: there are none in a scene. Its id is the category and
// the letter of its test.
func testCase(test string) string {
	return fmt.Sprintf("  - description: Ability to %s\n    focus: '\\[sig-x\\] %[1]s( \\[|$)'\n", test)
}

func kubeconfigOf(server string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{name: x, cluster: {server: %q}}]\ncontexts: [{name: x, context: {cluster: x, user: x}}]\nusers: [{name: x, user: {}}]\n", server)
}

func (s *scene) write(path, content string) {
	s.t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// serve plays the API server of a cluster with two nodes of each system.
func (s *scene) serve(w http.ResponseWriter, r *http.Request) {
	if _, err := os.Stat(s.fake.Outage()); err == nil {
		panic(http.ErrAbortHandler)
	}
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	if r.URL.Path == "/api/v1/namespaces" {
		s.selectors = append(s.selectors, r.URL.Query().Get("labelSelector"))
	}
	s.mu.Unlock()
	if r.URL.Query().Get("watch") != "" {
		w.Header().Set("Content-Type", "application/json")
		w.(http.Flusher).Flush()
		<-r.Context().Done() // nothing ever changes
		return
	}
	if strings.HasPrefix(r.URL.Path, "/apis/coordination.k8s.io/v1/namespaces/default/leases") {
		s.serveLease(w, r)
		return
	}
	var nodes []any
	for i, system := range []string{"linux", "linux", "windows", "windows"} {
		nodes = append(nodes, map[string]any{
			"metadata": map[string]any{"name": fmt.Sprintf("%s-%d", system, i), "labels": map[string]string{"kubernetes.io/os": system, "node.kubernetes.io/windows-build": "10.0.20348"}},
			"spec":     map[string]any{"podCIDRs": s.podCIDRs},
			"status": map[string]any{
				"nodeInfo":   map[string]string{"operatingSystem": system, "containerRuntimeVersion": "containerd://2.0.0", "bootID": "1"},
				"conditions": []any{map[string]string{"type": "Ready", "status": "True"}},
			},
		})
	}
	answers := map[string]any{
		"/version":           map[string]string{"gitVersion": s.version},
		"/api/v1/nodes":      map[string]any{"kind": "NodeList", "apiVersion": "v1", "metadata": map[string]string{"resourceVersion": "1"}, "items": nodes},
		"/api/v1/namespaces": map[string]any{"kind": "NamespaceList", "apiVersion": "v1", "metadata": map[string]string{"resourceVersion": "1"}, "items": []any{}},
		"/api/v1/pods":       map[string]any{"kind": "PodList", "apiVersion": "v1", "metadata": map[string]string{"resourceVersion": "1"}, "items": []any{}},
		"/api":               map[string]any{"kind": "APIVersions", "versions": []string{"v1"}},
		"/apis":              map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}},
	}
	answer, ok := answers[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		s.t.Error(err)
	}
}

// serveLease keeps one Lease, without conflicts.
func (s *scene) serveLease(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch r.Method {
	case http.MethodPost, http.MethodPut:
		if err := json.NewDecoder(r.Body).Decode(&s.lease); err != nil {
			s.t.Error(err)
		}
		s.writes++
		s.lease["metadata"].(map[string]any)["resourceVersion"] = fmt.Sprint(s.writes)
	case http.MethodDelete:
		if s.leaseStays {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}`)
			return
		}
		s.lease = nil
		fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Success"}`)
		return
	}
	if s.lease == nil {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`)
		return
	}
	if err := json.NewEncoder(w).Encode(s.lease); err != nil {
		s.t.Error(err)
	}
}

// args are those of a run of the scene, and further ones.
func (s *scene) args(more ...string) []string {
	return append([]string{"run", "--kubeconfig", s.kubeconfig, "--e2e-binary", s.fake.Binary(), "--spec-dir", s.specs, "--report-dir", s.dir, "--shared=false"}, more...)
}

// said is how a command ended.
type said struct {
	code           int
	stdout, stderr string
}

// environ is an environment without anything that finds a cluster.
func (s *scene) environ() []string {
	return append(slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "KUBE") || strings.HasPrefix(e, "HOME=") || strings.HasPrefix(e, "ARTIFACTS=") || strings.HasPrefix(e, "GITHUB_")
	}), "HOME="+filepath.Dir(s.kubeconfig))
}

func (s *scene) main(args ...string) said { return s.mainWith(nil, args...) }

func (s *scene) mainWith(signals <-chan os.Signal, args ...string) said {
	var out, errs bytes.Buffer
	code := Main(context.Background(), args, Surroundings{
		Environ: s.environ(), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Signals: signals,
	})
	return said{code, out.String(), errs.String()}
}

// want reports an end that is not as wanted.
func (s *scene) want(what string, got said, code int, says ...string) {
	s.t.Helper()
	silent := false
	for _, text := range says {
		if !strings.Contains(got.stdout+got.stderr, text) {
			s.t.Errorf("%s: does not say %q", what, text)
			silent = true
		}
	}
	if got.code != code || silent {
		s.t.Errorf("%s: exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", what, got.code, code, got.stdout, got.stderr)
	}
}

// results reads the results folder.
func (s *scene) results() *result.Run {
	s.t.Helper()
	run, err := result.Load(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	return run
}

// starts counts how often a test was started.
func (s *scene) starts(what string) int {
	n := 0
	for _, start := range s.fake.Starts(s.t) {
		if start == what {
			n++
		}
	}
	return n
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute / 3); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in time it did not happen: %s", what)
		}
	}
}
