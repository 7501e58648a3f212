package jobs_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// TestImage holds what builds the image, ../Dockerfile and ../cloudbuild.yaml,
// against the repository, the job that submits it, and the jobs that run in it.
// No container engine is asked.
func TestImage(t *testing.T) {
	c := load(t, "../op-readiness.yaml")
	instructions := dockerfile(t, "../Dockerfile")

	t.Run("the Dockerfile takes what is there", func(t *testing.T) {
		made := map[string]bool{} // by the stages before
		for _, i := range instructions {
			words := strings.Fields(i.args)
			switch i.name {
			case "RUN":
				for _, w := range regexp.MustCompile(`/out/[-.\w]+`).FindAllString(i.args, -1) {
					made[w] = true
				}
			case "COPY":
				from := slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "--from=") })
				words = slices.DeleteFunc(words, func(w string) bool { return strings.HasPrefix(w, "--") })
				for _, source := range words[:len(words)-1] {
					if from {
						if !made[source] {
							t.Errorf("line %d: no stage makes %s", i.line, source)
						}
					} else if _, err := os.Stat(filepath.Join("..", source)); err != nil {
						t.Errorf("line %d: %v", i.line, err)
					}
				}
			}
		}
		if len(made) < 2 {
			t.Errorf("it makes %v", made)
		}
	})

	t.Run("its Go builds this module", func(t *testing.T) {
		data, err := os.ReadFile("../go.mod")
		if err != nil {
			t.Fatal(err)
		}
		want := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(data)[1]
		if image := instructions[0].args; !strings.HasPrefix(image, "golang:"+string(want)+"-") {
			t.Errorf("it builds in %s, and go.mod wants Go %s", image, want)
		}
	})

	t.Run("its kubectl is near every Kubernetes that is tested", func(t *testing.T) {
		i := slices.IndexFunc(instructions, func(i instruction) bool { return strings.HasPrefix(i.args, "KUBERNETES_VERSION=") })
		kubectl, err := specs.ParseVersion(strings.TrimPrefix(instructions[i].args, "KUBERNETES_VERSION=v"))
		if err != nil {
			t.Fatal(err)
		}
		for _, cell := range c.Cells() {
			if cell.Version() == "" {
				continue // the branch where Kubernetes is developed
			}
			v, err := specs.ParseVersion(cell.Version())
			if err != nil {
				t.Fatal(err)
			}
			if d := v.Minor - kubectl.Minor; v.Major != kubectl.Major || d < -1 || d > 1 {
				t.Errorf("kubectl %v is more than a minor version away from Kubernetes %v", kubectl, v)
			}
		}
	})

	t.Run("jobs call what it has on its path", func(t *testing.T) {
		last := instructions[len(instructions)-1]
		if last.name != "ENTRYPOINT" || path.Base(strings.Trim(last.args, `[]"`)) != "op-readiness" {
			t.Errorf("line %d: it ends with %s %s", last.line, last.name, last.args)
		}
	})

	t.Run("the context has .git, from which the version is", func(t *testing.T) {
		ignored, err := os.ReadFile("../.dockerignore")
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(strings.Fields(string(ignored)), ".git") {
			t.Error(".dockerignore leaves it out")
		}
		if args := c.Prow.Postsubmit.Args; !slices.Contains(args, "--with-git-dir") || args[len(args)-1] != "." {
			t.Errorf("the job uploads %v", args)
		}
	})

	t.Run("Cloud Build builds and pushes the same images", func(t *testing.T) {
		data, err := os.ReadFile("../cloudbuild.yaml")
		if err != nil {
			t.Fatal(err)
		}
		var build struct {
			Timeout string            `json:"timeout"`
			Options map[string]string `json:"options"`
			Steps   []struct {
				Name string   `json:"name"`
				Args []string `json:"args"`
			} `json:"steps"`
			Substitutions map[string]string `json:"substitutions"`
			Images        []string          `json:"images"`
		}
		if err := yaml.UnmarshalStrict(data, &build); err != nil {
			t.Fatal(err)
		}
		var tagged []string
		for _, arg := range build.Steps[0].Args {
			if tag, ok := strings.CutPrefix(arg, "--tag="); ok {
				tagged = append(tagged, tag)
			}
		}
		if len(build.Images) == 0 || !slices.Equal(tagged, build.Images) || build.Steps[0].Args[0] != "build" {
			t.Errorf("it builds %v, and pushes %v", tagged, build.Images)
		}
		for _, used := range regexp.MustCompile(`\$(_[A-Z_]+)`).FindAllStringSubmatch(string(data), -1) {
			if _, ok := build.Substitutions[used[1]]; !ok {
				t.Errorf("$%s stands for nothing", used[1])
			}
		}
		// What image-builder passes and the build does not use must be no error.
		if build.Options["substitution_option"] != "ALLOW_LOOSE" {
			t.Errorf("options are %v", build.Options)
		}
	})
}

type instruction struct {
	line       int
	name, args string
}

// dockerfile are the instructions of one.
func dockerfile(t *testing.T, name string) []instruction {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var all []instruction
	whole := true
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		part, more := strings.CutSuffix(line, `\`)
		if whole {
			word, args, _ := strings.Cut(part, " ")
			all = append(all, instruction{i + 1, word, strings.TrimSpace(args)})
		} else {
			all[len(all)-1].args += " " + strings.TrimSpace(part)
		}
		whole = !more
	}
	return all
}
