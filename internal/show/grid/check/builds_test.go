package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/grid"
)

// bucket is one in memory, with the times of uploads.
type bucket struct {
	grid.Memory
	now time.Time
}

const job = "logs/windows-readiness/"

func newBucket() *bucket { return &bucket{now: time.Now().Truncate(time.Second)} }

// put stores an object that was uploaded some time ago.
func (b *bucket) put(name, content string, ago time.Duration) {
	b.Put(grid.Object{Name: name, Updated: b.now.Add(-ago)}, []byte(content))
}

const good = `<testsuites><testsuite name=""><testcase name="case a" time="1.5"></testcase><testcase name="case b"><skipped>not-applicable: no second CIDR</skipped></testcase></testsuite></testsuites>`

// build puts a good build that started some time ago and took ten minutes.
func (b *bucket) build(id string, ago time.Duration) string {
	dir := job + id + "/"
	b.put(dir+"started.json", fmt.Sprintf(`{"timestamp": %d}`, b.now.Add(-ago).Unix()), ago)
	b.put(dir+"artifacts/shard-1/junit_core-network_01.xml", good, ago-10*time.Minute)
	b.put(dir+"finished.json", fmt.Sprintf(`{"timestamp": %d, "passed": true, "result": "SUCCESS", "metadata": {"Commit": "abc", "kubernetes-version": "v1.36.3", "windows-version": "10.0.20348", "verdict": "ready"}}`, b.now.Add(10*time.Minute-ago).Unix()), ago-11*time.Minute)
	return dir
}

const older, newer = "1991000000000000001", "1991000000000000002"

