package bucket

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
)

// ErrNotRegular says that something lies in a folder in the place of an object,
// of its attributes or of a folder above it, that is none: a link, a pipe, a device.
var ErrNotRegular = errors.New("not a regular file")

const (
	// AttrsSuffix is that of the file beside an object in which fileblob keeps
	// its metadata.
	AttrsSuffix = ".attrs"
	// MaxAttrs is how many bytes of such a file are read.
	MaxAttrs = 1 << 20
)

// Regular tells of a file in a folder that stands for a bucket. The name has slashes.
// The error is [ErrNotRegular] where it is no file, or lies below what is no folder:
// to follow a link is to leave the folder, and to open a pipe is to wait for ever.
func Regular(root *os.Root, name string) (fs.FileInfo, error) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if info, err := root.Lstat(dir); err == nil && !info.IsDir() {
			return nil, fmt.Errorf("%s: %w", filepath.Join(root.Name(), dir), ErrNotRegular)
		}
	}
	info, err := root.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", filepath.Join(root.Name(), name), ErrNotRegular)
	}
	return info, err
}

func openFolder(dir string, existing bool) (*blob.Bucket, error) {
	if existing {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: there is no folder %s", ErrNoBucket, dir)
		}
	} else if err := os.Mkdir(dir, 0o755); errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("%w; make the folder, or let this user write into %s", err, filepath.Dir(dir))
	} else if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w; make its parent folder first", err)
	}
	return fileblob.OpenBucket(dir, &fileblob.Options{NoTempDir: true, DirFileMode: 0o755})
}

// object returns the name of an object in its store. In a folder, it is an error
// where that is not a file.
func (b *Bucket) object(key string) (string, error) {
	name := b.key(key)
	if b.Scheme != File {
		return name, nil
	}
	if !plainName(name) {
		return "", fmt.Errorf("%w: a folder keeps no object of this name", fs.ErrInvalid)
	}
	root, err := os.OpenRoot(b.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return name, nil
	} else if err != nil {
		return "", err
	}
	defer root.Close()
	for _, file := range []string{name, name + AttrsSuffix} {
		switch info, err := Regular(root, file); {
		case errors.Is(err, fs.ErrNotExist) || info != nil && info.IsDir() && file == name: // fileblob has no such object
		case err != nil:
			return "", err
		case file != name && info.Size() > MaxAttrs:
			return "", fmt.Errorf("%s: %w: attributes of over %d MiB", filepath.Join(b.Dir, file), ErrTooLarge, MaxAttrs>>20)
		}
	}
	return name, nil
}

// listable returns an error where there is no listing a folder: fileblob opens the
// attributes of all that it lists.
func (b *Bucket) listable(prefix string) error {
	if b.Scheme != File {
		return nil
	}
	return filepath.WalkDir(filepath.Join(b.Dir, filepath.FromSlash(path.Dir(b.key(prefix)+"x"))), func(name string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, AttrsSuffix) && !entry.Type().IsRegular() && !entry.IsDir() {
			return fmt.Errorf("%s: %w", name, ErrNotRegular)
		}
		return nil // fileblob leaves out what cannot be read
	})
}

// plainName reports whether fileblob keeps an object in a file of its own name:
// it escapes what file systems do not take.
func plainName(name string) bool {
	odd := func(r rune) bool {
		return r < ' ' || runtime.GOOS == "windows" && strings.ContainsRune(`\<>:"|?*`, r)
	}
	return fs.ValidPath(name) && !strings.ContainsFunc(name, odd)
}
