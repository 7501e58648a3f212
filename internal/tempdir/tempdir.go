// Package tempdir makes temporary folders that do not outlive the next run: what
// a process leaves that was killed is removed by the next that makes a folder.
//
// A folder holds a lock file, which its process has locked for as long as it
// lives (flock, LockFileEx). So what is removed is this user's, has that file,
// and is nobody's any more.
package tempdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

const (
	prefix   = "op-readiness-"
	lockFile = ".op-readiness-lock"
)

// Dir is a temporary folder of this process.
type Dir struct {
	// Path is its absolute path.
	Path string

	lock *flock.Flock
}

// New makes a folder in that for temporary files, and removes those there whose
// processes were killed.
func New() (*Dir, error) {
	sweep()
	path, err := os.MkdirTemp("", prefix+"*")
	if err != nil {
		return nil, fmt.Errorf("making a temporary folder: %w", err)
	}
	d := &Dir{Path: path, lock: flock.New(filepath.Join(path, lockFile))}
	// Somebody who sweeps may have it for a moment, and then removes it.
	ok, err := d.lock.TryLock()
	switch {
	case err != nil:
		// Not every file system locks files. Without the file nobody sweeps here.
		_ = d.lock.Close()
		_ = os.Remove(d.lock.Path())
	case !ok || !there(d.lock):
		_ = d.lock.Close()
		return New()
	}
	return d, nil
}

// there reports whether what is locked is still at its path.
func there(lock *flock.Flock) bool {
	locked, err := lock.Stat()
	if err != nil {
		return false
	}
	now, err := os.Lstat(lock.Path())
	return err == nil && os.SameFile(locked, now)
}

// RemoveAll removes the folder with all that is in it.
func (d *Dir) RemoveAll() error {
	root, err := os.OpenRoot(d.Path)
	if err != nil {
		return errors.Join(err, d.lock.Close())
	}
	defer root.Close()
	return remove(root, d.lock)
}

// remove removes the folder of a lock that is held: the lock goes last, and is let
// go before, because Windows removes no file that is open.
func remove(root *os.Root, lock *flock.Flock) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	for _, e := range entries {
		if e.Name() != lockFile {
			err = errors.Join(err, root.RemoveAll(e.Name()))
		}
	}
	if err = errors.Join(err, lock.Close()); err != nil {
		return err // without its lock it would stay for ever
	}
	if err := root.Remove(lockFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(root.Close(), os.Remove(root.Name()))
}

// sweep removes what killed processes left. What cannot be removed stays for the
// next to try.
func sweep() {
	found, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	if err != nil {
		return
	}
	for _, path := range found {
		_ = sweepOne(path)
	}
}

func sweepOne(path string) error {
	named, err := os.Lstat(path)
	if err != nil || !named.IsDir() {
		return err // a link leads elsewhere
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	defer root.Close()
	opened, err := root.Stat(".")
	if err != nil || !os.SameFile(named, opened) || !Owned(opened) {
		return err
	}
	file, err := root.Lstat(lockFile)
	if err != nil || !file.Mode().IsRegular() {
		return err // it only has that name
	}
	lock := flock.New(filepath.Join(path, lockFile), flock.SetFlag(os.O_RDWR))
	if free, err := lock.TryLock(); err != nil || !free {
		return err
	}
	defer lock.Close()
	if !there(lock) {
		return nil
	}
	return remove(root, lock)
}
