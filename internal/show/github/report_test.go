package github

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/test/golden"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	nethtml "golang.org/x/net/html"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// outcome is a case of a judgement that a test makes up.
type outcome struct {
	category specs.Category
	id       string
	outcome  verdict.Outcome
	reason   string
}

// judged makes a cell of outcomes.
func judged(name string, outcomes ...outcome) Cell {
	run := &result.Run{
		Plan: &result.Plan{Shards: 1},
		Manifest: &result.Manifest{RunID: "run-17", Cluster: result.Facts{ServerVersion: "v1.36.3", Nodes: []result.Node{
			{Name: "l", OS: specs.Linux}, {Name: "m", OS: specs.Linux},
			{Name: "w", OS: specs.Windows, WindowsBuild: "10.0.20348"}, {Name: "x", OS: specs.Windows, WindowsBuild: "10.0.20348"},
		}}},
	}
	j := &verdict.Judgement{Scope: verdict.Scope{Kind: verdict.ScopeCluster}, Verdict: verdict.Ready, Outcomes: map[verdict.Outcome]int{}}
	for _, o := range outcomes {
		k := categoryOf(j, o.category)
		if k == nil {
			j.Categories = append(j.Categories, verdict.CategoryResult{Category: o.category, Verdict: verdict.Ready, Gates: o.category != specs.ExtendWorker, Outcomes: map[verdict.Outcome]int{}})
			k = &j.Categories[len(j.Categories)-1]
		}
		k.Outcomes[o.outcome]++
		k.Counts.Total++
		k.Seconds += 61
		j.Counts.Total++
		c := verdict.CaseResult{
			Case:    &result.PlannedCase{Case: specs.Case{ID: o.id, Category: o.category, Kind: specs.Requirement, Proof: specs.ProofFull, Requirement: "Pods of " + o.id + " work."}},
			Outcome: o.outcome, Reason: o.reason, Seconds: 61,
		}
		switch {
		case o.outcome.Good():
			k.Counts.Proven++
			j.Counts.Proven++
		case o.outcome == verdict.Failed:
			j.Verdict, k.Verdict = verdict.NotReady, verdict.NotReady
			c.Evidence = "2 pods: 1 on Windows 10.0.20348, 1 on Linux"
			c.Tests = []verdict.TestResult{{Test: &result.PlannedTest{Name: "[sig-windows] " + o.id + " should work"}, Outcome: o.outcome, Attempts: make([]result.TestRun, 2)}}
		default:
			if j.Verdict == verdict.Ready {
				j.Verdict = verdict.Inconclusive
			}
			if k.Verdict == verdict.Ready {
				k.Verdict = verdict.Inconclusive
			}
		}
		j.Cases = append(j.Cases, c)
		if b := c.Blocks(); b != "" {
			j.Reasons = append(j.Reasons, b)
		}
	}
	return Cell{Name: name, Run: run, Judgement: j}
}

// withTrials adds trials of a category to a cell, each with its outcome.
func withTrials(cell Cell, category specs.Category, trials map[string]verdict.Outcome) Cell {
	j := cell.Judgement
	k := categoryOf(j, category)
	if k == nil {
		j.Categories = append(j.Categories, verdict.CategoryResult{Category: category, Verdict: verdict.NotAsked, Outcomes: map[verdict.Outcome]int{}})
		k = &j.Categories[len(j.Categories)-1]
	}
	k.Trials = map[verdict.Outcome]int{}
	if j.Trials == nil {
		j.Trials = map[verdict.Outcome]int{}
	}
	for _, id := range slices.Sorted(maps.Keys(trials)) {
		o := trials[id]
		k.Trials[o]++
		j.Trials[o]++
		j.Cases = append(j.Cases, verdict.CaseResult{
			Case:    &result.PlannedCase{Case: specs.Case{ID: id, Category: category, Kind: specs.Trial, Proof: specs.ProofFull, Requirement: "Pods of " + id + " work."}},
			Outcome: o, Reason: "nobody has seen this fail on Windows yet",
		})
	}
	return cell
}

