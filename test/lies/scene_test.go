//go:build unix

package lies

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"

	"github.com/windows-op-readiness/windows-op-readiness/internal/cli"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
)

const version = "v1.36.3"

// The tests of a scene are Kubernetes' own, by their real names, and run in this
// order.
const (
	first  = "[sig-network] EndpointSlice should create Endpoints and EndpointSlices for Pods matching a Service [Conformance]"
	second = "[sig-network] Services should complete a service status lifecycle [Conformance]"
	third  = "[sig-network] Services should delete a collection of services [Conformance]"
)

// scene is a cluster of real nodes, a lying e2e.test, and a standard of one
// requirement for each of its tests.
type scene struct {
	t                       testing.TB
	api                     *apiServer
	dir                     string // of results
	specs, kubeconfig, temp string
	binary                  string
}

// specOf is the text of a spec file whose cases each want a pod called web on
// Windows, where it is not said otherwise.
func specOf(category string, cases map[string]string, more ...string) string {
	text := "category: " + category + "\ncases:\n"
	for _, id := range []string{"first", "second", "third"} {
		focus := map[string]string{"first": "EndpointSlice should create Endpoints and", "second": "Services should complete a service status", "third": "Services should delete a collection of services"}[id]
		if cases != nil && cases[id] == "" {
			continue
		}
		text += fmt.Sprintf("  - id: %s-%s\n    requirement: What the %s test shows.\n    proof: full\n    tests:\n      - focus: '%s'\n        expect: 1\n    phase: parallel\n    duration: 1m\n    timeout: 10m\n    needs: {means: [exec]}\n    conditions: {placement: [%s]}\n%s",
			strings.ToLower(strings.ReplaceAll(category, ".", "-")), id, id, focus, orElse(cases[id], "{pods: ^web$, os: windows}"), strings.Join(more, ""))
	}
	return text
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// newScene sets a scene for a lie; nodes are real ones where none are given.
func newScene(t testing.TB, lie string, nodes ...object) *scene {
	t.Helper()
	if len(nodes) == 0 {
		nodes = realNodes()
	}
	temp := t.TempDir()
	s := &scene{
		t: t, api: newAPIServer(t, nodes...), temp: temp,
		dir: filepath.Join(temp, "results"), specs: filepath.Join(temp, "specs"), kubeconfig: filepath.Join(temp, "kubeconfig"),
	}
	s.binary = install(t, script{Lie: lie, Version: version, Tests: []string{first, second, third}, Server: s.api.url})
	s.write(s.kubeconfig, fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{name: x, cluster: {server: %q}}]\ncontexts: [{name: x, context: {cluster: x, user: x}}]\nusers: [{name: x, user: {}}]\n", s.api.url))
	s.standard(specOf("Core.Network", nil))
	return s
}

// standard replaces the spec files of the scene.
func (s *scene) standard(files ...string) {
	s.t.Helper()
	if err := os.RemoveAll(s.specs); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Mkdir(s.specs, 0o755); err != nil {
		s.t.Fatal(err)
	}
	for i, text := range files {
		s.write(filepath.Join(s.specs, fmt.Sprintf("spec-%d.yaml", i)), text)
	}
}

func (s *scene) write(path, content string) {
	s.t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// said is how a command ended.
type said struct {
	code           int
	stdout, stderr string
}

func (s *scene) main(args ...string) said { return s.mainWith(nil, args...) }

func (s *scene) mainWith(signals <-chan os.Signal, args ...string) said {
	var out, errs bytes.Buffer
	environ := append(slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "KUBE") || strings.HasPrefix(e, "HOME=") || strings.HasPrefix(e, "ARTIFACTS=") || strings.HasPrefix(e, "GITHUB_")
	}), "HOME="+s.temp)
	code := cli.Main(context.Background(), args, cli.Surroundings{
		Environ: environ, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Signals: signals,
	})
	return said{code, out.String(), errs.String()}
}

// runArgs are those of a run, and further ones.
func (s *scene) runArgs(more ...string) []string {
	return append([]string{"run", "--kubeconfig", s.kubeconfig, "--e2e-binary", s.binary, "--spec-dir", s.specs, "--report-dir", s.dir}, more...)
}

