// Command shards measures how evenly package plan cuts the standard into
// shards: the longest shard against the shortest that the longest can be, and on a
// cluster that shards share, the expected time of the whole, under the rules of the
// cluster lock, against the shortest that it can be.
//
// Usage, from the root of the repository:
//
//	go run ./test/bench/shards
//
// It plans the embedded standard with the durations that its cases expect,
// without and with the additional tests, for 2 to 16 shards. What must stay
// together is found here from the plan, and not taken from package plan. The
// optimum is exact where branch and bound finds it within its budget of steps;
// where it does not, a proven lower bound stands for it and is marked as such.
// It exits with 1 when the target is missed, 2 when it could not measure.
package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/test/bench/target"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/plan"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

const (
	version = "v1.36.3"
	// wantExcess is how much longer than the optimum the longest shard may be.
	wantExcess = 0.10
	// budget is how many steps branch and bound may take for one row; it takes
	// about a second to use it up.
	budget = 5_000_000

	fewest, most = 2, 16
)

func main() { target.Exit(run(os.Stdout)) }

func run(w io.Writer) error {
	missed := false
	for _, additional := range []bool{false, true} {
		worst, err := table(w, additional)
		if err != nil {
			return err
		}
		word := "PASS"
		if worst > wantExcess {
			word, missed = "FAIL", true
		}
		fmt.Fprintf(w, "%s: the longest shard is at most %.1f%% above the optimum, and may be %.0f%%\n\n", word, 100*worst, 100*wantExcess)
	}
	late, err := shared(w)
	if err != nil {
		return err
	}
	if missed || late {
		return target.ErrMissed
	}
	return nil
}

// On a cluster that shards share: how much longer than the bound the whole may take,
// and for how many shards and tests at a time it is measured.
const (
	wantLate             = 0.05
	mostShared, mostTime = 8, 4
)

// shared prints how long the standard takes on one cluster, and tells whether that is too
// long. No test can be cut, so that nothing is shorter than the longest that runs beside
// others, and than all of them together on as many lanes as there are; those that must be
// alone come on top.
func shared(w io.Writer) (missed bool, err error) {
	fmt.Fprintf(w, "Shards of the standard that share a cluster, Kubernetes %s: expected time, and how much that is above the bound\n", version)
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(out, "shards\t")
	for procs := 1; procs <= mostTime; procs++ {
		fmt.Fprintf(out, "%s at a time\t", text.Count(procs, "test"))
	}
	fmt.Fprintln(out)
	worst := 0.0
	for shards := 1; shards <= mostShared; shards++ {
		p, err := makePlan(plan.Request{Shards: shards, Shared: true})
		if err != nil {
			return false, err
		}
		var longest, beside, alone time.Duration
		for i := range p.Tests {
			if t := &p.Tests[i]; t.Phase == specs.Parallel {
				beside, longest = beside+t.Duration, max(longest, t.Duration)
			} else {
				alone += t.Duration
			}
		}
		fmt.Fprintf(out, "%d\t", shards)
		for procs := 1; procs <= mostTime; procs++ {
			bound := max(longest, beside/time.Duration(shards*procs)) + alone
			wall := plan.Wall(p, procs)
			excess := float64(wall)/float64(bound) - 1
			worst = max(worst, excess)
			fmt.Fprintf(out, "%v +%.1f%%\t", wall.Round(time.Second), 100*excess)
		}
		fmt.Fprintln(out)
	}
	if err := out.Flush(); err != nil {
		return false, err
	}
	missed = worst > wantLate
	word := "PASS"
	if missed {
		word = "FAIL"
	}
	fmt.Fprintf(w, "%s: at most %.1f%% above the bound, and may be %.0f%%\n", word, 100*worst, 100*wantLate)
	return missed, nil
}

