package grid

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	"cloud.google.com/go/storage"
	"github.com/GoogleCloudPlatform/testgrid/util/gcs"
	"google.golang.org/api/iterator"
)

// Reading ahead: how many builds at a time, how many that nobody has asked for
// yet, and up to which size an object is kept.
const (
	aheadWorkers = 12
	aheadWindow  = 48
	aheadObject  = 4 << 20
)

// Ahead returns a client that reads builds before it is asked for them, in the
// given order, several at a time: TestGrid's updater reads one after the other,
// which in a bucket is mostly waiting. What it did not read ahead, it asks
// client for. It ends with ctx.
func Ahead(ctx context.Context, client gcs.Client, builds []gcs.Build) gcs.Client {
	a := &ahead{Client: client, builds: map[string]*aheadBuild{}, window: make(chan struct{}, aheadWindow)}
	queue := make([]*aheadBuild, 0, len(builds))
	for _, b := range builds {
		next := &aheadBuild{path: b.Path, done: make(chan struct{})}
		if key := keyOf(b.Path); a.builds[key] == nil {
			a.builds[key] = next
			queue = append(queue, next)
		}
	}
	work := make(chan *aheadBuild)
	go func() {
		defer close(work)
		for _, b := range queue {
			select {
			case a.window <- struct{}{}:
			case <-ctx.Done():
				return
			}
			if !a.begin(b) {
				<-a.window
				continue
			}
			select {
			case work <- b:
			case <-ctx.Done():
				return
			}
		}
	}()
	for range aheadWorkers {
		go func() {
			for b := range work {
				b.read(ctx, client)
			}
		}()
	}
	return a
}

// keyOf is a path's bucket and object, without a slash at its end.
func keyOf(p gcs.Path) string { return p.Bucket() + "/" + strings.TrimSuffix(p.Object(), "/") }

type ahead struct {
	gcs.Client
	builds map[string]*aheadBuild
	window chan struct{}

	mu      sync.Mutex
	current *aheadBuild
}

// aheadBuild is a build that is read ahead.
type aheadBuild struct {
	path          gcs.Path
	begun, wanted bool          // under the client's lock
	done          chan struct{} // closed when content is there
	content       atomic.Pointer[aheadContent]
}

// aheadContent is what was read of a build: all of its objects' names, and the
// content of those that TestGrid reads.
type aheadContent struct {
	listing []*storage.ObjectAttrs
	objects map[string]aheadObjectRead
}

type aheadObjectRead struct {
	content []byte
	attrs   *storage.ReaderObjectAttrs
}

// begin reports whether a build is to be read: nobody has asked for it yet.
func (a *ahead) begin(b *aheadBuild) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	b.begun = !b.wanted
	return b.begun
}

// want returns what was read ahead of the build that an object belongs to; nil
// for nothing. The build that was wanted before is let go of.
func (a *ahead) want(ctx context.Context, p gcs.Path) *aheadContent {
	var b *aheadBuild
	for key := keyOf(p); b == nil && strings.Contains(key, "/"); key = path.Dir(key) {
		b = a.builds[key]
	}
	if b == nil {
		return nil
	}
	a.mu.Lock()
	first, begun, old := !b.wanted, b.begun, a.current
	b.wanted, a.current = true, b
	a.mu.Unlock()
	if first && begun {
		<-a.window
	}
	if old != nil && old != b {
		old.content.Store(nil)
	}
	if !begun {
		return nil
	}
	select {
	case <-b.done:
		return b.content.Load()
	case <-ctx.Done():
		return nil
	}
}

func (b *aheadBuild) read(ctx context.Context, client gcs.Client) {
	defer close(b.done)
	c := &aheadContent{objects: map[string]aheadObjectRead{}}
	for it := client.Objects(ctx, b.path, "", ""); ; {
		o, err := it.Next()
		if errors.Is(err, iterator.Done) {
			break
		}
		if err != nil {
			return // asked for again, and said then
		}
		c.listing = append(c.listing, o)
	}
	base := strings.TrimSuffix(b.path.Object(), "/") + "/"
	for _, o := range c.listing {
		name := strings.TrimPrefix(o.Name, base)
		isJUnit := strings.HasSuffix(name, ".xml") && strings.HasPrefix(path.Base(name), "junit")
		if !isJUnit && name != "started.json" && name != "finished.json" && name != "podinfo.json" || o.Size > aheadObject {
			continue
		}
		u := b.path.URL()
		u.Path, u.RawPath = "/"+o.Name, ""
		var p gcs.Path
		if err := p.SetURL(&u); err != nil {
			continue
		}
		r, attrs, err := client.Open(ctx, p)
		if err != nil {
			continue // asked for again, and said then
		}
		content, err := io.ReadAll(io.LimitReader(r, aheadObject+1))
		r.Close()
		if err == nil && len(content) <= aheadObject {
			c.objects[o.Name] = aheadObjectRead{content, attrs}
		}
	}
	b.content.Store(c)
}

// Open implements [gcs.Opener].
func (a *ahead) Open(ctx context.Context, p gcs.Path) (io.ReadCloser, *storage.ReaderObjectAttrs, error) {
	if c := a.want(ctx, p); c != nil {
		if o, ok := c.objects[p.Object()]; ok {
			return io.NopCloser(bytes.NewReader(o.content)), o.attrs, nil
		}
		if !c.lists(p.Object()) {
			return nil, nil, storage.ErrObjectNotExist
		}
	}
	return a.Client.Open(ctx, p)
}

func (c *aheadContent) lists(name string) bool {
	for _, o := range c.listing {
		if o.Name == name {
			return true
		}
	}
	return false
}

// Objects implements [gcs.Lister].
func (a *ahead) Objects(ctx context.Context, p gcs.Path, delimiter, start string) gcs.Iterator {
	if delimiter == "" && start == "" && a.builds[keyOf(p)] != nil {
		if c := a.want(ctx, p); c != nil {
			return &attrsIterator{c.listing}
		}
	}
	return a.Client.Objects(ctx, p, delimiter, start)
}

type attrsIterator struct{ left []*storage.ObjectAttrs }

func (i *attrsIterator) Next() (*storage.ObjectAttrs, error) {
	if len(i.left) == 0 {
		return nil, iterator.Done
	}
	o := i.left[0]
	i.left = i.left[1:]
	return o, nil
}
