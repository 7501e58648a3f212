package github

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/actions"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// The longest texts that GitHub takes, in bytes.
const (
	MaxComment = 65_536
	MaxSummary = actions.MaxSummary
)

// Report is what is shown of one or more judged runs.
type Report struct {
	// Cells are the cells of a matrix, in the order in which they are shown; a
	// run alone is one cell without a name.
	Cells []Cell
	// Commit is what was tested, as a hash.
	Commit string
	// Reporter says whose workflow reports, where a reader may have to know.
	Reporter string
	// Conclusion is what the workflow run came to that made the results, such as
	// "failure"; "" where it is not known. A run that came to another end than
	// success may have lost cells, so readiness is not claimed then.
	Conclusion string
	// Notes are said beside the verdict.
	Notes []string
	// Links lead to the rest.
	Links []Link
}

// Cell is one judged run.
type Cell struct {
	// Name tells the cell from others: "v1.36, ltsc2025".
	Name      string
	Run       *result.Run
	Judgement *verdict.Judgement
	// Base is what the same cell came to on the base branch; nil where it is
	// not known.
	Base *verdict.Judgement
}

// Link is an address with a text of the caller's own.
type Link struct{ Text, URL string }

// How much of what results say is shown, in bytes, and how many rows.
const (
	maxID      = 200
	maxCell    = 80
	maxText    = 400
	maxMessage = 2000
	maxRows    = 40
	maxColumns = 12
	maxReasons = 6
	maxNames   = 10
	maxIDs     = 3
)

var marks = map[verdict.Verdict]string{
	verdict.Ready: "✅", verdict.NotReady: "❌", verdict.Inconclusive: "⚠️", verdict.NotAsked: "➖",
}

var words = map[verdict.Verdict]string{
	verdict.Ready: "ready", verdict.NotReady: "not ready", verdict.Inconclusive: "inconclusive", verdict.NotAsked: "not asked",
}

// Markdown renders the report in at most limit bytes: the verdict, a row a
// category, what changed against the base, and of the failures, the new ones
// first, as many as fit. What does not fit is counted, and the links lead to
// it.
func (r *Report) Markdown(limit int) string {
	var head strings.Builder
	r.title(&head)
	r.table(&head)
	r.reasons(&head)
	r.compared(&head)
	foot := r.foot()
	sections, rest := r.failures(limit)
	return fit(head.String(), sections, rest, r.measured(), foot, limit)
}

// fit puts as many sections as the limit allows between head and foot, and
// counts what is left, with the rest that no section was made of. What comes
// beside them is left away where it does not fit.
func fit(head string, sections []string, rest int, beside, foot string, limit int) string {
	more := func(n int) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprintf("\n**%s not shown here:** see the full report.\n", text.Count(n, "failure"))
	}
	// The parts before are bounded, for any input; this is for limits below that.
	if over := len(head) + len(foot) + len(more(len(sections)+rest)) - limit; over > 0 {
		head = cutLines(head, max(len(head)-over, 0))
	}
	room := limit - len(head) - len(foot)
	var b strings.Builder
	b.WriteString(head)
	shown := 0
	for i, s := range sections {
		if len(s)+len(more(len(sections)+rest-i-1)) > room {
			break
		}
		b.WriteString(s)
		room -= len(s)
		shown++
	}
	left := more(len(sections) + rest - shown)
	b.WriteString(left)
	if len(left)+len(beside) <= room {
		b.WriteString(beside)
	}
	b.WriteString(foot)
	return b.String()
}

// cutLines keeps whole lines of s, of at most limit bytes.
func cutLines(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return s[:strings.LastIndexByte(s[:limit], '\n')+1]
}

// verdict is the worst one of the cells.
func (r *Report) verdict() verdict.Verdict {
	worst := verdict.Ready
	for _, c := range r.Cells {
		switch v := c.Judgement.Verdict; {
		case v == verdict.NotReady:
			return v
		case v != verdict.Ready:
			worst = verdict.Inconclusive
		}
	}
	if len(r.Cells) == 0 || r.unfinished() {
		return verdict.Inconclusive
	}
	return worst
}

// unfinished reports whether something of the workflow run may be missing.
func (r *Report) unfinished() bool { return r.Conclusion != "" && r.Conclusion != "success" }

