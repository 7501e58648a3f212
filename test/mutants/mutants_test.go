package mutants_test

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

const (
	distinct = "Pods of one node should have distinct addresses"
	moreCPU  = "Pods that request more CPU than a node has should stay pending"
	moreMem  = "Pods that request more memory than a node has should stay pending"
	churn    = "A Deployment pod should be rescheduled 50 times"
)

// mutant is one thing that is broken, and what a test must say of it.
type mutant struct {
	test  string
	fault string
	make  fault
	says  string // a regular expression
}

// Groups share a cluster, one after the other; they run beside each other.
var groups = map[string][]mutant{
	"network": {
		{distinct, "a pod has its node's address", address(ofItsNode), "pod distinct-[0-9] has the address [0-9.]+ of node windows"},
		{distinct, "two pods have one address", address(ofItsNeighbour), "pod distinct-[0-9] has the address [0-9.]+ of pod distinct-[0-9]"},
	},
	"scheduling": {
		{moreCPU, "somebody binds the pod", whenPending(bindIt, nil), "was put on node"},
		{moreCPU, "a node grows", whenPending(growNode, shrinkNode), "was put on node"},
		{moreCPU, "every Windows node has a taint that the pod does not tolerate", taintWindows, "0 of 4 nodes are said to have insufficient cpu: .*untolerated taint"},
		{moreMem, "somebody binds the pod", whenPending(bindIt, nil), "was put on node"},
		{moreMem, "every Windows node has a taint that the pod does not tolerate", taintWindows, "0 of 4 nodes are said to have insufficient memory: .*untolerated taint"},
	},
	"churn": {
		{churn, "pods are gated from the 20th on", atChurn(20, gatePods), "is to be ready within"},
		{churn, "a node is not ready for a moment", atChurn(10, loseNode), "nodes did not stay ready"},
	},
	"churn-slow": {
		{churn, "pods have a finalizer that nobody takes off", keepPods, "are still terminating"},
		{churn, "nobody can delete pods beside it", refuseDeletions, "0 deletions beside it took effect"},
	},
}

// Each test passes, and with each of its mutants it fails for that reason.
func TestMutants(t *testing.T) {
	var mu sync.Mutex
	var shown []string // a row for each mutant
	t.Cleanup(func() {
		w := tabwriter.NewWriter(t.Output(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "test\tfault\twithout it\twith it")
		for _, row := range slices.Sorted(slices.Values(shown)) {
			fmt.Fprintln(w, row)
		}
		if err := w.Flush(); err != nil {
			t.Error(err)
		}
	})
	var tested []string
	for name, rows := range groups {
		for _, m := range rows {
			tested = append(tested, m.test)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			passes := map[string]bool{}
			for _, m := range rows {
				if !passes[m.test] && name != "churn-slow" { // it has passed in the other group
					if failure := b.run(m.test); failure != "" {
						t.Fatalf("%s: without a fault it %s", m.test, failure)
					}
				}
				passes[m.test] = true
				undo := m.make(b)
				failure := b.run(m.test)
				undo()
				says := regexp.MustCompile(m.says)
				mu.Lock()
				shown = append(shown, strings.Join([]string{m.test, m.fault, "passed", lineWith(cmp.Or(failure, "passed"), says)}, "\t"))
				mu.Unlock()
				if !says.MatchString(failure) {
					t.Errorf("%s: when %s, it must say %q: it %s", m.test, m.fault, m.says, cmp.Or(failure, "passed"))
				}
			}
		})
	}
	for _, name := range specs.OwnTests().Names() {
		if !slices.ContainsFunc(tested, func(words string) bool { return strings.Contains(name, words) }) {
			t.Errorf("%s has no mutant: that it can fail is not shown", name)
		}
	}
}

// lineWith returns the line of a failure that says what it is to say, else its first.
func lineWith(failure string, says *regexp.Regexp) string {
	for line := range strings.Lines(failure) {
		if says.MatchString(line) {
			return strings.TrimSpace(line)
		}
	}
	first, _, _ := strings.Cut(failure, "\n")
	return first
}
