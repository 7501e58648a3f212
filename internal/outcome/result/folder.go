package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/windows-op-readiness/windows-op-readiness/internal/text"

	"github.com/windows-op-readiness/windows-op-readiness/internal/whole"
)

// The names of the files in a results folder.
const (
	PlanFile     = "plan.json"
	ManifestFile = "run.json"
	EventsFile   = "results.jsonl"
	MetadataFile = "metadata.json"
	LogsDir      = "logs"

	// PreflightFile is what was found before the tests ran.
	PreflightFile = "preflight.json"

	lockFile = ".lock"
)

// MaxMessage is the longest message of an event, in bytes; what is longer is
// cut, and says so.
const MaxMessage = 64 << 10

// ErrInUse says that a running op-readiness holds the results folder.
var ErrInUse = errors.New("another op-readiness is writing into it")

// Folder is a results folder that this process writes. Its methods may be
// called concurrently.
type Folder struct {
	dir  string
	lock *flock.Flock

	mu     sync.Mutex
	events *os.File
	failed error
}

// CheckNew returns an error when dir already holds a run, or cannot be made or
// written. A folder with other files in it is fine.
func CheckNew(dir string) error {
	if err := holdsRun(dir); err != nil {
		return err
	}
	return checkWritable(dir)
}

func holdsRun(dir string) error {
	fix := "name another --report-dir"
	for _, name := range []string{ManifestFile, PlanFile, EventsFile} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			if name == ManifestFile {
				fix += ", or go on with that run: op-readiness run --resume " + dir
			}
			return fmt.Errorf("report folder %s already holds a run (%s exists): %s", dir, name, fix)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("report folder: %w", err)
		}
	}
	return nil
}

// checkWritable returns an error when a report folder cannot be made or
// written: before minutes go by for results that cannot be kept.
func checkWritable(dir string) error {
	at, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("--report-dir: %w", err)
	}
	info, err := os.Stat(at)
	for errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at) {
		at = filepath.Dir(at)
		info, err = os.Stat(at)
	}
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a folder", at)
	}
	if err == nil {
		var file *os.File
		if file, err = os.CreateTemp(at, ".op-readiness-*"); err == nil {
			file.Close()
			err = os.Remove(file.Name())
		}
	}
	if err != nil {
		return fmt.Errorf("--report-dir: results cannot be written to %s: %w: name another folder", dir, err)
	}
	return nil
}

// Create makes dir a results folder for plan and manifest. It refuses a
// folder that already holds a run, and one that another process writes.
func Create(dir string, plan *Plan, manifest *Manifest) (*Folder, error) {
	f, err := open(dir)
	if err != nil {
		return nil, err
	}
	if err := holdsRun(dir); err != nil {
		f.Close()
		return nil, err
	}
	if err := f.WriteJSON(PlanFile, plan); err != nil {
		f.Close()
		return nil, err
	}
	if err := f.WriteJSON(ManifestFile, manifest); err != nil {
		f.Close()
		return nil, err
	}
	return f, f.openEvents()
}

// Reopen opens a results folder that [Create] made, to go on with its run. A
// last event that was cut off in the middle is removed, and so are files that
// were being written.
func Reopen(dir string) (*Folder, error) {
	if _, err := os.Stat(filepath.Join(dir, ManifestFile)); err != nil {
		return nil, fmt.Errorf("%s holds no run to resume: %w", dir, err)
	}
	f, err := open(dir)
	if err != nil {
		return nil, err
	}
	err = f.within(checkFiles)
	if err == nil {
		err = f.within(dropCutLine)
	}
	if err == nil {
		err = f.dropTemporary()
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, f.openEvents()
}

// within calls do with the folder as a root.
func (f *Folder) within(do func(root *os.Root) error) error {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return fmt.Errorf("report folder: %w", err)
	}
	defer root.Close()
	return do(root)
}

