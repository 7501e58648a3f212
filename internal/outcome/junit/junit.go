package junit

// Suites is a whole document, the testsuites element.
type Suites struct {
	Name   string
	Attrs  []Property // further attributes, in order; counts among them are ignored
	Suites []Suite
}

// Suite is a testsuite element.
type Suite struct {
	Name       string
	Attrs      []Property // further attributes, in order; counts among them are ignored
	Properties []Property
	Suites     []Suite
	Cases      []Case
	SystemOut  string
	SystemErr  string
}

// Case is a testcase element. At most one of Failure, Error and Skipped is
// usually set; a case with none of them passed.
type Case struct {
	Name       string
	Classname  string  // ignored by TestGrid
	Time       float64 // seconds
	Attrs      []Property
	Properties []Property // numeric ones become TestGrid metrics
	Failure    *Detail
	Error      *Detail
	Skipped    *Detail
	SystemOut  string
	SystemErr  string

	// Suites are the names of the suites the case was read from, outermost
	// first, without empty ones. TestGrid puts them before the case's name.
	// Writing ignores them. They are shared between cases: do not modify.
	Suites []string
}

// Detail is what a failure, error or skipped element says.
type Detail struct {
	Message string
	Type    string
	Body    string
}

// Property is a name with a value: a property element, or an attribute.
type Property struct {
	Name  string
	Value string
}

// Counts are the numbers in the head of a suite. A case counts once: as an
// error if it has one, else as a failure, else as skipped.
type Counts struct {
	Tests    int
	Failures int
	Errors   int
	Skipped  int
	Time     float64 // seconds, the sum over the cases
}

// Plus returns the sum of both counts.
func (c Counts) Plus(d Counts) Counts {
	return Counts{
		Tests:    c.Tests + d.Tests,
		Failures: c.Failures + d.Failures,
		Errors:   c.Errors + d.Errors,
		Skipped:  c.Skipped + d.Skipped,
		Time:     c.Time + d.Time,
	}
}

// count returns the counts of one case with the given elements.
func count(failure, errored, skipped bool, seconds float64) Counts {
	c := Counts{Tests: 1, Time: plainSeconds(seconds)}
	switch {
	case errored:
		c.Errors = 1
	case failure:
		c.Failures = 1
	case skipped:
		c.Skipped = 1
	}
	return c
}

// Counts returns what the case adds to its suite.
func (c *Case) Counts() Counts {
	return count(c.Failure != nil, c.Error != nil, c.Skipped != nil, c.Time)
}

// Counts returns the counts of the suite and of the suites in it.
func (s *Suite) Counts() Counts {
	var sum Counts
	for i := range s.Cases {
		sum = sum.Plus(s.Cases[i].Counts())
	}
	for i := range s.Suites {
		sum = sum.Plus(s.Suites[i].Counts())
	}
	return sum
}

// Counts returns the counts of the whole document.
func (s *Suites) Counts() Counts {
	var sum Counts
	for i := range s.Suites {
		sum = sum.Plus(s.Suites[i].Counts())
	}
	return sum
}
