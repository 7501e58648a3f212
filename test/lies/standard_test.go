//go:build unix

package lies

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// trivial is a standard of one small case in each Core category.
func trivial() []string {
	var files []string
	for _, category := range []string{"Core.Network", "Core.Storage", "Core.Scheduling", "Core.Concurrent"} {
		files = append(files, specOf(category, map[string]string{"first": "{pods: ^web$, os: windows}"}))
	}
	return files
}

// ofTheCluster are the words that only this program's own standard may say.
const ofTheCluster = "of the cluster: READY"

// notTheCluster reports words about the cluster, and a first line that does not
// say that another standard was taken.
func (s *scene) notTheCluster(what string, got said) {
	s.t.Helper()
	line, _, _ := strings.Cut(got.stdout, "\n")
	if strings.Contains(got.stdout+got.stderr, ofTheCluster) || !strings.Contains(line, "another standard") || !strings.Contains(line, "sha256:") || !strings.Contains(line, "4 requirements") {
		s.t.Errorf("%s: a standard of four trivial cases speaks of the cluster, or is not named:\n%s", what, line)
	}
}

func TestFourTrivialCasesSayNothingOfTheCluster(t *testing.T) {
	t.Parallel()
	s := newScene(t, truth)
	s.standard(trivial()...)
	got := s.run()
	s.believed(got)
	s.notTheCluster("run", got)
	s.notTheCluster("report", s.main("report", s.dir))
	var said struct{ Judgement struct{ Scope verdict.Scope } }
	if err := json.Unmarshal([]byte(s.main("report", "-o", "json", s.dir).stdout), &said); err != nil || said.Judgement.Scope.Kind == verdict.ScopeCluster || said.Judgement.Scope.Kind == "" {
		t.Errorf("the scope is %+v (%v)", said.Judgement.Scope, err)
	}
	for _, file := range []string{result.ManifestFile, result.MetadataFile} {
		data, err := os.ReadFile(filepath.Join(s.dir, file))
		if err != nil || strings.Contains(string(data), `"the cluster"`) || !strings.Contains(string(data), "another standard") {
			t.Errorf("%s (%v):\n%s", file, err, data)
		}
	}
	if comment := s.main("comment", s.dir, "--dry-run"); strings.Contains(comment.stdout, "of the cluster") || !strings.Contains(comment.stdout, "another standard") {
		t.Errorf("the comment:\n%s", comment.stdout)
	}
}

func TestAReportWithTrivialCasesSaysNothingOfTheCluster(t *testing.T) {
	t.Parallel()
	s := newScene(t, truth)
	s.standard(trivial()...)
	b := newBench(t, truth, planOf(t, 1), 1)
	got := s.main("report", "--spec-dir", s.specs, b.run())
	line, _, _ := strings.Cut(got.stdout, "\n")
	if strings.Contains(got.stdout, ofTheCluster) || !strings.Contains(got.stdout, "another standard") {
		t.Errorf("it says %s\n%s", line, got.stdout)
	}
}

// A standard without the case that fails, or with less of it, is another one,
// whatever its digests say.
func TestAStandardThatWasMadeEasier(t *testing.T) {
	t.Parallel()
	b := newBench(t, failsAlways, planOf(t, 1), 1)
	dir := b.run()
	easier := map[string]func(p *result.Plan, c *result.PlannedCase){
		"the case is additional":      func(_ *result.Plan, c *result.PlannedCase) { c.Kind = specs.Additional },
		"the case is on trial":        func(_ *result.Plan, c *result.PlannedCase) { c.Kind = specs.Trial },
		"the case has no test":        func(_ *result.Plan, c *result.PlannedCase) { c.Proof, c.TestIDs, c.Tests = specs.ProofNone, nil, nil },
		"the case asks for a feature": func(_ *result.Plan, c *result.PlannedCase) { c.Needs.Condition = append(c.Needs.Condition, "hyperv") },
		"the case has another test":   func(p *result.Plan, c *result.PlannedCase) { c.TestIDs = []string{other(p, b.target.ID)} },
		"the case is a worker's":      func(_ *result.Plan, c *result.PlannedCase) { c.Category = specs.ExtendWorker },
		"the case is gone":            func(_ *result.Plan, c *result.PlannedCase) { c.ID = "" },
	}
	for what, make := range easier {
		to := copyOf(t, dir)
		rewritePlan(t, to, func(p *result.Plan) {
			for i := range p.Cases {
				if slices.Contains(p.Cases[i].TestIDs, b.target.ID) {
					make(p, &p.Cases[i])
				}
			}
			p.Cases = slices.DeleteFunc(p.Cases, func(c result.PlannedCase) bool { return c.ID == "" })
			p.Standard = map[specs.Category]int{}
			for i := range p.Cases {
				if p.Cases[i].Kind == specs.Requirement {
					p.Standard[p.Cases[i].Category]++
				}
			}
		})
		done, err := result.Load(to)
		if err != nil {
			continue // refused
		}
		if j := verdict.Judge(done); j.Verdict == verdict.Ready && j.Scope.Kind == verdict.ScopeCluster {
			t.Errorf("%s: %s of %s", what, j.Verdict, j.Scope)
		}
	}
}

// other is a test of the plan that is not this one.
func other(p *result.Plan, id string) string {
	for i := range p.Tests {
		if p.Tests[i].ID != id {
			return p.Tests[i].ID
		}
	}
	return ""
}

