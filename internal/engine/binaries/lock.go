package binaries

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// lock waits until this process alone may fill the folder of c, and makes the
// folder. It says so when it has to wait. The lock goes away with the process
// that holds it, so a killed one blocks nobody.
func (s *Store) lock(ctx context.Context, c component) (unlock func(), err error) {
	goos, goarch := s.system()
	path := filepath.Join(s.Dir, "locks", fmt.Sprintf("%s-%s-%s-%s.lock", c.family, c.version, goos, goarch))
	for _, dir := range []string{filepath.Dir(path), s.folder(c)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("making the cache: %w: set OP_READINESS_CACHE to a folder that can be written", err)
		}
	}
	lock := flock.New(path)
	held, err := lock.TryLock()
	if err == nil && !held {
		s.tellf("%s: waiting for another op-readiness that is obtaining it", c)
		_, err = lock.TryLockContext(ctx, 200*time.Millisecond)
	}
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("waiting for the lock on %s (%s): %w", c, path, err)
	}
	return func() { lock.Unlock() }, nil
}
