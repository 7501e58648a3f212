package result_test

import (
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
)

// Where only the beginning of a reason is shown, both what happened meanwhile and
// the failure are in it; nothing is lost.
func TestWhyShowsTheFailureBesideAllThatHappenedMeanwhile(t *testing.T) {
	for _, c := range []struct{ meanwhile, want string }{
		{"", "[FAILED] x"},
		{"node l was cordoned", "Meanwhile node l was cordoned.\n[FAILED] x"},
	} {
		test := result.TestRun{Message: "[FAILED] x", Meanwhile: c.meanwhile}
		if got := test.Why(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	long := "node l was cordoned" + strings.Repeat("; node w was labelled", 100)
	test := result.TestRun{Message: "[FAILED] x", Meanwhile: long}
	if got := test.Why(); !strings.Contains(got[:300], "[FAILED] x") || !strings.HasPrefix(got, "Meanwhile node l was cordoned") || !strings.HasSuffix(got, long+".") {
		t.Errorf("got %q", got)
	}
}
