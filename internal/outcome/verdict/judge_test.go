package verdict_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

func TestWhatConcernsTheRunAsAWhole(t *testing.T) {
	p := planOf(t, result.Selection{}, 1)
	base := ideal(t, p, 1)
	gating := caseOf(p, "core-network-custom-dns").TestIDs[0]
	changed := func(change func(run *result.Run)) *result.Run {
		run := copyOf(base)
		change(run)
		return run
	}
	fail := finished(result.TestFailed)
	for what, c := range map[string]struct {
		change  func(run *result.Run)
		verdict verdict.Verdict
		code    int
	}{
		"suite failure": {func(run *result.Run) {
			run.Suites = []result.Suite{{Batch: "01", Node: "BeforeSuite", Message: "no nodes"}}
		}, verdict.Inconclusive, verdict.ExitInconclusive},
		"folder problem": {func(run *result.Run) { run.Problems = []string{"a line is odd"} }, verdict.Inconclusive, verdict.ExitInconclusive},
		"interrupted":    {func(run *result.Run) { run.Interrupted = true }, verdict.Inconclusive, verdict.ExitInterrupted},
		"killed":         {func(run *result.Run) { run.Finished = false }, verdict.Inconclusive, verdict.ExitInconclusive},
		"interrupted, after a failure": {func(run *result.Run) {
			run.Interrupted = true
			fail(run, gating)
		}, verdict.NotReady, verdict.ExitInterrupted},
		"killed, after a failure": {func(run *result.Run) {
			run.Finished = false
			fail(run, gating)
		}, verdict.NotReady, verdict.ExitNotReady},
		"an error beside a failure": {func(run *result.Run) {
			finished(result.TestError)(run, caseOf(p, "core-network-external-dns").TestIDs[0])
			fail(run, gating)
		}, verdict.NotReady, verdict.ExitNotReady},
		"nothing ran": {func(run *result.Run) { clear(run.Attempts) }, verdict.Inconclusive, verdict.ExitInconclusive},
		"nothing ran before the kill": {func(run *result.Run) {
			run.Finished = false
			clear(run.Attempts)
		}, verdict.Inconclusive, verdict.ExitInconclusive},
		"no facts": {func(run *result.Run) { run.Manifest.Cluster = result.Facts{} }, verdict.NotReady, verdict.ExitNotReady},
	} {
		j := want(t, what, changed(c.change), c.verdict, c.code)
		if c.verdict == verdict.NotReady && !strings.HasSuffix(j.Reasons[0], " failed") {
			t.Errorf("%s: the gravest reason comes first, and it is %q", what, j.Reasons[0])
		}
	}
	// What had no turn yet is not tested; once the run has ended it is an error.
	run := changed(func(run *result.Run) { run.Finished = false; delete(run.Attempts, gating) })
	if c := outcomeOf(t, verdict.Judge(run), "core-network-custom-dns"); c.Outcome != verdict.NotTested {
		t.Errorf("a test that had no turn is %s", c.Outcome)
	}
}

func TestAFolderThatWasTamperedWithIsNotReady(t *testing.T) {
	p := planOf(t, result.Selection{}, 1)
	for what, c := range map[string]struct{ file, old, new string }{
		"an additional case made of a rule": {result.PlanFile, `"kind": "rule"`, `"kind": "additional"`},
		"another digest":                    {result.PlanFile, `"digest": "sha256:`, `"digest": "sha256:0`},
		"another plan's run":                {result.ManifestFile, `"planDigest": "sha256:`, `"planDigest": "sha256:0`},
		"a shard that does not exist":       {result.ManifestFile, `"shard": 1`, `"shard": 2`},
		"a strange event":                   {result.EventsFile, `"type":"run-started"`, `"type":"run-starts"`},
		"a cut line":                        {result.EventsFile, "\"run-finished\"}\n", "\"run-finished\"}"},
		"an attempt that is told twice":     {result.EventsFile, `"type":"test-started"`, `"type":"test-finished"`},
	} {
		path := filepath.Join(idealFolder(t, p, 1), c.file)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), c.old) {
			t.Fatalf("%s: %s does not have %s", what, c.file, c.old)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(data), c.old, c.new, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		run, err := result.Load(filepath.Dir(path))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		inconclusive(t, what, run)
	}
}

