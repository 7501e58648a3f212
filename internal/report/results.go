package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/windows-op-readiness/windows-op-readiness/internal/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Results is a judged run, ready to be written.
type Results struct {
	Run       *result.Run
	Judgement *verdict.Judgement
	// Width is how many columns a terminal has; 0 is unknown.
	Width int
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
	Judgement         *verdict.Judgement     `json:"judgement"`
}

// Write writes the report: the verdict, a row a category, a row a case.
func (r *Results) Write(w io.Writer, format Format) error {
	switch format {
	case FormatTable:
		return r.writeTable(w)
	case FormatMarkdown:
		return r.writeMarkdown(w)
	case FormatCSV:
		return r.cases(plain).Write(w, FormatCSV)
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
			VerdictLine:       VerdictLine(j),
			Nodes:             r.Run.Manifest.Cluster.Nodes,
			Standard:          r.Run.Plan.Standard,
			Judgement:         j,
		}}
		return t.Write(w, format)
	}
}

// VerdictLine is a judgement in one line: the scope, the word, the counts.
func VerdictLine(j *verdict.Judgement) string {
	return fmt.Sprintf("Windows operational readiness of %s: %s (%s)", j.Scope, strings.ToUpper(string(j.Verdict)), j.Counts)
}

// About says in one line what was tested.
func About(run *result.Run) string {
	f := &run.Manifest.Cluster
	nodes := func(os specs.OS) string {
		all := f.Count(func(n *result.Node) bool { return n.OS == os })
		simulated := f.Count(func(n *result.Node) bool { return n.OS == os && n.Simulated })
		name := map[specs.OS]string{specs.Windows: "Windows", specs.Linux: "Linux"}[os]
		switch simulated {
		case 0:
			return fmt.Sprintf("%d %s nodes", all, name)
		case all:
			return fmt.Sprintf("%d simulated %s nodes", all, name)
		}
		return fmt.Sprintf("%d %s nodes (%d simulated)", all, name, simulated)
	}
	return fmt.Sprintf("Kubernetes %s, e2e.test %s, %s and %s",
		f.ServerVersion, run.Manifest.E2EVersion, nodes(specs.Linux), nodes(specs.Windows))
}

const maxReasons = 8

func (r *Results) writeTable(w io.Writer) error {
	j := r.Judgement
	fmt.Fprintln(w, VerdictLine(j))
	fmt.Fprintln(w, About(r.Run))
	fmt.Fprintln(w)
	if err := r.categories().Write(w, FormatTable); err != nil {
		return err
	}
	fmt.Fprintln(w)
	r.list(w)
	if len(j.Reasons) > 0 {
		fmt.Fprintf(w, "\nWhy it is not %s:\n", verdict.Ready)
		for i, reason := range j.Reasons {
			if i == maxReasons {
				fmt.Fprintf(w, "  … and %d more\n", len(j.Reasons)-i)
				break
			}
			fmt.Fprintf(w, "  %s\n", plain(reason))
		}
	}
	for _, s := range j.Suites {
		fmt.Fprintf(w, "\nOutside of any test, batch %s, %s:\n  %s\n", s.Batch, s.Node, result.Cut(plain(s.Message), 400))
	}
	for _, note := range j.Beside {
		fmt.Fprintf(w, "\n%s\n", note)
	}
	_, err := fmt.Fprintf(w, "\n%s\n", VerdictLine(j))
	return err
}

