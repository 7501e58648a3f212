package nodelogs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"

	"github.com/windows-op-readiness/windows-op-readiness/internal/redact"
)

// Limits of what is written: of a file, whose end is kept, and of all of them.
const (
	maxFile  = 10 << 20
	maxTotal = 1 << 30
)

// missingFile says what is missing.
const missingFile = "missing.txt"

// folder is what files are written to, by names that may be hostile.
type folder struct {
	root *os.Root

	mu   sync.Mutex
	left int
}

func openFolder(dir string) (*folder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making a folder for logs: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the folder for logs: %w", err)
	}
	for _, name := range []string{"nodes", "pods", "objects", missingFile} {
		if _, err := root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			root.Close()
			return nil, fmt.Errorf("%s holds logs already (%s): name another folder", dir, name)
		}
	}
	return &folder{root: root, left: maxTotal}, nil
}

func (f *folder) close() { f.root.Close() }

// file is the path of a file, each part of which is a name from a cluster.
func file(parts ...string) string {
	for i, part := range parts {
		parts[i] = fileName(part)
	}
	return path.Join(parts...)
}

// fileName makes one name of a file or folder of any text: what the names of
// Kubernetes are made of stays, but for a dot at the beginning, and the rest is
// written as %XX.
func fileName(name string) string {
	const most = 200
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		plain := c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '.' && i > 0
		if plain {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
		if b.Len() > most {
			break
		}
	}
	if b.Len() == 0 {
		return "%"
	}
	return b.String()
}

// errFull says that all that may be written is.
var errFull = fmt.Errorf("not written: the logs have %d MiB already, which is the limit", maxTotal>>20)

// write writes a new file.
func (f *folder) write(name string, data []byte) error {
	f.mu.Lock()
	f.left -= len(data)
	full := f.left < 0
	f.mu.Unlock()
	if full {
		return errFull
	}
	if err := f.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	to, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = to.Write(data)
	return errors.Join(err, to.Close())
}

func (f *folder) writeMissing(all []Missing) error {
	var b bytes.Buffer
	for _, m := range all {
		fmt.Fprintf(&b, "%s: %s\n", m.What, m.Reason)
	}
	if len(all) == 0 {
		b.WriteString("nothing is missing\n")
	}
	f.mu.Lock()
	f.left += b.Len() // this one is written in any case
	f.left = max(f.left, b.Len())
	f.mu.Unlock()
	return f.write(missingFile, b.Bytes())
}

// tail keeps the end of what is written to it, from the beginning of a line.
type tail struct {
	limit int
	data  []byte
	cut   bool
}

// Write implements [io.Writer].
func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if len(p) > t.limit {
		p = p[len(p)-t.limit:]
		t.cut = true
	}
	if t.data = append(t.data, p...); len(t.data) > 2*t.limit {
		t.data = append(t.data[:0], t.data[len(t.data)-t.limit:]...)
		t.cut = true
	}
	return n, nil
}

func (t *tail) end() []byte {
	data := t.data
	if len(data) > t.limit {
		data, t.cut = data[len(data)-t.limit:], true
	}
	if t.cut {
		if _, rest, is := bytes.Cut(data, []byte("\n")); is {
			data = rest
		}
	}
	return data
}

// nothing is the error of who has found out that there is no log. What was written
// is no part of one.
type nothing string

func (n nothing) Error() string { return string(n) }

// read returns the end of what get writes, without secrets. The error is get's.
func read(get func(io.Writer) error) (data []byte, cut bool, err error) {
	t := &tail{limit: maxFile}
	w := redact.NewWriter(t)
	err = get(w)
	err = errors.Join(err, w.Close())
	return t.end(), t.cut, err
}
