package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
)

// Report is what ginkgo's JSON report says of the tests that were to run.
type Report struct {
	// Tests are the tests that ran, or that skipped themselves, by name.
	Tests map[string]Finished
	// First is when the first test began that ran; zero where none says it.
	First time.Time
	// Measured are the figures that tests among them recorded, by name.
	Measured map[string][]result.Measurement
	// Pending are the tests that are marked as not to be run.
	Pending map[string]bool
	// Others are the names of tests that ran and were not to run, a few of them.
	Others []string
	// SuiteFailures are failures outside of any test.
	SuiteFailures []result.Suite
	// Succeeded is ginkgo's own verdict on the suite, and Reasons why it did not
	// succeed, where no test or node says so.
	Succeeded bool
	Reasons   []string
	// Failed says that at least one test or node did not end well, also one that
	// is listed nowhere here.
	Failed bool
	// Contradictions are where the report contradicts itself.
	Contradictions []Contradiction
}

// Limits of what is read of a report. For the tests of Kubernetes, ginkgo writes
// 10 to 30 MB.
const (
	maxReport      = 256 << 20
	maxReportValue = 16 << 20 // one field of one spec
	maxSpecs       = 100_000  // Kubernetes has 7,600
	maxListed      = 100      // of what was not asked for
)

// ReadReport reads the JSON report that ginkgo wrote to path
// (--ginkgo.json-report). The report lists every test of the suite; of those
// that names does not hold, nothing is kept. A report that is missing, cut off,
// not ginkgo's, or that can be read in two ways is an error.
func ReadReport(path string, names []string) (*Report, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading ginkgo's report: %w", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil {
		return nil, fmt.Errorf("reading ginkgo's report: %w", err)
	} else if info.Size() > maxReport {
		return nil, fmt.Errorf("reading ginkgo's report %s: it has %d bytes, and %d are the limit", path, info.Size(), int64(maxReport))
	}
	report, err := readReport(io.LimitReader(file, maxReport), names)
	if err != nil {
		return nil, fmt.Errorf("reading ginkgo's report %s: %w", path, err)
	}
	return report, nil
}

func readReport(r io.Reader, names []string) (*Report, error) {
	report := &reportReader{
		objects: newObjects(r),
		Report:  Report{Tests: map[string]Finished{}, Measured: map[string][]result.Measurement{}, Pending: map[string]bool{}},
		asked:   make(map[string]bool, len(names)),
		listed:  map[string]bool{},
	}
	for _, name := range names {
		report.asked[name] = true
	}
	suites := 0
	err := report.list(func() error {
		if suites++; suites > 1 {
			return errors.New("it holds more than one suite")
		}
		return report.suite()
	})
	switch {
	case err != nil:
		return nil, err
	case suites == 0:
		return nil, errors.New("it holds no suite")
	}
	if err := report.end(); err != nil {
		return nil, err
	}
	return &report.Report, nil
}

// reportReader reads one report.
type reportReader struct {
	*objects
	Report
	asked  map[string]bool
	listed map[string]bool // those asked for that the report has listed
	specs  int
}

func (r *reportReader) suite() error {
	var succeeded *bool
	specs := false
	err := r.object(map[string]func() error{
		"SuiteSucceeded":             r.into(&succeeded),
		"SpecialSuiteFailureReasons": r.into(&r.Reasons),
		"SpecReports": func() error {
			specs = true
			return r.list(r.spec)
		},
	})
	switch {
	case err != nil:
		return err
	case succeeded == nil || !specs:
		return errors.New("its suite lacks SuiteSucceeded or SpecReports")
	}
	r.Succeeded = *succeeded
	r.Reasons = r.Reasons[:min(len(r.Reasons), maxListed)]
	for i := range r.Reasons {
		r.Reasons[i] = result.Cut(r.Reasons[i], 1000)
	}
	return nil
}

// specReport is what is read of a test, or of a node outside of tests.
type specReport struct {
	texts       []string // of the containers
	nodeType    string
	text        string
	state       string
	began       time.Time
	nanoseconds int64
	message     string
	panicked    string
	measured    []result.Measurement
}

func (r *reportReader) spec() error {
	if r.specs++; r.specs > maxSpecs {
		return fmt.Errorf("it lists over %d tests and nodes", maxSpecs)
	}
	var s specReport
	err := r.object(map[string]func() error{
		"ContainerHierarchyTexts": r.into(&s.texts),
		"LeafNodeType":            r.into(&s.nodeType),
		"LeafNodeText":            r.into(&s.text),
		"State":                   r.into(&s.state),
		"RunTime":                 r.into(&s.nanoseconds),
		"StartTime":               r.into(&s.began),
		"Failure": func() error {
			return r.object(map[string]func() error{"Message": r.into(&s.message), "ForwardedPanic": r.into(&s.panicked)})
		},
		"ReportEntries": func() error { return r.list(func() error { return r.entry(&s) }) },
	})
	if err != nil {
		return err
	}
	r.take(&s)
	return nil
}

// measuredPrefix begins the names of report entries that are figures.
const measuredPrefix = "op-readiness/"

// entry reads what a test has added to the report, and keeps it where it is a
// figure.
func (r *reportReader) entry(s *specReport) error {
	var name, figure string
	err := r.object(map[string]func() error{
		"Name": r.into(&name),
		"Value": func() error {
			return r.object(map[string]func() error{"Representation": r.into(&figure)})
		},
	})
	what, ours := strings.CutPrefix(name, measuredPrefix)
	if err == nil && ours && len(s.measured) < result.MaxMeasurements {
		s.measured = append(s.measured, result.FitMeasurements([]result.Measurement{{What: what, Figure: figure}})...)
	}
	return err
}

