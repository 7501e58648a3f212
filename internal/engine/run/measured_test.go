package run_test

import (
	"slices"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
)

// Figures stand with the attempt whose process told them, before that process is at
// its end, and change nothing else.
func TestFiguresAreRecordedWithTheirAttempt(t *testing.T) {
	b := newBench(t, e2etest.Script{Do: map[string][]string{
		name("a"): {e2etest.Measure}, name("b"): {e2etest.Fail, e2etest.Measure}, name("d"): {e2etest.MeasureLie, e2etest.Pass},
	}})
	b.options.Retries = 1
	done := b.must()
	b.want(done, "a:passed,passed b:failed,passed c:passed,passed d:passed,failed,passed")
	two := []result.Measurement{{What: "rescheduling, median", Figure: "7"}, {What: "pods", Figure: "7"}}
	for id, want := range map[string][][]result.Measurement{"a": {two, two}, "b": {nil, two}, "c": {nil, nil}, "d": {nil, two, nil}} {
		for i, figures := range want {
			if got := done.Attempts[id][i].Measured; !slices.Equal(got, figures) {
				t.Errorf("attempt %d of %s: %q, want %q", i+1, id, got, figures)
			}
		}
	}
	var order []result.EventType
	for _, e := range b.observer.events {
		if e.Type == result.TestMeasured || e.Type == result.BatchFinished || e.Type == result.SuiteFailed {
			order = append(order, e.Type)
		}
	}
	if len(order) < 4 || !slices.Equal(order[:4], []result.EventType{result.SuiteFailed, result.TestMeasured, result.TestMeasured, result.BatchFinished}) {
		t.Errorf("events %q", order)
	}
}
