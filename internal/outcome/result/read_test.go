package result_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// folderWith is the results folder of a small run with other contents of files.
func folderWith(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	f := create(t, dir)
	appendTo(t, f, result.Event{Time: at, Type: result.RunStarted})
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFoldersThatAreNone(t *testing.T) {
	for what, c := range map[string]struct {
		files map[string]string
		says  string
	}{
		"another schema of the plan":   {map[string]string{result.PlanFile: `{"schema": 2}`}, "schema 2 is not known: this op-readiness reads 1"},
		"no schema":                    {map[string]string{result.PlanFile: `{}`}, "schema 0"},
		"null":                         {map[string]string{result.PlanFile: `null`}, "schema 0"},
		"a list":                       {map[string]string{result.PlanFile: `[]`}, "is not a results folder"},
		"half a plan":                  {map[string]string{result.PlanFile: `{"schema": 1, "cases": [`}, "unexpected end"},
		"something after the plan":     {map[string]string{result.PlanFile: `{"schema": 1} {}`}, "after top-level value"},
		"an empty manifest":            {map[string]string{result.ManifestFile: ""}, result.ManifestFile},
		"another schema of the run":    {map[string]string{result.ManifestFile: `{"schema": 99}`}, "schema 99 is not known"},
		"a shard that is not a number": {map[string]string{result.ManifestFile: `{"schema": 1, "shard": "one"}`}, "shard"},
		"a huge number":                {map[string]string{result.ManifestFile: `{"schema": 1, "attempt": 1e999}`}, "attempt"},
		"a plan that is too large":     {map[string]string{result.PlanFile: strings.Repeat(" ", 64<<20+1)}, "is over 64 MiB"},
	} {
		if _, err := result.Load(folderWith(t, c.files)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", what, err, c.says)
		}
	}
	if _, err := result.Load(t.TempDir()); err == nil || !strings.Contains(err.Error(), "holds no results folder") {
		t.Errorf("an empty folder: %v", err)
	}
	dir := folderWith(t, nil)
	if err := os.Remove(filepath.Join(dir, result.ManifestFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := result.Load(dir); err == nil || !strings.Contains(err.Error(), result.ManifestFile) {
		t.Errorf("without a manifest: %v", err)
	}
}

func TestOddEventsAreProblemsAndLoseNothing(t *testing.T) {
	good := "{\"type\":\"run-started\"}\n" + `{"type":"test-finished","test":{"id":"a","name":"test a","attempt":1,"state":"error"}}` + "\n"
	end := `{"type":"run-finished"}` + "\n"
	for what, c := range map[string]struct{ line, says string }{
		"no JSON":               {"hello", "line 3: invalid character"},
		"half of it":            {`{"type":"run-st`, "line 3: invalid character"},
		"an empty line":         {"", "line 3: unexpected end"},
		"a list":                {"[]", "line 3"},
		"null":                  {"null", `unknown event ""`},
		"an unknown event":      {`{"type":"x"}`, `unknown event "x"`},
		"an event without body": {`{"type":"test-finished"}`, "test-finished without a test"},
		"a pod without body":    {`{"type":"pod"}`, "pod without a pod"},
		"a batch without body":  {`{"type":"batch-started"}`, "without a batch"},
		"a case without body":   {`{"type":"case-decided"}`, "without a case"},
		"a suite without body":  {`{"type":"suite-failed"}`, "without a suite failure"},
		"an unknown test":       {`{"type":"test-finished","test":{"id":"zz","attempt":1,"state":"passed"}}`, `test "zz" is not in the plan`},
		"an unknown state":      {`{"type":"test-finished","test":{"id":"b","name":"test b","attempt":1,"state":"great"}}`, `unknown state "great"`},
		"no state":              {`{"type":"test-finished","test":{"id":"b","name":"test b","attempt":1}}`, `unknown state ""`},
		"an attempt twice":      {strings.Split(good, "\n")[1], "attempt 1 of test a, where attempt 2 belongs"},
		"no start":              {`{"type":"test-finished","test":{"id":"b","name":"test b","attempt":1,"state":"passed"}}`, "test b ended in batch , which does not run"},
		"another name":          {`{"type":"test-finished","test":{"id":"b","name":"test c","attempt":1,"state":"error"}}`, `test b is called "test c", and in the plan "test b"`},
		"pods that are not":     {`{"type":"test-finished","test":{"id":"b","name":"test b","attempt":1,"state":"error","pods":2}}`, "says that 2 pods were observed, and here are 0"},
		"no batch":              {`{"type":"batch-finished","batch":{"id":"01"}}`, "batch 01 does not run"},
		"a failure of no batch": {`{"type":"suite-failed","suite":{"batch":"01","node":"AfterSuite"}}`, "AfterSuite failed in batch 01, which does not run"},
		"an unknown case":       {`{"type":"case-decided","case":{"id":"x"}}`, `case "x" is not in the plan`},
		"NaN":                   {`{"type":"test-finished","test":{"id":"b","name":"test b","attempt":1,"state":"error","seconds":NaN}}`, "invalid character 'N'"},
		"a number too large":    {`{"type":"test-finished","test":{"id":"b","name":"test b","attempt":1,"state":"error","seconds":1e999}}`, "1e999"},
		"a very large number":   {`{"type":"test-finished","test":{"id":"b","name":"test b","attempt":1,"state":"error","seconds":1e300}}`, "took 1e+300 seconds"},
		"a negative time":       {`{"type":"test-finished","test":{"id":"b","name":"test b","attempt":1,"state":"error","seconds":-1}}`, "took -1 seconds"},
		"a long line":           {`{"type":"x","y":"` + strings.Repeat("x", 3<<20) + `"}`, "line 3 is over 1048576 bytes"},
		"deep JSON":             {strings.Repeat("[", 20_000), "line 3"},
	} {
		run := read(t, folderWith(t, map[string]string{result.EventsFile: good + c.line + "\n" + end}))
		if len(run.Problems) != 1 || !strings.Contains(run.Problems[0], c.says) || !strings.HasPrefix(run.Problems[0], result.EventsFile+": line 3") {
			t.Errorf("%s: problems %.300q, want one of %q", what, run.Problems, c.says)
		}
		if len(run.Attempts["a"]) == 0 || !run.Finished {
			t.Errorf("%s: what came before and after is lost: %v, finished %t", what, run.Attempts, run.Finished)
		}
		for _, d := range run.Durations() {
			if d < 0 {
				t.Errorf("%s: a duration of %v", what, d)
			}
		}
		if verdict.Judge(run).Verdict != verdict.Inconclusive {
			t.Errorf("%s: %s", what, verdict.Judge(run).Verdict)
		}
	}
	// Text that is not UTF-8 is read as what it can be.
	run := read(t, folderWith(t, map[string]string{result.EventsFile: "{\"type\":\"run-started\"}\n" + `{"type":"test-finished","test":{"id":"a","name":"test a","attempt":1,"state":"error","message":"` + "\xff\xfe" + `"}}` + "\n"}))
	if len(run.Problems) > 0 || run.Attempts["a"][0].Message != "\uFFFD\uFFFD" {
		t.Errorf("invalid UTF-8: %q, %v", run.Problems, run.Attempts)
	}
}

func TestLimits(t *testing.T) {
	attempt := func(n int) string {
		return fmt.Sprintf(`{"type":"test-finished","test":{"id":"a","name":"test a","attempt":%d,"state":"error"}}`+"\n", n)
	}
	var many strings.Builder
	for i := range 5000 {
		many.WriteString(attempt(i + 1))
	}
	run := read(t, folderWith(t, map[string]string{result.EventsFile: many.String()}))
	if len(run.Attempts["a"]) > 200 || len(run.Problems) > 150 || len(run.Problems) == 0 {
		t.Errorf("%d attempts, %d problems", len(run.Attempts["a"]), len(run.Problems))
	}
	if last := run.Problems[len(run.Problems)-1]; last != "more problems than are listed here" {
		t.Errorf("the last problem is %q", last)
	}
	// A file of over 256 MiB of nothing, which takes no room on the disk.
	dir := folderWith(t, nil)
	if err := os.Truncate(filepath.Join(dir, result.EventsFile), 257<<20); err != nil {
		t.Skipf("no sparse files here: %v", err)
	}
	if _, err := result.Load(dir); err == nil || !strings.Contains(err.Error(), "is over 256 MiB") {
		t.Errorf("a huge file: %v", err)
	}
}

func TestWhatDoesNotBelongTogether(t *testing.T) {
	dir := folderWith(t, nil)
	path := filepath.Join(dir, result.PlanFile)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct{ old, new, says string }{
		"a changed name":    {"test a", "test z", "plan.json was changed: its digest is sha256:"},
		"a changed digest":  {`"digest": "sha256:`, `"digest": "sha256:0`, "was changed"},
		"space that is not": {"  ", " ", ""},
	} {
		if err := os.WriteFile(path, bytes.Replace(data, []byte(c.old), []byte(c.new), 1), 0o644); err != nil {
			t.Fatal(err)
		}
		run := read(t, dir)
		if (c.says == "") != (len(run.Problems) == 0) || !strings.Contains(strings.Join(run.Problems, "\n"), c.says) {
			t.Errorf("%s: problems %q", what, run.Problems)
		}
	}
	p := smallPlan(t)
	for what, c := range map[string]struct {
		change func(m *result.Manifest)
		says   string
	}{
		"another plan": {func(m *result.Manifest) { m.PlanDigest = "sha256:0" }, "belongs to another plan"},
		"shard 0":      {func(m *result.Manifest) { m.Shard = 0 }, "shard 0 is not one of the plan's 1"},
		"shard 2 of 1": {func(m *result.Manifest) { m.Shard = 2 }, "shard 2 is not one of the plan's 1"},
	} {
		m := smallManifest(p)
		c.change(m)
		sub := t.TempDir()
		f, err := result.Create(sub, p, m)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if run := read(t, sub); len(run.Problems) != 1 || !strings.Contains(run.Problems[0], c.says) {
			t.Errorf("%s: problems %q", what, run.Problems)
		}
	}
	if err := os.Remove(filepath.Join(dir, result.EventsFile)); err != nil {
		t.Fatal(err)
	}
	if run := read(t, dir); !strings.Contains(strings.Join(run.Problems, "\n"), "results.jsonl is missing: nothing was recorded") {
		t.Errorf("without events: %q", run.Problems)
	}
}

func TestAResumedRunIsUnfinishedUntilItEnds(t *testing.T) {
	end := result.Event{Time: at, Type: result.RunFinished, Interrupted: true}
	begin := result.Event{Time: at, Type: result.RunStarted}
	dir := t.TempDir()
	f := create(t, dir)
	for i, c := range []struct {
		event                 result.Event
		finished, interrupted bool
		executions            int
	}{
		{begin, false, false, 1},
		{end, true, true, 1},
		{begin, false, false, 2},
		{result.Event{Time: at, Type: result.RunFinished}, true, false, 2},
	} {
		appendTo(t, f, c.event)
		if run := read(t, dir); run.Finished != c.finished || run.Interrupted != c.interrupted || run.Executions != c.executions {
			t.Errorf("after event %d: finished %t, interrupted %t, %d executions", i+1, run.Finished, run.Interrupted, run.Executions)
		}
	}
}

// TestTheDigestCoversEverything changes each value in a plan, one at a time.
func TestTheDigestCoversEverything(t *testing.T) {
	full := func() *result.Plan {
		p := &result.Plan{}
		fill(reflect.ValueOf(p).Elem())
		return p
	}
	digest := func(p *result.Plan) string {
		d, err := p.ComputeDigest()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	base := digest(full())
	if again := digest(full()); again != base {
		t.Fatalf("the digest is %s, and then %s", base, again)
	}
	n := 0
	for i := 0; ; i++ {
		p := full()
		path, ok := change(reflect.ValueOf(p).Elem(), "plan", &[]int{i}[0])
		if !ok {
			break
		}
		n++
		if own := path == "plan.Digest"; (digest(p) == base) != own {
			t.Errorf("%s: the digest covers it: %t", path, digest(p) != base)
		}
	}
	if n < 40 {
		t.Errorf("only %d values were changed", n)
	}
	// Nothing at all is the same as an empty list: JSON knows no difference.
	p := smallPlan(t)
	p.Cases[0].Needs.Means, p.Cases[0].Conditions.Placement, p.Selection.Categories = nil, nil, nil
	if digest(p) != p.Digest {
		t.Error("empty lists count")
	}
}

// fill sets every value to something.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Bool:
		v.SetBool(true)
	default:
		panic("a plan has a " + v.Kind().String())
	}
}

// change changes the skip-th value in v, and tells which that is.
func change(v reflect.Value, path string, skip *int) (string, bool) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if p, ok := change(v.Field(i), path+"."+v.Type().Field(i).Name, skip); ok {
				return p, true
			}
		}
		return "", false
	case reflect.Slice:
		return change(v.Index(0), path+"[0]", skip)
	}
	if *skip > 0 {
		*skip--
		return "", false
	}
	switch v.Kind() {
	case reflect.Map:
		v.SetMapIndex(v.MapKeys()[0], reflect.ValueOf(2))
	case reflect.String:
		v.SetString("y")
	case reflect.Int, reflect.Int64:
		v.SetInt(2)
	case reflect.Bool:
		v.SetBool(false)
	}
	return path, true
}

