// Package ledger remembers the clusters that this user has begun to make on this
// machine: one file a cluster, written before each act, so that after a kill at any
// moment the files name everything that can exist.
//
// A file is <Dir>/<name>.json, of mode 0600, and holds a [provider.Entry]. It is
// replaced as a whole, and is on the disk before the call returns. Ledgers do not
// travel: other machines find clusters by their tags.
package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/whole"
)

// Ledger is a folder of entries.
type Ledger struct {
	// Dir is made when it is needed.
	Dir string
}

// Variable of the environment that says where the ledger is.
const Variable = "OP_READINESS_LEDGER"

// DefaultDir returns $OP_READINESS_LEDGER, or a folder in the user's folder of state
// (https://specifications.freedesktop.org/basedir-spec/latest/).
func DefaultDir(getenv func(string) string) (string, error) {
	if dir := getenv(Variable); dir != "" {
		return filepath.Abs(dir)
	}
	state := getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // as the specification says
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("no place for the ledger of clusters: %w: set %s to a folder", err, Variable)
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "op-readiness", "clusters"), nil
}

// ErrNewer says that an entry is of a newer op-readiness.
var ErrNewer = errors.New("it was written by a newer op-readiness: use that one, or 'op-readiness cluster reap', which goes by what is there")

const (
	suffix = ".json"
	locks  = ".locks"
	// keep is how long an entry of a cluster that is gone stays.
	keep = 7 * 24 * time.Hour
)

// Held is one cluster's entry, which only this process may change until Unlock.
type Held struct {
	ledger *Ledger
	name   string
	lock   *flock.Flock
}

// Lock waits until this process alone may change the named cluster; waiting is called
// once if it has to.
func (l *Ledger) Lock(ctx context.Context, name string, waiting func()) (*Held, error) {
	h, err := l.TryLock(name)
	if err != nil || h != nil {
		return h, err
	}
	waiting()
	lock := flock.New(l.lockFile(name))
	if _, err := lock.TryLockContext(ctx, 200*time.Millisecond); err != nil {
		lock.Close()
		return nil, fmt.Errorf("waiting for the lock on cluster %s: %w", name, err)
	}
	return &Held{l, name, lock}, nil
}

// TryLock is Lock without waiting: it returns nil when somebody else has it.
func (l *Ledger) TryLock(name string) (*Held, error) {
	if err := provider.ValidateName(name); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(l.Dir, locks), 0o700); err != nil {
		return nil, fmt.Errorf("making the ledger of clusters: %w: choose another folder with --ledger", err)
	}
	lock := flock.New(l.lockFile(name))
	held, err := lock.TryLock()
	if err != nil || !held {
		lock.Close()
		if err != nil {
			err = fmt.Errorf("locking cluster %s: %w: choose another folder with --ledger", name, err)
		}
		return nil, err
	}
	return &Held{l, name, lock}, nil
}

func (l *Ledger) lockFile(name string) string { return filepath.Join(l.Dir, locks, name) }
func (l *Ledger) file(name string) string     { return filepath.Join(l.Dir, name+suffix) }

// Busy tells whether somebody is changing the named cluster at this moment.
func (l *Ledger) Busy(name string) bool {
	lock := flock.New(l.lockFile(name))
	defer lock.Close()
	held, err := lock.TryRLock()
	return err == nil && !held
}

// Unlock lets others change the cluster.
func (h *Held) Unlock() { h.lock.Close() }

// Read returns the entry, or nil where there is none.
func (h *Held) Read() (*provider.Entry, error) { return h.ledger.Read(h.name) }

// Write replaces the entry.
func (h *Held) Write(e *provider.Entry) error {
	e.Schema = provider.Schema
	data, err := json.MarshalIndent(e, "", "  ")
	if err == nil {
		err = whole.WriteFile(h.ledger.file(h.name), append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("writing the ledger: %w", err)
	}
	return nil
}

// Read returns the named cluster's entry, or nil where there is none. The error names
// the file.
func (l *Ledger) Read(name string) (*provider.Entry, error) {
	file := l.file(name)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the ledger: %w", err)
	}
	var e provider.Entry
	err = json.Unmarshal(data, &e)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", file, err)
	case e.Schema > provider.Schema:
		return nil, fmt.Errorf("%s: schema %d: %w", file, e.Schema, ErrNewer)
	case e.Plan.Name != name || e.Schema < 1:
		return nil, fmt.Errorf("%s: it is no entry of cluster %s", file, name)
	}
	return &e, nil
}

// Entries returns all entries, sorted by name. The error joins those of files that
// cannot be read; the other entries are there.
func (l *Ledger) Entries() ([]*provider.Entry, error) {
	files, err := os.ReadDir(l.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the ledger: %w", err)
	}
	var entries []*provider.Entry
	var faults []error
	for _, f := range files {
		name, ours := strings.CutSuffix(f.Name(), suffix)
		if !ours || f.IsDir() || provider.ValidateName(name) != nil {
			continue
		}
		e, err := l.Read(name)
		if e != nil {
			entries = append(entries, e)
		}
		faults = append(faults, err)
	}
	slices.SortFunc(entries, func(a, b *provider.Entry) int { return strings.Compare(a.Plan.Name, b.Plan.Name) })
	return entries, errors.Join(faults...)
}

// Forget removes the entry of a cluster that has been gone for a week.
func (h *Held) Forget(now time.Time) error {
	e, err := h.Read()
	if err != nil || e == nil || e.Life != provider.Removed || now.Sub(e.Ended) < keep {
		return err
	}
	return os.Remove(h.ledger.file(h.name))
}
