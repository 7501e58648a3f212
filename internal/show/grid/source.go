package grid

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"cloud.google.com/go/storage"
	"github.com/GoogleCloudPlatform/testgrid/util/gcs"

	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
)

// Source is where builds are read from.
type Source struct {
	// Name is what the user called it.
	Name string
	// Client reads it. Paths that name another bucket than Bucket are looked
	// for below Base, so that the configuration of a bucket fits a copy of it.
	Client gcs.Client
	// Bucket is its name, or "local" for a folder.
	Bucket string
	// Prefix is what the user pointed at: "bucket/folder".
	Prefix string
	// Base is the part of Prefix above logs/ and pr-logs/, with a slash at its
	// end, or "".
	Base string
	// Top is what stands for "gs://BUCKET/" where objects are shown to people.
	Top string
	// Kept says that times of objects are those of their upload, which they
	// need not be for files.
	Kept bool
	// URL returns where an object or folder is found, for people; "" for
	// nowhere.
	URL func(object string) string

	// results says that it is a results folder, laid out in memory.
	results bool
	close   func() error
	skipped func() map[string]string
}

// Skipped says why objects were left out, by their addresses as people know
// them.
func (s *Source) Skipped() map[string]string {
	if s.skipped == nil {
		return nil
	}
	return s.skipped()
}

// Close lets go of the source.
func (s *Source) Close() error {
	if s.close == nil {
		return nil
	}
	return s.close()
}

// localBucket is the bucket's name for what lies in a folder.
const localBucket = "local"

// Open opens gs://BUCKET[/PREFIX], s3://BUCKET[/PREFIX], file:///FOLDER or a
// folder, laid out as TestGrid reads it.
func Open(ctx context.Context, name string, o bucket.Options) (*Source, error) {
	if !strings.Contains(name, "://") {
		return openFolder(name, name)
	}
	at, err := bucket.ParseURL(name)
	if err != nil {
		return nil, err
	}
	if at.Scheme == bucket.File {
		return openFolder(name, at.Dir)
	}
	// Aliases name their builds by path from the bucket's top.
	b, err := bucket.Open(ctx, at.Scheme+"://"+at.Name, o)
	if err != nil {
		return nil, err
	}
	s := &Source{
		Name: name, Bucket: at.Name, Prefix: strings.TrimSuffix(at.Name+"/"+at.Prefix, "/"), Base: baseOf(at.Prefix), Top: at.Scheme + "://" + at.Name + "/", Kept: true, close: b.Close,
		URL: func(object string) string {
			if at.Scheme == bucket.GCS && o.Endpoint == "" {
				return "https://console.cloud.google.com/storage/browser/" + at.Name + "/" + strings.TrimSuffix(object, "/")
			}
			return ""
		},
	}
	s.Client = s.over(&remote{bucket: b, scheme: at.Scheme})
	return s, nil
}

// openFolder opens a folder. Its bucket's top is the folder above logs/ or
// pr-logs/ where the path has such, else it is the folder itself.
func openFolder(name, dir string) (*Source, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("folder %s: %w", dir, err)
	}
	if info, err := os.Stat(abs); err != nil {
		return nil, fmt.Errorf("opening folder: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is a file: name the folder of a bucket, of a job or of results", dir)
	}
	if isBuild(abs) {
		return nil, fmt.Errorf("%s is %w: name the folder above it, %s", dir, errBuild, filepath.Dir(abs))
	}
	root, inside := topOf(filepath.ToSlash(abs))
	folder, err := openStore(filepath.FromSlash(root))
	if err != nil {
		return nil, err
	}
	var store Store = folder
	if inside == "" && hasBuilds(abs) {
		// The job has the folder's name, as far as it can be part of an address.
		inside = cmp.Or(notInNames.ReplaceAllString(filepath.Base(abs), "-"), "job")
		store = &mounted{Store: folder, at: inside + "/"}
		root = path.Dir(root)
	}
	s := &Source{
		Name: name, Bucket: localBucket, Prefix: strings.TrimSuffix(localBucket+"/"+inside, "/"), Top: filepath.FromSlash(strings.TrimSuffix(root, "/") + "/"), close: folder.Close,
		URL: func(object string) string {
			if rest, ok := strings.CutPrefix(object+"/", inside+"/"); ok {
				return filepath.Join(abs, filepath.FromSlash(rest))
			}
			return filepath.Join(filepath.FromSlash(root), filepath.FromSlash(object))
		},
	}
	at := ""
	if m, ok := store.(*mounted); ok {
		at = m.at
	}
	s.skipped = func() map[string]string {
		all := map[string]string{}
		for name, why := range folder.Skipped() {
			all[s.Top+at+name] = why
		}
		return all
	}
	s.Client = s.over(store)
	return s, nil
}

