package result

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Limits of what [Read] accepts: far above what a run writes, and low enough
// that a hostile folder cannot exhaust memory.
const (
	maxJSONFile   = 64 << 20
	maxEventsFile = 256 << 20
	maxEventLine  = 1 << 20
	maxEvents     = 500_000
	maxShards     = 10_000
	maxAttempts   = 100 // of one test
	maxProblems   = 100
	// maxSeconds is far more than a test may take, and little enough for sums.
	maxSeconds = 30 * 24 * 60 * 60
)

// Run is what a results folder tells.
type Run struct {
	Dir string
	// Name is what messages call the folder; "" is Dir.
	Name     string
	Plan     *Plan
	Manifest *Manifest
	// Attempts are the finished attempts of each test, by [PlannedTest.ID],
	// in the order in which they finished.
	Attempts map[string][]TestRun
	// Unfinished are tests that started and did not finish, by id.
	Unfinished map[string]TestRun
	// Decisions are the cases that the run did not test, by case id.
	Decisions map[string]Decision
	Suites    []Suite
	// Batches are in the order in which they started, each with the newest
	// that is known of it.
	Batches []Batch
	Pods    []Pod
	// Finished says that the newest attempt at the run came to its end, and
	// Interrupted that a signal made it, OutOfTime that its time was up.
	Finished, Interrupted, OutOfTime bool
	// Executions is how often the run was started: once, and once for each
	// resume.
	Executions int
	// Problems are what is wrong with the folder without making it
	// unreadable; a verdict over it is inconclusive.
	Problems []string

	// merge is what the run was made by; nil where it was read.
	merge *merge
	// cutOff is how many problems there were when the last line of the events
	// turned out to be cut off, that one included; 0 where it was not.
	cutOff int
}

// name is what messages call the folder.
func (r *Run) name() string { return cmp.Or(r.Name, r.Dir) }

func (r *Run) problemf(format string, args ...any) {
	switch {
	case len(r.Problems) < maxProblems:
		r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
	case len(r.Problems) == maxProblems:
		r.Problems = append(r.Problems, "more problems than are listed here")
	}
}

// newRun is a run of which nothing is known but plan and manifest.
func newRun(p *Plan, m *Manifest) *Run {
	return &Run{Plan: p, Manifest: m, Attempts: map[string][]TestRun{}, Unfinished: map[string]TestRun{}, Decisions: map[string]Decision{}}
}

// Load reads the results folders in dirs, or up to two levels below them, as
// [Find] finds them, and returns what they tell: of several folders, which must be
// of one run, together, as [Merge] does. An error means that one is not a results
// folder at all, or one of another format, or that something in it is not a regular
// file; whatever else is wrong is a problem of the run.
func Load(dirs ...string) (*Run, error) {
	runs, err := LoadEach(dirs...)
	if err != nil {
		return nil, err
	}
	if len(runs) == 1 {
		return runs[0], nil
	}
	return Merge(runs, false)
}

