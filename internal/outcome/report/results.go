package report

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	pretty "github.com/jedib0t/go-pretty/v6/text"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Results is a judged run, ready to be written.
type Results struct {
	Run       *result.Run
	Judgement *verdict.Judgement
	// Width is how many columns a terminal has; 0 is unknown.
	Width int
	// JudgedWith is set where the cases are not those of the run's plan.
	JudgedWith *JudgedWith
}

// JudgedWith says that results were judged with other cases than those that the
// run had planned, and what that changed.
type JudgedWith struct {
	// Specs names the cases: "the spec files of DIR".
	Specs string `json:"specs"`
	// Was is the verdict with the cases of the plan.
	Was     verdict.Verdict  `json:"was"`
	Changes []verdict.Change `json:"changes"`
}

// lines say it for people.
func (w *JudgedWith) lines(now verdict.Verdict) []string {
	if w == nil {
		return nil
	}
	head := fmt.Sprintf("Judged again with %s, and not with the cases that the run had planned: ", short(w.Specs, maxText))
	if now != w.Was {
		head += fmt.Sprintf("%s, was %s; ", now, w.Was)
	}
	switch len(w.Changes) {
	case 0:
		return []string{head + "no outcome is another."}
	case 1:
		head += "1 outcome is another:"
	default:
		head += fmt.Sprintf("%d outcomes are others:", len(w.Changes))
	}
	lines := []string{head}
	for i, c := range w.Changes {
		if i == maxChanges {
			return append(lines, fmt.Sprintf("… and %d more", len(w.Changes)-i))
		}
		lines = append(lines, short(c.String(), maxText))
	}
	return lines
}

// jsonResults is what FormatJSON writes.
type jsonResults struct {
	RunID             string                 `json:"runID"`
	PlanDigest        string                 `json:"planDigest"`
	KubernetesVersion string                 `json:"kubernetesVersion"`
	ServerVersion     string                 `json:"serverVersion"`
	Started           time.Time              `json:"started"`
	Finished          time.Time              `json:"finished,omitzero"`
	ExitCode          int                    `json:"exitCode"`
	VerdictLine       string                 `json:"verdictLine"`
	Nodes             []result.Node          `json:"nodes"`
	Standard          map[specs.Category]int `json:"standard"`
	JudgedWith        *JudgedWith            `json:"judgedWith,omitempty"`
	Judgement         *verdict.Judgement     `json:"judgement"`
}

// Write writes the report: the verdict, a row per category, a row per case.
func (r *Results) Write(w io.Writer, format Format) error {
	switch format {
	case FormatTable:
		return r.writeTable(w)
	case FormatMarkdown:
		return r.writeMarkdown(w)
	case FormatCSV:
		return r.cases(maxCSV, true).Write(w, FormatCSV)
	default:
		j := r.Judgement
		t := Table{Value: jsonResults{
			RunID:             r.Run.Manifest.RunID,
			PlanDigest:        r.Run.Plan.Digest,
			KubernetesVersion: r.Run.Plan.KubernetesVersion,
			ServerVersion:     r.Run.Manifest.Cluster.ServerVersion,
			Started:           r.Run.Manifest.Started,
			Finished:          r.Run.Manifest.Finished,
			ExitCode:          j.ExitCode(),
			VerdictLine:       verdictLine(j),
			Nodes:             r.Run.Manifest.Cluster.Nodes,
			Standard:          r.Run.Plan.Standard,
			JudgedWith:        r.JudgedWith,
			Judgement:         j,
		}}
		return t.Write(w, format)
	}
}

// verdictLine is a judgement in one line: the scope, the word, what was declared
// away, the counts.
func verdictLine(j *verdict.Judgement) string {
	return fmt.Sprintf("Windows operational readiness of %s: %s (%s)",
		short(j.Scope.String(), maxText), shown.Line(strings.ToUpper(string(j.Verdict))+j.AsDeclared()), j.Counts)
}

// aboutRun says in one line what was tested.
func aboutRun(run *result.Run) string {
	f := &run.Manifest.Cluster
	nodes := func(os specs.OS) string {
		all := f.Count(func(n *result.Node) bool { return n.OS == os })
		simulated := f.Count(func(n *result.Node) bool { return n.OS == os && n.Simulated })
		name := map[specs.OS]string{specs.Windows: "Windows", specs.Linux: "Linux"}[os]
		switch simulated {
		case 0:
			return text.Count(all, name+" node")
		case all:
			return text.Count(all, "simulated "+name+" node")
		}
		return fmt.Sprintf("%s (%d simulated)", text.Count(all, name+" node"), simulated)
	}
	return fmt.Sprintf("Kubernetes %s, e2e.test %s, %s and %s",
		short(f.ServerVersion, maxText), short(run.Manifest.E2EVersion, maxText), nodes(specs.Linux), nodes(specs.Windows))
}