func TestRulesOfTheCluster(t *testing.T) {
	base := ideal(t, planOf(t, result.Selection{}, 1), 1)
	nodes := func(change func(n *result.Node)) func(m *result.Manifest) {
		return func(m *result.Manifest) {
			for i := range m.Cluster.Nodes {
				change(&m.Cluster.Nodes[i])
			}
		}
	}
	drop := func(name string) func(m *result.Manifest) {
		return func(m *result.Manifest) {
			m.Cluster.Nodes = slices.DeleteFunc(m.Cluster.Nodes, func(n result.Node) bool { return n.Name == name })
		}
	}
	for what, c := range map[string]struct {
		change  func(m *result.Manifest)
		rule    string
		outcome verdict.Outcome
		verdict verdict.Verdict
	}{
		"1 Windows node":      {drop("windows-1"), "cluster-node-count", verdict.Failed, verdict.NotReady},
		"1 Linux node":        {drop("linux-1"), "cluster-node-count", verdict.Failed, verdict.NotReady},
		"a cordoned node":     {nodes(func(n *result.Node) { n.Unschedulable = n.Name == "windows-1" }), "cluster-node-count", verdict.Failed, verdict.NotReady},
		"a node that is down": {nodes(func(n *result.Node) { n.Ready = n.Name != "linux-1" }), "cluster-node-count", verdict.Failed, verdict.NotReady},
		"a tainted node": {nodes(func(n *result.Node) {
			n.Taints = map[bool][]string{true: {"os=windows:NoSchedule"}}[n.Name == "windows-0"]
		}), "cluster-node-count", verdict.Failed, verdict.NotReady},
		"1 simulated node":      {nodes(func(n *result.Node) { n.Simulated = n.Name == "windows-1" }), "cluster-node-count", verdict.NotTested, verdict.Inconclusive},
		"simulated nodes":       {nodes(func(n *result.Node) { n.Simulated = true }), "cluster-windows-os-version", verdict.NotTested, verdict.Inconclusive},
		"simulated Windows":     {nodes(func(n *result.Node) { n.Simulated = n.OS == specs.Windows }), "cluster-node-count", verdict.NotTested, verdict.Inconclusive},
		"an unsupported build":  {nodes(func(n *result.Node) { n.WindowsBuild = "10.0.22631" }), "cluster-windows-os-version", verdict.Failed, verdict.NotReady},
		"one unsupported build": {func(m *result.Manifest) { m.Cluster.Nodes[3].WindowsBuild = "10.0.22631" }, "cluster-windows-os-version", verdict.Failed, verdict.NotReady},
		"an unknown build":      {func(m *result.Manifest) { m.Cluster.Nodes[3].WindowsBuild = "" }, "cluster-windows-os-version", verdict.NotTested, verdict.Inconclusive},
	} {
		run := copyOf(base)
		c.change(run.Manifest)
		j := verdict.Judge(run)
		if got := outcomeOf(t, j, c.rule); got.Outcome != c.outcome || got.Reason == "" {
			t.Errorf("%s: %s is %s (%s), want %s", what, c.rule, got.Outcome, got.Reason, c.outcome)
		}
		want(t, what, run, c.verdict, c.verdict.ExitCode())
	}
	for _, build := range []string{"10.0.17763", "10.0.20348", "10.0.26100"} {
		run := copyOf(base)
		nodes(func(n *result.Node) {
			if n.OS == specs.Windows {
				n.WindowsBuild = build
			}
		})(run.Manifest)
		j := ready(t, build, run)
		// The standard does not name 2025, and nobody is to think that it does.
		const ours = "the standard names 2019 and 2022; 2025 is accepted because Kubernetes publishes its test images for it"
		rule := outcomeOf(t, j, "cluster-windows-os-version")
		if beyond := build == "10.0.26100"; (rule.Reason == ours) != beyond || strings.Contains(strings.Join(j.Beside, " "), ours) != beyond {
			t.Errorf("%s: reason %q, beside %q", build, rule.Reason, j.Beside)
		}
	}
	// The nodes of pods count, also where they joined when the facts had been read.
	for build, of := range map[string]struct {
		outcome verdict.Outcome
		reason  string
	}{
		"10.0.20348": {verdict.Passed, ""}, "10.0.26100": {verdict.Passed, "pods were on nodes that joined later: the standard names 2019 and 2022"},
		"10.0.22631": {verdict.Failed, "late runs 10.0.22631"}, "": {verdict.NotTested, "pods were on nodes that joined later: nodes without the label"},
	} {
		run := copyOf(base)
		for i := range run.Pods {
			if p := &run.Pods[i]; p.OS == specs.Windows && p.Test == run.Pods[0].Test {
				p.Node, p.WindowsBuild = "late", build
			}
		}
		if got := outcomeOf(t, verdict.Judge(run), "cluster-windows-os-version"); got.Outcome != of.outcome || (got.Reason == "") != (of.reason == "") || !strings.Contains(got.Reason, of.reason) {
			t.Errorf("a node of build %q joined: %s, %s", build, got.Outcome, got.Reason)
		}
	}
	// More nodes than needed do no harm, also where they cannot be used.
	run := copyOf(base)
	run.Manifest.Cluster.Nodes = append(run.Manifest.Cluster.Nodes,
		result.Node{Name: "cp", OS: specs.Linux, Ready: true, ControlPlane: true, Taints: []string{"x:NoSchedule"}, PodCIDRs: []string{"a", "b"}},
		result.Node{Name: "kwok", OS: specs.Windows, Simulated: true, Ready: true, PodCIDRs: []string{"a", "b"}})
	ready(t, "two more nodes", run)
}

