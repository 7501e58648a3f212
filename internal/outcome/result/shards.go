package result

import (
	"fmt"
	"slices"

	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
)

// Merged reports whether the folder was merged from those of several shards
// or attempts.
func (r *Run) Merged() bool { return len(r.Manifest.Shards) > 0 }

// Manifests are those of the executions that the results come from: the run's
// own, or those of the shards that were merged.
func (r *Run) Manifests() []*Manifest {
	if !r.Merged() {
		return []*Manifest{r.Manifest}
	}
	all := make([]*Manifest, len(r.Manifest.Shards))
	for i := range r.Manifest.Shards {
		all[i] = &r.Manifest.Shards[i]
	}
	return all
}

// ManifestOf is the manifest of the execution that accounts for a shard; nil
// where the merge had no folder of it.
func (r *Run) ManifestOf(shard int) *Manifest {
	for _, m := range r.Manifests() {
		if !r.Merged() || m.Shard == shard {
			return m
		}
	}
	return nil
}

// End is how an execution ended.
type End int

// The ends of an execution.
const (
	// NotEnded was killed, or goes on.
	NotEnded End = iota
	// EndedItself ran all there was to run.
	EndedItself
	// EndedBySignal was interrupted.
	EndedBySignal
	// EndedOutOfTime stopped because its own time was up.
	EndedOutOfTime
)

// Ended reports how the execution that accounts for a shard ended.
func (r *Run) Ended(shard int) End {
	finished, interrupted, late := r.Finished, r.Interrupted, r.OutOfTime
	if r.Merged() {
		m := r.ManifestOf(shard)
		if m == nil {
			return NotEnded
		}
		finished, interrupted, late = !m.Finished.IsZero(), m.Interrupted, m.OutOfTime
	}
	switch {
	case !finished:
		return NotEnded
	case interrupted:
		return EndedBySignal
	case late:
		return EndedOutOfTime
	}
	return EndedItself
}

// maxNamed is how many cases a problem names.
const maxNamed = 10

// checkShards finds out what a merged folder lacks: every case must be
// accounted for by exactly one shard of the same run.
func (r *Run) checkShards() {
	if r.Manifest.Shard != 0 {
		r.problemf("%s: a folder of several shards says that it is shard %d", ManifestFile, r.Manifest.Shard)
	}
	seen := map[int]bool{}
	for i := range r.Manifest.Shards {
		m := &r.Manifest.Shards[i]
		runID, digest := r.runOf(m.Shard)
		name := fmt.Sprintf("shard %d (attempt %d)", m.Shard, m.Attempt)
		if len(r.Manifest.Runs) > 0 {
			name = fmt.Sprintf("run %s, %s,", Cut(m.RunID, 100), name)
		}
		switch {
		case m.Shard < 1 || m.Shard > r.Plan.Shards:
			r.problemf("%s: shard %d is not one of the plan's %d", ManifestFile, m.Shard, r.Plan.Shards)
		case seen[m.Shard]:
			r.problemf("%s: shard %d is there twice", ManifestFile, m.Shard)
		case m.RunID != runID:
			r.problemf("%s: shard %d is of another run: %s", ManifestFile, m.Shard, Cut(m.RunID, 100))
		case m.PlanDigest != digest:
			r.problemf("%s: shard %d is of another plan: %s", ManifestFile, m.Shard, Cut(m.PlanDigest, 100))
		case len(r.Manifest.Runs) > 0 && m.Source.Commit != "" && m.Source.Commit != r.Manifest.Source.Commit:
			r.problemf("%s: shard %d is of another commit: %s", ManifestFile, m.Shard, Cut(m.Source.Commit, 100))
		case m.Finished.IsZero():
			r.problemf("%s was killed, or is still going on", name)
		case m.Interrupted:
			r.problemf("%s was interrupted", name)
		case m.OutOfTime:
			r.problemf("the time of %s was up before all of its tests had a result", name)
		}
		seen[m.Shard] = true
	}
	for shard := 1; shard <= r.Plan.Shards; shard++ {
		if !seen[shard] {
			r.problemf("%s", r.missing(shard))
		}
	}
	for _, p := range r.Manifest.Problems {
		r.problemf("%s", Cut(p, MaxMessage))
	}
}

// runOf is the run, and its plan, that a shard belongs to.
func (r *Run) runOf(shard int) (runID, digest string) {
	if len(r.Manifest.Runs) == 0 {
		return r.Manifest.RunID, r.Plan.Digest
	}
	for i := range r.Manifest.Runs {
		if one := &r.Manifest.Runs[i]; shard >= one.FirstShard && shard-one.FirstShard < one.Shards {
			return one.RunID, one.PlanDigest
		}
	}
	return "", ""
}

// missing says what is not accounted for without a shard.
func (r *Run) missing(shard int) string {
	var ids []string
	for i := range r.Plan.Cases {
		if c := &r.Plan.Cases[i]; c.Shard == shard {
			ids = append(ids, c.ID)
		}
	}
	slices.Sort(ids)
	problem := fmt.Sprintf("shard %d of %d has no results", shard, r.Plan.Shards)
	if runID, _ := r.runOf(shard); len(r.Manifest.Runs) > 0 {
		problem = fmt.Sprintf("run %s: %s", Cut(runID, 100), problem)
	}
	if len(ids) == 0 {
		return problem
	}
	return fmt.Sprintf("%s: nothing accounts for %s", problem, text.Few(ids, maxNamed))
}
