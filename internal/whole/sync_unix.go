//go:build unix

package whole

import (
	"errors"
	"os"
)

// syncFolder puts the names in a folder on the disk.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
