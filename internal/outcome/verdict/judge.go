package verdict

import (
	"fmt"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Judgement is what a run comes to.
type Judgement struct {
	Scope   Scope   `json:"scope"`
	Verdict Verdict `json:"verdict"`
	// Reasons say why the verdict is not "ready", the gravest first.
	Reasons []string `json:"reasons,omitempty"`
	// Beside are things to know beside the verdict that do not change it.
	Beside []string `json:"beside,omitempty"`
	// Declared are the features that the user says the cluster does not have.
	Declared []Declaration `json:"declared,omitempty"`
	// Interrupted says that a signal ended the run early.
	Interrupted bool   `json:"interrupted,omitempty"`
	Counts      Counts `json:"counts"`
	// Outcomes count the cases, but for trials, which decide nothing.
	Outcomes   map[Outcome]int  `json:"outcomes"`
	Trials     map[Outcome]int  `json:"trials,omitempty"`
	Categories []CategoryResult `json:"categories"`
	Cases      []CaseResult     `json:"cases"`
	Suites     []result.Suite   `json:"suiteFailures,omitempty"`
}

// ExitCode returns the exit code of a command that came to this judgement.
func (j *Judgement) ExitCode() int {
	if j.Interrupted {
		return ExitInterrupted
	}
	return j.Verdict.ExitCode()
}

// Counts stand beside every verdict: how many requirements of the standard
// were proven.
type Counts struct {
	// Proven fully, and Parts in part, of Total requirements that the
	// standard has in this scope, tested or not.
	Proven int `json:"proven"`
	Parts  int `json:"inPart"`
	Total  int `json:"total"`
}

// String returns "2 proven, 1 in part, of 7".
func (c Counts) String() string {
	return fmt.Sprintf("%d proven, %d in part, of %d", c.Proven, c.Parts, c.Total)
}

// CategoryResult is what a category comes to.
type CategoryResult struct {
	Category specs.Category  `json:"category"`
	Verdict  Verdict         `json:"verdict"`
	Gates    bool            `json:"gates"`
	Counts   Counts          `json:"counts"`
	Outcomes map[Outcome]int `json:"outcomes"`
	Trials   map[Outcome]int `json:"trials,omitempty"`
	Seconds  float64         `json:"seconds"`
}

// CaseResult is how one case ended.
type CaseResult struct {
	Case    *result.PlannedCase `json:"case"`
	Outcome Outcome             `json:"outcome"`
	Reason  string              `json:"reason,omitempty"`
	Seconds float64             `json:"seconds"`
	Tests   []TestResult        `json:"tests,omitempty"`
	// Evidence tells where the pods of each test's newest attempt ran; "" where
	// none were observed.
	Evidence string `json:"evidence,omitempty"`
	// Simulated says that pods of it were on simulated nodes: a pass shows
	// nothing of Windows then, and proves nothing.
	Simulated bool `json:"simulated,omitempty"`
	// Images are those used on Windows that the standard does not allow.
	Images []string `json:"images,omitempty"`
}

// count adds the outcome to those of cases, or of trials.
func (c *CaseResult) count(cases map[Outcome]int, trials *map[Outcome]int) {
	if c.Case.Kind != specs.Trial {
		cases[c.Outcome]++
		return
	}
	if *trials == nil {
		*trials = map[Outcome]int{}
	}
	(*trials)[c.Outcome]++
}

// Measured are the figures of the newest attempts of the case's tests.
func (c *CaseResult) Measured() []result.Measurement {
	var out []result.Measurement
	for i := range c.Tests {
		if attempts := c.Tests[i].Attempts; len(attempts) > 0 {
			out = append(out, attempts[len(attempts)-1].Measured...)
		}
	}
	return out
}

// SumsUp reports whether the case is a rule that sums other cases up.
func (c *CaseResult) SumsUp() bool { return c.Case.Kind == specs.Rule && sumsUp(c.Case.Check) }

// Blocks says in a few words how the case keeps its scope from being ready;
// "" where it does not.
func (c *CaseResult) Blocks() string {
	switch {
	case !c.Case.Gates(), c.Case.Check == CheckLinuxConformance && c.Outcome == NotTested:
		return ""
	case c.Outcome == Failed:
		return c.Case.ID + " failed"
	case c.Outcome == Unproven, c.Outcome == Error, c.Outcome == NotTested:
		return fmt.Sprintf("%s is %s", c.Case.ID, c.Outcome)
	}
	return ""
}

// TestResult is how one test of a case ended.
type TestResult struct {
	Test     *result.PlannedTest `json:"test"`
	Outcome  Outcome             `json:"outcome"`
	Reason   string              `json:"reason,omitempty"`
	Attempts []result.TestRun    `json:"attempts,omitempty"`
	// Observed tells of each attempt where its pods ran.
	Observed []Observation `json:"observed,omitempty"`
}

// Judge judges a run.
func Judge(run *result.Run) *Judgement {
	j := &judge{run: run, pods: podsOf(run), byID: make(map[string]*result.PlannedTest, len(run.Plan.Tests))}
	for i := range run.Plan.Tests {
		j.byID[run.Plan.Tests[i].ID] = &run.Plan.Tests[i]
	}
	out := &Judgement{Scope: scopeOf(run), Declared: declarations(run), Interrupted: run.Interrupted, Suites: run.Standing()}
	for i := range run.Plan.Cases {
		c := &run.Plan.Cases[i]
		if c.Kind != specs.Rule && out.Scope.holds(c) {
			out.Cases = append(out.Cases, j.judge(c))
		}
	}
	onTrial(out.Cases)
	standard := out.Scope.standard(run.Plan)
	tested := categories(standard, out.Cases)
	var rules []CaseResult
	for i := range run.Plan.Cases {
		c := &run.Plan.Cases[i]
		if c.Kind == specs.Rule && out.Scope.holds(c) {
			rules = append(rules, j.rule(c, out.Cases, tested))
		}
	}
	out.Cases = append(rules, out.Cases...)
	out.Categories = categories(standard, out.Cases)
	out.Outcomes = map[Outcome]int{}
	for i := range out.Cases {
		out.Cases[i].count(out.Outcomes, &out.Trials)
	}
	for _, c := range out.Categories {
		out.Counts.Proven += c.Counts.Proven
		out.Counts.Parts += c.Counts.Parts
	}
	for _, n := range standard {
		out.Counts.Total += n
	}
	out.conclude(run)
	return out
}

// onTrial says of the cases without a test which of the others is theirs, on trial.
func onTrial(cases []CaseResult) {
	trials := map[string]string{}
	for i := range cases {
		if c := cases[i].Case; c.Kind == specs.Trial {
			trials[c.Proves()] = c.ID
		}
	}
	for i := range cases {
		if c := &cases[i]; c.Outcome == NotImplemented && trials[c.Case.ID] != "" {
			c.Reason = fmt.Sprintf("no test that counts yet: %s is on trial", trials[c.Case.ID])
		}
	}
}

type judge struct {
	run  *result.Run
	pods map[attempt][]result.Pod
	byID map[string]*result.PlannedTest
	// void says why passes of a batch do not count; "" where they do.
	void map[string]string
}

// attempts are those of a test, in which a pass of a batch that is not sound is
// none, and whose messages say what happened meanwhile.
func (j *judge) attempts(id string) []result.TestRun {
	attempts := slices.Clone(j.run.Attempts[id])
	for i := range attempts {
		a := &attempts[i]
		a.Message = a.Why()
		if a.State != result.TestPassed {
			continue
		}
		if why := j.whyVoid(a.Batch); why != "" {
			a.State, a.Message = result.TestError, "it passed, which does not count: "+why
		}
	}
	return attempts
}

func (j *judge) whyVoid(batch string) string {
	if j.void == nil {
		j.void = map[string]string{}
	}
	why, known := j.void[batch]
	if !known && !j.run.Sound(batch) {
		why = "its process left no report of ginkgo's that agrees"
		for _, s := range j.run.Suites {
			if s.Batch == batch {
				why = fmt.Sprintf("%s of its batch failed: %s", s.Node, s.Message)
			}
		}
	}
	j.void[batch] = why
	return why
}

func (j *judge) judge(c *result.PlannedCase) CaseResult {
	out := CaseResult{Case: c}
	m := j.run.ManifestOf(c.Shard)
	if m == nil {
		out.Outcome, out.Reason = NotTested, fmt.Sprintf("shard %d, which accounts for it, has no results", c.Shard)
		return out
	}
	if outcome, reason := Decide(c, m); outcome != "" {
		out.Outcome, out.Reason = outcome, reason
		return out
	}
	if len(c.TestIDs) == 0 {
		out.Outcome, out.Reason = Error, "the plan has no test for it"
		return out
	}
	var pods []result.Pod
	for _, id := range c.TestIDs {
		t := j.test(id)
		for _, a := range t.Attempts {
			out.Seconds += a.Seconds
		}
		if n := len(t.Observed); n > 0 {
			pods = append(pods, t.Observed[n-1].Pods...)
		}
		out.Tests = append(out.Tests, t)
	}
	out.Evidence = describe(pods)
	out.Simulated = slices.ContainsFunc(pods, func(p result.Pod) bool { return p.Simulated })
	worst := out.Tests[0]
	for _, t := range out.Tests[1:] {
		if severity(t.Outcome) > severity(worst.Outcome) {
			worst = t
		}
	}
	out.Outcome, out.Reason = worst.Outcome, worst.Reason
	if out.Outcome.Good() {
		audit(&out)
	}
	return out
}

// severity orders the outcomes of tests: the worst one is the case's.
func severity(o Outcome) int {
	return slices.Index([]Outcome{Passed, Flaky, NotTested, Error, Failed}, o)
}

func (j *judge) test(id string) TestResult {
	t := j.byID[id]
	if t == nil {
		return TestResult{
			Test:    &result.PlannedTest{ID: id, Name: id},
			Outcome: Error,
			Reason:  "the plan names a test that it does not hold",
		}
	}
	out := TestResult{Test: t, Attempts: j.attempts(id)}
	out.Observed = j.observed(id, out.Attempts)
	if len(out.Attempts) == 0 {
		_, started := j.run.Unfinished[id]
		ended := j.run.Ended(t.Shard)
		switch {
		case started:
			out.Outcome, out.Reason = Error, "it was running when the run was killed"
		case ended == result.EndedItself:
			out.Outcome, out.Reason = Error, "the run ended and has no result of it"
		case ended == result.EndedOutOfTime:
			out.Outcome, out.Reason = NotTested, "the run's time was up before its turn"
		default:
			out.Outcome, out.Reason = NotTested, "the run ended before its turn"
		}
		return out
	}
	// The newest attempt counts. A failure before it makes a pass flaky, and is
	// not undone by an attempt that did not come to an answer.
	last := out.Attempts[len(out.Attempts)-1]
	failed := last
	for _, a := range out.Attempts {
		if a.State == result.TestFailed {
			failed = a
		}
	}
	switch {
	case last.State == result.TestPassed && failed.State == result.TestFailed:
		out.Outcome, out.Reason = Flaky, fmt.Sprintf("passed in attempt %d%s: %s", last.Attempt, j.after(out.Attempts), failed.Message)
	case last.State == result.TestPassed:
		out.Outcome = Passed
	case failed.State == result.TestFailed:
		out.Outcome, out.Reason = Failed, failed.Message
	case last.State == result.TestSkipped:
		out.Outcome, out.Reason = NotTested, "the test skipped itself: "+last.Message
	default:
		out.Outcome, out.Reason = Error, last.Message
	}
	return out
}

// after says after what a test passed in its last attempt: one that failed only while
// others were at work is flaky by load, and not by nature.
func (j *judge) after(attempts []result.TestRun) string {
	beside := map[string]bool{}
	for i := range j.run.Batches {
		beside[j.run.Batches[i].ID] = j.run.Batches[i].Beside
	}
	for _, a := range attempts {
		if a.State == result.TestFailed && !beside[a.Batch] || a.State == result.TestPassed && beside[a.Batch] {
			return ", after"
		}
	}
	return " with no other test beside it, after it failed beside others"
}

// withoutWindows says why nothing on a cluster can show that Windows works; ""
// where it has a real Windows node that pods may be put on.
func withoutWindows(f *result.Facts) string {
	windows, simulated := f.Count(result.Is(specs.Windows)), f.Simulated(result.Is(specs.Windows))
	usable := f.Count(func(n *result.Node) bool { return n.RealWindows() && n.Ready && !n.Unschedulable })
	switch {
	case usable > 0:
		return ""
	case windows == 0:
		return "the cluster has no Windows node: nothing here shows that Windows works"
	case windows == simulated:
		return text.AllAre(simulated, "Windows node") + " simulated: nothing here shows that Windows works"
	}
	return "no Windows node is real, ready and can be scheduled to: nothing here shows that Windows works"
}

// maxNotes is how many notes of a merge stand beside a verdict.
const maxNotes = 100

// conclude takes the verdict from the cases that gate.
func (j *Judgement) conclude(run *result.Run) {
	var failed, open, simulated []string
	good := 0
	for i := range j.Cases {
		c := &j.Cases[i]
		if !c.Case.Gates() {
			continue
		}
		if c.Case.Check == CheckLinuxConformance && c.Outcome == NotTested {
			j.Beside = append(j.Beside, "Linux conformance was not tested: bring its JUnit with --conformance-junit")
			continue
		}
		if c.Case.Check == CheckWindowsVersion && c.Outcome == Passed && c.Reason != "" {
			j.Beside = append(j.Beside, "Windows Server: "+c.Reason)
		}
		switch {
		case c.Outcome.Good() && c.Simulated:
			simulated = append(simulated, c.Case.ID)
		case c.Outcome.Good() && c.Case.Kind == specs.Requirement:
			good++
		case c.Outcome == Failed:
			failed = append(failed, c.Blocks())
		case c.Blocks() != "":
			open = append(open, c.Blocks())
		}
	}
	for _, m := range run.Manifests() {
		if reason := withoutWindows(&m.Cluster); reason != "" {
			open = append(open, reason)
			break
		}
	}
	if len(simulated) > 0 {
		open = append(open, "passed on simulated nodes, which shows nothing of Windows: "+strings.Join(simulated, ", "))
	}
	for _, s := range j.Suites {
		open = append(open, s.Name()+" failed")
	}
	open = append(open, run.Problems...)
	switch {
	case run.Interrupted:
		open = append(open, "the run was interrupted")
	case run.OutOfTime:
		open = append(open, "the run's time was up before all of its tests had a result")
	case !run.Finished:
		open = append(open, "the run did not come to its end: it was killed, an error ended it, or it is still going on")
	}
	for _, d := range j.Declared {
		if d.Name == "dual-stack" && d.Yet != "" {
			open = append(open, "declared: the cluster is without dual-stack (--without dual-stack), yet "+d.Yet)
		}
	}
	empty := j.Scope.empty(run.Plan)
	if good == 0 && empty == "" {
		open = append(open, "no requirement in scope was tested and passed")
	}
	// Whoever recorded it saw what is not in these results.
	if was := run.Manifest.Verdict; len(failed)+len(open) == 0 && empty == "" && was != "" && was != string(Ready) {
		open = append(open, fmt.Sprintf("%s says that the run ended %s, and its results say %s: they were changed", result.ManifestFile, result.Cut(was, 100), Ready))
	}
	for _, c := range j.Categories {
		// A shard, or a few cases, need not touch what has a test.
		whole := j.Scope.Whole() || j.Scope.Kind == ScopeCategories
		// Nor does a category from which a merge has trials alone.
		trials := len(c.Outcomes) == 0 && j.Scope.Kind == ScopeCategories && !slices.Contains(j.Scope.Categories, c.Category)
		if whole && !trials && c.Category.Core() && c.Verdict == NotAsked {
			open = append(open, fmt.Sprintf("nothing of %s was tested, and every cluster must have it", c.Category))
		}
	}
	for _, note := range run.Manifest.Notes[:min(len(run.Manifest.Notes), maxNotes)] {
		j.Beside = append(j.Beside, result.Cut(note, result.MaxMessage))
	}
	// A version that cannot be read is an error elsewhere.
	if note, _ := specs.CheckVersion(run.Plan.KubernetesVersion); note != "" {
		j.Beside = append(j.Beside, note)
	}
	j.Reasons = slices.Concat(failed, open)
	switch {
	case len(failed) > 0:
		j.Verdict = NotReady
	case len(open) > 0:
		j.Verdict = Inconclusive
	case empty != "":
		j.Verdict, j.Reasons = NotAsked, []string{empty}
	default:
		j.Verdict = Ready
	}
}

// categories sums the cases up by category, in the order of the plan. standard
// is how many requirements each category has.
func categories(standard map[specs.Category]int, cases []CaseResult) []CategoryResult {
	var out []CategoryResult
	for i := range cases {
		c := &cases[i]
		k := slices.IndexFunc(out, func(r CategoryResult) bool { return r.Category == c.Case.Category })
		if k < 0 {
			k = len(out)
			out = append(out, CategoryResult{
				Category: c.Case.Category,
				Outcomes: map[Outcome]int{},
				Counts:   Counts{Total: standard[c.Case.Category]},
			})
		}
		r := &out[k]
		c.count(r.Outcomes, &r.Trials)
		r.Seconds += c.Seconds
		r.Gates = r.Gates || c.Case.Gates()
		if c.Case.Kind == specs.Requirement && c.Outcome.Good() && !c.Simulated {
			if c.Case.Proof == specs.ProofFull {
				r.Counts.Proven++
			} else {
				r.Counts.Parts++
			}
		}
	}
	for k := range out {
		out[k].Verdict = categoryVerdict(out[k].Category, cases)
	}
	return out
}

// categoryVerdict takes a category's verdict from its requirements or rules;
// for Extend.Worker, where none gates, as if they did.
func categoryVerdict(category specs.Category, cases []CaseResult) Verdict {
	good, failed, open := false, false, false
	for i := range cases {
		c := &cases[i]
		if c.Case.Category != category || c.Case.Kind == specs.Additional || c.Case.Kind == specs.Trial {
			continue
		}
		switch c.Outcome {
		case Passed, Flaky:
			good = good || !c.Simulated
			open = open || c.Simulated
		case Failed:
			failed = true
		case Unproven, Error, NotTested:
			open = open || c.Case.Check != CheckLinuxConformance
		}
	}
	switch {
	case failed:
		return NotReady
	case open:
		return Inconclusive
	case good:
		return Ready
	default:
		return NotAsked
	}
}