func (s *specReport) fullText() string {
	texts := append(slices.Clone(s.texts), s.text)
	return strings.Join(slices.DeleteFunc(texts, func(t string) bool { return t == "" }), " ")
}

// end tells how the test or node ended.
func (s *specReport) end() Finished {
	end := Finished{Name: s.fullText(), State: stateOf(s.state), Seconds: max(0, float64(s.nanoseconds)/1e9)}
	if end.State != result.TestPassed {
		message := s.message
		if s.panicked != "" {
			message += "\n" + s.panicked
		}
		word := strings.ToUpper(s.state)
		if word == "" {
			word = "NO STATE"
		}
		end.Message = result.Cut(strings.TrimSpace("["+result.Cut(word, 100)+"] "+message), result.MaxMessage)
	}
	return end
}

func (r *reportReader) take(s *specReport) {
	end := s.end()
	bad := end.State == result.TestFailed || end.State == result.TestError
	r.Failed = r.Failed || bad
	if s.nodeType != "It" {
		if bad && len(r.SuiteFailures) < maxListed {
			r.SuiteFailures = append(r.SuiteFailures, result.Suite{Node: result.Cut(s.nodeType, 100), Message: end.Message})
		}
		return
	}
	// A test that was not selected is skipped as well, and says nothing.
	silent := s.state == "skipped" && s.message == "" && s.nanoseconds == 0
	pending := s.state == "pending"
	if !r.asked[end.Name] {
		if !silent && !pending && len(r.Others) < maxListed {
			r.Others = append(r.Others, result.Cut(end.Name, 1000))
		}
		return
	}
	if r.listed[end.Name] {
		r.again(end)
		return
	}
	r.listed[end.Name] = true
	switch {
	case pending:
		r.Pending[end.Name] = true
	case !silent:
		r.Tests[end.Name] = end
		if !s.began.IsZero() && (r.First.IsZero() || s.began.Before(r.First)) {
			r.First = s.began
		}
		if len(s.measured) > 0 {
			r.Measured[end.Name] = s.measured
		}
	}
}

// again takes a test that the report has listed before: the worse end counts.
func (r *reportReader) again(end Finished) {
	if first, ok := r.Tests[end.Name]; ok && Worse(first.State, end.State) == first.State {
		end = first
	}
	r.Tests[end.Name] = end
	delete(r.Pending, end.Name)
	if !slices.ContainsFunc(r.Contradictions, func(c Contradiction) bool { return c.Test == end.Name }) {
		r.Contradictions = append(r.Contradictions, Contradiction{Test: end.Name, State: end.State, Message: "ginkgo's report lists it more than once"})
	}
}

// objects reads JSON without keeping more of it than one field at a time.
type objects struct {
	*json.Decoder
	room *rationed
}

func newObjects(r io.Reader) *objects {
	room := &rationed{from: r}
	o := &objects{Decoder: json.NewDecoder(room), room: room}
	o.refill()
	return o
}

// rationed reads no more than is left.
type rationed struct {
	from io.Reader
	left int
}

var errTooLong = fmt.Errorf("one of its fields has over %d MiB", maxReportValue>>20)

func (r *rationed) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, errTooLong
	}
	n, err := r.from.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, err
}

// refill lets the next field be read.
func (o *objects) refill() { o.room.left = maxReportValue }

// into returns what reads a field into v. What the field has for null is as if
// it were not there.
func (o *objects) into(v any) func() error {
	return func() error { return o.Decode(v) }
}

// unread is a field that is checked and not kept.
type unread struct{}

func (*unread) UnmarshalJSON([]byte) error { return nil }

// object reads an object, and calls what reads each of the fields; others are
// passed over. Field names are as ginkgo writes them: one that differs in case
// only, or that comes twice, would be read by some and not by others.
func (o *objects) object(fields map[string]func() error) error {
	if err := o.expect(json.Delim('{')); err != nil {
		return err
	}
	seen := make(map[string]bool, len(fields))
	for o.More() {
		o.refill()
		token, err := o.Token()
		if err != nil {
			return err
		}
		key := token.(string) // More and Token see to that
		read := fields[key]
		switch {
		case seen[key]:
			return fmt.Errorf("it has the field %s twice, the second time before byte %d", key, o.InputOffset())
		case read != nil:
			seen[key] = true
			err = read()
		case similar(fields, key):
			return fmt.Errorf("it has the field %q, which differs from ginkgo's in case only, before byte %d", result.Cut(key, 100), o.InputOffset())
		default:
			err = o.Decode(new(unread))
		}
		if err != nil {
			return err
		}
	}
	return o.expect(json.Delim('}'))
}

func similar(fields map[string]func() error, key string) bool {
	for name := range fields {
		if strings.EqualFold(name, key) {
			return true
		}
	}
	return false
}

// list reads a list, null for an empty one, and calls what reads each of its
// items.
func (o *objects) list(item func() error) error {
	token, err := o.Token()
	switch {
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	case err != nil:
		return err
	case token == nil:
		return nil
	case token != json.Delim('['):
		return fmt.Errorf("found %.100v where a list belongs, at byte %d", token, o.InputOffset())
	}
	for o.More() {
		o.refill()
		if err := item(); err != nil {
			return err
		}
	}
	return o.expect(json.Delim(']'))
}

func (o *objects) expect(want json.Delim) error {
	o.refill()
	token, err := o.Token()
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	if token != want {
		return fmt.Errorf("found %.100v where %v belongs, at byte %d", token, want, o.InputOffset())
	}
	return nil
}

// end returns an error unless there is nothing left but blanks.
func (o *objects) end() error {
	o.refill()
	if _, err := o.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("it goes on after its end, at byte %d", o.InputOffset())
	}
	return nil
}
