package plan_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/plan"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

const version = "v1.36.3"

var standard = sync.OnceValues(func() (plan.Request, error) {
	set, err := specs.Embedded()
	if err != nil {
		return plan.Request{}, err
	}
	cases, err := set.For(version)
	if err != nil {
		return plan.Request{}, err
	}
	tests, err := specs.Catalogue(version)
	return plan.Request{Cases: cases, Tests: tests, Provider: "skeleton", Selection: result.Selection{Additional: true}, Shards: 1}, err
})

// request asks for the whole standard, with the additional tests.
func request(t *testing.T) plan.Request {
	t.Helper()
	req, err := standard()
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func makePlan(t *testing.T, req plan.Request) *result.Plan {
	t.Helper()
	p, err := plan.Make(req)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// small asks for cases of tests that are called "test 1", "test 2", ...
func small(cases ...specs.Case) plan.Request {
	list := &specs.TestList{Version: "v1.30.0"}
	for _, tags := range []string{"1", "2", "3", "4 [Serial]", "5 [Disruptive]", "6 [Serial] [Disruptive]"} {
		list.Tests = append(list.Tests, specs.ListedTest{Name: "test " + tags, Location: "test/e2e/x.go:" + tags[:1]})
	}
	return plan.Request{Cases: cases, Tests: list, Provider: "skeleton", Shards: 1}
}

// on is a requirement that the given tests verify.
func on(id string, d time.Duration, tests ...string) specs.Case {
	c := specs.Case{ID: id, Category: specs.CoreNetwork, Kind: specs.Requirement, Proof: specs.ProofFull, Phase: specs.Parallel, Duration: d}
	for _, name := range tests {
		c.Tests = append(c.Tests, specs.Selector{Focus: "test " + name + `( |$)`, Expect: 1})
	}
	return c
}

func names(p *result.Plan) []string {
	var out []string
	for i := range p.Tests {
		out = append(out, p.Tests[i].Name)
	}
	return out
}

func TestTheSameRequestMakesTheSamePlan(t *testing.T) {
	req := request(t)
	req.Shards = 4
	req.Durations = map[string]time.Duration{}
	for i, test := range makePlan(t, req).Tests {
		req.Durations[test.ID] = time.Duration(i%7) * time.Minute
	}
	req.Selection = result.Selection{
		Additional: true,
		Categories: []specs.Category{specs.ExtendHostProcess, specs.CoreNetwork, specs.CoreStorage},
		Labels:     nil,
	}
	var first []byte
	for range 20 {
		again := req
		again.Durations = maps.Clone(req.Durations)
		got, err := json.Marshal(makePlan(t, again))
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = got
		}
		if string(got) != string(first) {
			t.Fatal("two plans of one request differ")
		}
	}
	// However the selection is said.
	again := req
	again.Selection.Categories = []specs.Category{specs.CoreStorage, specs.CoreNetwork, specs.ExtendHostProcess, specs.CoreNetwork}
	asked := slices.Clone(again.Selection.Categories)
	if got, _ := json.Marshal(makePlan(t, again)); string(got) != string(first) {
		t.Error("the order of the selection matters")
	}
	if !slices.Equal(asked, again.Selection.Categories) {
		t.Error("the caller's selection was changed")
	}
}

func TestTheDigestTellsPlansApart(t *testing.T) {
	req := small(on("a", time.Minute, "1"), on("b", time.Minute, "2"))
	base := makePlan(t, req).Digest
	changes := map[string]func(r *plan.Request){
		"selection": func(r *plan.Request) { r.Selection.Cases = []string{"a"} },
		"shards":    func(r *plan.Request) { r.Shards = 2 },
		"provider":  func(r *plan.Request) { r.Provider = "aws" },
		"duration":  func(r *plan.Request) { r.Cases[0].Duration *= 2 },
		"sentence":  func(r *plan.Request) { r.Cases[0].Requirement = "x" },
		"placement": func(r *plan.Request) {
			r.Cases[0].Conditions.Placement = []specs.Placement{{Pods: "x", OS: specs.Windows}}
		},
		"test's name":   func(r *plan.Request) { r.Tests.Tests[0].Name += " [x]" },
		"version":       func(r *plan.Request) { r.Tests.Version = "v1.30.1" },
		"runtime class": func(r *plan.Request) { r.RuntimeClass = "x" },
		"a measured duration": func(r *plan.Request) {
			r.Durations = map[string]time.Duration{result.TestID("test 1", result.RunConditions{}): time.Hour}
		},
	}
	for what, change := range changes {
		r := small(on("a", time.Minute, "1"), on("b", time.Minute, "2"))
		change(&r)
		if makePlan(t, r).Digest == base {
			t.Errorf("%s: the digest is the same", what)
		}
	}
	// Tests that are not selected are not part of it.
	r := small(on("a", time.Minute, "1"), on("b", time.Minute, "2"))
	r.Tests.Tests = r.Tests.Tests[:2]
	if makePlan(t, r).Digest != base {
		t.Error("tests that nobody asked for count")
	}
}

func TestEveryCaseAndTestIsInOneShard(t *testing.T) {
	req := request(t)
	whole := makePlan(t, req)
	for shards := 1; shards <= 20; shards++ {
		req.Shards = shards
		p := makePlan(t, req)
		if p.Shards != shards || !slices.Equal(names(p), names(whole)) || len(p.Cases) != len(whole.Cases) {
			t.Fatalf("%d shards: %d tests and %d cases, the whole has %d and %d", shards, len(p.Tests), len(p.Cases), len(whole.Tests), len(whole.Cases))
		}
		shardOf := map[string]int{}
		for i := range p.Tests {
			if s := p.Tests[i].Shard; s < 1 || s > shards {
				t.Errorf("%d shards: test %s is in shard %d", shards, p.Tests[i].Name, s)
			}
			shardOf[p.Tests[i].ID] = p.Tests[i].Shard
		}
		for i := range p.Cases {
			c := &p.Cases[i]
			if c.Shard < 1 || c.Shard > shards {
				t.Errorf("%d shards: case %s is in shard %d", shards, c.ID, c.Shard)
			}
			for _, id := range c.TestIDs {
				if shardOf[id] != c.Shard {
					t.Errorf("%d shards: case %s is in shard %d, and its test in %d", shards, c.ID, c.Shard, shardOf[id])
				}
			}
		}
		loads := plan.Loads(p)
		var sum time.Duration
		for _, l := range loads {
			sum += l
		}
		var total time.Duration
		for i := range p.Tests {
			total += p.Tests[i].Duration
		}
		if len(loads) != shards || sum != total {
			t.Errorf("%d shards: loads %v are %v, and the tests take %v", shards, loads, sum, total)
		}
	}
}

func TestLinkedCasesStayTogether(t *testing.T) {
	// a and c share a test, c and e another: the three are one.
	req := small(on("a", time.Minute, "1"), on("b", 10*time.Minute, "3"), on("c", 2*time.Minute, "1", "2"), on("d", time.Minute, "4"), on("e", time.Minute, "2"))
	req.Shards = 3
	p := makePlan(t, req)
	shards := map[string]int{}
	for i := range p.Cases {
		shards[p.Cases[i].ID] = p.Cases[i].Shard
	}
	if shards["a"] != shards["c"] || shards["c"] != shards["e"] {
		t.Errorf("linked cases are in the shards %v", shards)
	}
	if want := map[string]int{"a": 2, "b": 1, "c": 2, "d": 3, "e": 2}; !maps.Equal(shards, want) {
		t.Errorf("shards %v, want %v: the longest goes first", shards, want)
	}
	// More shards than there is work: some are empty, and nothing is lost.
	req.Shards = 9
	if loads := plan.Loads(makePlan(t, req)); slices.Index(loads, 0) != 3 {
		t.Errorf("loads %v", loads)
	}
}

func TestATestRunsOnceForAllItsCases(t *testing.T) {
	steered := on("d", 9*time.Minute, "1")
	steered.Conditions.Steer = specs.Windows
	placed := on("c", 3*time.Minute, "1")
	placed.Conditions.Placement = []specs.Placement{{Pods: "x", OS: specs.Windows}}
	placed.Phase = specs.Serial
	placed.Timeout = time.Hour
	p := makePlan(t, small(on("a", time.Minute, "1"), on("b", 2*time.Minute, "1", "2"), placed, steered))
	var got []string
	for i := range p.Tests {
		test := &p.Tests[i]
		got = append(got, fmt.Sprintf("%s %s %s %v %v %s %s", test.Name, test.Conditions, test.Phase, test.Duration, test.Timeout, test.Location, test.Cases))
	}
	want := []string{
		"test 2 as is parallel 1m0s 10m0s test/e2e/x.go:2 [b]",
		"test 1 steer windows parallel 9m0s 27m0s test/e2e/x.go:1 [d]",
		"test 1 as is serial 3m0s 1h0m0s test/e2e/x.go:1 [a b c]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for i, want := range []int{1, 2, 1, 1} {
		if got := len(p.Cases[i].TestIDs); got != want {
			t.Errorf("case %s has %d tests, want %d", p.Cases[i].ID, got, want)
		}
	}
	// Selectors that overlap are one test, too.
	twice := on("a", time.Minute, "1", "1")
	if p := makePlan(t, small(twice)); len(p.Tests) != 1 || len(p.Cases[0].TestIDs) != 1 {
		t.Errorf("selected twice: %d tests, %v", len(p.Tests), p.Cases[0].TestIDs)
	}
}

func TestOrder(t *testing.T) {
	rank := map[specs.Phase]int{specs.Parallel: 0, specs.Serial: 1, specs.Disruptive: 2}
	p := makePlan(t, request(t))
	type group struct {
		phase      specs.Phase
		conditions result.RunConditions
	}
	left := map[group]bool{}
	last := group{}
	for i := range p.Tests {
		test := &p.Tests[i]
		g := group{test.Phase, test.Conditions}
		if i > 0 && rank[g.phase] < rank[last.phase] {
			t.Errorf("%s test %s comes after %s ones", test.Phase, test.Name, last.phase)
		}
		if g != last {
			if left[g] {
				t.Errorf("%s tests %q are in two places", test.Phase, test.Conditions)
			}
			left[last] = true
			last = g
		}
	}
	for name, want := range map[string]specs.Phase{"4": specs.Serial, "5": specs.Disruptive, "6": specs.Disruptive} {
		if got := makePlan(t, small(on("a", time.Minute, name))).Tests[0].Phase; got != want {
			t.Errorf("test %s is %s, want %s: its name says so", name, got, want)
		}
	}
}

func TestMeasuredDurationsCount(t *testing.T) {
	req := small(on("a", time.Hour, "1"), on("b", time.Minute, "2"), on("c", time.Minute, "3"))
	req.Shards = 2
	req.Durations = map[string]time.Duration{
		result.TestID("test 1", result.RunConditions{}):                     0,
		result.TestID("test 3", result.RunConditions{}):                     2 * time.Minute,
		result.TestID("test 2", result.RunConditions{Steer: specs.Windows}): 50 * time.Hour,
	}
	p := makePlan(t, req)
	if loads := plan.Loads(p); !slices.Equal(loads, []time.Duration{2 * time.Minute, time.Minute}) {
		t.Errorf("loads %v", loads)
	}
	if p.Tests[0].Timeout != 3*time.Hour {
		t.Errorf("the time limit is %v: it does not follow from what was measured", p.Tests[0].Timeout)
	}
}

func TestSelection(t *testing.T) {
	count := func(keep func(c *specs.Case) bool) int {
		n := 0
		for _, c := range request(t).Cases {
			if keep(&c) {
				n++
			}
		}
		return n
	}
	counted := func(c *specs.Case) bool { return c.Kind != specs.Additional && c.Kind != specs.Trial }
	needs := func(c *specs.Case, name string) bool {
		return slices.Contains(c.Needs.Condition, name) || slices.Contains(c.Needs.Means, name)
	}
	for what, c := range map[string]struct {
		sel  result.Selection
		keep func(c *specs.Case) bool
	}{
		"all":        {result.Selection{}, counted},
		"additional": {result.Selection{Additional: true}, func(c *specs.Case) bool { return c.Kind != specs.Trial }},
		"trial":      {result.Selection{Trial: true}, func(c *specs.Case) bool { return c.Kind != specs.Additional }},
		"trial of a case": {result.Selection{Trial: true, Cases: []string{"core-network-distinct-pod-ips"}},
			func(c *specs.Case) bool { return c.Proves() == "core-network-distinct-pod-ips" }},
		"a trial alone": {result.Selection{Cases: []string{"core-network-distinct-pod-ips-trial"}},
			func(c *specs.Case) bool { return c.ID == "core-network-distinct-pod-ips-trial" }},
		"category": {result.Selection{Categories: []specs.Category{specs.CoreNetwork}},
			func(c *specs.Case) bool { return c.Category == specs.CoreNetwork && counted(c) }},
		"case": {result.Selection{Cases: []string{"extra-scheduling-gates", "core-network-custom-dns"}},
			func(c *specs.Case) bool { return c.ID == "extra-scheduling-gates" || c.ID == "core-network-custom-dns" }},
		"capability":       {result.Selection{Capabilities: []string{"netpol"}}, func(c *specs.Case) bool { return counted(c) && needs(c, "netpol") }},
		"means":            {result.Selection{Capabilities: []string{"kubectl"}}, func(c *specs.Case) bool { return counted(c) && needs(c, "kubectl") }},
		"label":            {result.Selection{Labels: []string{"api-only"}}, func(c *specs.Case) bool { return counted(c) && slices.Contains(c.Labels, "api-only") }},
		"label and others": {result.Selection{Labels: []string{"api-only"}, Additional: true}, func(c *specs.Case) bool { return c.Kind != specs.Trial && slices.Contains(c.Labels, "api-only") }},
		"two at once": {result.Selection{Labels: []string{"api-only"}, Categories: []specs.Category{specs.CoreScheduling}, Additional: true},
			func(c *specs.Case) bool {
				return c.Kind != specs.Trial && c.Category == specs.CoreScheduling && slices.Contains(c.Labels, "api-only")
			}},
	} {
		req := request(t)
		req.Selection = c.sel
		p := makePlan(t, req)
		want := count(c.keep)
		if len(p.Cases) != want || want == 0 {
			t.Errorf("%s: %d cases, want %d", what, len(p.Cases), want)
		}
		for i := range p.Cases {
			if !c.keep(&p.Cases[i].Case) {
				t.Errorf("%s: %s was selected", what, p.Cases[i].ID)
			}
		}
		// The count against the standard does not depend on the selection.
		total := 0
		for _, n := range p.Standard {
			total += n
		}
		if want := count(func(c *specs.Case) bool { return c.Kind == specs.Requirement }); total != want {
			t.Errorf("%s: the standard has %d requirements, the plan says %d", what, want, total)
		}
	}
}

func TestErrorsSayWhatIsWrongAndHowToFixIt(t *testing.T) {
	req := request(t)
	req.Selection = result.Selection{
		Categories: []specs.Category{"Core.Netwok"}, Cases: []string{"core-network-custm-dns"}, Labels: []string{"api-ony"}, Capabilities: []string{"netpoll", "zzzzzzzz"},
	}
	_, err := plan.Make(req)
	wantError(t, "unknown names", err,
		`unknown category "Core.Netwok": did you mean Core.Network? Known are Cluster.Rules, Core.Concurrent`,
		`unknown case "core-network-custm-dns": did you mean core-network-custom-dns? 'op-readiness specs list' names all `,
		`unknown label "api-ony": did you mean api-only? Known are api-only`,
		`unknown capability "netpoll": did you mean netpol? Known are `,
		`unknown capability "zzzzzzzz": known are configz, `)

	req = small(on("a", time.Minute, "1"))
	req.Selection.Labels = []string{"x"}
	_, err = plan.Make(req)
	wantError(t, "a label where there are none", err, `unknown label "x": these specs have none`)

	none, wrong, bad := on("none", time.Minute), on("wrong", time.Minute), on("bad", time.Minute)
	none.Tests = []specs.Selector{{Focus: "tset 1$", Expect: 1}}
	wrong.Tests = []specs.Selector{{Focus: "test [123]$", Expect: 2}}
	bad.Tests = []specs.Selector{{Focus: "test (", Expect: 1}}
	_, err = plan.Make(small(none, wrong, bad, on("good", time.Minute, "1")))
	wantError(t, "selectors", err,
		`case none: focus "tset 1$" matches no test of e2e.test v1.30.0`,
		`case wrong: focus "test [123]$" matches 3 tests of e2e.test v1.30.0, and 2 are expected`,
		"case bad: ", "specs lint")
	if strings.Contains(err.Error(), "good") {
		t.Errorf("the good case is blamed: %v", err)
	}
	// Files of other formats cannot say how many.
	wrong.Tests[0].Expect = 0
	if p := makePlan(t, small(wrong)); len(p.Tests) != 3 {
		t.Errorf("%d tests", len(p.Tests))
	}

	for _, shards := range []int{0, -1} {
		req := small(on("a", time.Minute, "1"))
		req.Shards = shards
		_, err = plan.Make(req)
		wantError(t, "shards", err, fmt.Sprintf("at least 1 shard, not %d", shards))
	}
	req = request(t)
	req.Selection = result.Selection{Categories: []specs.Category{specs.ExtendNetworkPolicy}, Labels: []string{"api-only"}}
	_, err = plan.Make(req)
	wantError(t, "an empty selection", err, "the selection holds no case", "specs list")
}

func wantError(t *testing.T, what string, err error, says ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%s: %v\nwant %q", what, err, s)
		}
	}
}