func (s *scene) run(more ...string) said { return s.main(s.runArgs(more...)...) }
func (s *scene) resume(more ...string) said {
	return s.main(append([]string{"run", "--resume", s.dir}, more...)...)
}

// interrupted runs until the folder holds what ready looks for, and is then
// interrupted.
func (s *scene) interrupted(ready func(events string) bool) said {
	s.t.Helper()
	signals, done := make(chan os.Signal), make(chan said, 1)
	go func() { done <- s.mainWith(signals, s.runArgs()...) }()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		data, _ := os.ReadFile(filepath.Join(s.dir, result.EventsFile))
		if ready(string(data)) {
			break
		}
		select {
		case got := <-done:
			return got
		default:
		}
		if time.Now().After(end) {
			s.t.Fatalf("in time it did not happen; events:\n%s", data)
		}
	}
	signals <- os.Interrupt
	return <-done
}

// started reports whether a test has started, by the events.
func started(name string) func(events string) bool {
	return func(events string) bool {
		for line := range strings.Lines(events) {
			var e result.Event
			if json.Unmarshal([]byte(line), &e) == nil && e.Type == result.TestStarted && e.Test.Name == name {
				return true
			}
		}
		return false
	}
}

// disbelieved reports a command that was not to end as ready, or that says so.
func (s *scene) disbelieved(got said, says ...string) {
	s.t.Helper()
	if got.code == verdict.ExitReady || strings.Contains(got.stdout, ": READY") {
		s.t.Errorf("believed: exit code %d\n%s\n%s", got.code, got.stdout, got.stderr)
	}
	s.says(got, says...)
}

// believed reports an honest run that was not taken for one.
func (s *scene) believed(got said, says ...string) {
	s.t.Helper()
	if got.code != verdict.ExitReady {
		s.t.Errorf("an honest run is not believed: exit code %d\n%s\n%s", got.code, got.stdout, got.stderr)
	}
	s.says(got, says...)
}

// refused reports a command that was not refused as a wrong one.
func (s *scene) refused(got said, says ...string) {
	s.t.Helper()
	if got.code != verdict.ExitUsage {
		s.t.Errorf("not refused: exit code %d\n%s\n%s", got.code, got.stdout, got.stderr)
	}
	s.says(got, says...)
}

func (s *scene) says(got said, says ...string) {
	s.t.Helper()
	for _, text := range says {
		if !strings.Contains(got.stdout+got.stderr, text) {
			s.t.Errorf("it does not say %q:\n%s\n%s", text, got.stdout, got.stderr)
		}
	}
}

// web is a pod of a test: what an honest one has made, and runs on Windows.
func web(change ...func(pod object)) object {
	running := object{"name": "web", "state": object{"running": object{"startedAt": "2026-08-01T12:00:00Z"}}, "containerID": "containerd://1", "started": true, "ready": true}
	pod := object{
		"metadata": object{"name": "web"},
		"spec":     object{"nodeName": "windows-0", "containers": []any{object{"name": "web", "image": "registry.k8s.io/e2e-test-images/agnhost:2.63.0"}}},
		"status":   object{"phase": "Running", "startTime": "2026-08-01T12:00:00Z", "containerStatuses": []any{running}},
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}

// makes is a test that makes a namespace with pods, and removes it.
func makes(p *program, namespace string, labels object, pods ...object) {
	p.post("/api/v1/namespaces", object{"metadata": object{"name": namespace, "labels": labels}})
	for _, pod := range pods {
		p.post("/api/v1/namespaces/"+namespace+"/pods", pod)
	}
	ginkgo.By(fmt.Sprintf("Destroying namespace %q for this suite.", namespace))
	p.request(http.MethodDelete, "/api/v1/namespaces/"+namespace, nil)
}

func (p *program) post(path string, o object) { p.request(http.MethodPost, path, o) }

func (p *program) request(method, path string, o object) {
	data, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	request, err := http.NewRequest(method, p.Server+path, bytes.NewReader(data))
	if err != nil {
		panic(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	answer.Body.Close()
	if answer.StatusCode >= 300 {
		panic(fmt.Sprintf("%s %s: %s", method, path, answer.Status))
	}
}
