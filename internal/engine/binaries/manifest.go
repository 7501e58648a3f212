package binaries

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/whole"
)

// Manifest is the record beside a cached binary of what was put there.
type Manifest struct {
	Name    Name   `json:"name"`
	Version string `json:"version"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	SHA256  string `json:"sha256"`
	Size    int64  `json:"size"`
	// Modified is the file's time when its content was last hashed: as long
	// as it and Size are the same, the content is taken to be.
	Modified time.Time `json:"modified"`
	// Source is release or build; From is the address or the Go package.
	Source   Source    `json:"source"`
	From     string    `json:"from"`
	Obtained time.Time `json:"obtained"`
}

const manifestSuffix = ".manifest.json"

// CorruptError says that a cached binary is not what was put into the cache.
type CorruptError struct {
	Path string
	// Expected and Found are what the record says and what is there.
	Expected, Found string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s is not what was put into the cache: expected %s, found %s: delete it and run the command again to obtain a new copy: rm %q %q",
		e.Path, e.Expected, e.Found, e.Path, e.Path+manifestSuffix)
}

// missing returns those of names that are not in the cache, or an error when
// one that is there is not what was put there.
func (s *Store) missing(c component, names []Name) ([]Name, error) {
	var missing []Name
	for _, name := range names {
		there, err := s.check(c, name, false)
		if err != nil {
			return nil, err
		}
		if !there {
			missing = append(missing, name)
		}
	}
	return missing, nil
}

// check tells whether the cache holds a binary, and returns an error when the
// file there is not the one that was recorded. The content is hashed when the
// file's size or time have changed, or when thorough.
//
// A file without a record is what an interrupted attempt left: not there.
func (s *Store) check(c component, name Name, thorough bool) (bool, error) {
	path := s.path(c, name)
	recorded, err := readManifest(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	goos, goarch := s.system()
	want := fmt.Sprintf("%s %s for %s/%s", name, c.version, goos, goarch)
	is := fmt.Sprintf("%s %s for %s/%s", recorded.Name, recorded.Version, recorded.OS, recorded.Arch)
	if is != want {
		return false, &CorruptError{Path: path, Expected: want, Found: is}
	}
	return verify(path, recorded, thorough)
}

// verify compares the file at path with its record.
func verify(path string, recorded *Manifest, thorough bool) (bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if info.Size() != recorded.Size {
		return false, &CorruptError{path, fmt.Sprintf("%d bytes", recorded.Size), fmt.Sprintf("%d bytes", info.Size())}
	}
	if sameTime := info.ModTime().Equal(recorded.Modified); !sameTime || thorough {
		sum, err := hashFile(path)
		if err != nil {
			return false, err
		}
		if sum != recorded.SHA256 {
			return false, &CorruptError{path, "SHA-256 " + recorded.SHA256, "SHA-256 " + sum}
		}
		if !sameTime {
			// A restored copy: note its time, so that it is hashed only once.
			// Failing to, as in a read-only cache, costs no more than time.
			recorded.Modified = info.ModTime()
			_ = writeManifest(path, recorded)
		}
	}
	if info.Mode().Perm()&0o100 == 0 {
		if err := os.Chmod(path, 0o755); err != nil {
			return false, fmt.Errorf("making %s executable again: %w", path, err)
		}
	}
	return true, nil
}

// publish proves that the finished file at temp is the named binary and puts
// it into the cache.
func (s *Store) publish(ctx context.Context, c component, name Name, temp string, source Source, from string) error {
	if err := os.Chmod(temp, 0o755); err != nil {
		return err
	}
	if err := s.prove(ctx, c, name, temp); err != nil {
		return err
	}
	if err := syncFile(temp); err != nil {
		return err
	}
	sum, err := hashFile(temp)
	if err != nil {
		return err
	}
	path := s.path(c, name)
	// A record without its binary, as after deleting that alone, must not be
	// taken for the record of the new one.
	if err := os.Remove(path + manifestSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	goos, goarch := s.system()
	return writeManifest(path, &Manifest{
		Name: name, Version: c.version, OS: goos, Arch: goarch,
		SHA256: sum, Size: info.Size(), Modified: info.ModTime(),
		Source: source, From: from, Obtained: s.now().UTC().Truncate(time.Second),
	})
}

// Entry is one binary in the cache.
type Entry struct {
	Manifest
	Path string `json:"path"`
	// Problem says why the binary would be refused; empty when it is sound.
	Problem string `json:"problem,omitempty"`
}

// List returns what is in the cache, sorted by path. Each file is compared
// with its record; its content is hashed when thorough or when it looks
// changed.
func (s *Store) List(thorough bool) ([]Entry, error) {
	var entries []Entry
	for _, f := range families {
		found, err := filepath.Glob(filepath.Join(escapeGlob(s.Dir), string(f), "*", "*", "*"+manifestSuffix))
		if err != nil {
			return nil, fmt.Errorf("listing the cache: %w", err)
		}
		for _, file := range found {
			path := strings.TrimSuffix(file, manifestSuffix)
			recorded, err := readManifest(path)
			if err != nil {
				entries = append(entries, Entry{Path: path, Manifest: Manifest{Name: Name(filepath.Base(path))}, Problem: err.Error()})
				continue
			}
			entry := Entry{Path: path, Manifest: *recorded}
			there, err := verify(path, recorded, thorough)
			switch {
			case err != nil:
				entry.Problem = err.Error()
			case !there:
				continue // as good as absent: the next Get obtains it
			}
			entries = append(entries, entry)
		}
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Path < entries[j].Path })
	return entries, nil
}

// escapeGlob makes path match itself in a pattern.
func escapeGlob(path string) string {
	return strings.NewReplacer(`*`, `[*]`, `?`, `[?]`, `[`, `[[]`).Replace(path)
}

func readManifest(path string) (*Manifest, error) {
	data, err := os.ReadFile(path + manifestSuffix)
	if err != nil {
		return nil, err
	}
	var recorded Manifest
	if err := json.Unmarshal(data, &recorded); err != nil {
		return nil, &CorruptError{path, "a record of it in " + path + manifestSuffix, "one that is not JSON (" + err.Error() + ")"}
	}
	return &recorded, nil
}

func writeManifest(path string, recorded *Manifest) error {
	data, err := json.MarshalIndent(recorded, "", "  ")
	if err != nil {
		return err
	}
	return whole.WriteFile(path+manifestSuffix, append(data, '\n'), 0o644)
}

func hashFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", fmt.Errorf("hashing %s: %w", path, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

func syncFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	return file.Sync()
}