func TestCasesThatSkipTheProvider(t *testing.T) {
	only, shared := on("only", time.Hour, "1"), on("shared", time.Hour, "2")
	only.SkipProviders = []specs.ProviderSkip{{Provider: "aws", Reason: "no"}, {Provider: "gce", Reason: "it lacks x"}}
	shared.SkipProviders = only.SkipProviders
	req := small(only, shared, on("other", time.Minute, "2"))
	req.Provider = "gce"
	p := makePlan(t, req)
	for i, want := range []string{"not on provider gce: it lacks x", "not on provider gce: it lacks x", ""} {
		if p.Cases[i].Excluded != want || (len(p.Cases[i].TestIDs) == 0) != (want != "") {
			t.Errorf("%s: %q, tests %v", p.Cases[i].ID, p.Cases[i].Excluded, p.Cases[i].TestIDs)
		}
	}
	// What cannot run is not planned, and no shard is left free for it.
	if got := names(p); !slices.Equal(got, []string{"test 2"}) || p.Tests[0].Duration != time.Minute || !slices.Equal(p.Tests[0].Cases, []string{"other"}) {
		t.Errorf("planned %+v", p.Tests)
	}
	// That its focus is wrong is an error all the same.
	req.Cases[0].Tests[0].Focus = "nothing"
	_, err := plan.Make(req)
	wantError(t, "a wrong focus of a case that is skipped", err, "case only", "matches no test")
	req.Provider, req.Cases[0].Tests[0].Focus = "skeleton", "test 1$"
	if p := makePlan(t, req); p.Cases[0].Excluded != "" || len(p.Tests) != 2 {
		t.Errorf("on another provider: %+v", p.Cases[0])
	}
}

