package binaries

import (
	"os"
	"path/filepath"
	"time"
)

// unusedFor is for how long nobody has asked for an op-readiness.test that is removed.
// A run asks for it when it starts and starts it again and again, and takes hours.
const unusedFor = 3 * 24 * time.Hour

// removeUnused notes that somebody has asked for the op-readiness.test at path, and
// removes those of other programs beside it, of 100 MB each, for which nobody has for
// long: each change of the sources makes another one. The record's time is when it was
// asked for last. A cache that cannot be changed keeps them.
func (s *Store) removeUnused(path string) {
	now := s.now()
	_ = os.Chtimes(path+manifestSuffix, now, now)
	pattern := filepath.Join(escapeGlob(filepath.Dir(path)), string(OpReadinessTest)+"-*"+manifestSuffix)
	records, err := filepath.Glob(pattern)
	if err != nil {
		return
	}
	for _, record := range records {
		info, err := os.Stat(record)
		if err != nil || now.Sub(info.ModTime()) < unusedFor {
			continue
		}
		// Without its record a file is not in the cache, so the record goes first.
		if os.Remove(record) == nil {
			_ = os.Remove(record[:len(record)-len(manifestSuffix)])
		}
	}
}