func (b *bucket) check(t *testing.T) *Report {
	t.Helper()
	source := grid.OfStore("test", "b/"+strings.TrimSuffix(job, "/"), &b.Memory)
	source.Kept, source.Top = true, "gs://b/"
	r, err := Builds(t.Context(), Options{Source: source, Config: grid.Standard(14, source.Prefix), Now: b.now})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestGoodBuildsHaveNoFindings(t *testing.T) {
	b := newBucket()
	b.build(older, 5*time.Hour)
	b.build(newer, 3*time.Hour)
	b.put(job+"latest-build.txt", newer+"\n", time.Hour)
	r := b.check(t)
	if len(r.Findings) != 0 {
		t.Errorf("findings: %+v", r.Findings)
	}
	if g := r.Groups[0]; g.Builds != 2 || g.Columns != 2 || g.Rows != 3 || g.Prefix != "gs://b/logs/windows-readiness" {
		t.Errorf("group: %+v", g)
	}
}

func TestFindings(t *testing.T) {
	const dir = job + older + "/"
	const xml = dir + "artifacts/shard-1/junit_core-network_01.xml"
	file := func(name, content string) func(*bucket) {
		return func(b *bucket) { b.put(name, content, 5*time.Hour-10*time.Minute) }
	}
	seconds := func(ago time.Duration) int64 { return time.Now().Add(-ago).Unix() }
	for _, c := range []struct {
		name     string
		change   func(*bucket)
		severity Severity
		rule     string
		object   string // its end
		where    string
		what     string // part of it
	}{
		{"no start", file(dir+"started.json", `{"node": "x"}`), Error, "started-timestamp", "started.json", "timestamp", "1970"},
		{"a start in milliseconds", file(dir+"started.json", `{"timestamp": 1767225600000}`), Error, "started-timestamp", "started.json", "timestamp", "milliseconds"},
		{"a start with a fraction", file(dir+"started.json", "{\n \"timestamp\": 1767225600.5}"), Error, "json", "started.json", "line 2, timestamp", "cannot unmarshal number"},
		{"a start in the future", file(dir+"started.json", fmt.Sprintf(`{"timestamp": %d}`, seconds(-time.Hour))), Warning, "started-timestamp", "started.json", "timestamp", "future"},
		{"an empty started.json", file(dir+"started.json", ""), Error, "json", "started.json", "", "malformed"},
		{"a broken finished.json", file(dir+"finished.json", "{\n\n  \"passed\": yes}"), Error, "json", "finished.json", "line 3", "none of this build"},
		{"a cut finished.json", file(dir+"finished.json", "{\"passed\": tr"), Error, "json", "finished.json", "", "unexpected EOF"},
		{"no passed", file(dir+"finished.json", fmt.Sprintf(`{"timestamp": %d, "result": "SUCCESS"}`, seconds(4*time.Hour))), Warning, "passed-missing", "finished.json", "passed", "icon E"},
		{"no passed and no result", file(dir+"finished.json", fmt.Sprintf(`{"timestamp": %d}`, seconds(4*time.Hour))), Error, "passed-missing", "finished.json", "passed", "failed"},
		{"a contradiction", file(dir+"finished.json", fmt.Sprintf(`{"timestamp": %d, "passed": true, "result": "FAILURE"}`, seconds(4*time.Hour))), Warning, "passed-contradicts", "finished.json", "result", "Deck by result"},
		{"no end", file(dir+"finished.json", `{"passed": true}`), Error, "finished-timestamp", "finished.json", "timestamp", "running"},
		{"an end before the start", file(dir+"finished.json", fmt.Sprintf(`{"timestamp": %d, "passed": true}`, seconds(9*time.Hour))), Warning, "finished-timestamp", "finished.json", "timestamp", "before it started"},
		{"a number as metadata", file(dir+"finished.json", fmt.Sprintf(`{"timestamp": %d, "passed": true, "metadata": {"windows-version": 2022}}`, seconds(4*time.Hour))), Error, "metadata-type", "finished.json", "metadata.windows-version", "strings only"},
		{"a broken podinfo.json", file(dir+"podinfo.json", "{"), Error, "json", "podinfo.json", "", "cannot read"},
		{"a folder that is not a build", file(job+"old/started.json", "{}"), Error, "build-id", "windows-readiness/old/", "", "not a number"},
		{"a short id", func(b *bucket) { b.build("17", 20*time.Hour) }, Warning, "build-id-short", job, "", "every cycle"},
		{"a stray object", file(job+"index.html", "x"), Note, "ignored", "index.html", "", "ignores"},
		{"an alias without metadata", file(job+"1991000000000000003.txt", "gs://b/pr-logs/x"), Error, "alias-without-link", "03.txt", "", "metadata"},
		{"an old latest-build.txt", file(job+"latest-build.txt", "1"), Warning, "latest-build", "latest-build.txt", "", "newest build is " + older},
		{"control characters", file(xml, "<testsuite>\n<testcase name=\"a\"><failure>\x01</failure></testcase></testsuite>"), Error, "junit-characters", "junit_core-network_01.xml", "line 2", "U+0001"},
		{"another encoding", file(xml, "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n<testsuite></testsuite>"), Error, "junit-encoding", "junit_core-network_01.xml", "line 1", "ISO-8859-1"},
		{"UTF-16", file(xml, "\xff\xfe<\x00t\x00e\x00"), Error, "junit-encoding", "junit_core-network_01.xml", "line 1", "UTF-16"},
		{"compressed, and not said to be", file(xml, "\x1f\x8b\x08\x00\x00\xff"), Error, "junit-encoding", "junit_core-network_01.xml", "", "nothing says so"},
		{"bytes for which there is no grid", file(xml, "<\xffa>"), Error, "grid-unwritten", "windows-readiness", "", "invalid UTF-8"},
		{"suites in suites in suites", file(xml, strings.Repeat("<testsuite>", maxDepth+1)+strings.Repeat("</testsuite>", maxDepth+1)), Error, "junit-malformed", "junit_core-network_01.xml", "line 1", "10000 deep"},
		{"a cut file", file(xml, "<testsuite>\n<testcase name=\"a\">"), Error, "junit-malformed", "junit_core-network_01.xml", "line 2", "unexpected EOF"},
		{"another root", file(xml, "\n<html></html>"), Error, "junit-malformed", "junit_core-network_01.xml", "line 2, <html>", "root"},
		{"a time with a comma", file(xml, "<testsuite>\n\n<testcase name=\"a\" time=\"1,234.5\"></testcase></testsuite>"), Error, "junit-malformed", "junit_core-network_01.xml", "line 3, <testcase time=…>", "1,234.5"},
		{"a count that is not an integer", file(xml, `<testsuite tests="1.0"></testsuite>`), Error, "junit-malformed", "junit_core-network_01.xml", "line 1, <testsuite tests=…>", "1.0"},
		{"skipped without a body", file(xml, `<testsuite><testcase name="a"><skipped message="m"></skipped></testcase></testsuite>`), Warning, "junit-skipped", "junit_core-network_01.xml", "", `1 test is skipped with an empty body, such as "a"`},
		{"a file of over 100 MB", file(xml, strings.Repeat(" ", maxJUnit+1)), Error, "junit-too-large", "junit_core-network_01.xml", "", "too large: 100000001 bytes"},
		{"an empty file", file(xml, ""), Warning, "junit-empty", "junit_core-network_01.xml", "", "empty"},
		{"compressed JUnit", file(dir+"artifacts/junit_x.xml.gz", "x"), Error, "junit-ignored", "junit_x.xml.gz", "", "not shown"},
		{"a name that is not JUnit's", file(dir+"artifacts/xjunit_x.xml", good), Error, "junit-ignored", "xjunit_x.xml", "", "not shown"},
		{"JUnit outside of artifacts", file(dir+"junit_x.xml", good), Warning, "junit-spyglass", "junit_x.xml", "", "artifacts/ only"},
		{"an underscore in a context", file(dir+"artifacts/junit_core_network_01.xml", good), Warning, "junit-context", "junit_core_network_01.xml", "", `"_core_network_01"`},
		{"a number for a context", file(dir+"artifacts/junit_01.xml", good), Warning, "junit-context", "junit_01.xml", "", `"01"`},
		{"one test in two files", file(dir+"artifacts/shard-2/junit_core-network_01.xml", good), Warning, "junit-duplicate", "shard-2/junit_core-network_01.xml", "", "one cell of both"},
		{"a test without a name", file(xml, `<testsuite><testcase time="1"></testcase></testsuite>`), Warning, "junit-name", "junit_core-network_01.xml", "", "no name"},
		{"JUnit after finished.json", func(b *bucket) { b.put(xml, good, time.Hour) }, Error, "after-finished", "junit_core-network_01.xml", "", "4h0m0s after the start"},
		{"JUnit soon after finished.json", func(b *bucket) { b.put(xml, good, 5*time.Hour-15*time.Minute) }, Warning, "after-finished", "junit_core-network_01.xml", "", "saves it"},
		{"a build that never finished", func(b *bucket) {
			b.put(job+"1990000000000000000/started.json", fmt.Sprintf(`{"timestamp": %d}`, seconds(30*time.Hour)), 30*time.Hour)
		}, Error, "never-finished", "finished.json", "", "icon T"},
		{"a build that runs", func(b *bucket) {
			b.put(job+newer+"/started.json", fmt.Sprintf(`{"timestamp": %d}`, seconds(time.Hour)), time.Hour)
		}, Note, "running", "finished.json", "", "running"},
		{"a build that came after a newer one", func(b *bucket) { b.build("1990000000000000000", 2*time.Hour) }, Error, "id-order", "1990000000000000000/", "", "does not list"},
		{"starts against ids", func(b *bucket) { b.build(newer, 9*time.Hour) }, Warning, "start-order", older + "/started.json", "timestamp", "listed by id"},
		{"a build of days ago that ends now", func(b *bucket) {
			d := b.build("1990000000000000000", 100*time.Hour)
			b.put(d+"finished.json", fmt.Sprintf(`{"timestamp": %d, "passed": true}`, seconds(time.Hour)), time.Hour)
		}, Error, "finished-late", "1990000000000000000/finished.json", "", "72 hours"},
		{"an old build", func(b *bucket) { b.build("1990000000000000000", 20*24*time.Hour) }, Note, "too-old", "/1990000000000000000", "", "too old"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBucket()
			b.build(older, 5*time.Hour)
			c.change(b)
			r := b.check(t)
			for _, f := range r.Findings {
				if f.Rule == c.rule && f.Severity == c.severity && strings.HasSuffix(f.Object, c.object) && f.Where() == c.where && strings.Contains(f.What, c.what) {
					if f.Severity != Note && f.Fix == "" {
						t.Errorf("no fix: %+v", f)
					}
					return
				}
			}
			t.Errorf("no %s %s of %s at %q that says %q in:", c.severity, c.rule, c.object, c.where, c.what)
			for _, f := range r.Findings {
				t.Errorf("  %+v", f)
			}
		})
	}
}