func TestLinuxConformance(t *testing.T) {
	p := planOf(t, result.Selection{}, 1)
	base := ideal(t, p, 1)
	const id = "cluster-linux-conformance"
	for outcome, c := range map[verdict.Outcome]struct {
		outcome verdict.Outcome
		verdict verdict.Verdict
	}{
		verdict.Passed:        {verdict.Passed, verdict.Ready},
		verdict.Failed:        {verdict.Failed, verdict.NotReady},
		verdict.Error:         {verdict.Error, verdict.Inconclusive},
		verdict.NotApplicable: {verdict.Error, verdict.Inconclusive}, // nothing excuses it
		verdict.NotTested:     {verdict.Error, verdict.Inconclusive},
		"splendid":            {verdict.Error, verdict.Inconclusive},
	} {
		run := copyOf(base)
		run.Decisions[id] = result.Decision{ID: id, Outcome: string(outcome)}
		j := want(t, string(outcome), run, c.verdict, c.verdict.ExitCode())
		if got := outcomeOf(t, j, id); got.Outcome != c.outcome {
			t.Errorf("%s became %s", outcome, got.Outcome)
		}
	}
	run := copyOf(base)
	delete(run.Decisions, id)
	j := ready(t, "conformance that was not tested", run)
	if len(j.Beside) != 1 || !strings.Contains(j.Beside[0], "--conformance-junit") || outcomeOf(t, j, id).Outcome != verdict.NotTested {
		t.Errorf("beside the verdict is said: %q", j.Beside)
	}
	// Nothing but that rule can be decided from outside.
	run = copyOf(base)
	delete(run.Attempts, caseOf(p, "core-network-custom-dns").TestIDs[0])
	run.Decisions["core-network-custom-dns"] = result.Decision{ID: "core-network-custom-dns", Outcome: "passed"}
	inconclusive(t, "a requirement that the folder calls passed", run)
}

