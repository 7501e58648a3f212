package result

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Find returns the results folders among dirs and directly or two levels
// below them, sorted; artifacts that were downloaded together lie like that. A
// folder of dirs that holds none is an error, and so is one to which a link in
// it leads; dirs themselves may be links.
func Find(dirs []string) ([]string, error) {
	var found []string
	for _, dir := range dirs {
		before := len(found)
		for _, pattern := range []string{ManifestFile, "*/" + ManifestFile, "*/*/" + ManifestFile} {
			matches, err := fs.Glob(os.DirFS(dir), pattern)
			if err != nil {
				return nil, fmt.Errorf("looking for results folders in %s: %w", dir, err)
			}
			for _, m := range matches {
				if err := noLink(dir, path.Dir(m)); err != nil {
					return nil, err
				}
				found = append(found, filepath.Join(dir, filepath.FromSlash(path.Dir(m))))
			}
			if pattern == ManifestFile && len(matches) > 0 {
				break
			}
		}
		if len(found) == before {
			return nil, fmt.Errorf("%s holds no results folder: none of it, and of what lies up to two levels below, has a %s", dir, ManifestFile)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// noLink returns an error when a symbolic link is on the way from dir to a folder
// below it.
func noLink(dir, below string) error {
	at := dir
	for _, name := range strings.Split(below, "/") {
		at = filepath.Join(at, name)
		if name == "." {
			continue
		}
		info, err := os.Lstat(at)
		if err != nil {
			return fmt.Errorf("reading results: %w", err)
		}
		if info.Mode()&os.ModeSymlink != 0 {
			return errors.New("reading results: " + at + " is a symbolic link, which is not followed: name the folder itself")
		}
	}
	return nil
}