// How much of what a results folder says is shown: bytes of a text, of one in
// a spreadsheet, and lines.
const (
	maxText    = 400
	maxCSV     = 8000
	maxReasons = 8
	maxChanges = 40
	maxSuites  = 20
	maxFigures = result.MaxMeasurements // of a case
)

// doesNotGate explains the mark of categories that do not.
const doesNotGate = "* does not gate readiness"

func (r *Results) writeTable(w io.Writer) error {
	var b bytes.Buffer
	j := r.Judgement
	fmt.Fprintln(&b, verdictLine(j))
	fmt.Fprintf(&b, "%s\n\n", aboutRun(r.Run))
	for i, line := range r.JudgedWith.lines(j.Verdict) {
		if i > 0 {
			line = "  " + line
		}
		fmt.Fprintln(&b, line)
	}
	if r.JudgedWith != nil {
		fmt.Fprintln(&b)
	}
	if err := r.categories().Write(&b, FormatTable); err != nil {
		return err
	}
	if r.someDoNotGate() {
		fmt.Fprintln(&b, doesNotGate)
	}
	r.list(&b)
	if reasons := reasons(j); len(reasons) > 0 {
		fmt.Fprintf(&b, "\nWhy it is not %s:\n", verdict.Ready)
		for _, reason := range reasons {
			fmt.Fprintf(&b, "  %s\n", reason)
		}
	}
	for i, s := range j.Suites {
		if i == maxSuites {
			fmt.Fprintf(&b, "\n… and %d more failures outside of any test\n", len(j.Suites)-i)
			break
		}
		fmt.Fprintf(&b, "\nOutside of any test, %s:\n  %s\n", short(s.Name(), maxText), short(gist(s.Message), maxText))
	}
	for _, note := range append(notPulled(r.Run), j.Beside...) {
		fmt.Fprintf(&b, "\n%s\n", shown.Line(note))
	}
	fmt.Fprintf(&b, "\n%s\n", verdictLine(j))
	_, err := w.Write(b.Bytes())
	return err
}