func someRun(name string) Cell {
	cell := judged(name,
		outcome{specs.CoreNetwork, "core-network.dns", verdict.Passed, ""},
		outcome{specs.CoreNetwork, "core-network.node-port", verdict.Failed, "expected a Windows node to answer\nwithin 30s"},
		outcome{specs.CoreNetwork, "core-network.service", verdict.Flaky, "passed in attempt 2, after: timeout"},
		outcome{specs.CoreStorage, "core-storage.config-map", verdict.Unproven, `no pod "^pod-" was observed on Windows`},
		outcome{specs.CoreScheduling, "core-scheduling.limits", verdict.Passed, ""},
		outcome{specs.CoreConcurrent, "core-concurrent.many", verdict.NotTested, "both Windows nodes are simulated"},
		outcome{specs.CoreConcurrent, "core-concurrent.restart", verdict.NotTested, "both Windows nodes are simulated"},
		outcome{specs.ExtendWorker, "extend-worker.reboot", verdict.Error, "the API server went away"},
	)
	return cell
}

var someLinks = []Link{{"full report", "https://github.com/o/r/actions/runs/17"}, {"grid", "https://testgrid.k8s.io/windows#readiness"}}

func TestOneRun(t *testing.T) {
	r := Report{Cells: []Cell{someRun("")}, Commit: "0123456789abcdef0123456789abcdef01234567", Links: someLinks}
	golden.Equal(t, t.Name()+".golden.md", r.Markdown(MaxComment))
}

// Clusters of the shards' own are not added up to one.
func TestEachClusterIsToldAsLargeAsItWas(t *testing.T) {
	shard := func(n int, made string, nodes ...string) result.Manifest {
		m := result.Manifest{Shard: n, Target: result.Target{Made: made}}
		for _, name := range nodes {
			m.Cluster.Nodes = append(m.Cluster.Nodes, result.Node{Name: name, OS: specs.OS(strings.TrimRight(name, "123")), Simulated: made != ""})
		}
		return m
	}
	for want, shards := range map[string][]result.Manifest{
		"v1.36.3, 2 Linux nodes, 1 Windows node.": {shard(1, "", "linux1", "linux2", "windows1"), shard(2, "", "linux1", "linux2", "windows1")},
		// A node left, and another came.
		"v1.36.3, 1 Linux node, 2 Windows nodes.":                                         {shard(1, "", "linux1", "windows1"), shard(2, "", "linux1", "windows2")},
		"v1.36.3, 3 clusters, each of 1 Linux node, 1 Windows node, 2 of them simulated.": {shard(1, "kwok/a", "linux1", "windows1"), shard(2, "kwok/b", "linux1", "windows1"), shard(3, "kwok/c", "linux1", "windows1")},
		"v1.36.3, 1 Linux node, 1 Windows node; 1 Linux node, 2 Windows nodes.":           {shard(1, "", "linux1", "windows1"), shard(2, "", "linux2", "windows2", "windows3")},
		"v1.36.3, 1 Linux node, 0 Windows nodes; 2 Linux nodes, 0 Windows nodes; 3 Linux nodes, 0 Windows nodes; and 1 other cluster.": {
			shard(1, "", "linux1"), shard(2, "", "linux2", "linux3"), shard(3, "", "linux11", "linux12", "linux13"), shard(4, "", "linux21", "linux22", "linux23", "linux31")},
	} {
		c := someRun("")
		c.Run.Manifest.Shards = shards
		if text := (&Report{Cells: []Cell{c}}).Markdown(MaxComment); !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%.600s", want, text)
		}
	}
}

func TestAMatrix(t *testing.T) {
	second := judged("v1.35, ltsc2025", outcome{specs.CoreNetwork, "core-network.dns", verdict.Passed, ""})
	r := Report{Cells: []Cell{someRun("v1.36, ltsc2022"), second}, Links: someLinks, Reporter: "readiness.yml of fork/r"}
	golden.Equal(t, t.Name()+".golden.md", r.Markdown(MaxComment))
}

