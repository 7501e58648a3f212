//go:build unix

package lies

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

var (
	seed   = flag.Uint64("lies.seed", uint64(time.Now().UnixNano()), "seed of the changes that are drawn")
	sample = flag.Int("lies.changes", 200, "how many changes of each run are drawn, beside those that are always made")
)

// A change is one single change of a results.jsonl.
type change struct {
	base  string
	event result.EventType
	// field is the path of the field that is changed; "" for the event itself.
	field string
	// how is what becomes of event or field.
	how string
	// gates says that a case that gates takes its outcome from what the event is
	// about, full that one claims full proof, and runs that one needs containers.
	gates, full, runs bool
	// last says that the event is about the newest attempt of a test, or, for a
	// batch, of one at least; of a run, that it is the newest execution.
	last   bool
	system string // where a pod was

	line  int
	apply func(lines []event) []event
}

func (c *change) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s (gates %t, full %t, runs %t, last %t) %s", c.event, c.field, c.how, c.gates, c.full, c.runs, c.last, c.system))
}

// event is a line of results.jsonl.
type event struct {
	text   []byte
	fields object
}

// journal is the results.jsonl of a base, with what it takes to change it.
type journal struct {
	base
	lines []event
	// values are those that are seen of a field, by event and path.
	values map[string][]any
	gating map[string]bool // by test id
	full   map[string]bool
	runs   map[string]bool
	newest map[string]int // attempt, by test id
	// batches says whether the newest attempt of a test ran there that gates, and
	// of one that does not.
	batches map[string]map[bool]bool
}

func readJournal(t *testing.T, b base) *journal {
	t.Helper()
	j := &journal{base: b, values: map[string][]any{}, gating: map[string]bool{}, full: map[string]bool{}, runs: map[string]bool{}, newest: map[string]int{}, batches: map[string]map[bool]bool{}}
	data, err := os.ReadFile(filepath.Join(b.dir, result.EventsFile))
	if err != nil {
		t.Fatal(err)
	}
	done := load(t, b.dir)
	for i := range done.Plan.Cases {
		for _, id := range done.Plan.Cases[i].TestIDs {
			c := &done.Plan.Cases[i]
			j.gating[id] = j.gating[id] || c.Gates()
			j.runs[id] = j.runs[id] || c.Gates() && c.NeedsContainers()
			j.full[id] = j.full[id] || c.Gates() && c.Proof == specs.ProofFull
		}
	}
	for id, attempts := range done.Attempts {
		last := attempts[len(attempts)-1]
		j.newest[id] = last.Attempt
		if j.batches[last.Batch] == nil {
			j.batches[last.Batch] = map[bool]bool{}
		}
		j.batches[last.Batch][j.gating[id]] = true
	}
	for line := range bytes.Lines(data) {
		j.lines = append(j.lines, j.parse(t, line))
	}
	return j
}

func (j *journal) parse(t *testing.T, line []byte) event {
	t.Helper()
	e := event{text: slices.Clone(line)}
	if err := json.Unmarshal(line, &e.fields); err != nil {
		t.Fatal(err)
	}
	for path := range fieldsOf(e.kind()) {
		if v := get(e.fields, path); v != nil {
			key := string(e.kind()) + " " + path
			if !slices.ContainsFunc(j.values[key], func(o any) bool { return reflect.DeepEqual(o, v) }) {
				j.values[key] = append(j.values[key], v)
			}
		}
	}
	return e
}

func (e *event) kind() result.EventType { return result.EventType(textOf(e.fields["type"])) }

// sections are what events of a type carry.
var sections = map[result.EventType]string{
	result.CaseDecided: "case", result.BatchStarted: "batch", result.BatchSuite: "batch", result.BatchFinished: "batch",
	result.TestStarted: "test", result.TestFinished: "test", result.TestMeasured: "test", result.SuiteFailed: "suite", result.PodObserved: "pod",
}

