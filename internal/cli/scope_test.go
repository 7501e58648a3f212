package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
)

// fourEasyCases has a scene's spec files hold one case in each Core category.
func fourEasyCases(s *scene) {
	for name, test := range map[string]string{"Core.Network": "a", "Core.Storage": "b", "Core.Scheduling": "c", "Core.Concurrent": "d"} {
		file := strings.ToLower(strings.ReplaceAll(name, ".", "-")) + ".yaml"
		s.write(filepath.Join(s.specs, file), "category: "+name+"\ntestCases:\n"+testCase(test))
	}
}

// Easy spec files can be ready; that is never said of the cluster, wherever the
// results are looked at.
func TestSpecFilesAreNeverTheClustersReadiness(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	fourEasyCases(s)
	const line = "Windows operational readiness of 4 requirements of another standard (spec files of "
	says := func(what string, got said, code int, more ...string) {
		t.Helper()
		s.want(what, got, code, more...)
		if text := got.stdout + got.stderr; strings.Contains(strings.ToLower(text), "the cluster: ready") {
			t.Errorf("%s: it says that the cluster is ready:\n%s", what, text)
		}
	}
	ran := s.main(s.args()...)
	says("run", ran, verdict.ExitReady, line, "/specs, sha256:", "): READY (0 proven, 4 in part, of 4)")
	if !strings.HasPrefix(ran.stdout, line) {
		t.Errorf("the first line is %.200q", ran.stdout)
	}
	says("report", s.main("report", s.dir), verdict.ExitReady, line)
	says("report as Markdown", s.main("report", s.dir, "-o", "markdown"), verdict.ExitReady, "## "+line)
	says("a category", s.main("run", "--kubeconfig", s.kubeconfig, "--e2e-binary", s.fake.Binary(), "--spec-dir", s.specs, "--category", "Core.Network", "--report-dir", s.dir+"-network"),
		verdict.ExitReady, "readiness of Core.Network of another standard (4 requirements, spec files of ", "): READY (0 proven, 1 in part, of 1)")
	says("merge", s.main("merge", s.dir, "--report-dir", s.dir+"-merged"), verdict.ExitReady, line)
	says("comment", s.main("comment", s.dir+"-merged", "--dry-run"), verdict.ExitReady, "Windows operational readiness of <code>4 requirements of another standard &#40;spec files of ")
	says("publish", publishing(nil, nil, s.dir+"-merged", "--bucket", "file://"+s.dir+"-bucket", "--job", "x"), verdict.ExitReady, "; ready (another standard)")
	for _, dir := range []string{s.dir, s.dir + "-merged"} {
		metadata := map[string]string{}
		s.json(filepath.Join(dir, result.MetadataFile), &metadata)
		if metadata["verdict"] != "ready (another standard)" || !strings.HasPrefix(metadata["scope"], "4 requirements of another standard (") {
			t.Errorf("metadata %v", metadata)
		}
	}
	var finished struct{ Metadata map[string]any }
	builds, err := filepath.Glob(s.dir + "-bucket/logs/x/*/finished.json")
	if err != nil || len(builds) != 1 {
		t.Fatalf("%v, %v", builds, err)
	}
	s.json(builds[0], &finished)
	if finished.Metadata["verdict"] != "ready (another standard)" {
		t.Errorf("finished.json has %v", finished.Metadata)
	}
	// The folder's own word for it counts for nothing.
	var plan map[string]any
	s.json(filepath.Join(s.dir, result.PlanFile), &plan)
	plan["standardDigest"] = "sha256:" + strings.Repeat("0", 64)
	data, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	s.write(filepath.Join(s.dir, result.PlanFile), string(data))
	says("a plan that was changed", s.main("report", s.dir), verdict.ExitInconclusive, "of another standard (spec files of ", "plan.json was changed")
}

