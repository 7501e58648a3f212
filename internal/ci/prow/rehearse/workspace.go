package rehearse

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Workspace is the folder of one rehearsal, with the volumes of its pod. As long
// as a process of the rehearsal lives it is held, also when this one was killed.
type Workspace struct {
	// Dir is an absolute path without symbolic links.
	Dir string

	held *os.File
}

const (
	workPrefix = "op-readiness-rehearsal-"
	// ownerFile is in every folder that [Sweep] may remove, and names the cluster
	// that goes with it, if there is one.
	ownerFile = "cluster"
)

// NewWorkspace makes a folder in the system's temporary one.
func NewWorkspace() (*Workspace, error) {
	for {
		dir, err := os.MkdirTemp("", workPrefix+"*")
		if err == nil {
			dir, err = filepath.EvalSymlinks(dir)
		}
		if err != nil {
			return nil, fmt.Errorf("making a folder for the pod: %w", err)
		}
		held, err := hold(dir)
		if errors.Is(err, errHeld) || errors.Is(err, fs.ErrNotExist) {
			continue // somebody sweeps, and took it for another's
		}
		w := &Workspace{Dir: dir, held: held}
		if err == nil {
			err = w.Note("")
		}
		if err != nil {
			return nil, fmt.Errorf("making a folder for the pod: %w", err)
		}
		return w, nil
	}
}

// Note says which cluster goes when the rehearsal does; "" is none.
func (w *Workspace) Note(cluster string) error {
	return os.WriteFile(filepath.Join(w.Dir, ownerFile), []byte(cluster), 0o600)
}

// Keep leaves the folder to people: nothing removes it any more.
func (w *Workspace) Keep() error {
	return errors.Join(os.Remove(filepath.Join(w.Dir, ownerFile)), w.held.Close())
}

// Remove removes the folder.
func (w *Workspace) Remove() error {
	return errors.Join(os.RemoveAll(w.Dir), w.held.Close())
}

// Sweep removes what rehearsals left that were killed: their folders, and with
// down their clusters. Those of which a process still lives stay. It returns the
// folders that it removed; what cannot be removed does not stop it.
func Sweep(down func(cluster string) error) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(os.TempDir(), workPrefix+"*"))
	if err != nil {
		return nil, fmt.Errorf("looking for what rehearsals left: %w", err)
	}
	var removed []string
	var failed []error
	for _, dir := range found {
		ok, err := sweep(dir, down)
		if ok {
			removed = append(removed, dir)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("removing what a rehearsal left in %s: %w", dir, err))
		}
	}
	return removed, errors.Join(failed...)
}

func sweep(dir string, down func(cluster string) error) (bool, error) {
	held, err := hold(dir)
	if err != nil {
		return false, nil // a rehearsal, or not ours
	}
	defer held.Close()
	cluster, err := os.ReadFile(filepath.Join(dir, ownerFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if name := strings.TrimSpace(string(cluster)); name != "" {
		if err := down(name); err != nil {
			return false, err
		}
	}
	return true, os.RemoveAll(dir)
}

// errHeld says that a process has the folder.
var errHeld = errors.New("another process has it")