func TestNotApplicableNeedsAFactOrADeclaration(t *testing.T) {
	p := planOf(t, result.Selection{}, 1)
	base := ideal(t, p, 1)
	facts := func(change func(f *result.Facts)) *result.Manifest {
		m := copyOf(base).Manifest
		change(&m.Cluster)
		return m
	}
	nodes := func(change func(n *result.Node)) *result.Manifest {
		return facts(func(f *result.Facts) {
			for i := range f.Nodes {
				change(&f.Nodes[i])
			}
		})
	}
	declared := func(d result.Declarations) *result.Manifest {
		m := copyOf(base).Manifest
		m.Declared = d
		return m
	}
	tainted := func(steering string, taints ...string) *result.Manifest {
		m := nodes(func(n *result.Node) {
			if n.OS == specs.Windows {
				n.Taints = taints
			}
		})
		m.Steering = steering
		return m
	}
	const pinned = "core-network-custom-dns"
	const dualStack, gmsa, hpc, internet = "ext-proxy-dual-stack-pods", "ext-ad-gmsa-identity", "ext-hpc-apiserver-access", "core-network-external-dns"
	for what, c := range map[string]struct {
		m       *result.Manifest
		id      string
		outcome verdict.Outcome // "" is tested
	}{
		"one CIDR a node":             {nodes(func(n *result.Node) { n.PodCIDRs = []string{"10.0.0.0/24"} }), dualStack, verdict.NotApplicable},
		"one CIDR on some":            {nodes(func(n *result.Node) { n.PodCIDRs = n.PodCIDRs[:1+len(n.Name)%2] }), dualStack, ""},
		"no CIDRs known":              {nodes(func(n *result.Node) { n.PodCIDRs = nil }), dualStack, ""},
		"empty CIDRs":                 {nodes(func(n *result.Node) { n.PodCIDRs = []string{""} }), dualStack, ""},
		"two CIDRs":                   {base.Manifest, dualStack, ""},
		"no group of gMSA":            {facts(func(f *result.Facts) { f.APIGroups = []string{"apps"} }), gmsa, verdict.NotApplicable},
		"no groups known":             {facts(func(f *result.Facts) { f.APIGroups = nil }), gmsa, ""},
		"Docker on Windows":           {nodes(func(n *result.Node) { n.ContainerRuntime = "docker://24" }), hpc, verdict.NotApplicable},
		"Docker on one":               {facts(func(f *result.Facts) { f.Nodes[2].ContainerRuntime = "docker://24" }), hpc, ""},
		"an unknown runtime":          {nodes(func(n *result.Node) { n.ContainerRuntime = "" }), hpc, ""},
		"air-gapped":                  {declared(result.Declarations{AirGapped: true}), internet, verdict.NotApplicable},
		"without internet":            {declared(result.Declarations{Without: []string{"internet"}}), internet, verdict.NotApplicable},
		"without gmsa":                {declared(result.Declarations{Without: []string{"gmsa"}}), gmsa, verdict.NotApplicable},
		"without something else":      {declared(result.Declarations{Without: []string{"hyperv"}}), gmsa, ""},
		"without a means":             {declared(result.Declarations{Without: []string{"exec"}}), "core-network-pod-ip-win-to-linux", verdict.NotTested},
		"air-gapped, of a means":      {declared(result.Declarations{AirGapped: true}), gmsa, verdict.NotTested},
		"without a feature as means":  {declared(result.Declarations{Without: []string{"nodeport"}}), "core-network-nodeport-win-to-linux", verdict.NotTested},
		"no kubectl":                  {func() *result.Manifest { m := copyOf(base).Manifest; m.Kubectl = ""; return m }(), "core-network-internal-dns", verdict.NotTested},
		"no steering":                 {func() *result.Manifest { m := copyOf(base).Manifest; m.Steering = ""; return m }(), "core-network-internal-dns", verdict.NotTested},
		"simulated Windows":           {nodes(func(n *result.Node) { n.Simulated = n.OS == specs.Windows }), "core-network-custom-dns", verdict.NotTested},
		"simulated Linux":             {nodes(func(n *result.Node) { n.Simulated = n.OS == specs.Linux }), "core-network-pod-ip-win-to-linux", verdict.NotTested},
		"simulated Linux, not needed": {nodes(func(n *result.Node) { n.Simulated = n.OS == specs.Linux }), "core-network-custom-dns", ""},
		"no Windows nodes":            {facts(func(f *result.Facts) { f.Nodes = f.Nodes[:2] }), "core-network-custom-dns", verdict.NotTested},
		"tainted Windows": {nodes(func(n *result.Node) {
			if n.OS == specs.Windows {
				n.Taints = []string{"os=windows:NoSchedule"}
			}
		}), "core-scheduling-insufficient-pending", verdict.NotTested},
		"tainted Windows, no steering":    {tainted("", "os=windows:NoSchedule"), pinned, verdict.NotTested},
		"tainted Windows, cordons":        {tainted(result.SteeringCordon, "os=windows:NoSchedule"), pinned, verdict.NotTested},
		"tainted Windows, the policy":     {tainted("MutatingAdmissionPolicy v1", "os=windows:NoSchedule"), pinned, ""},
		"unreachable Windows, the policy": {tainted("MutatingAdmissionPolicy v1", "node.kubernetes.io/unreachable:NoExecute"), pinned, verdict.NotTested},
		"untainted Windows, no steering":  {tainted(""), pinned, ""},
		"one tainted Windows node, no steering": {func() *result.Manifest {
			m := tainted("")
			m.Cluster.Nodes[2].Taints = []string{"os=windows:NoSchedule"}
			return m
		}(), pinned, ""},
		"cordoned Windows, the policy":               {nodes(func(n *result.Node) { n.Unschedulable = n.OS == specs.Windows }), pinned, verdict.NotTested},
		"tainted Windows, pods that name their node": {tainted("", "os=windows:NoSchedule"), "ext-hpc-shares-node-ip", ""},
		"no Linux worker":                            {nodes(func(n *result.Node) { n.ControlPlane = true }), "core-network-service-ip-win-to-linux", verdict.NotTested},
	} {
		got, reason := verdict.Decide(caseOf(p, c.id), c.m)
		if got != c.outcome || (got != "") != (reason != "") {
			t.Errorf("%s: %s is %q (%s), want %q", what, c.id, got, reason, c.outcome)
		}
		run := copyOf(base)
		run.Manifest = c.m
		if j := verdict.Judge(run); got == verdict.NotTested && j.Verdict == verdict.Ready {
			t.Errorf("%s: ready", what)
		}
	}
	// What does not apply blocks nothing, and is not counted.
	run := copyOf(base)
	run.Manifest = declared(result.Declarations{AirGapped: true, Without: []string{"gmsa", "netpol", "hpc"}})
	j := ready(t, "a cluster with Core features only", run)
	if all := verdict.Judge(base).Counts; j.Counts.Total != all.Total || j.Counts.Proven >= all.Proven {
		t.Errorf("counts %v, and of all features %v", j.Counts, all)
	}
	if c := outcomeOf(t, j, "cluster-feature-conformance"); c.Outcome != verdict.Passed {
		t.Errorf("the rule of features is %s (%s)", c.Outcome, c.Reason) // RunAsUserName is asked of all
	}
	// Whatever is declared, Core must have been tested.
	var all []string
	for _, c := range specs.Capabilities() {
		all = append(all, c.Name)
	}
	run.Manifest = declared(result.Declarations{AirGapped: true, Without: all})
	inconclusive(t, "a cluster without anything", run)
}