func (r *Report) title(b *strings.Builder) {
	v := r.verdict()
	if len(r.Cells) == 1 {
		j := r.Cells[0].Judgement
		var of []string
		if name := r.Cells[0].Name; name != "" {
			of = append(of, plain(name, maxCell))
		}
		if j.Scope.Standard != nil {
			of = append(of, scope(j))
		}
		subject := ""
		if len(of) > 0 {
			subject = " of " + strings.Join(of, ", ")
		}
		fmt.Fprintf(b, "### %s Windows operational readiness%s: %s%s\n\n", marks[v], subject, words[v], asDeclared(j))
		what := scope(j)
		if j.Scope.Kind != verdict.ScopeCases { // ids are not words
			what = sentence(what)
		}
		fmt.Fprintf(b, "**%s: %s** (%s). %s\n", what, worded(j), j.Counts, about(r.Cells[0].Run))
		return
	}
	subject := text.Count(len(r.Cells), "cluster")
	if n := r.count(func(j *verdict.Judgement) bool { return j.Scope.Standard != nil }); n > 0 {
		subject += fmt.Sprintf(", %d of them by another standard", n)
	}
	if n := r.count(func(j *verdict.Judgement) bool { return len(j.Declared) > 0 }); n > 0 {
		subject += fmt.Sprintf(", %d of them with features declared absent", n)
	}
	fmt.Fprintf(b, "### %s Windows operational readiness of %s: %s\n\n", marks[v], subject, words[v])
	for i, c := range r.Cells {
		if i == maxRows {
			fmt.Fprintf(b, "- and %d more\n", len(r.Cells)-i)
			break
		}
		fmt.Fprintf(b, "- %s %s, %s: **%s** (%s). %s\n", marks[c.Judgement.Verdict], plain(c.Name, maxCell), scope(c.Judgement), worded(c.Judgement), c.Judgement.Counts, about(c.Run))
	}
}

// count is for how many cells something holds.
func (r *Report) count(holds func(*verdict.Judgement) bool) int {
	n := 0
	for _, c := range r.Cells {
		if holds(c.Judgement) {
			n++
		}
	}
	return n
}

// worded is a verdict with what was declared away.
func worded(j *verdict.Judgement) string { return words[j.Verdict] + asDeclared(j) }

// asDeclared is what was declared away: names of a results folder.
func asDeclared(j *verdict.Judgement) string {
	if text := j.AsDeclared(); text != "" {
		return " " + plain(strings.TrimSpace(text), maxText)
	}
	return ""
}

// scope names what a verdict speaks about.
func scope(j *verdict.Judgement) string {
	if j.Scope.Standard == nil && (j.Scope.Kind == verdict.ScopeCluster || j.Scope.Kind == verdict.ScopeShard) {
		return j.Scope.String()
	}
	return plain(j.Scope.String(), maxText)
}

// sentence begins with a capital letter where a word does.
func sentence(s string) string {
	if s != "" && 'a' <= s[0] && s[0] <= 'z' {
		return strings.ToUpper(s[:1]) + s[1:]
	}
	return s
}

// about says what was tested. Shards may have had clusters of their own: no
// cluster is shown larger than it was.
func about(run *result.Run) string {
	var shapes []shape
	count := map[shape]int{}
	for _, nodes := range clustersOf(run) {
		s := shapeOf(nodes)
		if count[s]++; count[s] == 1 {
			shapes = append(shapes, s)
		}
	}
	var parts []string
	for i, s := range shapes {
		if i == maxIDs {
			parts = append(parts, "and "+text.Count(len(shapes)-i, "other cluster"))
			break
		}
		text := s.String()
		if count[s] > 1 {
			text = fmt.Sprintf("%d clusters, each of %s", count[s], text)
		}
		parts = append(parts, text)
	}
	return fmt.Sprintf("Kubernetes %s, %s.", plain(run.Manifest.Cluster.ServerVersion, maxCell), strings.Join(parts, "; "))
}

// shape is what is shown of the nodes of a cluster.
type shape struct {
	linux, windows, simulated int
	builds                    string
}

func shapeOf(nodes []*result.Node) shape {
	var s shape
	builds := map[string]bool{}
	for _, n := range nodes {
		switch n.OS {
		case specs.Windows:
			s.windows++
			if n.WindowsBuild != "" {
				builds[n.WindowsBuild] = true
			}
		case specs.Linux:
			s.linux++
		}
		if n.Simulated {
			s.simulated++
		}
	}
	s.builds = list(keys(builds), maxNames, plain)
	return s
}

func (s shape) String() string {
	text := text.Count(s.linux, "Linux node") + ", " + text.Count(s.windows, "Windows node")
	if s.builds != "" {
		text += " (" + s.builds + ")"
	}
	if s.simulated > 0 {
		text += fmt.Sprintf(", %d of them simulated", s.simulated)
	}
	return text
}

