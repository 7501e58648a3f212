package result

import (
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/redact"
	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// EventType names what an [Event] tells.
type EventType string

// The types of events in results.jsonl.
const (
	// RunStarted begins every attempt at a run: the first, and each resume.
	RunStarted EventType = "run-started"
	// RunFinished ends an attempt that was not killed.
	RunFinished   EventType = "run-finished"
	CaseDecided   EventType = "case-decided"
	BatchStarted  EventType = "batch-started"
	BatchSuite    EventType = "batch-suite"
	BatchFinished EventType = "batch-finished"
	TestStarted   EventType = "test-started"
	TestFinished  EventType = "test-finished"
	TestMeasured  EventType = "test-measured"
	SuiteFailed   EventType = "suite-failed"
	PodObserved   EventType = "pod"
	// ClusterLeft comes after RunFinished: the cluster that was made for the run
	// could not be removed. Its Suite says what is left.
	ClusterLeft EventType = "cluster-left"
)

// Event is one line of results.jsonl. Which fields are set depends on Type.
type Event struct {
	Time time.Time `json:"time"`
	Type EventType `json:"type"`

	// Interrupted, of RunFinished, says that a signal ended the run early.
	Interrupted bool `json:"interrupted,omitempty"`
	// OutOfTime, of RunFinished, says that the run's own time was up before all
	// tests had a result.
	OutOfTime bool `json:"outOfTime,omitempty"`

	Batch *Batch    `json:"batch,omitempty"`
	Test  *TestRun  `json:"test,omitempty"`
	Case  *Decision `json:"case,omitempty"`
	Suite *Suite    `json:"suite,omitempty"`
	Pod   *Pod      `json:"pod,omitempty"`
}

// Batch is one e2e.test process.
type Batch struct {
	ID         string        `json:"id"`
	Phase      specs.Phase   `json:"phase,omitempty"`
	Conditions RunConditions `json:"conditions,omitzero"`
	Tests      int           `json:"tests,omitempty"`
	// Beside says that other tests of the run may have been at work meanwhile.
	Beside bool `json:"beside,omitempty"`
	// PID and PIDStart identify the process: a process id, and when the
	// operating system says it began, in milliseconds since the epoch.
	PID      int   `json:"pid,omitempty"`
	PIDStart int64 `json:"pidStart,omitempty"`
	// SuiteRunID is the e2e framework's id of the process; it labels the
	// namespaces that its tests make (e2e-run).
	SuiteRunID string `json:"suiteRunID,omitempty"`
	// Exit tells how the process ended: "exit code 0", "signal: killed".
	Exit string `json:"exit,omitempty"`
	// Stopped says why op-readiness ended the process; "" where it came to its
	// end by itself.
	Stopped string `json:"stopped,omitempty"`
	// Reconciled says that ginkgo's report was read, and tells the same as the
	// output and the exit code. See [Run.Sound].
	Reconciled bool   `json:"reconciled,omitempty"`
	Log        string `json:"log,omitempty"`
}

// TestState is how one attempt of a test ended.
type TestState string

// The ends of an attempt.
const (
	TestPassed TestState = "passed"
	// TestFailed includes panics and tests that exceeded their time limit.
	TestFailed TestState = "failed"
	// TestSkipped says that the test itself decided not to run.
	TestSkipped TestState = "skipped"
	// TestError says that the test never got a fair run.
	TestError TestState = "error"
)

// TestRun is one attempt of one planned test.
type TestRun struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Attempt counts from 1.
	Attempt int    `json:"attempt"`
	Batch   string `json:"batch"`
	// State, Seconds and Message are set when the test has finished.
	State   TestState `json:"state,omitempty"`
	Seconds float64   `json:"seconds,omitempty"`
	// Message is the failure, the reason of a skip, or what went wrong.
	Message string `json:"message,omitempty"`
	// Unobserved says why the pods of the attempt may not all have been seen;
	// "" where they were, or where nobody watched.
	Unobserved string `json:"unobserved,omitempty"`
	// Meanwhile is what happened to the cluster during an attempt that did not pass:
	// outages of the API server, what became of nodes and of the test's namespaces.
	// A pass has none.
	Meanwhile string `json:"meanwhile,omitempty"`
	// Pods is how many pods were observed: their events stand right before the
	// one that ends the attempt.
	Pods int `json:"pods,omitempty"`
	// Measured are the figures that the test recorded, which decide nothing. They
	// are told by an event of their own, when the batch is at its end.
	Measured []Measurement `json:"measured,omitempty"`
}

