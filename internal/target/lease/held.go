package lease

import (
	"fmt"
	"strings"
	"time"
)

// HeldError says who has the cluster. Where more than one shard is in the way,
// it is about the one renewed last.
type HeldError struct {
	Holder Holder
	Group  Group
	// Since is when the holder came, and Renewed when it last said that it
	// lives, by its own clock.
	Since, Renewed time.Time
	// Expiry is how long the holder is given after a renewal.
	Expiry time.Duration
	// Others counts further shards of the holder's run that are in the way.
	Others int
	// Unreadable says why it is unknown who holds the Lease; nil otherwise.
	Unreadable error

	id    string
	own   bool // the holder is a shard of the same run
	stale bool // all that are in the way seem to be dead
}

func newHeldError(runID string, own bool, inTheWay []member) *HeldError {
	last := inTheWay[0]
	for _, m := range inTheWay[1:] {
		if m.Renewed.After(last.Renewed) {
			last = m
		}
	}
	return &HeldError{
		Holder: Holder{RunID: runID, Shard: last.Shard, Host: last.Host},
		Group:  last.group(),
		Since:  last.Since, Renewed: last.Renewed, Expiry: last.expiry(),
		Others: len(inTheWay) - 1, id: last.ID, own: own,
	}
}

// Error names the holder and the fix.
func (e *HeldError) Error() string {
	remove := fmt.Sprintf("kubectl delete lease %s --namespace %s", Name, Namespace)
	switch {
	case e.Unreadable != nil:
		return fmt.Sprintf("%s: when no run is at work, remove it: %s; --wait takes the lock over once the Lease has not changed for %s", e.who(), remove, e.Expiry)
	case e.own:
		return fmt.Sprintf("%s: it is waited for; a dead shard's part expires %s after its last renewal", e.who(), e.Expiry)
	}
	return fmt.Sprintf("%s: wait for it with --wait; a dead run's lock expires %s after its last renewal, or is removed by: %s", e.who(), e.Expiry, remove)
}

// who is the error without its fix.
func (e *HeldError) who() string {
	if e.Unreadable != nil {
		return fmt.Sprintf("the cluster is locked by Lease %s/%s, which cannot be read: %v", Namespace, Name, e.Unreadable)
	}
	text := "the cluster is locked by " + describe(e.Holder, e.Group, e.Since, e.Renewed)
	if e.Others > 0 {
		text += fmt.Sprintf(" and %d more of its shards", e.Others)
	}
	if e.own {
		text += ", which belongs to this run"
	}
	return text
}

// Unwrap returns why the Lease cannot be read, if so.
func (e *HeldError) Unwrap() error { return e.Unreadable }

// same reports whether two errors are about the same holder.
func (e *HeldError) same(other *HeldError) bool {
	return e.id == other.id && e.Group == other.Group && (e.Unreadable == nil) == (other.Unreadable == nil)
}

func (m *member) describe(runID string) string {
	return describe(Holder{RunID: runID, Shard: m.Shard, Host: m.Host}, m.group(), m.Since, m.Renewed)
}

func describe(h Holder, g Group, since, renewed time.Time) string {
	var text strings.Builder
	text.WriteString("run " + h.RunID)
	if h.Shard != "" {
		text.WriteString(", shard " + h.Shard)
	}
	if h.Host != "" {
		text.WriteString(" on " + h.Host)
	}
	fmt.Fprintf(&text, " (%s; since %s, last renewed %s)", g, since.UTC().Format(time.RFC3339), renewed.UTC().Format(time.RFC3339))
	return text.String()
}
