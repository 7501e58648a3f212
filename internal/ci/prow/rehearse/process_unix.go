//go:build unix

package rehearse

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func terminateProcess(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

func killGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }

// hold opens a folder of this user, and locks it until all processes that have
// the file, or got it from their parents, are gone.
func hold(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, errHeld
	}
	mine, err := f.Stat()
	if err == nil {
		var there os.FileInfo
		if there, err = os.Lstat(dir); err == nil && !os.SameFile(mine, there) {
			err = fs.ErrNotExist // it was removed, and there is another
		}
	}
	if stat, ok := sysOf(mine); err == nil && (!ok || int(stat.Uid) != os.Getuid()) {
		err = errors.New("it is another user's")
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func sysOf(info os.FileInfo) (*syscall.Stat_t, bool) {
	if info == nil {
		return nil, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return stat, ok
}
