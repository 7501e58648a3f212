package github

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"sync"
)

// Marker is what a comment hides in its first line, to be found again: which
// comment it is, and which results it tells.
type Marker struct {
	// ID tells the comments of one pull request apart; see [ValidID].
	ID string
	// Head is the commit that was tested.
	Head string
	// Run is the number of the run, which grows with time, as the run ids of
	// GitHub Actions and the build ids of Prow do; Attempt counts how often that
	// run was run, from 1.
	Run     uint64
	Attempt int
}

var (
	commentID  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`) })
	commitHash = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`) })
	markerLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^<!-- op-readiness id="([A-Za-z0-9._-]{1,64})" head="([0-9a-f]{40,64})" run="([0-9]{1,20})" attempt="([0-9]{1,9})" -->\r?(?:\n|$)`)
	})
)

// ValidID returns an error when id cannot be a comment's.
func ValidID(id string) error {
	if !commentID().MatchString(id) {
		return fmt.Errorf("%q cannot name a comment: up to 64 letters, digits, dots, dashes and underscores can", id)
	}
	return nil
}

// ValidCommit returns an error when s is not the whole hash of a commit.
func ValidCommit(s string) error {
	if !commitHash().MatchString(s) {
		return fmt.Errorf("%q is not the hash of a commit: 40 (or 64) hexadecimal digits in lower case are", s)
	}
	return nil
}

// String is the marker as a line of Markdown that is not shown.
func (m Marker) String() string {
	return fmt.Sprintf("<!-- op-readiness id=%q head=%q run=%q attempt=%q -->\n", m.ID, m.Head, strconv.FormatUint(m.Run, 10), strconv.Itoa(m.Attempt))
}

// parseMarker reads the marker that a comment begins with.
func parseMarker(body string) (Marker, bool) {
	match := markerLine().FindStringSubmatch(body)
	if match == nil {
		return Marker{}, false
	}
	run, err := strconv.ParseUint(match[3], 10, 64)
	if err != nil {
		return Marker{}, false
	}
	attempt, err := strconv.Atoi(match[4])
	if err != nil {
		return Marker{}, false
	}
	return Marker{ID: match[1], Head: match[2], Run: run, Attempt: attempt}, true
}

// compare orders markers by the age of what their comments tell.
func (m Marker) compare(other Marker) int {
	return cmp.Or(cmp.Compare(m.Run, other.Run), cmp.Compare(m.Attempt, other.Attempt))
}
