package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/result"
)

// Report is what ginkgo's JSON report says of the tests that were to run.
type Report struct {
	// Tests are the tests that ran, or that skipped themselves, by name.
	Tests map[string]Finished
	// Pending are the names of the tests that are marked as not to be run,
	// selected or not.
	Pending map[string]bool
	// SuiteFailures are failures outside of any test.
	SuiteFailures []result.Suite
	// Succeeded is ginkgo's own verdict on the suite.
	Succeeded bool
}

type specReport struct {
	ContainerHierarchyTexts []string
	LeafNodeType            string
	LeafNodeText            string
	State                   string
	RunTime                 int64 // nanoseconds
	Failure                 struct{ Message, ForwardedPanic string }
}

func (s *specReport) fullText() string {
	texts := s.ContainerHierarchyTexts
	if s.LeafNodeText != "" {
		texts = append(texts, s.LeafNodeText)
	}
	return strings.Join(texts, " ")
}

// maxReport is far above what ginkgo writes for the tests of Kubernetes.
const maxReport = 1 << 30

// ReadReport reads the JSON report that ginkgo wrote to path
// (--ginkgo.json-report). The report lists every test of the suite; the many
// that were not selected are read past, not kept. A report that is missing,
// cut off or not ginkgo's is an error.
func ReadReport(path string) (*Report, error) {
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
	report, err := readReport(file)
	if err != nil {
		return nil, fmt.Errorf("reading ginkgo's report %s: %w", path, err)
	}
	return report, nil
}

func readReport(r io.Reader) (*Report, error) {
	report := &Report{Tests: map[string]Finished{}, Pending: map[string]bool{}}
	dec := json.NewDecoder(r)
	if err := expect(dec, json.Delim('[')); err != nil {
		return nil, err
	}
	suites := 0
	for ; dec.More(); suites++ {
		if err := report.readSuite(dec); err != nil {
			return nil, err
		}
	}
	if err := expect(dec, json.Delim(']')); err != nil {
		return nil, err
	}
	if suites != 1 {
		return nil, fmt.Errorf("it holds %d suites, not 1", suites)
	}
	return report, nil
}

func (r *Report) readSuite(dec *json.Decoder) error {
	if err := expect(dec, json.Delim('{')); err != nil {
		return err
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		switch key {
		case "SuiteSucceeded":
			err = dec.Decode(&r.Succeeded)
		case "SpecReports":
			err = r.readSpecs(dec)
		default:
			var skipped json.RawMessage
			err = dec.Decode(&skipped)
		}
		if err != nil {
			return err
		}
	}
	return expect(dec, json.Delim('}'))
}

func (r *Report) readSpecs(dec *json.Decoder) error {
	token, err := dec.Token()
	if err != nil || token == nil { // null: no spec at all
		return err
	}
	if token != json.Delim('[') {
		return fmt.Errorf("SpecReports is %v, not a list", token)
	}
	for dec.More() {
		var s specReport
		if err := dec.Decode(&s); err != nil {
			return err
		}
		r.take(&s)
	}
	return expect(dec, json.Delim(']'))
}

func (r *Report) take(s *specReport) {
	state := stateOf(s.State)
	message := s.Failure.Message
	if s.Failure.ForwardedPanic != "" {
		message += "\n" + s.Failure.ForwardedPanic
	}
	if s.LeafNodeType != "It" {
		if state == result.TestFailed || state == result.TestError {
			r.SuiteFailures = append(r.SuiteFailures, result.Suite{Node: s.LeafNodeType, Message: message})
		}
		return
	}
	if s.State == "pending" {
		r.Pending[s.fullText()] = true
		return
	}
	// A test that was not selected is skipped as well, and says nothing.
	if state == result.TestSkipped && message == "" && s.RunTime == 0 {
		return
	}
	if state != result.TestPassed {
		message = strings.TrimSpace(fmt.Sprintf("[%s] %s", strings.ToUpper(s.State), message))
	} else {
		message = ""
	}
	r.Tests[s.fullText()] = Finished{
		Name:    s.fullText(),
		State:   state,
		Seconds: float64(s.RunTime) / 1e9,
		Message: message,
	}
}

func expect(dec *json.Decoder, want json.Delim) error {
	token, err := dec.Token()
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	if token != want {
		return fmt.Errorf("found %v where %v belongs, at byte %d", token, want, dec.InputOffset())
	}
	return nil
}
