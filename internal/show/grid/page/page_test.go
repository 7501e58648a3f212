package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/show/grid"
)

var made = time.Date(2026, 1, 15, 9, 30, 0, 0, time.UTC)

// sample is a preview of builds times rows cells, of all results, in tabs tabs.
func sample(tabs, builds, rows int) *grid.Preview {
	p := &grid.Preview{Source: "gs://windows-op-readiness/logs", Made: made}
	d := grid.Dashboard{Name: "sig-windows-op-readiness"}
	for n := range tabs {
		t := grid.Tab{
			Dashboard: d.Name, Name: fmt.Sprintf("op-readiness-1-3%d-2022", 6-n), Group: "g",
			Status: []string{"FLAKY", "PASS", "FAIL"}[n%3], Message: "7 of 10 (70.0%) recent columns passed (2961 of 3010 or 98.4% cells)",
			LatestGreen: "8b1f20c3a", Headers: []string{"Commit", "kubernetes-version", "windows-version"}, Columns: []grid.Column{}, Rows: []grid.Row{},
		}
		if t.Status == "FAIL" {
			t.Alerts = []grid.Alert{{Row: rowName(3), Failures: 3, Message: "expected the pod to be reachable"}}
		}
		for b := range builds {
			t.Columns = append(t.Columns, grid.Column{
				Build: fmt.Sprint(1991000000000000000 + builds - b), Started: made.Add(-time.Duration(b) * 6 * time.Hour),
				Headers: []string{fmt.Sprintf("%09x", 0x8b1f20c3a-(b/2)*7919), fmt.Sprintf("v1.36.%d", 3-min(3, b/9)), "10.0.20348"},
				URL:     fmt.Sprintf("https://example.com/builds/%d", builds-b),
			})
		}
		for r := range rows {
			row := grid.Row{Name: rowName(r)}
			if r == 0 {
				row.Name = "op-readiness.Overall"
			}
			for b := range builds {
				row.Cells = append(row.Cells, sampleCell(r, b))
			}
			t.Rows = append(t.Rows, row)
		}
		d.Tabs = append(d.Tabs, t)
	}
	p.Dashboards = []grid.Dashboard{d}
	return p
}

func rowName(r int) string {
	category := []string{"core-network", "core-storage", "core-scheduling", "extend-hostprocess"}[r/12%4]
	return fmt.Sprintf("%s: %s-case-%d [sig-network] Networking Granular Checks: Pods should function for intra-pod communication, variant %d [NodeConformance] [Conformance]", category, category, r%12+1, r)
}

func sampleCell(r, b int) grid.Cell {
	switch {
	case r == 0 && b == 0:
		return grid.Cell{Result: grid.Running, Icon: "R", Message: "Build still running..."}
	case b == 0 && r%3 == 1:
		return grid.Cell{Result: grid.NoResult}
	case (r*7+b*5)%41 == 3:
		return grid.Cell{Result: grid.Fail, Icon: "F", Message: "expected the pod to be reachable\nTimed out after 300.001s. Expected success, but got: dial tcp 10.244.3.17:8080: i/o timeout"}
	case (r*5+b)%29 == 7:
		return grid.Cell{Result: grid.Flaky, Icon: "1/2", Message: "1/2 runs passed: connection refused"}
	case r%9 == 4:
		return grid.Cell{Result: grid.PassWithSkips, Icon: "S", Message: "not-applicable: the cluster has no second pod CIDR"}
	case r%23 == 20 && b == 3:
		return grid.Cell{Result: grid.Unknown, Message: "removed"}
	}
	return grid.Cell{Result: grid.Pass, Metrics: map[string]float64{"test-duration-minutes": 0.5}}
}