func TestAPlanWhoseCountsDisagree(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(p *result.Plan){
		"one requirement less": func(p *result.Plan) { p.Standard["Core.Network"]-- },
		"one requirement more": func(p *result.Plan) { p.Standard["Core.Network"]++ },
		"a category more":      func(p *result.Plan) { p.Standard["Core.Storage"] = 4 },
		"no counts":            func(p *result.Plan) { p.Standard = nil },
		"a case less":          func(p *result.Plan) { p.Cases = p.Cases[1:] },
		"a case twice":         func(p *result.Plan) { p.Cases[1] = p.Cases[0] },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, truth)
			s.believed(s.run())
			rewritePlan(t, s.dir, change)
			s.everyReader(nil)
		})
	}
}

// everyReader has every command that reads a results folder read the scene's;
// each must refuse it, or at least not be ready.
func (s *scene) everyReader(check func(command string, got said)) {
	s.t.Helper()
	bucket := filepath.Join(s.temp, "bucket")
	for command, args := range map[string][]string{
		"report":  {"report", s.dir},
		"merge":   {"merge", "--logs", "--report-dir", filepath.Join(s.t.TempDir(), "merged"), s.dir},
		"publish": {"publish", s.dir, "--bucket", "file://" + bucket, "--job", "lies"},
		"comment": {"comment", s.dir, "--dry-run"},
		"resume":  {"run", "--resume", s.dir},
	} {
		got := s.main(args...)
		if check != nil {
			check(command, got)
			continue
		}
		if strings.Contains(got.stdout, "READY") && !strings.Contains(got.stdout, "NOT-READY") || got.code == verdict.ExitReady && command != "publish" {
			s.t.Errorf("%s believes it: exit code %d\n%s\n%s", command, got.code, got.stdout, got.stderr)
		}
	}
	_ = filepath.WalkDir(bucket, func(path string, _ os.DirEntry, _ error) error {
		if data, _ := os.ReadFile(path); filepath.Base(path) == "finished.json" && strings.Contains(string(data), `"passed":true`) {
			s.t.Errorf("publish believes it: %s", data)
		}
		return nil
	})
}

func TestWhatWasDeclaredAwayStandsBesideTheVerdict(t *testing.T) {
	t.Parallel()
	s := newScene(t, truth)
	s.api.put("/apis/windows.k8s.io/v1/gmsacredentialspecs", object{"metadata": object{"name": "x"}})
	got := s.run("--without", "gmsa,hyperv")
	s.believed(got, "READY without gmsa (yet the API group windows.k8s.io is served) and hyperv, as declared")
	s.believed(s.main("report", s.dir), "READY without gmsa (yet the API group windows.k8s.io is served) and hyperv, as declared")
	s.says(s.main("comment", s.dir, "--dry-run"), "without gmsa (yet the API group windows.k8s.io is served) and hyperv, as declared")
	data, err := os.ReadFile(filepath.Join(s.dir, result.MetadataFile))
	if err != nil || !strings.Contains(string(data), "gmsa") || !strings.Contains(string(data), "hyperv") {
		t.Errorf("%s (%v): %s", result.MetadataFile, err, data)
	}
}

func TestDualStackIsNotDeclaredAway(t *testing.T) {
	t.Parallel()
	nodes := realNodes()
	for _, n := range nodes {
		n["spec"] = object{"podCIDRs": []string{"10.0.0.0/24", "fd00::/64"}}
	}
	s := newScene(t, truth, nodes...)
	s.disbelieved(s.run("--without", "dual-stack"), "dual-stack")
	s = newScene(t, truth)
	s.believed(s.run("--without", "dual-stack"))
}

func TestSpecsThatLintRefuses(t *testing.T) {
	t.Parallel()
	for what, spec := range map[string]string{
		"no pod on Windows":      specOf("Core.Network", map[string]string{"first": "{pods: ^web$, os: linux}"}),
		"a focus of no test":     strings.Replace(specOf("Core.Network", nil), "EndpointSlice should create", "EndpointSlice shoud create", 1),
		"steered, unknown to be": specOf("Core.Network", map[string]string{"first": "{pods: ^web$, os: windows}"}, "")[:0] + strings.Replace(specOf("Core.Network", nil), "conditions: {", "conditions: {steer: windows, ", 1),
	} {
		s := newScene(t, truth)
		s.standard(spec)
		if got := s.main("specs", "lint", "--spec-dir", s.specs); got.code == verdict.ExitReady {
			t.Fatalf("%s: lint takes it: %s", what, got.stdout)
		}
		s.refused(s.run())
		s.refused(s.run("--dry-run"))
		s.refused(s.main("plan", "--spec-dir", s.specs, "--e2e-binary", s.binary))
	}
}

// Another version has another standard, and its results are its own.
func TestResultsOfAnotherVersionAreNamed(t *testing.T) {
	t.Parallel()
	s := newScene(t, truth)
	s.dir = newBench(t, truth, planOf(t, 1), 1).run()
	rewritePlan(t, s.dir, func(p *result.Plan) { p.Cases[0].Requirement += " Somewhat." })
	s.manifest(func(m *result.Manifest) { m.ToolVersion = "v9.8.7" })
	got := s.main("report", s.dir)
	if strings.Contains(got.stdout, ofTheCluster) {
		t.Errorf("it says %s", got.stdout)
	}
	s.says(got, "v9.8.7")
}