func open(dir string) (*Folder, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("report folder %s: %w", dir, err)
	}
	if err := os.MkdirAll(filepath.Join(abs, LogsDir), 0o755); err != nil {
		return nil, fmt.Errorf("making report folder %s: %w", dir, err)
	}
	// The lock is the folder's own: a file for it would be uploaded with the
	// results of a job that was killed.
	lock := flock.New(abs, flock.SetFlag(os.O_RDONLY))
	ok, err := lock.TryLock()
	if err != nil {
		// Not every system and file system locks folders.
		lock = flock.New(filepath.Join(abs, lockFile))
		ok, err = lock.TryLock()
	}
	if err != nil {
		return nil, fmt.Errorf("report folder %s is not writable: %w", dir, err)
	}
	if ok && !sameFile(lock) {
		// Who had the folder let go of it, and removed it or the file, between
		// our opening it and locking it: others would lock another one.
		err := lock.Unlock()
		return nil, errors.Join(fmt.Errorf("report folder %s: %w: try again", dir, ErrInUse), err)
	}
	if !ok {
		return nil, fmt.Errorf("report folder %s: %w: wait for it, or name another --report-dir", dir, ErrInUse)
	}
	return &Folder{dir: abs, lock: lock}, nil
}

// InUse reports whether a process writes a results folder. Where that cannot be
// told, none does.
func InUse(dir string) bool {
	locks := []*flock.Flock{flock.New(dir, flock.SetFlag(os.O_RDONLY))}
	file := filepath.Join(dir, lockFile)
	if info, err := os.Lstat(file); err == nil && info.Mode().IsRegular() {
		locks = append(locks, flock.New(file, flock.SetFlag(os.O_RDONLY)))
	}
	for _, lock := range locks {
		free, err := lock.TryRLock()
		_ = lock.Close() // it was only looked at
		if err == nil && !free {
			return true
		}
	}
	return false
}

// sameFile reports whether what is locked is still what is at its path.
func sameFile(lock *flock.Flock) bool {
	locked, err := lock.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(lock.Path())
	return err == nil && os.SameFile(locked, there)
}

func (f *Folder) dropTemporary() error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return fmt.Errorf("report folder: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), whole.Prefix) {
			if err := os.Remove(f.Path(e.Name())); err != nil {
				return fmt.Errorf("report folder: %w", err)
			}
		}
	}
	return nil
}

func (f *Folder) openEvents() error {
	err := f.within(func(root *os.Root) (err error) {
		f.events, err = openRegular(root, EventsFile, os.O_APPEND|os.O_WRONLY)
		if errors.Is(err, fs.ErrNotExist) {
			f.events, err = root.OpenFile(EventsFile, os.O_CREATE|os.O_EXCL|os.O_APPEND|os.O_WRONLY, 0o644)
		}
		return err
	})
	if err != nil {
		f.Close()
		return fmt.Errorf("report folder: %w", err)
	}
	return nil
}

// CreateLog makes the log of that name, such as "logs/batch-01.log", in place of
// one that a killed run left.
func (f *Folder) CreateLog(name string) (file *os.File, err error) {
	err = f.within(func(root *os.Root) error {
		if err := onlyFolder(root, LogsDir); err != nil {
			return err
		}
		if info, err := root.Lstat(name); err == nil && info.IsDir() {
			return refused(root, name, info)
		}
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		file, err = root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		return err
	})
	return file, err
}

// dropCutLine truncates the events after their last newline.
func dropCutLine(root *os.Root) error {
	path := root.Name() + "/" + EventsFile
	file, err := openRegular(root, EventsFile, os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("report folder: %w", err)
	}
	defer file.Close()
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	const chunk = 64 << 10
	buf := make([]byte, chunk)
	for keep := end; keep > 0; {
		n := min(keep, chunk)
		if _, err := file.ReadAt(buf[:n], keep-n); err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			keep = keep - n + int64(i) + 1
			if keep == end {
				return nil
			}
			return file.Truncate(keep)
		}
		keep -= n
	}
	if end == 0 {
		return nil
	}
	return file.Truncate(0)
}

// Dir returns the folder's absolute path.
func (f *Folder) Dir() string { return f.dir }

