package result

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// describe makes the manifest of the whole.
func (m *merge) describe() {
	whole := *m.newest().first().Manifest
	whole.Shards, whole.Problems, whole.Notes, whole.Runs, whole.Locks, whole.Pulls = nil, nil, nil, nil, nil, nil
	whole.Shard, whole.Attempt, whole.PlanDigest = 0, 1, m.plan.Digest
	whole.Reopen()
	for _, g := range m.groups {
		for _, s := range g.sources {
			m.account(&whole, g, s)
		}
	}
	slices.SortFunc(whole.Shards, func(a, b Manifest) int { return cmp.Compare(a.Shard, b.Shard) })
	problems, notes := m.differences()
	whole.Problems = append(whole.Problems, problems...)
	if !m.alone() {
		m.combine(&whole)
	}
	whole.Notes = append(whole.Notes, notes...)
	m.manifest = &whole
}

// account adds what a source tells of itself.
func (m *merge) account(whole *Manifest, g *group, s *source) {
	one := s.run.Manifest
	if one.Started.Before(whole.Started) {
		whole.Started = one.Started
	}
	if m.alone() {
		whole.Attempt = max(whole.Attempt, one.Attempt)
	}
	for _, ended := range s.run.ends() {
		if ended.Finished.After(whole.Finished) {
			whole.Finished = ended.Finished
		}
		if n := m.shardOf(g, ended.Shard); n > 0 && s.newest {
			ended.Shard = n
			whole.Shards = append(whole.Shards, ended)
		}
	}
	own := s.problems(m.executionName(g, s))
	if m.counts(g) {
		whole.Problems = append(whole.Problems, own...)
	} else {
		whole.Notes = append(whole.Notes, own...)
	}
}

// counts reports whether a run accounts for anything.
func (m *merge) counts(g *group) bool { return m.alone() || len(g.cases) > 0 }

// shardOf is the shard of the plan that a run's own became; 0 where it is not in
// the plan.
func (m *merge) shardOf(g *group, shard int) int {
	if m.alone() {
		return shard
	}
	return g.shards[shard]
}

// executionName names an execution for people.
func (m *merge) executionName(g *group, s *source) string {
	one := s.run.Manifest
	shard := fmt.Sprintf("shard %d (attempt %d)", one.Shard, one.Attempt)
	switch {
	case m.alone():
		return shard
	case s.run.Merged() || g.plan().Shards == 1:
		return g.String()
	}
	return g.String() + ", " + shard
}

// problems are those of a source, without what is found out anew for the shards
// that count.
func (s *source) problems(name string) []string {
	found := slices.Clone(s.run.Problems)
	if !s.newest && s.run.cutOff > 0 {
		// It was killed, and run again.
		found = slices.Delete(found, s.run.cutOff-1, s.run.cutOff)
	}
	if s.run.Merged() {
		anew := &Run{Plan: s.run.Plan, Manifest: new(*s.run.Manifest)}
		anew.Manifest.Problems = nil
		anew.checkShards()
		found = slices.DeleteFunc(found, func(p string) bool { return slices.Contains(anew.Problems, p) })
	}
	for i, p := range found {
		found[i] = name + ": " + p
	}
	return found
}

// ends are the manifests of a run's executions, with how the events say that
// they ended: these know better than the manifest, which is written after them.
func (r *Run) ends() []Manifest {
	if r.Merged() {
		return slices.Clone(r.Manifest.Shards)
	}
	one := *r.Manifest
	switch {
	case !r.Finished:
		one.Finished = time.Time{}
	case one.Finished.IsZero():
		one.Finished = one.Started
	}
	one.Interrupted, one.OutOfTime = r.Interrupted, r.OutOfTime
	return []Manifest{one}
}

