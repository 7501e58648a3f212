package result

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// replay takes the events of a run in their order, and holds each against those
// before it and against the plan, by the grammar that the package's
// documentation has. What does not fit is a problem of the run, and is taken as
// far as it can be.
type replay struct {
	run   *Run
	tests map[string]*PlannedTest
	at    map[string]int // where a batch is in run.Batches
	nodes map[nodeKey]*Node
	line  int

	// Of the execution that goes on:
	begun, ended bool
	open         map[string]*openBatch
	pods         []Pod // observed of an attempt that has yet to finish
}

// openBatch is a batch whose process has not ended.
type openBatch struct {
	running map[string]bool // tests that have started, by id
	done    map[string]bool // tests that have a result
	// failed and wrong count the results that are not a pass or a skip: failures,
	// and errors.
	failed, wrong int
}

func newReplay(r *Run) *replay {
	p := &replay{run: r, tests: make(map[string]*PlannedTest, len(r.Plan.Tests)), at: map[string]int{}, open: map[string]*openBatch{}}
	for i := range r.Plan.Tests {
		p.tests[r.Plan.Tests[i].ID] = &r.Plan.Tests[i]
	}
	return p
}

// problemf notes what is wrong with the event at hand.
func (p *replay) problemf(format string, args ...any) {
	p.run.problemf("%s: line %d: %s", EventsFile, p.line, fmt.Sprintf(format, args...))
}

// take takes the event of a line.
func (p *replay) take(e *Event, line int) {
	p.line = line
	p.inOrder(e)
	switch e.Type {
	case RunStarted:
		p.begin()
	case RunFinished:
		p.end(e)
	case CaseDecided:
		p.decided(e.Case)
	case BatchStarted:
		p.batchStarted(e.Batch)
	case BatchSuite, BatchFinished:
		p.batchGoesOn(e.Batch, e.Type == BatchFinished)
	case TestStarted:
		p.testStarted(e.Test)
	case TestFinished:
		p.testFinished(e.Test)
	case TestMeasured:
		p.testMeasured(e.Test)
	case SuiteFailed:
		if p.open[e.Suite.Batch] == nil {
			p.problemf("%s failed in batch %s, which does not run", Cut(e.Suite.Node, 100), Cut(e.Suite.Batch, 100))
		}
		p.run.Suites = append(p.run.Suites, *e.Suite)
	case ClusterLeft:
		p.run.Suites = append(p.run.Suites, Suite{Node: Teardown, Message: e.Suite.Message})
	case PodObserved:
		p.podObserved(e.Pod)
	default:
		p.problemf("unknown event %q", Cut(string(e.Type), 100))
	}
}

// inOrder notes an event outside of an execution. What was brought from
// elsewhere is decided before one begins.
func (p *replay) inOrder(e *Event) {
	switch {
	case e.Type == RunStarted, e.Type == CaseDecided:
	case e.Type == ClusterLeft && p.ended:
	case p.ended:
		p.problemf("%s after the run had ended", Cut(string(e.Type), 100))
	case !p.begun:
		p.problemf("%s before the run started", Cut(string(e.Type), 100))
		p.begun = true // once is enough
	}
	if e.Type != PodObserved && e.Type != TestFinished && e.Type != RunStarted && len(p.pods) > 0 {
		p.problemf("%s where the end of attempt %d of test %s belongs, whose pods were observed", Cut(string(e.Type), 100), p.pods[0].Attempt, Cut(p.pods[0].Test, 100))
		p.pods = nil
	}
}

// begin begins an execution: the first, or one that goes on after a kill. What
// the one before had not brought to its end is nobody's, and the cluster that it left
// has the same name, so that it is removed before it is made again.
func (p *replay) begin() {
	p.run.Suites = slices.DeleteFunc(p.run.Suites, func(s Suite) bool { return s.Left() })
	p.run.Executions++
	p.run.Finished, p.run.Interrupted, p.run.OutOfTime = false, false, false
	p.begun, p.ended, p.pods = true, false, nil
	clear(p.open)
}

func (p *replay) end(e *Event) {
	p.run.Finished, p.run.Interrupted, p.run.OutOfTime = true, e.Interrupted, e.OutOfTime
	p.ended = true
	for id := range p.open {
		p.problemf("the run ended, and its batch %s had not", Cut(id, 100))
	}
}

func (p *replay) decided(d *Decision) {
	if !slices.ContainsFunc(p.run.Plan.Cases, func(c PlannedCase) bool { return c.ID == d.ID }) {
		p.problemf("case %q is not in the plan", Cut(d.ID, 100))
		return
	}
	p.run.Decisions[d.ID] = *d
}