func TestAgainstTheBase(t *testing.T) {
	cell := someRun("")
	cell.Base = judged("",
		outcome{specs.CoreNetwork, "core-network.dns", verdict.Failed, "x"},
		outcome{specs.CoreNetwork, "core-network.node-port", verdict.Passed, ""},
		outcome{specs.CoreStorage, "core-storage.config-map", verdict.Unproven, "x"},
		outcome{specs.CoreConcurrent, "core-concurrent.many", verdict.Failed, "only there"},
	).Judgement
	golden.Equal(t, t.Name()+".golden.md", (&Report{Cells: []Cell{cell}}).Markdown(MaxComment))
}

// An id is not a word that begins a sentence.
func TestIDsStandAsTheyAre(t *testing.T) {
	cell := judged("", outcome{specs.CoreNetwork, "core-network-dns", verdict.Passed, ""})
	cell.Judgement.Scope = verdict.Scope{Kind: verdict.ScopeCases, Cases: []string{"core-network-dns"}}
	if text := (&Report{Cells: []Cell{cell}}).Markdown(MaxComment); !strings.Contains(text, "**core-network-dns: ready**") {
		t.Errorf("it says\n%.300s", text)
	}
}

// What is on trial has a column, and comes after all that counts; only the Markdown
// shows it.
func TestTrials(t *testing.T) {
	tried := func(cell Cell, one, other verdict.Outcome) Cell {
		cell = withTrials(cell, specs.CoreNetwork, map[string]verdict.Outcome{"core-network.ips-trial": one, "core-network.more-trial": other})
		return withTrials(cell, specs.ExtendHostProcess, map[string]verdict.Outcome{"extend-hostprocess.x-trial": one})
	}
	one := tried(someRun(""), verdict.Failed, verdict.Passed)
	one.Base = tried(someRun(""), verdict.Passed, verdict.Failed).Judgement
	r := Report{Cells: []Cell{one}, Links: someLinks}
	golden.Equal(t, t.Name()+".golden.md", r.Markdown(MaxComment))
	without := someRun("")
	without.Base = someRun("").Judgement
	if got, want := r.Annotations(), (&Report{Cells: []Cell{without}}).Annotations(); !slices.Equal(got, want) {
		t.Errorf("annotations are %q, and without trials %q", got, want)
	}
	_, got, _ := strings.Cut(r.Markdown(MaxComment), "\n\\* does not gate")
	_, want, _ := strings.Cut((&Report{Cells: []Cell{without}, Links: someLinks}).Markdown(MaxComment), "\n\\* does not gate")
	before, _, _ := strings.Cut(want, "\nrun <code>")
	after, same := strings.CutPrefix(got, before)
	if !same || strings.Count(after, "on trial, which decides nothing</summary>") != 2 || strings.Count(after, "nobody has seen this fail on Windows yet") != 2 {
		t.Errorf("after the table it says\n%s\nand without trials\n%s", got, want)
	}

	second := judged("v1.35, ltsc2025", outcome{specs.CoreNetwork, "core-network.dns", verdict.Passed, ""})
	r = Report{Cells: []Cell{tried(someRun("v1.36, ltsc2022"), verdict.Error, verdict.Passed), tried(second, verdict.Failed, verdict.Passed)}, Links: someLinks}
	golden.Equal(t, t.Name()+"OfAMatrix.golden.md", r.Markdown(MaxComment))
}

// What tests measured is a line a case, and left away where it does not fit.
func TestMeasured(t *testing.T) {
	cell := someRun("ltsc2022")
	cell.Judgement.Cases[0].Tests = []verdict.TestResult{{Test: &result.PlannedTest{}, Attempts: []result.TestRun{
		{Measured: []result.Measurement{{What: "of the first attempt", Figure: "9"}}},
		{Measured: []result.Measurement{{What: "rescheduling, median", Figure: "1.2s"}, {What: "deletions", Figure: "7"}}},
	}}}
	const want = "\n<details><summary>Measured</summary>\n\n- <code>core-network&#46;dns</code>: rescheduling, median: 1.2s; deletions: 7\n\n</details>\n"
	text := (&Report{Cells: []Cell{cell}, Links: someLinks}).Markdown(MaxComment)
	if !strings.Contains(text, want+"\nrun <code>") || strings.Contains(text, "first attempt") {
		t.Errorf("it says\n%s", text)
	}
	if short := (&Report{Cells: []Cell{cell}, Links: someLinks}).Markdown(len(text) - 1); strings.Contains(short, "Measured") || strings.Contains(short, "not shown") {
		t.Errorf("with a byte less it says\n%s", short)
	}
}

