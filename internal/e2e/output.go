package e2e

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/result"
)

// Listener is told what e2e.test's output says, as it says it.
type Listener interface {
	// SuiteRun tells the id with which the e2e framework labels the
	// namespaces of this process (e2e-run).
	SuiteRun(id string)
	// Started tells that the test with this name runs now.
	Started(name string)
	// Finished tells how a test ended.
	Finished(t Finished)
	// Destroyed tells that the test that runs destroys this namespace, which
	// the e2e framework made for it.
	Destroyed(namespace string)
	// SuiteFailed tells of a failure outside of any test.
	SuiteFailed(node, message string)
}

// Finished is how a test ended.
type Finished struct {
	Name    string
	State   result.TestState
	Seconds float64
	// Message is the failure or the reason of a skip; empty where it passed.
	Message string
}

// Output reads the verbose output (--ginkgo.v) of one e2e.test process that
// runs its tests one after the other. It is an [io.Writer]; Close tells that
// there is no more.
type Output struct {
	names    []string // longest first: a name can be another's beginning
	listener Listener

	line    []byte
	cut     bool // the line is longer than is read
	armed   bool // the last line was a delimiter
	known   bool // the run's id was told
	current string
	pending *Finished       // an end of which more is to come
	suite   string          // a suite node whose message is still being written
	message strings.Builder // of pending or suite
}

const (
	maxLine   = 8 << 10
	delimiter = "------------------------------"
)

var (
	destroying   = regexp.MustCompile(`^  STEP: Destroying namespace "([a-z0-9][-a-z0-9]{0,62})" for this suite\.`)
	runID        = regexp.MustCompile(`Starting e2e run "([A-Za-z0-9][-A-Za-z0-9_.]{0,62})"`)
	testEnd      = regexp.MustCompile(`^(?:•|\+|↺|S|P)(?: \[([A-Z]+)[^\]]*\])?(?: DURING REPETITION #\d+)?(?: \[(\d+\.\d+) seconds\])?$`)
	failureStart = regexp.MustCompile(`^  \[[A-Z]+\] `)
	nodeEnd      = regexp.MustCompile(`^\[([A-Za-z]+)\] \[([A-Z]+)\] \[\d+\.\d+ seconds\]$`)
)

// NewOutput returns an Output that looks for the tests with the given names.
func NewOutput(names []string, listener Listener) *Output {
	names = slices.Clone(names)
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	return &Output{names: names, listener: listener}
}

// Write takes the next piece of output. It never fails.
func (o *Output) Write(p []byte) (int, error) {
	written := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			o.extend(p)
			return written, nil
		}
		o.extend(p[:i])
		o.take(strings.TrimSuffix(string(o.line), "\r"))
		o.line, o.cut = o.line[:0], false
		p = p[i+1:]
	}
}

func (o *Output) extend(p []byte) {
	if room := maxLine - len(o.line); len(p) > room {
		p, o.cut = p[:room], true
	}
	o.line = append(o.line, p...)
}

// Close takes the end of the output: a failure whose message was cut off is
// told as far as it came. It returns the test that had started and not
// finished, or "".
func (o *Output) Close() (unfinished string) {
	o.unconfirmed()
	if len(o.line) > 0 {
		o.collect(string(o.line)) // half of a name may be another test's name
		o.line = nil
	}
	o.flush()
	return o.current
}

func (o *Output) take(line string) {
	armed := o.armed
	o.armed = line == delimiter && !o.cut
	if o.armed {
		o.flush()
		return
	}
	o.unconfirmed()
	if o.current != "" {
		if m := destroying.FindStringSubmatch(line); m != nil {
			o.listener.Destroyed(m[1])
		}
	}
	if !o.known {
		if m := runID.FindStringSubmatch(line); m != nil {
			o.known = true
			o.listener.SuiteRun(m[1])
		}
	}
	switch {
	case o.cut, strings.HasPrefix(line, " "):
		o.collect(line)
	case armed:
		if name := o.named(line); name != "" {
			o.current = name
			o.listener.Started(name)
		}
	default:
		o.ends(line)
	}
}

// unconfirmed takes back that a test passed, when what follows is not the
// delimiter that ginkgo writes next: a test printed what looked like its end.
func (o *Output) unconfirmed() {
	if o.pending != nil && o.pending.State == result.TestPassed {
		o.current, o.pending = o.pending.Name, nil
	}
}

// ends looks for the line that ends a test or a suite node.
func (o *Output) ends(line string) {
	if m := nodeEnd.FindStringSubmatch(line); m != nil && o.current == "" {
		o.flush()
		o.suite = m[1]
		return
	}
	m := testEnd.FindStringSubmatch(line)
	// Ginkgo tells how long every test took that passed.
	if m == nil || o.current == "" || m[1] == "" && m[2] == "" {
		o.collect(line)
		return
	}
	end := Finished{Name: o.current, State: stateOf(m[1])}
	end.Seconds, _ = strconv.ParseFloat(m[2], 64)
	o.current, o.pending = "", &end
}

// collect keeps the lines of a failure's message.
func (o *Output) collect(line string) {
	if o.pending == nil && o.suite == "" || o.message.Len() > result.MaxMessage {
		return
	}
	o.message.WriteString(line)
	o.message.WriteByte('\n')
}

func (o *Output) flush() {
	message := failureText(o.message.String())
	o.message.Reset()
	if o.pending != nil {
		if o.pending.State != result.TestPassed {
			o.pending.Message = message
		}
		o.listener.Finished(*o.pending)
		o.pending = nil
	}
	if o.suite != "" {
		o.listener.SuiteFailed(o.suite, message)
		o.suite = ""
	}
}

// named returns the test whose heading the line is: its name, and after it
// its labels in brackets.
func (o *Output) named(line string) string {
	for _, name := range o.names {
		if rest, ok := strings.CutPrefix(line, name); ok && (rest == "" || strings.HasPrefix(rest, " [")) {
			return name
		}
	}
	return ""
}

// failureText takes the code locations off the front of a failure's block, and
// the indentation off its lines.
func failureText(block string) string {
	lines := strings.Split(strings.TrimRight(block, "\n"), "\n")
	for len(lines) > 0 && !failureStart.MatchString(lines[0]) {
		lines = lines[1:]
	}
	for i, l := range lines {
		lines[i] = strings.TrimPrefix(l, "  ")
	}
	text := strings.TrimSpace(strings.Join(lines, "\n"))
	if text == "" {
		return strings.TrimSpace(block)
	}
	return text
}

// stateOf translates ginkgo's word for a state that is not "passed", as its
// reporter prints it ("FAILED") or its JSON report spells it ("failed").
func stateOf(word string) result.TestState {
	switch strings.ToUpper(word) {
	case "", "PASSED", "FLAKEY":
		return result.TestPassed
	case "SKIPPED", "PENDING":
		return result.TestSkipped
	case "FAILED", "PANICKED", "TIMEDOUT":
		return result.TestFailed
	default: // INTERRUPTED, ABORTED, and what a later ginkgo may add
		return result.TestError
	}
}