// combine tells of several runs which they are, and what of them counts.
func (m *merge) combine(whole *Manifest) {
	whole.Target, whole.Settings = Target{}, Settings{}
	whole.Source = m.source()
	ids := sha256.New()
	for _, g := range m.groups {
		fmt.Fprintf(ids, "%d:%s", len(g.id), g.id)
		from := g.first().name()
		if n := len(g.sources) - 1; n > 0 {
			from += fmt.Sprintf(" and %d more", n)
		}
		first := 0
		for _, n := range g.shards {
			if first == 0 || n < first {
				first = n
			}
		}
		whole.Runs = append(whole.Runs, MergedRun{
			RunID: g.id, PlanDigest: g.plan().Digest, From: from, Source: g.first().Manifest.Source, Started: g.started(),
			Cases: len(g.cases), FirstShard: first, Shards: len(g.shards),
		})
	}
	whole.RunID = "runs-" + hex.EncodeToString(ids.Sum(nil))[:12]
	whole.Notes = slices.Concat(m.replaced(), m.uncovered(), whole.Notes)
}

// source is what all runs say of what was tested.
func (m *merge) source() Source {
	out := m.newest().first().Manifest.Source
	for _, g := range m.groups {
		s := &g.first().Manifest.Source
		keep := func(field *string, value string) {
			if *field != value {
				*field = ""
			}
		}
		keep(&out.System, s.System)
		keep(&out.Job, s.Job)
		keep(&out.Build, s.Build)
		keep(&out.URL, s.URL)
		out.Repository, out.Commit, out.Pull = cmp.Or(out.Repository, s.Repository), cmp.Or(out.Commit, s.Commit), cmp.Or(out.Pull, s.Pull)
	}
	return out
}

// execution is one whose results count.
type execution struct {
	name     string
	plan     *Plan
	manifest *Manifest
}

// executions are those of the sources that count, each shard of one that was
// merged before by itself.
func (m *merge) executions() []execution {
	var all []execution
	for _, g := range m.groups {
		if !m.counts(g) {
			continue
		}
		for _, s := range g.sources {
			for _, one := range s.run.Manifests() {
				name := m.executionName(g, s)
				if s.run.Merged() && s.run.Plan.Shards > 1 {
					name += fmt.Sprintf(", shard %d (attempt %d)", one.Shard, one.Attempt)
				}
				all = append(all, execution{name, g.plan(), one})
			}
		}
	}
	return all
}

// differences are what sets executions apart that should be alike, and what is
// only to be known of that.
func (m *merge) differences() (problems, notes []string) {
	all := m.executions()
	if len(all) == 0 {
		return nil, nil
	}
	known := slices.ContainsFunc(all, func(e execution) bool { return e.manifest.Source.Commit != "" })
	if !known && !m.alone() {
		notes = append(notes, "No run says which commit it tested: that they belong together is the word of whoever merged them.")
	}
	last, suite := all[len(all)-1], all[0]
	for _, e := range all {
		if e.manifest.SuiteHash != "" {
			suite = e
		}
	}
	for _, e := range all {
		// One that has no test of op-readiness.test is of any.
		if e.manifest.SuiteHash != "" {
			p, _ := unequal(e, suite, func(e execution) []property { return suiteOf(e.manifest) })
			problems = append(problems, p...)
		}
		if known && e.manifest.Source.Commit == "" {
			problems = append(problems, fmt.Sprintf("%s does not say which commit it tested, and others do", e.name))
		}
		if !m.alone() && e.manifest.Started.IsZero() {
			problems = append(problems, fmt.Sprintf("%s does not say when it started, so whether it is the newest is not known", e.name))
		}
		p, n := e.unlike(last, m.alone())
		problems, notes = append(problems, p...), append(notes, n...)
	}
	return problems, notes
}

