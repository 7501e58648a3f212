package verdict_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// combined merges folders of several runs, in an order that must not matter.
func combined(t *testing.T, dirs ...string) (*result.Run, error) {
	t.Helper()
	return mergeThem(t, true, dirs...)
}

// runOf makes the folder of a run of its own, of whatever is selected.
func runOf(t *testing.T, name string, minutes int, selection result.Selection) string {
	t.Helper()
	dir := idealFolder(t, planOf(t, selection, 1), 1)
	editManifest(t, dir, func(m *result.Manifest) {
		m.RunID, m.Started = name, began.Add(time.Duration(minutes)*time.Minute)
		m.Source = result.Source{Repository: "o/r", Commit: "c1"}
	})
	return dir
}

func only(categories ...specs.Category) result.Selection {
	return result.Selection{Categories: categories}
}

// fails makes the tests of a case fail in a folder.
func fails(t *testing.T, dir, id string) {
	t.Helper()
	run, err := result.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	c := caseOf(run.Plan, id)
	path := filepath.Join(dir, result.EventsFile)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")
	broken := map[string]bool{} // batches
	for i, line := range lines {
		for _, test := range c.TestIDs {
			if strings.Contains(line, `"`+test+`"`) {
				lines[i] = strings.ReplaceAll(line, `"state":"passed"`, `"state":"failed","message":"it broke"`)
				broken[run.Attempts[test][0].Batch] = true
			}
		}
		for batch := range broken {
			if strings.Contains(line, `"batch-finished","batch":{"id":"`+batch+`"`) {
				lines[i] = strings.ReplaceAll(line, "exit code 0", "exit code 1")
			}
		}
	}
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestACategoryEachJudgesAsOneRun(t *testing.T) {
	whole := verdict.Judge(ideal(t, planOf(t, result.Selection{}, 1), 1))
	var dirs []string
	for i, category := range specs.Categories() {
		dirs = append(dirs, runOf(t, string(category), i, only(category)))
	}
	run, err := combined(t, dirs...)
	if err != nil {
		t.Fatal(err)
	}
	got := ready(t, "all categories", run)
	if got.Scope.Kind != verdict.ScopeCluster || got.Counts != whole.Counts || len(got.Cases) != len(whole.Cases) {
		t.Errorf("%v, %v, %d cases; one run: %v, %v, %d cases", got.Scope, got.Counts, len(got.Cases), whole.Scope, whole.Counts, len(whole.Cases))
	}
	for i := range whole.Cases {
		c := outcomeOf(t, got, whole.Cases[i].Case.ID)
		if c.Outcome != whole.Cases[i].Outcome || c.Evidence != whole.Cases[i].Evidence || len(c.Tests) != len(whole.Cases[i].Tests) {
			t.Errorf("%s is %s (%s), and in one run %s (%s)", c.Case.ID, c.Outcome, c.Evidence, whole.Cases[i].Outcome, whole.Cases[i].Evidence)
		}
	}
	if run, err = combined(t, dirs[1:]...); err != nil {
		t.Fatal(err)
	}
	if got = ready(t, "without the rules", run); got.Scope.Kind != verdict.ScopeCategories || !strings.Contains(strings.Join(got.Beside, "\n"), "No run covers Cluster.Rules: the verdict says nothing") {
		t.Errorf("%v: %q", got.Scope, got.Beside)
	}
	if run, err = combined(t, dirs[1], dirs[3]); err != nil {
		t.Fatal(err)
	}
	got = ready(t, "two categories", run)
	if got.Scope.String() != "Core.Network, Core.Scheduling" || !strings.Contains(strings.Join(got.Beside, "\n"), "Core.Storage (") {
		t.Errorf("%v: %q", got.Scope, got.Beside)
	}
}

func TestANewerCategoryReplacesThatOfAnOlderRun(t *testing.T) {
	older := runOf(t, "whole", 0, result.Selection{})
	newer := runOf(t, "network", 1, only(specs.CoreNetwork))
	run, err := result.Load(newer)
	if err != nil {
		t.Fatal(err)
	}
	var id string
	for i := range run.Plan.Cases {
		if c := &run.Plan.Cases[i]; len(c.TestIDs) > 0 && c.Gates() {
			id = c.ID
		}
	}
	fails(t, older, id)
	if run, err = combined(t, older, newer); err != nil {
		t.Fatal(err)
	}
	got := ready(t, "healed", run)
	c := outcomeOf(t, got, id)
	if c.Outcome != verdict.Flaky || !strings.Contains(c.Reason, "it broke") || got.Scope.Kind != verdict.ScopeCluster {
		t.Errorf("%s is %s (%s) in %v", id, c.Outcome, c.Reason, got.Scope)
	}
	if notes := strings.Join(got.Beside, "\n"); !strings.Contains(notes, "Core.Network: run network replaces the older run whole for ") || !strings.Contains(notes, "had failed there: ") || !strings.Contains(notes, id) {
		t.Errorf("it is not said what was replaced: %q", notes)
	}
	// The other way round in time, the failure is the newest.
	editManifest(t, newer, func(m *result.Manifest) { m.Started = began.Add(-time.Minute) })
	if run, err = combined(t, older, newer); err != nil {
		t.Fatal(err)
	}
	if c := outcomeOf(t, want(t, "broken since", run, verdict.NotReady, verdict.ExitNotReady), id); c.Outcome != verdict.Failed {
		t.Errorf("%s is %s", id, c.Outcome)
	}
}

func TestAFewCasesDoNotMakeACategory(t *testing.T) {
	p := planOf(t, only(specs.CoreStorage), 1)
	network, few := runOf(t, "network", 0, only(specs.CoreNetwork)), runOf(t, "few", 1, result.Selection{Cases: []string{p.Cases[0].ID}})
	run, err := combined(t, network, few)
	if err != nil {
		t.Fatal(err)
	}
	got := verdict.Judge(run)
	if got.Scope.Kind != verdict.ScopeCases || !strings.Contains(strings.Join(got.Beside, "\n"), "Only some requirements are covered of Core.Storage (1 of ") {
		t.Errorf("%v: %q", got.Scope, got.Beside)
	}
	// Cases of a category that another run has as a whole are within it.
	if run, err = combined(t, runOf(t, "storage", 2, only(specs.CoreStorage)), few); err != nil {
		t.Fatal(err)
	}
	if got = ready(t, "within a category", run); got.Scope.String() != "Core.Storage" {
		t.Errorf("%v", got.Scope)
	}
}

// A plan that names tests of another run must not get that run's results.
func TestARunCannotBorrowResults(t *testing.T) {
	network, thief := runOf(t, "network", 0, only(specs.CoreNetwork)), runOf(t, "thief", 1, only(specs.CoreStorage))
	rich, err := result.Load(network)
	if err != nil {
		t.Fatal(err)
	}
	poor, err := result.Load(thief)
	if err != nil {
		t.Fatal(err)
	}
	p := poor.Plan
	var stolen []string
	for i := range p.Cases {
		if len(p.Cases[i].TestIDs) > 0 {
			id := rich.Plan.Tests[i%len(rich.Plan.Tests)].ID
			if i%2 > 0 {
				id += "-run-1"
			}
			p.Cases[i].TestIDs = []string{id}
			stolen = append(stolen, p.Cases[i].ID)
		}
	}
	p.Tests = nil
	if p.Digest, err = p.ComputeDigest(); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(thief, result.PlanFile), data, 0o600); err != nil {
		t.Fatal(err)
	}
	editManifest(t, thief, func(m *result.Manifest) { m.PlanDigest = p.Digest })
	run, err := combined(t, network, thief)
	if err != nil {
		t.Fatal(err)
	}
	got := inconclusive(t, "with a thief", run)
	for _, id := range stolen {
		if c := outcomeOf(t, got, id); c.Outcome.Good() {
			t.Errorf("%s is %s, with the results of another run", id, c.Outcome)
		}
	}
}

