package run

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
)

// account is all that is known of an e2e.test process when it has ended.
type account struct {
	program string // its name
	// said are the ends of tests in the output, by name; doubts is where the
	// output contradicts itself, and failures what failed in it outside of tests.
	said     map[string]e2e.Finished
	doubts   []e2e.Contradiction
	failures []result.Suite
	// report is ginkgo's, nil where it is unreadable, and why.
	report     *e2e.Report
	unreadable error
	// exit is how the process ended, and clean whether it did so itself, with a
	// code that ginkgo uses; ending tells it in words.
	exit   string
	clean  bool
	ending string
	// stopped is why op-readiness ended the process, "" if it did not; idle says
	// that it was because no test ran.
	stopped string
	idle    bool
	// steered is when the conditions of its tests were in force; zero where none had to
	// be.
	steered time.Time
	// ours are the tests, by name, whose end op-readiness wrote: no process can
	// contradict that.
	ours map[string]bool
}

// reckoning is what comes of comparing the parts of an account.
type reckoning struct {
	// suites are the failures outside of tests, and after them where the parts
	// tell different stories.
	suites []result.Suite
	// ends are the tests, by name, of which the parts tell different stories,
	// and how they count.
	ends map[string]e2e.Finished
}

// success is how a process ends of which nothing failed.
const success = "exit code 0"

// reconcile compares what the output, ginkgo's report and the exit code say of
// one process. What ginkgo says only because this program stopped it contradicts
// nothing: that tests and nodes were interrupted, that others did not run, that
// the suite did not succeed, and the exit code.
func (a *account) reconcile() reckoning {
	r := reckoning{ends: map[string]e2e.Finished{}}
	nodes := a.nodes()
	r.suites = slices.Concat(nodes, a.process())
	if a.report != nil && !a.steered.IsZero() && !a.report.First.IsZero() && a.report.First.Before(a.steered) {
		r.lacks("a test began %v before the conditions of its process were in force", a.steered.Sub(a.report.First).Round(time.Millisecond))
	}
	a.compareTests(&r)
	a.compareSuite(&r)
	a.compareExit(&r, len(nodes) > 0)
	return r
}

// reconciliation is the node of what the comparison found.
const reconciliation = "reconciliation"

// contradicts records that two parts of the account cannot both be true.
func (r *reckoning) contradicts(format string, args ...any) {
	r.suites = append(r.suites, result.Suite{Node: reconciliation, Message: fmt.Sprintf(format, args...), Contradiction: true})
}

// lacks records that one part of the account does not say what another says.
func (r *reckoning) lacks(format string, args ...any) {
	r.suites = append(r.suites, result.Suite{Node: reconciliation, Message: fmt.Sprintf(format, args...)})
}

// counts records how a test counts of which different stories are told: it has
// at best no fair result.
func (r *reckoning) counts(name string, state result.TestState, message string) {
	end := r.ends[name]
	end.Name, end.State = name, e2e.Worse(e2e.Worse(end.State, state), result.TestError)
	end.Message = strings.TrimSpace(end.Message + "\n" + message)
	r.ends[name] = end
}

// nodes returns what failed outside of tests: what the output or the report says.
func (a *account) nodes() []result.Suite {
	all := slices.Clone(a.failures)
	if a.report != nil {
		for _, s := range a.report.SuiteFailures {
			if !slices.ContainsFunc(all, func(known result.Suite) bool { return sameFailure(known, s) }) {
				all = append(all, s)
			}
		}
	}
	if a.stopped != "" {
		all = slices.DeleteFunc(all, func(s result.Suite) bool { return interrupted(s.Message) })
	}
	return slices.Clip(all)
}

// process returns what the end of the process shows to have failed.
func (a *account) process() []result.Suite {
	var all []result.Suite
	add := func(node, message string) { all = append(all, result.Suite{Node: node, Message: message}) }
	silent := a.report == nil && len(a.said) == 0
	switch {
	case a.idle:
		add("process", a.stopped)
	case a.stopped == "" && (!a.clean || silent && a.exit != success):
		add("process", a.ending)
	case a.stopped == "" && a.report != nil && !a.report.Succeeded && len(a.report.Reasons) > 0:
		add("suite", strings.Join(a.report.Reasons, "; "))
	}
	if a.clean && a.report == nil && !silent {
		add("report", fmt.Sprintf("%s ended by itself and left no readable report: %v", a.program, a.unreadable))
	}
	return all
}

