// Package progress tells people, and machines, how a run goes on: a live line
// in a terminal, plain lines in a log, groups in GitHub Actions, or JSON lines. Where
// nothing moves by itself, a line a minute says what runs, and when all is expected to end.
package progress

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/plan"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/redact"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/actions"
	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Style is how progress is written.
type Style string

// The styles of progress.
const (
	// Live keeps one line at the bottom of a terminal up to date.
	Live Style = "live"
	// Plain writes a line for each finished test.
	Plain Style = "text"
	// GitHub is Plain, folded into groups as GitHub Actions shows them.
	GitHub Style = "github"
	// JSON writes every event as one JSON object a line.
	JSON Style = "json"
)

// Reporter writes progress. It implements the Observer of package run.
type Reporter struct {
	style Style
	w     io.Writer
	width int // of the live line
	now   func() time.Time
	plan  *result.Plan
	due   map[string]*result.PlannedTest
	procs int

	mu      sync.Mutex
	tests   map[string]*category
	order   []*category
	total   int
	done    map[string]bool        // tests that have a result
	failed  map[string]bool        // those of them whose newest is a failure
	running map[string]runningTest // by batch
	live    string                 // what stands in the live line
	group   bool
	ticker  *time.Ticker
	closed  chan struct{}
	ticking sync.WaitGroup
}

type category struct {
	name        string
	total, done int
}

type runningTest struct {
	id, name string
	since    time.Time
}

// heartbeat is the time between two lines that say that the run lives.
const heartbeat = time.Minute

// New returns a Reporter for the tests that are to run, of which procs may run beside each
// other. The live line has width columns; 0 is as many as most terminals have. Close ends
// it.
func New(style Style, w io.Writer, width int, p *result.Plan, tests []*result.PlannedTest, procs int, now func() time.Time) *Reporter {
	const usual, most = 80, 119
	if width == 0 {
		width = usual
	}
	r := &Reporter{
		style:   style,
		w:       w,
		width:   min(max(width, 2)-1, most), // a full line would wrap
		now:     now,
		plan:    p,
		due:     map[string]*result.PlannedTest{},
		procs:   procs,
		tests:   map[string]*category{},
		done:    map[string]bool{},
		failed:  map[string]bool{},
		running: map[string]runningTest{},
		closed:  make(chan struct{}),
	}
	of := map[string]specs.Category{}
	for i := range p.Cases {
		of[p.Cases[i].ID] = p.Cases[i].Category
	}
	for _, t := range tests {
		name := string(of[t.Cases[0]])
		i := slices.IndexFunc(r.order, func(c *category) bool { return c.name == name })
		if i < 0 {
			i = len(r.order)
			r.order = append(r.order, &category{name: name})
		}
		r.order[i].total++
		r.tests[t.ID], r.due[t.ID] = r.order[i], t
	}
	r.total = len(tests)
	switch style {
	case Live:
		r.tick(time.Second, r.redraw)
	case Plain, GitHub:
		r.tick(heartbeat, r.beat)
	}
	return r
}

// tick has something done every so often, until Close.
func (r *Reporter) tick(interval time.Duration, do func()) {
	r.ticker = time.NewTicker(interval)
	r.ticking.Go(func() {
		for {
			select {
			case <-r.closed:
				return
			case <-r.ticker.C:
				r.mu.Lock()
				do()
				r.mu.Unlock()
			}
		}
	})
}

// beat says that the run lives: what runs, for how long and of how long, and when all is
// expected to end. It says nothing between tests.
func (r *Reporter) beat() {
	if len(r.running) == 0 {
		return
	}
	var running []string
	for _, batch := range slices.Sorted(maps.Keys(r.running)) {
		t := r.running[batch]
		expected := ""
		if due := r.due[t.id]; due != nil {
			expected = fmt.Sprintf(" (about %v)", due.Duration.Round(time.Second))
		}
		running = append(running, fmt.Sprintf("        %v%s of %s", r.now().Sub(t.since).Round(time.Second), expected, result.Cut(t.name, 120)))
	}
	r.line(fmt.Sprintf("running %d/%d, to end at about %s:\n%s", len(r.done), r.total, r.end().Format("15:04"), strings.Join(running, "\n")))
}

// end is when all tests are expected to have ended, by what the plan expects of each.
func (r *Reporter) end() time.Time {
	left := &result.Plan{Shards: 1, Cases: r.plan.Cases}
	since := map[string]time.Time{}
	for _, t := range r.running {
		since[t.id] = t.since
	}
	for i := range r.plan.Tests {
		t := r.plan.Tests[i]
		if r.due[t.ID] == nil || r.done[t.ID] {
			continue
		}
		t.Shard = 1
		if began, runs := since[t.ID]; runs {
			t.Duration = max(t.Duration-r.now().Sub(began), 0)
		}
		left.Tests = append(left.Tests, t)
	}
	return r.now().Add(plan.Wall(left, r.procs))
}

