package grid

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
)

// Object is what a listing tells of an object, or of the objects below a
// common prefix.
type Object struct {
	// Name is relative to the store's root. That of a common prefix ends in a
	// slash.
	Name string
	// Size is in bytes; 0 for a common prefix.
	Size int64
	// Updated is when the object was last written; zero when not known.
	Updated time.Time
	// Metadata is what was stored with the object, beside its content.
	Metadata map[string]string
}

// Store holds objects that are not in Google Cloud Storage.
type Store interface {
	// List returns the objects whose names begin with prefix, which is empty
	// or ends in a slash, sorted by name. Unless deep, those further down are
	// one common prefix for each folder. A prefix that nothing lies under is
	// an empty list.
	List(ctx context.Context, prefix string, deep bool) ([]Object, error)
	// Open returns the content of an object; an error that is
	// [fs.ErrNotExist] when there is none of that name.
	Open(ctx context.Context, name string) (io.ReadCloser, Object, error)
}

// Memory is a store in memory. The zero value is empty and ready for use.
type Memory struct {
	mu      sync.RWMutex
	objects map[string]memoryObject
}

type memoryObject struct {
	Object
	content []byte
}

// Put stores an object, in place of one of the same name.
func (m *Memory) Put(o Object, content []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.objects == nil {
		m.objects = map[string]memoryObject{}
	}
	o.Size = int64(len(content))
	m.objects[o.Name] = memoryObject{Object: o, content: content}
}

// List implements [Store].
func (m *Memory) List(_ context.Context, prefix string, deep bool) ([]Object, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	found := map[string]Object{}
	for name, o := range m.objects {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		if folder, _, below := strings.Cut(rest, "/"); below && !deep {
			name = prefix + folder + "/"
			found[name] = Object{Name: name}
			continue
		}
		found[name] = o.Object
	}
	return sorted(slices.Collect(maps.Values(found))), nil
}

// Open implements [Store].
func (m *Memory) Open(_ context.Context, name string) (io.ReadCloser, Object, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	o, ok := m.objects[name]
	if !ok {
		return nil, Object{}, fmt.Errorf("opening %s: %w", name, fs.ErrNotExist)
	}
	return io.NopCloser(bytes.NewReader(o.content)), o.Object, nil
}

func sorted(objects []Object) []Object {
	slices.SortFunc(objects, func(a, b Object) int { return cmp.Compare(a.Name, b.Name) })
	return objects
}

// folderStore is a store in a folder. What is no object to package bucket, a link
// above all, is none here; but where that refuses the whole, this leaves it out and
// goes on, and [folderStore.Skipped] says why. Metadata and encoding of an object are
// taken from the file beside it where gocloud.dev/blob/fileblob keeps them; those
// files are not objects.
type folderStore struct {
	root *os.Root
	fsys fs.FS

	mu      sync.Mutex
	skipped map[string]string // why, by name
}

// Skipped says why listings left entries out, by their names.
func (f *folderStore) Skipped() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.skipped)
}

func (f *folderStore) skip(name, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.skipped == nil {
		f.skipped = map[string]string{}
	}
	f.skipped[name] = why
}

// skipIrregular skips what is [bucket.ErrNotRegular].
func (f *folderStore) skipIrregular(name string) {
	why := "it is not a regular file"
	if info, err := f.root.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		why = "it is a symbolic link, which is not followed"
	}
	f.skip(name, why)
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// maxUnzipped is how much of a compressed object is read: TestGrid refuses
// JUnit of over 100 MB, but looks at its size as it is stored.
const maxUnzipped = 200 << 20

// errTooLarge says that a compressed object has too much in it.
var errTooLarge = errors.New("too large")

// openStore opens the folder dir as a store. The caller closes it.
func openStore(dir string) (*folderStore, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening folder %s: %w", dir, err)
	}
	return &folderStore{root: root, fsys: root.FS()}, nil
}

// Close lets go of the folder.
func (f *folderStore) Close() error { return f.root.Close() }