// errBuild says that a folder is one build, and not that of a job's builds.
var errBuild = errors.New("one build")

func isBuild(dir string) bool {
	for _, name := range []string{"started.json", "finished.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// baseOf is the part of a prefix above logs/ and pr-logs/.
func baseOf(prefix string) string {
	parts := strings.SplitAfter(prefix, "/")
	for i, part := range parts {
		if part == "logs/" || part == "pr-logs/" {
			return strings.Join(parts[:i], "")
		}
	}
	return prefix
}

// topOf splits the path of a folder into that of its bucket's top and the rest.
func topOf(dir string) (root, inside string) {
	parts := strings.Split(dir, "/")
	for i := len(parts) - 1; i > 0; i-- {
		if parts[i] == "logs" || parts[i] == "pr-logs" {
			return cmp.Or(strings.Join(parts[:i], "/"), "/"), strings.Join(parts[i:], "/")
		}
	}
	return dir, ""
}

// notInNames is what a job's name cannot have.
var notInNames = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// mounted is a store whose objects have other names: those of another one
// below at, which ends in a slash.
type mounted struct {
	Store
	at string
}

// List implements [Store].
func (m *mounted) List(ctx context.Context, prefix string, deep bool) ([]Object, error) {
	below, ok := strings.CutPrefix(prefix, m.at)
	if !ok {
		return nil, nil
	}
	objects, err := m.Store.List(ctx, below, deep)
	for i := range objects {
		objects[i].Name = m.at + objects[i].Name
	}
	return objects, err
}

// Open implements [Store].
func (m *mounted) Open(ctx context.Context, name string) (io.ReadCloser, Object, error) {
	below, ok := strings.CutPrefix(name, m.at)
	if !ok {
		return nil, Object{}, fmt.Errorf("opening %s: %w", name, fs.ErrNotExist)
	}
	r, o, err := m.Store.Open(ctx, below)
	o.Name = m.at + o.Name
	return r, o, err
}

// hasBuilds reports whether a folder's entries are builds.
func hasBuilds(dir string) bool {
	entries, err := os.ReadDir(filepath.FromSlash(dir))
	if err != nil {
		return false
	}
	for _, e := range entries {
		if e.IsDir() && isNumber(e.Name()) {
			return true
		}
	}
	return false
}

// Shown returns a text with the objects in it as people know them.
func (s *Source) Shown(text string) string {
	return strings.ReplaceAll(text, "gs://"+s.Bucket+"/", s.Top)
}

// Told returns what TestGrid said with the objects in it as people know them:
// TestGrid escapes their names as those in addresses.
func (s *Source) Told(text string) string {
	return s.Shown(address.ReplaceAllStringFunc(text, func(a string) string {
		if plain, err := url.PathUnescape(a); err == nil {
			return plain
		}
		return a
	}))
}

// address is an object in what TestGrid says.
var address = regexp.MustCompile(`gs://[^\s"']+`)

// Err is err, told with the objects in it as people know them.
func (s *Source) Err(err error) error {
	if err == nil {
		return nil
	}
	return &toldError{text: s.Told(err.Error()), cause: err}
}

type toldError struct {
	text  string
	cause error
}

func (e *toldError) Error() string { return e.text }

func (e *toldError) Unwrap() error { return e.cause }

// Path returns where in the source the object of an address lies, such as the
// one that an alias of a build has.
func (s *Source) Path(address string) (gcs.Path, error) {
	p, err := gcs.NewPath(strings.TrimSpace(address))
	if err != nil {
		return gcs.Path{}, fmt.Errorf("address %s: %w", address, err)
	}
	return s.path(*p), nil
}

// OfStore is a source of what lies in memory, for which prefix ("bucket/folder")
// is the place of a job's builds.
func OfStore(name, prefix string, store Store) *Source {
	b, _, _ := strings.Cut(prefix, "/")
	s := &Source{Name: name, Bucket: b, Prefix: prefix, URL: func(string) string { return "" }}
	s.Client = s.over(store)
	return s
}

// over makes the source's client.
func (s *Source) over(store Store) gcs.Client {
	return &baseClient{Client: ClientOf(store), source: s}
}

// baseClient looks below the source's base for what is in other buckets.
type baseClient struct {
	gcs.Client
	source *Source
}

// path is where in the source an object lies, whatever bucket it names.
func (s *Source) path(p gcs.Path) gcs.Path {
	if p.Bucket() == s.Bucket {
		return p
	}
	object := p.Object()
	if p.Bucket() == "" { // file:///…/pr-logs/…, as an alias in a folder has it
		if i := strings.LastIndex(object, "pr-logs/"); i >= 0 {
			object = object[i:]
		}
	}
	u := p.URL()
	u.Scheme, u.Host, u.Path, u.RawPath = "gs", s.Bucket, "/"+s.Base+object, ""
	var moved gcs.Path
	if err := moved.SetURL(&u); err != nil {
		return p
	}
	return moved
}

func (c *baseClient) Open(ctx context.Context, p gcs.Path) (io.ReadCloser, *storage.ReaderObjectAttrs, error) {
	return c.Client.Open(ctx, c.source.path(p))
}

func (c *baseClient) Stat(ctx context.Context, p gcs.Path) (*storage.ObjectAttrs, error) {
	return c.Client.Stat(ctx, c.source.path(p))
}

func (c *baseClient) Objects(ctx context.Context, p gcs.Path, delimiter, start string) gcs.Iterator {
	moved := c.source.path(p)
	if start != "" && start != "/" && moved != p {
		start = strings.TrimPrefix(moved.Object(), "/") + strings.TrimPrefix(start, p.Object())
	}
	return &movedLinks{c.Client.Objects(ctx, moved, delimiter, start), c.source}
}

// linkKeys are the metadata by which TestGrid knows an alias of a build.
var linkKeys = []string{"x-goog-meta-link", "link"}

// movedLinks are objects whose links lead to where the builds lie in the source,
// so that all of a build has names that begin with that of its folder.
type movedLinks struct {
	gcs.Iterator
	source *Source
}

// Next implements [gcs.Iterator].
func (l *movedLinks) Next() (*storage.ObjectAttrs, error) {
	o, err := l.Iterator.Next()
	if err != nil {
		return nil, err
	}
	for _, key := range linkKeys {
		link := o.Metadata[key]
		if link == "" {
			continue
		}
		// What is not an address, TestGrid refuses with its own words.
		if p, err := l.source.Path(link); err == nil && p.String() != link {
			moved := *o
			moved.Metadata = maps.Clone(o.Metadata)
			moved.Metadata[key] = p.String()
			o = &moved
		}
	}
	return o, nil
}

// remote is a store in a bucket.
type remote struct {
	bucket *bucket.Bucket
	scheme string
	listed sync.Map // Object by name
}

// List implements [Store]. Where a listing does not tell metadata, those of
// the objects that may be aliases of builds are asked for.
func (r *remote) List(ctx context.Context, prefix string, deep bool) ([]Object, error) {
	o := bucket.ListOptions{Prefix: prefix, Delimiter: "/"}
	if deep {
		o.Delimiter = ""
	}
	var objects []Object
	err := r.bucket.List(ctx, o, func(a *bucket.Attrs) error {
		o := Object{Name: a.Key, Size: a.Size, Updated: a.Updated, Metadata: a.Metadata}
		objects = append(objects, o)
		r.listed.Store(o.Name, o)
		return nil
	})
	if err != nil || deep || r.scheme == bucket.GCS {
		return objects, err
	}
	for i := range objects {
		if name, isText := strings.CutSuffix(path.Base(objects[i].Name), ".txt"); isText && isNumber(name) {
			a, err := r.bucket.Stat(ctx, objects[i].Name)
			if err != nil {
				return nil, err
			}
			objects[i].Metadata = a.Metadata
			for _, key := range linkKeys {
				if rest, ok := strings.CutPrefix(a.Metadata[key], "s3://"); ok {
					objects[i].Metadata[key] = "gs://" + rest
				}
			}
		}
	}
	return objects, nil
}

// Open implements [Store]. It asks for the content only: what else there is to
// know of an object, a listing has told, if it was listed.
func (r *remote) Open(ctx context.Context, name string) (io.ReadCloser, Object, error) {
	content, err := r.bucket.NewReader(ctx, name)
	if errors.Is(err, bucket.ErrNotExist) {
		return nil, Object{}, fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	if err != nil {
		return nil, Object{}, err
	}
	if o, ok := r.listed.Load(name); ok {
		return content, o.(Object), nil
	}
	return content, Object{Name: name}, nil
}