func TestSkippedProvidersAreNotTested(t *testing.T) {
	p := planOf(t, result.Selection{}, 1)
	run := ideal(t, p, 1)
	c := *caseOf(p, "core-network-custom-dns")
	c.Excluded = "not on provider x: it lacks y"
	if got, reason := verdict.Decide(&c, run.Manifest); got != verdict.NotTested || reason != c.Excluded {
		t.Errorf("%s (%s)", got, reason)
	}
}

// TestExitCodeOfEveryOutcome puts one requirement with each outcome beside one
// that passed, and alone.
func TestExitCodeOfEveryOutcome(t *testing.T) {
	codes := map[verdict.Outcome][2]int{
		verdict.Passed:         {verdict.ExitReady, verdict.ExitReady},
		verdict.Flaky:          {verdict.ExitReady, verdict.ExitReady},
		verdict.Failed:         {verdict.ExitNotReady, verdict.ExitNotReady},
		verdict.Unproven:       {verdict.ExitInconclusive, verdict.ExitInconclusive},
		verdict.Error:          {verdict.ExitInconclusive, verdict.ExitInconclusive},
		verdict.NotTested:      {verdict.ExitInconclusive, verdict.ExitInconclusive},
		verdict.NotApplicable:  {verdict.ExitReady, verdict.ExitInconclusive},
		verdict.NotImplemented: {verdict.ExitReady, verdict.ExitInconclusive},
	}
	if len(codes) != len(verdict.Outcomes()) {
		t.Fatalf("%d outcomes have an exit code, of %d", len(codes), len(verdict.Outcomes()))
	}
	for _, outcome := range verdict.Outcomes() {
		for alone, code := range codes[outcome] {
			run := &result.Run{
				Plan: &result.Plan{
					Shards:    1,
					Selection: result.Selection{Categories: []specs.Category{specs.CoreNetwork}},
					Standard:  map[specs.Category]int{specs.CoreNetwork: 2},
				},
				Manifest: &result.Manifest{
					Shard: 1, Declared: result.Declarations{Without: []string{"netpol"}},
					Cluster: result.Facts{Nodes: []result.Node{{Name: "w", OS: specs.Windows, Ready: true}}},
				},
				Attempts: map[string][]result.TestRun{},
				Batches:  []result.Batch{{ID: "01", Exit: "exit code 0", Reconciled: true}},
				Finished: true,
			}
			c := result.PlannedCase{Case: specs.Case{ID: "c", Category: specs.CoreNetwork, Kind: specs.Requirement, Proof: specs.ProofFull}, TestIDs: []string{"c"}, Shard: 1}
			attempt := func(states ...result.TestState) { finished(states...)(run, "c") }
			switch outcome {
			case verdict.Passed:
				attempt(result.TestPassed)
			case verdict.Flaky:
				attempt(result.TestFailed, result.TestPassed)
			case verdict.Failed:
				attempt(result.TestFailed)
			case verdict.Unproven:
				attempt(result.TestPassed)
				c.Conditions.Placement = []specs.Placement{{Pods: "^x$", OS: specs.Windows}}
			case verdict.Error:
				attempt(result.TestError)
			case verdict.NotTested:
				attempt(result.TestSkipped)
			case verdict.NotApplicable:
				c.Needs.Condition = []string{"netpol"}
			case verdict.NotImplemented:
				c.Proof, c.TestIDs = specs.ProofNone, nil
			}
			run.Plan.Cases = []result.PlannedCase{c}
			run.Plan.Tests = []result.PlannedTest{{ID: "c", Cases: []string{"c"}, Shard: 1}}
			if alone == 0 {
				run.Plan.Cases = append(run.Plan.Cases, result.PlannedCase{
					Case: specs.Case{ID: "good", Category: specs.CoreNetwork, Kind: specs.Requirement, Proof: specs.ProofFull}, TestIDs: []string{"good"}, Shard: 1,
				})
				run.Plan.Tests = append(run.Plan.Tests, result.PlannedTest{ID: "good", Cases: []string{"good"}, Shard: 1})
				finished(result.TestPassed)(run, "good")
			}
			j := verdict.Judge(run)
			if got := outcomeOf(t, j, "c"); got.Outcome != outcome {
				t.Errorf("%s: the case is %s (%s)", outcome, got.Outcome, got.Reason)
			}
			if j.ExitCode() != code {
				t.Errorf("%s, alone %t: exit code %d, want %d; %q", outcome, alone == 1, j.ExitCode(), code, j.Reasons)
			}
		}
	}
}

