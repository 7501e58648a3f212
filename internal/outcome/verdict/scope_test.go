package verdict_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/plan"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// cloneOf returns a run whose plan can be changed without changing the original.
func cloneOf(run *result.Run) *result.Run {
	c, p := copyOf(run), *run.Plan
	p.Cases, p.Tests, p.Standard = slices.Clone(p.Cases), slices.Clone(p.Tests), maps.Clone(p.Standard)
	p.Selection.Categories = slices.Clone(p.Selection.Categories)
	c.Plan = &p
	return c
}

// Whatever sets a plan apart from the built-in standard, however it came there,
// takes the word "cluster" out of the verdict, also where the digest is right.
func TestOnlyTheBuiltInStandardSpeaksOfTheCluster(t *testing.T) {
	const id = "core-network-custom-dns"
	base := ideal(t, planOf(t, result.Selection{Additional: true}, 1), 1)
	theCase := func(p *result.Plan) *result.PlannedCase { return caseOf(p, id) }
	for what, change := range map[string]func(p *result.Plan){
		"another digest":           func(p *result.Plan) { p.StandardDigest = "sha256:" + strings.Repeat("0", 64) },
		"no digest":                func(p *result.Plan) { p.StandardDigest = "" },
		"another version's digest": func(p *result.Plan) { p.KubernetesVersion = "v1.30.0" },
		"no version":               func(p *result.Plan) { p.KubernetesVersion = "new" },
		"another count":            func(p *result.Plan) { p.Standard[specs.CoreNetwork]-- },
		"another proof":            func(p *result.Plan) { theCase(p).Proof = specs.ProofFull },
		"another kind":             func(p *result.Plan) { theCase(p).Kind = specs.Additional },
		"another focus":            func(p *result.Plan) { theCase(p).Tests = []specs.Selector{{Focus: "x", Expect: 1}} },
		"no placement":             func(p *result.Plan) { theCase(p).Conditions.Placement = nil },
		"no needs":                 func(p *result.Plan) { caseOf(p, "core-network-internal-dns").Needs = specs.Needs{} },
		"a condition more":         func(p *result.Plan) { theCase(p).Needs.Condition = []string{"gmsa"} },
		"another category":         func(p *result.Plan) { theCase(p).Category = specs.ExtendWorker },
		"another sentence":         func(p *result.Plan) { theCase(p).Requirement = "Ability to do nothing" },
		"no tests":                 func(p *result.Plan) { theCase(p).TestIDs = nil },
		"another case's test":      func(p *result.Plan) { theCase(p).TestIDs = caseOf(p, "core-network-internal-dns").TestIDs },
		"a test that is not there": func(p *result.Plan) { theCase(p).TestIDs = []string{"000000000000"} },
		"other conditions of a test": func(p *result.Plan) {
			for i := range p.Tests {
				p.Tests[i].Conditions.RuntimeClass = "x"
			}
		},
		"a requirement less": func(p *result.Plan) {
			p.Cases = slices.DeleteFunc(p.Cases, func(c result.PlannedCase) bool { return c.ID == id })
		},
		"a rule less": func(p *result.Plan) {
			p.Cases = slices.DeleteFunc(p.Cases, func(c result.PlannedCase) bool { return c.ID == "cluster-node-count" })
		},
		"a case more": func(p *result.Plan) {
			p.Cases = append(p.Cases, result.PlannedCase{Case: specs.Case{ID: "mine", Category: specs.CoreNetwork, Kind: specs.Additional, Proof: specs.ProofNone}, Shard: 1})
		},
	} {
		run := cloneOf(base)
		change(run.Plan)
		j := verdict.Judge(run)
		if j.Scope.Kind != verdict.ScopeStandard || j.Scope.Standard == nil || !strings.Contains(j.Scope.String(), " requirements of another standard (") {
			t.Errorf("%s: the scope is %q", what, j.Scope)
		}
		// A category, and a shard, say so too.
		run.Plan.Selection.Categories = []specs.Category{specs.CoreNetwork}
		if what != "a rule less" && what != "another category" {
			if s := verdict.ScopeOf(run).String(); !strings.HasPrefix(s, "Core.Network of another standard (") {
				t.Errorf("%s: the category's scope is %q", what, s)
			}
		}
		run.Plan.Shards = 2
		run.Manifest.Shard = 1
		if s := verdict.ScopeOf(run).String(); what != "a rule less" && what != "another category" && !strings.HasPrefix(s, "shard 1 of 2 of another standard (") {
			t.Errorf("%s: the shard's scope is %q", what, s)
		}
	}
	run := cloneOf(base)
	run.Plan.Selection.Categories = []specs.Category{"the cluster"}
	if j := verdict.Judge(run); j.Scope.Standard == nil {
		t.Errorf("a category of its own name: the scope is %q", j.Scope)
	}
}

