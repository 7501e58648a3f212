package result_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
)

// What is small on disk and grows in memory is refused before it has grown.
func TestFoldersOfCountlessValuesAreRefused(t *testing.T) {
	const countless = 19_000_000 // empty objects, which are 57 MB
	for name, content := range map[string]string{
		result.PlanFile:     `{"schema": 1, "cases": [` + strings.Repeat("{},", countless) + `{}]}`,
		result.ManifestFile: `{"schema": 1, "shards": [` + strings.Repeat("{},", countless) + `{}]}`,
	} {
		dir := folderWith(t, map[string]string{name: content})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := result.Load(dir)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "are read") {
			t.Errorf("%s: %v, want one of its many values", name, err)
		}
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 1024 {
			t.Errorf("%s: reading it took %d MiB", name, took)
		}
	}
}

func TestEventsOfCountlessValuesAreAProblem(t *testing.T) {
	good := "{\"type\":\"run-started\"}\n" + `{"type":"test-finished","test":{"id":"a","name":"test a","attempt":1,"state":"error"}}` + "\n"
	long := `{"type":"pod","pod":{"test":"a","images":[` + strings.Repeat(`"",`, 100_000) + `""]}}` + "\n"
	run := read(t, folderWith(t, map[string]string{result.EventsFile: long + good}))
	if len(run.Problems) != 1 || !strings.Contains(run.Problems[0], "line 1: it holds 100") || len(run.Pods) > 0 || len(run.Attempts["a"]) != 1 {
		t.Errorf("problems %q, %d pods, attempts %v", run.Problems, len(run.Pods), run.Attempts)
	}
	// Below the limit of a line, and together above that of a file.
	many := strings.Repeat(`{"type":"x","y":[`+strings.Repeat("0,", 9_000)+"0]}\n", 2500)
	if _, err := result.Load(folderWith(t, map[string]string{result.EventsFile: many})); err == nil || !strings.Contains(err.Error(), "values") {
		t.Errorf("countless values on many lines: %v", err)
	}
}

// A message may hold any number of what separates values.
func TestTextIsNotCountedAsValues(t *testing.T) {
	line := "{\"type\":\"run-started\"}\n" + fmt.Sprintf(`{"type":"test-finished","test":{"id":"a","name":"test a","attempt":1,"state":"error","message":"\\\"%s"}}`+"\n", strings.Repeat("[{,", 100_000))
	if run := read(t, folderWith(t, map[string]string{result.EventsFile: line})); len(run.Problems) > 0 || len(run.Attempts["a"]) != 1 {
		t.Errorf("problems %.300q, attempts %d", run.Problems, len(run.Attempts["a"]))
	}
}