func TestScopes(t *testing.T) {
	for _, c := range []struct {
		sel    result.Selection
		scope  string
		ready  bool
		counts string
	}{
		{result.Selection{Categories: []specs.Category{specs.CoreStorage}}, "Core.Storage", true, "5 proven, 1 in part, of 7"},
		{result.Selection{Categories: []specs.Category{specs.CoreStorage, specs.ExtendNetworkPolicy}}, "Core.Storage, Extend.NetworkPolicy", true, "7 proven, 1 in part, of 9"},
		{result.Selection{Categories: []specs.Category{specs.ExtendWorker}}, "Extend.Worker", false, ""},
		{result.Selection{Categories: []specs.Category{specs.ClusterRules}}, "Cluster.Rules", false, "0 proven, 0 in part, of 0"},
		{result.Selection{Cases: []string{"core-network-custom-dns"}}, "core-network-custom-dns", true, "0 proven, 1 in part, of 1"},
		{result.Selection{Cases: []string{"core-network-custom-dns", "core-storage-reboot-all-windows-nodes"}}, "core-network-custom-dns, core-storage-reboot-all-windows-nodes", true, "0 proven, 1 in part, of 2"},
		{result.Selection{Cases: []string{"core-network-distinct-pod-ips"}}, "core-network-distinct-pod-ips", false, "0 proven, 0 in part, of 1"},
		{result.Selection{Cases: []string{"extra-scheduling-gates"}}, "extra-scheduling-gates", false, "0 proven, 0 in part, of 0"},
		{result.Selection{Cases: []string{"cluster-node-count"}}, "cluster-node-count", false, "0 proven, 0 in part, of 0"},
		{result.Selection{Capabilities: []string{"netpol"}}, "ext-netpol-block-pod, ext-netpol-block-namespace", true, "2 proven, 0 in part, of 2"},
	} {
		run := ideal(t, planOf(t, c.sel, 1), 1)
		var j *verdict.Judgement
		if c.ready {
			j = ready(t, c.scope, run)
		} else {
			j = inconclusive(t, c.scope, run)
		}
		if j.Scope.String() != c.scope {
			t.Errorf("the scope is %q, want %q", j.Scope, c.scope)
		}
		if c.counts != "" && j.Counts.String() != c.counts {
			t.Errorf("%s: %s, want %s", c.scope, j.Counts, c.counts)
		}
		total := 0
		for _, category := range j.Categories {
			total += category.Counts.Total
		}
		if total != j.Counts.Total {
			t.Errorf("%s: the categories have %d requirements, the scope %d", c.scope, total, j.Counts.Total)
		}
	}
}

