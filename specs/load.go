package specs

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"
)

//go:embed *.yaml
var embedded embed.FS

var standard struct {
	once sync.Once
	set  *Set
	err  error
}

// Embedded returns the standard that comes with this program. It is read once;
// callers must not change it.
func Embedded() (*Set, error) {
	standard.once.Do(func() { standard.set, _, standard.err = Load(embedded) })
	return standard.set, standard.err
}

// maxFiles is how many spec files a folder may have.
const maxFiles = 1000

// LoadDir loads the spec files of a folder and of the folders in it: every
// *.yaml and *.yml file. Files of this project, of the reference
// implementation, of the KEP and of its first talk are told apart by what they
// hold.
func LoadDir(dir string) (*Set, []Warning, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("loading specs: %w", err)
	}
	if !info.IsDir() {
		return nil, nil, fmt.Errorf("loading specs: %s is a file: name the folder that it is in", dir)
	}
	set, warnings, err := Load(os.DirFS(dir))
	if set == nil && !errors.As(err, new(Problems)) {
		return nil, nil, fmt.Errorf("loading specs from %s: %w", dir, err)
	}
	return set, warnings, err
}

// Load loads the spec files of fsys, as [LoadDir] does. An error about what
// the files say is a [Problems], with all of it.
func Load(fsys fs.FS) (*Set, []Warning, error) {
	files, err := specFiles(fsys)
	if err != nil {
		return nil, nil, err
	}
	if len(files) == 0 {
		return nil, nil, errors.New("no spec files: they end with .yaml or .yml")
	}
	set := &Set{}
	var problems []Problem
	var warnings []Warning
	for _, file := range files {
		r := &reader{file: file}
		data, err := readFile(fsys, file)
		if err != nil {
			r.problem(0, "", "%v", err)
		} else {
			r.guard(func() { r.specFile(data, set) })
		}
		problems = append(problems, r.problems...)
		warnings = append(warnings, r.warnings...)
	}
	problems = append(problems, set.duplicates()...)
	problems, warnings = inOrder(problems), inOrder(warnings)
	if len(problems) > 0 {
		return nil, warnings, Problems(problems)
	}
	return set, warnings, nil
}

func specFiles(fsys fs.FS) ([]string, error) {
	var files []string
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		switch ext := path.Ext(name); {
		case err != nil:
			return err
		case name != "." && (strings.HasPrefix(path.Base(name), ".") || path.Base(name) == "testdata"):
			if entry.IsDir() {
				return fs.SkipDir
			}
		case !entry.IsDir() && (ext == ".yaml" || ext == ".yml"):
			if files = append(files, name); len(files) > maxFiles {
				return fmt.Errorf("more than %d spec files", maxFiles)
			}
		}
		return nil
	})
	slices.Sort(files)
	return files, err
}

// readFile reads one byte more than a spec file may have.
func readFile(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

// specFile reads a file in whatever format it has into set.
func (r *reader) specFile(data []byte, set *Set) {
	root, ok := r.document(data)
	if !ok {
		return
	}
	root = r.resolve(root)
	if root.Kind != yaml.MappingNode {
		r.problem(root.Line, "", "a spec file must be a mapping, not %s", kindOf(root))
		return
	}
	keys := map[string]bool{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		keys[root.Content[i].Value] = true
	}
	switch {
	case keys["cases"]:
		r.nativeFile(root, set)
	case keys["testCases"]:
		r.referenceFile(root, set)
	case keys["tests"]:
		r.kepFile(root, set)
	default:
		r.problem(root.Line, "", "not a spec file: it has no field cases (nor testCases or tests, as older formats have)")
	}
}

func (s *Set) add(c Case, o origin) {
	s.Cases = append(s.Cases, c)
	s.origins = append(s.origins, o)
}

// duplicates finds cases that no version could tell apart.
func (s *Set) duplicates() []Problem {
	var problems []Problem
	type variant struct{ id, from string }
	first := map[variant]int{}
	category := map[string]int{}
	for i, c := range s.Cases {
		if c.ID == "" {
			continue
		}
		o := s.origins[i]
		v := variant{c.ID, c.Kubernetes.From}
		if j, again := first[v]; again {
			problems = append(problems, Problem{File: o.file, Line: o.line, Case: c.ID, Message: fmt.Sprintf(
				"the same id, for the same Kubernetes versions, is already in %s:%d", s.origins[j].file, s.origins[j].line)})
			continue
		}
		first[v] = i
		if j, again := category[c.ID]; again && (s.Cases[j].Category != c.Category || s.Cases[j].Kind != c.Kind) {
			problems = append(problems, Problem{File: o.file, Line: o.line, Case: c.ID, Message: fmt.Sprintf(
				"another variant in %s:%d has category %s and kind %s: they must be the same", s.origins[j].file, s.origins[j].line, s.Cases[j].Category, s.Cases[j].Kind)})
			continue
		}
		category[c.ID] = i
	}
	return problems
}