func TestAliases(t *testing.T) {
	for _, c := range []struct{ name, link, body, rule, what string }{
		{"another body", "gs://b/" + job + older, "gs://b/elsewhere/" + older, "alias-body", "Deck goes by the body"},
		{"another id", "gs://b/" + job + "77", "gs://b/" + job + "77", "alias-elsewhere", "whose id is not"},
		{"a link that TestGrid cannot follow", "https://b/x", "", "listing", "cannot list the builds"},
		{"a link to nothing", "gs://b/nowhere/" + older, "gs://b/nowhere/" + older, "empty-build", "nothing in this build"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBucket()
			b.build(older, 5*time.Hour)
			b.Put(grid.Object{Name: "pr-logs/directory/pull-x/" + older + ".txt", Metadata: map[string]string{"link": c.link}}, []byte(c.body))
			source := grid.OfStore("test", "b/pr-logs/directory/pull-x", &b.Memory)
			r, err := Builds(t.Context(), Options{Source: source, Config: grid.Standard(14, source.Prefix), Now: b.now})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range r.Findings {
				if f.Rule == c.rule && strings.Contains(f.What, c.what) {
					return
				}
			}
			t.Errorf("no %s in %+v", c.rule, r.Findings)
		})
	}
}

func TestOldBuildsAreNotRead(t *testing.T) {
	b := newBucket()
	b.build(newer, 5*time.Hour)
	for i := range oldInRow + 3 {
		b.build(fmt.Sprint(1980000000000000000+i), time.Duration(50-i)*24*time.Hour)
	}
	r := b.check(t)
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Rule == "not-checked" })
	if i < 0 || !strings.HasPrefix(r.Findings[i].What, "3 older builds are not checked") || r.Groups[0].Builds != oldInRow+4 {
		t.Errorf("%+v %+v", r.Groups, r.Findings)
	}
}