// fieldsOf returns the fields that an event of a type can have, with their types.
var fieldsOf = func() func(kind result.EventType) map[string]reflect.Type {
	var mu sync.Mutex
	known := map[result.EventType]map[string]reflect.Type{}
	return func(kind result.EventType) map[string]reflect.Type {
		mu.Lock()
		defer mu.Unlock()
		if known[kind] == nil {
			fields := map[string]reflect.Type{}
			leaves(reflect.TypeFor[result.Event](), "", fields)
			maps.DeleteFunc(fields, func(path string, _ reflect.Type) bool {
				section, _, nested := strings.Cut(path, ".")
				return nested && section != sections[kind]
			})
			known[kind] = fields
		}
		return known[kind]
	}
}()

// leaves lists the fields of a struct by their JSON paths.
func leaves(t reflect.Type, prefix string, into map[string]reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		kind := f.Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		if kind.Kind() == reflect.Struct && kind != reflect.TypeFor[time.Time]() {
			leaves(kind, prefix+name+".", into)
			continue
		}
		into[prefix+name] = kind
	}
}

func get(o object, path string) any {
	head, rest, nested := strings.Cut(path, ".")
	if !nested {
		return o[head]
	}
	inner, _ := o[head].(object)
	return get(inner, rest)
}

// set returns a copy of o with another value at path; nil removes it.
func set(o object, path string, v any) object {
	out := maps.Clone(o)
	if out == nil {
		out = object{}
	}
	head, rest, nested := strings.Cut(path, ".")
	switch {
	case nested:
		inner, _ := out[head].(object)
		out[head] = set(inner, rest, v)
	case v == nil:
		delete(out, head)
	default:
		out[head] = v
	}
	return out
}

// changes lists every change of every event.
func (j *journal) changes() []change {
	var all []change
	for i := range j.lines {
		c := change{base: j.name, event: j.lines[i].kind(), line: i, gates: true, last: true, system: textOf(get(j.lines[i].fields, "pod.os"))}
		section := sections[c.event]
		if id := j.testOf(i); id != "" {
			attempt, _ := get(j.lines[i].fields, section+".attempt").(float64)
			c.gates, c.full, c.runs, c.last = j.gating[id], j.full[id], j.runs[id], int(attempt) == j.newest[id]
		}
		if section == "batch" {
			batch := textOf(get(j.lines[i].fields, "batch.id"))
			c.gates, c.last = j.batches[batch][true], j.batches[batch][true] || j.batches[batch][false]
		}
		if section == "" {
			c.last = !slices.ContainsFunc(j.lines[i+1:], func(e event) bool { return e.kind() == c.event })
		}
		add := func(field, how string, apply func(lines []event) []event) {
			one := c
			one.field, one.how, one.apply = field, how, apply
			all = append(all, one)
		}
		add("", "removed", func(l []event) []event { return slices.Delete(l, i, i+1) })
		add("", "doubled", func(l []event) []event { return slices.Insert(l, i, l[i]) })
		add("", "doubled at the end", func(l []event) []event { return append(l, l[i]) })
		if i+1 < len(j.lines) {
			add("", "swapped with "+string(j.lines[i+1].kind()), func(l []event) []event { l[i], l[i+1] = l[i+1], l[i]; return l })
		}
		kinds := fieldsOf(c.event)
		for _, field := range slices.Sorted(maps.Keys(kinds)) {
			for how, v := range j.others(c.event, field, kinds[field], get(j.lines[i].fields, field)) {
				changed := set(j.lines[i].fields, field, v)
				add(field, how, func(l []event) []event { l[i] = encoded(changed); return l })
			}
		}
		unknown := set(j.lines[i].fields, "unheardOf", true)
		add("unheardOf", "added", func(l []event) []event { l[i] = encoded(unknown); return l })
	}
	return all
}

func (j *journal) testOf(line int) string {
	o := j.lines[line].fields
	if id := textOf(get(o, "test.id")); id != "" {
		return id
	}
	return textOf(get(o, "pod.test"))
}

func encoded(o object) event {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return event{text: append(text, '\n'), fields: o}
}

// states are those of an attempt.
var states = []any{"passed", "failed", "skipped", "error"}