// unlike says in what an execution differs from another. Those of one run have no
// reason to be of different versions.
func (e execution) unlike(other execution, oneRun bool) (problems, notes []string) {
	a, b := e.manifest, other.manifest
	if a.Source.Commit != "" && b.Source.Commit != "" && a.Source.Commit != b.Source.Commit {
		problems = append(problems, fmt.Sprintf("%s tested commit %s, and %s tested %s", e.name, Cut(shown.Line(a.Source.Commit), 100), other.name, Cut(shown.Line(b.Source.Commit), 100)))
	}
	if a.ToolVersion != b.ToolVersion {
		text := fmt.Sprintf("%s was made by op-readiness %s, and %s by %s", e.name, Cut(shown.Line(a.ToolVersion), 100), other.name, Cut(shown.Line(b.ToolVersion), 100))
		switch digest := e.plan.StandardDigest; {
		case oneRun:
			problems = append(problems, text+": run all shards with the same version")
		case digest != "" && digest == other.plan.StandardDigest:
			notes = append(notes, text+"; their standard is the same.")
		default:
			problems = append(problems, text+": whether their standard is the same is not known")
		}
	}
	p, n := unequal(e, other, func(e execution) []property { return kindOf(e.plan, e.manifest) })
	return append(problems, p...), append(notes, n...)
}

// unequal says in which of their properties two executions differ.
func unequal(a, b execution, of func(execution) []property) (problems, notes []string) {
	own := of(a)
	for i, k := range of(b) {
		if own[i].value == k.value {
			continue
		}
		text := fmt.Sprintf("%s is %s in %s, and %s in %s", k.what, Cut(shown.Line(own[i].value), 200), a.name, Cut(shown.Line(k.value), 200), b.name)
		if k.hint {
			notes = append(notes, text+".")
		} else {
			problems = append(problems, "not of one kind: "+text)
		}
	}
	return problems, notes
}

// property is something in which clusters of one kind, tested alike, agree; or of
// which it is only to be known, where it is a hint, that they do not.
type property struct {
	what, value string
	hint        bool
}

// kindOf is the kind of an execution's cluster, and how it was tested: not how
// many nodes it has, nor their names and addresses.
func kindOf(p *Plan, m *Manifest) []property {
	f := &m.Cluster
	var kubelets, windows, linux, families []string
	for i := range f.Nodes {
		n := &f.Nodes[i]
		kubelets = append(kubelets, n.KubeletVersion)
		families = append(families, fmt.Sprint(len(n.PodCIDRs)))
		node := strings.Join(slices.DeleteFunc([]string{cmp.Or(n.WindowsBuild, n.OSImage), n.ContainerRuntime, n.Architecture}, func(s string) bool { return s == "" }), " ")
		if n.Simulated {
			node += " simulated"
		}
		if n.OS == specs.Windows {
			windows = append(windows, node)
		} else {
			linux = append(linux, node)
		}
	}
	class := ""
	if len(p.Tests) > 0 {
		class = p.Tests[0].Conditions.RuntimeClass
	}
	if slices.ContainsFunc(p.Tests, func(t PlannedTest) bool { return t.Conditions.RuntimeClass != class }) {
		class = ""
	}
	return []property{
		{what: "the version of Kubernetes", value: setOf(f.ServerVersion)},
		{what: "the version of e2e.test", value: setOf(m.E2EVersion)},
		{what: "the version of the kubelets", value: setOf(kubelets...)},
		{what: "what Windows nodes run", value: setOf(windows...)},
		{what: "what Linux nodes run", value: setOf(linux...)},
		{what: "the network", value: setOf(f.Networks...)},
		{what: "the number of a node's pod ranges", value: setOf(families...)},
		{what: "the set of runtime classes", value: setOf(f.RuntimeClasses...), hint: true},
		{what: "the set of API groups", value: setOf(f.APIGroups...), hint: true},
		{what: "the runtime class that tests ran under", value: cmp.Or(class, "that of each case")},
		{what: "what was declared", value: fmt.Sprintf("air-gapped %t, reboots allowed %t, without %v", m.Declared.AirGapped, m.Declared.Reboot, slices.Sorted(slices.Values(m.Declared.Without)))},
		{what: "how pods are steered", value: cmp.Or(m.Steering, "not at all")},
		{what: "the e2e provider", value: p.Provider},
		{what: "what e2e.test is given (--e2e-arg)", value: cmp.Or(strings.Join(m.Settings.E2EArgs, " "), "nothing"), hint: true},
	}
}

