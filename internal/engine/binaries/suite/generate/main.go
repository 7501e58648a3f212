// Generate packs the sources of op-readiness.test into suite.zip, always to the
// same content, and gives their module the requirements of the newest pinned
// Kubernetes, to work on them with.
//
//	go run ./internal/engine/binaries/suite/generate suite     # from the top of the repository
package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries/pins"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries/suite"
)

func main() {
	if err := generate(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "generate suite:", err)
		os.Exit(1)
	}
}

func generate(args []string) error {
	if len(args) != 1 {
		return errors.New("give the folder of the sources")
	}
	dir := args[0]
	if err := require(dir); err != nil {
		return err
	}
	packed, err := pack(os.DirFS(dir))
	if err != nil {
		return err
	}
	archive := suite.Archive
	if _, err := os.Stat("suite.go"); err != nil {
		archive = filepath.Join("internal/engine/binaries/suite", archive)
	}
	return os.WriteFile(archive, packed, 0o644)
}

var moduleLine = regexp.MustCompile(`(?m)^module .*$`)

// require writes go.mod and go.sum.
func require(dir string) error {
	versions := pins.Versions("kubernetes")
	mod, sum, ok := pins.Read("kubernetes", versions[len(versions)-1])
	if !ok {
		return errors.New("no Kubernetes is pinned")
	}
	mod = moduleLine.ReplaceAll(mod, []byte("module "+suite.Module))
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), mod, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o644)
}

// pack packs what the binary is made of: the Go files of the suite and the scripts
// that it embeds, and the Go files of its other packages but for their tests.
func pack(sources fs.FS) ([]byte, error) {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	err := fs.WalkDir(sources, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".go", ".ps1", ".sh"}, path.Ext(name)) ||
			strings.HasSuffix(name, "_test.go") && path.Dir(name) != "." {
			return err
		}
		data, err := fs.ReadFile(sources, name)
		if err != nil {
			return err
		}
		w, err := archive.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = archive.Close()
	return out.Bytes(), err
}
