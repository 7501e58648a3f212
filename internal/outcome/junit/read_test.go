package junit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReadUnderstands(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     []Case
	}{
		{"an empty suite", `<testsuite/>`, nil},
		{"a byte order mark and a declaration", "\ufeff<?xml version='1.0' encoding='utf-8'?>\n<testsuites></testsuites>\n", nil},
		{"suites in suites", `<testsuites name="r"><testsuite name="a"><testcase name="1"/><testsuite name="b"><testcase name="2"/></testsuite><testcase name="3"/></testsuite><testsuite><testcase name="4"/></testsuite></testsuites>`,
			[]Case{
				{Name: "1", Suites: []string{"a"}}, {Name: "2", Suites: []string{"a", "b"}},
				{Name: "3", Suites: []string{"a"}}, {Name: "4"},
			}},
		{"attributes with > and quotes in them", `<testsuite><testcase name='a > b "c"' classname="it's" status = "x>y"  time="1.5" /></testsuite>`,
			[]Case{{Name: `a > b "c"`, Classname: "it's", Time: 1.5, Attrs: []Property{{"status", "x>y"}}}}},
		{"references", `<testsuite><testcase name="&lt;&#65;&#x1F600;&quot;&apos;&gt;"><failure>a &amp;amp; b&#xD;</failure></testcase></testsuite>`,
			[]Case{{Name: `<A😀"'>`, Failure: &Detail{Body: "a &amp; b\r"}}}},
		{"CDATA", `<testsuite><testcase name="n"><failure>a<![CDATA[<testcase name="no"/> &amp; ]] ]>]]]>b</failure></testcase></testsuite>`,
			[]Case{{Name: "n", Failure: &Detail{Body: `a<testcase name="no"/> &amp; ]] ]>]b`}}}},
		{"comments and processing instructions", `<!-- > --><?p <a> ?><testsuite><!-- <testcase name="no"/> --><testcase name="n"><error>a<!-- & -->b<?q ]]> ?>c</error></testcase></testsuite><!---->`,
			[]Case{{Name: "n", Error: &Detail{Body: "abc"}}}},
		{"line breaks", "<testsuite><testcase name='n'><system-out>a\r\nb\rc\n\r\nd</system-out></testcase></testsuite>",
			[]Case{{Name: "n", SystemOut: "a\nb\nc\n\nd"}}},
		{"everything of a case", `<testsuite><testcase name="n" time="1,234.5" file="f.go"><properties><property name="a" value="1"/><property name="b">two</property></properties><failure message="m" type="t">body</failure><system-out>out</system-out><system-err>err</system-err></testcase></testsuite>`,
			[]Case{{Name: "n", Time: 1234.5, Attrs: []Property{{"file", "f.go"}}, Properties: []Property{{"a", "1"}, {"b", "two"}},
				Failure: &Detail{"m", "t", "body"}, SystemOut: "out", SystemErr: "err"}}},
		{"several failures and outputs of one case", `<testsuite><testcase name="n"><failure message="m">1</failure><failure message="m">2</failure><system-out>a
</system-out><system-out>b</system-out></testcase></testsuite>`,
			[]Case{{Name: "n", Failure: &Detail{Message: "m", Body: "1\n2"}, SystemOut: "a\nb"}}},
		{"elements it does not know", `<testsuite><x><testcase name="no"/></x><testcase name="n"><flaky><failure>no</failure></flaky><skipped>why<b>no</b></skipped></testcase></testsuite>`,
			[]Case{{Name: "n", Skipped: &Detail{Body: "why"}}}},
		{"name spaces", `<j:testsuite xmlns:j="urn:j"><j:testcase name="n" j:name="no"/></j:testsuite>`,
			[]Case{{Name: "n"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for chunks, r := range map[string]io.Reader{
				"whole":       strings.NewReader(tt.in),
				"byte wise":   iotest.OneByteReader(strings.NewReader(tt.in)),
				"data at EOF": iotest.DataErrReader(strings.NewReader(tt.in)),
			} {
				got, sum := read(t, r, Options{})
				if !sameCases(got, tt.want) {
					t.Errorf("%s: got %s, want %s", chunks, show(got), show(tt.want))
				}
				if sum.All != sum.Kept || sum.All.Tests != len(tt.want) {
					t.Errorf("%s: %+v", chunks, sum)
				}
			}
			ref, err := readSlowly([]byte(tt.in))
			for i := range tt.want {
				tt.want[i].Attrs = nil
			}
			if err != nil || !sameCases(ref, tt.want) {
				t.Errorf("encoding/xml reads %s (%v), want %s", show(ref), err, show(tt.want))
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	in := func(s string) string { return "<testsuite>\n" + s + "</testsuite>" }
	for _, tt := range []struct {
		name, in, want string
	}{
		{"an empty file", "", "line 1 (offset 0): no root element"},
		{"another root", "\n<html></html>", "line 2 (offset 7): the root element is <html>"},
		{"no XML", "PASS\n", "this is not XML"},
		{"a truncated file", in(`<testcase name="a"/>`)[:30], "truncated"},
		{"a file truncated between cases", "<testsuites>\n<testsuite>\n<testcase name='a'/>\n", "line 4 (offset 46): the input is truncated: it ends inside <testsuite>"},
		{"a file truncated in text", "<testsuite><testcase><failure>abc", "it ends inside <failure>"},
		{"a file truncated in a character", "<testsuite>\xe2\x82", "byte 0xe2 is not UTF-8"},
		{"two roots", "<testsuite/>\n<testsuite/>", "line 2 (offset 13): <testsuite> after the root"},
		{"text behind the root", "<testsuite/>x", "text after the root"},
		{"a wrong end", in("<testcase></skipped>"), "</skipped> where </testcase> is due"},
		{"an end too many", "<testsuite/></testsuite>", "</testsuite> without a start"},
		{"a DTD", `<!DOCTYPE a [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;">]><testsuite/>`, "line 1 (offset 0): a document type"},
		{"an entity", in("<testcase name='&lol;'/>"), `"&lol;" is not a reference`},
		{"a bare ampersand", in("<testcase><failure>a & b</failure></testcase>"), "is not a reference"},
		{"a reference to a control character", in("<testcase name='&#27;'/>"), `"&#27;" is not a reference`},
		{"a reference to a surrogate", in("<testcase name='&#xD800;'/>"), "is not a reference"},
		{"a NUL byte", in("a\x00b"), "line 2 (offset 13): NUL byte"},
		{"a control character in a comment", in("<!--\x1b[31m-->"), "control character U+001B"},
		{"Latin-1", in("caf\xe9 "), "byte 0xe9 is not UTF-8"},
		{"a lone surrogate", in("\xed\xa0\x80"), "byte 0xed is not UTF-8"},
		{"a noncharacter", in("\uffff"), "U+FFFF"},
		{"UTF-16", "\xff\xfe<\x00t\x00", "UTF-16"},
		{"another encoding", "<?xml version='1.0' encoding='ISO-8859-1'?><testsuite/>", `encoding "ISO-8859-1"; only UTF-8`},
		{"XML 1.1", "<?xml version='1.1'?><testsuite/>", `version "1.1"`},
		{"a declaration later", "<testsuite/><?xml version='1.0'?>", "not at the beginning"},
		{"an attribute twice", in("<testcase name='a' name='b'/>"), `attribute "name" twice`},
		{"an attribute without quotes", in("<testcase name=a/>"), "without quotes"},
		{"an attribute without a value", in("<testcase name/>"), "without a value"},
		{"attributes without a space", in(`<testcase name="a"b="c"/>`), "no space"},
		{"< in an attribute", in(`<testcase name="a<b"/>`), `< in attribute "name"`},
		{"< in a tag", in(`<testcase <a`), "< inside a tag"},
		{"< in text", in(`a < b`), "does not begin a tag"},
		{"]]> in text", in(`a ]]> b`), "]]> outside"},
		{"-- in a comment", in(`<!-- a -- b -->`), "-- inside a comment"},
		{"a time that is none", in("<testcase name='n' time='abc'/>"), `test case "n": time "abc"`},
		{"an infinite time", in("<testcase name='n' time='Inf'/>"), `time "Inf"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(tt.in), iotest.OneByteReader(strings.NewReader(tt.in))} {
				// What is not kept is checked as well.
				for _, keep := range []Keep{nil, func(string, bool) bool { return false }} {
					_, _, err := readAll(r, Options{Source: "dir/junit_01.xml", Keep: keep})
					var e *Error
					if !errors.As(err, &e) {
						t.Fatalf("got %v, want an *Error", err)
					}
					if msg := err.Error(); !strings.HasPrefix(msg, "reading dir/junit_01.xml: line ") || !strings.Contains(msg, tt.want) {
						t.Errorf("got %q, want %q", msg, tt.want)
					}
					r = strings.NewReader(tt.in)
				}
			}
		})
	}
}

func TestReadLimits(t *testing.T) {
	deep := strings.Repeat("<a>", 40)
	for _, tt := range []struct {
		name, in string
		limits   Limits
		want     string
	}{
		{"bytes", "<testsuite>" + strings.Repeat(" ", 100), Limits{Bytes: 50}, "the limit of 50 bytes"},
		{"depth", "<testsuite>" + deep, Limits{}, "deeper than the limit of 32"},
		{"suites", strings.Repeat("<testsuite>", 3), Limits{Suites: 2}, "more suites than the limit of 2"},
		{"a tag", "<testsuite><testcase name='" + strings.Repeat("n", 200_000), Limits{Tag: 100_000}, "longer than the limit of 100000 bytes"},
		{"a comment", "<testsuite><!--" + strings.Repeat("n", 200_000), Limits{Tag: 100_000}, "longer than the limit of 100000 bytes"},
		{"a case", "<testsuite>\n<testcase name='big'><failure>" + strings.Repeat("n", 300_000), Limits{Case: 100_000}, `line 2`},
		{"a case of CDATA", "<testsuite><testcase name='big'><failure><![CDATA[" + strings.Repeat("n", 300_000), Limits{Case: 100_000}, `"failure" is longer than the limit of 100000 bytes`},
		{"children", "<testsuite><testcase name='n'>" + strings.Repeat("<failure/>", 101), Limits{}, "more elements than the limit of 100"},
		{"properties", "<testsuite><testcase><properties>" + strings.Repeat("<property/>", 10_001), Limits{}, "more properties in one element than the limit of 10000"},
		{"attributes", "<testsuite " + manyAttrs(200) + ">", Limits{}, "more attributes than the limit of 128"},
		{"names of suites", "<testsuite name='" + strings.Repeat("n", 33_000) + "'>", Limits{}, "the name of a suite is longer than the limit of 32768"},
		{"names", "<testsuite><" + strings.Repeat("n", 300) + ">", Limits{}, "a name is longer than the limit of 256"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := readAll(strings.NewReader(tt.in), Options{Limits: tt.limits})
			var e *Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func manyAttrs(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "a%d='' ", i)
	}
	return b.String()
}

const mixed = `<testsuites><testsuite name="s">
<testcase name="passed" time="1"/>
<testcase name="skipped"><skipped message="skipped - why"></skipped></testcase>
<testcase name="failed" time="2.25"><skipped/><failure>f</failure></testcase>
<testcase name="error" time="4"><failure/><error>e</error></testcase>
</testsuite></testsuites>`

func TestKeep(t *testing.T) {
	all := Counts{Tests: 4, Failures: 1, Errors: 1, Skipped: 1, Time: 7.25}
	for _, tt := range []struct {
		name string
		keep Keep
		want []string
		kept Counts
	}{
		{"everything", nil, []string{"passed", "skipped", "failed", "error"}, all},
		{"what was not skipped, so also what failed and says it was skipped", NotSkipped,
			[]string{"passed", "failed", "error"}, Counts{Tests: 3, Failures: 1, Errors: 1, Time: 7.25}},
		{"what was skipped", func(_ string, skipped bool) bool { return skipped }, []string{"skipped"}, Counts{Tests: 1, Skipped: 1}},
		{"by name", func(name string, _ bool) bool { return name == "failed" }, []string{"failed"}, Counts{Tests: 1, Failures: 1, Time: 2.25}},
		{"nothing", func(string, bool) bool { return false }, nil, Counts{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cases, sum := read(t, strings.NewReader(mixed), Options{Keep: tt.keep})
			var got []string
			for _, c := range cases {
				got = append(got, c.Name)
			}
			if !reflect.DeepEqual(got, tt.want) || sum.All != all || sum.Kept != tt.kept {
				t.Errorf("got %v %+v, want %v %+v", got, sum, tt.want, tt.kept)
			}
		})
	}
}

func TestReadKeepsNothingOfTheReaderInItsCases(t *testing.T) {
	var in bytes.Buffer
	in.WriteString("<testsuite>")
	for i := range 5000 {
		fmt.Fprintf(&in, `<testcase name="%d" classname="c%d" status="s%d"><failure message="m%d">b%d</failure></testcase>`, i, i, i, i, i)
	}
	in.WriteString("</testsuite>")
	cases, _ := read(t, &in, Options{})
	for i, c := range cases {
		want := Case{Name: fmt.Sprint(i), Classname: fmt.Sprintf("c%d", i), Attrs: []Property{{"status", fmt.Sprintf("s%d", i)}},
			Failure: &Detail{Message: fmt.Sprintf("m%d", i), Body: fmt.Sprintf("b%d", i)}}
		if !reflect.DeepEqual(c, want) {
			t.Fatalf("case %d: got %s, want %s", i, show([]Case{c}), show([]Case{want}))
		}
	}
}

func TestReadPassesErrorsOn(t *testing.T) {
	stop := errors.New("stop")
	if _, err := Read(strings.NewReader(mixed), Options{}, func(Case) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v, want the error of the callback", err)
	}
	broken := io.MultiReader(strings.NewReader(mixed[:50]), iotest.ErrReader(stop))
	if _, err := Read(broken, Options{Source: "f"}, func(Case) error { return nil }); !errors.Is(err, stop) || !strings.Contains(err.Error(), "reading f: ") {
		t.Errorf("got %v, want the error of the reader", err)
	}
}

func TestReadWhatGinkgoWrites(t *testing.T) {
	f, err := os.Open("testdata/ginkgo.xml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cases, sum := read(t, f, Options{Source: "testdata/ginkgo.xml"})
	if want := (Counts{Tests: 4, Failures: 1, Errors: 1, Skipped: 1, Time: 330.125}); sum.All != want {
		t.Errorf("got %+v, want %+v", sum.All, want)
	}
	if c := cases[3]; c.Skipped == nil || c.Skipped.Message != `skipped - Only supported for node OS distro [windows] (not "gci")` {
		t.Errorf("got %s", show(cases[3:]))
	}
}

// sameCases compares without telling nil from empty.
func sameCases(a, b []Case) bool { return show(a) == show(b) }

func show(cases []Case) string {
	var b strings.Builder
	for _, c := range cases {
		fmt.Fprintf(&b, "{%q %q %v %q %q", c.Name, c.Classname, c.Time, c.Attrs, c.Properties)
		for _, d := range []*Detail{c.Failure, c.Error, c.Skipped} {
			if d == nil {
				b.WriteString(" -")
			} else {
				fmt.Fprintf(&b, " %q", *d)
			}
		}
		fmt.Fprintf(&b, " %q %q %q}\n", c.SystemOut, c.SystemErr, c.Suites)
	}
	return b.String()
}