// LoadEach is [Load] without putting the folders together.
func LoadEach(dirs ...string) ([]*Run, error) {
	found, err := Find(dirs)
	if err != nil {
		return nil, err
	}
	var runs []*Run
	for _, dir := range found {
		run, err := read(dir)
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	return runs, nil
}

// read reads one results folder.
func read(dir string) (*Run, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("%s is not a results folder: %w", dir, err)
	}
	defer root.Close()
	if err := checkFiles(root); err != nil {
		return nil, err
	}
	r := newRun(new(Plan), new(Manifest))
	r.Dir = dir
	if err := readJSON(root, PlanFile, r.Plan); err != nil {
		return nil, fmt.Errorf("%s is not a results folder: %w", dir, err)
	}
	if err := readJSON(root, ManifestFile, r.Manifest); err != nil {
		return nil, fmt.Errorf("%s is not a results folder: %w", dir, err)
	}
	if err := r.checkFormat(); err != nil {
		return nil, err
	}
	if err := r.checkPlan(); err != nil {
		return nil, err
	}
	events := newReplay(r)
	err = scan(root, events.take, func(text string, cutOff bool) {
		r.problemf("%s", text)
		if cutOff {
			r.cutOff = len(r.Problems)
		}
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// checkFormat returns an error where the folder is of a format that is not known.
func (r *Run) checkFormat() error {
	plan, manifest := filepath.Join(r.Dir, PlanFile), filepath.Join(r.Dir, ManifestFile)
	switch {
	case r.Plan.Schema != PlanSchema:
		return fmt.Errorf("%s: schema %d is not known: this op-readiness reads %d", plan, r.Plan.Schema, PlanSchema)
	case r.Plan.Shards > maxShards:
		return fmt.Errorf("%s: it is cut into %d shards: at most %d are read", plan, r.Plan.Shards, maxShards)
	case r.Plan.Check() != nil:
		return fmt.Errorf("%s: %w", plan, r.Plan.Check())
	case r.Manifest.Schema != ManifestSchema:
		return fmt.Errorf("%s: schema %d is not known: this op-readiness reads %d", manifest, r.Manifest.Schema, ManifestSchema)
	}
	return nil
}

// checkPlan finds out whether plan and manifest belong together.
func (r *Run) checkPlan() error {
	digest, err := r.Plan.ComputeDigest()
	if err != nil {
		return err
	}
	if digest != r.Plan.Digest {
		r.problemf("%s was changed: its digest is %s, and it says %s", PlanFile, digest, r.Plan.Digest)
	}
	if r.Manifest.PlanDigest != r.Plan.Digest {
		r.problemf("%s belongs to another plan: %s, and %s is %s", ManifestFile, r.Manifest.PlanDigest, PlanFile, r.Plan.Digest)
	}
	if r.Merged() {
		r.checkShards()
	} else if r.Manifest.Shard < 1 || r.Manifest.Shard > r.Plan.Shards {
		r.problemf("%s: shard %d is not one of the plan's %d", ManifestFile, r.Manifest.Shard, r.Plan.Shards)
	}
	return nil
}

func readJSON(root *os.Root, name string, v any) error {
	file, err := openRegular(root, name, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer file.Close()
	path := filepath.Join(root.Name(), name)
	data, err := io.ReadAll(io.LimitReader(file, maxJSONFile+1))
	if err != nil {
		return err
	}
	if len(data) > maxJSONFile {
		return fmt.Errorf("%s is over %d MiB", path, maxJSONFile>>20)
	}
	if err := checkValues(data, maxValues); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Sound reports whether what passed in a batch counts: its process has ended,
// ginkgo's report was reconciled with what it printed, and nothing failed in it
// outside of tests. The tests of any other batch have to run again.
func (r *Run) Sound(batch string) bool {
	return slices.ContainsFunc(r.Batches, func(b Batch) bool { return b.ID == batch && b.Exit != "" && b.Reconciled }) &&
		!slices.ContainsFunc(r.Suites, func(s Suite) bool { return s.Batch == batch })
}

// Standing returns the failures outside of tests that still count: those of
// batches in which a test ran last, and contradictions. Where all tests of a batch
// have run again since, what failed beside them counts no more; where all are on
// trial, it never does.
func (r *Run) Standing() []Suite {
	last, known, counts := map[string]bool{}, map[string]bool{}, map[string]bool{}
	trial := r.Plan.OnTrial()
	for id, attempts := range r.Attempts {
		for i, a := range attempts {
			known[a.Batch] = true
			last[a.Batch] = last[a.Batch] || i+1 == len(attempts)
			counts[a.Batch] = counts[a.Batch] || !trial[id]
		}
	}
	return slices.DeleteFunc(slices.Clone(r.Suites), func(s Suite) bool {
		return known[s.Batch] && (!counts[s.Batch] || !s.Contradiction && !last[s.Batch])
	})
}

// Durations returns how long the newest passing attempt of each test took, by
// test id.
func (r *Run) Durations() map[string]time.Duration {
	out := map[string]time.Duration{}
	for id, attempts := range r.Attempts {
		for _, a := range attempts {
			if a.State == TestPassed {
				out[id] = time.Duration(a.Seconds * float64(time.Second))
			}
		}
	}
	return out
}
