package result

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// ErrApart says that runs are of different things, so that no verdict can be
// over them together.
var ErrApart = errors.New("they cannot have one verdict")

// maxRuns is how many runs are combined at most.
const maxRuns = 200

// MergeRuns makes dir the results folder of several runs, each of a part of the
// standard: the jobs of a pull request that test a category each. The shards and
// attempts of each run are merged first, in folders below the empty folder temp,
// as [Merge] does.
//
// For a case that several runs planned, the newest one counts: by when it
// started. A test that failed in an older one keeps that failure as an earlier
// attempt, so that it is flaky where it passes in the newest, and has failed
// where that one has no answer. What passed in an older one counts for nothing.
//
// Runs of different commits, pull requests, repositories or standards are refused
// ([ErrApart]), and so is a run that is there twice ([ErrTwice]). Where clusters
// or versions are not of one kind, or a run does not say which commit it tested
// and others do, the result names that as a problem. What no run covers, and
// what was replaced, is in the notes.
//
// One run alone is merged as by [Merge]. The caller closes the folder.
func MergeRuns(dir, temp string, runs []*Run, logs bool) (*Folder, error) {
	groups := byRun(runs)
	if len(groups) == 1 {
		return mergeInto(dir, runs, logs)
	}
	if len(groups) > maxRuns {
		return nil, fmt.Errorf("there are %d runs: at most %d are combined", len(groups), maxRuns)
	}
	c := &combination{logs: logs}
	for i, group := range groups {
		run, err := wholeOf(group, filepath.Join(temp, fmt.Sprint(i)), logs)
		if err != nil {
			return nil, err
		}
		c.members = append(c.members, &member{run: run, shards: map[int]int{}, cases: map[string]bool{}, tests: map[string]string{}, before: map[string][]string{}})
	}
	if err := c.combine(); err != nil {
		return nil, err
	}
	folder, err := Create(dir, c.plan, c.manifest)
	if err != nil {
		return nil, err
	}
	if err := c.write(folder); err != nil {
		folder.Close()
		return nil, err
	}
	return folder, nil
}

// byRun sorts folders to the runs that they are of, in the order in which the
// runs are met first.
func byRun(runs []*Run) [][]*Run {
	var groups [][]*Run
	at := map[string]int{}
	for _, r := range runs {
		i, ok := at[r.Manifest.RunID]
		if !ok {
			i = len(groups)
			at[r.Manifest.RunID] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], r)
	}
	return groups
}

// wholeOf makes one run of the folders of a run.
func wholeOf(folders []*Run, temp string, logs bool) (*Run, error) {
	first := folders[0]
	for _, r := range folders {
		switch {
		case len(r.Manifest.Runs) > 0:
			return nil, fmt.Errorf("%s holds several runs already: name the builds or folders that it was made from", r.name())
		case r.Merged() && len(folders) > 1:
			other := folders[0]
			if other == r {
				other = folders[1]
			}
			return nil, fmt.Errorf("%w: %s was merged of run %s, and %s is of that run, too: name one of them", ErrTwice, r.name(), shown(r.Manifest.RunID, 100), other.name())
		}
		digest, err := r.Plan.ComputeDigest()
		if err != nil {
			return nil, err
		}
		if digest != r.Plan.Digest || r.Manifest.PlanDigest != digest {
			return nil, fmt.Errorf("%w: %s: its %s was changed, or is not the one that was run (%s, run %s)", ErrApart, r.name(), PlanFile, digest, shown(r.Manifest.PlanDigest, 100))
		}
	}
	if len(folders) == 1 && (first.Merged() || first.Plan.Shards == 1 && first.Manifest.Shard == 1) {
		return first, nil
	}
	folder, err := mergeInto(temp, folders, logs)
	if err != nil {
		return nil, err
	}
	if err := folder.Close(); err != nil {
		return nil, err
	}
	run, err := Read(temp)
	if err != nil {
		return nil, err
	}
	run.Name = first.name()
	if n := len(folders) - 1; n > 0 {
		run.Name += fmt.Sprintf(" and %d more", n)
	}
	return run, nil
}

// shown is a text of a results folder for a message: cut, and without what a
// terminal could obey.
func shown(s string, limit int) string {
	return Cut(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s), limit)
}

// combination is what goes into the folder of several runs.
type combination struct {
	members  []*member // oldest first
	plan     *Plan
	manifest *Manifest
	logs     bool
}

