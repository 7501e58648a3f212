package bucket

import (
	"context"
	"fmt"
	"io"
	"os"
)

// Download writes the content of an object, decompressed, into an empty file,
// and returns how many bytes it has. A transfer that fails is repeated from its
// beginning. An object with more than limit bytes is an [ErrTooLarge]; the file
// may have some of them then.
func (b *Bucket) Download(ctx context.Context, key string, limit int64, file *os.File) (int64, error) {
	var n int64
	err := b.do(ctx, "reading "+b.URL(key), limit, func(ctx context.Context) error {
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return sourceError{err}
		}
		if err := file.Truncate(0); err != nil {
			return sourceError{err}
		}
		r, err := b.open(ctx, key)
		if err != nil {
			return err
		}
		defer r.Close()
		n, err = io.Copy(ownFile{file}, io.LimitReader(r, limit+1))
		return err
	})
	switch {
	case err != nil:
		return n, b.explain("get", key, err)
	case n > limit:
		return n, fmt.Errorf("reading %s: %w: over %d bytes", b.URL(key), ErrTooLarge, limit)
	}
	return n, nil
}

// ownFile marks errors of writing as this machine's: nothing is gained by
// asking the bucket once more.
type ownFile struct{ *os.File }

func (f ownFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	if err != nil {
		err = sourceError{err}
	}
	return n, err
}
