package result

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
)

// The errors of [Merge] that say that folders do not belong together.
var (
	// ErrOtherRun says that they are not of one run.
	ErrOtherRun = errors.New("not of one run")
	// ErrApart says that they are of different things, so that no verdict can be
	// over them together.
	ErrApart = errors.New("they cannot have one verdict")
	// ErrTwice says that two hold the same attempt of the same shard.
	ErrTwice = errors.New("the same attempt of the same shard")
)

// maxRuns is how many runs are merged at most.
const maxRuns = 200

// Whole returns what runs tell together: the one run where it is whole by itself,
// else what [Merge] makes of them, of a lone shard, too.
func Whole(runs []*Run) (*Run, error) {
	if len(runs) == 1 && (runs[0].Merged() || runs[0].Plan.Shards <= 1) {
		return runs[0], nil
	}
	return Merge(runs, false)
}

// Merge makes one run of the folders of a run's shards, each with one or more
// attempts. Every finished attempt of a test is kept, in the order of the shard's
// attempts, so the newest one counts and what it healed stays visible; decisions
// are those of the shard's newest attempt. A test that an older attempt of its
// shard had run, and of which the newest has no result though it came to its end,
// is in error. A shard without a folder is not an error here: the result names
// what nothing accounts for.
//
// Folders of another run are refused ([ErrOtherRun]) unless acrossRuns says that
// they are meant: those of jobs that test a part of the standard each. For a case
// that several runs planned, the newest one counts then, by when it started. A
// test that failed in an older one keeps that failure as an earlier attempt, so
// that it is flaky where it passes in the newest, and has failed where that one
// has no answer. What passed in an older one counts for nothing. Runs of different
// commits, pull requests, repositories or standards are refused ([ErrApart]).
//
// Folders of another plan, and the same attempt of a shard twice ([ErrTwice]), are
// refused in any case. What sets executions apart that should be alike, such as
// their versions and the kind of their clusters, is a problem of the result.
//
// Nothing is written: see [Run.Save]. Until then the folders must stay.
func Merge(runs []*Run, acrossRuns bool) (*Run, error) {
	if len(runs) == 0 {
		return nil, errors.New("there is nothing to merge")
	}
	m := &merge{}
	for _, r := range runs {
		if err := m.add(r, acrossRuns); err != nil {
			return nil, err
		}
	}
	if err := m.check(acrossRuns); err != nil {
		return nil, err
	}
	slices.SortStableFunc(m.groups, func(a, b *group) int {
		return cmp.Or(a.started().Compare(b.started()), cmp.Compare(a.id, b.id))
	})
	for i, g := range m.groups {
		g.number = i + 1
		if err := g.sort(); err != nil {
			return nil, err
		}
	}
	if err := m.makePlan(); err != nil {
		return nil, err
	}
	m.describe()
	return m.replay()
}

// merge is a run in the making, of executions that are grouped by their run.
type merge struct {
	groups   []*group // oldest first
	plan     *Plan
	manifest *Manifest
}

// alone reports whether all is of one run, whose plan is the plan then.
func (m *merge) alone() bool { return len(m.groups) == 1 }

func (m *merge) newest() *group { return m.groups[len(m.groups)-1] }

// group is one run.
type group struct {
	id      string
	number  int // from 1, oldest first
	sources []*source
	// Where there are several groups: the cases that the run accounts for, which
	// shard of the plan each of its own became, the ids in the plan of its tests
	// that count, and those for which a test of a replaced case is an earlier
	// attempt.
	cases  map[string]bool
	shards map[int]int
	tests  map[string]string
	before map[string][]string
}

// source is a results folder: of one execution, or merged before.
type source struct {
	run *Run
	// newest says that no later attempt of its shard is there.
	newest bool
}

func (g *group) first() *Run { return g.sources[0].run }

func (g *group) plan() *Plan { return g.first().Plan }

// started is when the first of its executions started.
func (g *group) started() (at time.Time) {
	for i, s := range g.sources {
		if t := s.run.Manifest.Started; i == 0 || t.Before(at) {
			at = t
		}
	}
	return at
}

// String names the run for people: by its build, where that is known.
func (g *group) String() string {
	source := g.first().Manifest.Source
	if source.Job != "" && source.Build != "" {
		return fmt.Sprintf("build %s of %s", Cut(shown.Line(source.Build), 100), Cut(shown.Line(source.Job), 100))
	}
	return "run " + Cut(shown.Line(g.id), 100)
}

// name identifies a source in ids of batches and paths of logs.
func (m *merge) name(g *group, s *source) string {
	var parts []string
	if !m.alone() {
		parts = append(parts, fmt.Sprintf("run-%d", g.number))
	}
	if !s.run.Merged() {
		parts = append(parts, fmt.Sprintf("shard-%d-attempt-%d", s.run.Manifest.Shard, s.run.Manifest.Attempt))
	}
	return strings.Join(parts, "/")
}

