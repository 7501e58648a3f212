package junit

// Case is a testcase element. At most one of Failure and Skipped is usually set;
// a case with none of them passed.
type Case struct {
	Name       string
	Time       float64    // seconds
	Properties []Property // numeric ones become TestGrid metrics
	Failure    *Detail
	Skipped    *Detail
}

// Detail is what a failure or skipped element says.
type Detail struct {
	Message string
	Type    string
	Body    string
}

// Property is a property element.
type Property struct {
	Name  string
	Value string
}

// counts are the numbers in the head of a suite. A case counts once: as a
// failure if it has one, else as skipped.
type counts struct {
	tests, failures, skipped int
	time                     float64 // seconds, the sum over the cases
}

// add counts one case.
func (c *counts) add(one *Case) {
	c.tests++
	c.time += plainSeconds(one.Time)
	switch {
	case one.Failure != nil:
		c.failures++
	case one.Skipped != nil:
		c.skipped++
	}
}
