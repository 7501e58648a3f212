package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/assess"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/plan"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// pages are the documents that people read, by their path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	top := filepath.Join("..", "..")
	files, err := filepath.Glob(filepath.Join(top, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, file := range append(files, filepath.Join(top, "README.md"), filepath.Join(top, "CONTRIBUTING.md"), filepath.Join(top, "specs", "README.md")) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rel, err := filepath.Rel(top, file)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.ToSlash(rel)] = string(data)
	}
	return all
}

func newestCoverage(t *testing.T) (*specs.Set, []specs.Case, *specs.VersionCoverage) {
	t.Helper()
	set, err := specs.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	cases, err := set.For(assess.NewestVersion())
	if err != nil {
		t.Fatal(err)
	}
	coverage, err := specs.Cover(set, assess.NewestVersion())
	if err != nil {
		t.Fatal(err)
	}
	return set, cases, coverage
}

func TestTheREADMEShowsWhatTheCommandsPrint(t *testing.T) {
	readme := pages(t)["README.md"]
	_, table, _ := specsCommand(t, "", nil, "coverage", "--kubernetes-version", assess.NewestVersion())
	_, _, lint := specsCommand(t, "", nil, "lint")
	for command, want := range map[string]string{"specs coverage --kubernetes-version " + assess.NewestVersion(): table, "specs lint": lint} {
		if block := "$ bin/op-readiness " + command + "\n" + want; !strings.Contains(readme, block) {
			t.Errorf("README.md does not have:\n%s", block)
		}
	}
}

// What the README's table says of a version that no count tells: of which
// releases of Windows Server Kubernetes publishes its test images
// (test/images/agnhost/BASEIMAGE), and how pods are steered, by the state of the
// feature gate MutatingAdmissionPolicy.
var versionFacts = map[string]struct{ windows, steering string }{
	"1.36": {"2019, 2022, 2025", "admission policy"},
	"1.35": {"2019, 2022", "admission policy, if its beta API is switched on; else `--steer=cordon`"},
	"1.34": {"2019, 2022", "admission policy, if its beta API is switched on; else `--steer=cordon`"},
	"1.33": {"2019, 2022", "`--steer=cordon`"},
}

func TestTheREADMESaysWhatIsCoveredOnEachVersion(t *testing.T) {
	set, _, _ := newestCoverage(t)
	want := ""
	for _, version := range slices.Backward(specs.Catalogues()) {
		v, err := specs.ParseVersion(version)
		if err != nil {
			t.Fatal(err)
		}
		coverage, err := specs.Cover(set, version)
		if err != nil {
			t.Fatal(err)
		}
		facts, ok := versionFacts[v.MinorString()]
		if !ok {
			t.Errorf("nothing is known of Kubernetes %s: add it to the table of README.md, and here", v.MinorString())
		}
		full, part := byCordon(t, set, version)
		want += fmt.Sprintf("| %s (%s) | %s | 1.7, 2.x | %d, %d, %d | %d, %d | %s |\n", v.MinorString(), version, facts.windows,
			coverage.Total.Full, coverage.Total.Part, coverage.Total.None, full, part, facts.steering)
	}
	if !strings.Contains(pages(t)["README.md"], want) {
		t.Errorf("README.md does not have:\n%s", want)
	}
}

// byCordon counts the requirements that can be tested, in full and in part, on a
// cluster that has everything but the admission policy.
func byCordon(t *testing.T, set *specs.Set, version string) (full, part int) {
	t.Helper()
	cases, err := set.For(version)
	if err != nil {
		t.Fatal(err)
	}
	m := &result.Manifest{Kubectl: "/kubectl", Steering: result.SteeringCordon}
	for _, os := range []specs.OS{specs.Linux, specs.Linux, specs.Windows, specs.Windows} {
		m.Cluster.Nodes = append(m.Cluster.Nodes, result.Node{OS: os, Ready: true, ContainerRuntime: "containerd://2.1.4"})
	}
	for i := range cases {
		c := &result.PlannedCase{Case: cases[i]}
		if outcome, _ := verdict.Decide(c, m); c.Kind != specs.Requirement || outcome != "" {
			continue
		}
		if c.Proof == specs.ProofFull {
			full++
		} else {
			part++
		}
	}
	return full, part
}

// Whatever a document counts of the standard is what the standard has.
func TestDocumentsCountTheStandardRight(t *testing.T) {
	_, cases, coverage := newestCoverage(t)
	rules := 0
	for i := range cases {
		if cases[i].Kind == specs.Rule {
			rules++
		}
	}
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	scopes := append(slices.Clone(coverage.Categories), coverage.Total)
	for _, count := range []struct {
		pattern string
		right   func(m []string) bool
	}{
		{`(\d+) proven, (\d+) in part, of (\d+)`, func(m []string) bool {
			proven, part, of := number(m[1]), number(m[2]), number(m[3])
			if of == coverage.Total.Requirements && proven > 0 {
				return proven == coverage.Total.Full && part == coverage.Total.Part
			}
			return of == 0 || slices.ContainsFunc(scopes, func(c specs.Coverage) bool {
				return c.Requirements == of && proven <= c.Full && part <= c.Part
			})
		}},
		{`(\d+) requirements and (\d+) rules`, func(m []string) bool {
			return number(m[1]) == coverage.Total.Requirements && number(m[2]) == rules
		}},
		{`((?:Core|Extend)\.\w+) \((\d+) requirements?\)`, func(m []string) bool {
			return slices.ContainsFunc(coverage.Categories, func(c specs.Coverage) bool {
				return string(c.Category) == m[1] && c.Requirements == number(m[2])
			})
		}},
		{`cluster-dns \((\d+) requirements need it\)`, func(m []string) bool {
			n := 0
			for i := range cases {
				if c := &cases[i]; c.Kind == specs.Requirement && c.Gates() && c.Proof != specs.ProofNone && slices.Contains(c.Needs.Means, "dns") {
					n++
				}
			}
			return number(m[1]) == n
		}},
		{`(\d+) tests? to run for (\d+) cases? of plan`, func(m []string) bool {
			return number(m[1]) == len(onSimulatedNodes(t, cases, true)) && number(m[2]) == len(cases)
		}},
		{`Each of the (\d+) tests that run on a simulated cluster`, func(m []string) bool {
			return number(m[1]) == len(onSimulatedNodes(t, cases, false))
		}},
	} {
		found := false
		for page, text := range pages(t) {
			for _, m := range regexp.MustCompile(count.pattern).FindAllStringSubmatch(text, -1) {
				found = true
				if !count.right(m) {
					t.Errorf("%s: the standard has not %q", page, m[0])
				}
			}
		}
		if !found {
			t.Errorf("no document has %s: take it out of this test", count.pattern)
		}
	}
}

// onSimulatedNodes are the tests that need no container to run.
func onSimulatedNodes(t *testing.T, cases []specs.Case, trial bool) []string {
	t.Helper()
	list, err := specs.Catalogue(assess.NewestVersion())
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Make(plan.Request{Cases: cases, Tests: list, Provider: "skeleton", Selection: result.Selection{Additional: true, Trial: trial}, Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	free := map[string]bool{}
	for i := range p.Cases {
		free[p.Cases[i].ID] = !p.Cases[i].NeedsContainers()
	}
	var ids []string
	for i := range p.Tests {
		if slices.ContainsFunc(p.Tests[i].Cases, func(id string) bool { return free[id] }) {
			ids = append(ids, p.Tests[i].ID)
		}
	}
	return ids
}
