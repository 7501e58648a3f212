package intake

import (
	"archive/zip"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
)

// Zip takes the results folders out of a zip archive of size bytes, such as an
// artifact of GitHub Actions, and puts them into the new folder dir, whose parent
// must exist. Errors call the archive by name, and name the entry. An error is
// an [ErrRefused] or an [ErrNoResults] where the archive is at fault; otherwise
// reading or writing failed, or ctx ended. Whatever the error, dir is not there.
func Zip(ctx context.Context, r io.ReaderAt, size int64, name, dir string, limits Limits) (*Taken, error) {
	z := &zipped{name: name, size: size, limits: limits.withDefaults(), source: &metered{r: r}}
	taken := &Taken{Dir: dir}
	entries, err := z.directory()
	if err != nil {
		return nil, err
	}
	wanted, err := z.choose(entries)
	if err != nil {
		return nil, err
	}
	err = unpack(dir, func(f *folder) error {
		for _, entry := range wanted {
			if err := z.extract(ctx, f, entry); err != nil {
				return err
			}
		}
		if taken.Files = f.files; !f.results {
			return fmt.Errorf("%s %w: no entry, at the top or up to two folders down, is a %s", name, ErrNoResults, result.ManifestFile)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name, "/") {
			taken.LeftOut++
		}
	}
	taken.LeftOut -= taken.Files
	return taken, nil
}

// zipped is an archive that is being read.
type zipped struct {
	name   string
	size   int64
	limits Limits
	source *metered
}

func (z *zipped) refuse(format string, args ...any) error {
	return fmt.Errorf("%s: %s: %w", z.name, fmt.Sprintf(format, args...), ErrRefused)
}

func (z *zipped) refuseEntry(entry, format string, args ...any) error {
	return z.refuse("entry %q: %s", result.Cut(entry, 200), fmt.Sprintf(format, args...))
}

// perEntry is how much of an archive's directory an entry may take on average,
// and endOfDirectory how much is read to find where it is.
const (
	perEntry       = 512
	endOfDirectory = 128 << 10
)

// directory lists the entries. What an archive says of how many there are is
// not believed: reading ends where an honest directory would have.
func (z *zipped) directory() ([]*zip.File, error) {
	if z.size > z.limits.Archive {
		return nil, z.refuse("it has %d bytes, and %s are allowed", z.size, bytesOf(z.limits.Archive))
	}
	z.source.allow(endOfDirectory + int64(z.limits.Entries)*perEntry)
	r, err := zip.NewReader(z.source, z.size)
	over := z.source.over
	z.source.allow(math.MaxInt64)
	switch {
	case over:
		return nil, z.refuse("its directory is too long for %d entries", z.limits.Entries)
	case z.source.failed != nil:
		return nil, fmt.Errorf("reading %s: %w", z.name, z.source.failed)
	case err != nil && !errors.Is(err, zip.ErrInsecurePath): // names are looked at below
		return nil, z.refuse("it is not a zip archive that can be read (%v)", err)
	case len(r.File) > z.limits.Entries:
		return nil, z.refuse("it has %d entries, and %d are allowed", len(r.File), z.limits.Entries)
	}
	return r.File, nil
}

// The bits of an entry that say what it is.
const (
	encrypted   = 0x1
	unixShift   = 16
	unixType    = 0o170000
	unixRegular = 0o100000
	unixFolder  = 0o040000
)

// choose looks at every entry, and returns those that are taken.
func (z *zipped) choose(entries []*zip.File) ([]*zip.File, error) {
	var chosen []*zip.File
	seen := newNames()
	for _, e := range entries {
		if err := harmless(e.Name); err != nil {
			return nil, z.refuseEntry(e.Name, "%v", err)
		}
		if err := seen.add(e.Name); err != nil {
			return nil, z.refuseEntry(e.Name, "%v", err)
		}
		isFolder := strings.HasSuffix(e.Name, "/")
		switch kind := e.ExternalAttrs >> unixShift & unixType; {
		case kind != 0 && kind != unixRegular && kind != unixFolder:
			return nil, z.refuseEntry(e.Name, "it is neither a file nor a folder, but a link or a device (mode %o)", kind)
		case (kind == unixFolder || e.Mode().IsDir()) && !isFolder:
			return nil, z.refuseEntry(e.Name, "it is a folder with the name of a file")
		case isFolder && (e.UncompressedSize64 != 0 || kind == unixRegular):
			return nil, z.refuseEntry(e.Name, "it is a file with the name of a folder")
		case isFolder:
			continue
		}
		take, err := wanted(e.Name, z.limits.Logs)
		switch {
		case err != nil:
			return nil, z.refuseEntry(e.Name, "%v", err)
		case !take:
			continue
		case e.Flags&encrypted != 0:
			return nil, z.refuseEntry(e.Name, "it is encrypted")
		case e.Method != zip.Store && e.Method != zip.Deflate:
			return nil, z.refuseEntry(e.Name, "it is compressed by method %d, and only stored and deflated entries are read", e.Method)
		case e.UncompressedSize64 > uint64(z.limits.File):
			return nil, z.refuseEntry(e.Name, "it has %d bytes, and %s are allowed", e.UncompressedSize64, bytesOf(z.limits.File))
		}
		chosen = append(chosen, e)
	}
	return chosen, z.apart(entries)
}

// localHeader is the shortest there is between the contents of two entries.
const localHeader = 30

// apart checks that no two entries share content: such archives unpack to far
// more than they are large.
func (z *zipped) apart(entries []*zip.File) error {
	type span struct {
		name       string
		begin, end int64
	}
	spans := make([]span, len(entries))
	for i, e := range entries {
		begin, err := e.DataOffset()
		switch {
		case z.source.failed != nil:
			return fmt.Errorf("reading %s: %w", z.name, z.source.failed)
		case err != nil:
			return z.refuseEntry(e.Name, "its content is not where the directory says (%v)", err)
		case begin < localHeader || begin > z.size || e.CompressedSize64 > uint64(z.size-begin):
			return z.refuseEntry(e.Name, "its content lies outside of the archive")
		}
		spans[i] = span{e.Name, begin, begin + int64(e.CompressedSize64)}
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.begin, b.begin) })
	for i := 1; i < len(spans); i++ {
		if spans[i].begin-localHeader < spans[i-1].end {
			return z.refuseEntry(spans[i].name, "it shares content with entry %q", result.Cut(spans[i-1].name, 200))
		}
	}
	return nil
}

