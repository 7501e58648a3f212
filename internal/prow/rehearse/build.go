package rehearse

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
)

// Build is what a rehearsal left in the bucket.
type Build struct {
	// URL is the build's folder.
	URL string
	// Files are the names of what is in it, sorted, with their sizes.
	Files []File
	// Result is finished.json's: SUCCESS, FAILURE or ABORTED; "" without one.
	Result string
	// Metadata is finished.json's.
	Metadata map[string]any
}

// File is an object of a build.
type File struct {
	Name string
	Size int64
}

// maxFinished is more than a finished.json has.
const maxFinished = 1 << 20

// Uploaded reads what lies in the build's folder, after it has added what Prow
// does not keep in a folder.
func (p *Plan) Uploaded(ctx context.Context, url string, o bucket.Options) (*Build, error) {
	at, err := bucket.Open(ctx, url, o)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	if err := p.link(ctx, at); err != nil {
		return nil, err
	}
	prefix := p.Build + "/"
	b := &Build{URL: at.URL(prefix)}
	err = at.List(ctx, bucket.ListOptions{Prefix: prefix}, func(o *bucket.Attrs) error {
		b.Files = append(b.Files, File{Name: o.Key[len(prefix):], Size: o.Size})
		return nil
	})
	if err != nil {
		return nil, err
	}
	data, err := at.ReadAll(ctx, prefix+"finished.json", maxFinished)
	if errors.Is(err, bucket.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return nil, err
	}
	var finished struct {
		Result   string         `json:"result"`
		Metadata map[string]any `json:"metadata"`
	}
	if err := json.Unmarshal(data, &finished); err != nil {
		return nil, fmt.Errorf("reading finished.json: %w", err)
	}
	b.Result, b.Metadata = finished.Result, finished.Metadata
	return b, nil
}

// linkKey is the metadata by which TestGrid finds the build of an alias.
const linkKey = "x-goog-meta-link"

// link adds to the alias of a pull request's build in a folder what Prow stores
// with it in a bucket.
func (p *Plan) link(ctx context.Context, at *bucket.Bucket) error {
	if at.Scheme != bucket.File || p.alias == "" {
		return nil
	}
	text := []byte(at.URL(p.Build))
	sum, err := bucket.SumOf(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return at.Put(ctx, &bucket.Object{
		Key: p.alias, ContentType: "text/plain", Metadata: map[string]string{linkKey: string(text)}, Sum: sum,
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil },
	})
}