// clustersOf are the nodes of each cluster that the results come from. Shards were
// on one cluster when they saw a node of the same name, and none of them made a
// cluster for itself.
func clustersOf(run *result.Run) [][]*result.Node {
	type node struct{ made, name string }
	var clusters [][]*result.Node
	home := map[node]int{}
	for _, m := range run.Manifests() {
		at := len(clusters)
		for i := range m.Cluster.Nodes {
			if known, ok := home[node{m.Target.Made, m.Cluster.Nodes[i].Name}]; ok {
				at = known
				break
			}
		}
		if at == len(clusters) {
			clusters = append(clusters, nil)
		}
		for i := range m.Cluster.Nodes {
			n := &m.Cluster.Nodes[i]
			if _, known := home[node{m.Target.Made, n.Name}]; !known {
				home[node{m.Target.Made, n.Name}] = at
				clusters[at] = append(clusters[at], n)
			}
		}
	}
	return clusters
}

func keys(set map[string]bool) []string {
	var out []string
	for k := range set {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// list names the first few of names.
func list(names []string, limit int, write func(string, int) string) string {
	var out []string
	for i, n := range names {
		if i == limit {
			out = append(out, fmt.Sprintf("and %d more", len(names)-i))
			break
		}
		out = append(out, write(n, maxID))
	}
	return strings.Join(out, ", ")
}

// categoriesOf are those of all cells, in the standard's order.
func (r *Report) categoriesOf() []specs.Category {
	var out []specs.Category
	for _, known := range specs.Categories() {
		if r.has(known) {
			out = append(out, known)
		}
	}
	for _, c := range r.Cells {
		for _, k := range c.Judgement.Categories {
			if !slices.Contains(out, k.Category) {
				if len(out) == maxRows {
					return out
				}
				out = append(out, k.Category)
			}
		}
	}
	return out
}

func (r *Report) has(category specs.Category) bool {
	return slices.ContainsFunc(r.Cells, func(c Cell) bool { return categoryOf(c.Judgement, category) != nil })
}

func categoryOf(j *verdict.Judgement, category specs.Category) *verdict.CategoryResult {
	for i := range j.Categories {
		if j.Categories[i].Category == category {
			return &j.Categories[i]
		}
	}
	return nil
}

// table is a row per category: for one cell with a column per number, for several
// with a column per cell.
func (r *Report) table(b *strings.Builder) {
	categories := r.categoriesOf()
	if len(categories) == 0 {
		return
	}
	free := false
	name := func(category specs.Category) string {
		s := string(category)
		if !slices.Contains(specs.Categories(), category) {
			s = plain(s, maxCell)
		}
		if !category.Gates() {
			free = true
			s += " *"
		}
		return s
	}
	cells := r.Cells[:min(len(r.Cells), maxColumns)]
	header, rule, onTrial := trialColumn(cells)
	if len(r.Cells) == 1 {
		fmt.Fprintf(b, "\n| Category | Outcome | Proven | Failed | Flaky | Unproven | Not tested |%s Time |\n| --- | --- | ---: | ---: | ---: | ---: | ---: |%s ---: |\n", header, rule)
		for _, category := range categories {
			c := categoryOf(r.Cells[0].Judgement, category)
			fmt.Fprintf(b, "| %s | %s&nbsp;%s | %s | %s | %s | %s | %s |%s %s |\n", name(category), marks[c.Verdict], words[c.Verdict], proven(c.Counts),
				count(c.Outcomes[verdict.Failed]), count(c.Outcomes[verdict.Flaky]), count(c.Outcomes[verdict.Unproven]),
				count(c.Outcomes[verdict.NotTested]+c.Outcomes[verdict.Error]), onTrial(category), duration(c.Seconds))
		}
	} else {
		b.WriteString("\n| Category |")
		for _, c := range cells {
			fmt.Fprintf(b, " %s |", plain(c.Name, maxCell))
		}
		b.WriteString(header + "\n| --- |" + strings.Repeat(" --- |", len(cells)) + rule + "\n")
		for _, category := range categories {
			fmt.Fprintf(b, "| %s |", name(category))
			for _, cell := range cells {
				fmt.Fprintf(b, " %s |", summary(categoryOf(cell.Judgement, category)))
			}
			b.WriteString(onTrial(category) + "\n")
		}
		if more := len(r.Cells) - len(cells); more > 0 {
			fmt.Fprintf(b, "\n%s not in the table: see the full report.\n", text.Count(more, "more cluster"))
		}
	}
	if free {
		b.WriteString("\n\\* does not gate readiness\n")
	}
}

// trialColumn is the column of what is on trial, of all cells together: its header,
// the rule below it, and of each category its field. Without trials it is nothing.
func trialColumn(cells []Cell) (header, rule string, field func(specs.Category) string) {
	if !slices.ContainsFunc(cells, func(c Cell) bool { return len(c.Judgement.Trials) > 0 }) {
		return "", "", func(specs.Category) string { return "" }
	}
	return " On trial |", " --- |", func(category specs.Category) string {
		all := verdict.CategoryResult{Trials: map[verdict.Outcome]int{}}
		for _, cell := range cells {
			if c := categoryOf(cell.Judgement, category); c != nil {
				for outcome, n := range c.Trials {
					all.Trials[outcome] += n
				}
			}
		}
		return " " + report.OnTrial(&all) + " |"
	}
}

// summary is a category of one of several cells.
func summary(c *verdict.CategoryResult) string {
	if c == nil {
		return "not run"
	}
	parts := []string{proven(c.Counts)}
	for _, o := range []verdict.Outcome{verdict.Failed, verdict.Flaky, verdict.Unproven, verdict.Error, verdict.NotTested} {
		if n := c.Outcomes[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
		}
	}
	if t := duration(c.Seconds); t != "" {
		parts = append(parts, t)
	}
	return marks[c.Verdict] + " " + strings.Join(parts, ", ")
}

// proven is how much of a category was shown.
func proven(c verdict.Counts) string {
	if c.Parts > 0 {
		return fmt.Sprintf("%d and %d in part of %d", c.Proven, c.Parts, c.Total)
	}
	return fmt.Sprintf("%d of %d", c.Proven, c.Total)
}

func count(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func duration(seconds float64) string {
	if seconds <= 0 {
		return ""
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}

// reasons say why a cell is not ready, where its failures do not: first what is
// about more than a case, then what was not tested, by reason.
func (r *Report) reasons(b *strings.Builder) {
	var lines []string
	if r.unfinished() && !slices.ContainsFunc(r.Cells, func(c Cell) bool { return c.Judgement.Verdict != verdict.Ready }) {
		lines = append(lines, fmt.Sprintf("- the workflow run itself came to %s, so something that it should have tested may be missing here\n", conclusion(r.Conclusion)))
	}
	for i, note := range r.Notes {
		if i == maxRows {
			break
		}
		lines = append(lines, "- "+plain(note, maxText)+"\n")
	}
	for i, c := range r.Cells {
		if i == maxRows {
			break
		}
		texts := reasonsOf(c.Judgement)
		for k, text := range texts {
			if k == maxReasons {
				lines = append(lines, fmt.Sprintf("- %sand %d more\n", r.prefix(c.Name), len(texts)-k))
				break
			}
			lines = append(lines, "- "+r.prefix(c.Name)+text+"\n")
		}
		notes := c.Run.Manifest.Notes
		for k, note := range notes {
			if k == maxReasons {
				lines = append(lines, fmt.Sprintf("- %sand %s more\n", r.prefix(c.Name), text.Count(len(notes)-k, "note")))
				break
			}
			lines = append(lines, "- "+r.prefix(c.Name)+plain(note, maxText)+"\n")
		}
	}
	if len(lines) > 0 {
		b.WriteString("\n" + strings.Join(lines, ""))
	}
}

func reasonsOf(j *verdict.Judgement) []string {
	ofCase := map[string]bool{}
	untested := map[string][]string{}
	var why []string
	for i := range j.Cases {
		c := &j.Cases[i]
		blocks := c.Blocks()
		ofCase[blocks] = true
		if blocks == "" || broken(c.Outcome) || c.SumsUp() {
			continue
		}
		if untested[c.Reason] == nil {
			why = append(why, c.Reason)
		}
		untested[c.Reason] = append(untested[c.Reason], c.Case.ID)
	}
	var out []string
	for _, reason := range j.Reasons {
		if !ofCase[reason] {
			out = append(out, plain(reason, maxText))
		}
	}
	slices.SortStableFunc(why, func(a, b string) int { return cmp.Compare(len(untested[b]), len(untested[a])) })
	for _, reason := range why {
		text := text.Count(len(untested[reason]), "case") + " not tested"
		if reason != "" {
			text += ": " + plain(reason, maxText)
		}
		out = append(out, text+" ("+list(untested[reason], maxIDs, inline)+")")
	}
	return out
}

// prefix tells cells apart where there are several.
func (r *Report) prefix(cell string) string {
	if cell == "" || len(r.Cells) == 1 {
		return ""
	}
	return plain(cell, maxCell) + ": "
}

// foot are the links, and what the report is about.
func (r *Report) foot() string {
	var parts []string
	if r.Commit != "" {
		parts = append(parts, "Commit "+inline(r.Commit, maxCell))
	}
	if len(r.Cells) > 0 {
		parts = append(parts, "run "+inline(r.Cells[0].Run.Manifest.RunID, maxCell))
	}
	for i, l := range r.Links {
		if i == maxNames {
			break
		}
		parts = append(parts, link(l.Text, l.URL))
	}
	return "\n" + strings.Join(parts, " · ") + "\n" + reportedBy(r.Reporter)
}

// reportedBy says whose workflow reports.
func reportedBy(reporter string) string {
	if reporter == "" {
		return ""
	}
	return "\nReported by " + inline(reporter, maxText) + ", which the pull request may have changed.\n"
}