// Path returns the absolute path of a file in the folder.
func (f *Folder) Path(name string) string { return filepath.Join(f.dir, name) }

// Append writes events to results.jsonl before it returns. After a failed
// write every further one fails too, so that no event can be lost unseen.
func (f *Folder) Append(events ...Event) error {
	var lines bytes.Buffer
	enc := json.NewEncoder(&lines)
	enc.SetEscapeHTML(false)
	for _, e := range events {
		begin := lines.Len()
		if err := enc.Encode(shortened(e)); err != nil {
			return fmt.Errorf("encoding an event: %w", err)
		}
		if size := lines.Len() - begin; size > maxEventLine {
			return fmt.Errorf("encoding an event: %s of %d bytes, and readers take %d", e.Type, size, maxEventLine)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed != nil {
		return f.failed
	}
	if err := f.follow(); err != nil {
		f.failed = fmt.Errorf("writing results: %w", err)
		return f.failed
	}
	if _, err := f.events.Write(lines.Bytes()); err != nil {
		f.failed = fmt.Errorf("writing results: %w", err)
	}
	return f.failed
}

// absence is for how long the events may be away: not every file system
// replaces a file in one step.
const absence = 5 * time.Second

// follow opens the events anew where another file has taken the place of theirs:
// Prow's sidecar takes secrets out of the artifacts when a job is aborted, by
// writing each file again, while the job still writes. Events that were removed
// are an error: whatever is written after them reaches nobody.
func (f *Folder) follow() error {
	mine, err := f.events.Stat()
	if err != nil {
		return err
	}
	there, err := os.Lstat(f.Path(EventsFile))
	for waited := time.Duration(0); errors.Is(err, fs.ErrNotExist) && waited < absence; waited += absence / 50 {
		time.Sleep(absence / 50)
		there, err = os.Lstat(f.Path(EventsFile))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s was removed while the run wrote it: what it had recorded is lost: run again, with a --report-dir that nobody clears", f.Path(EventsFile))
	case err != nil:
		return err
	case os.SameFile(mine, there), !there.Mode().IsRegular():
		return nil // what is not a file is not written to
	}
	return f.within(func(root *os.Root) error {
		file, err := openRegular(root, EventsFile, os.O_APPEND|os.O_WRONLY)
		if err != nil {
			return err
		}
		f.events.Close()
		f.events = file
		return nil
	})
}

// shortened returns the event with its messages cut to [MaxMessage].
func shortened(e Event) Event {
	if e.Test != nil {
		test := *e.Test
		test.Message, test.Unobserved = Cut(test.Message, MaxMessage), Cut(test.Unobserved, MaxMessage)
		test.Meanwhile = Cut(test.Meanwhile, MaxMessage/8)
		e.Test = &test
	}
	if e.Suite != nil {
		suite := *e.Suite
		suite.Message = Cut(suite.Message, MaxMessage)
		e.Suite = &suite
	}
	return e
}

// WriteJSON writes v as an indented JSON file, in one step: a reader sees the
// old content or the new, never a part.
func (f *Folder) WriteJSON(name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", name, err)
	}
	return f.WriteFile(name, append(data, '\n'))
}

// WriteFile writes a file in one step, as [Folder.WriteJSON] does.
func (f *Folder) WriteFile(name string, data []byte) error {
	return whole.WriteFile(f.Path(name), data, 0o644)
}

// Close lets go of the folder.
func (f *Folder) Close() error {
	var err error
	if f.events != nil {
		err = f.events.Close()
	}
	if f.lock.Path() != f.dir {
		// The lock file goes first: a process that waits for it would otherwise
		// lock a file that is about to vanish.
		err = errors.Join(err, os.Remove(f.lock.Path()))
	}
	return errors.Join(err, f.lock.Unlock())
}

// Cut shortens s to at most limit bytes at a rune boundary, and says how much
// is gone.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	head := text.Head(s, limit)
	return fmt.Sprintf("%s\n… (%d bytes cut)", head, len(s)-len(head))
}