// others are values that a field could have instead, by what becomes of it. nil
// removes it.
func (j *journal) others(event result.EventType, field string, kind reflect.Type, now any) map[string]any {
	out := map[string]any{"removed": nil}
	for i, v := range j.values[string(event)+" "+field] {
		if i < 6 && field != "test.state" {
			out[fmt.Sprintf("another seen %d", i)] = v
		}
	}
	switch {
	case field == "test.state":
		for _, s := range states {
			out["becomes "+s.(string)] = s
		}
		out["unknown"] = "splendid"
	case kind == reflect.TypeFor[time.Time]():
		at, _ := time.Parse(time.RFC3339Nano, textOf(now))
		out["later"], out["earlier"], out["unknown"] = at.Add(time.Hour).Format(time.RFC3339Nano), at.Add(-time.Hour).Format(time.RFC3339Nano), "yesterday"
	case kind.Kind() == reflect.String:
		out["unknown"] = "splendid"
	case kind.Kind() == reflect.Bool:
		b, _ := now.(bool)
		out["flipped"] = !b
	case kind.Kind() == reflect.Slice:
		list, _ := now.([]any)
		out["longer"] = append(slices.Clone(list), "splendid")
		if len(list) > 0 {
			out["shorter"] = list[:len(list)-1]
			out["cut in front"] = list[1:]
		}
	default:
		n, _ := now.(float64)
		out["one more"], out["one less"], out["0"], out["no number"] = n+1, n-1, 0, "one"
	}
	maps.DeleteFunc(out, func(_ string, v any) bool {
		return reflect.DeepEqual(v, now) || now == nil && (v == 0 || v == false || v == "")
	})
	return out
}

// drawn are the changes to make: the first one of each kind, and some others.
func (j *journal) drawn(random *rand.Rand) []change {
	var must, rest []change
	seen := map[string]bool{}
	for _, c := range j.changes() {
		if key := c.String(); !seen[key] {
			seen[key] = true
			must = append(must, c)
			continue
		}
		rest = append(rest, c)
	}
	random.Shuffle(len(rest), func(a, b int) { rest[a], rest[b] = rest[b], rest[a] })
	return append(must, rest[:min(len(rest), *sample)]...)
}

// verdictWith judges the base with other events, in a folder of its own.
func (j *journal) verdictWith(dir string, c *change) (verdict.Verdict, error) {
	var text bytes.Buffer
	for _, e := range c.apply(slices.Clone(j.lines)) {
		text.Write(e.text)
	}
	if err := os.WriteFile(filepath.Join(dir, result.EventsFile), text.Bytes(), 0o644); err != nil {
		return "", err
	}
	return judgeFolder(dir), nil
}

func TestNoSingleChangeOfAnEventMakesReady(t *testing.T) {
	t.Logf("seed %d (-lies.seed)", *seed)
	random := rand.New(rand.NewPCG(*seed, 1))
	used := make([]bool, len(harmless))
	made := 0
	for _, b := range bases(t) {
		j := readJournal(t, b)
		all := j.drawn(random)
		made += len(all)
		ready := make([]bool, len(all))
		var dirs []string
		for range runtime.GOMAXPROCS(0) {
			dirs = append(dirs, copyOf(t, b.dir))
		}
		beside(len(all), func(worker, i int) {
			v, err := j.verdictWith(dirs[worker], &all[i])
			if err != nil {
				t.Error(err)
			}
			ready[i] = v == verdict.Ready
		})
		told := map[string]bool{}
		for i, c := range all {
			if !ready[i] {
				continue
			}
			at := slices.IndexFunc(harmless, func(h allowance) bool { return b.ready && h.allows(&c) })
			if at >= 0 {
				used[at] = true
			} else if key := c.String(); !told[key] {
				told[key] = true
				t.Errorf("the %s run is ready with line %d changed: %s\n\t%s", b.name, c.line+1, key, bytes.TrimSpace(j.lines[c.line].text))
			}
		}
	}
	for i, h := range harmless {
		if !used[i] {
			t.Errorf("no change takes this line of the table any more: %+v", h)
		}
	}
	t.Logf("%d changes", made)
}
