// Command comment measures how long it takes to write the comment on a pull
// request, the job summary and the annotations for 10,000 failures with messages
// of 1 MB each, that hold what has to be escaped.
//
// Usage, from the root of the repository:
//
//	go run ./test/bench/comment
//
// The best of three rounds counts. It exits with 1 when a target is missed, 2
// when it could not measure.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/actions"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/github"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

const (
	// want is the longest that one of the three may take.
	want = time.Second
	// message is the size of a failure's message, in bytes.
	message = 1 << 20
)

func main() {
	failures := flag.Int("failures", 10_000, "how many failures (the target is stated for 10000)")
	rounds := flag.Int("rounds", 3, "how often to measure; the best counts")
	flag.Parse()
	if *failures < 1 || *rounds < 1 {
		fmt.Fprintln(os.Stderr, "bench: -failures and -rounds: give at least 1")
		os.Exit(2)
	}
	if !run(report(*failures), *failures, *rounds, os.Stdout) {
		os.Exit(1)
	}
}

func run(r *github.Report, failures, rounds int, out io.Writer) bool {
	met := true
	for _, m := range []struct {
		what  string
		limit int
		write func() string
	}{
		{"comment", github.MaxComment, func() string { return r.Markdown(github.MaxComment) }},
		{"job summary", github.MaxSummary, func() string { return r.Markdown(github.MaxSummary) }},
		{"annotations", github.MaxSummary, func() string {
			var b strings.Builder
			if err := actions.Annotate(&b, r.Annotations()); err != nil {
				panic(err) // a strings.Builder gives none
			}
			return b.String()
		}},
	} {
		best, text := time.Duration(0), ""
		for range rounds {
			began := time.Now()
			text = m.write()
			if took := time.Since(began); best == 0 || took < best {
				best = took
			}
		}
		word := "PASS"
		if best >= want || len(text) > m.limit || text == "" || !utf8.ValidString(text) {
			word, met = "FAIL", false
		}
		fmt.Fprintf(out, "%s: %s of %d failures with 1 MB each: %.3f s (target: under %.0f s), %d bytes (limit: %d)\n", word, m.what, failures, best.Seconds(), want.Seconds(), len(text), m.limit)
	}
	return met
}

// report makes failures of all categories. Their messages differ, and lie in one
// text, so that they take little memory.
func report(failures int) *github.Report {
	text := strings.Repeat("[FAILED] `expected` <pod> to be @ready | see #123 \x1b[31m\u202e "+strings.Repeat("é", 40)+"\n", (message+failures)/100+1)
	judge := func(outcome func(i int) verdict.Outcome) *verdict.Judgement {
		j := &verdict.Judgement{Scope: verdict.Scope{Kind: verdict.ScopeCluster}, Verdict: verdict.NotReady, Outcomes: map[verdict.Outcome]int{}, Counts: verdict.Counts{Total: failures}}
		for _, category := range specs.Categories() {
			j.Categories = append(j.Categories, verdict.CategoryResult{Category: category, Verdict: verdict.NotReady, Gates: true, Outcomes: map[verdict.Outcome]int{verdict.Failed: failures}})
		}
		for i := range failures {
			c := specs.Case{ID: fmt.Sprintf("case-%d", i), Category: specs.Categories()[i%len(specs.Categories())], Kind: specs.Requirement, Proof: specs.ProofFull, Requirement: text[i : i+message]}
			j.Cases = append(j.Cases, verdict.CaseResult{Case: &result.PlannedCase{Case: c}, Outcome: outcome(i), Reason: text[i : i+message], Evidence: text[i : i+message]})
			j.Reasons = append(j.Reasons, c.ID+" failed")
		}
		return j
	}
	run := &result.Run{Plan: &result.Plan{Shards: 1}, Manifest: &result.Manifest{RunID: "bench"}}
	base := judge(func(i int) verdict.Outcome {
		if i%2 == 0 {
			return verdict.Passed
		}
		return verdict.Failed
	})
	return &github.Report{Cells: []github.Cell{{Run: run, Judgement: judge(func(int) verdict.Outcome { return verdict.Failed }), Base: base}}}
}