// A matrix may have lost a cell in a workflow run that failed.
func TestWhatIsReadyInARunThatFailedIsNotCalledSo(t *testing.T) {
	ready := judged("ltsc2022", outcome{specs.CoreNetwork, "core-network.dns", verdict.Passed, ""})
	for conclusion, want := range map[string]string{"": "of ltsc2022: ready", "success": "of ltsc2022: ready", "timed_out": "of ltsc2022: inconclusive"} {
		text := (&Report{Cells: []Cell{ready}, Conclusion: conclusion}).Markdown(MaxComment)
		if !strings.Contains(text, want) || !strings.Contains(text, "cluster: ready") || strings.Contains(text, "- the workflow run itself came to **timed out**") != (conclusion == "timed_out") {
			t.Errorf("%q:\n%s", conclusion, text)
		}
	}
	if text := (&Report{Cells: []Cell{someRun("")}, Conclusion: "failure"}).Markdown(MaxComment); strings.Contains(text, "came to") || !strings.Contains(text, "not ready") {
		t.Errorf("the results say why the run failed, and so does it:\n%s", text)
	}
}

func TestNewFailuresComeFirst(t *testing.T) {
	cell := judged("",
		outcome{specs.CoreNetwork, "a-known", verdict.Failed, "x"},
		outcome{specs.CoreNetwork, "b-new", verdict.Failed, "x"},
	)
	cell.Base = judged("", outcome{specs.CoreNetwork, "a-known", verdict.Failed, "x"}, outcome{specs.CoreNetwork, "b-new", verdict.Passed, ""}).Judgement
	text := (&Report{Cells: []Cell{cell}}).Markdown(MaxComment)
	_, details, _ := strings.Cut(text, "<details>")
	if strings.Index(details, inline("b-new", 100)) > strings.Index(details, inline("a-known", 100)) {
		t.Errorf("the new failure is not the first:\n%s", details)
	}
}

func TestWithoutABaseNothingIsClaimed(t *testing.T) {
	text := (&Report{Cells: []Cell{someRun("")}}).Markdown(MaxComment)
	for _, claim := range []string{"base", "new", "fixed", "already"} {
		if strings.Contains(text, claim) {
			t.Errorf("it speaks of %q:\n%s", claim, text)
		}
	}
}

