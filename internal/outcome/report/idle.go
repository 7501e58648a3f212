package report

import (
	"fmt"
	"io"
	"slices"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// WriteIdle says why a shard of a plan has nothing to run; excuse is why a case
// that has tests is not tested. It returns the exit code of that: 3, or 0 for an
// empty shard of a plan that has tests.
func WriteIdle(w io.Writer, p *result.Plan, shard int, excuse func(*result.PlannedCase) string) int {
	if p.EmptyShard(shard) {
		fmt.Fprintf(w, "shard %d of %d is empty: the plan's %s in other shards; there is nothing to run here, which is not a failure\n", shard, p.Shards, are(len(p.Tests), "test"))
		return verdict.ExitReady
	}
	fmt.Fprintln(w, "There is nothing to run:")
	var reasons []string
	cases := map[string][]string{}
	for i := range p.Cases {
		c := &p.Cases[i]
		if c.Shard != shard && len(p.Tests) > 0 {
			continue
		}
		reason := whyIdle(c, excuse)
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
		cases[reason] = append(cases[reason], c.ID)
	}
	for _, reason := range reasons {
		fmt.Fprintf(w, "  %s: %s\n", text.Few(cases[reason], 3), reason)
	}
	return verdict.ExitInconclusive
}

// whyIdle says why nothing of a case is run.
func whyIdle(c *result.PlannedCase, excuse func(*result.PlannedCase) string) string {
	switch {
	case c.Kind == specs.Rule:
		return "rules are decided from facts, not by tests"
	case c.Proof == specs.ProofNone:
		return "no test exists"
	case c.Excluded != "":
		return c.Excluded
	case excuse(c) != "":
		return excuse(c)
	}
	return "no test was planned"
}

func are(n int, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return text.Count(n, what) + " are"
}
