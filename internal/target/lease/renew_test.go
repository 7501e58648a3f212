package lease

import (
	"testing"
	"time"
	"unsafe"
)

// A suspended machine stops its monotonic clock, and who sets the time turns the
// other one back: in neither way does the lock live longer.
func TestTheLongerTimeCounts(t *testing.T) {
	from := time.Now()
	monotonic := func(now time.Time, d time.Duration) time.Time {
		// The second field, where the first one's highest bit is set.
		(*struct {
			wall uint64
			ext  int64
		})(unsafe.Pointer(&now)).ext += int64(d)
		return now
	}
	suspended := monotonic(from.Add(time.Minute), -time.Minute)
	turnedBack := monotonic(from.Add(-time.Hour), time.Hour+time.Minute)
	if suspended.Sub(from) != 0 || turnedBack.Sub(from) != time.Minute {
		t.Fatalf("time.Time is not what it was: %s, %s", suspended.Sub(from), turnedBack.Sub(from))
	}
	for what, now := range map[string]time.Time{
		"a minute later": from.Add(time.Minute), "after a minute of suspension": suspended, "after a minute, with the time turned back": turnedBack,
	} {
		if got := elapsed(from, now); got != time.Minute {
			t.Errorf("%s: %s", what, got)
		}
	}
}
