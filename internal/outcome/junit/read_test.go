package junit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func readAll(r io.Reader) ([]Result, error) {
	var results []Result
	err := Read(r, "dir/junit_01.xml", func(r Result) { results = append(results, r) })
	return results, err
}

const mixed = `<testsuites><testsuite name="s">
<testcase name="passed" time="1"/>
<testcase name="skipped"><skipped message="skipped - why"></skipped></testcase>
<testcase name="failed" time="2.25"><skipped/><failure>f</failure></testcase>
<testcase name="error" time="4"><failure/><error>e</error></testcase>
</testsuite></testsuites>`

func TestReadUnderstands(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     []Result
	}{
		{"every outcome", mixed, []Result{{Name: "passed"}, {Name: "skipped", Skipped: true}, {Name: "failed", Failed: true}, {Name: "error", Failed: true}}},
		{"an empty suite", `<testsuite/>`, nil},
		{"a byte order mark and a declaration", "\ufeff<?xml version='1.0' encoding='utf-8'?>\n<testsuites></testsuites>\n", nil},
		{"another name of UTF-8", "<?xml version='1.0' encoding='UTF8'?><testsuite><testcase name='☃'/></testsuite>", []Result{{Name: "☃"}}},
		{"suites in suites", `<testsuites name="r"><testsuite name="a"><testcase name="1"/><testsuite name="b"><testcase name="2"><failure/></testcase></testsuite><testcase name="3"/></testsuite><testsuite><testcase name="4"/></testsuite></testsuites>`,
			[]Result{{Name: "1"}, {Name: "2", Failed: true}, {Name: "3"}, {Name: "4"}}},
		{"attributes with > and quotes in them", `<testsuite><testcase classname="it's" name='a > b "c"' status = "x>y"  time="1.5" /></testsuite>`,
			[]Result{{Name: `a > b "c"`}}},
		{"references", `<testsuite><testcase name="&lt;&#65;&#x1F600;&quot;&apos;&gt;"/></testsuite>`, []Result{{Name: `<A😀"'>`}}},
		{"CDATA", `<testsuite><testcase name="n"><failure>a<![CDATA[<testcase name="no"/> &amp; ]] ]>]]]>b</failure></testcase></testsuite>`,
			[]Result{{Name: "n", Failed: true}}},
		{"comments and processing instructions", `<!-- > --><?p <a> ?><testsuite><!-- <testcase name="no"/> --><testcase name="n"><error>a<!-- & -->b<?q ]]> ?>c</error></testcase></testsuite><!---->`,
			[]Result{{Name: "n", Failed: true}}},
		{"elements that say nothing of the outcome", `<testsuite><testcase name="n" file="f.go"><properties><property name="failure"/></properties><system-out>failure</system-out></testcase><system-err/></testsuite>`,
			[]Result{{Name: "n"}}},
		{"several failures of one case", `<testsuite><testcase name="n"><failure>1</failure><skipped/><failure>2</failure></testcase></testsuite>`,
			[]Result{{Name: "n", Failed: true}}},
		{"elements it does not know", `<testsuite><x><testcase name="no"/><testsuite><testcase name="no"/></testsuite></x><testcase name="n"><flaky><failure>no</failure></flaky><skipped>why<b>no</b></skipped></testcase></testsuite>`,
			[]Result{{Name: "n", Skipped: true}}},
		{"cases in a case", `<testsuite><testcase name="n"><testcase name="no"><failure/></testcase><testsuite><testcase name="no"/></testsuite></testcase><testcase name="m"/></testsuite>`,
			[]Result{{Name: "n"}, {Name: "m"}}},
		{"name spaces", `<j:testsuite xmlns:j="urn:j"><j:testcase name="n" j:name="no" j:time="no"><j:failure/></j:testcase></j:testsuite>`,
			[]Result{{Name: "n", Failed: true}}},
		{"thousands separators", `<testsuite><testcase name="n" time="1,234.5"/><testcase name="m" time=" 1e3 "/><testcase name="o" time=""/></testsuite>`,
			[]Result{{Name: "n"}, {Name: "m"}, {Name: "o"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for chunks, r := range map[string]io.Reader{
				"whole":       strings.NewReader(tt.in),
				"byte wise":   iotest.OneByteReader(strings.NewReader(tt.in)),
				"data at EOF": iotest.DataErrReader(strings.NewReader(tt.in)),
			} {
				if got, err := readAll(r); err != nil || !slices.Equal(got, tt.want) {
					t.Errorf("%s: got %+v (%v), want %+v", chunks, got, err, tt.want)
				}
			}
			if got, err := readSlowly([]byte(tt.in)); err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("encoding/xml reads %+v (%v), want %+v", got, err, tt.want)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	in := func(s string) string { return "<testsuite>\n" + s + "</testsuite>" }
	for _, tt := range []struct {
		name, in, want string
	}{
		{"an empty file", "", "line 1: no root element: want <testsuites> or <testsuite>"},
		{"another root", "\n<html></html>", "line 2: the root element is <html>: want <testsuites> or <testsuite>"},
		{"a case as the root", "<testcase/>", "the root element is <testcase>"},
		{"no XML", "PASS\n", "this is not JUnit"},
		{"a truncated file", in(`<testcase name="a"/>`)[:30], "line 2: the input is truncated"},
		{"a file truncated between cases", "<testsuites>\n<testsuite>\n<testcase name='a'/>\n", "line 4: the input is truncated"},
		{"a file truncated in a case", "<testsuite><testcase name='a'><failure>abc", `line 1: test case "a": the input is truncated`},
		{"a file truncated in a character", "<testsuite>\xe2\x82", "invalid UTF-8"},
		{"two roots", "<testsuite/>\n<testsuite/>", "line 2: <testsuite> after the root element"},
		{"two documents", "<?xml version='1.0'?><testsuite/><?xml version='1.0'?><testsuite/>", "<testsuite> after the root element"},
		{"text behind the root", "<testsuite/>x", "text outside the root element"},
		{"a wrong end", in("<testcase name='a'></skipped>"), `line 2: test case "a": element <testcase> closed by </skipped>`},
		{"an end too many", "<testsuite/></testsuite>", "unexpected end element </testsuite>"},
		{"a DTD", `<!DOCTYPE a [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;">]><testsuite/>`, "line 1: a document type or other declaration, which is not allowed here: remove it"},
		{"a DTD behind the root", "<testsuite/>\n<!DOCTYPE a>", "line 2: a document type"},
		{"an entity", in("<testcase name='&lol;'/>"), "invalid character entity &lol;"},
		{"a bare ampersand", in("<testcase><failure>a & b</failure></testcase>"), "invalid character entity &"},
		{"a reference to a control character", in("<testcase name='&#27;'/>"), "illegal character code U+001B"},
		{"a NUL byte", in("a\x00b"), "line 2: illegal character code U+0000"},
		{"Latin-1", in("caf\xe9 "), "line 2: invalid UTF-8: only UTF-8 is read; convert the input first"},
		{"a lone surrogate", in("\xed\xa0\x80"), "invalid UTF-8"},
		{"a noncharacter", in("\uffff"), "U+FFFF"},
		{"UTF-16", "\xff\xfe<\x00t\x00", "only UTF-8 is read"},
		{"another encoding", "<?xml version='1.0' encoding='ISO-8859-1'?><testsuite/>", `"ISO-8859-1": only UTF-8 is read; convert the input first`},
		{"XML 1.1", "<?xml version='1.1'?><testsuite/>", `version "1.1"`},
		{"an attribute twice", in("<testcase name='a' name='b'/>"), `attribute "name" twice`},
		{"an attribute without quotes", in("<testcase name=a/>"), "unquoted"},
		{"an attribute without a value", in("<testcase name/>"), "attribute name without ="},
		{"< in an attribute", in(`<testcase name="a<b"/>`), "unescaped <"},
		{"< in a tag", in(`<testcase <a`), "expected attribute name"},
		{"< in text", in(`a < b`), "expected element name"},
		{"]]> in text", in(`a ]]> b`), "unescaped ]]>"},
		{"-- in a comment", in(`<!-- a -- b -->`), `"--"`},
		{"a time that is none", in("<testcase name='n' time='abc'/>"), `line 2: test case "n": time "abc" is not a number of seconds`},
		{"a time of separators", in("<testcase name='n' time=','/>"), `time ","`},
		{"an infinite time", in("<testcase name='n' time='Inf'/>"), `time "Inf"`},
		{"no number", in("<testcase name='n' time='NaN'/>"), `time "NaN"`},
		{"a hexadecimal time", in("<testcase name='n' time='0x1p4'/>"), `time "0x1p4"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(tt.in), iotest.OneByteReader(strings.NewReader(tt.in))} {
				_, err := readAll(r)
				if msg := fmt.Sprint(err); !strings.HasPrefix(msg, "reading dir/junit_01.xml: line ") || !strings.Contains(msg, tt.want) {
					t.Errorf("got %q, want %q", msg, tt.want)
				}
			}
		})
	}
}

// endless is a document that goes on after its beginning.
func endless(start, more string) io.Reader {
	return io.MultiReader(strings.NewReader(start), &repeat{s: more})
}

type repeat struct {
	s  string
	at int
}

func (r *repeat) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = r.s[r.at]
		r.at = (r.at + 1) % len(r.s)
	}
	return len(b), nil
}

func TestReadLimits(t *testing.T) {
	tight := limits{input: 500_000, element: 100_000, depth: 32}
	for _, tt := range []struct {
		name, start, more, want string
	}{
		{"cases", "<testsuite>", "<testcase name='n'/>", "the input is longer than the limit of 500000 bytes"},
		{"suites", "<testsuites>", "<testsuite></testsuite>", "the input is longer than the limit of 500000 bytes"},
		{"what follows the root", "<testsuite/>", " <!-- -->", "the input is longer than the limit of 500000 bytes"},
		{"depth", "<testsuite>", "<a>", "<a> is deeper than the limit of 32 elements"},
		{"suites in suites", "<testsuite>", "<testsuite>", "<testsuite> is deeper than the limit of 32 elements"},
		{"a tag", "<testsuite><testcase name='", "n", "an element is longer than the limit of 100000 bytes"},
		{"attributes", "<testsuite ", "a='' ", "an element is longer than the limit of 100000 bytes"},
		{"a comment", "<testsuite><!--", "n", "an element is longer than the limit of 100000 bytes"},
		{"a declaration", "<!DOCTYPE ", "n", "an element is longer than the limit of 100000 bytes"},
		{"text of a case", "<testsuite>\n<testcase name='big'><failure>", "n", `line 2: test case "big": an element is longer than the limit of 100000 bytes`},
		{"CDATA of a case", "<testsuite><testcase name='big'><failure><![CDATA[", "n", `test case "big": an element is longer`},
		{"elements of a case", "<testsuite><testcase name='big'>", "<failure/>", `test case "big": an element is longer`},
		{"elements in another element", "<testsuite><properties>", "<property/>", "an element is longer"},
		{"text outside the root", "", " ", "an element is longer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := read(endless(tt.start, tt.more), "f", tight, func(Result) {})
			if !strings.Contains(fmt.Sprint(err), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestReadPassesErrorsOn(t *testing.T) {
	stop := errors.New("stop")
	for _, n := range []int{0, 1, 50, len(mixed)} {
		broken := io.MultiReader(strings.NewReader(mixed[:n]), iotest.ErrReader(stop))
		if _, err := readAll(broken); !errors.Is(err, stop) || !strings.Contains(err.Error(), "reading dir/junit_01.xml: ") {
			t.Errorf("after %d bytes: got %v, want the error of the reader", n, err)
		}
	}
	// An end that is an error is no end.
	broken := io.MultiReader(strings.NewReader(mixed[:50]), iotest.ErrReader(fmt.Errorf("the line was cut: %w", io.EOF)))
	if _, err := readAll(broken); err == nil || !strings.Contains(err.Error(), "the line was cut") {
		t.Errorf("got %v", err)
	}
}

func TestReadWhatGinkgoWrites(t *testing.T) {
	f, err := os.Open("testdata/ginkgo.xml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := readAll(f)
	if err != nil {
		t.Fatal(err)
	}
	var outcomes []string
	for _, r := range got {
		outcomes = append(outcomes, fmt.Sprint(r.Failed, r.Skipped))
	}
	if want := []string{"false false", "true false", "true false", "false true"}; !slices.Equal(outcomes, want) {
		t.Errorf("got %+v", got)
	}
}
