//go:build unix

package rehearse

import (
	"errors"
	"os"
	"slices"
	"testing"
)

func TestSweepTakesOnlyWhatNobodyHas(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	space := func(cluster string) *Workspace {
		t.Helper()
		w, err := NewWorkspace()
		if err == nil {
			err = w.Note(cluster)
		}
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	alive, dead, stuck, kept := space("alive"), space("dead"), space("stuck"), space("")
	dead.held.Close()
	stuck.held.Close()
	if err := kept.Keep(); err != nil {
		t.Fatal(err)
	}
	var down []string
	refused := errors.New("it does not go")
	removed, err := Sweep(func(cluster string) error {
		down = append(down, cluster)
		if cluster == "stuck" {
			return refused
		}
		return nil
	})
	if slices.Sort(down); !errors.Is(err, refused) || !slices.Equal(down, []string{"dead", "stuck"}) || !slices.Equal(removed, []string{dead.Dir}) {
		t.Errorf("clusters %v, folders %v: %v", down, removed, err)
	}
	for w, want := range map[*Workspace]bool{alive: true, dead: false, stuck: true, kept: true} {
		if _, err := os.Stat(w.Dir); (err == nil) != want {
			t.Errorf("%s: %v", w.Dir, err)
		}
	}
	if err := alive.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(alive.Dir); err == nil {
		t.Error("the folder of a rehearsal that ended is there")
	}
}
