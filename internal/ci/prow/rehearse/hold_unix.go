//go:build unix

package rehearse

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/windows-op-readiness/windows-op-readiness/internal/tempdir"
)

// hold opens a folder of this user, and locks it until all processes that have
// the file, or got it from their parents, are gone.
func hold(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := holds(f, dir); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func holds(f *os.File, dir string) error {
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return errHeld
	}
	mine, err := f.Stat()
	if err != nil {
		return err
	}
	there, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !os.SameFile(mine, there):
		return fs.ErrNotExist // it was removed, and there is another
	case !tempdir.Owned(mine):
		return errors.New("it is another user's")
	}
	return nil
}