func render(t *testing.T, p *grid.Preview) string {
	t.Helper()
	var b strings.Builder
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestThePageAsksNothingOfAServer(t *testing.T) {
	out := render(t, sample(1, 3, 3))
	for _, bad := range []string{" src=", "@import", "url(", "<link", "onclick", " style=\""} {
		if strings.Contains(out, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	if !strings.Contains(out, `content="default-src &#39;none&#39;; style-src &#39;sha256-`) {
		t.Error("the page has no policy that forbids everything but its own style")
	}
}

func TestTheSamePreviewIsTheSamePage(t *testing.T) {
	first, second := render(t, sample(3, 9, 30)), render(t, sample(3, 9, 30))
	if first != second {
		t.Error("two pages of one preview differ")
	}
}

func TestEveryCellSaysItsResultInWords(t *testing.T) {
	out := render(t, sample(1, 8, 40))
	for _, want := range []string{
		`class="pass" aria-label="passed"></td>`,
		`class="run" aria-label="running: Build still running...">R</td>`,
		`class="flaky" aria-label="flaky: 1/2 runs passed: connection refused">1/2</td>`,
		`class="skip" aria-label="skipped: not-applicable: the cluster has no second pod CIDR">S</td>`,
		`class="none" aria-label="no result"></td>`,
		`class="odd" aria-label="unknown: removed">?</td>`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no cell %s", want)
		}
	}
	if n, m := strings.Count(out, "<td role=\"gridcell\" class=\""), strings.Count(out, " aria-label=\""); m < n-3*8 {
		t.Errorf("%d cells, but only %d labels", n, m)
	}
}

func TestCountsAreInWords(t *testing.T) {
	p := sample(3, 1, 1)
	p.Tabs()[1].Alerts = []grid.Alert{{Row: "some row", Failures: 1}}
	html := render(t, p)
	for _, want := range []string{">1 row, 1 build<", "<summary>1 alert</summary>", "<b>some row</b> failed once<", "failed 3 times in a row"} {
		if !strings.Contains(html, want) {
			t.Errorf("%q is not on the page", want)
		}
	}
}

// A grid that TestGrid cannot write is not one without builds.
func TestAGridThatCannotBeWritten(t *testing.T) {
	p := sample(1, 0, 0)
	p.Tabs()[0].Unwritten = "marshal: string field contains <invalid> UTF-8"
	if html := render(t, p); !strings.Contains(html, "cannot write this grid, and shows what it had before: marshal: string field contains &lt;invalid&gt; UTF-8") || strings.Contains(html, "No builds") {
		_, main, _ := strings.Cut(html, "<main>")
		t.Errorf("%s", main)
	}
}

func TestLinksThatAreNotHarmlessAreNone(t *testing.T) {
	for _, address := range []string{"javascript:alert(1)", "JavaScript:alert(1)", "data:text/html,x", "vbscript:x", " javascript:alert(1)", "java\nscript:alert(1)", "https://[", ""} {
		if got := harmless(address); got != "" && !strings.HasPrefix(string(got), "%20") {
			t.Errorf("harmless(%q) = %q", address, got)
		}
	}
	for _, address := range []string{"https://example.com/a?b=c", "http://x/y", "file:///a/b", "logs/job/1/"} {
		if got := string(harmless(address)); got != address {
			t.Errorf("harmless(%q) = %q", address, got)
		}
	}
}

// hostile is a preview in which every text and link wants to do harm.
func hostile() *grid.Preview {
	const evil = `</script></style><script>window.harmed=1</script><img src=http://evil.example/x onerror=window.harmed=1>"' onmouseover=window.harmed=1 {{.}} ` + "\u202e\x00\x1b[31m"
	p := sample(2, 2, 3)
	p.Source = evil
	p.Dashboards[0].Name = evil
	for i := range p.Dashboards[0].Tabs {
		t := &p.Dashboards[0].Tabs[i]
		t.Name, t.Description, t.Message, t.Alert, t.LatestGreen, t.BaseOptions, t.Status = evil, evil, evil, evil, evil, evil, "PASS"
		t.Alerts = []grid.Alert{{Row: evil, Message: evil}}
		t.Headers[0] = evil
		t.Columns[0].Build, t.Columns[0].Headers[0], t.Columns[0].URL = evil, evil, "javascript:window.harmed=1"
		t.Columns[1].URL = `https://evil.example/"onmouseover="window.harmed=1`
		t.Rows[0].Name = evil
		t.Rows[0].Cells[0] = grid.Cell{Result: grid.Fail, Icon: evil, Message: evil}
		t.Rows[1].Cells[0] = grid.Cell{Result: `"><script>window.harmed=1</script>`, Message: "m"}
	}
	return p
}

func TestHostileTextsStayTexts(t *testing.T) {
	out := render(t, hostile())
	if n := strings.Count(out, "<script"); n != 1 {
		t.Errorf("%d scripts in the page", n)
	}
	for _, bad := range []string{"<img", "href=\"javascript", "\u202e", "\x1b"} {
		if strings.Contains(out, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
}
