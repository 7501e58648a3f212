package act_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

type workflow struct {
	Jobs map[string]struct {
		Permissions *map[string]string
		Steps       []workflowStep
	}
	Runs struct{ Steps []workflowStep } // of an action
}

type workflowStep struct {
	Uses string
	Run  string
}

// ours are the files that others use.
func ours(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, name := range []string{"action.yml", ".github/workflows/readiness.yml", ".github/workflows/comment.yml", ".github/workflows/release.yml", ".github/workflows/ci.yml"} {
		data, err := os.ReadFile(filepath.Join("..", "..", name))
		if os.IsNotExist(err) && name != "action.yml" && name != ".github/workflows/readiness.yml" {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		out[name] = string(data)
	}
	return out
}

func read(t *testing.T, content string) workflow {
	t.Helper()
	var w workflow
	if err := yaml.Unmarshal([]byte(content), &w); err != nil {
		t.Fatal(err)
	}
	for _, j := range w.Jobs {
		w.Runs.Steps = append(w.Runs.Steps, j.Steps...)
	}
	return w
}

// The release sets these references to its version, all at once.
func TestTheWorkflowsNameOneVersionOfTheAction(t *testing.T) {
	self := regexp.MustCompile(`uses: windows-op-readiness/windows-op-readiness(\S*)`)
	want := ""
	for name, content := range ours(t) {
		if name != ".github/workflows/readiness.yml" && name != ".github/workflows/comment.yml" {
			continue
		}
		content = regexp.MustCompile(`(?m)^\s*#.*$`).ReplaceAllString(content, "")
		found := self.FindAllStringSubmatch(content, -1)
		if len(found) == 0 {
			t.Errorf("%s does not use the action", name)
		}
		for _, f := range found {
			if want == "" {
				want = f[1]
			}
			if f[1] != want || !regexp.MustCompile(`^@(main|v\d+\.\d+\.\d+.*)$`).MatchString(f[1]) {
				t.Errorf("%s: the action is named %s, elsewhere %s", name, f[1], want)
			}
		}
		for _, s := range read(t, content).Runs.Steps {
			if strings.HasPrefix(s.Uses, "./") {
				t.Errorf("%s: %s is the caller's", name, s.Uses)
			}
		}
	}
}

func TestActionsOfOthersArePinnedByCommit(t *testing.T) {
	pinned := regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	versions := map[string]string{}
	for name, content := range ours(t) {
		for _, line := range strings.Split(content, "\n") {
			_, ref, ok := strings.Cut(strings.TrimSpace(line), "uses: ")
			if !ok || strings.HasPrefix(strings.TrimSpace(line), "#") || strings.HasPrefix(ref, "./") || strings.HasPrefix(ref, "windows-op-readiness/") {
				continue
			}
			if !pinned.MatchString(ref) {
				t.Errorf("%s: %q is not pinned by commit, with its version beside it", name, ref)
			}
			action, version, _ := strings.Cut(ref, "@")
			if other, seen := versions[action]; seen && other != version {
				t.Errorf("%s: %s is %s, elsewhere %s", name, action, version, other)
			}
			versions[action] = version
		}
	}
}

// What is put into a script in place of an expression is run.
func TestScriptsHoldNoExpressions(t *testing.T) {
	for name, content := range ours(t) {
		for _, s := range read(t, content).Runs.Steps {
			if strings.Contains(s.Run, "${{") {
				t.Errorf("%s: a script holds an expression:\n%s", name, s.Run)
			}
		}
	}
}

// A job that asks for more than its caller has is an error on GitHub, also where
// it is not needed.
func TestJobsThatOthersCallAskForNoPermission(t *testing.T) {
	inherit := []string{"publish", "verdict"}
	for name, j := range read(t, ours(t)[".github/workflows/readiness.yml"]).Jobs {
		switch {
		case slices.Contains(inherit, name):
			if j.Permissions != nil {
				t.Errorf("job %s asks for %v: it has what the caller grants", name, *j.Permissions)
			}
		case j.Permissions == nil || len(*j.Permissions) > 0:
			t.Errorf("job %s has permissions that it does not need: set permissions: {}", name)
		}
	}
}

// Whatever event has a pull request, one from a fork has no identity of ours.
func TestNothingIsPublishedForAFork(t *testing.T) {
	var w struct {
		Jobs map[string]struct {
			If string
		}
	}
	if err := yaml.Unmarshal([]byte(ours(t)[".github/workflows/readiness.yml"]), &w); err != nil {
		t.Fatal(err)
	}
	if want := "(!github.event.pull_request || github.event.pull_request.head.repo.full_name == github.repository)"; !strings.HasSuffix(w.Jobs["publish"].If, "&& "+want) {
		t.Errorf("publish runs if %s, and should only if also %s", w.Jobs["publish"].If, want)
	}
}
