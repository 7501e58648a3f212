package specs_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/windows-op-readiness/windows-op-readiness/test/golden"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Each folder of testdata/load is a folder of spec files; beside it is what
// loading gives: problems, warnings, and cases as JSON.
func TestLoad(t *testing.T) {
	entries, err := os.ReadDir("testdata/load")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		t.Run(e.Name(), func(t *testing.T) {
			set, warnings, err := specs.LoadDir(filepath.Join("testdata", "load", e.Name()))
			var out strings.Builder
			if err != nil {
				if !errors.As(err, new(specs.Problems)) {
					t.Errorf("error is not a Problems: %v", err)
				}
				fmt.Fprintf(&out, "problems:\n%v\n", err)
			}
			for _, w := range warnings {
				fmt.Fprintf(&out, "warning: %v\n", w)
			}
			if set != nil {
				data, err := json.MarshalIndent(set.Cases, "", "  ")
				if err != nil {
					t.Fatal(err)
				}
				out.Write(data)
				out.WriteByte('\n')
			}
			golden.Equal(t, "load/"+e.Name()+".golden", out.String())
		})
	}
}

func TestLoad_every_problem_names_file_and_line(t *testing.T) {
	for _, folder := range []string{"native_typos", "native_inconsistent", "reference_format_mistakes", "native_duplicates"} {
		_, _, err := specs.LoadDir("testdata/load/" + folder)
		var problems specs.Problems
		if !errors.As(err, &problems) || len(problems) == 0 {
			t.Fatalf("%s: got error %v, want problems", folder, err)
		}
		for _, p := range problems {
			if p.File == "" || p.Line == 0 {
				t.Errorf("%s: no place in %q", folder, p)
			}
		}
	}
}

func TestLoad_folder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		filepath.Join(t.TempDir(), "missing"): "no such file",
		file:                                  "is a file: name the folder",
		t.TempDir():                           "no spec files",
	} {
		if _, _, err := specs.LoadDir(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q in it", dir, err, want)
		}
	}
}

func TestLoad_limits(t *testing.T) {
	large := fstest.MapFS{"large.yaml": {Data: []byte("category: Core.Network\n#" + strings.Repeat("x", 1<<20))}}
	if _, _, err := specs.Load(large); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("a large file: got error %v", err)
	}
	bomb := "category: Core.Network\ncases:\n  - &case {id: a, labels: [" + strings.Repeat("x, ", 1000) + "x]}\n" + strings.Repeat("  - *case\n", 1000)
	if _, _, err := specs.Load(fstest.MapFS{"bomb.yaml": {Data: []byte(bomb)}}); err == nil || !strings.Contains(err.Error(), "its aliases make more than") {
		t.Errorf("a file that aliases multiply: got error %v", err)
	}
	deep := "category: " + strings.Repeat("[", 100_000)
	if _, _, err := specs.Load(fstest.MapFS{"deep.yaml": {Data: []byte(deep)}}); err == nil || !strings.Contains(err.Error(), "not YAML") {
		t.Errorf("a deep file: got error %v", err)
	}
	many := fstest.MapFS{}
	for i := range 1100 {
		many[fmt.Sprintf("%d.yaml", i)] = &fstest.MapFile{Data: []byte("x")}
	}
	if _, _, err := specs.Load(many); err == nil || !strings.Contains(err.Error(), "more than 1000") {
		t.Errorf("many files: got error %v", err)
	}
	pipe := fstest.MapFS{"pipe.yaml": {Mode: fs.ModeNamedPipe}}
	if _, _, err := specs.Load(pipe); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a pipe: got error %v", err)
	}
}

func TestLoad_ids_of_other_formats_do_not_depend_on_the_place(t *testing.T) {
	const a = "  - {description: Ability to a, focus: [a]}\n"
	const b = "  - {description: Ability to b, focus: [b]}\n"
	ids := func(text string) map[string]string {
		set, _, err := specs.Load(fstest.MapFS{"spec.yaml": {Data: []byte("category: Core.Network\ntestCases:\n" + text)}})
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for _, c := range set.Cases {
			found[c.Requirement] = c.ID
		}
		return found
	}
	if got := ids("  - {description: 能力, focus: [a]}\n")["能力"]; !strings.HasPrefix(got, "core-network-") {
		t.Errorf("a description without Latin letters: got id %s", got)
	}
	if x, y := ids(a+b), ids(b+a); fmt.Sprint(x) != fmt.Sprint(y) || x["Ability to a"] != "core-network-a" {
		t.Errorf("got %v and %v", x, y)
	}
}

func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		"category: Core.Network\ncases:\n  - {id: a, requirement: b, proof: none, missing: c}\n",
		"category: Core.Network\ntestCases:\n  - {description: a, focus: [b], skip: ['', c]}\n",
		"tests:\n- {ginkgoTag: [a], operationalReadinessDescription: b, kubernetesVersion: 1.30}\n",
		"category: &a Core.Network\ncases: &b\n  - id: *a\n    tests: *b\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		set, _, err := specs.Load(fstest.MapFS{"core-network.yaml": {Data: data}})
		if (set == nil) != (err != nil) {
			t.Fatalf("got set %v and error %v", set, err)
		}
		if err != nil {
			return
		}
		for _, version := range []string{"1.24", "1.36"} {
			cases, err := set.For(version)
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			for i := range cases {
				if seen[cases[i].ID] {
					t.Errorf("case %s twice for %s", cases[i].ID, version)
				}
				seen[cases[i].ID] = true
				for _, s := range cases[i].Tests {
					if s.Focus == "" {
						t.Errorf("case %s selects every test", cases[i].ID)
					}
					if _, err := s.Compile(); err != nil {
						t.Error(err)
					}
				}
			}
			if _, err := specs.Cover(set, version); err != nil {
				t.Error(err)
			}
		}
		specs.Lint(set)
	})
}
