package grid

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"sync"

	"cloud.google.com/go/storage"
	"github.com/GoogleCloudPlatform/testgrid/util/gcs"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/iterator"
)

var errReadOnly = errors.New("builds are only read")

// ClientOf lets TestGrid's code read what is in a store. Whatever bucket a path
// names, the object is looked for in this store.
func ClientOf(s Store) gcs.ConditionalClient { return &storeClient{store: s} }

type storeClient struct{ store Store }

func (c *storeClient) If(_, _ *storage.Conditions) gcs.ConditionalClient { return c }

func (c *storeClient) Upload(context.Context, gcs.Path, []byte, bool, string) (*storage.ObjectAttrs, error) {
	return nil, errReadOnly
}

func (c *storeClient) Copy(context.Context, gcs.Path, gcs.Path) (*storage.ObjectAttrs, error) {
	return nil, errReadOnly
}

func (c *storeClient) Open(ctx context.Context, p gcs.Path) (io.ReadCloser, *storage.ReaderObjectAttrs, error) {
	r, o, err := c.store.Open(ctx, p.Object())
	if err != nil {
		return nil, nil, notExist(err)
	}
	return r, &storage.ReaderObjectAttrs{Size: o.Size, LastModified: o.Updated}, nil
}

func (c *storeClient) Stat(ctx context.Context, p gcs.Path) (*storage.ObjectAttrs, error) {
	r, o, err := c.store.Open(ctx, p.Object())
	if err != nil {
		return nil, notExist(err)
	}
	r.Close()
	return attrsOf(p.Bucket(), o), nil
}

// Objects lists as Google Cloud Storage does: by name, from start on; a prefix
// always ends in a slash, as in TestGrid's own client.
func (c *storeClient) Objects(ctx context.Context, p gcs.Path, delimiter, start string) gcs.Iterator {
	prefix := p.Object()
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	objects, err := c.store.List(ctx, prefix, delimiter == "")
	if start == "/" {
		start = "" // how TestGrid says that there is none
	}
	for len(objects) > 0 && objects[0].Name < start {
		objects = objects[1:]
	}
	return &objectIterator{bucket: p.Bucket(), objects: objects, err: err}
}

func notExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", storage.ErrObjectNotExist, err)
	}
	return err
}

func attrsOf(bucket string, o Object) *storage.ObjectAttrs {
	if strings.HasSuffix(o.Name, "/") {
		return &storage.ObjectAttrs{Prefix: o.Name}
	}
	return &storage.ObjectAttrs{Bucket: bucket, Name: o.Name, Size: o.Size, Updated: o.Updated, Created: o.Updated, Metadata: o.Metadata}
}

type objectIterator struct {
	bucket  string
	objects []Object
	err     error
}

func (i *objectIterator) Next() (*storage.ObjectAttrs, error) {
	if i.err != nil {
		return nil, i.err
	}
	if len(i.objects) == 0 {
		return nil, iterator.Done
	}
	o := i.objects[0]
	i.objects = i.objects[1:]
	return attrsOf(i.bucket, o), nil
}

// state is where the updater and the summarizer keep what they make: in memory,
// with the generations by which they take turns.
type state struct {
	mu         sync.Mutex
	store      Memory
	generation map[string]int64
}

func (s *state) client() gcs.ConditionalClient { return stateClient{state: s} }

// stateClient is access to a state under conditions.
type stateClient struct {
	state       *state
	read, write *storage.Conditions
}

func (c stateClient) If(read, write *storage.Conditions) gcs.ConditionalClient {
	return stateClient{state: c.state, read: read, write: write}
}

// holds reports whether a condition allows access to a generation, 0 for none.
func holds(cond *storage.Conditions, generation int64) error {
	if cond == nil {
		return nil
	}
	if cond.DoesNotExist && generation != 0 ||
		cond.GenerationMatch != 0 && cond.GenerationMatch != generation ||
		cond.GenerationNotMatch != 0 && cond.GenerationNotMatch == generation {
		return &googleapi.Error{Code: http.StatusPreconditionFailed}
	}
	return nil
}

func (c stateClient) Upload(_ context.Context, p gcs.Path, content []byte, _ bool, _ string) (*storage.ObjectAttrs, error) {
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	if err := holds(c.write, c.state.generation[p.Object()]); err != nil {
		return nil, err
	}
	if c.state.generation == nil {
		c.state.generation = map[string]int64{}
	}
	c.state.generation[p.Object()]++
	o := Object{Name: p.Object(), Updated: now()}
	c.state.store.Put(o, content)
	attrs := attrsOf(p.Bucket(), o)
	attrs.Generation = c.state.generation[p.Object()]
	return attrs, nil
}

func (c stateClient) Open(ctx context.Context, p gcs.Path) (io.ReadCloser, *storage.ReaderObjectAttrs, error) {
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	generation := c.state.generation[p.Object()]
	r, o, err := c.state.store.Open(ctx, p.Object())
	if err != nil {
		return nil, nil, notExist(err)
	}
	if err := holds(c.read, generation); err != nil {
		return nil, nil, err
	}
	return r, &storage.ReaderObjectAttrs{Size: o.Size, LastModified: o.Updated, Generation: generation}, nil
}

func (c stateClient) Stat(ctx context.Context, p gcs.Path) (*storage.ObjectAttrs, error) {
	r, attrs, err := c.Open(ctx, p)
	if err != nil {
		return nil, err
	}
	r.Close()
	return &storage.ObjectAttrs{Bucket: p.Bucket(), Name: p.Object(), Size: attrs.Size, Updated: attrs.LastModified, Generation: attrs.Generation}, nil
}

func (c stateClient) Copy(ctx context.Context, from, to gcs.Path) (*storage.ObjectAttrs, error) {
	r, _, err := c.Open(ctx, from)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	content, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	return c.Upload(ctx, to, content, false, "")
}

func (c stateClient) Objects(ctx context.Context, p gcs.Path, delimiter, start string) gcs.Iterator {
	return ClientOf(&c.state.store).Objects(ctx, p, delimiter, start)
}
