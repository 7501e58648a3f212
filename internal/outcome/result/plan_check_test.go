package result

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Counts that a plan's own cases belie are refused, also with a right digest.
func TestPlansWhoseCasesDisagreeWithTheirCountsAreNotRead(t *testing.T) {
	requirement := func(id string, c specs.Category) PlannedCase {
		return PlannedCase{Case: specs.Case{ID: id, Kind: specs.Requirement, Category: c}, Shard: 1}
	}
	network := Selection{Categories: []specs.Category{specs.CoreNetwork}}
	for what, c := range map[string]struct {
		standard  map[specs.Category]int
		selection Selection
		says      string
	}{
		"as it is":              {map[specs.Category]int{specs.CoreNetwork: 2}, Selection{}, ""},
		"a part":                {map[specs.Category]int{specs.CoreNetwork: 3, specs.CoreStorage: 5}, network, ""},
		"fewer":                 {map[specs.Category]int{specs.CoreNetwork: 1}, network, `it plans 2 requirements of "Core.Network", and counts 1 in its standard`},
		"none":                  {nil, network, `it plans 2 requirements of "Core.Network", and counts 0`},
		"the whole, with fewer": {map[specs.Category]int{specs.CoreNetwork: 3}, Selection{}, `it plans 2 requirements of "Core.Network", and counts 3`},
		"another category":      {map[specs.Category]int{specs.CoreNetwork: 2, specs.CoreStorage: 1}, Selection{}, `it plans 0 requirements of "Core.Storage", and counts 1`},
		"less than nothing":     {map[specs.Category]int{specs.CoreNetwork: 2, specs.CoreStorage: -1}, network, `it plans 0 requirements of "Core.Storage", and counts -1`},
	} {
		p := &Plan{
			Schema: PlanSchema, Shards: 1, Standard: c.standard, Selection: c.selection,
			Cases: []PlannedCase{requirement("a", specs.CoreNetwork), requirement("b", specs.CoreNetwork), {Case: specs.Case{ID: "c", Kind: specs.Additional, Category: specs.CoreStorage}}},
		}
		wantRead(t, what, p, c.says)
	}
	twice := &Plan{Schema: PlanSchema, Shards: 1, Standard: map[specs.Category]int{specs.CoreNetwork: 2}, Cases: []PlannedCase{requirement("a", specs.CoreNetwork), requirement("a", specs.CoreNetwork)}}
	wantRead(t, "a case twice", twice, `case "a" is planned twice`)
}

func wantRead(t *testing.T, what string, p *Plan, says string) {
	t.Helper()
	var err error
	if p.Digest, err = p.ComputeDigest(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "results")
	folder, err := Create(dir, p, &Manifest{Schema: ManifestSchema, PlanDigest: p.Digest, Shard: 1, Attempt: 1})
	if err != nil {
		t.Fatal(err)
	}
	folder.Close()
	if err := os.WriteFile(filepath.Join(dir, EventsFile), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = Load(dir)
	if (err == nil) != (says == "") || err != nil && (!strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), filepath.Join(dir, PlanFile))) {
		t.Errorf("%s: %v", what, err)
	}
}
