package suite

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/dirhash"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries/pins"
)

const again = "run go generate ./internal/engine/binaries/suite, and commit what it writes"

// sources returns folder suite of the repository.
func sources(t *testing.T) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "..", "suite")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("only the repository has the folder of the sources, and the published module has not: %v", err)
	}
	return dir
}

// sourceFiles returns the content of the Go files and scripts below a folder, by path.
func sourceFiles(t *testing.T, dir fs.FS) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(dir, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".go", ".ps1", ".sh"}, path.Ext(name)) {
			return err
		}
		data, err := fs.ReadFile(dir, name)
		found[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func open(t *testing.T, archive []byte) *zip.Reader {
	t.Helper()
	files, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestTheArchiveHoldsTheSources(t *testing.T) {
	t.Parallel()
	want := sourceFiles(t, os.DirFS(sources(t)))
	for name := range want {
		if strings.HasSuffix(name, "_test.go") && strings.Contains(name, "/") {
			delete(want, name) // tests of a package that the suite imports
		}
	}
	if len(want) == 0 {
		t.Fatal("there are no sources")
	}
	archive := open(t, packed)
	is := sourceFiles(t, archive)
	for _, f := range archive.File {
		switch content, there := want[f.Name]; {
		case !there:
			t.Errorf("%s is packed, and no source, or packed twice: %s", f.Name, again)
		case content != is[f.Name]:
			t.Errorf("%s is packed with another content: %s", f.Name, again)
		}
		delete(want, f.Name)
	}
	for name := range want {
		t.Errorf("%s is not packed: %s", name, again)
	}
}

func TestTheSourcesRequireWhatTheNewestPinDoes(t *testing.T) {
	t.Parallel()
	dir := sources(t)
	versions := pins.Versions("kubernetes")
	newest := versions[len(versions)-1]
	mod, sum, _ := pins.Read("kubernetes", newest)
	line, rest, _ := strings.Cut(string(mod), "\n")
	if !strings.HasPrefix(line, "module ") {
		t.Fatalf("the pin begins with %q", line)
	}
	for name, want := range map[string]string{"go.mod": "module " + Module + "\n" + rest, "go.sum": string(sum)} {
		is, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if string(is) != want {
			t.Errorf("suite/%s is not that of Kubernetes %s: %s", name, newest, again)
		}
	}
}

func TestUnpackWritesTheFilesThatAreHashed(t *testing.T) {
	t.Parallel()
	there := t.TempDir()
	for _, dir := range []string{there, filepath.Join(t.TempDir(), "not yet", "there")} {
		if err := Unpack(dir); err != nil {
			t.Fatal(err)
		}
		hash, err := dirhash.HashDir(dir, "", dirhash.Hash1) // of all that is there
		if err != nil {
			t.Fatal(err)
		}
		if hash != Hash() {
			t.Errorf("%s has the hash %s, and Hash is %s", dir, hash, Hash())
		}
	}
}

// packing is a way to pack the same files.
type packing struct {
	method  uint16
	reverse bool
}

func pack(t *testing.T, files map[string]string, how packing) []byte {
	t.Helper()
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	if how.reverse {
		slices.Reverse(names)
	}
	for _, name := range names {
		w, err := archive.CreateHeader(&zip.FileHeader{Name: name, Method: how.method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestTheHashIsOfNamesAndContents(t *testing.T) {
	t.Parallel()
	for _, how := range []packing{{zip.Deflate, false}, {zip.Store, true}} {
		if hash := hashIt(t, pack(t, sourceFiles(t, open(t, packed)), how)); hash != Hash() {
			t.Errorf("the same files, packed as %+v, have another hash", how)
		}
	}
	const name = "suite_test.go"
	for what, change := range map[string]func(files map[string]string){
		"a byte":      func(files map[string]string) { files[name] = "q" + files[name][1:] },
		"a name":      func(files map[string]string) { files["a_test.go"] = files[name]; delete(files, name) },
		"a file more": func(files map[string]string) { files["judge/empty.go"] = "" },
		"a file less": func(files map[string]string) { delete(files, name) },
	} {
		files := sourceFiles(t, open(t, packed))
		if files[name] == "" {
			t.Fatalf("%s is not packed", name)
		}
		change(files)
		if hashIt(t, pack(t, files, packing{})) == Hash() {
			t.Errorf("%s is changed, and the hash is the same", what)
		}
	}
}

func hashIt(t *testing.T, archive []byte) string {
	t.Helper()
	hash, err := hashOf(archive)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func TestWhatIsNoArchiveHasNoHash(t *testing.T) {
	t.Parallel()
	if hash, err := hashOf(packed[:len(packed)/2]); err == nil {
		t.Errorf("half an archive has the hash %s", hash)
	}
}
