// Package npm gets packages of npm that tests need as they were published: each is
// named with its version and its checksum, kept in the project's cache, and nothing in
// it is run.
package npm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
)

// Package is one package, by its checksum as the registry publishes it.
type Package struct{ Name, Version, Sum string }

// File returns the path of a copy of one of the package's files, in the cache; the
// first time, npm gets it. The error says what is missing.
func (p Package) File(name string) (string, error) {
	cache, err := binaries.DefaultDir(os.Getenv)
	if err != nil {
		return "", err
	}
	file := filepath.Join(cache, "npm", filepath.FromSlash(p.Name), p.Version, filepath.FromSlash(name))
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	data, err := p.download(name)
	if err != nil {
		return "", fmt.Errorf("getting %s of %s %s: %w", name, p.Name, p.Version, err)
	}
	return file, keep(file, data)
}

// keep writes a file that several processes may want at once.
func keep(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "new-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.Write(data)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// download returns one file of the package's archive.
func (p Package) download(name string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "npm-pack-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "pack", "--fetch-retries", "0", "--silent", "--pack-destination", dir, p.Name+"@"+p.Version)
	cmd.Dir = dir
	if output, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("npm pack: %w: %.300s", err, output)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(files) != 1 {
		return nil, fmt.Errorf("npm pack made %d archives", len(files))
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		return nil, err
	}
	sum := sha512.Sum512(data)
	if found := "sha512-" + base64.StdEncoding.EncodeToString(sum[:]); found != p.Sum {
		return nil, fmt.Errorf("its checksum is %s, and not %s", found, p.Sum)
	}
	return unpack(data, name)
}

// unpack returns one file of an archive, which has all of them in one folder.
func unpack(data []byte, name string) ([]byte, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	archive := tar.NewReader(unzipped)
	for {
		header, err := archive.Next()
		if err != nil {
			return nil, fmt.Errorf("looking for it in the package: %w", err)
		}
		if _, inside, _ := strings.Cut(header.Name, "/"); inside == name {
			return io.ReadAll(archive)
		}
	}
}
