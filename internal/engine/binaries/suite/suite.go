// Package suite carries the sources of op-readiness.test, from which the program
// builds it for the Kubernetes version of a cluster. They are kept in a module of
// their own, folder suite of the repository, which Go can neither embed nor take
// into the published module; so "go generate ./internal/engine/binaries/suite"
// packs them into suite.zip.
package suite

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/mod/sumdb/dirhash"
)

//go:generate go run ./generate ../../../../suite

// Module is the path of the module that the sources are in.
const Module = "github.com/windows-op-readiness/windows-op-readiness/suite"

// Archive is the name of the packed sources.
const Archive = "suite.zip"

//go:embed suite.zip
var packed []byte

// Hash identifies the sources: "h1:" and what golang.org/x/mod/sumdb/dirhash makes
// of them. op-readiness.test is built to say it.
var Hash = sync.OnceValue(func() string {
	hash, err := hashOf(packed)
	if err != nil {
		panic(Archive + ": " + err.Error()) // a test reads it
	}
	return hash
})

// hashOf returns the hash of packed sources.
func hashOf(archive []byte) (string, error) {
	files, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return "", err
	}
	var names []string
	for _, f := range files.File {
		names = append(names, f.Name)
	}
	return dirhash.Hash1(names, func(name string) (io.ReadCloser, error) { return files.Open(name) })
}

// Unpack writes the sources into a folder.
func Unpack(dir string) error {
	files, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		return fmt.Errorf("%s: %w", Archive, err)
	}
	return os.CopyFS(filepath.Clean(dir), files)
}
