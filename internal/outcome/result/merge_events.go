package result

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// replay makes the run of the events of all sources.
func (m *merge) replay() (*Run, error) {
	r := newRun(m.plan, m.manifest)
	r.merge = m
	r.checkShards()
	events := newReplay(r)
	line := 0
	err := m.events(func(all ...Event) error {
		for i := range all {
			line++
			events.take(&all[i], line)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Save writes a run that [Merge] made into the results folder dir, and copies the
// logs. The caller closes the folder.
func (r *Run) Save(dir string) (*Folder, error) {
	if r.merge == nil {
		return nil, fmt.Errorf("%s has a folder already", r.name())
	}
	folder, err := Create(dir, r.Plan, r.Manifest)
	if err != nil {
		return nil, err
	}
	err = r.merge.events(folder.Append)
	for _, g := range r.merge.groups {
		for _, s := range g.sources {
			err = errors.Join(err, copyLogs(s.run, r.merge.name(g, s), folder))
		}
	}
	if err != nil {
		folder.Close()
		return nil, err
	}
	return folder, nil
}

// events calls take with the events of the whole: those of each source as an
// execution of its own, and then what the merge itself has to say.
func (m *merge) events(take func(...Event) error) error {
	counts := map[string]int{} // attempts of a test so far, by its id in the plan
	var decided, left []Event
	for _, g := range m.groups {
		for _, s := range g.sources {
			a := &adapter{merge: m, group: g, source: s, name: m.name(g, s), counts: counts, take: take}
			if err := a.all(); err != nil {
				return err
			}
			for _, suite := range s.run.Suites {
				if suite.Left() {
					left = append(left, Event{Time: m.manifest.Finished, Type: ClusterLeft, Suite: &suite})
				}
			}
		}
		decided = append(decided, m.decisions(g)...)
	}
	begin := Event{Time: m.manifest.Finished, Type: RunStarted}
	return take(slices.Concat([]Event{begin}, decided, []Event{{Time: m.manifest.Finished, Type: RunFinished}}, left)...)
}

// decisions are what the newest executions of a run say of the cases that they
// did not test: of each case its own shard, which knows best, or else another.
func (m *merge) decisions(g *group) []Event {
	own := map[string]int{}
	for i := range g.plan().Cases {
		own[g.plan().Cases[i].ID] = g.plan().Cases[i].Shard
	}
	chosen := map[string]Decision{}
	for _, s := range g.sources {
		for id, d := range s.run.Decisions {
			_, there := chosen[id]
			if shard, planned := own[id]; planned && s.newest && m.accounts(g, id) && (!there || shard == s.run.Manifest.Shard) {
				chosen[id] = d
			}
		}
	}
	var out []Event
	for _, id := range slices.Sorted(maps.Keys(chosen)) {
		d := chosen[id]
		out = append(out, Event{Time: m.manifest.Finished, Type: CaseDecided, Case: &d})
	}
	return out
}

// accounts reports whether a run accounts for a case.
func (m *merge) accounts(g *group, id string) bool { return m.alone() || g.cases[id] }

// adapter gives the events of a source ids and numbers of the whole.
type adapter struct {
	merge  *merge
	group  *group
	source *source
	name   string
	counts map[string]int
	take   func(...Event) error
	pods   []Event // of an attempt that has yet to finish
	err    error
}

// all passes on what of the source belongs to the whole. What is wrong with the
// source was noted when it was read.
func (a *adapter) all() error {
	root, err := os.OpenRoot(a.source.run.Dir)
	if err != nil {
		return fmt.Errorf("reading %s again: %w", a.source.run.name(), err)
	}
	defer root.Close()
	err = scan(root, func(e *Event, _ int) { a.adapt(e) }, func(string, bool) {})
	a.missing()
	return errors.Join(err, a.err)
}

func (a *adapter) pass(events ...Event) {
	if a.err == nil && len(events) > 0 {
		a.err = a.take(events...)
	}
}

func (a *adapter) adapt(e *Event) {
	switch e.Type {
	case RunStarted:
		a.pods = nil
		a.pass(*e)
	case BatchStarted, BatchSuite, BatchFinished:
		e.Batch.ID = a.batch(e.Batch.ID)
		if e.Batch.Log != "" {
			e.Batch.Log = path.Join(LogsDir, a.name, inLogs(e.Batch.Log))
		}
		e.Batch.PID, e.Batch.PIDStart = 0, 0 // of another machine
		a.pass(*e)
	case SuiteFailed:
		e.Suite.Batch = a.batch(e.Suite.Batch)
		a.pass(*e)
	case TestStarted:
		for _, id := range a.targets(e.Test.ID, false) {
			a.pass(a.test(e, id))
		}
	case PodObserved:
		a.pods = append(a.pods, *e)
	case TestFinished:
		for _, id := range a.targets(e.Test.ID, e.Test.State == TestFailed) {
			a.pass(append(a.podsOf(e.Test, id), a.test(e, id))...)
			a.counts[id]++
		}
		a.pods = nil
	case TestMeasured:
		for _, id := range a.targets(e.Test.ID, false) {
			measured := a.test(e, id)
			measured.Test.Attempt = a.counts[id]
			a.pass(measured)
		}
	}
}

// batch is the id of one of the source's batches in the whole.
func (a *adapter) batch(id string) string {
	if id == "" {
		return "" // of a test that never came to run
	}
	return path.Join(a.name, id)
}

// test is an event of a test as one of the test id of the plan.
func (a *adapter) test(e *Event, id string) Event {
	test := *e.Test
	test.ID, test.Batch, test.Attempt = id, a.batch(e.Test.Batch), a.counts[id]+1
	out := *e
	out.Test = &test
	return out
}

// podsOf are the pods that were observed of an attempt that has ended.
func (a *adapter) podsOf(ended *TestRun, id string) []Event {
	var out []Event
	for _, e := range a.pods {
		pod := *e.Pod
		// Those of another attempt are kept, for what is wrong with them to be seen.
		if pod.Test == ended.ID && pod.Attempt == ended.Attempt {
			pod.Test, pod.Attempt = id, a.counts[id]+1
		}
		e.Pod = &pod
		out = append(out, e)
	}
	return out
}

// targets are the tests of the plan that a test of the source counts for: its
// own, and, where it failed, those of newer runs.
func (a *adapter) targets(id string, failed bool) []string {
	r := a.source.run
	if !r.Merged() {
		if t := r.Plan.Test(id); t == nil || t.Shard != r.Manifest.Shard {
			return nil
		}
	}
	if a.merge.alone() {
		return []string{id}
	}
	var out []string
	if own := a.group.tests[id]; own != "" {
		out = append(out, own)
	}
	if failed {
		out = append(out, a.group.before[id]...)
	}
	return out
}

// missing ends the tests in error that an older attempt of the shard had run, and
// of which this one, the newest, has no result though it came to its end: what
// passed there does not stand for what was to run here.
func (a *adapter) missing() {
	r := a.source.run
	if r.Merged() || !a.source.newest || r.Ended(r.Manifest.Shard) != EndedItself {
		return
	}
	for i := range r.Plan.Tests {
		t := &r.Plan.Tests[i]
		undecided := func(id string) bool { _, decided := r.Decisions[id]; return !decided }
		if t.Shard != r.Manifest.Shard || len(r.Attempts[t.ID]) > 0 || !slices.ContainsFunc(t.Cases, undecided) {
			continue
		}
		for _, id := range a.targets(t.ID, false) {
			if a.counts[id] == 0 {
				continue
			}
			a.counts[id]++
			a.pass(Event{Time: r.Manifest.Finished, Type: TestFinished, Test: &TestRun{
				ID: id, Name: t.Name, Attempt: a.counts[id], State: TestError,
				Message: fmt.Sprintf("attempt %d of its shard ended and has no result of it", r.Manifest.Attempt),
			}})
		}
	}
}

// copyLogs copies a run's logs, below a folder of that name.
func copyLogs(run *Run, name string, folder *Folder) error {
	root, err := os.OpenRoot(run.Dir)
	if err != nil {
		return fmt.Errorf("copying logs of %s: %w", run.name(), err)
	}
	defer root.Close()
	err = eachLog(root, func(log string) error {
		return copyFile(root, log, folder.Path(path.Join(LogsDir, name, inLogs(log))))
	})
	if err != nil {
		return fmt.Errorf("copying logs of %s: %w", run.name(), err)
	}
	return nil
}

func copyFile(root *os.Root, name, to string) error {
	in, err := openRegular(root, name, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
