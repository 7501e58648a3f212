//go:build unix

package lies

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
)

// edit keeps the events that keep returns true for, and changes them.
func (s *scene) edit(keep func(e *result.Event) bool) {
	s.t.Helper()
	var out bytes.Buffer
	path := filepath.Join(s.dir, result.EventsFile)
	data, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var e result.Event
		if err := json.Unmarshal(line, &e); err != nil {
			s.t.Fatal(err)
		}
		if keep(&e) {
			text, _ := json.Marshal(e)
			out.Write(append(text, '\n'))
		}
	}
	s.write(path, out.String())
}

func (s *scene) append(events ...result.Event) {
	s.t.Helper()
	file, err := os.OpenFile(filepath.Join(s.dir, result.EventsFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	defer file.Close()
	for _, e := range events {
		if err := json.NewEncoder(file).Encode(e); err != nil {
			s.t.Fatal(err)
		}
	}
}

// manifest edits run.json.
func (s *scene) manifest(change func(m *result.Manifest)) {
	s.t.Helper()
	editJSON(s.t, filepath.Join(s.dir, result.ManifestFile), change)
}

func editJSON[T any](t testing.TB, path string, change func(v *T)) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	v := new(T)
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatal(err)
	}
	change(v)
	writeJSON(t, path, v)
}

// rewritePlan changes the plan of a folder, and its digest with it.
func rewritePlan(t testing.TB, dir string, change func(p *result.Plan)) {
	t.Helper()
	digest := ""
	editJSON(t, filepath.Join(dir, result.PlanFile), func(p *result.Plan) {
		change(p)
		var err error
		if p.Digest, err = p.ComputeDigest(); err != nil {
			t.Fatal(err)
		}
		digest = p.Digest
	})
	editJSON(t, filepath.Join(dir, result.ManifestFile), func(m *result.Manifest) { m.PlanDigest = digest })
}

// judgeFolder is the verdict on a folder; "" where it is refused.
func judgeFolder(dir string) verdict.Verdict {
	done, err := result.Load(dir)
	if err != nil {
		return ""
	}
	return verdict.Judge(done).Verdict
}

// copyOf copies a results folder, without its logs.
func copyOf(t testing.TB, dir string) string {
	t.Helper()
	to := t.TempDir()
	for _, name := range []string{result.PlanFile, result.ManifestFile, result.EventsFile} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// beside does work for each number below n, on all processors.
func beside(n int, work func(worker, i int)) {
	var group sync.WaitGroup
	next := make(chan int)
	for worker := range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for i := range next {
				work(worker, i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
}