func TestManyFindingsOfAKindAreCounted(t *testing.T) {
	b := newBucket()
	b.build(older, 5*time.Hour)
	for i := range maxOfRule + 7 {
		b.put(fmt.Sprintf("%sstray-%d", job, i), "", time.Hour)
	}
	r := b.check(t)
	if sum := r.Sum(); sum != fmt.Sprintf("No problems found; %d notes.", maxOfRule+7) {
		t.Errorf("the sum: %s", sum)
	}
	if n := len(r.Findings); n != maxOfRule || !strings.Contains(r.Findings[n-1].What, "and 7 more of this kind") {
		t.Errorf("%d findings, the last: %+v", n, r.Findings[n-1])
	}
}

func TestWrittenReport(t *testing.T) {
	b := newBucket()
	b.build(older, 5*time.Hour)
	b.put(job+"index\x1b[31m.html", "x", time.Hour)
	b.put(job+older+"/artifacts/junit_a_b_c.xml", good, 5*time.Hour-10*time.Minute)
	r := b.check(t)
	for format, want := range map[report.Format]string{
		report.FormatTable:    "warning: gs://b/logs/windows-readiness/" + older + "/artifacts/junit_a_b_c.xml [junit-context]\n",
		report.FormatMarkdown: "0 errors, 1 warning, 1 note.",
		report.FormatJSON:     `"rule": "junit-context"`,
		report.FormatCSV:      "junit-context,",
	} {
		var out strings.Builder
		if err := r.Write(&out, format, 0); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) || format != report.FormatJSON && strings.Contains(out.String(), "\x1b") {
			t.Errorf("%s, want %q in:\n%s", format, want, out.String())
		}
	}
}
