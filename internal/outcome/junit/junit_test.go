package junit

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
)

// The types below say what TestGrid decodes, and so what it refuses: its
// metadata/junit package has these fields with these types.
type gridSuites struct {
	XMLName xml.Name    `xml:"testsuites"`
	Suites  []gridSuite `xml:"testsuite"`
}

type gridSuite struct {
	Suites   []gridSuite  `xml:"testsuite"`
	Name     string       `xml:"name,attr"`
	Time     float64      `xml:"time,attr"`
	Failures int          `xml:"failures,attr"`
	Tests    int          `xml:"tests,attr"`
	Results  []gridResult `xml:"testcase"`
}

type gridResult struct {
	Name       string         `xml:"name,attr"`
	Time       float64        `xml:"time,attr"`
	Properties []gridProperty `xml:"properties>property"`
	Failure    *struct {
		Message string `xml:"message,attr"`
		Value   string `xml:",chardata"`
	} `xml:"failure"`
	Skipped *struct {
		Value string `xml:",chardata"`
	} `xml:"skipped"`
}

type gridProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

// decodeAsGrid decodes a document of ours as TestGrid does, and checks what
// TestGrid would drop and that the counts are true.
func decodeAsGrid(data []byte) ([]gridResult, error) {
	var doc gridSuites
	if err := xml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	if len(doc.Suites) != 1 || doc.Suites[0].Name != "" || len(doc.Suites[0].Suites) > 0 {
		return nil, fmt.Errorf("want one suite without a name, got %+v", doc.Suites)
	}
	suite := doc.Suites[0]
	failures := 0
	for _, r := range suite.Results {
		if r.Skipped != nil && strings.TrimSpace(r.Skipped.Value) == "" {
			return nil, fmt.Errorf("case %q: skipped without a body", r.Name)
		}
		if r.Failure != nil {
			failures++
		}
	}
	if suite.Tests != len(suite.Results) || suite.Failures != failures {
		return nil, fmt.Errorf("%d tests with %d failures, and the head says %d with %d", len(suite.Results), failures, suite.Tests, suite.Failures)
	}
	return suite.Results, nil
}

// readSlowly reads with encoding/xml into a tree what Read streams.
func readSlowly(data []byte) ([]Result, error) {
	d := xml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	d.CharsetReader = charset
	var root element
	if err := d.Decode(&root); err != nil {
		return nil, err
	}
	return root.results(), nil
}

type element struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Children []element  `xml:",any"`
}

func (e element) results() []Result {
	var out []Result
	for _, child := range e.Children {
		switch child.XMLName.Local {
		case "testsuite", "testsuites":
			out = append(out, child.results()...)
		case "testcase":
			has := func(name string) bool {
				return slices.ContainsFunc(child.Children, func(e element) bool { return e.XMLName.Local == name })
			}
			r := Result{Failed: has("failure") || has("error")}
			r.Skipped = has("skipped") && !r.Failed
			for _, a := range child.Attrs {
				if a.Name == (xml.Name{Local: "name"}) {
					r.Name = a.Value
				}
			}
			out = append(out, r)
		}
	}
	return out
}