// table prints a row for each number of shards, and returns the worst excess.
func table(w io.Writer, additional bool) (float64, error) {
	what := "the standard"
	if additional {
		what += " and the additional tests"
	}
	worst := 0.0
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for shards := fewest; shards <= most; shards++ {
		p, err := makePlan(plan.Request{Selection: result.Selection{Additional: additional}, Shards: shards})
		if err != nil {
			return 0, err
		}
		jobs := groups(p)
		if shards == fewest {
			fmt.Fprintf(w, "Shards of %s, Kubernetes %s: %d tests in %d groups that stay together, %v\n", what, version, len(p.Tests), len(jobs), sum(jobs).Round(time.Second))
			fmt.Fprintln(out, "shards\tlongest\toptimum\t\texcess\t")
		}
		longest := slices.Max(plan.Loads(p))
		best, exact := optimum(jobs, shards)
		excess := float64(longest)/float64(best) - 1
		worst = max(worst, excess)
		kind := "exact"
		if !exact {
			kind = "lower bound"
		}
		fmt.Fprintf(out, "%d\t%v\t%v\t%s\t%.1f%%\t\n", shards, longest.Round(time.Second), best.Round(time.Second), kind, 100*excess)
	}
	return worst, out.Flush()
}

// makePlan makes a plan of the standard for the version.
func makePlan(req plan.Request) (*result.Plan, error) {
	set, err := specs.Embedded()
	if err != nil {
		return nil, err
	}
	if req.Cases, err = set.For(version); err != nil {
		return nil, err
	}
	if req.Tests, err = specs.Catalogue(version); err != nil {
		return nil, err
	}
	req.Provider = e2e.DefaultProvider
	return plan.Make(req)
}

// groups returns how long each set of cases takes that tests link, the longest
// first.
func groups(p *result.Plan) []time.Duration {
	// Every case starts in a group of its own; a test puts all of its cases into
	// the group of its first.
	group := map[string]string{}
	for i := range p.Cases {
		group[p.Cases[i].ID] = p.Cases[i].ID
	}
	for i := range p.Tests {
		ids := p.Tests[i].Cases
		for _, id := range ids[1:] {
			from, to := group[id], group[ids[0]]
			for other := range group {
				if group[other] == from {
					group[other] = to
				}
			}
		}
	}
	durations := map[string]time.Duration{}
	for i := range p.Tests {
		durations[group[p.Tests[i].Cases[0]]] += p.Tests[i].Duration
	}
	var jobs []time.Duration
	for _, d := range durations {
		jobs = append(jobs, d)
	}
	slices.Sort(jobs)
	slices.Reverse(jobs)
	return jobs
}

func sum(jobs []time.Duration) time.Duration {
	var total time.Duration
	for _, d := range jobs {
		total += d
	}
	return total
}

// lowerBound is what the longest of n shards takes at least: its share, in
// units of which all jobs are multiples, the longest job, and the shortest two
// of the n+1 longest, of which some two must meet.
func lowerBound(jobs []time.Duration, n int) time.Duration {
	unit := time.Duration(0)
	for _, d := range jobs {
		for ; d != 0; unit, d = d, unit%d {
		}
	}
	share := time.Duration(n) * unit
	bound := max(jobs[0], (sum(jobs)+share-1)/share*unit)
	if len(jobs) > n {
		bound = max(bound, jobs[n-1]+jobs[n])
	}
	return bound
}

// optimum returns the shortest that the longest of n shards can be. Without
// exact it is a lower bound of that.
func optimum(jobs []time.Duration, n int) (best time.Duration, exact bool) {
	s := search{jobs: jobs, loads: make([]time.Duration, n), bound: lowerBound(jobs, n), best: sum(jobs) + 1, steps: budget}
	s.place(0)
	if s.steps <= 0 && s.best > s.bound {
		return s.bound, false
	}
	return s.best, true
}

// search is branch and bound over all ways to give jobs to shards.
type search struct {
	jobs  []time.Duration
	loads []time.Duration
	bound time.Duration // no answer is below it
	best  time.Duration
	steps int
}

// place tries every shard for the job, the least loaded first, and then the
// jobs after it.
func (s *search) place(job int) {
	if s.steps--; s.steps <= 0 || s.best <= s.bound {
		return
	}
	if job == len(s.jobs) {
		s.best = min(s.best, slices.Max(s.loads))
		return
	}
	order := make([]int, len(s.loads))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(s.loads[a] - s.loads[b]) })
	for i, k := range order {
		// Shards with the same load are the same.
		if i > 0 && s.loads[k] == s.loads[order[i-1]] {
			continue
		}
		if s.loads[k]+s.jobs[job] >= s.best {
			break
		}
		s.loads[k] += s.jobs[job]
		s.place(job + 1)
		s.loads[k] -= s.jobs[job]
	}
}
