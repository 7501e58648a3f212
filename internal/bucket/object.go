package bucket

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/storage"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
)

// crcKey is the metadata key under which the CRC32C of an upload is kept where
// the store has no such checksum of its own.
const crcKey = "op-readiness-crc32c"

// castagnoli is the polynomial of Google's checksums.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sum is what identifies content: its size in bytes, and two checksums.
type Sum struct {
	Size   int64
	CRC32C uint32
	MD5    [16]byte
}

// Object is what is to be uploaded.
type Object struct {
	// Key is the object's name below the bucket's prefix.
	Key         string
	ContentType string
	// ContentEncoding is "gzip" where Open yields gzip, else "".
	ContentEncoding string
	// Metadata is kept with the object. Keys are lower case.
	Metadata map[string]string
	// Sum is what [SumOf] says of what Open yields: an upload that arrives as
	// anything else is an error.
	Sum Sum
	// Open yields the content, as it is stored, from its beginning.
	Open func() (io.ReadCloser, error)
	// New refuses to replace an object: the error is [ErrExists].
	New bool
}

// Attrs is what a bucket tells of an object.
type Attrs struct {
	Key  string
	Size int64
	// IsDir says that Key, which ends with a slash, is a prefix and no object.
	IsDir bool
	// Metadata has lower-case keys. List knows it for gs:// only.
	Metadata map[string]string
	// ContentType and ContentEncoding are known to Stat, and to List for gs://.
	ContentType, ContentEncoding string
	Updated                      time.Time

	md5    []byte
	crc    uint32
	hasCRC bool
}

// matches reports whether the object has the content of sum: the same size,
// and the same checksum of those that are known. known is false when the size
// is the same and no checksum is known.
func (a *Attrs) matches(sum Sum) (same, known bool) {
	switch {
	case a.Size != sum.Size:
		return false, true
	case a.hasCRC:
		return a.crc == sum.CRC32C, true
	case len(a.md5) == len(sum.MD5):
		return bytes.Equal(a.md5, sum.MD5[:]), true
	}
	return false, false
}

