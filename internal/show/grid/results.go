package grid

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/testgrid"
)

// isResults reports whether dir is a results folder, or holds those of shards.
func isResults(dir string) bool {
	if isBuild(dir) {
		return false // with results among its artifacts
	}
	if entries, err := os.ReadDir(dir); err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return isNumber(e.Name()) && isBuild(filepath.Join(dir, e.Name()))
	}) {
		return false // the builds of a job
	}
	found, err := result.Find([]string{dir})
	return err == nil && len(found) > 0
}

// OpenResults lays results folders out in memory as publishing them as a build
// of job would, and returns them as a source.
func OpenResults(name string, dirs []string, job string) (*Source, error) {
	results, err := testgrid.ReadResults(dirs)
	if err != nil {
		return nil, err
	}
	build, err := results.BuildID()
	if err != nil {
		return nil, err
	}
	j := testgrid.Job{Name: job, Type: testgrid.Periodic, Strategy: testgrid.StrategyExplicit}
	plan, err := testgrid.NewUploadPlan(&testgrid.Options{
		Job: j, Build: build, URL: func(key string) string { return "gs://" + localBucket + "/" + key },
	}, results, results.Started(&j, ""), results.Finished(nil, time.Now()))
	if err != nil {
		return nil, err
	}
	var store Memory
	for i := range plan.Objects {
		if err := store.take(&plan.Objects[i]); err != nil {
			return nil, err
		}
	}
	s := OfStore(name, localBucket+"/"+strings.TrimSuffix(j.BuildsDir(), "/"), &store)
	s.URL = func(string) string { return "" }
	if abs, err := filepath.Abs(dirs[0]); err == nil && len(dirs) == 1 {
		s.URL = func(string) string { return abs }
	}
	return s, nil
}

// take keeps an object of a plan; of what TestGrid does not read, only that it
// is there.
func (m *Memory) take(o *testgrid.Object) error {
	object := Object{Name: o.Key, Metadata: o.Metadata}
	if ext := path.Ext(o.Key); ext != ".json" && ext != ".xml" && ext != ".txt" {
		m.Put(object, nil)
		return nil
	}
	r, err := o.Open()
	if err != nil {
		return fmt.Errorf("reading %s: %w", o.Source, err)
	}
	defer r.Close()
	content, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("reading %s: %w", o.Source, err)
	}
	m.Put(object, content)
	return nil
}
