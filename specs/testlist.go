package specs

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// TestList is what an e2e.test binary has to run.
type TestList struct {
	// Version is the Kubernetes version of the tests, such as "v1.36.3"; "" if
	// the list does not say.
	Version string
	// Tests are sorted by name.
	Tests []ListedTest
}

// ListedTest is one test of a [TestList].
type ListedTest struct {
	// Name is the full name, as ginkgo matches it but for the suite's name.
	Name string
	// Location is source file and line, such as "test/e2e/windows/dns.go:43".
	Location string
}

// File is the location without the line.
func (t ListedTest) File() string {
	file, _, _ := strings.Cut(t.Location, ":")
	return file
}

// Names returns the names of all tests, in the list's order.
func (l *TestList) Names() []string {
	names := make([]string, len(l.Tests))
	for i, t := range l.Tests {
		names[i] = t.Name
	}
	return names
}

const (
	listHeader = "The following spec names can be used with 'ginkgo run --focus/skip':"
	maxList    = 64 << 20
	maxLine    = 64 << 10
)

var (
	listLine      = regexp.MustCompile(`^    (\S[^:]*\.go):(\d+): (\S.*)$`)
	moduleVersion = regexp.MustCompile(`(?:^|/)k8s\.io/kubernetes@(v[^/]+)/`)
)

// ParseTestList reads what "e2e.test --list-tests" prints. Whatever is not a
// whole list is an error that quotes the line: a program that prints something
// else, or stops half-way, must not look like one without tests.
func ParseTestList(r io.Reader) (*TestList, error) {
	in := &io.LimitedReader{R: r, N: maxList + 1}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	list := &TestList{}
	seenHeader, ended := false, false
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		switch {
		case !seenHeader && line == listHeader:
			seenHeader = true
		case !seenHeader:
			return nil, fmt.Errorf("not a list of tests: line %d is %s where %q belongs", n, quoteStart(line), listHeader)
		case ended && line != "":
			return nil, fmt.Errorf("not a list of tests: line %d is %s after its end", n, quoteStart(line))
		case line == "":
			ended = true
		default:
			m := listLine.FindStringSubmatch(line)
			if m == nil {
				return nil, fmt.Errorf("not a list of tests: line %d is %s where \"    FILE.go:LINE: NAME\" belongs", n, quoteStart(line))
			}
			if v := moduleVersion.FindStringSubmatch(m[1]); v != nil {
				list.Version = v[1]
			}
			list.Tests = append(list.Tests, ListedTest{Name: m[3], Location: sourcePath(m[1]) + ":" + m[2]})
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("not a list of tests: a line is longer than %d bytes", maxLine)
	case err != nil:
		return nil, fmt.Errorf("reading the list of tests: %w", err)
	case in.N <= 0:
		return nil, fmt.Errorf("not a list of tests: longer than %d bytes", maxList)
	case !seenHeader:
		return nil, errors.New("not a list of tests: it is empty")
	case !ended:
		return nil, fmt.Errorf("the list of tests is cut off after %d tests", len(list.Tests))
	case len(list.Tests) == 0:
		return nil, errors.New("the list of tests has no tests")
	}
	slices.SortStableFunc(list.Tests, func(a, b ListedTest) int {
		return compareText(a.Name+"\x00"+a.Location, b.Name+"\x00"+b.Location)
	})
	return list, nil
}

// sourcePath makes a path that the linker recorded relative to the folder of
// Kubernetes, or of this project, wherever and however the binary was built.
func sourcePath(file string) string {
	if i := max(strings.LastIndex(file, "test/e2e"), strings.LastIndex(file, "suite/")); i >= 0 {
		return file[i:]
	}
	return file
}

func quoteStart(line string) string {
	if len(line) > 80 {
		line = line[:80] + "…"
	}
	return strconv.Quote(strings.ToValidUTF8(line, "�"))
}

// WriteTestList writes the list in the form that [ParseTestList] reads.
func WriteTestList(w io.Writer, list *TestList) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, listHeader)
	for _, t := range list.Tests {
		fmt.Fprintf(out, "    %s: %s\n", t.Location, t.Name)
	}
	fmt.Fprintln(out)
	return out.Flush()
}

// PackCatalogue compresses the list for the folder catalogue, always to the
// same bytes.
func PackCatalogue(list *TestList) ([]byte, error) {
	var packed bytes.Buffer
	zip, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := WriteTestList(zip, list); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

//go:embed catalogue/*.txt.gz
var catalogueFiles embed.FS

//go:embed catalogue/op-readiness.txt
var ownTests []byte

// oldestSuite is the oldest Kubernetes for which suite op-readiness is compiled.
const oldestSuite = "1.34"

// OwnTests returns the tests of suite [OpReadiness], which are the same for all
// versions of Kubernetes that it is compiled for. It is read once; callers must
// not change it.
var OwnTests = sync.OnceValue(func() *TestList {
	list, err := ParseTestList(bytes.NewReader(ownTests))
	if err != nil {
		panic("catalogue/op-readiness.txt: " + err.Error()) // a test reads it
	}
	return list
})

// Catalogues returns the Kubernetes versions whose lists of tests come with
// this package, oldest first, such as "v1.36.3".
func Catalogues() []string {
	entries, err := catalogueFiles.ReadDir("catalogue")
	if err != nil {
		return nil
	}
	var versions []Version
	for _, e := range entries {
		if v, err := ParseVersion(strings.TrimSuffix(e.Name(), ".txt.gz")); err == nil {
			versions = append(versions, v)
		}
	}
	slices.SortFunc(versions, Version.Compare)
	names := make([]string, len(versions))
	for i, v := range versions {
		names[i] = "v" + v.String()
	}
	return names
}

// Catalogue returns the list of tests of a version of [Catalogues]. A version
// without patch, or with another one, is an error: their tests may differ.
func Catalogue(version string) (*TestList, error) {
	v, err := ParseVersion(version)
	if err != nil {
		return nil, err
	}
	file := "v" + v.String() + ".txt.gz"
	data, err := catalogueFiles.ReadFile(path.Join("catalogue", file))
	if err != nil {
		return nil, fmt.Errorf("no list of tests of Kubernetes %s comes with this program: use %s", version, oneOf(Catalogues()))
	}
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("reading catalogue %s: %w", file, err)
	}
	list, err := ParseTestList(zip)
	if err != nil {
		return nil, fmt.Errorf("reading catalogue %s: %w", file, err)
	}
	list.Version = "v" + v.String()
	return list, nil
}