// sameFailure reports whether two failures are one: of the same node, with the
// same first line.
func sameFailure(a, b result.Suite) bool {
	first := func(s result.Suite) string {
		line, _, _ := strings.Cut(s.Message, "\n")
		return strings.TrimSpace(line)
	}
	return a.Node == b.Node && first(a) == first(b)
}

// interrupted reports whether the message is that of an end that a signal made.
func interrupted(message string) bool { return strings.HasPrefix(message, "[INTERRUPTED]") }

// compareTests compares what the output and the report say of each test.
func (a *account) compareTests(r *reckoning) {
	doubts := slices.Clone(a.doubts)
	if a.report != nil {
		doubts = append(doubts, a.report.Contradictions...)
	}
	for _, d := range doubts {
		if d.Test == "" {
			r.contradicts("%s", d.Message)
			continue
		}
		r.contradicts("%q: %s", d.Test, d.Message)
		r.counts(d.Test, d.State, d.Message)
	}
	if a.report == nil {
		return
	}
	for _, name := range sortedNames(a.said, a.report.Tests) {
		if a.ours[name] {
			continue
		}
		said, isSaid := a.said[name]
		reported, isReported := a.report.Tests[name]
		switch {
		case !isReported:
			message := fmt.Sprintf("the output says %s, and ginkgo's report does not know that it ran", said.State)
			r.contradicts("%q: %s", name, message)
			r.counts(name, said.State, message)
		case !isSaid:
			message := fmt.Sprintf("ginkgo's report says %s, and the output does not have its end", reported.State)
			if a.stopped == "" || !interrupted(reported.Message) {
				r.lacks("%q: %s", name, message)
			}
			r.counts(name, reported.State, strings.TrimSpace(message+"\n"+reported.Message))
		case said.State != reported.State:
			message := fmt.Sprintf("the output says %s, and ginkgo's report says %s", said.State, reported.State)
			r.contradicts("%q: %s", name, message)
			r.counts(name, e2e.Worse(said.State, reported.State), strings.TrimSpace(message+"\n"+said.Message+"\n"+reported.Message))
		}
	}
	if len(a.report.Others) > 0 {
		r.contradicts("tests ran that were not asked for: %q", a.report.Others)
	}
}

// compareSuite compares ginkgo's verdict on the suite with the ends of its tests
// and nodes.
func (a *account) compareSuite(r *reckoning) {
	switch {
	case a.report == nil:
	case a.report.Succeeded && a.report.Failed:
		r.contradicts("ginkgo's report says that the suite succeeded, and lists failures")
	case !a.report.Succeeded && !a.report.Failed && len(a.report.Reasons) == 0 && a.stopped == "":
		r.contradicts("ginkgo's report says that the suite did not succeed, and lists no failure and no other reason")
	}
}

// compareExit compares the exit code with what failed. nodes says that something
// failed outside of tests.
func (a *account) compareExit(r *reckoning, nodes bool) {
	failed := nodes
	for _, f := range a.said {
		failed = failed || f.State == result.TestFailed || f.State == result.TestError
	}
	if a.report != nil {
		failed = failed || a.report.Failed || !a.report.Succeeded
	}
	silent := a.report == nil && len(a.said) == 0
	switch {
	case !a.clean:
	case a.exit == success && failed:
		r.contradicts("%s ended with %s, and there were failures", a.program, a.exit)
	case a.exit != success && !failed && !silent && a.stopped == "":
		r.contradicts("%s ended with %s, and nothing failed", a.program, a.exit)
	}
}

// sortedNames returns the names of all the tests.
func sortedNames(a, b map[string]e2e.Finished) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	return slices.Compact(names)
}