// Same reports whether an object that List or Stat told of has the content of
// sum. It asks the bucket where they did not tell enough.
func (b *Bucket) Same(ctx context.Context, a *Attrs, sum Sum) (bool, error) {
	if a.Size != sum.Size {
		return false, nil
	}
	if b.Scheme == File {
		// What a folder tells of a file may be older than the file.
		r, err := b.open(ctx, a.Key)
		if err != nil {
			return false, b.explain("get", a.Key, err)
		}
		defer r.Close()
		got, err := SumOf(r)
		if err != nil {
			return false, b.explain("get", a.Key, err)
		}
		return got == sum, nil
	}
	if same, known := a.matches(sum); known {
		return same, nil
	}
	full, err := b.Stat(ctx, a.Key)
	if errors.Is(err, ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	same, _ := full.matches(sum)
	return same, nil
}

func (b *Bucket) key(key string) string { return b.Prefix + key }

func (b *Bucket) open(ctx context.Context, key string) (*blob.Reader, error) {
	name, err := b.object(key)
	if err != nil {
		return nil, err
	}
	return b.blob.NewReader(ctx, name, nil)
}

// ListOptions say what to list.
type ListOptions struct {
	// Prefix is what keys begin with.
	Prefix string
	// Delimiter, "/" or "", ends keys: what is longer becomes one IsDir.
	Delimiter string
	// From leaves out what sorts before it; "" leaves out nothing.
	From string
}

// List calls each for every object, in the order of their keys, until it
// returns an error, which List then returns.
func (b *Bucket) List(ctx context.Context, o ListOptions, each func(*Attrs) error) error {
	from := ""
	if o.From != "" {
		from = b.key(o.From)
	}
	options := &blob.ListOptions{
		Prefix:    b.key(o.Prefix),
		Delimiter: o.Delimiter,
		BeforeList: func(as func(any) bool) error {
			var google *storage.Query
			if as(&google) {
				google.Projection = storage.ProjectionNoACL
				google.StartOffset = from
			}
			return nil
		},
	}
	for token := blob.FirstPageToken; len(token) > 0; {
		var page []*blob.ListObject
		err := b.do(ctx, "listing "+b.URL(o.Prefix), 0, func(ctx context.Context) error {
			var next []byte
			err := b.listable(o.Prefix)
			if err != nil {
				return err
			}
			page, next, err = b.blob.ListPage(ctx, token, 1000, options)
			if err == nil {
				token = next
			}
			return err
		})
		if err != nil {
			return b.explain("list", o.Prefix, err)
		}
		for _, object := range page {
			if object.Key < from {
				continue
			}
			if err := each(b.listed(object)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *Bucket) listed(o *blob.ListObject) *Attrs {
	a := &Attrs{Key: strings.TrimPrefix(o.Key, b.Prefix), Size: o.Size, IsDir: o.IsDir, md5: o.MD5, Updated: o.ModTime}
	var google storage.ObjectAttrs
	if o.As(&google) && !o.IsDir {
		a.fromGoogle(&google)
	}
	return a
}

func (a *Attrs) fromGoogle(g *storage.ObjectAttrs) {
	a.crc, a.hasCRC = g.CRC32C, true
	a.ContentType, a.ContentEncoding, a.Metadata = g.ContentType, g.ContentEncoding, g.Metadata
}

// Stat returns what the bucket tells of an object; the error is [ErrNotExist]
// where there is none.
func (b *Bucket) Stat(ctx context.Context, key string) (*Attrs, error) {
	var got *blob.Attributes
	err := b.do(ctx, "looking at "+b.URL(key), 0, func(ctx context.Context) error {
		name, err := b.object(key)
		if err != nil {
			return err
		}
		got, err = b.blob.Attributes(ctx, name)
		return err
	})
	if err != nil {
		return nil, b.explain("get", key, err)
	}
	a := &Attrs{
		Key: key, Size: got.Size, Metadata: got.Metadata, Updated: got.ModTime, md5: got.MD5,
		ContentType: got.ContentType, ContentEncoding: got.ContentEncoding,
	}
	var google storage.ObjectAttrs
	if got.As(&google) {
		a.fromGoogle(&google)
	} else if crc, err := strconv.ParseUint(got.Metadata[crcKey], 16, 32); err == nil {
		a.crc, a.hasCRC = uint32(crc), true
	}
	return a, nil
}

// ReadAll returns the content of an object, decompressed; one that is over
// limit bytes is an [ErrTooLarge].
func (b *Bucket) ReadAll(ctx context.Context, key string, limit int64) ([]byte, error) {
	var data []byte
	err := b.do(ctx, "reading "+b.URL(key), limit, func(ctx context.Context) error {
		r, err := b.open(ctx, key)
		if err != nil {
			return err
		}
		defer r.Close()
		data, err = io.ReadAll(io.LimitReader(r, limit+1))
		return err
	})
	if err != nil {
		return nil, b.explain("get", key, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("reading %s: %w: over %d bytes", b.URL(key), ErrTooLarge, limit)
	}
	return data, nil
}

// maxJSON is more than any file has by which a build tells of itself.
const maxJSON = 1 << 20

// ReadJSON reads an object of JSON into v, as [json.Unmarshal] does: unknown fields
// are left out. One of over 1 MiB is an [ErrTooLarge]; one that does not fit into v
// is an [ErrMalformed].
func (b *Bucket) ReadJSON(ctx context.Context, key string, v any) error {
	data, err := b.ReadAll(ctx, key, maxJSON)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return &malformedError{err}
	}
	return nil
}

// NewReader opens an object for reading. Only opening it is repeated when it
// fails.
func (b *Bucket) NewReader(ctx context.Context, key string) (io.ReadCloser, error) {
	var r *blob.Reader
	err := b.do(ctx, "reading "+b.URL(key), 0, func(context.Context) error {
		var err error
		r, err = b.open(ctx, key) // outlives the attempt
		return err
	})
	if err != nil {
		return nil, b.explain("get", key, err)
	}
	return r, nil
}

// Put uploads an object. When it returns nil, the store has checked that what
// arrived has the object's checksum. An upload whose answers were lost is looked
// for, and counts when it is there. An error is an [ErrUncertain] where even
// that could not be told; after any other the upload has not arrived.
func (b *Bucket) Put(ctx context.Context, o *Object) error {
	doubtful := false
	err := b.do(ctx, "uploading "+b.URL(o.Key), o.Sum.Size, func(ctx context.Context) error {
		err := b.put(ctx, o)
		doubtful = doubtful || err != nil && b.answers() && worthRepeating(err)
		return err
	})
	if err == nil {
		return nil
	}
	var source sourceError
	denied := b.Scheme == GCS && statusOf(err) == http.StatusForbidden
	if errors.As(err, &source) || !doubtful && !denied && !errors.Is(err, ErrExists) && statusOf(err) != http.StatusPreconditionFailed {
		return b.explain("create", o.Key, err)
	}
	there, arrived, looked := b.patient(few).arrived(ctx, o)
	switch {
	case arrived:
		return nil
	case looked == nil && there && denied:
		return b.explain("replace", o.Key, err)
	case looked != nil && doubtful:
		return fmt.Errorf("%w; %w", b.explain("create", o.Key, err), ErrUncertain)
	}
	return b.explain("create", o.Key, err)
}

// few is how often the bucket is asked what became of a request that failed as
// often as it may.
const few = 3

// patient returns the bucket with at most so many attempts at each request.
func (b *Bucket) patient(attempts int) *Bucket {
	c := *b
	c.retry.Attempts = min(c.retry.Attempts, attempts)
	return &c
}

// Arrived reports whether the bucket holds an object as Put would upload it,
// by its checksum, type and metadata.
func (b *Bucket) Arrived(ctx context.Context, o *Object) (bool, error) {
	_, arrived, err := b.arrived(ctx, o)
	return arrived, err
}

// arrived reports whether there is an object of o's key, and whether it is o.
func (b *Bucket) arrived(ctx context.Context, o *Object) (there, same bool, err error) {
	a, err := b.Stat(ctx, o.Key)
	if errors.Is(err, ErrNotExist) {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	if a.ContentType != o.ContentType || a.ContentEncoding != o.ContentEncoding {
		return true, false, nil
	}
	for k, v := range o.Metadata {
		if a.Metadata[k] != v {
			return true, false, nil
		}
	}
	same, err = b.Same(ctx, a, o.Sum)
	return true, same, err
}

func (b *Bucket) put(ctx context.Context, o *Object) error {
	name, err := b.object(o.Key)
	if err != nil {
		return sourceError{err}
	}
	if o.New && b.Scheme != GCS { // the others have no such condition that all of their kind know
		switch exists, err := b.blob.Exists(ctx, name); {
		case err != nil:
			return err
		case exists:
			return fmt.Errorf("%s %w", b.URL(o.Key), ErrExists)
		}
	}
	source, err := o.Open()
	if err != nil {
		return sourceError{err}
	}
	defer source.Close()
	options := b.writerOptions(o)
	ctx, abort := context.WithCancel(ctx)
	defer abort()
	w, err := b.blob.NewWriter(ctx, name, options)
	if err != nil {
		return err
	}
	sum := newSummer()
	_, err = io.Copy(io.MultiWriter(w, sum), reader{source})
	if err == nil && sum.sum() != o.Sum {
		err = sourceError{fmt.Errorf("%s changed while it was read", path.Base(o.Key))}
	}
	if err != nil {
		abort() // so that Close keeps nothing
	}
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	return err
}

func (b *Bucket) writerOptions(o *Object) *blob.WriterOptions {
	options := &blob.WriterOptions{
		ContentType:     o.ContentType,
		ContentEncoding: o.ContentEncoding,
		Metadata:        maps.Clone(o.Metadata),
	}
	switch b.Scheme {
	case GCS:
		options.BufferSize = -1 // one request, streamed
		options.BeforeWrite = func(as func(any) bool) error {
			var handle **storage.ObjectHandle
			if o.New && as(&handle) {
				*handle = (*handle).If(storage.Conditions{DoesNotExist: true})
			}
			var w *storage.Writer
			if as(&w) {
				w.CRC32C, w.SendCRC32C = o.Sum.CRC32C, true
			}
			return nil
		}
	case S3:
		const part = 8 << 20
		options.BufferSize, options.MaxConcurrency = part, 1
		if options.Metadata == nil {
			options.Metadata = map[string]string{}
		}
		options.Metadata[crcKey] = fmt.Sprintf("%08x", o.Sum.CRC32C)
		options.BeforeWrite = func(as func(any) bool) error {
			var input *s3.PutObjectInput
			if o.Sum.Size < part && as(&input) {
				input.ContentMD5 = aws.String(base64.StdEncoding.EncodeToString(o.Sum.MD5[:]))
			}
			return nil
		}
	}
	return options
}

// Delete removes an object; one that is not there is no error. An error is an
// [ErrUncertain] where it is not known whether the object is still there.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	doubtful := false
	err := b.do(ctx, "removing "+b.URL(key), 0, func(ctx context.Context) error {
		err := b.blob.Delete(ctx, b.key(key))
		doubtful = doubtful || err != nil && b.answers() && worthRepeating(err)
		return err
	})
	if err == nil {
		return nil
	}
	if err = b.explain("delete", key, err); errors.Is(err, ErrNotExist) {
		return nil
	}
	if !doubtful {
		return err
	}
	switch _, looked := b.patient(few).Stat(ctx, key); {
	case errors.Is(looked, ErrNotExist):
		return nil
	case looked != nil:
		return fmt.Errorf("%w; %w", err, ErrUncertain)
	}
	return err
}
