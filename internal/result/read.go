package result

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
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

// Read reads the results folder dir. An error means that the folder is not a
// results folder at all, or one of another format.
func Read(dir string) (*Run, error) {
	r := &Run{
		Dir:        dir,
		Plan:       new(Plan),
		Manifest:   new(Manifest),
		Attempts:   map[string][]TestRun{},
		Unfinished: map[string]TestRun{},
		Decisions:  map[string]Decision{},
	}
	if err := readJSON(filepath.Join(dir, PlanFile), r.Plan); err != nil {
		return nil, fmt.Errorf("%s is not a results folder: %w", dir, err)
	}
	if r.Plan.Schema != PlanSchema {
		return nil, fmt.Errorf("%s: schema %d is not known: this op-readiness reads %d", filepath.Join(dir, PlanFile), r.Plan.Schema, PlanSchema)
	}
	if r.Plan.Shards > maxShards {
		return nil, fmt.Errorf("%s: it is cut into %d shards: at most %d are read", filepath.Join(dir, PlanFile), r.Plan.Shards, maxShards)
	}
	if err := readJSON(filepath.Join(dir, ManifestFile), r.Manifest); err != nil {
		return nil, fmt.Errorf("%s is not a results folder: %w", dir, err)
	}
	if r.Manifest.Schema != ManifestSchema {
		return nil, fmt.Errorf("%s: schema %d is not known: this op-readiness reads %d", filepath.Join(dir, ManifestFile), r.Manifest.Schema, ManifestSchema)
	}
	digest, err := r.Plan.ComputeDigest()
	if err != nil {
		return nil, err
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
	if err := r.readEvents(filepath.Join(dir, EventsFile)); err != nil {
		return nil, err
	}
	return r, nil
}

func readJSON(path string, v any) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
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

func (r *Run) readEvents(path string) error {
	tests := make(map[string]*PlannedTest, len(r.Plan.Tests))
	for i := range r.Plan.Tests {
		tests[r.Plan.Tests[i].ID] = &r.Plan.Tests[i]
	}
	batches := map[string]int{}
	return r.scan(path, func(e *Event, line int) { r.take(e, line, tests, batches) })
}

// scan calls take for every event that is well-formed, with its line number,
// and records what is wrong with the others.
func (r *Run) scan(path string, take func(e *Event, line int)) error {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		r.problemf("%s is missing: nothing was recorded", EventsFile)
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	rest := &io.LimitedReader{R: file, N: maxEventsFile + 1}
	lines := bufio.NewReaderSize(rest, maxEventLine)
	all := 0
	for n := 1; ; n++ {
		line, err := lines.ReadSlice('\n')
		tooLong := false
		for errors.Is(err, bufio.ErrBufferFull) {
			tooLong = true
			line, err = lines.ReadSlice('\n')
		}
		switch {
		case rest.N == 0:
			return fmt.Errorf("%s is over %d MiB", path, maxEventsFile>>20)
		case err == io.EOF && len(line) == 0 && !tooLong:
			return nil
		case err == io.EOF:
			r.problemf("%s: line %d was cut off: the run was killed while it wrote it", EventsFile, n)
			r.cutOff = len(r.Problems)
			return nil
		case err == nil && tooLong:
			r.problemf("%s: line %d is over %d bytes", EventsFile, n, maxEventLine)
			continue
		case err != nil:
			return fmt.Errorf("%s: line %d: %w", path, n, err)
		case n > maxEvents:
			return fmt.Errorf("%s has over %d lines", path, maxEvents)
		}
		if err := checkValues(line, maxEventValues); err != nil {
			r.problemf("%s: line %d: %v", EventsFile, n, err)
			continue
		}
		if all += values(line); all > maxAllEventValues {
			return fmt.Errorf("%s holds over %d values: a run writes far fewer", path, maxAllEventValues)
		}
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			r.problemf("%s: line %d: %v", EventsFile, n, err)
			continue
		}
		take(&e, n)
	}
}

