package jobs_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/test/golden"

	"github.com/sirupsen/logrus"
	prowconfig "sigs.k8s.io/prow/pkg/config"
	"sigs.k8s.io/yaml"

	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/config"
	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/generated"
	"github.com/windows-op-readiness/windows-op-readiness/jobs"
)

func TestMain(m *testing.M) {
	logrus.SetOutput(io.Discard) // Prow narrates each request
	os.Exit(m.Run())
}

// configurations are those that are rendered: this project's own, those in
// testdata, and the good ones of package config.
func configurations(t testing.TB) map[string]*config.Config {
	t.Helper()
	names, err := filepath.Glob("testdata/*/op-readiness.yaml")
	if err != nil || len(names) < 3 {
		t.Fatalf("configurations are %v (%v)", names, err)
	}
	all := map[string]*config.Config{"own": load(t, "../op-readiness.yaml")}
	for _, name := range names {
		all[filepath.Base(filepath.Dir(name))] = load(t, name)
	}
	good, err := filepath.Glob("../internal/ci/config/testdata/good/*.yaml")
	if err != nil || len(good) == 0 {
		t.Fatalf("good configurations are %v (%v)", good, err)
	}
	for _, name := range good {
		if c := load(t, name); c.Prow != nil {
			all["good-"+strings.TrimSuffix(filepath.Base(name), ".yaml")] = c
		}
	}
	return all
}

