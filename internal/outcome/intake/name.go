package intake

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
)

// The limits of a name. Results folders lie at most two folders deep, as
// [result.Find] looks for them.
const (
	maxName    = 1024
	maxFolder  = 100
	maxFolders = 2
	maxLogDirs = 2
	maxParts   = 32
)

var (
	junitName  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^junit_[A-Za-z0-9-]{1,60}_[0-9]{2,6}\.xml$`) })
	logName    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}\.log$`) })
	folderName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._+=@,() -]*[A-Za-z0-9_+=@,()-])?$`)
	// device are names that Windows keeps for itself, with any extension.
	device = regexp.MustCompile(`(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?$`)
)

// isResults reports whether a results folder may hold a file of that name.
func isResults(base string) bool {
	switch base {
	case result.PlanFile, result.ManifestFile, result.EventsFile, result.MetadataFile:
		return true
	}
	return junitName().MatchString(base)
}

// harmless returns an error when a name could lead a careless reader elsewhere
// than below the folder that it unpacks into, on any operating system.
func harmless(name string) error {
	switch {
	case name == "":
		return errors.New("it has no name")
	case len(name) > maxName:
		return fmt.Errorf("its name is over %d bytes", maxName)
	case !utf8.ValidString(name):
		return errors.New("its name is not UTF-8")
	case strings.ContainsFunc(name, unicode.IsControl):
		return errors.New("its name has control characters")
	case strings.ContainsRune(name, '\\'):
		return errors.New("its name has a backslash")
	case strings.HasPrefix(name, "/"):
		return errors.New("its name is an absolute path")
	case strings.ContainsRune(name, ':'):
		return errors.New("its name has a colon, as drives and streams of Windows do")
	}
	parts := strings.Split(strings.TrimSuffix(name, "/"), "/")
	if len(parts) > maxParts {
		return fmt.Errorf("its path is over %d folders deep", maxParts)
	}
	for _, part := range parts {
		switch part {
		case "..":
			return errors.New("its path leads upwards")
		case "", ".":
			return errors.New("its path has an empty element")
		}
	}
	return nil
}

// wanted reports whether a file belongs to a results folder. One that does, in
// a folder whose name cannot be one everywhere, is an error.
func wanted(name string, logs bool) (bool, error) {
	dir, base := path.Split(name)
	var folders []string
	if dir != "" {
		folders = strings.Split(strings.TrimSuffix(dir, "/"), "/")
	}
	deepest := maxFolders
	if at := slices.Index(folders, result.LogsDir); at >= 0 {
		if !logs || at > maxFolders || !logName().MatchString(base) {
			return false, nil
		}
		deepest = at + 1 + maxLogDirs
	} else if !isResults(base) {
		return false, nil
	}
	if len(folders) > deepest {
		return false, nil
	}
	for _, f := range folders {
		if len(f) > maxFolder || !folderName.MatchString(f) || device.MatchString(f) {
			return false, fmt.Errorf("the name of its folder %q cannot be one everywhere: folders of results have letters, digits and ._+=@,()- in their names, and at most %d of them", f, maxFolder)
		}
	}
	if device.MatchString(base) {
		return false, errors.New("its name is one that Windows keeps for itself")
	}
	return true, nil
}

// names knows those that were seen, and refuses what some file systems take
// for the same.
type names struct{ files, folders map[string]string }

func newNames() *names { return &names{map[string]string{}, map[string]string{}} }

func (n *names) add(name string) error {
	file := strings.TrimSuffix(name, "/")
	if !strings.HasSuffix(name, "/") {
		if _, there := n.folders[fold(file)]; there {
			return errors.New("there is a folder of that name, too")
		}
		if other, there := n.files[fold(file)]; there {
			if other == file {
				return errors.New("it is there twice")
			}
			return fmt.Errorf("its name differs from that of %q by case only", other)
		}
		n.files[fold(file)] = file
		file = path.Dir(file)
	}
	for ; file != "."; file = path.Dir(file) {
		if _, there := n.files[fold(file)]; there {
			return fmt.Errorf("its folder %q is a file, too", file)
		}
		if other, there := n.folders[fold(file)]; there && other != file {
			return fmt.Errorf("the name of its folder differs from %q by case only", other)
		}
		n.folders[fold(file)] = file
	}
	return nil
}

// fold maps names that differ by case only to the same one: upper case first,
// since some letters share only that.
func fold(s string) string { return strings.ToLower(strings.ToUpper(s)) }