func (r *Run) take(e *Event, line int, tests map[string]*PlannedTest, batches map[string]int) {
	missing := func(what string) { r.problemf("%s: line %d: %s without %s", EventsFile, line, e.Type, what) }
	switch e.Type {
	case RunStarted:
		r.Executions++
		r.Finished, r.Interrupted, r.OutOfTime = false, false, false
	case RunFinished:
		r.Finished, r.Interrupted, r.OutOfTime = true, e.Interrupted, e.OutOfTime
	case CaseDecided:
		if e.Case == nil {
			missing("a case")
			return
		}
		r.Decisions[e.Case.ID] = *e.Case
	case BatchStarted, BatchSuite, BatchFinished:
		if e.Batch == nil {
			missing("a batch")
			return
		}
		i, ok := batches[e.Batch.ID]
		if !ok {
			i = len(r.Batches)
			batches[e.Batch.ID] = i
			r.Batches = append(r.Batches, Batch{})
		}
		mergeBatch(&r.Batches[i], e.Batch)
	case TestStarted, TestFinished:
		if e.Test == nil {
			missing("a test")
			return
		}
		planned := tests[e.Test.ID]
		switch {
		case planned == nil:
			r.problemf("%s: line %d: test %q is not in the plan", EventsFile, line, Cut(e.Test.ID, 100))
			return
		case !r.Merged() && planned.Shard != r.Manifest.Shard:
			r.problemf("%s: line %d: test %s belongs to shard %d, and this is shard %d", EventsFile, line, e.Test.ID, planned.Shard, r.Manifest.Shard)
			return
		}
		if i, known := batches[e.Test.Batch]; known && r.Batches[i].Phase != "" && r.Batches[i].Conditions != planned.Conditions {
			r.problemf("%s: line %d: test %s is planned %q, and ran in a batch %q", EventsFile, line, e.Test.ID, planned.Conditions, r.Batches[i].Conditions)
		}
		if e.Type == TestStarted {
			r.Unfinished[e.Test.ID] = *e.Test
			return
		}
		switch e.Test.State {
		case TestPassed, TestFailed, TestSkipped, TestError:
		default:
			r.problemf("%s: line %d: unknown state %q", EventsFile, line, Cut(string(e.Test.State), 100))
			return
		}
		switch {
		case e.Test.Seconds < 0, e.Test.Seconds > maxSeconds:
			r.problemf("%s: line %d: test %s took %g seconds", EventsFile, line, e.Test.ID, e.Test.Seconds)
			e.Test.Seconds = 0
		case len(r.Attempts[e.Test.ID]) == maxAttempts:
			r.problemf("%s: line %d: test %s has over %d attempts", EventsFile, line, e.Test.ID, maxAttempts)
			return
		}
		for _, earlier := range r.Attempts[e.Test.ID] {
			if earlier.Attempt == e.Test.Attempt {
				r.problemf("%s: line %d: attempt %d of test %s finished twice", EventsFile, line, e.Test.Attempt, e.Test.ID)
			}
		}
		delete(r.Unfinished, e.Test.ID)
		r.Attempts[e.Test.ID] = append(r.Attempts[e.Test.ID], *e.Test)
	case SuiteFailed:
		if e.Suite == nil {
			missing("a suite failure")
			return
		}
		r.Suites = append(r.Suites, *e.Suite)
	case PodObserved:
		if e.Pod == nil {
			missing("a pod")
			return
		}
		r.checkPod(e.Pod, line)
		r.Pods = append(r.Pods, *e.Pod)
	default:
		r.problemf("%s: line %d: unknown event %q", EventsFile, line, Cut(string(e.Type), 100))
	}
}

// checkPod holds what was observed of a pod against what is known of its node. A
// node that is not known may have joined later.
func (r *Run) checkPod(p *Pod, line int) {
	shard := 0
	if t := r.Plan.Test(p.Test); t != nil {
		shard = t.Shard
	}
	m := r.ManifestOf(shard)
	if m == nil || p.Node == "" {
		return
	}
	for i := range m.Cluster.Nodes {
		n := &m.Cluster.Nodes[i]
		if n.Name != p.Node {
			continue
		}
		if p.OS != "" && p.OS != n.OS || p.Simulated != n.Simulated {
			r.problemf("%s: line %d: pod %s was on node %s, %s, and %s has that node as %s", EventsFile, line, Cut(p.Name, 100), Cut(p.Node, 100), kind(p.OS, p.Simulated), ManifestFile, kind(n.OS, n.Simulated))
		}
		return
	}
}

func kind(os specs.OS, simulated bool) string {
	name := cmp.Or(string(os), "of an unknown system")
	if simulated {
		name += " and simulated"
	}
	return Cut(name, 100)
}

// mergeBatch adds to b what a later event of the same batch tells.
func mergeBatch(b, later *Batch) {
	merged := *later
	if later.PID == 0 {
		merged.PID, merged.PIDStart = b.PID, b.PIDStart
	}
	if later.SuiteRunID == "" {
		merged.SuiteRunID = b.SuiteRunID
	}
	if later.Phase == "" {
		merged.Phase, merged.Conditions, merged.Tests, merged.Log = b.Phase, b.Conditions, b.Tests, b.Log
	}
	*b = merged
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