func TestTestIDs(t *testing.T) {
	ids := map[string]string{}
	for _, c := range []struct {
		name       string
		conditions result.RunConditions
	}{
		{"a", result.RunConditions{}},
		{"b", result.RunConditions{}},
		{"a", result.RunConditions{Steer: specs.Windows}},
		{"a", result.RunConditions{Steer: specs.Linux}},
		{"a", result.RunConditions{Steer: specs.Windows, SteerPods: "x"}},
		{"a", result.RunConditions{RuntimeClass: "x"}},
		{"a7:windows", result.RunConditions{}},
	} {
		id := result.TestID(c.name, c.conditions)
		if len(id) != 12 || id != result.TestID(c.name, c.conditions) {
			t.Errorf("%v: %q", c, id)
		}
		what := fmt.Sprintf("%s, %s", c.name, c.conditions)
		if other, ok := ids[id]; ok {
			t.Errorf("%s and %s have the same id", what, other)
		}
		ids[id] = what
	}
	// Results of other versions are matched by it.
	if got := result.TestID("[sig-x] a", result.RunConditions{Steer: specs.Windows, SteerPods: "^p$"}); got != "d96618b4d829" {
		t.Errorf("the id of a test has changed to %s", got)
	}
	if got := result.ConditionsOf(specs.Conditions{SteerPods: "x"}); got != (result.RunConditions{}) {
		t.Errorf("pods that are steered nowhere: %+v", got)
	}
}

