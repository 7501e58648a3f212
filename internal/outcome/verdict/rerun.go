package verdict

import "github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"

// RerunHelps reports whether another attempt at a run may change its verdict: the
// run did not come to its end, or something that gates failed, is unproven or in
// error. What cannot be tested on the cluster stays so.
func (j *Judgement) RerunHelps(run *result.Run) bool {
	if !run.Finished || run.Interrupted || run.OutOfTime || len(j.Suites)+len(run.Problems) > 0 {
		return true
	}
	for i := range j.Cases {
		c := &j.Cases[i]
		if c.Blocks() != "" && c.Outcome != NotTested {
			return true
		}
	}
	return false
}
