package check

import (
	"bufio"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"cloud.google.com/go/storage"
	"github.com/GoogleCloudPlatform/testgrid/metadata/junit"
	"github.com/GoogleCloudPlatform/testgrid/util/gcs"

	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
)

// Limits of JUnit.
const (
	// maxJUnit is above what TestGrid refuses a file (util/gcs, maxSize).
	maxJUnit = 100_000_000
	// wishedJUnit is what TestGrid's maintainers ask for.
	wishedJUnit = 5_000_000
	// maxFiles is about as many as Spyglass can show.
	maxFiles = 1000
	// maxDepth is how deep Go's encoding/xml reads elements.
	maxDepth = 10_000
	// maxDuplicates is how many rows of one name TestGrid shows where it does
	// not merge them.
	maxDuplicates = 20
)

// spyglass is what Prow's lens for JUnit is given, as
// kubernetes/test-infra's config/prow/config.yaml has it.
var spyglass = regexp.MustCompile(`^artifacts(/.*/|/)junit.*\.xml$`)

// ofJUnit is what a name must look like to be meant as JUnit.
var ofJUnit = regexp.MustCompile(`(?i)junit[^/]*\.xml(\.gz)?$`)

// isJUnit asks TestGrid whether it takes an object for JUnit.
func (c *checker) isJUnit(name string) bool { return contextOf("x/"+name) != nil }

// contextOf returns what TestGrid reads from the name of a JUnit file; nil for
// other files.
func contextOf(name string) map[string]string {
	names, found := make(chan string, 1), make(chan gcs.SuitesMeta, 1)
	names <- name
	close(names)
	var nowhere gcs.Build
	if err := nowhere.Suites(context.Background(), nothing{}, names, found, 0); err != nil {
		return nil
	}
	close(found)
	return (<-found).Metadata
}

// row is where a row of a build comes from.
type row struct {
	file string
	n    int
}

func (c *checker) junit(ctx context.Context, b *build) error {
	names, found := make(chan string), make(chan gcs.SuitesMeta)
	done := make(chan error, 1)
	go func() {
		defer close(found)
		done <- b.Suites(ctx, c.client, names, found, 0)
	}()
	go func() {
		defer close(names)
		for _, name := range b.names {
			select {
			case names <- b.objects[name].Name:
			case <-ctx.Done():
				return
			}
		}
	}()
	taken := map[string]bool{}
	rows := map[string]*row{}
	for s := range found {
		at, err := gcs.NewPath(s.Path)
		if err != nil {
			return fmt.Errorf("reading JUnit: %w", err)
		}
		name := strings.TrimPrefix(at.Object(), b.Path.Object())
		if b.objects[name] == nil {
			continue // gone, or come, between two listings
		}
		taken[name] = true
		c.suites(ctx, b, name, *at, &s, rows)
	}
	if err := <-done; err != nil {
		return fmt.Errorf("reading JUnit of %s: %w", b.Path, err)
	}
	for _, name := range b.names {
		c.junitName(b, name, taken[name])
	}
	if len(taken) > maxFiles {
		c.add(Finding{Severity: Warning, Rule: "junit-files", Object: b.at(), What: fmt.Sprintf("%d JUnit files: Spyglass fails at about 1,000", len(taken)), Fix: "write one file per category"})
	}
	return nil
}

// junitName checks how a file is called.
func (c *checker) junitName(b *build, name string, taken bool) {
	at := b.at() + name
	switch {
	case !taken && ofJUnit.MatchString(name):
		fix := "call it junit_CONTEXT_NN.xml"
		if strings.HasSuffix(strings.ToLower(name), ".gz") {
			fix = "upload it as .xml, with Content-Encoding gzip if it is compressed"
		}
		c.add(Finding{Severity: Error, Rule: "junit-ignored", Object: at, What: "TestGrid does not take it for JUnit: what is in it is not shown", Fix: fix})
	case taken && !spyglass.MatchString(name):
		c.add(Finding{Severity: Warning, Rule: "junit-spyglass", Object: at, What: "TestGrid reads it, but Spyglass does not: that looks in artifacts/ only", Fix: "put it below artifacts/"})
	}
	if !taken {
		return
	}
	context := contextOf("x/" + name)["Context"]
	switch {
	case strings.HasPrefix(context, "_"):
		c.add(Finding{Severity: Warning, Rule: "junit-context", Object: at, What: fmt.Sprintf("its context is %q: a context has no underscore inside", context), Fix: "use dashes: junit_" + strings.ReplaceAll(strings.Trim(context, "_"), "_", "-") + ".xml, a number after an underscore apart"})
	case isNumber(context) && c.usesContext():
		c.add(Finding{Severity: Warning, Rule: "junit-context", Object: at, What: fmt.Sprintf("its context is %q: a number alone is taken for one, not for a part", context), Fix: "name the context: junit_CONTEXT_" + context + ".xml"})
	case context == "" && c.usesContext():
		c.add(Finding{Severity: Warning, Rule: "junit-context", Object: at, What: "it has no context, and the names of its rows begin without one", Fix: "call it junit_CONTEXT_NN.xml"})
	}
}

