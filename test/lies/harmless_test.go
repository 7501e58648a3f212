//go:build unix

package lies

import (
	"path"
	"slices"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
)

// An allowance says of which single changes of an event a ready run stays ready,
// and why that is not a lie.
type allowance struct {
	event  string // a pattern of types of events
	field  string // a pattern of paths; "" is the event itself
	how    string // a pattern of what becomes of it
	only   func(c *change) bool
	reason string
}

func (a *allowance) allows(c *change) bool {
	return matches(a.event, string(c.event)) && matches(a.field, c.field) && matches(a.how, c.how) && (a.only == nil || a.only(c))
}

func matches(pattern, text string) bool {
	ok, err := path.Match(pattern, text)
	if err != nil {
		panic(err)
	}
	return ok
}

// aside is a change that touches nothing that a case that gates rests on.
func aside(c *change) bool { return !c.gates || !c.last }

func older(c *change) bool { return !c.last }

func onLinux(c *change) bool { return c.system == "linux" }

func ofMerged(c *change) bool { return c.base == "merged" }

func stays(c *change) bool { return !c.runs }

func inPart(c *change) bool { return !c.full }

func notFinished(c *change) bool { return c.event != result.RunFinished }

// endOfABatch is a change of what only the end of a batch tells, before it.
func endOfABatch(c *change) bool {
	return c.event != result.BatchFinished && slices.Contains([]string{"batch.exit", "batch.stopped", "batch.reconciled"}, c.field)
}

// endOfATest is a change of what only the end of a test tells.
func endOfATest(c *change) bool {
	return slices.Contains([]string{"test.state", "test.seconds", "test.message", "test.unobserved", "test.meanwhile", "test.pods"}, c.field)
}

// harmless are all changes that may be made without changing the verdict. A line
// that no change takes fails the test.
var harmless = []allowance{
	{"*", "time", "*", nil, "the order of the lines counts; when it was is for people"},
	{"*", "unheardOf", "added", nil, "a later op-readiness may tell more"},
	{"*", "interrupted", "flipped", notFinished, "how a run ended is told at its end alone"},
	{"*", "outOfTime", "flipped", notFinished, "how a run ended is told at its end alone"},

	{"run-started", "", "doubled", nil, "it may have been killed at once, and resumed"},
	{"run-started", "", "swapped with case-decided", nil, "cases are decided again, from the facts"},

	{"run-started", "", "removed", ofMerged, "the executions of a merged run follow each other, each with its batches ended"},
	{"run-finished", "*", "*", older, "the run went on after that"},

	{"case-decided", "*", "*", nil, "cases are decided again, from the facts"},

	{"batch-*", "batch.pid", "*", nil, "by this a run that is resumed finds a process that still lives"},
	{"batch-*", "batch.pidStart", "*", nil, "by this a run that is resumed finds a process that still lives"},
	{"batch-*", "batch.log", "*", nil, "logs are for people"},
	{"batch-*", "batch.beside", "*", nil, "by this people tell flaky by load from flaky by nature"},
	{"batch-suite", "", "doubled", nil, "it tells the same again"},
	{"batch-suite", "", "swapped with test-started", nil, "pods were held against the id when they were collected"},
	{"batch-finished", "", "swapped with batch-started", nil, "batches may run beside each other"},
	{"batch-finished", "batch.stopped", "*", nil, "what a batch reconciled counts, whoever ended it"},
	{"batch-*", "batch.*", "*", aside, "nothing in it gates, or all of it ran again"},
	{"batch-finished", "", "removed", aside, "nothing in it gates, or all of it ran again"},
	{"batch-*", "batch.*", "*", endOfABatch, "how a batch ended is told at its end alone"},

	{"test-started", "", "removed", older, "an older attempt that failed is no better without its beginning"},
	{"test-started", "test.*", "*", endOfATest, "how a test ended is told at its end alone"},

	{"test-finished", "test.seconds", "*", nil, "how long it took is for people"},
	{"test-finished", "test.message", "*", nil, "why it failed is for people"},
	{"test-finished", "test.meanwhile", "*", older, "what happened beside a failure is for people; beside a pass it is a contradiction"},
	{"test-finished", "", "swapped with batch-finished", older, "an older attempt without an answer is as good in one batch as in another"},
	{"test-finished", "test.batch", "*", older, "an older attempt without an answer is as good in one batch as in another"},
	{"test-finished", "test.state", "becomes failed", older, "no answer of what does not count is as good as another"},
	{"test-finished", "test.unobserved", "*", aside, "what gates needs no pods of it"},
	{"test-finished", "test.state", "becomes error", aside, "no answer of what does not count is as good as another"},
	{"test-finished", "test.state", "becomes skipped", aside, "no answer of what does not count is as good as another"},

	{"pod", "", "swapped with pod", nil, "pods of one attempt have no order"},
	{"pod", "pod.observed", "*", nil, "when it was is for people"},
	{"pod", "pod.namespace", "*", nil, "whose the namespace was is found out when the pods are collected"},
	{"pod", "pod.phases", "*", nil, "whether a container started is told by itself"},
	{"pod", "pod.started", "*", stays, "the case asks for a pod that is scheduled, and not for containers"},
	{"pod", "pod.schedulingFailure", "*", nil, "why it waited is for people"},
	{"pod", "pod.node", "unknown", nil, "a node may have joined the cluster after its facts were read"},
	{"pod", "pod.runtimeClass", "unknown", nil, "where no class is asked for, any will do"},
	{"pod", "pod.podOS", "unknown", nil, "only the project's own tests, which are on trial, must name it"},
	{"pod", "pod.name", "another seen *", nil, "another pod that the case wants in the same place"},
	{"pod", "pod.images", "*", onLinux, "the standard speaks of the images of Windows pods"},
	{"pod", "pod.images", "longer", inPart, "the standard's images are asked of full proof"},
	{"pod", "pod.*", "*", aside, "no case that gates rests on it"},
}
