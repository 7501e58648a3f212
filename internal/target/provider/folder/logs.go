package folder

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/redact"
	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/internal/whole"
)

// KeepLog writes the last 10 MiB of a log to another file, redacted. Of what is no text
// it keeps nothing.
func KeepLog(from, to string) error {
	data, err := Tail(from, 10<<20)
	if err != nil || bytes.IndexByte(data, 0) >= 0 {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return whole.WriteFile(to, []byte(redact.String(string(data))), 0o644)
}

// Ending returns the last lines of a log, at most ten, redacted, for an error: those
// after the first are indented.
func Ending(path string) string {
	data, err := Tail(path, 64<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return "it has no log"
	}
	if err != nil {
		return err.Error()
	}
	said := strings.TrimSpace(shown.Lines(text.CutFront(redact.String(string(data)), 4000)))
	lines := strings.Split(said, "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n\t")
}

// Tail returns the end of a file, of at most limit bytes.
func Tail(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > limit {
		if _, err := f.Seek(-limit, io.SeekEnd); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(io.LimitReader(f, limit))
}
