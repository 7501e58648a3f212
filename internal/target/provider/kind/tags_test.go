//go:build unix

package kind_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/folder"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kind"
)

// withVolumes is a provider whose engine has these volumes, by name, with their labels,
// and no container.
func withVolumes(t *testing.T, volumes map[string]map[string]string) *kind.Provider {
	t.Helper()
	var names string
	var inspected []map[string]any
	for name, labels := range volumes {
		names += name + "\n"
		inspected = append(inspected, map[string]any{"Name": name, "Labels": labels})
	}
	data, err := json.Marshal(inspected)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string][]byte{"names": []byte(names), "inspected": data} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return providerWith(t, map[string]string{"docker": fmt.Sprintf(`#!/bin/sh
case "$1 $2" in
"info --format") echo the-fake ;;
"volume ls") while read -r line; do echo "$line"; done <%[1]s/names ;;
"volume inspect") IFS= read -r line <%[1]s/inspected; printf '%%s\n' "$line" ;;
"ps --all") ;;
*) echo "unexpected: $*" >&2; exit 1 ;;
esac
`, dir)})
}

func tagged(owner, run, expires string) map[string]string {
	return map[string]string{"op-readiness-owner": owner, "op-readiness-run": run, "op-readiness-expires": expires}
}

func TestListGoesByTagsAndBelievesNoneBlindly(t *testing.T) {
	p := withVolumes(t, map[string]map[string]string{
		"op-readiness-good":             tagged("octo/app", "8123-1-2", "1800000000"),
		"op-readiness-twice":            tagged("octo/app", "1", "1900000000"),
		"op-readiness-twice.1850000000": tagged("octo/app", "1", "1850000000"),
		"op-readiness-part":             tagged("octo/app", "2", "soon"),
		"op-readiness-part.1850000001":  tagged("octo/app", "2", "1850000001"),
		"op-readiness-hostile":          tagged("\x1b[31mred\n::error::x", "a\u202eb", "99999999999999999999"),
		"op-readiness-far":              tagged("octo/app", "3", "253402300801"),
		"op-readiness-past":             tagged("octo/app", "3", "-5"),
		"op-readiness-nobodys":          {"op-readiness-run": "1"},
		"op-readiness-../../etc":        tagged("octo/app", "4", "1800000000"),
		"op-readiness-UPPER":            tagged("octo/app", "4", "1800000000"),
		"op-readiness-":                 tagged("octo/app", "4", "1800000000"),
		"somebody-elses":                tagged("octo/app", "4", "1800000000"),
		"op-readiness---force":          tagged("octo/app", "4", "1800000000"),
	})
	all, err := p.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }
	want := []provider.Found{
		{Owner: "octo/app", Run: "3", Cluster: provider.Cluster{Name: "far"}},
		{Owner: "octo/app", Run: "8123-1-2", Expires: at(1800000000), Cluster: provider.Cluster{Name: "good"}},
		{Cluster: provider.Cluster{Name: "hostile"}},
		{Owner: "octo/app", Run: "2", Expires: at(1850000001), Cluster: provider.Cluster{Name: "part"}},
		{Owner: "octo/app", Run: "3", Cluster: provider.Cluster{Name: "past"}},
		{Owner: "octo/app", Run: "1", Expires: at(1850000000), Cluster: provider.Cluster{Name: "twice"}},
	}
	if len(all) != len(want) {
		t.Fatalf("listed %+v", all)
	}
	for i, f := range all {
		if f.Name != want[i].Name || f.Owner != want[i].Owner || f.Run != want[i].Run || !f.Expires.Equal(want[i].Expires) {
			t.Errorf("listed %+v, want %+v", f, want[i])
		}
		if f.State != provider.Broken || f.Provider != kind.ProviderName {
			t.Errorf("%s is %s of %s, want it broken", f.Name, f.State, f.Provider)
		}
	}
}

func TestWithoutAnEngineThereIsNothingUnlessAFolderSaysSo(t *testing.T) {
	p := providerWith(t, map[string]string{"docker": refuses})
	if all, err := p.List(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("listed %v, %v", all, err)
	}
	dir := filepath.Join(p.Dir, "mine")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cluster.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := p.List(t.Context())
	wants(t, err, "cluster mine", "Is it running?", "start its container engine")
}

func TestWhatHasTheNameAndNotOurTagsIsForeign(t *testing.T) {
	p := withVolumes(t, map[string]map[string]string{
		"op-readiness-mine":   tagged("octo/app", "1", "1800000000"),
		"op-readiness-theirs": {"some": "label"},
	})
	for name, want := range map[string]string{"mine": "", "none": "", "theirs": "docker volume op-readiness-theirs"} {
		if got, err := p.Foreign(t.Context(), name); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	if err := os.MkdirAll(filepath.Join(p.Dir, "notes", "of-mine"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := p.Foreign(t.Context(), "notes"); err != nil || got != "folder "+filepath.Join(p.Dir, "notes") {
		t.Errorf("notes: %q, %v", got, err)
	}
}

// Another daemon has nothing of the cluster, and that says nothing about it.
func TestDownDoesNotAskAnotherDaemon(t *testing.T) {
	p := withVolumes(t, nil)
	e := &provider.Entry{Plan: provider.Plan{Request: provider.Request{Name: "mine", Set: map[string]string{kind.Engine: "docker"}}}}
	f, err := folder.In(p.Dir, "mine")
	if err != nil {
		t.Fatal(err)
	}
	for where, part := range map[string]string{"the-fake": "", "elsewhere": "it is in another docker (elsewhere): set what leads there"} {
		if err := f.Make(&folder.Record{Plan: e.Plan, Where: where}); err != nil {
			t.Fatal(err)
		}
		if err := p.Down(t.Context(), e); part == "" && err != nil {
			t.Errorf("with its own: %v", err)
		} else if part != "" {
			wants(t, err, part, f.Dir)
		}
		if f.Exists() != (part != "") {
			t.Errorf("%s: the folder exists: %v", where, f.Exists())
		}
		if err := f.Remove(); err != nil {
			t.Fatal(err)
		}
	}
}