func (r *Results) writeMarkdown(w io.Writer) error {
	j := r.Judgement
	fmt.Fprintf(w, "## %s\n\n%s\n\n", markdown(VerdictLine(j)), markdown(About(r.Run)))
	if err := r.categories().Write(w, FormatMarkdown); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := r.cases(func(s string) string { return markdown(result.Cut(plain(s), 400)) }).Write(w, FormatMarkdown); err != nil {
		return err
	}
	for _, reason := range append(j.Reasons[:min(len(j.Reasons), maxReasons):maxReasons], j.Beside...) {
		fmt.Fprintf(w, "\n- %s", markdown(plain(reason)))
	}
	_, err := fmt.Fprintln(w)
	return err
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
		for _, line := range strings.Split(text.WrapSoft(s, width-column-len(gap)), "\n") {
			fmt.Fprintf(w, "%*s%s%s\n", column, "", gap, strings.TrimRight(line, " "))
		}
	}
	for _, category := range r.Judgement.Categories {
		fmt.Fprintf(w, "\n%s\n", category.Category)
		for i := range r.Judgement.Cases {
			c := &r.Judgement.Cases[i]
			if c.Case.Category != category.Category {
				continue
			}
			head := plain(c.Case.ID)
			if note := caseNote(c); note != "" {
				head += " (" + note + ")"
			}
			if t := seconds(c.Seconds); t != "" {
				head += ", " + t
			}
			fmt.Fprintf(w, "%*s%s%s\n", column, c.Outcome, gap, head)
			paragraph(plain(c.Case.Requirement))
			if reason := why(c); reason != "" {
				paragraph("→ " + result.Cut(plain(reason), 400))
			}
		}
	}
}

// categories is one row a category. Columns of outcomes that none has are
// left out.
func (r *Results) categories() *Table {
	t := &Table{Header: []string{"Category", "Verdict", "Proven", "In part", "Of"}}
	var shown []verdict.Outcome
	for _, o := range verdict.Outcomes() {
		if r.Judgement.Outcomes[o] > 0 {
			shown = append(shown, o)
			t.Header = append(t.Header, strings.ToUpper(string(o[:1]))+string(o[1:]))
		}
	}
	t.Header = append(t.Header, "Time")
	for _, c := range r.Judgement.Categories {
		word := string(c.Verdict)
		if !c.Gates {
			word += " (does not gate)"
		}
		row := []string{string(c.Category), word, strconv.Itoa(c.Counts.Proven), strconv.Itoa(c.Counts.Parts), strconv.Itoa(c.Counts.Total)}
		for _, o := range shown {
			row = append(row, count(c.Outcomes[o]))
		}
		t.Rows = append(t.Rows, append(row, seconds(c.Seconds)))
	}
	return t
}

func count(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// cases is one row a case.
func (r *Results) cases(clean func(string) string) *Table {
	t := &Table{Header: []string{"Case", "Outcome", "Time", "Requirement", "Why"}}
	for i := range r.Judgement.Cases {
		c := &r.Judgement.Cases[i]
		t.Rows = append(t.Rows, []string{
			clean(c.Case.ID),
			strings.TrimSpace(string(c.Outcome) + " " + caseNote(c)),
			seconds(c.Seconds),
			clean(c.Case.Requirement),
			clean(why(c)),
		})
	}
	return t
}

// caseNote says that a pass shows its requirement in part, or that the case is
// not the standard's.
func caseNote(c *verdict.CaseResult) string {
	switch {
	case c.Case.Kind == specs.Additional:
		return "additional"
	case c.Outcome.Good() && c.Case.Proof == specs.ProofPart:
		return "in part"
	}
	return ""
}

// why is the reason of an outcome, what a partial proof does not show, and
// where the pods ran.
func why(c *verdict.CaseResult) string {
	parts := []string{}
	if c.Reason != "" {
		parts = append(parts, c.Reason)
	}
	if c.Outcome.Good() && c.Case.Proof == specs.ProofPart && c.Case.Missing != "" {
		parts = append(parts, "Not shown: "+c.Case.Missing)
	}
	if len(c.Images) > 0 && c.Outcome.Good() {
		parts = append(parts, "Other images on Windows: "+strings.Join(c.Images, ", "))
	}
	if c.Evidence != "" {
		parts = append(parts, c.Evidence)
	}
	return strings.Join(parts, ". ")
}

func seconds(s float64) string {
	if s == 0 {
		return ""
	}
	return time.Duration(s * float64(time.Second)).Round(100 * time.Millisecond).String()
}

// plain makes one line of a text and takes control characters out of it.
func plain(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r < ' ' || r == 0x7f }), " ")
}

var markdownEscapes = strings.NewReplacer(
	"&", "&amp;", "<", "&lt;", ">", "&gt;",
	"\\", "\\\\", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "#", "\\#",
	"@", "@\u200b",
)

// markdown escapes what a text could do to a page.
func markdown(s string) string {
	return markdownEscapes.Replace(s)
}