func TestWhyNothingWasTestedIsSaid(t *testing.T) {
	var many []outcome
	for i := range 20 {
		many = append(many, outcome{specs.CoreNetwork, fmt.Sprint("case-", i), verdict.NotTested, fmt.Sprint("reason ", i%8)})
	}
	cell := judged("", many...)
	cell.Judgement.Reasons = append(cell.Judgement.Reasons, "the run was cut short")
	text := (&Report{Cells: []Cell{cell}}).Markdown(MaxComment)
	for _, want := range []string{"\n- the run was cut short\n- 3 cases not tested: reason 0 (<code>case-0</code>, <code>case-8</code>, <code>case-16</code>)\n", "\n- and 3 more\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
}

func TestItFitsWhateverItHolds(t *testing.T) {
	long := strings.Repeat("`é@org/team #1 <script>|\n", 50_000)
	var many []outcome
	for i := range 10_000 {
		many = append(many, outcome{specs.Category(fmt.Sprintf("Core.%d", i%300)), fmt.Sprintf("case-%d-%s", i, long[:200]), verdict.Failed, long})
	}
	cell := judged(long, many...)
	cell.Base = judged("", outcome{"Core.1", "x", verdict.Passed, ""}).Judgement
	cells := []Cell{cell}
	for i := range 60 {
		cells = append(cells, judged(fmt.Sprint(long, i), many[:3]...))
	}
	for _, limit := range []int{0, 100, 5000, MaxComment, MaxSummary} {
		for _, cells := range [][]Cell{cells[:1], cells} {
			text := (&Report{Cells: cells, Links: someLinks, Reporter: long, Commit: long}).Markdown(limit)
			if limit >= 5000 && len(text) > limit {
				t.Errorf("%d cells within %d: %d bytes", len(cells), limit, len(text))
			}
			if !utf8.ValidString(text) {
				t.Errorf("%d cells within %d: not UTF-8", len(cells), limit)
			}
			if limit == MaxComment && !strings.Contains(text, "failures not shown here") {
				t.Error("it does not say what is left away")
			}
		}
	}
}

var hostile = []string{
	"@octocat please", "see #123 and org/repo#7, GH-12", "<!-- op-readiness -->", "<img src=x onerror=alert(1)>", "</code><script>alert(1)</script>",
	"[click](javascript:alert(1))", "![x](https://evil.example/x.png)", "www.evil.example and https://evil.example and a@evil.example",
	"| a | b |\n| --- | --- |", "`code` ``two`` ```three```", "```\nfenced\n```", "~~~\nx\n~~~", "# heading", "- item\n- item", "> quote", "\\*\\_", "&lt;b&gt;&#64;x &commat;y",
	"\x1b[31mred\x1b[0m \x1b]8;;https://evil.example\x07link\x1b\\", "\u202egnp.exe\u202c", "a\u200bb\u2060c\ufeffd", "\x00\x07\x7f", "\xff\xfe",
	"0123456789abcdef0123456789abcdef01234567", ":smile:", "$\\alpha$ $$x$$", "[^1]: note", "<details><summary>x", "</details></summary></table>", "http://[::1]/\"><b>", strings.Repeat("x", 100_000),
	"line\r\nline\rline", "\u2028para\u2029", "==text==", "<https://evil.example>", "\u3164\u115f", "a\u2800b\u17b4c\u2065d\U000e0041", "Z" + strings.Repeat("\u0301\u0489", 5000), "🇩🇪👩‍👩‍👧",
	"www.evil.example", "0123456", "deadbeef is it", "GH-12", "1. first", "2) second", "http: x", "a: b, (c). d; e's", "---", "v1.36, ltsc2022",
}

func hostileReport(s string) *Report {
	cell := judged(s, outcome{specs.Category(s), s, verdict.Failed, s}, outcome{specs.Category(s), s + "2", verdict.Passed, ""})
	cell.Base = judged(s, outcome{specs.Category(s), s, verdict.Passed, ""}, outcome{specs.Category(s) + "x", s, verdict.Failed, s}).Judgement
	cell.Judgement.Reasons = append(cell.Judgement.Reasons, s)
	cell.Judgement.Cases[0].Evidence, cell.Judgement.Cases[0].Case.Requirement, cell.Judgement.Cases[0].Tests[0].Test.Name = s, s, s
	cell.Judgement.Cases[1].Tests = []verdict.TestResult{{Test: &result.PlannedTest{}, Attempts: []result.TestRun{{Measured: []result.Measurement{{What: s, Figure: s}}}}}}
	cell.Run.Manifest.RunID, cell.Run.Manifest.Cluster.ServerVersion, cell.Run.Manifest.Cluster.Nodes[2].WindowsBuild = s, s, s
	cell.Judgement.Scope = verdict.Scope{Kind: verdict.ScopeCases, Cases: []string{s}, Standard: &verdict.Standard{SpecDir: s}}
	cell.Judgement.Declared = []verdict.Declaration{{Name: s}}
	return &Report{Cells: []Cell{cell, someRun("other")}, Commit: s, Reporter: s, Conclusion: s, Notes: []string{s}, Links: []Link{{"full report", "https://example.com/" + s}, {"logs", "x" + s}}}
}

// dangers returns what a page of GitHub would do with a report beyond showing
// text: what it renders must have no element, link, mention or reference that is
// not the report's own.
func dangers(t testing.TB, text string) []string {
	t.Helper()
	var page bytes.Buffer
	md := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe()))
	if err := md.Convert([]byte(text), &page); err != nil {
		t.Fatal(err)
	}
	own := []string{"html", "head", "body", "h3", "p", "strong", "code", "pre", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "details", "summary", "a"}
	var found []string
	tokens := nethtml.NewTokenizer(&page)
	inCode := 0
	for {
		kind := tokens.Next()
		token := tokens.Token()
		switch kind {
		case nethtml.ErrorToken:
			return found
		case nethtml.CommentToken, nethtml.DoctypeToken:
			found = append(found, "a comment: "+token.Data)
		case nethtml.StartTagToken, nethtml.SelfClosingTagToken:
			if !slices.Contains(own, token.Data) {
				found = append(found, "element "+token.Data)
			}
			if token.Data == "code" {
				inCode++
			}
			for _, a := range token.Attr {
				switch {
				case a.Key == "href" && (strings.HasPrefix(a.Val, "https://example.com/") || strings.HasPrefix(a.Val, "https://github.com/o/r/")):
				case a.Key == "class" && a.Val == "language-text", a.Key == "style" && strings.HasPrefix(a.Val, "text-align:"), a.Key == "align":
				default:
					found = append(found, "attribute "+a.Key+"="+a.Val)
				}
			}
		case nethtml.EndTagToken:
			if token.Data == "code" {
				inCode--
			}
		case nethtml.TextToken:
			if inCode == 0 {
				if m := reference.FindString(token.Data); m != "" {
					found = append(found, "reference "+m)
				}
			}
		}
	}
}