func TestAnEmptyShard(t *testing.T) {
	p := planOf(t, result.Selection{Categories: []specs.Category{specs.ExtendNetworkPolicy}}, 4)
	const says = "shard 4 of 4 is empty"
	run := ideal(t, p, 4)
	j := want(t, "an empty shard", run, verdict.NotAsked, verdict.ExitReady)
	if len(j.Reasons) != 1 || !strings.HasPrefix(j.Reasons[0], says) {
		t.Errorf("the reasons are %q", j.Reasons)
	}
	// It vouches for nothing, and hides nothing.
	killed := copyOf(run)
	killed.Finished = false
	inconclusive(t, "an empty shard that was killed", killed)
	odd := copyOf(run)
	odd.Problems = []string{"a line is odd"}
	inconclusive(t, "an empty shard with a problem", odd)
	whole := merged(t, idealFolder(t, p, 1), idealFolder(t, p, 2), idealFolder(t, p, 3), idealFolder(t, p, 4))
	if j := ready(t, "all shards", whole); len(j.Beside) > 0 {
		t.Errorf("beside the whole is said: %q", j.Beside)
	}
	// Where the plan has nothing to run, nobody has.
	none := planOf(t, result.Selection{Cases: []string{"core-network-distinct-pod-ips"}}, 2)
	for shard := 1; shard <= 2; shard++ {
		inconclusive(t, "a plan without tests", ideal(t, none, shard))
	}
}

func TestAVersionThatIsNewerThanAllThatAreKnownIsSaid(t *testing.T) {
	p := planOf(t, result.Selection{}, 1)
	base := ideal(t, p, 1)
	for version, want := range map[string]bool{"v1.36.9": false, "v1.37.0-alpha.1": true, "v1.40.2": true} {
		run := copyOf(base)
		plan := *run.Plan
		plan.KubernetesVersion = version
		run.Plan = &plan
		j := ready(t, version, run)
		if got := slices.ContainsFunc(j.Beside, func(s string) bool {
			return strings.HasPrefix(s, "no case was checked against Kubernetes "+version[1:5]+": the newest is ")
		}); got != want {
			t.Errorf("%s: beside the verdict is said %q", version, j.Beside)
		}
	}
}

func TestAStandardWithoutACoreCategorySaysNothingOfTheCluster(t *testing.T) {
	p := planOf(t, result.Selection{}, 1)
	p.Cases = slices.DeleteFunc(p.Cases, func(c result.PlannedCase) bool { return c.Category == specs.CoreConcurrent })
	delete(p.Standard, specs.CoreConcurrent)
	if j := verdict.Judge(ideal(t, p, 1)); j.Scope.Kind != verdict.ScopeStandard || j.Scope.Standard == nil {
		t.Errorf("the scope is %s", j.Scope)
	}
}