// extract writes an entry into the folder.
func (z *zipped) extract(ctx context.Context, f *folder, e *zip.File) (err error) {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	in, err := e.Open()
	if err != nil {
		return z.broken(ctx, e, err)
	}
	defer in.Close()
	out, err := f.create(e.Name)
	if err != nil {
		return fmt.Errorf("unpacking %s: %w", z.name, err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	limit := min(z.limits.File, z.limits.Total-f.total, max(ratioFree-f.total, z.limits.Ratio*int64(e.CompressedSize64)))
	sum := crc32.NewIEEE()
	n, err := copyAtMost(ctx, io.MultiWriter(out, sum), in, limit)
	f.total += n
	switch {
	case errors.Is(err, errOver) && n > z.limits.File:
		return z.refuseEntry(e.Name, "it unpacks to over %s", bytesOf(z.limits.File))
	case errors.Is(err, errOver) && f.total > z.limits.Total:
		return z.refuseEntry(e.Name, "with it, the archive unpacks to over %s", bytesOf(z.limits.Total))
	case errors.Is(err, errOver):
		return z.refuseEntry(e.Name, "over %d bytes come out of one: no results pack that well", z.limits.Ratio)
	case err != nil:
		return z.broken(ctx, e, err)
	case sum.Sum32() != e.CRC32:
		return z.refuseEntry(e.Name, "its content does not have the checksum that the directory says")
	}
	return nil
}

// broken tells apart whose fault an error is.
func (z *zipped) broken(ctx context.Context, e *zip.File, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case z.source.failed != nil:
		return fmt.Errorf("reading %s: %w", z.name, z.source.failed)
	case isWriteError(err):
		return fmt.Errorf("unpacking %s: %w", z.name, err)
	}
	return z.refuseEntry(e.Name, "it cannot be unpacked (%v)", err)
}

// metered lets only so much be read, and remembers how reading failed.
type metered struct {
	r      io.ReaderAt
	left   int64
	over   bool
	failed error
}

func (m *metered) allow(n int64) { m.left = n }

var errMetered = errors.New("more than was allowed to be read")

func (m *metered) ReadAt(p []byte, at int64) (int, error) {
	if at < 0 { // archive/zip tries what an archive says of where things are
		return 0, zip.ErrFormat
	}
	if int64(len(p)) > m.left {
		m.over = true
		return 0, errMetered
	}
	m.left -= int64(len(p))
	n, err := m.r.ReadAt(p, at)
	if err != nil && !errors.Is(err, io.EOF) {
		m.failed = err
	}
	return n, err
}