// List implements [Store].
func (f *folderStore) List(ctx context.Context, prefix string, deep bool) ([]Object, error) {
	dir := cmp.Or(strings.TrimSuffix(prefix, "/"), ".")
	if !fs.ValidPath(dir) {
		return nil, fmt.Errorf("listing %s: %w", prefix, fs.ErrInvalid)
	}
	var objects []Object
	err := fs.WalkDir(f.fsys, dir, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil && name == dir && errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case name == dir:
			return nil
		case strings.ContainsFunc(entry.Name(), isControl):
			f.skip(name, "its name has a control character, which no address can have")
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir() && !deep:
			if f.holdsFiles(name) { // a bucket has no empty folders
				objects = append(objects, Object{Name: name + "/"})
			}
			return fs.SkipDir
		case entry.IsDir(), strings.HasSuffix(name, bucket.AttrsSuffix):
			return nil
		}
		o, _, err := f.stat(name)
		if errors.Is(err, bucket.ErrNotRegular) {
			f.skipIrregular(name)
			return nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // gone meanwhile
		}
		if err != nil {
			return err
		}
		objects = append(objects, o)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", prefix, err)
	}
	return sorted(objects), nil
}

func (f *folderStore) holdsFiles(dir string) bool {
	found := errors.New("found")
	err := fs.WalkDir(f.fsys, dir, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			return found
		}
		return err
	})
	return err != nil // also what cannot be read is there
}

func (f *folderStore) stat(name string) (Object, attributes, error) {
	info, err := bucket.Regular(f.root, name)
	if err != nil {
		return Object{}, attributes{}, err
	}
	a, err := f.attrs(name)
	return Object{Name: name, Size: info.Size(), Updated: info.ModTime(), Metadata: a.Metadata}, a, err
}

// attributes are the fields of fileblob's .attrs files that matter to readers.
type attributes struct {
	ContentEncoding string            `json:"user.content_encoding"`
	Metadata        map[string]string `json:"user.metadata"`
}

func (f *folderStore) attrs(name string) (attributes, error) {
	beside := name + bucket.AttrsSuffix
	_, err := bucket.Regular(f.root, beside)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return attributes{}, nil
	case errors.Is(err, bucket.ErrNotRegular):
		f.skipIrregular(beside)
		return attributes{}, nil
	case err != nil:
		return attributes{}, err
	}
	file, err := f.root.Open(beside)
	if err != nil {
		return attributes{}, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, bucket.MaxAttrs+1))
	if err != nil {
		return attributes{}, err
	}
	if len(data) > bucket.MaxAttrs {
		f.skip(beside, fmt.Sprintf("it is over %d MiB", bucket.MaxAttrs>>20))
		return attributes{}, nil
	}
	var a attributes
	if err := json.Unmarshal(data, &a); err != nil {
		f.skip(beside, fmt.Sprintf("it is not the JSON in which the attributes of %s would be: %v", path.Base(name), err))
		return attributes{}, nil //nolint:nilerr // told with what else is skipped
	}
	return a, nil
}

// Open implements [Store]. What is stored with the encoding gzip is
// decompressed, as Google Cloud Storage does for its readers.
func (f *folderStore) Open(_ context.Context, name string) (io.ReadCloser, Object, error) {
	if name = path.Clean(name); !fs.ValidPath(name) {
		return nil, Object{}, fmt.Errorf("opening %s: %w", name, fs.ErrNotExist)
	}
	o, a, err := f.stat(name)
	if errors.Is(err, bucket.ErrNotRegular) {
		return nil, Object{}, fmt.Errorf("opening %s: %w", name, fs.ErrNotExist)
	}
	if err != nil {
		return nil, Object{}, fmt.Errorf("opening %s: %w", name, err)
	}
	file, err := f.root.Open(name)
	if err != nil {
		return nil, Object{}, fmt.Errorf("opening %s: %w", name, err)
	}
	if a.ContentEncoding != "gzip" {
		return file, o, nil
	}
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		file.Close()
		return nil, Object{}, fmt.Errorf("opening %s, stored with encoding gzip: %w", name, err)
	}
	return struct {
		io.Reader
		io.Closer
	}{&limited{unzipped, maxUnzipped}, file}, o, nil
}

// limited fails where there is more than n.
type limited struct {
	io.Reader
	n int64
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if l.n -= int64(n); l.n < 0 {
		return 0, fmt.Errorf("%w: over %d MiB when decompressed", errTooLarge, maxUnzipped>>20)
	}
	return n, err
}