// json reads a file.
func (s *scene) json(path string, into any) {
	s.t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// The same results, judged with the built-in standard, are the cluster's, and
// with spec files they are those of the files.
func TestReportSaysByWhichStandard(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	fourEasyCases(s)
	s.want("run", s.main(s.args()...), verdict.ExitReady)
	s.want("the built-in standard", s.main("report", s.dir, "--specs", "current"), verdict.ExitInconclusive, "Windows operational readiness of the cluster: INCONCLUSIVE (0 proven")
	fewer := s.specs + "-fewer"
	if err := os.Mkdir(fewer, 0o755); err != nil {
		t.Fatal(err)
	}
	s.write(filepath.Join(fewer, "core-network.yaml"), "category: Core.Network\ntestCases:\n"+testCase("a"))
	s.want("fewer cases", s.main("report", s.dir, "--spec-dir", fewer), verdict.ExitReady, "readiness of 1 requirement of another standard (spec files of ", "-fewer, sha256:")
}

// Results of an op-readiness with another standard name its version.
func TestResultsOfAnotherVersionNameIt(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	fourEasyCases(s)
	s.want("run", s.main(s.args()...), verdict.ExitReady)
	var m map[string]any
	s.json(filepath.Join(s.dir, result.ManifestFile), &m)
	delete(m, "specDir")
	m["toolVersion"] = "v0.0.7"
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	s.write(filepath.Join(s.dir, result.ManifestFile), string(data))
	s.want("report", s.main("report", s.dir), verdict.ExitReady, "of 4 requirements of another standard (planned by op-readiness v0.0.7, sha256:")
}

func TestPlansThatBelieTheirCountsAreRefused(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	s.want("run", s.main(s.args()...), verdict.ExitReady)
	run := s.results()
	run.Plan.Standard["Core.Network"] = 46
	var err error
	if run.Plan.Digest, err = run.Plan.ComputeDigest(); err != nil {
		t.Fatal(err)
	}
	run.Manifest.PlanDigest = run.Plan.Digest
	for name, v := range map[string]any{result.PlanFile: run.Plan, result.ManifestFile: run.Manifest} {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		s.write(filepath.Join(s.dir, name), string(data))
	}
	const says = `it plans 6 requirements of "Core.Network", and counts 46 in its standard`
	s.want("report", s.main("report", s.dir), verdict.ExitUsage, says)
	s.want("merge", s.main("merge", s.dir, "--report-dir", s.dir+"-merged"), verdict.ExitUsage, says)
	s.want("comment", s.main("comment", s.dir, "--dry-run"), verdict.ExitUsage, says)
	s.want("publish", publishing(nil, nil, s.dir, "--bucket", "file://"+s.dir+"-bucket", "--job", "x"), verdict.ExitUsage, says)
}

func TestWhatWasDeclaredAwayIsSaidWithTheVerdict(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	const words = "without gmsa, hpc (yet 2 nodes have containerd on Windows) and internet, as declared"
	s.want("run", s.main(s.args("--without", "hpc,gmsa", "--air-gapped")...), verdict.ExitReady, ": READY "+words+" (0 proven")
	s.want("as JSON", s.main("report", s.dir, "-o", "json"), verdict.ExitReady, `"name": "hpc",`, `"yet": "2 nodes have containerd on Windows"`)
	s.want("comment", s.main("comment", s.dir, "--dry-run"), verdict.ExitReady, ": ready "+words+"\n")
	metadata := map[string]string{}
	s.json(filepath.Join(s.dir, result.MetadataFile), &metadata)
	if metadata["verdict"] != "ready "+words+" (another standard)" {
		t.Errorf("metadata %v", metadata)
	}
}

// A fact against a declaration is said; only that of two families is refused.
func TestOnlyWithoutDualStackIsRefused(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	s.podCIDRs = []string{"10.0.0.0/24", "fd00::/64"}
	s.want("a run", s.main(s.args("--without", "dual-stack")...), verdict.ExitInconclusive,
		"declared absent (--without dual-stack), but pod CIDRs of two families are on 4 nodes", "the run cannot work on this cluster, for dual-stack")
	if _, err := os.Stat(s.dir); err == nil || len(s.fake.Starts(t)) > 0 {
		t.Errorf("a refused run: %v, started %q", err, s.fake.Starts(t))
	}
	s.want("all the same", s.main(s.args("--without", "dual-stack", "--preflight", "warn")...), verdict.ExitInconclusive,
		": INCONCLUSIVE without dual-stack (yet 4 nodes have pod CIDRs of two families), as declared (", "declared: the cluster is without dual-stack")
	s.podCIDRs, s.dir = s.podCIDRs[:1], s.dir+"-single"
	s.want("one family", s.main(s.args("--without", "dual-stack")...), verdict.ExitReady, ": READY without dual-stack, as declared (")
}

// What 'specs lint' refuses, plan and run refuse, with its words, before anything
// is built, made or asked.
func TestSpecFilesAreLintedFirst(t *testing.T) {
	s := newScene(t, e2etest.Script{})
	const native = "category: Core.Network\ncases:\n  - id: a\n    requirement: x\n    proof: full\n    tests:\n      - focus: '%'\n        expect: 1\n    phase: serial\n    duration: 1m\n    timeout: 10m\n"
	const placement = "    conditions:\n      placement: [{pods: ^x, os: windows}]\n"
	for what, c := range map[string]struct{ spec, says string }{
		"a focus that matches nothing": {strings.ReplaceAll(native, "%", "no such test") + placement, `focus "no such test" matches no test of Kubernetes v`},
		"no placement":                 {strings.ReplaceAll(native, "%", "Services should work after the service has been recreated$"), "a: no placement puts a pod on Windows"},
		"a field of nobody":            {native + "    colour: red\n", "colour"},
		"no spec file":                 {"", "is not a spec file"},
	} {
		dir := filepath.Join(t.TempDir(), "specs")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if c.spec != "" {
			s.write(filepath.Join(dir, "core-network.yaml"), c.spec)
		} else {
			dir, c.says = filepath.Join(dir, "nosuch"), "nosuch: no such file or directory"
		}
		cache := filepath.Join(s.dir, "cache")
		for _, args := range [][]string{
			{"specs", "lint"},
			{"plan", "--cache-dir", cache},
			{"plan", "--cache-dir", cache, "--kubernetes-version", "v1.99.0"},
			{"plan", "--e2e-binary", s.fake.Binary()},
			{"run", "--cache-dir", cache, "--kubeconfig", s.kubeconfig},
			{"run", "--cache-dir", cache, "--kubeconfig", s.kubeconfig, "--kubernetes-version", "v1.36.3"},
			{"run", "--cache-dir", cache, "--cluster", "kwok"},
			{"run", "--cache-dir", cache, "--dry-run"},
			{"run", "--kubeconfig", s.kubeconfig, "--e2e-binary", s.fake.Binary()},
		} {
			if strings.HasPrefix(c.says, "focus") && args[len(args)-1] == "v1.99.0" {
				continue // nobody knows its tests yet
			}
			s.want(what+": "+strings.Join(args, " "), s.main(append(args, "--spec-dir", dir)...), verdict.ExitUsage, c.says)
		}
	}
	if _, err := os.Stat(s.dir); err == nil || len(s.requests) > 0 || len(s.fake.Starts(t)) > 0 {
		t.Errorf("%v; requests %q, started %q", err, s.requests, s.fake.Starts(t))
	}
	s.want("report", s.main("run", "--kubeconfig", s.kubeconfig, "--e2e-binary", s.fake.Binary(), "--spec-dir", s.specs, "--report-dir", s.dir), verdict.ExitReady)
	s.write(filepath.Join(s.specs, "core-network.yaml"), strings.ReplaceAll(native, "%", "x"))
	s.want("report", s.main("report", s.dir, "--spec-dir", s.specs), verdict.ExitUsage, "a: no placement puts a pod on Windows")
}
