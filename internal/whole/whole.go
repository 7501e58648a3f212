// Package whole writes files of which nobody sees a part: not a reader, and not who
// comes after this process was killed.
package whole

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Prefix begins the names of files that are not yet whole. They lie beside the file
// that they become; what a killed process left of them is for the folder's owner to
// remove.
const Prefix = ".tmp-"

// WriteFile replaces the file at path, or makes it: it holds its old content or all of
// data. When it returns, file and name are on the disk. The error names the path.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	temp, err := os.CreateTemp(filepath.Dir(path), Prefix+"*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(data)
	if err == nil {
		err = errors.Join(temp.Chmod(mode), temp.Sync())
	}
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err == nil {
		err = syncFolder(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