func (c *checker) usesContext() bool {
	for _, e := range c.group.GetTestNameConfig().GetNameElements() {
		if e.GetTargetConfig() == "Context" {
			return true
		}
	}
	return false
}

// suites checks what is in a file.
func (c *checker) suites(ctx context.Context, b *build, name string, p gcs.Path, s *gcs.SuitesMeta, rows map[string]*row) {
	at := b.at() + name
	size := b.objects[name].Size
	if s.Err != nil {
		f := Finding{Severity: Error, Rule: "junit-malformed", Object: at, What: fmt.Sprintf("TestGrid fails the row Overall, and shows nothing of the file: %s", c.told(s.Err)), Fix: "write it as JUnit"}
		if size > maxJUnit {
			f.Rule, f.Fix = "junit-too-large", "write several files, of about 1 MB each"
		} else {
			c.explain(ctx, p, &f)
		}
		c.add(f)
		return
	}
	if size > wishedJUnit {
		c.add(Finding{Severity: Note, Rule: "junit-large", Object: at, What: fmt.Sprintf("%d MB: TestGrid's maintainers ask for about 1 MB a file", size/1_000_000), Fix: "leave out tests that did not run, or write several files"})
	}
	if size == 0 {
		c.add(Finding{Severity: Warning, Rule: "junit-empty", Object: at, What: "it is empty; TestGrid takes it for a file without tests", Fix: "upload it whole"})
		return
	}
	var dropped, unnamed, hidden int
	var droppedFirst, hiddenFirst string
	context := s.Metadata["Context"]
	flatten("", s.Suites.Suites, func(test string, r *junit.Result) {
		switch {
		case r.Skipped != nil && r.Skipped.Value == "":
			if dropped++; dropped == 1 {
				droppedFirst = test
			}
			return
		case r.Name == "":
			unnamed++
		case strings.Contains(test, "@TESTGRID@"):
			if hidden++; hidden == 1 {
				hiddenFirst = test
			}
		case strings.ContainsFunc(test, unicode.IsControl):
			c.add(Finding{Severity: Warning, Rule: "junit-name", Object: at, What: fmt.Sprintf("the name %q has control characters", test), Fix: "leave them out of names"})
		}
		key := context + "\x00" + test
		first := rows[key]
		if first == nil {
			first = &row{file: name}
			rows[key] = first
		}
		if first.file != name {
			c.add(Finding{Severity: Warning, Rule: "junit-duplicate", Object: at, What: fmt.Sprintf("%q is also in %s, with the same context: TestGrid makes one cell of both, flaky where they differ", test, first.file), Fix: "give each shard's files a context of its own, or merge the shards"})
			first.file = name
		}
		if first.n++; first.n == maxDuplicates+1 && c.group.GetDisableMergedStatus() {
			c.add(Finding{Severity: Error, Rule: "junit-overflow", Object: at, What: fmt.Sprintf("%q is there more than %d times: TestGrid shows no more where disable_merged_status is set", test, maxDuplicates), Fix: "give tests names of their own"})
		}
	})
	if dropped > 0 {
		c.add(Finding{Severity: Warning, Rule: "junit-skipped", Object: at, What: fmt.Sprintf("%s skipped with an empty body, such as %q: TestGrid does not show them", text.Count(dropped, "test")+is(dropped), droppedFirst), Fix: "write the reason into the body of <skipped>, or leave out what did not run"})
	}
	if unnamed > 0 {
		c.add(Finding{Severity: Warning, Rule: "junit-name", Object: at, What: text.Count(unnamed, "test") + has(unnamed) + " no name", Fix: "name every testcase; classname is not shown"})
	}
	if hidden > 0 {
		c.add(Finding{Severity: Warning, Rule: "junit-name", Object: at, What: fmt.Sprintf("names with @TESTGRID@, such as %q, count in no summary", hiddenFirst), Fix: "rename them"})
	}
}

func is(n int) string {
	if n == 1 {
		return " is"
	}
	return " are"
}

// flatten calls each for every case, by the name that TestGrid gives it:
// those of the suites and its own, with dots between
// (pkg/updater, flattenResults).
func flatten(prefix string, suites []junit.Suite, each func(name string, r *junit.Result)) {
	dot := func(a, b string) string {
		if a != "" && b != "" {
			return a + "." + b
		}
		return a + b
	}
	for i := range suites {
		name := dot(prefix, suites[i].Name)
		flatten(name, suites[i].Suites, each)
		for j := range suites[i].Results {
			r := &suites[i].Results[j]
			each(dot(name, r.Name), r)
		}
	}
}

