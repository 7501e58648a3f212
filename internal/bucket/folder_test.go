//go:build unix

package bucket

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What lies in a folder in the place of an object is neither waited for nor
// followed, whatever is done with the object.
func TestOnlyRegularFilesAreObjects(t *testing.T) {
	aside := filepath.Join(t.TempDir(), "aside")
	for _, file := range []string{aside, aside + ".attrs"} {
		if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pipe := func(path string) error { return syscall.Mkfifo(path, 0o600) }
	link := func(path string) error { return os.Symlink(aside, path) }
	large := func(path string) error { return os.WriteFile(path, []byte(strings.Repeat(" ", MaxAttrs+1)), 0o600) }
	folder := func(path string) error { return os.Symlink(filepath.Dir(aside), path) }
	for _, c := range []struct {
		name, at, key string
		put           func(string) error
		want          error
		listed        error
	}{
		{"a pipe", "job/1/finished.json", "job/1/finished.json", pipe, ErrNotRegular, nil},
		{"a link", "job/1/finished.json", "job/1/finished.json", link, ErrNotRegular, nil},
		{"a pipe for attributes", "job/1/finished.json.attrs", "job/1/finished.json", pipe, ErrNotRegular, ErrNotRegular},
		{"a link for attributes", "job/1/finished.json.attrs", "job/1/finished.json", link, ErrNotRegular, ErrNotRegular},
		{"endless attributes", "job/1/finished.json.attrs", "job/1/finished.json", large, ErrTooLarge, nil},
		{"a link for the folder", "job/1", "job/1/aside", folder, ErrNotRegular, nil},
		{"a pipe of an escaped name", "job/1/a__0x1__b", "job/1/a\x01b", pipe, fs.ErrInvalid, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			at := filepath.Join(dir, c.at)
			if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := c.put(at); err != nil {
				t.Fatal(err)
			}
			url, err := FileURL(dir)
			if err != nil {
				t.Fatal(err)
			}
			b := open(t, url, Options{})
			t.Chdir(dir) // fileblob looks for the attributes of what it lists from here
			for deed, do := range map[string]func(context.Context) error{
				"ReadAll": func(ctx context.Context) error { _, err := b.ReadAll(ctx, c.key, 10); return err },
				"Stat":    func(ctx context.Context) error { _, err := b.Stat(ctx, c.key); return err },
				"Same": func(ctx context.Context) error {
					_, err := b.Same(ctx, &Attrs{Key: c.key, Size: 1}, object("", "x").Sum)
					return err
				},
				"NewReader": func(ctx context.Context) error {
					r, err := b.NewReader(ctx, c.key)
					if err == nil {
						r.Close()
					}
					return err
				},
				"Download": func(ctx context.Context) error {
					file, err := os.Create(filepath.Join(t.TempDir(), "file"))
					if err != nil {
						return err
					}
					defer file.Close()
					_, err = b.Download(ctx, c.key, 10, file)
					return err
				},
			} {
				if err := do(t.Context()); !errors.Is(err, c.want) {
					t.Errorf("%s: got %v, want %v", deed, err, c.want)
				}
			}
			if err := b.Put(t.Context(), object(c.key, "x")); !errors.Is(err, c.want) {
				t.Errorf("Put: got %v, want %v", err, c.want)
			}
			if err := b.List(t.Context(), ListOptions{Prefix: "job/"}, func(*Attrs) error { return nil }); !errors.Is(err, c.listed) {
				t.Errorf("List: got %v, want %v", err, c.listed)
			}
			if data, err := os.ReadFile(aside); err != nil || string(data) != "{}" {
				t.Errorf("the file aside is now %q, %v", data, err)
			}
		})
	}
}
