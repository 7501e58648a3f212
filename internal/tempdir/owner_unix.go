//go:build unix

package tempdir

import (
	"io/fs"
	"os"
	"syscall"
)

// Owned reports whether a folder is this user's: the one for temporary files is
// everybody's.
func Owned(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