// explain finds what is wrong with a JUnit file that TestGrid cannot read: its
// own error tells neither line nor cause.
func (c *checker) explain(ctx context.Context, p gcs.Path, f *Finding) {
	r, _, err := c.client.Open(ctx, p)
	if err != nil {
		return
	}
	defer r.Close()
	in := bufio.NewReader(io.LimitReader(r, maxJUnit))
	head, _ := in.Peek(4)
	if len(head) >= 2 && head[0] == 0x1f && head[1] == 0x8b {
		f.Rule, f.What, f.Fix = "junit-encoding", "it is compressed, and nothing says so: TestGrid fails the row Overall, and the bytes in what it says of it can keep it from writing the group's grid at all", "upload it with Content-Encoding gzip, or uncompressed"
		return
	}
	if len(head) >= 2 && (head[0] == 0xfe && head[1] == 0xff || head[0] == 0xff && head[1] == 0xfe || head[0] == 0 || head[1] == 0) {
		f.Rule, f.Line, f.What, f.Fix = "junit-encoding", 1, "it is encoded as UTF-16, and TestGrid reads UTF-8 only: it fails the row Overall, and shows nothing of the file", "write it as UTF-8"
		return
	}
	d := xml.NewDecoder(in)
	var charset string
	d.CharsetReader = func(label string, input io.Reader) (io.Reader, error) {
		if !slices.Contains([]string{"UTF-8", "utf8", ""}, label) {
			charset = label
		}
		return input, nil
	}
	root, depth := "", 0
	for {
		token, err := d.Token()
		line, _ := d.InputPos()
		if charset != "" {
			f.Rule, f.Line, f.Fix = "junit-encoding", 1, "write it as UTF-8, and say so: encoding=\"UTF-8\""
			f.What = fmt.Sprintf("it says encoding=%q, and TestGrid reads UTF-8 only: it fails the row Overall, and shows nothing of the file", charset)
			return
		}
		var syntax *xml.SyntaxError
		switch {
		case errors.Is(err, io.EOF):
			return
		case errors.As(err, &syntax):
			f.Line = syntax.Line
			f.What = "TestGrid fails the row Overall, and shows nothing of the file: " + syntax.Msg
			switch {
			case strings.Contains(syntax.Msg, "illegal character"), strings.Contains(syntax.Msg, "invalid UTF-8"):
				f.Rule, f.Fix = "junit-characters", "leave control characters out, and write UTF-8"
			case strings.Contains(syntax.Msg, "unexpected EOF"):
				f.Fix = "the file is cut off: upload it whole, and after it was written"
			default:
				f.Fix = "write well-formed XML"
			}
			return
		case err != nil:
			return
		}
		if _, ok := token.(xml.EndElement); ok {
			depth--
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if depth++; depth > maxDepth {
			f.Line, f.What = line, fmt.Sprintf("its elements are over %d deep: TestGrid fails the row Overall, and shows nothing of the file", maxDepth)
			f.Fix = "nest fewer suites"
			return
		}
		if root == "" {
			if root = start.Name.Local; root != "testsuites" && root != "testsuite" {
				f.Line, f.Field = line, "<"+root+">"
				f.What = "its root is neither testsuites nor testsuite: TestGrid fails the row Overall"
				f.Fix = "write JUnit, or call the file otherwise"
				return
			}
		}
		if a, what := badNumber(&start); a != "" {
			f.Line, f.Field = line, fmt.Sprintf("<%s %s=…>", start.Name.Local, a)
			f.What = fmt.Sprintf("%s: TestGrid fails the row Overall, and shows nothing of the file", what)
			f.Fix = "write seconds as a plain number (1.5), and counts as integers"
			return
		}
	}
}

// badNumber returns the attribute of an element that TestGrid reads as a number
// and cannot.
func badNumber(e *xml.StartElement) (attribute, what string) {
	for _, a := range e.Attr {
		value := strings.TrimSpace(a.Value)
		var err error
		switch {
		case a.Name.Local == "time" && (e.Name.Local == "testcase" || e.Name.Local == "testsuite"):
			if value != "" {
				_, err = strconv.ParseFloat(value, 64)
			}
		case e.Name.Local == "testsuite" && (a.Name.Local == "tests" || a.Name.Local == "failures"):
			if value != "" {
				_, err = strconv.ParseInt(value, 10, 0)
			}
		}
		if err != nil {
			return a.Name.Local, fmt.Sprintf("%q is not the number that TestGrid reads", a.Value)
		}
	}
	return "", ""
}

// nothing is a bucket in which everything is empty.
type nothing struct{}

func (nothing) Open(context.Context, gcs.Path) (io.ReadCloser, *storage.ReaderObjectAttrs, error) {
	return io.NopCloser(strings.NewReader("")), &storage.ReaderObjectAttrs{}, nil
}