func TestCoreCategoriesInWhichNothingWasTested(t *testing.T) {
	// All of Core.Network has no test: that is no reason to be ready.
	p := planOf(t, result.Selection{}, 1)
	for i := range p.Cases {
		if c := &p.Cases[i]; c.Category == specs.CoreNetwork {
			c.Proof, c.TestIDs = specs.ProofNone, nil
		}
	}
	j := inconclusive(t, "Core.Network without tests", ideal(t, p, 1))
	if c := outcomeOf(t, j, "cluster-core-conformance"); c.Outcome != verdict.NotTested {
		t.Errorf("the rule of Core is %s", c.Outcome)
	}
}

func TestEachShardJudgesItsOwnCases(t *testing.T) {
	for _, shards := range []int{2, 3, 5, 8, 16} {
		p := planOf(t, result.Selection{}, shards)
		counts := verdict.Counts{}
		for shard := 1; shard <= shards; shard++ {
			what := fmt.Sprintf("shard %d of %d", shard, shards)
			run := ideal(t, p, shard)
			j := verdict.Judge(run)
			if j.Scope.String() != what {
				t.Errorf("%s: the scope is %q", what, j.Scope)
			}
			tested := false
			for i := range p.Cases {
				if c := &p.Cases[i]; c.Shard == shard && c.Gates() && len(c.TestIDs) > 0 {
					tested = true
				}
			}
			if tested {
				ready(t, what, run)
			} else {
				inconclusive(t, what, run)
			}
			counts.Proven += j.Counts.Proven
			counts.Parts += j.Counts.Parts
			counts.Total += j.Counts.Total
			// What other shards do is their affair; what this one does is not.
			for i := range p.Tests {
				test := &p.Tests[i]
				changed := copyOf(run)
				finished(result.TestFailed)(changed, test.ID)
				if got := verdict.Judge(changed); test.Shard == shard && gates(p, test) && got.Verdict != verdict.NotReady {
					t.Errorf("%s: %s although %s failed", what, got.Verdict, test.Name)
				} else if test.Shard != shard && got.Verdict != j.Verdict {
					t.Errorf("%s: %s since %s of another shard failed", what, got.Verdict, test.Name)
				}
			}
		}
		if whole := verdict.Judge(ideal(t, planOf(t, result.Selection{}, 1), 1)).Counts; counts != whole {
			t.Errorf("%d shards count %v, the whole %v", shards, counts, whole)
		}
	}
}

func TestUnprovenWorkerCasesDoNotTouchTheRules(t *testing.T) {
	p := planOf(t, result.Selection{}, 1)
	run := ideal(t, p, 1)
	for _, id := range caseOf(p, "ext-worker-node-to-nodeport").TestIDs {
		run.Pods = slices.DeleteFunc(run.Pods, func(pod result.Pod) bool { return pod.Test == id })
	}
	j := ready(t, "Extend.Worker unobserved", run)
	if c := outcomeOf(t, j, "ext-worker-node-to-nodeport"); c.Outcome != verdict.Unproven {
		t.Errorf("the case is %s", c.Outcome)
	}
}

// Nodes are rebooted by leave alone.
func TestRebootsAreDeclared(t *testing.T) {
	run := ideal(t, planOf(t, result.Selection{Additional: true}, 1), 1)
	for leave, want := range map[bool]verdict.Outcome{true: verdict.Passed, false: verdict.NotTested} {
		run.Manifest.Declared.Reboot = leave
		cases := verdict.Judge(run).Cases
		i := slices.IndexFunc(cases, func(c verdict.CaseResult) bool { return c.Case.ID == "extra-hpc-graceful-shutdown" })
		if c := cases[i]; c.Outcome != want || !leave && !strings.Contains(c.Reason, "--allow-reboot") {
			t.Errorf("with leave %t it is %s: %s", leave, c.Outcome, c.Reason)
		}
	}
}