func (r *Results) writeMarkdown(w io.Writer) error {
	var b bytes.Buffer
	j := r.Judgement
	fmt.Fprintf(&b, "## %s\n\n%s\n\n", markdown(verdictLine(j)), markdown(aboutRun(r.Run)))
	for i, line := range r.JudgedWith.lines(j.Verdict) {
		if i == 0 {
			fmt.Fprintf(&b, "%s\n\n", markdown(line))
			continue
		}
		fmt.Fprintf(&b, "- %s\n", markdown(line))
	}
	if r.JudgedWith != nil && len(r.JudgedWith.Changes) > 0 {
		fmt.Fprintln(&b)
	}
	for _, reason := range reasons(j) {
		fmt.Fprintf(&b, "- %s\n", markdown(reason))
	}
	notes := append(notPulled(r.Run), j.Beside...)
	for _, note := range notes {
		fmt.Fprintf(&b, "- %s\n", markdown(shown.Line(note)))
	}
	if len(j.Reasons)+len(notes) > 0 {
		fmt.Fprintln(&b)
	}
	if err := r.categories().Write(&b, FormatMarkdown); err != nil {
		return err
	}
	if r.someDoNotGate() {
		fmt.Fprintf(&b, "\n%s\n", markdown(doesNotGate))
	}
	fmt.Fprintln(&b)
	some := slices.ContainsFunc(j.Cases, func(c verdict.CaseResult) bool { return len(c.Measured()) > 0 })
	if err := r.cases(maxText, some).Write(&b, FormatMarkdown); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (r *Results) someDoNotGate() bool {
	return slices.ContainsFunc(r.Judgement.Categories, func(c verdict.CategoryResult) bool { return !c.Category.Gates() })
}

// reasons are why the verdict is not "ready". Where many cases are, those of
// one outcome are one reason, and the rules that only sum up go unnamed.
func reasons(j *verdict.Judgement) []string {
	var out []string
	if len(j.Reasons) <= maxReasons {
		for _, reason := range j.Reasons {
			out = append(out, short(reason, maxText))
		}
		return out
	}
	blocks := map[string]bool{}
	for _, o := range []verdict.Outcome{verdict.Failed, verdict.Unproven, verdict.Error, verdict.NotTested} {
		var ids []string
		for i := range j.Cases {
			c := &j.Cases[i]
			if c.Outcome != o || c.Blocks() == "" {
				continue
			}
			blocks[c.Blocks()] = true
			if !c.SumsUp() {
				ids = append(ids, short(c.Case.ID, maxText))
			}
		}
		switch {
		case len(ids) > maxReasons:
			out = append(out, fmt.Sprintf("%d cases are %s: %s … and %d more", len(ids), o, strings.Join(ids[:maxReasons/2], ", "), len(ids)-maxReasons/2))
		case len(ids) > 1:
			out = append(out, fmt.Sprintf("%d cases are %s: %s", len(ids), o, strings.Join(ids, ", ")))
		case len(ids) == 1:
			out = append(out, fmt.Sprintf("%s is %s", ids[0], o))
		}
	}
	for _, reason := range j.Reasons {
		if blocks[reason] {
			continue
		}
		if len(out) >= 2*maxReasons {
			return append(out, "… and more")
		}
		out = append(out, short(reason, maxText))
	}
	return out
}

// defaultWidth is how wide the list of cases is where no terminal says.
const defaultWidth = 120

// list writes the cases of each category: outcome, id and time, and below them
// the requirement's sentence, and why the outcome is what it is.
func (r *Results) list(w io.Writer) {
	const column, gap = 17, "  "
	width := r.Width
	if width < 60 {
		width = defaultWidth
	}
	paragraph := func(s string) {
		for _, line := range strings.Split(pretty.WrapSoft(s, width-column-len(gap)), "\n") {
			fmt.Fprintf(w, "%*s%s%s\n", column, "", gap, strings.TrimRight(line, " "))
		}
	}
	for _, category := range r.Judgement.Categories {
		fmt.Fprintf(w, "\n%s: %s", short(string(category.Category), maxText), category.Verdict)
		if category.Counts.Total > 0 {
			fmt.Fprintf(w, ", %s", category.Counts)
		}
		fmt.Fprintln(w)
		for i := range r.Judgement.Cases {
			c := &r.Judgement.Cases[i]
			if c.Case.Category != category.Category {
				continue
			}
			head := short(c.Case.ID, maxText)
			if note := caseNote(c); note != "" {
				head += " (" + note + ")"
			}
			if t := seconds(c.Seconds); t != "" {
				head += ", " + t
			}
			fmt.Fprintf(w, "%*s%s%s\n", column, c.Outcome, gap, head)
			paragraph(short(c.Case.Requirement, maxText))
			if reason := why(c, maxText); reason != "" {
				paragraph("→ " + reason)
			}
			figures := c.Measured()
			for k, m := range figures {
				if k == maxFigures {
					paragraph(moreFigures(figures))
					break
				}
				paragraph(short(m.String(), maxText))
			}
		}
	}
}

// Figures are those of the newest attempts of a case's tests in one line, as many as
// are shown of a case: "rescheduling, median: 1.2s; deletions: 7".
func Figures(c *verdict.CaseResult) string {
	var parts []string
	figures := c.Measured()
	for i, m := range figures {
		if i == maxFigures {
			parts = append(parts, moreFigures(figures))
			break
		}
		parts = append(parts, m.String())
	}
	return strings.Join(parts, "; ")
}

// moreFigures counts those that are not shown.
func moreFigures(figures []result.Measurement) string {
	return fmt.Sprintf("… and %d more figures", len(figures)-maxFigures)
}

// columns name the outcomes, shortly.
var columns = map[verdict.Outcome]string{
	verdict.Passed: "Passed", verdict.Flaky: "Flaky", verdict.Failed: "Failed", verdict.Unproven: "Unproven", verdict.Error: "Error",
	verdict.NotTested: "Not tested", verdict.NotApplicable: "N/A", verdict.NotImplemented: "No test",
}

// categories is one row per category. Columns of outcomes that none has are
// left out.
func (r *Results) categories() *Table {
	t := &Table{Header: []string{"Category", "Verdict", "Proven", "In part", "Of"}}
	var shown []verdict.Outcome
	for _, o := range verdict.Outcomes() {
		if r.Judgement.Outcomes[o] > 0 {
			shown = append(shown, o)
			t.Header = append(t.Header, columns[o])
		}
	}
	if len(r.Judgement.Trials) > 0 {
		t.Header = append(t.Header, "On trial")
	}
	t.Header = append(t.Header, "Time")
	for _, c := range r.Judgement.Categories {
		word := string(c.Verdict)
		if !c.Category.Gates() {
			word += " *"
		}
		row := []string{short(string(c.Category), maxText), word, strconv.Itoa(c.Counts.Proven), strconv.Itoa(c.Counts.Parts), strconv.Itoa(c.Counts.Total)}
		for _, o := range shown {
			row = append(row, count(c.Outcomes[o]))
		}
		if len(r.Judgement.Trials) > 0 {
			row = append(row, OnTrial(&c))
		}
		t.Rows = append(t.Rows, append(row, seconds(c.Seconds)))
	}
	return t
}

// OnTrial says how the trials of a category ended, "1 passed, 2 failed"; "" where
// it has none.
func OnTrial(c *verdict.CategoryResult) string {
	var parts []string
	for _, o := range verdict.Outcomes() {
		if n := c.Trials[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
		}
	}
	return strings.Join(parts, ", ")
}

func count(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// cases is one row per case, with at most limit bytes in a cell; measured adds what
// tests measured.
func (r *Results) cases(limit int, measured bool) *Table {
	t := &Table{Header: []string{"Case", "Outcome", "Time", "Requirement", "Why"}}
	if measured {
		t.Header = append(t.Header, "Measured")
	}
	for i := range r.Judgement.Cases {
		c := &r.Judgement.Cases[i]
		row := []string{
			short(c.Case.ID, limit),
			strings.TrimSpace(string(c.Outcome) + " " + caseNote(c)),
			seconds(c.Seconds),
			short(c.Case.Requirement, limit),
			why(c, limit),
		}
		if measured {
			row = append(row, short(Figures(c), limit))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// caseNote says that a pass shows its requirement in part or on simulated nodes,
// or that the case is not the standard's.
func caseNote(c *verdict.CaseResult) string {
	var notes []string
	switch {
	case c.Case.Kind == specs.Additional, c.Case.Kind == specs.Trial:
		notes = append(notes, string(c.Case.Kind))
	case c.Outcome.Good() && c.Case.Proof == specs.ProofPart:
		notes = append(notes, "in part")
	}
	if c.Outcome.Good() && c.Simulated {
		notes = append(notes, "simulated")
	}
	return strings.Join(notes, ", ")
}

// why is the reason of an outcome, what a partial proof does not show, and
// where the pods ran, in about limit bytes.
func why(c *verdict.CaseResult, limit int) string {
	parts := []string{}
	switch reason := strings.TrimSuffix(gist(c.Reason), "."); {
	case reason == "":
	case c.Outcome == verdict.NotImplemented && c.Reason == c.Case.Missing:
		parts = append(parts, "Missing: "+reason)
	default:
		parts = append(parts, reason)
	}
	if c.Outcome.Good() && c.Case.Proof == specs.ProofPart && c.Case.Missing != "" {
		parts = append(parts, "Not shown: "+strings.TrimSuffix(c.Case.Missing, "."))
	}
	if len(c.Images) > 0 && c.Outcome.Good() {
		parts = append(parts, "Other images on Windows: "+strings.Join(c.Images, ", "))
	}
	evidence := short(c.Evidence, limit)
	text := short(strings.Join(parts, ". "), max(limit-len(evidence), limit/2))
	if text != "" && evidence != "" {
		text += ". "
	}
	return text + evidence
}

func seconds(s float64) string {
	if s == 0 {
		return ""
	}
	return time.Duration(s * float64(time.Second)).Round(100 * time.Millisecond).String()
}

// short is one line, of at most about limit bytes.
func short(s string, limit int) string { return shown.Line(result.Cut(shown.Line(s), limit)) }

// nodeLine is how ginkgo says, ahead of a failure, in which of a test's nodes it
// was.
var nodeLine = regexp.MustCompile(`(?m)\[[A-Z][A-Za-z ()]*\] \S+\.go:\d+$\n*`)

// gist takes from a failure of ginkgo what stands before its message.
func gist(message string) string { return strings.TrimSpace(nodeLine.ReplaceAllString(message, "")) }

var markdownEscapes = strings.NewReplacer(
	"&", "&amp;", "<", "&lt;", ">", "&gt;",
	"\\", "\\\\", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "#", "\\#", "~", "\\~", "$", "\\$",
	"@", "@\u200b",
)

// markdown escapes what a text could do to a page.
func markdown(s string) string {
	return markdownEscapes.Replace(s)
}