func (p *replay) batchStarted(b *Batch) {
	if _, twice := p.at[b.ID]; twice {
		p.problemf("batch %s started twice", Cut(b.ID, 100))
		return
	}
	p.at[b.ID] = len(p.run.Batches)
	p.run.Batches = append(p.run.Batches, *b)
	p.open[b.ID] = &openBatch{running: map[string]bool{}, done: map[string]bool{}}
}

// batchGoesOn takes what is known more of a batch that has started.
func (p *replay) batchGoesOn(later *Batch, ended bool) {
	open := p.open[later.ID]
	if open == nil {
		p.problemf("batch %s does not run", Cut(later.ID, 100))
		return
	}
	b := &p.run.Batches[p.at[later.ID]]
	same := func(what string, was, is any) {
		if was != is {
			p.problemf("batch %s has %s %v, and had %v", Cut(b.ID, 100), what, Cut(fmt.Sprint(is), 100), Cut(fmt.Sprint(was), 100))
		}
	}
	same("phase", b.Phase, later.Phase)
	same("conditions", b.Conditions, later.Conditions)
	same("a number of tests", b.Tests, later.Tests)
	if ended || b.SuiteRunID != "" {
		same("run id", b.SuiteRunID, later.SuiteRunID)
	}
	*b = *later
	if !ended {
		return
	}
	delete(p.open, b.ID)
	if b.Stopped != "" {
		return // what it had started, it could not end
	}
	for id := range open.running {
		p.problemf("batch %s ended by itself, and test %s, which it had started, has no result", Cut(b.ID, 100), Cut(id, 100))
	}
	switch {
	case !b.Reconciled:
	case b.Exit != "exit code 0" && b.Exit != "exit code 1":
		p.problemf("batch %s was reconciled, and ended with %q, which ginkgo does not", Cut(b.ID, 100), Cut(b.Exit, 100))
	case b.Exit == "exit code 0" && open.failed > 0:
		p.problemf("batch %s ended with %s, and %d of its tests failed", Cut(b.ID, 100), b.Exit, open.failed)
	case b.Exit != "exit code 0" && open.wrong == 0:
		p.problemf("batch %s ended with %q, and none of its tests failed", Cut(b.ID, 100), Cut(b.Exit, 100))
	}
}

// planned returns the planned test of an event, nil where it is none of this
// shard's.
func (p *replay) planned(t *TestRun) *PlannedTest {
	planned := p.tests[t.ID]
	switch {
	case planned == nil:
		p.problemf("test %q is not in the plan", Cut(t.ID, 100))
		return nil
	case !p.run.Merged() && planned.Shard != p.run.Manifest.Shard:
		p.problemf("test %s belongs to shard %d, and this is shard %d", t.ID, planned.Shard, p.run.Manifest.Shard)
		return nil
	}
	if t.Name != planned.Name {
		p.problemf("test %s is called %q, and in the plan %q", t.ID, Cut(t.Name, 100), Cut(planned.Name, 100))
	}
	if want := len(p.run.Attempts[t.ID]) + 1; t.Attempt != want {
		p.problemf("attempt %d of test %s, where attempt %d belongs", t.Attempt, t.ID, want)
	}
	return planned
}

func (p *replay) testStarted(t *TestRun) {
	planned := p.planned(t)
	if planned == nil {
		return
	}
	p.run.Unfinished[t.ID] = *t
	open := p.open[t.Batch]
	switch {
	case open == nil:
		p.problemf("test %s started in batch %s, which does not run", t.ID, Cut(t.Batch, 100))
		return
	case open.running[t.ID], open.done[t.ID]:
		p.problemf("test %s started twice in batch %s", t.ID, Cut(t.Batch, 100))
	}
	open.running[t.ID] = true
	if b := &p.run.Batches[p.at[t.Batch]]; b.Conditions != planned.Conditions || b.Phase != planned.Phase {
		p.problemf("test %s is planned %s, %q, and ran in a batch %s, %q", t.ID, planned.Phase, planned.Conditions, Cut(string(b.Phase), 100), b.Conditions)
	}
}

func (p *replay) testFinished(t *TestRun) {
	pods := p.pods
	p.pods = nil
	if p.planned(t) == nil {
		return
	}
	switch t.State {
	case TestPassed, TestFailed, TestSkipped, TestError:
	default:
		p.problemf("unknown state %q", Cut(string(t.State), 100))
		return
	}
	p.checkEnd(t, pods)
	if t.Seconds < 0 || t.Seconds > maxSeconds {
		p.problemf("test %s took %g seconds", t.ID, t.Seconds)
		t.Seconds = 0
	}
	if len(p.run.Attempts[t.ID]) == maxAttempts {
		p.problemf("test %s has over %d attempts", t.ID, maxAttempts)
		return
	}
	delete(p.run.Unfinished, t.ID)
	p.run.Attempts[t.ID] = append(p.run.Attempts[t.ID], *t)
	p.run.Pods = append(p.run.Pods, pods...)
}