// add sorts a folder to its run.
func (m *merge) add(r *Run, acrossRuns bool) error {
	apart := ErrOtherRun
	if acrossRuns {
		apart = ErrApart
	}
	digest, err := r.Plan.ComputeDigest()
	if err != nil {
		return err
	}
	if digest != r.Plan.Digest || r.Manifest.PlanDigest != digest {
		return fmt.Errorf("%w: %s: its %s was changed, or is not the one that was run (%s, run %s)", apart, r.name(), PlanFile, digest, Cut(shown.Line(r.Manifest.PlanDigest), 100))
	}
	i := slices.IndexFunc(m.groups, func(g *group) bool { return g.id == r.Manifest.RunID })
	if i < 0 {
		i = len(m.groups)
		m.groups = append(m.groups, &group{id: r.Manifest.RunID})
	}
	m.groups[i].sources = append(m.groups[i].sources, &source{run: r})
	return nil
}

// list names the runs, each with one of its folders.
func (m *merge) list() string {
	const most = 10
	var names []string
	for _, g := range m.groups[:min(most, len(m.groups))] {
		names = append(names, fmt.Sprintf("%s is of run %q", g.first().name(), Cut(shown.Line(g.id), 100)))
	}
	if more := len(m.groups) - most; more > 0 {
		names = append(names, fmt.Sprintf("and so on, %d more runs", more))
	}
	return strings.Join(names, ", ")
}

// check returns an error where the folders cannot be merged.
func (m *merge) check(acrossRuns bool) error {
	if len(m.groups) > maxRuns {
		return fmt.Errorf("there are %d runs: at most %d are combined", len(m.groups), maxRuns)
	}
	if !acrossRuns && !m.alone() {
		return fmt.Errorf("%w: %s: name the folders of one run", ErrOtherRun, m.list())
	}
	for i, g := range m.groups {
		for _, s := range g.sources {
			if err := m.fits(g, s.run); err != nil {
				return err
			}
		}
		for _, other := range m.groups[:i] {
			if err := apart(other, g); err != nil {
				return err
			}
		}
	}
	return nil
}

// fits returns an error where a folder is not a part of its run.
func (m *merge) fits(g *group, r *Run) error {
	first := g.first()
	switch {
	case len(r.Manifest.Runs) > 0:
		return fmt.Errorf("%s holds several runs already: name the builds or folders that it was made from", r.name())
	case r.Merged() && m.alone():
		return fmt.Errorf("%s was merged already: name the folders that it was made from", r.name())
	case r.Merged() && len(g.sources) > 1:
		other := first
		if other == r {
			other = g.sources[1].run
		}
		return fmt.Errorf("%w: %s was merged of run %s, and %s is of that run, too: name one of them", ErrTwice, r.name(), Cut(shown.Line(g.id), 100), other.name())
	case r.Plan.Digest != first.Plan.Digest:
		return fmt.Errorf("%w: %s has another plan than %s (%s, %s): shards must be run with the same selection, spec files and version", ErrOtherRun, r.name(), first.name(), r.Plan.Digest, first.Plan.Digest)
	case r.Merged():
		return nil
	case r.Manifest.Shard < 1 || r.Manifest.Shard > r.Plan.Shards:
		return fmt.Errorf("%s says that it is shard %d of a plan of %d", r.name(), r.Manifest.Shard, r.Plan.Shards)
	case r.Manifest.Attempt < 1:
		return fmt.Errorf("%s says that it is attempt %d: attempts count from 1", r.name(), r.Manifest.Attempt)
	}
	return nil
}

// apart returns an error where two runs are not of one commit and standard.
func apart(m, other *group) error {
	a, b := &m.first().Manifest.Source, &other.first().Manifest.Source
	differ := func(what, one, another, fix string) error {
		return fmt.Errorf("%w: %s (%s) %s %s, and %s (%s) %s: %s", ErrApart, m, m.first().name(), what, Cut(shown.Line(one), 100), other, other.first().name(), Cut(shown.Line(another), 100), fix)
	}
	switch p, q := m.plan(), other.plan(); {
	case a.Repository != "" && b.Repository != "" && !strings.EqualFold(a.Repository, b.Repository):
		return differ("is of repository", a.Repository, b.Repository, "name builds of one")
	case a.Pull != 0 && b.Pull != 0 && a.Pull != b.Pull:
		return differ("is of pull request", fmt.Sprint(a.Pull), fmt.Sprint(b.Pull), "name builds of one")
	case a.Commit != "" && b.Commit != "" && a.Commit != b.Commit:
		return differ("tested commit", a.Commit, b.Commit, "name builds of one commit, and test again what is older")
	case !sameStandard(p, q):
		return differ("has a standard of", standardName(p), standardName(q), "run both with the same spec files and the same op-readiness")
	}
	return nil
}

// sort puts the folders in the order of shards and attempts.
func (g *group) sort() error {
	slices.SortStableFunc(g.sources, func(a, b *source) int {
		p, q := a.run.Manifest, b.run.Manifest
		return cmp.Or(cmp.Compare(p.Shard, q.Shard), cmp.Compare(p.Attempt, q.Attempt))
	})
	for i, s := range g.sources {
		s.newest = i+1 == len(g.sources) || g.sources[i+1].run.Manifest.Shard != s.run.Manifest.Shard
		if i == 0 {
			continue
		}
		before := g.sources[i-1].run
		if a, b := before.Manifest, s.run.Manifest; a.Shard == b.Shard && a.Attempt == b.Attempt {
			return fmt.Errorf("%w: %s and %s are both attempt %d of shard %d", ErrTwice, before.name(), s.run.name(), b.Attempt, b.Shard)
		}
	}
	return nil
}
