//go:build unix

package kwok

import (
	"errors"
	"syscall"
)

// kill ends a process at once; one that has already ended is not an error.
func kill(id int) error {
	if err := syscall.Kill(id, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