// Measurement is a figure that a test recorded, in the words of the test:
// "rescheduling, median" was "1.2s".
type Measurement struct {
	What   string `json:"what"`
	Figure string `json:"figure"`
}

// String returns "rescheduling, median: 1.2s".
func (m Measurement) String() string { return m.What + ": " + m.Figure }

// MaxMeasurements is how many figures of one attempt are kept.
const MaxMeasurements = 32

// FitMeasurements returns the figures as they are recorded, whoever wrote them:
// the first few, each text one line without secrets, of about 200 bytes at most.
func FitMeasurements(all []Measurement) []Measurement {
	fit := func(s string) string {
		return strings.Clone(text.Cut(shown.Line(redact.String(text.Head(s, 4<<10))), 200))
	}
	var out []Measurement
	for _, m := range all[:min(len(all), MaxMeasurements)] {
		out = append(out, Measurement{fit(m.What), fit(m.Figure)})
	}
	return out
}

// Why is the attempt's message, with what happened to the cluster meanwhile. So much
// stands before the message that both are seen where only the beginning is shown;
// the whole stands after it.
func (t *TestRun) Why() string {
	const before = 240
	meanwhile := strings.TrimSuffix(t.Meanwhile, ".")
	switch {
	case meanwhile == "":
		return t.Message
	case len(meanwhile) <= before:
		return strings.TrimSpace("Meanwhile " + meanwhile + ".\n" + t.Message)
	}
	first, _, _ := strings.Cut(Cut(meanwhile, before), "\n")
	return "Meanwhile " + first + " …\n" + strings.TrimSpace(t.Message+"\nAll that happened meanwhile: "+meanwhile+".")
}

// Decision is a case that this run does not test, and why; it is taken before
// the tests run.
type Decision struct {
	ID string `json:"id"`
	// Outcome is one of the outcomes of package verdict.
	Outcome string `json:"outcome"`
	Reason  string `json:"reason"`
}

// Suite is a failure outside of any test: in BeforeSuite, AfterSuite, of the process
// itself, or of the removal of the cluster.
type Suite struct {
	// Batch is "" for the cluster.
	Batch   string `json:"batch,omitempty"`
	Node    string `json:"node"`
	Message string `json:"message"`
	// Contradiction says that the output, ginkgo's report and the exit code tell
	// different stories. No later batch makes up for that.
	Contradiction bool `json:"contradiction,omitempty"`
}

// Teardown is the Node of a [ClusterLeft].
const Teardown = "cluster teardown"

// Left reports whether it says what was left of the cluster.
func (s *Suite) Left() bool { return s.Batch == "" && s.Node == Teardown }

// Name is what failed, such as "batch 03 [BeforeSuite]".
func (s *Suite) Name() string {
	if s.Batch == "" {
		return s.Node
	}
	return strings.TrimSpace("batch " + s.Batch + " " + s.Node)
}

// Pod is what was observed of one pod of one attempt of a test.
type Pod struct {
	Test         string   `json:"test"`
	Attempt      int      `json:"attempt"`
	Namespace    string   `json:"namespace"`
	Name         string   `json:"name"`
	Node         string   `json:"node,omitempty"`
	OS           specs.OS `json:"os,omitempty"`
	WindowsBuild string   `json:"windowsBuild,omitempty"`
	Simulated    bool     `json:"simulated,omitempty"`
	RuntimeClass string   `json:"runtimeClass,omitempty"`
	// PodOS is the operating system that the pod itself names in spec.os; "" for none.
	PodOS  specs.OS `json:"podOS,omitempty"`
	Images []string `json:"images,omitempty"`
	// Started says that a container of it, or an init container, has run.
	Started bool `json:"started,omitempty"`
	// Phases are those the pod was seen in, in that order.
	Phases []string `json:"phases,omitempty"`
	// SchedulingFailure is what the scheduler said last of why it could not
	// place the pod.
	SchedulingFailure string    `json:"schedulingFailure,omitempty"`
	Observed          time.Time `json:"observed,omitzero"`
}