// member is one of the runs.
type member struct {
	run    *Run
	number int // from 1, oldest first
	// cases are those that it accounts for, and shards which shard of the
	// combined plan its own became.
	cases  map[string]bool
	shards map[int]int
	// tests are the ids in the combined plan of the tests that count.
	tests map[string]string
	// before are the ids in the combined plan for which a test of a replaced
	// case is an earlier attempt.
	before map[string][]string
}

// testID is how [TestID] makes them. What is not like that could be made to look
// like another run's.
var testID = regexp.MustCompile(`^[0-9a-f]{12}$`)

// ownID is an id that no other run has.
func (m *member) ownID(id string) string { return id + "-" + m.name() }

func (m *member) name() string { return fmt.Sprintf("run-%d", m.number) }

// String names the run for people: by its build, where that is known.
func (m *member) String() string {
	source := m.run.Manifest.Source
	if source.Job != "" && source.Build != "" {
		return fmt.Sprintf("build %s of %s", shown(source.Build, 100), shown(source.Job, 100))
	}
	return "run " + shown(m.run.Manifest.RunID, 100)
}

func (c *combination) combine() error {
	slices.SortStableFunc(c.members, func(a, b *member) int {
		return cmp.Or(a.run.Manifest.Started.Compare(b.run.Manifest.Started), cmp.Compare(a.run.Manifest.RunID, b.run.Manifest.RunID))
	})
	for i, m := range c.members {
		m.number = i + 1
	}
	if err := c.together(); err != nil {
		return err
	}
	newest := c.newest()
	c.plan = &Plan{
		Schema: PlanSchema, KubernetesVersion: newest.run.Plan.KubernetesVersion, Provider: newest.run.Plan.Provider,
		Standard: newest.run.Plan.Standard, StandardDigest: newest.run.Plan.StandardDigest,
	}
	c.distribute()
	c.plan.Selection = c.selection()
	var err error
	if c.plan.Digest, err = c.plan.ComputeDigest(); err != nil {
		return err
	}
	c.describe()
	return nil
}

func (c *combination) newest() *member { return c.members[len(c.members)-1] }

// together returns an error where the runs are not of one commit and standard.
func (c *combination) together() error {
	for i, m := range c.members {
		for _, other := range c.members[:i] {
			if err := apart(other, m); err != nil {
				return err
			}
		}
	}
	return nil
}