func load(t testing.TB, path string) *config.Config {
	t.Helper()
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func parse(t testing.TB, text string) *config.Config {
	t.Helper()
	c, err := config.Parse("op-readiness.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// imageCluster is where kubernetes/test-infra lets jobs push images.
const imageCluster = "k8s-infra-prow-build-trusted"

// prow is a Prow's configuration, as files.
type prow struct {
	configPath, jobsDir string
}

// prowOf writes the rendered jobs beside a Prow's configuration: for profile
// capz that of kubernetes/test-infra with its presets, as the module has them;
// otherwise a small one.
func prowOf(t testing.TB, c *config.Config) prow {
	t.Helper()
	p := prow{configPath: "testdata/prow.yaml", jobsDir: filepath.Join(t.TempDir(), "jobs")}
	if err := os.MkdirAll(p.jobsDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if c.Prow.Profile == config.ProfileCAPZ {
		p.configPath = filepath.Join(testInfra(t), "config/prow/config.yaml")
		write(t, filepath.Join(p.jobsDir, "presets.yaml"), testInfraPresets(t))
	} else {
		// The presets that a file declares as its Prow's.
		var presets []prowconfig.Preset
		for _, preset := range c.Prow.Presets {
			presets = append(presets, prowconfig.Preset{Labels: map[string]string{preset.Label: preset.Value}})
		}
		presets = append(presets, prowconfig.Preset{Labels: map[string]string{"preset-dind-enabled": "true"}})
		write(t, filepath.Join(p.jobsDir, "presets.yaml"), marshal(t, prowconfig.JobConfig{Presets: presets}))
	}
	files, err := jobs.Render(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Data == nil {
			continue
		}
		dir := p.jobsDir
		if strings.Contains(string(f.Data), imageCluster) {
			// Where kubernetes/test-infra has jobs that push images, and only those.
			dir = filepath.Join(dir, "image-pushing")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		write(t, filepath.Join(dir, f.Name), f.Data)
	}
	return p
}

// load reads it with Prow's strict loader.
func (p prow) load(t testing.TB) *prowconfig.Config {
	t.Helper()
	cfg, err := prowconfig.LoadStrict(p.configPath, p.jobsDir, nil, "")
	if err != nil {
		t.Fatalf("Prow refuses it: %v", err)
	}
	return cfg
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func marshal(t testing.TB, value any) []byte {
	t.Helper()
	data, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// testInfra is the folder of kubernetes/test-infra, of the version that go.mod
// names.
func testInfra(t testing.TB) string {
	t.Helper()
	return command(t, "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/test-infra")
}

// testInfraPresets are the presets of the files from which sig-windows' jobs
// take theirs.
func testInfraPresets(t testing.TB) []byte {
	t.Helper()
	var all prowconfig.JobConfig
	for _, name := range []string{
		"cluster-api-provider-azure/cluster-api-provider-azure-presets.yaml",
		"sig-windows/release-master-windows.yaml", "sig-windows/release-master-windows-presubmits.yaml", "sig-windows/presets.yaml",
	} {
		data, err := os.ReadFile(filepath.Join(testInfra(t), "config/jobs/kubernetes-sigs", name))
		if err != nil {
			t.Fatal(err)
		}
		var some prowconfig.JobConfig
		if err := yaml.Unmarshal(data, &some); err != nil {
			t.Fatal(err)
		}
		all.Presets = append(all.Presets, some.Presets...)
	}
	return marshal(t, all)
}

// tool is a program of Prow's or kubernetes/test-infra's, built from the module.
func tool(t testing.TB, name string) string {
	t.Helper()
	return command(t, "go", "tool", "-modfile=../scripts/prow/go.mod", "-n", name)
}

var commands sync.Map

// command is what a program prints, without the newline at its end; each is run
// once.
func command(t testing.TB, args ...string) string {
	t.Helper()
	key := strings.Join(args, "\x00")
	if out, ok := commands.Load(key); ok {
		return out.(string)
	}
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Stderr = &strings.Builder{}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, cmd.Stderr)
	}
	commands.Store(key, strings.TrimSpace(string(out)))
	return strings.TrimSpace(string(out))
}

func TestRender(t *testing.T) {
	for name, c := range configurations(t) {
		if _, err := os.Stat(filepath.Join("testdata", name)); err != nil {
			continue // jobs/ has this project's
		}
		t.Run(name, func(t *testing.T) {
			files, err := jobs.Render(c)
			if err != nil {
				t.Fatal(err)
			}
			again, err := jobs.Render(load(t, c.Path()))
			if err != nil || !slices.EqualFunc(files, again, func(a, b generated.File) bool { return a.Name == b.Name && string(a.Data) == string(b.Data) }) {
				t.Errorf("rendered again, it is another (%v)", err)
			}
			for _, f := range files {
				if f.Data != nil {
					golden.Equal(t, filepath.Join(name, strings.TrimSuffix(f.Name, ".yaml")+".golden"), f.Data)
				}
			}
		})
	}
}

func TestRender_is_what_jobs_has(t *testing.T) {
	files, err := jobs.Render(load(t, "../op-readiness.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		got, err := os.ReadFile(f.Name)
		if (err == nil) != (f.Data != nil) || string(got) != string(f.Data) {
			t.Errorf("jobs/%s is out of date: run 'op-readiness generate prow'", f.Name)
		}
	}
}

func TestProws_strict_loader_takes_every_file(t *testing.T) {
	for name, c := range configurations(t) {
		t.Run(name, func(t *testing.T) {
			cfg := prowOf(t, c).load(t)
			n := len(cfg.AllStaticPresubmits(nil)) + len(cfg.AllStaticPostsubmits(nil)) + len(cfg.AllPeriodics())
			want := slices.DeleteFunc(c.Jobs(), func(j config.Job) bool { return !j.InProw })
			if n != len(want) || n == 0 {
				t.Errorf("it has %d jobs, want %d", n, len(want))
			}
		})
	}
}

// warnings are those of checkconfig that can concern a job.
var warnings = []string{"unknown-fields-all", "non-decorated-jobs", "valid-decoration-config", "long-job-names", "duplicate-job-refs", "periodic-default-clone-config"}

func TestCheckconfig_has_nothing_to_say(t *testing.T) {
	args := []string{tool(t, "checkconfig"), "--strict"}
	for _, w := range warnings {
		args = append(args, "--warnings="+w)
	}
	for name, c := range configurations(t) {
		t.Run(name, func(t *testing.T) {
			p := prowOf(t, c)
			out, err := exec.CommandContext(t.Context(), args[0], append(args[1:], "--config-path="+p.configPath, "--job-config-path="+p.jobsDir)...).CombinedOutput()
			if err != nil || strings.Contains(string(out), `"level":"warning"`) {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
	t.Run("it would see a mistake", func(t *testing.T) {
		p := prowOf(t, load(t, "../op-readiness.yaml"))
		name := filepath.Join(p.jobsDir, "windows-op-readiness-periodics.yaml")
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		write(t, name, []byte(strings.Replace(string(data), "decorate: true", "decorated: true", 1)))
		if out, err := exec.CommandContext(t.Context(), args[0], append(args[1:], "--config-path="+p.configPath, "--job-config-path="+p.jobsDir)...).CombinedOutput(); err == nil {
			t.Errorf("checkconfig takes an unknown field:\n%s", out)
		}
	})
}

// TestTools_are_of_the_versions_that_go_mod_names: what is built beside the
// module judges by the same Prow and test-infra as what is imported.
func TestTools_are_of_the_versions_that_go_mod_names(t *testing.T) {
	for _, module := range []string{"sigs.k8s.io/prow", "k8s.io/test-infra"} {
		ours := command(t, "go", "list", "-m", module)
		if tools := command(t, "go", "list", "-modfile=../scripts/prow/go.mod", "-m", module); tools != ours {
			t.Errorf("scripts/prow/go.mod has %s, go.mod has %s", tools, ours)
		}
	}
}
