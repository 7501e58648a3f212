package result

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// ErrNotRegular says that something lies in a results folder in the place of a
// file, or of the folder of logs, that is none: a link, a pipe, a device.
var ErrNotRegular = errors.New("it is not a regular file")

// maxLogs is how many files one folder's logs may have.
const maxLogs = 10_000

// Open opens a file of the results folder dir for reading. Nothing but a regular
// file is opened ([ErrNotRegular]), and nothing through a link; dir itself may
// be one. The name has slashes.
func Open(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return openRegular(root, name, os.O_RDONLY)
}

// openRegular opens a file below root. Who may write into the folder can put
// something else in the file's place at any moment, so what was opened is
// compared with what was looked at.
func openRegular(root *os.Root, name string, flag int) (*os.File, error) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if err := onlyFolder(root, dir); err != nil {
			return nil, err
		}
	}
	there, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !there.Mode().IsRegular() {
		return nil, refused(root, name, there)
	}
	file, err := root.OpenFile(name, flag|nonBlocking, 0)
	if err != nil {
		return nil, err
	}
	if opened, err := file.Stat(); err != nil || !os.SameFile(there, opened) {
		file.Close()
		return nil, errors.Join(err, refused(root, name, there))
	}
	return file, nil
}

// onlyFolder returns an error when what lies at name is there and no folder.
func onlyFolder(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return refused(root, name, info)
	}
	return nil
}

func refused(root *os.Root, name string, info fs.FileInfo) error {
	what := "a device"
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0:
		what = "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		what = "a pipe"
	case mode.IsDir():
		what = "a folder"
	case mode.IsRegular():
		what = "another file than a moment ago"
	}
	return fmt.Errorf("%s/%s is %s: %w, and nothing else is read from a results folder", root.Name(), name, what, ErrNotRegular)
}

// checkFiles returns an error when a file that is read, copied or uploaded is no
// regular one, or the folder of logs holds anything but such files.
func checkFiles(root *os.Root) error {
	for _, name := range []string{PlanFile, ManifestFile, EventsFile, MetadataFile, PreflightFile} {
		info, err := root.Lstat(name)
		if err == nil && !info.Mode().IsRegular() {
			return refused(root, name, info)
		}
	}
	return eachLog(root, func(string) error { return nil })
}

// eachLog calls take with the name of every log of a results folder, such as
// "logs/batch-01.log". Anything that is neither a file nor a folder is an error.
func eachLog(root *os.Root, take func(name string) error) error {
	if _, err := root.Lstat(LogsDir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := onlyFolder(root, LogsDir); err != nil {
		return err
	}
	count := 0
	return fs.WalkDir(root.FS(), LogsDir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if count++; count > maxLogs {
			return fmt.Errorf("%s/%s holds over %d files", root.Name(), LogsDir, maxLogs)
		}
		if !entry.Type().IsRegular() {
			info, err := entry.Info()
			if err != nil {
				return err
			}
			return refused(root, name, info)
		}
		return take(name)
	})
}

// inLogs is the path of a log without the folder of logs before it, whatever a
// results folder says that it is.
func inLogs(log string) string {
	return strings.TrimPrefix(path.Clean("/"+strings.ReplaceAll(log, `\`, "/")), "/"+LogsDir+"/")
}