var reference = regexp.MustCompile(`@|#\d|GH-\d|\b[0-9a-f]{7,40}\b|:\w+:|https?://|www\.`)

func TestHostileTextsAreOnlyText(t *testing.T) {
	for _, s := range hostile {
		if found := dangers(t, hostileReport(s).Markdown(MaxComment)); len(found) > 0 {
			t.Errorf("%.80q: %q", s, found)
		}
	}
}

func TestNoCommentHasWhatCannotBeSeen(t *testing.T) {
	hidden := regexp.MustCompile(`[\x{2800}\x{17b4}\x{2065}\x{e0041}\x{202e}\x{200b}]|[\x{0301}\x{0489}]{5}`)
	for _, s := range hostile {
		if found := hidden.FindString(hostileReport(s).Markdown(MaxComment)); found != "" {
			t.Errorf("%.80q: %+q", s, found)
		}
	}
}

func TestTheGuardSeesWhatItMust(t *testing.T) {
	for _, s := range []string{"hello @octocat", "<img src=x>", "see #12", "<!-- x -->", "https://evil.example", "[a](https://evil.example)"} {
		if len(dangers(t, s)) == 0 {
			t.Errorf("%q passes", s)
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, s := range hostile {
		f.Add(text.Cut(s, 2000), MaxComment)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = max(5000, min(limit, MaxSummary))
		ready := judged(s, outcome{specs.CoreNetwork, s, verdict.Passed, s})
		run := &WorkflowRun{Owner: "o", Repo: "r", Run: 16, Attempt: 2, Conclusion: s, Head: s, HeadRepo: s, HeadBranch: s, Workflow: s, URL: "https://example.com/" + s}
		for what, text := range map[string]string{
			"failures":   hostileReport(s).Markdown(limit),
			"ready":      (&Report{Cells: []Cell{ready}, Commit: s, Reporter: s, Conclusion: "no " + s, Notes: []string{s, s}}).Markdown(limit),
			"no results": run.NoResults(s),
		} {
			if len(text) > limit || !utf8.ValidString(text) {
				t.Errorf("%s: %d bytes within %d, UTF-8 %v", what, len(text), limit, utf8.ValidString(text))
			}
			if found := dangers(t, text); len(found) > 0 {
				t.Errorf("%s: %q", what, found)
			}
			if m, ok := parseMarker(marked(1, 1).String() + text); !ok || m != marked(1, 1) {
				t.Errorf("%s: its marker reads as %+v", what, m)
			}
		}
	})
}

// Whatever reads as a marker is written as the same.
func FuzzMarker(f *testing.F) {
	f.Add(marked(1, 1).String() + "text")
	f.Add(`<!-- op-readiness id="x" head="` + headA + `" run="99999999999999999999" attempt="1" -->`)
	f.Add(`<!-- op-readiness id="x y" head="` + headA + `" run="1" attempt="1" -->`)
	f.Add("<!-- op-readiness id=\"x\" head=\"" + headA + "\" run=\"007\" attempt=\"1\" -->\r\n")
	f.Fuzz(func(t *testing.T, s string) {
		m, ok := parseMarker(s)
		if !ok {
			return
		}
		if again, ok := parseMarker(m.String()); !ok || again != m || ValidID(m.ID) != nil {
			t.Errorf("%q reads as %+v, and that as %+v", s, m, again)
		}
	})
}

func TestAnnotationsTellTheFailures(t *testing.T) {
	r := Report{Cells: []Cell{someRun("")}}
	var titles []string
	for _, a := range r.Annotations() {
		titles = append(titles, string(a.Level)+" "+a.Title)
	}
	want := []string{"error core-network.node-port failed", "warning core-storage.config-map unproven", "warning extend-worker.reboot error"}
	if !slices.Equal(titles, want) {
		t.Errorf("%q, want %q", titles, want)
	}
}

// What is not the cluster's readiness by the standard, or only with features
// declared absent, says so in the first line.
func TestTheFirstLineNamesStandardAndDeclarations(t *testing.T) {
	other := func(c Cell) Cell {
		c.Judgement.Scope = verdict.Scope{Kind: verdict.ScopeStandard, Standard: &verdict.Standard{SpecDir: "mine", Digest: "sha256:" + strings.Repeat("ab", 32), Requirements: 4}}
		return c
	}
	declared := func(c Cell) Cell {
		c.Judgement.Declared = []verdict.Declaration{{Name: "gmsa", Yet: "the API group windows.k8s.io is served"}, {Name: "hyperv"}}
		return c
	}
	good := func(name string) Cell { return judged(name, outcome{specs.CoreNetwork, "a", verdict.Passed, ""}) }
	standard := "<code>4 requirements of another standard &#40;spec files of mine&#44; sha256&#58;abababababab&#41;</code>"
	without := "without gmsa (yet the API group windows.k8s.io is served) and hyperv, as declared"
	for _, c := range []struct {
		cells []Cell
		says  []string
	}{
		{[]Cell{good("")}, []string{"### ✅ Windows operational readiness: ready\n", "**The cluster: ready** ("}},
		{[]Cell{other(good(""))}, []string{"### ✅ Windows operational readiness of " + standard + ": ready\n", "**" + standard + ": ready** ("}},
		{[]Cell{other(good("x"))}, []string{"### ✅ Windows operational readiness of x, " + standard + ": ready\n"}},
		{[]Cell{declared(good("x"))}, []string{"### ✅ Windows operational readiness of x: ready " + without + "\n", "**The cluster: ready " + without + "** ("}},
		{[]Cell{good("x"), other(good("y")), declared(good("z"))}, []string{
			"### ✅ Windows operational readiness of 3 clusters, 1 of them by another standard, 1 of them with features declared absent: ready\n",
			"- ✅ x, the cluster: **ready** (", "- ✅ y, " + standard + ": **ready** (", "- ✅ z, the cluster: **ready " + without + "** (",
		}},
	} {
		text := (&Report{Cells: c.cells}).Markdown(MaxComment)
		for _, says := range c.says {
			if !strings.Contains(text, says) {
				t.Errorf("it does not say %q:\n%s", says, text)
			}
		}
		if found := dangers(t, text); len(found) > 0 {
			t.Errorf("%v", found)
		}
	}
}
