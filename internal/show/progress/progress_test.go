package progress_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/progress"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// tell tells a reporter of a small run, and returns what it wrote.
func tell(style progress.Style, width int, events ...result.Event) string {
	plan := &result.Plan{Cases: []result.PlannedCase{
		{Case: specs.Case{ID: "case-a", Category: specs.CoreNetwork}},
		{Case: specs.Case{ID: "case-b", Category: specs.CoreStorage}},
	}}
	tests := []*result.PlannedTest{
		{ID: "a", Name: "[sig-x] a", Cases: []string{"case-a"}, Phase: specs.Parallel, Duration: time.Minute},
		{ID: "b", Name: "[sig-x] b", Cases: []string{"case-b"}, Phase: specs.Serial, Duration: 2 * time.Minute},
	}
	for _, t := range tests {
		plan.Tests = append(plan.Tests, *t)
	}
	var out bytes.Buffer
	r := progress.New(style, &out, width, plan, tests, 1, func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) })
	for _, e := range events {
		r.Event(e)
	}
	r.Note("a note with password: swordfish")
	r.Close()
	return out.String()
}

func started(id string) result.Event {
	return result.Event{Type: result.TestStarted, Test: &result.TestRun{ID: id, Name: "[sig-x] " + id, Batch: "01"}}
}

func finished(id string, attempt int, state result.TestState, message string) result.Event {
	return result.Event{Type: result.TestFinished, Test: &result.TestRun{ID: id, Name: "[sig-x] " + id, Attempt: attempt, Batch: "01", State: state, Seconds: 1.5, Message: message}}
}

var batch = &result.Batch{ID: "01", Tests: 2, Phase: specs.Parallel}

var small = []result.Event{
	{Type: result.BatchStarted, Batch: batch},
	started("a"), finished("a", 1, result.TestFailed, "no\n::error::gotcha ##[error]x\n\x1b[2J"),
	started("a"), finished("a", 2, result.TestPassed, ""),
	started("b"), finished("b", 3, result.TestPassed, ""),
	{Type: result.SuiteFailed, Suite: &result.Suite{Batch: "01", Node: "AfterSuite", Message: "left behind"}},
	{Type: result.BatchFinished, Batch: batch},
}

func TestPlainLines(t *testing.T) {
	want := `batch 01: 2 tests, parallel, as is
FAILED 1/2    1.5s  [sig-x] a
        no
        : :error::gotcha # #[error]x
        
passed 1/2    1.5s  [sig-x] a (attempt 2)
passed 2/2    1.5s  [sig-x] b (attempt 3)
ERROR  batch 01, AfterSuite:
        left behind
a note with password: [REDACTED]
`
	if got := tell(progress.Plain, 0, small...); got != want {
		t.Errorf("wrote:\n%s\nwant:\n%s", got, want)
	}
}

func TestGitHubGroups(t *testing.T) {
	got := tell(progress.GitHub, 0, small...)
	if !strings.HasPrefix(got, "##[group]batch 01: 2 tests, parallel, as is\n") || strings.Count(got, "\n##[endgroup]\n") != 1 {
		t.Errorf("wrote:\n%s", got)
	}
	for _, line := range strings.Split(got, "\n") {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "::") || strings.Contains(line, "##[") && !strings.HasPrefix(line, "##[group]") && line != "##[endgroup]" {
			t.Errorf("a test speaks to GitHub: %q", line)
		}
	}
}

// The live line never wraps, is taken away before other lines, and counts
// tests, not attempts.
func TestLiveLine(t *testing.T) {
	for _, width := range []int{1, 20, 80, 500} {
		got := tell(progress.Live, width, small...)
		for _, part := range strings.Split(got, "\r\x1b[K") {
			if line, _, ended := strings.Cut(part, "\n"); !ended && utf8.RuneCountInString(line) >= max(2, width) {
				t.Errorf("width %d: the line has %d columns: %q", width, utf8.RuneCountInString(line), line)
			}
		}
		if !strings.HasSuffix(got, "\r\x1b[K") {
			t.Errorf("width %d: the line is left: %q", width, got)
		}
	}
	got := tell(progress.Live, 200, small[:4]...)
	if !strings.Contains(got, "1/2 · Core.Network 1/1 · Core.Storage 0/1 · 1 failed · until 03:06 · 0s [sig-x] a") {
		t.Errorf("wrote %q", got)
	}
	if got := tell(progress.Live, 200, small[:5]...); !strings.Contains(got[strings.LastIndex(got, "attempt 2"):], "1/2 · Core.Network 1/1 · Core.Storage 0/1\r") {
		t.Errorf("wrote %q", got)
	}
}

func TestJSONLines(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(tell(progress.JSON, 0, small...)), "\n")
	if len(lines) != len(small)+1 {
		t.Errorf("%d lines for %d events and a note", len(lines), len(small))
	}
	for _, line := range lines {
		var e struct{ Type, Text string }
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Type == "" {
			t.Errorf("line %q: %v", line, err)
		}
		if strings.Contains(e.Text, "swordfish") {
			t.Errorf("line %q tells a password", line)
		}
	}
}

// Where nothing moves by itself, a line a minute says what runs and when it will end.
func TestALineAMinuteSaysWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &result.PlannedTest{ID: "a", Name: "[sig-x] a", Cases: []string{"case-a"}, Phase: specs.Parallel, Duration: 5 * time.Minute}
		b := &result.PlannedTest{ID: "b", Name: "[sig-x] b", Cases: []string{"case-a"}, Phase: specs.Serial, Duration: 10 * time.Minute}
		p := &result.Plan{Tests: []result.PlannedTest{*a, *b}, Cases: []result.PlannedCase{{Case: specs.Case{ID: "case-a", Category: specs.CoreNetwork}}}}
		var out bytes.Buffer
		r := progress.New(progress.Plain, &out, 0, p, []*result.PlannedTest{a, b}, 1, time.Now)
		began := time.Now()
		said := func() string {
			time.Sleep(time.Minute)
			synctest.Wait()
			defer out.Reset()
			return out.String()
		}
		if got := said(); got != "" {
			t.Errorf("before the first test it says %q", got)
		}
		r.Event(started("a"))
		want := fmt.Sprintf("running 0/2, to end at about %s:\n        1m0s (about 5m0s) of [sig-x] a\n", began.Add(16*time.Minute).Format("15:04"))
		if got := said(); got != want {
			t.Errorf("it says\n%s\nwant\n%s", got, want)
		}
		r.Event(finished("a", 1, result.TestPassed, ""))
		r.Event(started("b"))
		out.Reset()
		want = fmt.Sprintf("running 1/2, to end at about %s:\n        1m0s (about 10m0s) of [sig-x] b\n", began.Add(12*time.Minute).Format("15:04"))
		if got := said(); got != want {
			t.Errorf("it says\n%s\nwant\n%s", got, want)
		}
		r.Close()
	})
}