func TestRunsThatAreApart(t *testing.T) {
	storage := runOf(t, "storage", 1, only(specs.CoreStorage))
	for name, change := range map[string]func(m *result.Manifest){
		"another commit":     func(m *result.Manifest) { m.Source.Commit = "c2" },
		"another repository": func(m *result.Manifest) { m.Source.Repository = "o/fork" },
	} {
		network := runOf(t, "network", 0, only(specs.CoreNetwork))
		editManifest(t, network, change)
		// A third one that says nothing must not come between.
		silent := runOf(t, "silent", 2, only(specs.CoreScheduling))
		editManifest(t, silent, func(m *result.Manifest) { m.Source = result.Source{} })
		if _, err := combined(t, network, storage, silent); !errors.Is(err, result.ErrApart) {
			t.Errorf("%s: %v", name, err)
		}
	}
	twice := runOf(t, "storage", 2, only(specs.CoreStorage))
	if _, err := combined(t, storage, twice, runOf(t, "network", 0, only(specs.CoreNetwork))); !errors.Is(err, result.ErrTwice) {
		t.Error(err)
	}
}

func TestAnInterruptedRunAmongSeveralIsInconclusive(t *testing.T) {
	network, killed := runOf(t, "network", 0, only(specs.CoreNetwork)), runOf(t, "killed", 1, only(specs.CoreStorage))
	path := filepath.Join(killed, result.EventsFile)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(string(data), "\n"), "\n")
	if err := os.WriteFile(path, []byte(strings.Join(lines[:len(lines)-1], "")), 0o600); err != nil {
		t.Fatal(err)
	}
	run, err := combined(t, network, killed)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(inconclusive(t, "killed", run).Reasons, "\n"); !strings.Contains(got, "run killed, shard 2 (attempt 1), was killed, or is still going on") {
		t.Error(got)
	}
}

