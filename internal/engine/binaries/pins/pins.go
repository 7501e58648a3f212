// Package pins holds, for each version that this project builds itself, the
// go.mod and go.sum of the module that builds it: which version of every
// dependency, and its checksum. A build with them uses -mod=readonly, so
// nothing else can get in.
//
// The files are named .pin because Go leaves folders with a go.mod out of
// published modules and cannot embed them. "go generate ./internal/engine/binaries/pins" makes
// them again; "go run ./internal/engine/binaries/pins/generate v1.37.1" adds a version. Their
// format is https://go.dev/ref/mod#go-mod-file.
package pins

import (
	"embed"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

//go:generate go run ./generate

//go:embed */go.mod.pin */go.sum.pin
var files embed.FS

// The names of the two files in a pin's folder.
const (
	ModFile = "go.mod.pin"
	SumFile = "go.sum.pin"
)

// Folder returns the name of the folder that pins family (kubernetes, etcd or
// kwok) at version.
func Folder(family, version string) string { return family + "-" + version }

// Read returns the go.mod and go.sum that pin family at version, and whether
// that version is pinned.
func Read(family, version string) (mod, sum []byte, ok bool) {
	folder := Folder(family, version)
	mod, err := files.ReadFile(folder + "/" + ModFile)
	if err != nil {
		return nil, nil, false
	}
	sum, err = files.ReadFile(folder + "/" + SumFile)
	return mod, sum, err == nil
}

// Versions returns the pinned versions of family, oldest first.
func Versions(family string) []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil
	}
	var versions []string
	for _, entry := range entries {
		if version, ok := strings.CutPrefix(entry.Name(), family+"-"); ok {
			versions = append(versions, version)
		}
	}
	slices.SortFunc(versions, semver.Compare)
	return versions
}
