package e2e

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
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
	// the e2e framework made for it, and when it began to, by the clock of this
	// machine; the zero time where the output does not say.
	Destroyed(namespace string, at time.Time)
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

// Contradiction is a place where e2e.test says two things of one test.
type Contradiction struct {
	// Test is the test's name; "" where it is not known.
	Test string
	// State is the worst that was said of the test.
	State   result.TestState
	Message string
}

// Output reads the verbose output (--ginkgo.v) of one e2e.test process that
// runs its tests one after the other. It is an [io.Writer]; Close tells that
// there is no more.
//
// What a test prints stands in the same output. Each test starts once and ends
// once: its listener is told the first start and the first end, and whatever
// comes after them is one of the [Output.Contradictions].
type Output struct {
	names    []string // longest first: a name can be another's beginning
	listener Listener

	started        map[string]bool
	last           Finished // the last end that was told
	contradictions []Contradiction

	line    []byte
	cut     bool // the line is longer than is read
	armed   bool // the last line was a delimiter
	known   bool // the run's id was told
	current string
	pending *Finished       // an end of which more is to come
	suite   string          // a suite node whose message is still being written
	word    string          // ginkgo's word for how suite ended
	message strings.Builder // of pending or suite
}

const (
	maxLine   = 8 << 10
	delimiter = "------------------------------"
	// stamp is how ginkgo tells times, in the local time of its process.
	stamp = "01/02/06 15:04:05.999"
)

var (
	destroying = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^  STEP: Destroying namespace "([a-z0-9][-a-z0-9]{0,62})" for this suite\.(?:.* @ (.*))?`)
	})
	runID = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`Starting e2e run "([A-Za-z0-9][-A-Za-z0-9_.]{0,62})"`)
	})
	testEnd      = regexp.MustCompile(`^(?:•|\+|↺|S|P)(?: \[([A-Z]+)[^\]]*\])?(?: DURING REPETITION #\d+)?(?: \[(\d+\.\d+) seconds\])?$`)
	failureStart = regexp.MustCompile(`^  \[[A-Z]+\] `)
	nodeEnd      = regexp.MustCompile(`^\[([A-Za-z]+(?: \([A-Za-z]+\))?)\] \[([A-Z]+)\] \[\d+\.\d+ seconds\]$`)
)

// NewOutput returns an Output that looks for the tests with the given names.
func NewOutput(names []string, listener Listener) *Output {
	names = slices.Clone(names)
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	return &Output{names: names, listener: listener, started: map[string]bool{}}
}

// Contradictions returns where the output contradicts itself, one for each
// test; complete after Close.
func (o *Output) Contradictions() []Contradiction { return slices.Clone(o.contradictions) }

// contradict notes that more was said of a test than its one start and end.
func (o *Output) contradict(test string, state result.TestState, message string) {
	i := slices.IndexFunc(o.contradictions, func(c Contradiction) bool { return c.Test == test })
	if i < 0 {
		o.contradictions = append(o.contradictions, Contradiction{Test: test, State: state, Message: message})
		return
	}
	o.contradictions[i].State = Worse(o.contradictions[i].State, state)
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
		if m := destroying().FindStringSubmatch(line); m != nil {
			// What is not a duration is the zero time.
			at, _ := time.ParseInLocation(stamp, m[2], time.Local)
			o.listener.Destroyed(m[1], at)
		}
	}
	if !o.known {
		if m := runID().FindStringSubmatch(line); m != nil {
			o.known = true
			o.listener.SuiteRun(m[1])
		}
	}
	name := ""
	if armed {
		name = o.named(line)
	}
	switch {
	case o.cut, strings.HasPrefix(line, " "):
		o.collect(line)
	case name != "":
		o.starts(name)
	case armed && !testEnd.MatchString(line):
		o.last = Finished{} // the heading of something else
		o.collect(line)
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

// starts takes the heading of a test. No test starts twice in one process, so
// that the second heading may be what a test printed.
func (o *Output) starts(name string) {
	if o.started[name] {
		o.contradict(name, result.TestError, "the output has a second start of it")
		return
	}
	o.started[name] = true
	o.current = name
	o.listener.Started(name)
}

// ends looks for the line that ends a test or a suite node.
func (o *Output) ends(line string) {
	if m := nodeEnd.FindStringSubmatch(line); m != nil && o.current == "" {
		o.flush()
		o.suite, o.word = m[1], m[2]
		return
	}
	m := testEnd.FindStringSubmatch(line)
	// Ginkgo tells how long every test took that passed. Pending tests have no
	// start, and so no end.
	if m == nil || m[1] == "" && m[2] == "" || m[1] == "PENDING" {
		o.collect(line)
		return
	}
	end := Finished{Name: o.current, State: printedState(m[1])}
	if o.current == "" {
		o.endsAgain(end.State)
		o.collect(line)
		return
	}
	end.Seconds, _ = strconv.ParseFloat(m[2], 64)
	o.current, o.pending = "", &end
}

// endsAgain takes the end of a test while none runs: a second end of the last
// one. Only that a test is skipped because of another is told without a start.
func (o *Output) endsAgain(state result.TestState) {
	first := o.last
	if o.pending != nil {
		first = *o.pending
	} else if state == result.TestSkipped {
		return
	}
	message := fmt.Sprintf("the output has a second end of it: %s, and then %s", first.State, state)
	if first.Name == "" {
		message = fmt.Sprintf("the output has the end of a test that has no start: %s", state)
	}
	o.contradict(first.Name, Worse(first.State, state), message)
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
		o.last, o.pending = *o.pending, nil
	}
	if o.suite != "" {
		if !strings.HasPrefix(message, "[") {
			message = strings.TrimSpace("[" + o.word + "] " + message)
		}
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

// printedState translates the word for a state that ginkgo's reporter prints;
// it prints none for a test that passed.
func printedState(word string) result.TestState {
	switch word {
	case "", "FLAKEY":
		return result.TestPassed
	default:
		return stateOf(strings.ToLower(word))
	}
}

// stateOf translates a state as ginkgo's JSON report spells it.
func stateOf(word string) result.TestState {
	switch word {
	case "passed":
		return result.TestPassed
	case "skipped", "pending":
		return result.TestSkipped
	case "failed", "panicked", "timedout":
		return result.TestFailed
	default: // interrupted, aborted, and what a later ginkgo may add
		return result.TestError
	}
}

// Worse returns which of two states says less good of a test.
func Worse(a, b result.TestState) result.TestState {
	order := []result.TestState{"", result.TestPassed, result.TestSkipped, result.TestError, result.TestFailed}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}
