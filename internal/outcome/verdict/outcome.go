package verdict

// Outcome is how a case ended.
type Outcome string

// The outcomes of a case.
const (
	Passed Outcome = "passed"
	// Flaky passed after an attempt that failed. It counts as passed.
	Flaky  Outcome = "flaky"
	Failed Outcome = "failed"
	// Unproven passed, but without proof that Windows was tested.
	Unproven Outcome = "unproven"
	// Error says that the case never got a fair run.
	Error Outcome = "error"
	// NotTested says that the standard asks, and this run could not test it.
	NotTested Outcome = "not-tested"
	// NotApplicable says that the standard does not ask it of this cluster:
	// a fact of the API or a declaration by the user says so.
	NotApplicable Outcome = "not-applicable"
	// NotImplemented says that no test exists.
	NotImplemented Outcome = "not-implemented"
)

// Outcomes lists every outcome, in the order in which reports show them.
func Outcomes() []Outcome {
	return []Outcome{Passed, Flaky, Failed, Unproven, Error, NotTested, NotApplicable, NotImplemented}
}

// Good reports whether the outcome counts as passed.
func (o Outcome) Good() bool { return o == Passed || o == Flaky }

// Verdict is what a scope comes to.
type Verdict string

// The verdicts of a scope.
const (
	// Ready says that everything that gates was proven.
	Ready Verdict = "ready"
	// NotReady says that something that gates failed.
	NotReady Verdict = "not-ready"
	// Inconclusive says that something that gates is unproven, not tested or
	// in error, or that nothing was tested at all.
	Inconclusive Verdict = "inconclusive"
	// NotAsked is the verdict of a category in which nothing is asked of this
	// cluster, or nothing has a test, and of an empty shard of a plan that is
	// not empty. A run as a whole never has it.
	NotAsked Verdict = "not-asked"
)

// ExitCode returns the exit code that the verdict stands for.
func (v Verdict) ExitCode() int {
	switch v {
	case Ready, NotAsked:
		return ExitReady
	case NotReady:
		return ExitNotReady
	default:
		return ExitInconclusive
	}
}
