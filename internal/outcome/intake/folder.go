package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
)

var (
	// ErrRefused says that what was to be taken in is broken, or means harm.
	ErrRefused = errors.New("refused, and nothing of it was kept")
	// ErrNoResults says that there is no results folder in it.
	ErrNoResults = errors.New("holds no results folder")
)

// Taken is what was taken in.
type Taken struct {
	// Dir is the folder with the results folders in it, up to two levels down,
	// as [result.Find] finds them.
	Dir string
	// Files is how many files were taken, and LeftOut how many were not,
	// because no results folder has files of such names.
	Files, LeftOut int
}

// unpack makes the new folder dir and has fill fill it. When that fails,
// nothing of dir is left. Its parent must exist.
func unpack(dir string, fill func(*folder) error) (err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("making a folder for results: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("making a folder for results: %w", err)
	}
	defer root.Close()
	return fill(&folder{root: root})
}

// folder is where files go. No name leads out of it.
type folder struct {
	root    *os.Root
	total   int64 // bytes that were written
	files   int
	results bool // there is a run.json
}

// create makes a file that is not there yet.
func (f *folder) create(name string) (*os.File, error) {
	file := filepath.FromSlash(name)
	if err := f.root.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, err
	}
	f.files++
	f.results = f.results || path.Base(name) == result.ManifestFile
	return f.root.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

// errOver says that there is more content than allowed.
var errOver = errors.New("over the limit")

// copyAtMost copies up to limit bytes; what has more is errOver.
func copyAtMost(ctx context.Context, to io.Writer, from io.Reader, limit int64) (int64, error) {
	n, err := io.Copy(to, io.LimitReader(&untilDone{ctx, from}, limit+1))
	if err == nil && n > limit {
		err = errOver
	}
	return n, err
}

// untilDone reads until a context ends.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u *untilDone) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.r.Read(p)
}

// bytesOf names a limit.
func bytesOf(n int64) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}

// isWriteError reports whether our own disk, and not what is read, is at fault.
func isWriteError(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path)
}
