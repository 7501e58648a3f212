//go:build unix

package lies

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// edits lists what can become of each value of a JSON document, by what is done.
func edits(v any, path string, put func(v any), into map[string]func()) {
	set := func(how string, to any) {
		into[path+" "+how] = func() { put(to) }
	}
	switch now := v.(type) {
	case object:
		for _, key := range slices.Sorted(maps.Keys(now)) {
			into[path+"."+key+" removed"] = func() { delete(now, key) }
			edits(now[key], path+"."+key, func(v any) { now[key] = v }, into)
		}
	case []any:
		set("emptied", []any{})
		if len(now) > 0 {
			set("shorter", now[1:])
			set("longer", append(slices.Clone(now), now[0]))
		}
		for i := range now {
			edits(now[i], fmt.Sprintf("%s[%d]", path, i), func(v any) { now[i] = v }, into)
		}
	case bool:
		set("flipped", !now)
	case float64:
		set("one more", now+1)
		set("0", 0)
	case string:
		for _, to := range []string{"splendid", "windows", "linux", "ready", "10.0.20348", "2026-08-01T12:00:00Z", ""} {
			if to != now {
				set("is "+to, to)
			}
		}
	}
}

// edited is a JSON document with the edit of that name.
func edited(t testing.TB, data []byte, name string) []byte {
	t.Helper()
	var doc any
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	all := map[string]func(){}
	edits(doc, "", nil, all)
	all[name]()
	out, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// becomesReady makes single changes of a file of a folder, at most so many, and
// reports those with which the folder is ready.
func becomesReady(t *testing.T, what, dir, file string, most int) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	all := map[string]func(){}
	edits(doc, "", nil, all)
	names := slices.Sorted(maps.Keys(all))
	random := rand.New(rand.NewPCG(*seed, 2))
	random.Shuffle(len(names), func(a, b int) { names[a], names[b] = names[b], names[a] })
	names = names[:min(len(names), most)]
	var dirs []string
	for range runtime.GOMAXPROCS(0) {
		dirs = append(dirs, copyOf(t, dir))
	}
	beside(len(names), func(worker, i int) {
		if err := os.WriteFile(filepath.Join(dirs[worker], file), edited(t, data, names[i]), 0o644); err != nil {
			t.Error(err)
		}
		if judgeFolder(dirs[worker]) == verdict.Ready {
			t.Errorf("%s is ready with %s of %s", what, names[i], file)
		}
	})
	t.Logf("%s, %s: %d of %d changes (seed %d)", what, file, len(names), len(all), *seed)
}

// notReady are runs in which one thing is wrong, each.
func notReady(t *testing.T) map[string]string {
	t.Helper()
	windows := func(change func(n *result.Node)) string {
		b := newBench(t, truth, planOf(t, 1, specs.CoreScheduling, specs.ClusterRules), 1)
		change(&b.options.Manifest.Cluster.Nodes[3])
		if err := b.options.Folder.WriteJSON(result.ManifestFile, b.options.Manifest); err != nil {
			t.Fatal(err)
		}
		return b.run()
	}
	interrupted := newBench(t, hangsOnce, planOf(t, 1, specs.CoreScheduling), 1)
	interrupted.stopAt = interrupted.target.Name
	return map[string]string{
		"a failed run":                   newBench(t, failsAlways, planOf(t, 1, specs.CoreScheduling), 1).run(),
		"an interrupted run":             interrupted.run(),
		"a run with a cordoned node":     windows(func(n *result.Node) { n.Unschedulable = true }),
		"a run with a node of no build":  windows(func(n *result.Node) { n.WindowsBuild = "" }),
		"a run with a simulated node":    windows(func(n *result.Node) { n.Simulated = true }),
		"a run with a node that is gone": windows(func(n *result.Node) { n.Ready = false }),
	}
}

func TestNoSingleChangeOfTheFactsMakesReady(t *testing.T) {
	for what, dir := range notReady(t) {
		if v := judgeFolder(dir); v == verdict.Ready || v == "" {
			t.Fatalf("%s is %q", what, v)
		}
		becomesReady(t, what, dir, result.ManifestFile, 400)
		becomesReady(t, what, dir, result.PlanFile, 150)
	}
}

// The digest of a plan leaves nothing in it that could be changed alone.
func TestNoSingleChangeOfThePlanIsReady(t *testing.T) {
	becomesReady(t, "a ready run", newBench(t, truth, planOf(t, 1, specs.CoreScheduling), 1).run(), result.PlanFile, 1000)
}