// suiteOf is which op-readiness.test ran, and how: its arguments change what its
// tests observe.
func suiteOf(m *Manifest) []property {
	return []property{
		{what: "the hash of op-readiness.test's sources", value: m.SuiteHash},
		{what: "what op-readiness.test is given (--suite-arg)", value: cmp.Or(strings.Join(m.Settings.SuiteArgs, " "), "nothing")},
	}
}

// setOf is a set for comparison and for people.
func setOf(values ...string) string {
	values = slices.Sorted(slices.Values(values))
	return cmp.Or(strings.Join(slices.DeleteFunc(slices.Compact(values), func(s string) bool { return s == "" }), ", "), "unknown")
}

// replaced says what of older runs counts no more, and what had failed there.
func (m *merge) replaced() []string {
	owner := map[string]*group{}
	for _, g := range m.groups {
		for id := range g.cases {
			owner[id] = g
		}
	}
	var notes []string
	for _, g := range m.groups {
		type key struct {
			category specs.Category
			by       *group
		}
		cases, failed := map[key]int{}, map[key][]string{}
		var order []key
		for i := range g.plan().Cases {
			planned := &g.plan().Cases[i]
			k := key{planned.Category, owner[planned.ID]}
			if k.by == g {
				continue
			}
			if cases[k]++; cases[k] == 1 {
				order = append(order, k)
			}
			if slices.ContainsFunc(planned.TestIDs, g.failed) {
				failed[k] = append(failed[k], Cut(shown.Line(planned.ID), 100))
			}
		}
		for _, k := range order {
			what := "nothing of them had failed"
			if ids := failed[k]; len(ids) > 0 {
				what = "had failed there: " + listed(ids)
			}
			if slices.ContainsFunc(g.sources, func(s *source) bool {
				return s.newest && !s.run.Merged() && s.run.Ended(s.run.Manifest.Shard) != EndedItself
			}) {
				what += "; it had not come to its end"
			}
			notes = append(notes, fmt.Sprintf("%s: %s replaces the older %s for %s; %s.", Cut(shown.Line(string(k.category)), 100), k.by, g, text.Count(cases[k], "case"), what))
		}
	}
	return notes
}

// failed reports whether the newest attempt of a test failed.
func (g *group) failed(id string) bool {
	for _, s := range slices.Backward(g.sources) {
		if attempts := s.run.Attempts[id]; len(attempts) > 0 {
			return attempts[len(attempts)-1].State == TestFailed
		}
	}
	return false
}

// uncovered names the categories of the standard of which no run, or only some
// of the cases, speak.
func (m *merge) uncovered() []string {
	if m.plan.Selection.Whole() {
		return nil
	}
	have := map[specs.Category]int{}
	rules := false
	for i := range m.plan.Cases {
		if m.plan.Cases[i].Kind == specs.Requirement {
			have[m.plan.Cases[i].Category]++
		}
		rules = rules || m.plan.Cases[i].Kind == specs.Rule
	}
	var none, part []string
	for _, category := range specs.Categories() {
		all := m.plan.Standard[category]
		switch n := have[category]; {
		case category == specs.ClusterRules && !rules:
			none = append(none, string(category))
		case n == 0 && all > 0:
			none = append(none, fmt.Sprintf("%s (%s)", category, text.Count(all, "requirement")))
		case n < all:
			part = append(part, fmt.Sprintf("%s (%d of %d)", category, n, all))
		}
	}
	var notes []string
	if len(none) > 0 {
		notes = append(notes, "No run covers "+strings.Join(none, ", ")+": the verdict says nothing of them, nor of the cluster as a whole.")
	}
	if len(part) > 0 {
		notes = append(notes, "Only some requirements are covered of "+strings.Join(part, ", ")+".")
	}
	return notes
}

// listed names a few.
func listed(ids []string) string {
	slices.Sort(ids)
	return text.Few(ids, maxNamed)
}
