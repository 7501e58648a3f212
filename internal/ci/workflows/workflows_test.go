package workflows_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/test/golden"

	"gopkg.in/yaml.v3"

	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/config"
	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/workflows"
)

// minimal has what every configuration needs; tests add to it.
const minimal = `repository: example/cni
matrix:
  kubernetes: ["1.36.3"]
  windows: ["2022"]
`

func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := config.Parse(config.DefaultPath, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func render(t *testing.T, c *config.Config) map[string]string {
	t.Helper()
	files, err := workflows.Render(c)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range files {
		out[strings.TrimPrefix(f.Name, c.Name+"-")] = string(f.Data)
	}
	return out
}

// written is a workflow as GitHub reads it.
type written struct {
	Name        string            `yaml:"name"`
	On          map[string]any    `yaml:"on"`
	Permissions map[string]string `yaml:"permissions"`
	Jobs        map[string]struct {
		Name        string            `yaml:"name"`
		If          string            `yaml:"if"`
		Permissions map[string]string `yaml:"permissions"`
		Uses        string            `yaml:"uses"`
		With        map[string]any    `yaml:"with"`
		Secrets     map[string]string `yaml:"secrets"`
	} `yaml:"jobs"`
}

func read(t *testing.T, data string) *written {
	t.Helper()
	var w written
	dec := yaml.NewDecoder(strings.NewReader(data))
	if err := dec.Decode(&w); err != nil {
		t.Fatal(err)
	}
	return &w
}

// configurations are those of the tests of package config that have workflows,
// and this project's own.
func configurations(t *testing.T) map[string]*config.Config {
	t.Helper()
	paths, err := filepath.Glob("../config/testdata/good/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*config.Config{}
	for _, path := range append(paths, "../../../op-readiness.yaml") {
		c, err := config.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if c.GitHub != nil {
			all[strings.TrimSuffix(filepath.Base(path), ".yaml")] = c
		}
	}
	if len(all) < 2 {
		t.Fatalf("only %d configurations have workflows", len(all))
	}
	return all
}

func TestEveryField(t *testing.T) {
	for name, data := range render(t, configurations(t)["every-field"]) {
		golden.Equal(t, name+".golden", []byte(data))
	}
}

func TestTheSameBytesEachTime(t *testing.T) {
	for name, c := range configurations(t) {
		first := render(t, c)
		for file, data := range render(t, c) {
			if data != first[file] {
				t.Errorf("%s: %s differs from one time to the next", name, file)
			}
		}
	}
}

func TestCallsFitTheReusableWorkflows(t *testing.T) {
	type reusable struct {
		On struct {
			Call struct {
				Inputs map[string]struct {
					Type     string `yaml:"type"`
					Required bool   `yaml:"required"`
				} `yaml:"inputs"`
				Secrets map[string]any `yaml:"secrets"`
			} `yaml:"workflow_call"`
		} `yaml:"on"`
	}
	types := map[string]func(any) bool{
		"string":  func(v any) bool { _, ok := v.(string); return ok },
		"number":  func(v any) bool { _, ok := v.(int); return ok },
		"boolean": func(v any) bool { _, ok := v.(bool); return ok },
	}
	for name, c := range configurations(t) {
		for file, data := range render(t, c) {
			if data == "" {
				continue
			}
			for id, j := range read(t, data).Jobs {
				path, ref, _ := strings.Cut(j.Uses, "@")
				repository, called, _ := strings.Cut(path, "/.github/workflows/")
				if repository+"@"+ref != c.GitHub.Uses {
					t.Errorf("%s: %s: %s uses %s, not %s", name, file, id, j.Uses, c.GitHub.Uses)
				}
				source, err := os.ReadFile("../../../.github/workflows/" + called)
				if err != nil {
					t.Fatalf("%s: %s: %s uses %s: %v", name, file, id, j.Uses, err)
				}
				var r reusable
				if err := yaml.Unmarshal(source, &r); err != nil {
					t.Fatal(err)
				}
				for key, value := range j.With {
					input, ok := r.On.Call.Inputs[key]
					if !ok || !types[input.Type](value) {
						t.Errorf("%s: %s: %s: %s takes no %s: %v", name, file, id, called, key, value)
					}
				}
				for key, input := range r.On.Call.Inputs {
					if _, ok := j.With[key]; input.Required && !ok {
						t.Errorf("%s: %s: %s: %s needs %s", name, file, id, called, key)
					}
				}
				for key := range j.Secrets {
					if _, ok := r.On.Call.Secrets[key]; !ok {
						t.Errorf("%s: %s: %s: %s takes no secret %s", name, file, id, called, key)
					}
				}
				if called := j.With["name"]; called != nil && !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$`).MatchString(called.(string)) {
					t.Errorf("%s: %s: %s: no name of artifacts: %v", name, file, id, called)
				}
			}
		}
	}
}

// What a job may do is the least that it needs: nothing for a pull request, the
// bucket's identity where something is published, the comment for the commenter.
func TestPermissions(t *testing.T) {
	for name, c := range configurations(t) {
		for file, data := range render(t, c) {
			if data == "" {
				continue
			}
			want := map[string]string{}
			switch {
			case file == "comment.yml":
				want = map[string]string{"actions": "read", "pull-requests": "write"}
			case file == "scheduled.yml" && c.GitHub.Publish != nil:
				want = map[string]string{"id-token": "write"}
			}
			w := read(t, data)
			if w.Permissions == nil || len(w.Permissions) > 0 {
				t.Errorf("%s: %s: permissions of all jobs: %v", name, file, w.Permissions)
			}
			for id, j := range w.Jobs {
				if len(j.Permissions) != len(want) {
					t.Errorf("%s: %s: %s has %v, want %v", name, file, id, j.Permissions, want)
				}
				for key, value := range want {
					if j.Permissions[key] != value {
						t.Errorf("%s: %s: %s has %v, want %v", name, file, id, j.Permissions, want)
					}
				}
			}
		}
	}
}

const own = `github:
  pullRequests: {}
  scheduled: {}
results:
  bucket: gs://example
`

func TestAPullRequestFromAForkHasNoJobThatNeedsASecret(t *testing.T) {
	w := read(t, render(t, parse(t, minimal+own))["pull-requests.yml"])
	if len(w.Jobs) != 1 {
		t.Fatalf("%d jobs", len(w.Jobs))
	}
	for _, j := range w.Jobs {
		if j.Secrets["kubeconfig"] != "${{ secrets.KUBECONFIG }}" || j.If != "github.event.pull_request.head.repo.full_name == github.repository" {
			t.Errorf("secrets %v, if %q", j.Secrets, j.If)
		}
	}
	simulated := strings.Replace(minimal, "windows: [", "provider: [kwok]\n  windows: [", 1)
	for _, j := range read(t, render(t, parse(t, simulated+own))["pull-requests.yml"]).Jobs {
		if j.Secrets != nil || j.If != "" || j.With["cluster"] != "kwok" {
			t.Errorf("a simulated cluster: %+v", j)
		}
	}
}

func TestTheCommenterListensToTheWorkflowOfPullRequests(t *testing.T) {
	files := render(t, parse(t, minimal+own+"name: cni-windows\n"))
	run := read(t, files["comment.yml"]).On["workflow_run"].(map[string]any)
	if name := read(t, files["pull-requests.yml"]).Name; run["workflows"].([]any)[0] != name {
		t.Errorf("it listens to %v, not to %q", run["workflows"], name)
	}
	if files = render(t, parse(t, minimal+strings.Replace(own, "  scheduled: {}", "  scheduled: {}\n  comment: {disabled: true}", 1))); files["comment.yml"] != "" {
		t.Errorf("nothing is to be commented, and there is\n%s", files["comment.yml"])
	}
	if files = render(t, parse(t, minimal+strings.Replace(own, "  pullRequests: {}\n", "", 1))); files["comment.yml"]+files["pull-requests.yml"] != "" || files["scheduled.yml"] == "" {
		t.Errorf("without pull requests: %v", files)
	}
}

// The reusable workflows take runners through fromJSON. The comment is written
// with a token that may write, so it does not go where pull requests run code.
func TestRunners(t *testing.T) {
	for _, c := range []struct{ settings, jobs, comment string }{
		{"", `null`, `null`},
		{"  runsOn: windows-lab\n", `["windows-lab"]`, `null`},
		{"  runsOn: [self-hosted, \"lab's\"]\n  comment: {runsOn: trusted}\n", `["self-hosted","lab's"]`, `["trusted"]`},
		{"  comment: {runsOn: [trusted, linux]}\n", `null`, `["trusted","linux"]`},
	} {
		files := render(t, parse(t, minimal+strings.Replace(own, "github:\n", "github:\n"+c.settings, 1)))
		for name, want := range map[string]string{"pull-requests.yml": c.jobs, "scheduled.yml": c.jobs, "comment.yml": c.comment} {
			for id, j := range read(t, files[name]).Jobs {
				got := "null"
				if with, ok := j.With["runs-on"].(string); ok {
					var labels []string
					if err := json.Unmarshal([]byte(with), &labels); err != nil {
						t.Errorf("%s: %s: fromJSON refuses %s: %v", name, id, with, err)
					}
					got = with
				}
				if got != want {
					t.Errorf("with %q, %s: %s runs on %s, want %s", c.settings, name, id, got, want)
				}
			}
		}
	}
}

// Where a cell makes a cluster on a self-hosted runner, its leftovers are removed there;
// a runner of GitHub's has none.
func TestSelfHostedRunnersAreReaped(t *testing.T) {
	made := strings.Replace(minimal, "windows: [", "provider: [kwok]\n  windows: [", 1)
	of := func(matrix, runsOn string) string {
		return render(t, parse(t, matrix+strings.Replace(own, "github:\n", "github:\n  runsOn: "+runsOn+"\n", 1)))["reap.yml"]
	}
	w := read(t, of(made, "[self-hosted, lab-1]"))
	if len(w.Jobs) != 1 || w.Jobs["reap-1"].With["runs-on"] != `["self-hosted","lab-1"]` || !strings.Contains(w.Jobs["reap-1"].Uses, "/.github/workflows/reap.yml@") {
		t.Errorf("it has the jobs %+v", w.Jobs)
	}
	if _, byHand := w.On["workflow_dispatch"]; !byHand || w.On["schedule"] == nil {
		t.Errorf("it runs on %v", w.On)
	}
	if hosted, existing := of(made, "ubuntu-latest"), of(minimal, "[self-hosted, lab-1]"); hosted+existing != "" {
		t.Errorf("without clusters on self-hosted runners there is\n%s%s", hosted, existing)
	}
}

func TestTheBaseOfACommentIsWhatTheCellPublishes(t *testing.T) {
	base := func(text string) any {
		return read(t, render(t, parse(t, text))["comment.yml"]).Jobs["comment"].With["args"]
	}
	if got := base(minimal + own); got != nil {
		t.Errorf("nothing is published, and the base is %v", got)
	}
	publishes := strings.Replace(own, "github:\n", "github:\n  publish: {workloadIdentityProvider: projects/1/locations/global/workloadIdentityPools/p/providers/q}\n", 1)
	if got := base(minimal + publishes); got != "--base=1.36.3-ltsc2022=gs://example/logs/ci-windows-op-readiness-1-36-3-ltsc2022" {
		t.Errorf("the base is %v", got)
	}
}

func TestAConfigurationWithoutWorkflows(t *testing.T) {
	_, err := workflows.Render(parse(t, minimal))
	var problems config.Problems
	if !errors.As(err, &problems) || !strings.Contains(err.Error(), "no section github") {
		t.Errorf("error %v", err)
	}
}