// A hostile plan must not keep its reader busy.
func TestAPlanOfCountlessShardsIsRefused(t *testing.T) {
	dir := t.TempDir()
	folder := create(t, dir)
	if err := folder.WriteFile(result.PlanFile, []byte(`{"schema":1,"shards":1000000000000}`)); err != nil {
		t.Fatal(err)
	}
	folder.Close()
	if _, err := result.Load(dir); err == nil || !strings.Contains(err.Error(), "1000000000000 shards: at most 10000") {
		t.Error(err)
	}
}

func FuzzRead(f *testing.F) {
	dir := f.TempDir()
	folder := create(f, dir)
	appendTo(f, folder, everyEvent()...)
	if err := folder.Close(); err != nil {
		f.Fatal(err)
	}
	var files [3][]byte
	names := [3]string{result.PlanFile, result.ManifestFile, result.EventsFile}
	for i, name := range names {
		var err error
		if files[i], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(files[0], files[1], files[2])
	f.Add([]byte(`{"schema":1}`), []byte(`{"schema":1}`), []byte("{}\n"))
	f.Fuzz(func(t *testing.T, plan, manifest, events []byte) {
		for i, data := range [][]byte{plan, manifest, events} {
			if err := os.WriteFile(filepath.Join(dir, names[i]), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		run, err := result.Load(dir)
		if err != nil {
			return
		}
		for id, d := range run.Durations() {
			if d < 0 || d > 31*24*time.Hour {
				t.Errorf("test %s took %v", id, d)
			}
		}
		verdict.Judge(run)
	})
}

func TestWhatContradictsItselfIsAProblem(t *testing.T) {
	on := func(node string, os specs.OS, simulated bool) result.Event {
		return result.Event{Time: at, Type: result.PodObserved, Pod: &result.Pod{Test: "a", Attempt: 1, Name: "p", Node: node, OS: os, Simulated: simulated, Images: []string{"x"}}}
	}
	imageless, built := on("linux-0", specs.Linux, true), on("linux-0", specs.Linux, true)
	imageless.Pod.Images, built.Pod.WindowsBuild = nil, "10.0.20348"
	in := func(c result.RunConditions) result.Event {
		return result.Event{Time: at, Type: result.BatchStarted, Batch: &result.Batch{ID: "01", Phase: specs.Parallel, Conditions: c, Tests: 1}}
	}
	for what, c := range map[string]struct {
		event   result.Event
		problem string
	}{
		"a pod as its node is":         {on("linux-0", specs.Linux, true), ""},
		"a pod on a node that came":    {on("linux-9", specs.Windows, false), ""},
		"a pod on no node":             {on("", "", false), ""},
		"a pod of no system":           {on("linux-0", "", true), "pod p was on node linux-0, of an unknown system and simulated, and run.json has that node as linux and simulated"},
		"a pod of a system on no node": {on("", specs.Windows, false), "pod p was on no node, and is said to have been on one that is windows"},
		"a pod of another build":       {built, "pod p was on node linux-0, linux 10.0.20348 and simulated, and"},
		"a pod without an image":       {imageless, "pod p has no image"},
		"another system":               {on("linux-0", specs.Windows, true), "pod p was on node linux-0, windows and simulated, and run.json has that node as linux and simulated"},
		"a real pod, a simulated node": {on("linux-0", specs.Linux, false), "pod p was on node linux-0, linux, and"},
		"the conditions of the plan":   {in(someConditions), ""},
		"other conditions":             {in(result.RunConditions{}), `test a is planned parallel, "steer windows ^x$, runtime class y", and ran in a batch parallel, "as is"`},
	} {
		dir := t.TempDir()
		p := smallPlan(t)
		m := smallManifest(p)
		m.Cluster.Nodes = []result.Node{{Name: "linux-0", OS: specs.Linux, Simulated: true}}
		f, err := result.Create(dir, p, m)
		if err != nil {
			t.Fatal(err)
		}
		events := append(begun(), started("a"), ended("a", 1, result.TestPassed))
		if c.event.Type == result.BatchStarted {
			events[1] = c.event
		} else {
			events[3].Test.Pods = 1
			events = slices.Insert(events, 3, c.event)
		}
		appendTo(t, f, events...)
		f.Close()
		problems := strings.Join(read(t, dir).Problems, "\n")
		if (c.problem == "") != (problems == "") || !strings.Contains(problems, c.problem) {
			t.Errorf("%s: problems %q, want %q", what, problems, c.problem)
		}
	}
}

// Figures are bounded, and only those of an attempt that has just ended are taken.
func TestFiguresOfOthers(t *testing.T) {
	figure := func(what, text string) result.Measurement { return result.Measurement{What: what, Figure: text} }
	of := func(change func(t *result.TestRun)) result.Event {
		e := measured("a", 1, someFigure)
		change(e.Test)
		return e
	}
	done := result.Event{Time: at, Type: result.BatchFinished, Batch: &result.Batch{ID: "01", Phase: specs.Parallel, Conditions: someConditions, Tests: 3, Exit: "exit code 0", Reconciled: true}}
	smuggled := ended("a", 1, result.TestPassed)
	smuggled.Test.Measured = []result.Measurement{figure("unbounded", "")}
	for what, c := range map[string]struct {
		events   []result.Event
		problems int
		figures  []result.Measurement
	}{
		"in their place":        {[]result.Event{measured("a", 1, someFigure), done}, 0, []result.Measurement{someFigure}},
		"none":                  {[]result.Event{measured("a", 1), done}, 0, nil},
		"twice":                 {[]result.Event{measured("a", 1, someFigure), measured("a", 1, figure("x", "y"))}, 1, []result.Measurement{someFigure}},
		"of an unknown test":    {[]result.Event{measured("zz", 1, someFigure)}, 1, nil},
		"of no test":            {[]result.Event{{Time: at, Type: result.TestMeasured}}, 1, nil},
		"of one that never ran": {[]result.Event{measured("c", 1, someFigure)}, 1, nil},
		"of another attempt":    {[]result.Event{measured("a", 2, someFigure)}, 1, nil},
		"of an older attempt":   {[]result.Event{ended("a", 2, result.TestError), measured("a", 1, someFigure)}, 1, nil},
		"of another batch":      {[]result.Event{of(func(t *result.TestRun) { t.Batch = "02" })}, 1, nil},
		"of a batch beside it": {[]result.Event{
			{Time: at, Type: result.BatchStarted, Batch: &result.Batch{ID: "02", Phase: specs.Parallel, Conditions: someConditions, Tests: 3}},
			of(func(t *result.TestRun) { t.Batch = "02" }),
		}, 1, nil},
		"after the batch": {[]result.Event{done, measured("a", 1, someFigure)}, 1, nil},
		"that claim another end": {[]result.Event{of(func(t *result.TestRun) {
			t.State, t.Seconds, t.Message, t.Pods = result.TestFailed, 1e9, "no", 7
		})}, 0, []result.Measurement{someFigure}},
		"with other words": {
			[]result.Event{measured("a", 1, figure("two\nlines\x1b[31m", "password=hunter2-correct-horse"))}, 0,
			[]result.Measurement{figure("two lines", "password=[REDACTED]")},
		},
	} {
		dir := t.TempDir()
		f := create(t, dir)
		appendTo(t, f, slices.Concat(begun(), []result.Event{started("a"), smuggled}, c.events)...)
		f.Close()
		run := read(t, dir)
		if len(run.Problems) != c.problems || !slices.Equal(run.Attempts["a"][0].Measured, c.figures) {
			t.Errorf("%s: problems %q, figures %q", what, run.Problems, run.Attempts["a"][0].Measured)
		}
		one := smuggled.Test
		if a := run.Attempts["a"][0]; a.State != one.State || a.Seconds != one.Seconds || a.Message != one.Message || a.Pods != one.Pods {
			t.Errorf("%s: the attempt is another: %+v", what, a)
		}
	}

	dir := t.TempDir()
	f := create(t, dir)
	appendTo(t, f, slices.Concat(begun(), []result.Event{started("a"), ended("a", 1, result.TestPassed)})...)
	many := slices.Repeat([]result.Measurement{figure(strings.Repeat("é", 500), strings.Repeat("\u202e", 500))}, 40)
	for range 200 {
		appendTo(t, f, measured("a", 1, many...))
	}
	f.Close()
	run := read(t, dir)
	kept := run.Attempts["a"][0].Measured
	if len(kept) != result.MaxMeasurements || len(run.Problems) > 101 {
		t.Fatalf("%d figures are kept, with %d problems", len(kept), len(run.Problems))
	}
	for _, m := range kept {
		if len(m.String()) > 2*210 || !utf8.ValidString(m.String()) {
			t.Errorf("a figure of %d bytes: %.80q", len(m.String()), m)
		}
	}
	// What is written again, as a merge does, is read as it was.
	if again := result.FitMeasurements(kept); !slices.Equal(again, kept) {
		t.Errorf("%.80q becomes %.80q", kept, again)
	}
}