func TestARuntimeClassIsACondition(t *testing.T) {
	own := on("own", time.Minute, "1")
	own.Conditions.RuntimeClass = "mine"
	req := small(own, on("free", time.Minute, "1"), specs.Case{ID: "none", Category: specs.CoreNetwork, Kind: specs.Requirement, Proof: specs.ProofNone})
	req.RuntimeClass = "asked"
	p := makePlan(t, req)
	var got []string
	for i := range p.Cases {
		got = append(got, p.Cases[i].Conditions.RuntimeClass)
	}
	if !slices.Equal(got, []string{"mine", "asked", ""}) || len(p.Tests) != 2 {
		t.Errorf("runtime classes %q, %d tests", got, len(p.Tests))
	}
	if req.Cases[1].Conditions.RuntimeClass != "" {
		t.Error("the caller's cases were changed")
	}
}

func TestTheStandardIsBalanced(t *testing.T) {
	req := request(t)
	req.Selection.Additional = false
	for shards := 2; shards <= 16; shards++ {
		req.Shards = shards
		p := makePlan(t, req)
		var total, longest time.Duration
		for i := range p.Tests {
			total += p.Tests[i].Duration
			longest = max(longest, p.Tests[i].Duration)
		}
		bound := max(longest, total/time.Duration(shards))
		if got := slices.Max(plan.Loads(p)); float64(got) > 1.1*float64(bound) {
			t.Errorf("%d shards: the longest takes %v, and could take %v", shards, got, bound)
		}
	}
}