// Close takes the live line away and closes a group.
func (r *Reporter) Close() {
	if r.ticker != nil {
		r.ticker.Stop()
	}
	close(r.closed)
	r.ticking.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.erase()
	r.endGroup()
}

// Event tells one event of the run.
func (r *Reporter) Event(e result.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.style == JSON {
		if data, err := json.Marshal(e); err == nil {
			fmt.Fprintf(r.w, "%s\n", data)
		}
		return
	}
	switch e.Type {
	case result.BatchStarted:
		r.beginGroup(fmt.Sprintf("batch %s: %s, %s, %s", e.Batch.ID, text.Count(e.Batch.Tests, "test"), e.Batch.Phase, e.Batch.Conditions))
	case result.BatchFinished:
		delete(r.running, e.Batch.ID)
		if len(r.running) == 0 {
			r.endGroup()
		}
	case result.TestStarted:
		r.running[e.Test.Batch] = runningTest{e.Test.ID, e.Test.Name, r.now()}
		r.redraw()
	case result.TestFinished:
		r.finished(e.Test)
	case result.SuiteFailed:
		r.line(fmt.Sprintf("ERROR  batch %s, %s:\n%s", e.Suite.Batch, e.Suite.Node, few(e.Suite.Message)))
	}
}

var words = map[result.TestState]string{
	result.TestPassed:  "passed",
	result.TestFailed:  "FAILED",
	result.TestSkipped: "skip  ",
	result.TestError:   "ERROR ",
}

func (r *Reporter) finished(t *result.TestRun) {
	delete(r.running, t.Batch)
	if c := r.tests[t.ID]; c != nil && !r.done[t.ID] {
		c.done++
		r.done[t.ID] = true
	}
	again := ""
	if t.Attempt > 1 {
		again = fmt.Sprintf(" (attempt %d)", t.Attempt)
	}
	text := fmt.Sprintf("%s %*d/%d  %s  %s%s", words[t.State], len(fmt.Sprint(r.total)), len(r.done), r.total, duration(t.Seconds), t.Name, again)
	if t.State != result.TestPassed {
		text += "\n" + few(t.Why())
	}
	delete(r.failed, t.ID)
	if t.State == result.TestFailed || t.State == result.TestError {
		r.failed[t.ID] = true
	}
	r.line(text)
}

// Note tells something that is not a result.
func (r *Reporter) Note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.style == JSON {
		note := struct {
			Time time.Time `json:"time"`
			Type string    `json:"type"`
			Text string    `json:"text"`
		}{r.now().UTC(), "note", redact.String(text)}
		if data, err := json.Marshal(note); err == nil {
			fmt.Fprintf(r.w, "%s\n", data)
		}
		return
	}
	r.line(text)
}

// few is the beginning of a message, indented.
func few(message string) string {
	const lines = 6
	all := strings.Split(strings.TrimSpace(message), "\n")
	if len(all) > lines {
		all = append(all[:lines:lines], "…")
	}
	for i, l := range all {
		all[i] = "        " + result.Cut(l, 300)
	}
	return strings.Join(all, "\n")
}

func duration(seconds float64) string {
	return fmt.Sprintf("%6s", time.Duration(seconds*float64(time.Second)).Round(100*time.Millisecond))
}

func (r *Reporter) line(text string) {
	r.erase()
	fmt.Fprintln(r.w, shown.Lines(redact.String(text)))
	r.redraw()
}

func (r *Reporter) erase() {
	if r.live != "" {
		fmt.Fprint(r.w, "\r\x1b[K")
		r.live = ""
	}
}

func (r *Reporter) redraw() {
	if r.style != Live {
		return
	}
	parts := []string{fmt.Sprintf("%d/%d", len(r.done), r.total)}
	for _, c := range r.order {
		parts = append(parts, fmt.Sprintf("%s %d/%d", c.name, c.done, c.total))
	}
	if len(r.failed) > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", len(r.failed)))
	}
	var oldest *runningTest
	for _, t := range r.running {
		if oldest == nil || t.since.Before(oldest.since) {
			oldest = &t
		}
	}
	if oldest != nil {
		parts = append(parts, "until "+r.end().Format("15:04"), fmt.Sprintf("%v %s", r.now().Sub(oldest.since).Round(time.Second), oldest.name))
	}
	text := []rune(shown.Line(strings.Join(parts, " · ")))
	if len(text) > r.width {
		text = append(text[:r.width-1], '…')
	}
	if string(text) == r.live {
		return
	}
	r.erase()
	r.live = string(text)
	fmt.Fprint(r.w, r.live)
}

func (r *Reporter) beginGroup(title string) {
	switch {
	case r.style != GitHub:
		r.line(title)
	case !r.group: // batches side by side share one group: groups do not nest
		r.group = true
		_ = actions.BeginGroup(r.w, title)
	}
}

func (r *Reporter) endGroup() {
	if r.group {
		r.group = false
		_ = actions.EndGroup(r.w)
	}
}