// What planning itself adds to a case, and what only says who planned, leaves
// the standard what it is.
func TestWhatPlanningAddsIsNoOtherStandard(t *testing.T) {
	cases := standardFor(t, version)
	tests, err := catalogue()
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(r *plan.Request){
		"a runtime class": func(r *plan.Request) { r.RuntimeClass = "runhcs-wcow-process" },
		"a provider":      func(r *plan.Request) { r.Provider = "gce" },
		"shards":          func(r *plan.Request) { r.Shards = 3 },
		"additional":      func(r *plan.Request) { r.Selection.Additional = true },
		"some cases":      func(r *plan.Request) { r.Selection.Cases = []string{"core-network-custom-dns"} },
		"a label":         func(r *plan.Request) { r.Selection.Labels = []string{cases[0].Labels[0]} },
	} {
		request := plan.Request{Cases: cases, Tests: tests, Provider: "skeleton", Shards: 1}
		change(&request)
		p, err := plan.Make(request)
		if err != nil {
			t.Fatal(err)
		}
		m := manifestOf(p, 1)
		m.ToolVersion = "v0.0.1"
		if s := verdict.ScopeOf(&result.Run{Plan: p, Manifest: m}); s.Standard != nil {
			t.Errorf("%s: the scope is %q", what, s)
		}
	}
	for _, older := range specs.Catalogues() {
		tests, err := specs.Catalogue(older)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.Make(plan.Request{Cases: standardFor(t, older), Tests: tests, Provider: "skeleton", Shards: 1})
		if err != nil {
			t.Fatal(err)
		}
		if s := verdict.ScopeOf(&result.Run{Plan: p, Manifest: manifestOf(p, 1)}); s.Kind != verdict.ScopeCluster {
			t.Errorf("%s: the scope is %q", older, s)
		}
	}
}

func standardFor(t testing.TB, version string) []specs.Case {
	t.Helper()
	set, err := specs.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	cases, err := set.For(version)
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

func TestAnotherStandardIsNamed(t *testing.T) {
	digest := "sha256:0123456789ab" + strings.Repeat("c", 52)
	for _, c := range []struct {
		specDir, tool, digest, want string
	}{
		{"my-specs", "v0.9.1", digest, "1 requirement of another standard (spec files of my-specs, sha256:0123456789ab)"},
		{"", "v0.9.1", digest, "1 requirement of another standard (planned by op-readiness v0.9.1, sha256:0123456789ab)"},
		{"", "v0.9.1", "", "1 requirement of another standard (planned by op-readiness v0.9.1, without a digest of its cases)"},
		{"", "", "the cluster", "1 requirement of another standard (without a digest of its cases)"},
		{"my specs): READY", "", digest, `1 requirement of another standard (spec files of "my specs): READY", sha256:0123456789ab)`},
		{"\x1b[31m\u202e", "", digest, `1 requirement of another standard (spec files of "\x1b[31m\u202e", sha256:0123456789ab)`},
		{"/" + strings.Repeat("long/", 99) + "specs", "", digest, "1 requirement of another standard (spec files of …" + strings.Repeat("long/", 99)[495-72:] + "specs, sha256:0123456789ab)"},
	} {
		run := &result.Run{
			Plan:     &result.Plan{Shards: 1, KubernetesVersion: version, StandardDigest: c.digest, Standard: map[specs.Category]int{specs.CoreNetwork: 1}},
			Manifest: &result.Manifest{Shard: 1, SpecDir: c.specDir, ToolVersion: c.tool},
		}
		if got := verdict.ScopeOf(run).String(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// A run that is judged with other spec files has their standard, whatever it was
// planned with; with this program's own it speaks of the cluster.
func TestARespecifiedRunHasTheStandardOfItsNewCases(t *testing.T) {
	standard := standardFor(t, version)
	base := ideal(t, planOf(t, result.Selection{}, 1), 1)
	selected := slices.DeleteFunc(slices.Clone(standard), func(c specs.Case) bool { return c.Kind == specs.Additional || c.Kind == specs.Trial })
	fewer := slices.DeleteFunc(slices.Clone(selected), func(c specs.Case) bool { return c.Proof != specs.ProofFull })
	other, err := verdict.Respecify(base, fewer, fewer, "easy")
	if err != nil {
		t.Fatal(err)
	}
	j := ready(t, "with fewer cases", other)
	if want := fmt.Sprintf("%d requirements of another standard (spec files of easy, sha256:", j.Counts.Total); !strings.HasPrefix(j.Scope.String(), want) {
		t.Errorf("the scope is %q", j.Scope)
	}
	if base.Manifest.SpecDir != "" {
		t.Error("the recorded run was changed")
	}
	back, err := verdict.Respecify(other, standard, selected, "")
	if err != nil {
		t.Fatal(err)
	}
	if j := ready(t, "with this program's own", back); j.Scope.Kind != verdict.ScopeCluster {
		t.Errorf("the scope is %q", j.Scope)
	}
}
