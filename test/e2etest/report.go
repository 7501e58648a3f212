package e2etest

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// began is when everything began.
var began = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

// spec is one entry of ginkgo's JSON report, in the form in which ginkgo writes
// it.
type spec struct {
	ContainerHierarchyTexts     []string
	ContainerHierarchyLocations []location
	ContainerHierarchyLabels    [][]string
	LeafNodeType                string
	LeafNodeLocation            location
	LeafNodeLabels              []string
	LeafNodeText                string
	State                       string `json:",omitempty"`
	StartTime                   time.Time
	EndTime                     time.Time
	RunTime                     int64
	ParallelProcess             int
	Failure                     *failure `json:",omitempty"`
	NumAttempts                 int
	MaxFlakeAttempts            int
	MaxMustPassRepeatedly       int
	CapturedGinkgoWriterOutput  string           `json:",omitempty"`
	SpecEvents                  []map[string]any `json:",omitempty"`
	ReportEntries               []map[string]any `json:",omitempty"`

	// again is the key of a second state, "" for none.
	again string
}

type location struct {
	FileName   string `json:",omitempty"`
	LineNumber int    `json:",omitempty"`
}

type failure struct {
	Message            string
	Location           location
	FailureNodeContext string
	FailureNodeType    string
}

func failureOf(message string) *failure {
	if message == "" {
		return nil
	}
	return &failure{Message: message, Location: location{"k8s.io/kubernetes/test/e2e/fake.go", 2}, FailureNodeContext: "leaf-node", FailureNodeType: "It"}
}

// MarshalJSON writes a second state behind the first, where there is one.
func (s spec) MarshalJSON() ([]byte, error) {
	type plain spec
	data, err := json.Marshal(plain(s))
	if err == nil && s.again != "" {
		data = append(bytes.TrimSuffix(data, []byte("}")), `,"`+s.again+`":"passed"}`...)
	}
	return data, err
}

func (s *suite) add(name, state string, nanoseconds int64, message string) {
	area, text, _ := strings.Cut(name, " ")
	at := location{"k8s.io/kubernetes/test/e2e/fake.go", 1}
	one := spec{
		ContainerHierarchyTexts: []string{area}, ContainerHierarchyLocations: []location{at}, ContainerHierarchyLabels: [][]string{{}},
		LeafNodeType: "It", LeafNodeText: text, LeafNodeLocation: at, LeafNodeLabels: []string{"sig-fake"},
		State: state, StartTime: time.Now(), RunTime: nanoseconds, ParallelProcess: 1, Failure: failureOf(message),
	}
	if nanoseconds > 0 {
		one.EndTime, one.NumAttempts, one.MaxFlakeAttempts = began.Add(time.Duration(nanoseconds)), 1, 1
		one.CapturedGinkgoWriterOutput = "STEP: Creating a kubernetes client @ " + stamp + "\n"
		one.SpecEvents = []map[string]any{{"SpecEventType": "Node", "Message": area, "NodeType": "It"}}
	}
	s.specs = append(s.specs, one)
}

// suiteReport is the one entry of the report.
type suiteReport struct {
	SuitePath                  string
	SuiteDescription           string
	SuiteLabels                []string
	SuiteSucceeded             bool
	SuiteHasProgrammaticFocus  bool
	SpecialSuiteFailureReasons []string
	PreRunStats                map[string]int
	StartTime                  time.Time
	EndTime                    time.Time
	RunTime                    time.Duration
	SuiteConfig                map[string]any
	SpecReports                []spec
}

func (s *suite) writeReport(succeeded bool, reasons []string) error {
	if s.report == "" || s.do == NoReport {
		return nil
	}
	data, err := json.MarshalIndent([]suiteReport{{
		SuitePath: "/fake", SuiteDescription: specs.SuiteName, SuiteSucceeded: succeeded, SpecialSuiteFailureReasons: reasons,
		PreRunStats: map[string]int{"TotalSpecs": s.total, "SpecsThatWillRun": s.selected},
		StartTime:   began, EndTime: began.Add(time.Second), RunTime: time.Second,
		SuiteConfig: map[string]any{"RandomSeed": 1, "RandomizeAllSpecs": true}, SpecReports: s.specs,
	}}, "", "  ")
	if err != nil {
		return err
	}
	if s.do == LongReport {
		data = append(data, "\n[]"...)
	}
	return os.WriteFile(s.report, append(data, '\n'), 0o644)
}