// Whatever a run says of itself: it takes no case from another run but those
// that it plans, and gives it none.
func FuzzMergeRuns(f *testing.F) {
	good := idealFolder(f, planOf(f, only(specs.CoreNetwork), 1), 1)
	network, err := result.Load(good)
	if err != nil {
		f.Fatal(err)
	}
	alone := verdict.Judge(network)
	other := idealFolder(f, planOf(f, only(specs.CoreScheduling), 1), 1)
	var files [3][]byte
	names := [3]string{result.PlanFile, result.ManifestFile, result.EventsFile}
	for i, name := range names {
		if files[i], err = os.ReadFile(filepath.Join(other, name)); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(files[0], files[1], files[2])
	f.Add([]byte(`{"shards":2,"cases":[{"id":"x","testIDs":["a"],"shard":7},{"id":"x"}],"tests":[{"id":"a"},{"id":"a","shard":-1}]}`), []byte(`{"shard":1,"attempt":1}`), []byte("{}\n"))
	f.Fuzz(func(t *testing.T, plan, manifest, events []byte) {
		var p result.Plan
		var m result.Manifest
		if json.Unmarshal(plan, &p) != nil || json.Unmarshal(manifest, &m) != nil {
			return
		}
		// What only says that the folder fits together is made to fit.
		p.Schema, m.Schema, p.Standard, p.StandardDigest = result.PlanSchema, result.ManifestSchema, network.Plan.Standard, network.Plan.StandardDigest
		digest, err := p.ComputeDigest()
		if err != nil {
			t.Fatal(err)
		}
		p.Digest, m.PlanDigest, m.RunID = digest, digest, "other"
		dir := t.TempDir()
		for i, v := range []any{p, m} {
			data, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, names[i]), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, names[2]), events, 0o600); err != nil {
			t.Fatal(err)
		}
		run, err := result.Load(dir)
		if err != nil {
			return
		}
		whole, err := result.Merge([]*result.Run{network, run}, true)
		if err != nil {
			return
		}
		now := map[string]verdict.CaseResult{}
		judgement := verdict.Judge(whole)
		for _, c := range judgement.Cases {
			now[c.Case.ID] = c
		}
		for _, c := range alone.Cases {
			if slices.ContainsFunc(p.Cases, func(planned result.PlannedCase) bool { return planned.ID == c.Case.ID }) {
				continue
			}
			if got := now[c.Case.ID]; got.Outcome != c.Outcome || got.Evidence != c.Evidence {
				t.Errorf("%s was %s (%s), and is %s (%s)", c.Case.ID, c.Outcome, c.Evidence, got.Outcome, got.Evidence)
			}
		}
	})
}