// testMeasured takes the figures of the attempt of a test that ended last, while
// its batch runs.
func (p *replay) testMeasured(t *TestRun) {
	attempts := p.run.Attempts[t.ID]
	last := len(attempts) - 1
	if last < 0 || p.open[t.Batch] == nil || attempts[last].Batch != t.Batch || attempts[last].Attempt != t.Attempt || attempts[last].Measured != nil {
		p.problemf("figures of attempt %d of test %s in batch %s, which has none to tell", t.Attempt, Cut(t.ID, 100), Cut(t.Batch, 100))
		return
	}
	attempts[last].Measured = t.Measured
}

// checkEnd holds the end of an attempt against its beginning, its process, and
// the pods that were observed of it.
func (p *replay) checkEnd(t *TestRun, pods []Pod) {
	own := func(pod Pod) bool { return pod.Test == t.ID && pod.Attempt == t.Attempt }
	if strange := slices.IndexFunc(pods, func(pod Pod) bool { return !own(pod) }); strange >= 0 {
		p.problemf("test %s ended, attempt %d, and pods were observed of test %s, attempt %d", t.ID, t.Attempt, Cut(pods[strange].Test, 100), pods[strange].Attempt)
	} else if len(pods) != t.Pods {
		p.problemf("test %s says that %d pods were observed, and here are %d", t.ID, t.Pods, len(pods))
	}
	if t.State == TestPassed && t.Why() != "" {
		p.problemf("test %s passed, and says of that: %s", t.ID, Cut(t.Why(), 100))
	}
	open := p.open[t.Batch]
	if open == nil {
		// One that never came to run needs no process.
		if t.State != TestError {
			p.problemf("test %s ended in batch %s, which does not run", t.ID, Cut(t.Batch, 100))
		}
		return
	}
	if t.State == TestPassed && !open.running[t.ID] {
		p.problemf("test %s passed in batch %s, and had not started there", t.ID, Cut(t.Batch, 100))
	}
	delete(open.running, t.ID)
	open.done[t.ID] = true
	switch t.State {
	case TestFailed:
		open.failed++
		open.wrong++
	case TestError:
		open.wrong++
	}
}

// podObserved keeps what was observed of a pod until its attempt ends, and holds
// it against what is known of its node. A node that is not known may have joined
// later.
func (p *replay) podObserved(pod *Pod) {
	p.pods = append(p.pods, *pod)
	if len(pod.Images) == 0 {
		p.problemf("pod %s has no image, and every pod has one", Cut(pod.Name, 100))
	}
	if pod.Node == "" && (pod.OS != "" || pod.WindowsBuild != "" || pod.Simulated) {
		p.problemf("pod %s was on no node, and is said to have been on one that is %s", Cut(pod.Name, 100), kind(pod.OS, pod.WindowsBuild, pod.Simulated))
	}
	shard := 0
	if t := p.tests[pod.Test]; t != nil {
		shard = t.Shard
	}
	m := p.run.ManifestOf(shard)
	if m == nil || pod.Node == "" {
		return
	}
	n := p.node(m, pod.Node)
	if n == nil {
		return
	}
	if pod.OS != n.OS || pod.WindowsBuild != n.WindowsBuild || pod.Simulated != n.Simulated {
		p.problemf("pod %s was on node %s, %s, and %s has that node as %s", Cut(pod.Name, 100), Cut(pod.Node, 100), kind(pod.OS, pod.WindowsBuild, pod.Simulated), ManifestFile, kind(n.OS, n.WindowsBuild, n.Simulated))
	}
}

// node returns what a manifest says of a node; nil where it does not know it.
func (p *replay) node(m *Manifest, name string) *Node {
	if p.nodes == nil {
		p.nodes = map[nodeKey]*Node{}
		for _, m := range p.run.Manifests() {
			for i := range m.Cluster.Nodes {
				p.nodes[nodeKey{m.Shard, m.Cluster.Nodes[i].Name}] = &m.Cluster.Nodes[i]
			}
		}
	}
	return p.nodes[nodeKey{m.Shard, name}]
}

// nodeKey is a node of the cluster of a shard.
type nodeKey struct {
	shard int
	name  string
}

func kind(os specs.OS, build string, simulated bool) string {
	name := strings.TrimSpace(cmp.Or(string(os), "of an unknown system") + " " + build)
	if simulated {
		name += " and simulated"
	}
	return Cut(name, 100)
}