func apart(m, other *member) error {
	a, b := &m.run.Manifest.Source, &other.run.Manifest.Source
	differ := func(what, one, another, mend string) error {
		return fmt.Errorf("%w: %s (%s) %s %s, and %s (%s) %s: %s", ErrApart, m, m.run.name(), what, shown(one, 100), other, other.run.name(), shown(another, 100), mend)
	}
	switch p, q := m.run.Plan, other.run.Plan; {
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

func sameStandard(p, q *Plan) bool {
	if p.KubernetesVersion == q.KubernetesVersion && p.StandardDigest != "" && q.StandardDigest != "" && p.StandardDigest != q.StandardDigest {
		return false
	}
	for _, category := range specs.Categories() {
		if p.Standard[category] != q.Standard[category] {
			return false
		}
	}
	return true
}

func standardName(p *Plan) string {
	n := 0
	for _, count := range p.Standard {
		n += count
	}
	digest := strings.TrimPrefix(p.StandardDigest, "sha256:")
	return strings.TrimSpace(fmt.Sprintf("%d requirements %s", n, digest[:min(12, len(digest))]))
}

// distribute gives each case to the newest run that planned it, and makes the
// combined plan's cases, tests and shards of what each run accounts for.
func (c *combination) distribute() {
	owner := map[string]*member{}
	for _, m := range c.members {
		for i := range m.run.Plan.Cases {
			owner[m.run.Plan.Cases[i].ID] = m
		}
	}
	taken := map[string]bool{}
	for _, m := range c.members {
		p := m.run.Plan
		shard := func(n int) int {
			if m.shards[n] == 0 {
				c.plan.Shards++
				m.shards[n] = c.plan.Shards
			}
			return m.shards[n]
		}
		needed, counts := map[int]bool{}, map[string]bool{}
		for i := range p.Cases {
			if owner[p.Cases[i].ID] != m {
				continue
			}
			m.cases[p.Cases[i].ID] = true
			needed[p.Cases[i].Shard] = true
			for _, id := range p.Cases[i].TestIDs {
				counts[id] = true
			}
		}
		for i := range p.Tests {
			if counts[p.Tests[i].ID] {
				needed[p.Tests[i].Shard] = true
			}
		}
		// Its shards keep their order.
		for n := 1; n <= p.Shards && len(m.shards) < len(needed); n++ {
			if needed[n] {
				shard(n)
			}
		}
		for _, t := range p.Tests {
			if !counts[t.ID] || m.tests[t.ID] != "" {
				continue
			}
			own := t.ID
			// Runs that share a test have an entry each: what one of them saw
			// shows nothing of the other's cluster.
			if taken[own] || !testID.MatchString(own) {
				t.ID = m.ownID(own)
			}
			taken[t.ID] = true
			m.tests[own] = t.ID
			t.Shard = shard(t.Shard)
			t.Cases = slices.DeleteFunc(slices.Clone(t.Cases), func(id string) bool { return !m.cases[id] })
			c.plan.Tests = append(c.plan.Tests, t)
		}
		for _, planned := range p.Cases {
			if !m.cases[planned.ID] {
				continue
			}
			planned.Shard = shard(planned.Shard)
			planned.TestIDs = slices.Clone(planned.TestIDs)
			for i, id := range planned.TestIDs {
				// One that the plan does not hold must not become another run's.
				planned.TestIDs[i] = cmp.Or(m.tests[id], m.ownID(id))
			}
			c.plan.Cases = append(c.plan.Cases, planned)
		}
	}
	for _, m := range c.members {
		for i := range m.run.Plan.Cases {
			planned := &m.run.Plan.Cases[i]
			newer := owner[planned.ID]
			if newer == m {
				continue
			}
			for _, id := range planned.TestIDs {
				if target := newer.tests[id]; target != "" && !slices.Contains(m.before[id], target) {
					m.before[id] = append(m.before[id], target)
				}
			}
		}
	}
	rank := func(p PlannedCase) int { return slices.Index(specs.Categories(), p.Category) }
	slices.SortStableFunc(c.plan.Cases, func(a, b PlannedCase) int { return cmp.Compare(rank(a), rank(b)) })
}

// selection is what the runs select together: the whole standard, where they
// have all categories, its rules included. It is of whole categories only
// where each case beyond them belongs to one that some run selected as a whole.
func (c *combination) selection() Selection {
	var out Selection
	var partial []*member
	for _, m := range c.members {
		s := &m.run.Plan.Selection
		out.Additional = out.Additional || s.Additional
		switch {
		case s.Whole():
			return Selection{Additional: out.Additional}
		case len(s.Cases)+len(s.Labels)+len(s.Capabilities) == 0:
			out.Categories = append(out.Categories, s.Categories...)
		default:
			partial = append(partial, m)
		}
	}
	rank := func(c specs.Category) int { return slices.Index(specs.Categories(), c) }
	slices.SortFunc(out.Categories, func(a, b specs.Category) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
	out.Categories = slices.Compact(out.Categories)
	if !slices.ContainsFunc(specs.Categories(), func(category specs.Category) bool {
		asked := c.plan.Standard[category] > 0 || category == specs.ClusterRules
		return asked && !slices.Contains(out.Categories, category)
	}) {
		return Selection{Additional: out.Additional}
	}
	for _, m := range partial {
		for i := range m.run.Plan.Cases {
			if !slices.Contains(out.Categories, m.run.Plan.Cases[i].Category) {
				out.Categories = nil
				for k := range c.plan.Cases {
					out.Cases = append(out.Cases, c.plan.Cases[k].ID)
				}
				return out
			}
		}
	}
	return out
}

// describe makes the manifest of the whole.
func (c *combination) describe() {
	whole := *c.newest().run.Manifest
	ids := sha256.New()
	whole.Shards, whole.Problems, whole.Notes, whole.Runs, whole.Locks = nil, nil, nil, nil, nil
	whole.Shard, whole.Attempt, whole.PlanDigest = 0, 1, c.plan.Digest
	whole.Scope, whole.Verdict, whole.Outcomes, whole.ExitCode = "", "", nil, nil
	whole.Finished, whole.Interrupted, whole.OutOfTime = time.Time{}, false, false
	whole.Target, whole.Settings = Target{}, Settings{}
	whole.Source = c.source()
	for _, m := range c.members {
		one := m.run.Manifest
		fmt.Fprintf(ids, "%d:%s", len(one.RunID), one.RunID)
		if one.Started.Before(whole.Started) {
			whole.Started = one.Started
		}
		first := 0
		for _, n := range m.shards {
			if first == 0 || n < first {
				first = n
			}
		}
		whole.Runs = append(whole.Runs, MergedRun{
			RunID: one.RunID, PlanDigest: one.PlanDigest, From: m.run.name(), Source: one.Source, Started: one.Started,
			Cases: len(m.cases), FirstShard: first, Shards: len(m.shards),
		})
		for _, ended := range m.run.ends() {
			if ended.Finished.After(whole.Finished) {
				whole.Finished = ended.Finished
			}
			if n := m.shards[ended.Shard]; n > 0 {
				ended.Shard = n
				whole.Shards = append(whole.Shards, ended)
			}
		}
		if own := m.problems(); len(m.cases) > 0 {
			whole.Problems = append(whole.Problems, own...)
		} else {
			whole.Notes = append(whole.Notes, own...)
		}
	}
	slices.SortFunc(whole.Shards, func(a, b Manifest) int { return cmp.Compare(a.Shard, b.Shard) })
	whole.RunID = "runs-" + hex.EncodeToString(ids.Sum(nil))[:12]
	differences, notes := c.differences()
	whole.Problems = append(whole.Problems, differences...)
	whole.Notes = slices.Concat(c.replaced(), c.uncovered(), notes, whole.Notes)
	c.manifest = &whole
}

// source is what all runs say of what was tested.
func (c *combination) source() Source {
	out := c.newest().run.Manifest.Source
	for _, m := range c.members {
		s := &m.run.Manifest.Source
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

// ends are the manifests of a run's executions, with how the events say that
// they ended.
func (r *Run) ends() []Manifest {
	var out []Manifest
	for _, m := range r.Manifests() {
		one := *m
		if !r.Merged() {
			switch {
			case !r.Finished:
				one.Finished = time.Time{}
			case one.Finished.IsZero():
				one.Finished = one.Started
			}
			one.Interrupted, one.OutOfTime = r.Interrupted, r.OutOfTime
		}
		out = append(out, one)
	}
	return out
}

// problems are those of a run, without what is found out anew for the shards
// that count.
func (m *member) problems() []string {
	anew := &Run{Plan: m.run.Plan, Manifest: new(Manifest)}
	if *anew.Manifest = *m.run.Manifest; m.run.Merged() {
		anew.Manifest.Problems = nil
		anew.checkShards()
	}
	var out []string
	for _, p := range m.run.Problems {
		if !slices.Contains(anew.Problems, p) {
			out = append(out, fmt.Sprintf("%s: %s", m, p))
		}
	}
	return out
}

// differences are what sets the runs that count apart, and what is only to be
// known of that.
func (c *combination) differences() (problems, notes []string) {
	var reference *member
	known := false
	for _, m := range c.members {
		known = known || m.run.Manifest.Source.Commit != ""
		if len(m.cases) > 0 {
			reference = m
		}
	}
	if !known {
		notes = append(notes, "No run says which commit it tested: that they belong together is the word of whoever merged them.")
	}
	for _, m := range c.members {
		if len(m.cases) == 0 {
			continue
		}
		if known && m.run.Manifest.Source.Commit == "" {
			problems = append(problems, fmt.Sprintf("%s does not say which commit it tested, and others do", m))
		}
		if m.run.Manifest.Started.IsZero() {
			problems = append(problems, fmt.Sprintf("%s does not say when it started, so whether it is the newest is not known", m))
		}
		a, b := m.run.Manifest, reference.run.Manifest
		if a.ToolVersion != b.ToolVersion {
			text := fmt.Sprintf("%s was made by op-readiness %s, and %s by %s", m, shown(a.ToolVersion, 100), reference, shown(b.ToolVersion, 100))
			if digest := m.run.Plan.StandardDigest; digest != "" && digest == reference.run.Plan.StandardDigest {
				notes = append(notes, text+"; their standard is the same.")
			} else {
				problems = append(problems, text+": whether their standard is the same is not known")
			}
		}
		own := kindOf(m.run.Plan, m.run.Manifests()...)
		for i, k := range kindOf(reference.run.Plan, reference.run.Manifests()...) {
			if own[i].value != k.value {
				problems = append(problems, fmt.Sprintf("not of one kind: %s is %s in %s, and %s in %s", k.what, shown(own[i].value, 200), m, shown(k.value, 200), reference))
			}
		}
	}
	return problems, notes
}

// property is something in which clusters of one kind, tested alike, agree.
type property struct{ what, value string }

func kindOf(p *Plan, manifests ...*Manifest) []property {
	var servers, suites, kubelets, windows, linux, networks, groups, classes, families, declared []string
	for _, m := range manifests {
		f := &m.Cluster
		servers = append(servers, f.ServerVersion)
		suites = append(suites, m.E2EVersion)
		networks = append(networks, strings.Join(slices.Sorted(slices.Values(f.Networks)), " + "))
		groups = append(groups, strings.Join(slices.Sorted(slices.Values(f.APIGroups)), " + "))
		names := "unknown"
		if f.RuntimeClasses != nil {
			names = strings.Join(slices.Sorted(slices.Values(f.RuntimeClasses)), " + ")
		}
		classes = append(classes, names)
		declared = append(declared, fmt.Sprintf("air-gapped %t, without %v", m.Declared.AirGapped, m.Declared.Without))
		for i := range f.Nodes {
			n := &f.Nodes[i]
			kubelets = append(kubelets, n.KubeletVersion)
			families = append(families, fmt.Sprintf("%d", len(n.PodCIDRs)))
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
	}
	class := ""
	if len(p.Tests) > 0 {
		class = p.Tests[0].Conditions.RuntimeClass
	}
	if slices.ContainsFunc(p.Tests, func(t PlannedTest) bool { return t.Conditions.RuntimeClass != class }) {
		class = ""
	}
	set := func(values []string) string {
		slices.Sort(values)
		return cmp.Or(strings.Join(slices.DeleteFunc(slices.Compact(values), func(s string) bool { return s == "" }), ", "), "unknown")
	}
	return []property{
		{"the version of Kubernetes", set(servers)}, {"the version of e2e.test", set(suites)}, {"the version of the kubelets", set(kubelets)},
		{"what Windows nodes run", set(windows)}, {"what Linux nodes run", set(linux)},
		{"the network", set(networks)}, {"the number of a node's pod ranges", set(families)},
		{"the set of runtime classes", set(classes)}, {"the set of API groups", set(groups)},
		{"the runtime class that tests ran under", cmp.Or(class, "that of each case")},
		{"what was declared", set(declared)}, {"the e2e provider", p.Provider},
	}
}

// replaced says what of older runs counts no more, and what had failed there.
func (c *combination) replaced() []string {
	owner := map[string]*member{}
	for _, m := range c.members {
		for id := range m.cases {
			owner[id] = m
		}
	}
	var notes []string
	for _, m := range c.members {
		type key struct {
			category specs.Category
			by       *member
		}
		cases, failed := map[key]int{}, map[key][]string{}
		var order []key
		for i := range m.run.Plan.Cases {
			planned := &m.run.Plan.Cases[i]
			k := key{planned.Category, owner[planned.ID]}
			if k.by == m {
				continue
			}
			if cases[k]++; cases[k] == 1 {
				order = append(order, k)
			}
			if slices.ContainsFunc(planned.TestIDs, m.run.failed) {
				failed[k] = append(failed[k], shown(planned.ID, 100))
			}
		}
		for _, k := range order {
			what := "nothing of them had failed"
			if ids := failed[k]; len(ids) > 0 {
				what = "had failed there: " + listed(ids)
			}
			if m.run.Ended(1) != EndedItself && !m.run.Merged() {
				what += "; it had not come to its end"
			}
			notes = append(notes, fmt.Sprintf("%s: %s replaces the older %s for %s; %s.", shown(string(k.category), 100), k.by, m, counted(cases[k], "case"), what))
		}
	}
	return notes
}

// failed reports whether a test failed in the end.
func (r *Run) failed(id string) bool {
	attempts := r.Attempts[id]
	return len(attempts) > 0 && attempts[len(attempts)-1].State == TestFailed
}

// counted is "1 case", "2 cases".
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// listed names a few.
func listed(ids []string) string {
	slices.Sort(ids)
	if len(ids) > maxNamed {
		return fmt.Sprintf("%s and %d more", strings.Join(ids[:maxNamed], ", "), len(ids)-maxNamed)
	}
	return strings.Join(ids, ", ")
}

// uncovered names the categories of the standard of which no run, or only some
// of the cases, speak.
func (c *combination) uncovered() []string {
	if c.plan.Selection.Whole() {
		return nil
	}
	have := map[specs.Category]int{}
	rules := false
	for i := range c.plan.Cases {
		if c.plan.Cases[i].Kind == specs.Requirement {
			have[c.plan.Cases[i].Category]++
		}
		rules = rules || c.plan.Cases[i].Kind == specs.Rule
	}
	var none, part []string
	for _, category := range specs.Categories() {
		all := c.plan.Standard[category]
		switch n := have[category]; {
		case category == specs.ClusterRules && !rules:
			none = append(none, string(category))
		case n == 0 && all > 0:
			none = append(none, fmt.Sprintf("%s (%s)", category, counted(all, "requirement")))
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

func (c *combination) write(folder *Folder) error {
	if err := folder.Append(Event{Time: c.manifest.Started, Type: RunStarted}); err != nil {
		return err
	}
	offsets := map[string]int{}
	for _, m := range c.members {
		if err := m.writeEvents(folder, offsets); err != nil {
			return err
		}
		if c.logs {
			if err := copyLogs(m.run, m.name(), folder); err != nil {
				return err
			}
		}
	}
	return folder.Append(Event{Time: c.manifest.Finished, Type: RunFinished})
}

// writeEvents appends those of a run's events that count, with ids and numbers
// of the combined plan.
func (m *member) writeEvents(folder *Folder, offsets map[string]int) error {
	var failed error
	highest := map[string]int{}
	err := (&Run{Manifest: m.run.Manifest}).scan(filepath.Join(m.run.Dir, EventsFile), func(e *Event, _ int) {
		for _, adapted := range m.adapt(e, offsets, highest) {
			if failed == nil {
				failed = folder.Append(adapted)
			}
		}
	})
	for id, n := range highest {
		offsets[id] = max(offsets[id], n)
	}
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, failed)
}

// adapt returns what becomes of an event.
func (m *member) adapt(e *Event, offsets, highest map[string]int) []Event {
	counts := len(m.cases) > 0
	switch {
	case e.Batch != nil && (e.Type == BatchStarted || e.Type == BatchSuite || e.Type == BatchFinished):
		e.Batch.ID = m.name() + "/" + e.Batch.ID
		if e.Batch.Log != "" {
			e.Batch.Log = path.Join(LogsDir, m.name(), strings.TrimPrefix(path.Clean("/"+filepath.ToSlash(e.Batch.Log)), "/"+LogsDir+"/"))
		}
		e.Batch.PID, e.Batch.PIDStart = 0, 0 // of another machine
		return []Event{*e}
	case e.Type == CaseDecided && e.Case != nil && m.cases[e.Case.ID]:
		return []Event{*e}
	case e.Type == SuiteFailed && e.Suite != nil && counts:
		e.Suite.Batch = m.name() + "/" + e.Suite.Batch
		return []Event{*e}
	case e.Test != nil && (e.Type == TestStarted || e.Type == TestFinished):
		e.Test.Batch = m.name() + "/" + e.Test.Batch
		return m.targets(e.Test.ID, e.Type == TestFinished && e.Test.State == TestFailed, func(id string) Event {
			test := *e.Test
			test.ID = id
			test.Attempt += offsets[id]
			highest[id] = max(highest[id], test.Attempt)
			adapted := *e
			adapted.Test = &test
			return adapted
		})
	case e.Type == PodObserved && e.Pod != nil:
		attempt := e.Pod.Attempt
		hasFailed := slices.ContainsFunc(m.run.Attempts[e.Pod.Test], func(a TestRun) bool { return a.Attempt == attempt && a.State == TestFailed })
		return m.targets(e.Pod.Test, hasFailed, func(id string) Event {
			pod := *e.Pod
			pod.Test = id
			pod.Attempt += offsets[id]
			adapted := *e
			adapted.Pod = &pod
			return adapted
		})
	}
	return nil
}

// targets makes events for the tests of the combined plan that a test of the
// run counts for: its own, and, where it failed, those of newer runs.
func (m *member) targets(id string, hasFailed bool, adapted func(id string) Event) []Event {
	var out []Event
	if own := m.tests[id]; own != "" {
		out = append(out, adapted(own))
	}
	if hasFailed {
		for _, later := range m.before[id] {
			out = append(out, adapted(later))
		}
	}
	return out
}
