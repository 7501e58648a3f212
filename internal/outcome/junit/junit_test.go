package junit

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

func read(t *testing.T, r io.Reader, opts Options) ([]Case, Summary) {
	t.Helper()
	cases, sum, err := readAll(r, opts)
	if err != nil {
		t.Fatal(err)
	}
	return cases, sum
}

func readAll(r io.Reader, opts Options) ([]Case, Summary, error) {
	var cases []Case
	sum, err := Read(r, opts, func(c Case) error {
		cases = append(cases, c)
		return nil
	})
	return cases, sum, err
}

// The types below say what TestGrid decodes, and so what it refuses: its
// metadata/junit package has these fields with these types.
type gridSuites struct {
	XMLName xml.Name    `xml:"testsuites"`
	Suites  []gridSuite `xml:"testsuite"`
}

type gridSuite struct {
	Suites   []gridSuite `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Time     float64     `xml:"time,attr"`
	Failures int         `xml:"failures,attr"`
	Tests    int         `xml:"tests,attr"`
	Results  []struct {
		Name    string  `xml:"name,attr"`
		Time    float64 `xml:"time,attr"`
		Output  *string `xml:"system-out"`
		Failure *struct {
			Message string `xml:"message,attr"`
			Value   string `xml:",chardata"`
		} `xml:"failure"`
		Error *struct {
			Message string `xml:"message,attr"`
			Value   string `xml:",chardata"`
		} `xml:"error"`
		Skipped *struct {
			Value string `xml:",chardata"`
		} `xml:"skipped"`
	} `xml:"testcase"`
}

// decodeAsGrid decodes a document of ours as TestGrid does, and checks what
// TestGrid would drop.
func decodeAsGrid(data []byte) (gridSuites, error) {
	var doc gridSuites
	if err := xml.Unmarshal(data, &doc); err != nil {
		return doc, err
	}
	var check func(s gridSuite) error
	check = func(s gridSuite) error {
		for _, r := range s.Results {
			if r.Skipped != nil && strings.TrimSpace(r.Skipped.Value) == "" {
				return fmt.Errorf("case %q: skipped without a body", r.Name)
			}
		}
		for _, sub := range s.Suites {
			if err := check(sub); err != nil {
				return err
			}
		}
		return nil
	}
	for _, s := range doc.Suites {
		if err := check(s); err != nil {
			return doc, err
		}
	}
	return doc, nil
}

// readSlowly reads with encoding/xml, slowly and simply, what Read reads.
func readSlowly(data []byte) ([]Case, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	d := xml.NewDecoder(bytes.NewReader(data))
	d.CharsetReader = func(charset string, r io.Reader) (io.Reader, error) {
		if strings.EqualFold(charset, "utf8") {
			return r, nil
		}
		return nil, errors.New("unknown charset")
	}
	attr := func(e xml.StartElement, name string) string {
		for _, a := range e.Attr {
			if a.Name.Space == "" && a.Name.Local == name {
				return a.Value
			}
		}
		return ""
	}
	// element reads the rest of an element: its direct text, its children by child.
	element := func(child func(xml.StartElement) error) (string, error) {
		var text strings.Builder
		for {
			t, err := d.Token()
			if err != nil {
				return "", err
			}
			switch t := t.(type) {
			case xml.CharData:
				text.Write(t)
			case xml.EndElement:
				return text.String(), nil
			case xml.StartElement:
				if err := child(t); err != nil {
					return "", err
				}
			}
		}
	}
	skip := func(xml.StartElement) error { return d.Skip() }

	var cases []Case
	var suite func(e xml.StartElement, path []string) error
	suite = func(e xml.StartElement, path []string) error {
		if name := attr(e, "name"); name != "" && e.Name.Local == "testsuite" {
			path = append(path[:len(path):len(path)], name)
		}
		_, err := element(func(e xml.StartElement) error {
			switch e.Name.Local {
			case "testsuite", "testsuites":
				return suite(e, path)
			case "testcase":
			default:
				return d.Skip()
			}
			seconds, err := parseSeconds(attr(e, "time"))
			if err != nil {
				return err
			}
			c := Case{Name: attr(e, "name"), Classname: attr(e, "classname"), Time: seconds, Suites: path}
			_, err = element(func(e xml.StartElement) error {
				var to **Detail
				switch e.Name.Local {
				case "failure":
					to = &c.Failure
				case "error":
					to = &c.Error
				case "skipped":
					to = &c.Skipped
				case "system-out", "system-err":
					text, err := element(skip)
					if e.Name.Local == "system-out" {
						c.SystemOut = joined(c.SystemOut, text)
					} else {
						c.SystemErr = joined(c.SystemErr, text)
					}
					return err
				case "properties":
					_, err := element(func(e xml.StartElement) error {
						text, err := element(skip)
						p := Property{attr(e, "name"), attr(e, "value")}
						if p.Value == "" {
							p.Value = text
						}
						if e.Name.Local == "property" {
							c.Properties = append(c.Properties, p)
						}
						return err
					})
					return err
				default:
					return d.Skip()
				}
				body, err := element(skip)
				message, typ := attr(e, "message"), attr(e, "type")
				if *to == nil {
					*to = &Detail{message, typ, body}
					return err
				}
				if message != (*to).Message {
					(*to).Message = joined((*to).Message, message)
				}
				if typ != (*to).Type {
					(*to).Type = joined((*to).Type, typ)
				}
				(*to).Body = joined((*to).Body, body)
				return err
			})
			cases = append(cases, c)
			return err
		})
		return err
	}
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			return cases, nil
		}
		if err != nil {
			return cases, err
		}
		if e, ok := t.(xml.StartElement); ok {
			if err := suite(e, nil); err != nil {
				return cases, err
			}
		}
	}
}
