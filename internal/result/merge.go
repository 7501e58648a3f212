package result

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ErrOtherRun says that folders do not belong together.
var ErrOtherRun = errors.New("not of one run")

// ErrTwice says that two folders hold the same attempt of the same shard.
var ErrTwice = errors.New("the same attempt of the same shard")

// maxLogs is how many files of one folder's logs are copied.
const maxLogs = 10_000

// Find returns the results folders among dirs and directly or two levels
// below them, sorted; artifacts that were downloaded together lie like that. A
// folder of dirs that holds none is an error.
func Find(dirs []string) ([]string, error) {
	var found []string
	for _, dir := range dirs {
		before := len(found)
		for _, pattern := range []string{"", "*", filepath.Join("*", "*")} {
			matches, err := globIn(dir, filepath.Join(pattern, ManifestFile))
			if err != nil {
				return nil, err
			}
			for _, m := range matches {
				found = append(found, filepath.Dir(m))
			}
			if pattern == "" && len(matches) > 0 {
				break
			}
		}
		if len(found) == before {
			return nil, fmt.Errorf("%s holds no results folder: none of it, and of what lies up to two levels below, has a %s", dir, ManifestFile)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// globIn matches a pattern below dir, whose own name is no pattern.
func globIn(dir, pattern string) ([]string, error) {
	matches, err := fs.Glob(os.DirFS(dir), filepath.ToSlash(pattern))
	if err != nil {
		return nil, fmt.Errorf("looking for results folders in %s: %w", dir, err)
	}
	for i, m := range matches {
		matches[i] = filepath.Join(dir, filepath.FromSlash(m))
	}
	return matches, nil
}

// Merge makes dir the results folder of a whole run from the folders of its
// shards, each with one or more attempts. Every finished attempt of a test is
// kept, in the order of the shard's attempts, so the newest one counts and what
// it healed stays visible; decisions, and failures outside of tests, are those
// of the shard's newest attempt. Logs are copied.
//
// Folders of another run or plan are refused ([ErrOtherRun]), and so is the
// same attempt of a shard twice ([ErrTwice]). A shard without a folder is not an
// error here: the result says what nothing accounts for.
//
// The caller closes the folder. Nothing is written when the error is one of
// the input.
func Merge(dir string, runs []*Run) (*Folder, error) { return mergeInto(dir, runs, true) }

// MergeEvents is [Merge] without the logs, for who only wants to know what the
// run came to.
func MergeEvents(dir string, runs []*Run) (*Folder, error) { return mergeInto(dir, runs, false) }

func mergeInto(dir string, runs []*Run, logs bool) (*Folder, error) {
	m, err := newMerge(runs)
	if err != nil {
		return nil, err
	}
	m.logs = logs
	folder, err := Create(dir, m.plan, m.manifest)
	if err != nil {
		return nil, err
	}
	if err := m.write(folder); err != nil {
		folder.Close()
		return nil, err
	}
	return folder, nil
}

// merge is what goes into a merged folder.
type merge struct {
	plan     *Plan
	manifest *Manifest
	logs     bool // are copied
	// sources are the folders in the order of shards and attempts.
	sources []source
}

type source struct {
	run *Run
	// newest says that no later attempt of the shard is there.
	newest bool
}

// name identifies the execution in ids of batches and paths of logs.
func (s *source) name() string {
	return fmt.Sprintf("shard-%d-attempt-%d", s.run.Manifest.Shard, s.run.Manifest.Attempt)
}

func newMerge(runs []*Run) (*merge, error) {
	if len(runs) == 0 {
		return nil, errors.New("there is nothing to merge")
	}
	first := runs[0]
	for _, r := range runs {
		a, b := r.Manifest, first.Manifest
		digest, err := r.Plan.ComputeDigest()
		switch {
		case err != nil:
			return nil, err
		case r.Merged():
			return nil, fmt.Errorf("%s was merged already: name the folders that it was made from", r.name())
		case a.RunID != b.RunID:
			return nil, fmt.Errorf("%w: %s is of run %q, and %s of run %q: name the folders of one run", ErrOtherRun, r.name(), Cut(a.RunID, 100), first.name(), Cut(b.RunID, 100))
		case digest != r.Plan.Digest || a.PlanDigest != digest:
			return nil, fmt.Errorf("%w: %s: its %s was changed, or is not the one that was run (%s, run %s)", ErrOtherRun, r.name(), PlanFile, digest, Cut(a.PlanDigest, 100))
		case digest != first.Plan.Digest:
			return nil, fmt.Errorf("%w: %s has another plan than %s (%s, %s): shards must be run with the same selection, spec files and version", ErrOtherRun, r.name(), first.name(), digest, first.Plan.Digest)
		case a.Shard < 1 || a.Shard > r.Plan.Shards:
			return nil, fmt.Errorf("%s says that it is shard %d of a plan of %d", r.name(), a.Shard, r.Plan.Shards)
		case a.Attempt < 1:
			return nil, fmt.Errorf("%s says that it is attempt %d: attempts count from 1", r.name(), a.Attempt)
		}
	}
	m := &merge{plan: first.Plan}
	for _, r := range runs {
		m.sources = append(m.sources, source{run: r})
	}
	slices.SortStableFunc(m.sources, func(a, b source) int {
		return cmp.Or(cmp.Compare(a.run.Manifest.Shard, b.run.Manifest.Shard), cmp.Compare(a.run.Manifest.Attempt, b.run.Manifest.Attempt))
	})
	for i := range m.sources {
		s := &m.sources[i]
		s.newest = i+1 == len(m.sources) || m.sources[i+1].run.Manifest.Shard != s.run.Manifest.Shard
		if i > 0 && m.sources[i-1].name() == s.name() {
			return nil, fmt.Errorf("%w: %s and %s are both attempt %d of shard %d", ErrTwice, m.sources[i-1].run.name(), s.run.name(), s.run.Manifest.Attempt, s.run.Manifest.Shard)
		}
	}
	m.describe()
	return m, nil
}

// describe makes the manifest of the whole.
func (m *merge) describe() {
	whole := *m.sources[0].run.Manifest
	whole.Shard, whole.Locks = 0, nil
	whole.Scope, whole.Verdict, whole.Outcomes, whole.ExitCode = "", "", nil, nil
	whole.Finished, whole.Interrupted, whole.OutOfTime = time.Time{}, false, false
	for i := range m.sources {
		s := &m.sources[i]
		one := *s.run.Manifest
		whole.Attempt = max(whole.Attempt, one.Attempt)
		if one.Started.Before(whole.Started) {
			whole.Started = one.Started
		}
		if one.Finished.After(whole.Finished) {
			whole.Finished = one.Finished
		}
		whole.Problems = append(whole.Problems, m.problems(s)...)
		if !s.newest {
			continue
		}
		// The events know better than the manifest, which is written after them.
		switch {
		case !s.run.Finished:
			one.Finished = time.Time{}
		case one.Finished.IsZero():
			one.Finished = one.Started
		}
		one.Interrupted, one.OutOfTime = s.run.Interrupted, s.run.OutOfTime
		whole.Shards = append(whole.Shards, one)
	}
	m.manifest = &whole
}

// problems are those of a folder, and what sets its execution apart from the
// first one.
func (m *merge) problems(s *source) []string {
	first, one := m.sources[0].run.Manifest, s.run.Manifest
	found := slices.Clone(s.run.Problems)
	if !s.newest && s.run.cutOff > 0 {
		// It was killed, and run again.
		found = slices.Delete(found, s.run.cutOff-1, s.run.cutOff)
	}
	differ := func(what, a, b string) {
		if a != b {
			found = append(found, fmt.Sprintf("%s %s, and the first shard has %s", what, Cut(a, 100), Cut(b, 100)))
		}
	}
	differ("the API server is", one.Cluster.ServerVersion, first.Cluster.ServerVersion)
	differ("e2e.test is", one.E2EVersion, first.E2EVersion)
	differ("the commit is", one.Source.Commit, first.Source.Commit)
	differ("what was declared is", fmt.Sprintf("%+v", one.Declared), fmt.Sprintf("%+v", first.Declared))
	for i, p := range found {
		found[i] = fmt.Sprintf("shard %d (attempt %d): %s", one.Shard, one.Attempt, p)
	}
	return found
}

func (m *merge) write(folder *Folder) error {
	if err := folder.Append(Event{Time: m.manifest.Started, Type: RunStarted}); err != nil {
		return err
	}
	offsets := map[string]int{} // attempts of a test in the folders before
	var decided []decision
	for i := range m.sources {
		s := &m.sources[i]
		if err := s.writeEvents(folder, offsets); err != nil {
			return err
		}
		if m.logs {
			if err := copyLogs(s.run, s.name(), folder); err != nil {
				return err
			}
		}
		if s.newest {
			decided = append(decided, s.decisions()...)
		}
	}
	// The last word on a case is taken, and its own shard knows best.
	shards := map[string]int{}
	for i := range m.plan.Cases {
		shards[m.plan.Cases[i].ID] = m.plan.Cases[i].Shard
	}
	slices.SortStableFunc(decided, func(a, b decision) int {
		own := func(d decision) int {
			if shards[d.event.Case.ID] == d.shard {
				return 1
			}
			return 0
		}
		return cmp.Compare(own(a), own(b))
	})
	for _, d := range decided {
		if err := folder.Append(d.event); err != nil {
			return err
		}
	}
	return folder.Append(Event{Time: m.manifest.Finished, Type: RunFinished})
}

type decision struct {
	shard int
	event Event
}

// decisions are what a source says of cases that it did not test.
func (s *source) decisions() []decision {
	var out []decision
	for _, id := range slices.Sorted(maps.Keys(s.run.Decisions)) {
		d := s.run.Decisions[id]
		out = append(out, decision{s.run.Manifest.Shard, Event{Time: s.run.Manifest.Started, Type: CaseDecided, Case: &d}})
	}
	return out
}

// writeEvents appends the events of a source, with ids and numbers that are
// unique in the whole. What [Read] found wrong with them was recorded before.
func (s *source) writeEvents(folder *Folder, offsets map[string]int) error {
	const chunk = 200
	var pending []Event
	var failed error
	flush := func() {
		if failed == nil && len(pending) > 0 {
			failed = folder.Append(pending...)
		}
		pending = pending[:0]
	}
	highest := map[string]int{}
	scratch := &Run{Manifest: s.run.Manifest}
	err := scratch.scan(filepath.Join(s.run.Dir, EventsFile), func(e *Event, _ int) {
		if !s.adapt(e, offsets, highest) {
			return
		}
		if pending = append(pending, *e); len(pending) == chunk {
			flush()
		}
	})
	flush()
	for id, n := range highest {
		offsets[id] = max(offsets[id], n)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, failed)
}

// adapt changes an event for the whole, and reports whether it belongs there.
func (s *source) adapt(e *Event, offsets, highest map[string]int) bool {
	switch {
	case e.Batch != nil && (e.Type == BatchStarted || e.Type == BatchSuite || e.Type == BatchFinished):
		e.Batch.ID = s.name() + "/" + e.Batch.ID
		if e.Batch.Log != "" {
			e.Batch.Log = path.Join(LogsDir, s.name(), strings.TrimPrefix(path.Clean("/"+filepath.ToSlash(e.Batch.Log)), "/"+LogsDir+"/"))
		}
		// The process is not one of this machine.
		e.Batch.PID, e.Batch.PIDStart = 0, 0
		return true
	case e.Test != nil && (e.Type == TestStarted || e.Type == TestFinished):
		if !s.runs(e.Test.ID) {
			return false
		}
		e.Test.Batch = s.name() + "/" + e.Test.Batch
		e.Test.Attempt += offsets[e.Test.ID]
		highest[e.Test.ID] = max(highest[e.Test.ID], e.Test.Attempt)
		return true
	case e.Type == PodObserved && e.Pod != nil && s.runs(e.Pod.Test):
		e.Pod.Attempt += offsets[e.Pod.Test]
		return true
	case e.Type == SuiteFailed && e.Suite != nil:
		e.Suite.Batch = s.name() + "/" + e.Suite.Batch
		return s.newest
	}
	return false
}

// runs reports whether a test is one of the source's shard.
func (s *source) runs(test string) bool {
	t := s.run.Plan.Test(test)
	return t != nil && t.Shard == s.run.Manifest.Shard
}

// copyLogs copies the regular files of a run's logs, below a folder of that name.
func copyLogs(run *Run, name string, folder *Folder) error {
	from, err := os.OpenRoot(filepath.Join(run.Dir, LogsDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("copying logs of %s: %w", run.name(), err)
	}
	defer from.Close()
	to := filepath.Join(folder.Path(LogsDir), name)
	copied := 0
	return fs.WalkDir(from.FS(), ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("copying logs of %s: %w", run.name(), err)
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		if copied++; copied > maxLogs {
			return fmt.Errorf("copying logs of %s: there are over %d files", run.name(), maxLogs)
		}
		return copyFile(from, file, filepath.Join(to, filepath.FromSlash(file)))
	})
}

func copyFile(root *os.Root, name, to string) error {
	in, err := root.Open(name)
	if err != nil {
		return fmt.Errorf("copying a log: %w", err)
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("copying a log: %w", err)
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("copying a log: %w", err)
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("copying log %s: %w", name, err)
	}
	return nil
}
