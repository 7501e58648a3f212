package rehearse

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/intake"
)

// Build is what a rehearsal left in the bucket.
type Build struct {
	// URL is the build's folder.
	URL string
	// Files are the names of what is in it, sorted, with their sizes.
	Files []File
	// Result is finished.json's: SUCCESS, FAILURE or ABORTED, or the first two by
	// whether it says that it passed; "" without a finished.json.
	Result string
	// Metadata is finished.json's.
	Metadata map[string]any
}

// File is an object of a build.
type File struct {
	Name string
	Size int64
}

// Uploaded reads what lies in the build's folder, after it has added what Prow
// does not keep in a folder.
func (p *RehearsalPlan) Uploaded(ctx context.Context, url string, o bucket.Options) (*Build, error) {
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
	finished, unread, err := intake.ReadFinished(ctx, at, prefix)
	switch {
	case err != nil:
		return nil, err
	case unread != "":
		return nil, fmt.Errorf("reading finished.json: %s", unread)
	case finished == nil:
		return b, nil
	}
	b.Result, b.Metadata = finished.Result, finished.Metadata
	if b.Result == "" {
		b.Result = "FAILURE"
		if intake.Passed(finished) {
			b.Result = "SUCCESS"
		}
	}
	return b, nil
}

// linkKey is the metadata by which TestGrid finds the build of an alias.
const linkKey = "x-goog-meta-link"

// maxAlias is more than an alias has: the URL of a build.
const maxAlias = 4 << 10

// link adds to the aliases of a pull request's builds in a folder what Prow
// stores with them in a bucket: to this build's, and to those of the job's
// rehearsals that were killed before they did it.
func (p *RehearsalPlan) link(ctx context.Context, at *bucket.Bucket) error {
	if at.Scheme != bucket.File || p.alias == "" {
		return nil
	}
	var aliases []string
	err := at.List(ctx, bucket.ListOptions{Prefix: path.Dir(p.alias) + "/"}, func(o *bucket.Attrs) error {
		id := strings.TrimSuffix(path.Base(o.Key), path.Ext(o.Key))
		if _, err := strconv.ParseUint(id, 10, 64); err == nil && path.Ext(o.Key) == ".txt" {
			aliases = append(aliases, o.Key)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, alias := range aliases {
		if a, err := at.Stat(ctx, alias); err != nil {
			return err
		} else if a.Metadata[linkKey] != "" {
			continue
		}
		text, err := at.ReadAll(ctx, alias, maxAlias)
		if err != nil {
			return err
		}
		sum, err := bucket.SumOf(bytes.NewReader(text))
		if err != nil {
			return err
		}
		err = at.Put(ctx, &bucket.Object{
			Key: alias, ContentType: "text/plain", Metadata: map[string]string{linkKey: strings.TrimSpace(string(text))}, Sum: sum,
			Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil },
		})
		if err != nil {
			return err
		}
	}
	return nil
}
