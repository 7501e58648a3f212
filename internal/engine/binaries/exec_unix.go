//go:build unix

package binaries

import (
	"errors"
	"os/exec"
	"syscall"
)

// inGroup gives cmd a process group of its own, so that ending it ends the
// compilers and linkers it has started too.
func inGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// busy tells whether a file could not be run because it is still open for
// writing somewhere.
func busy(err error) bool { return errors.Is(err, syscall.ETXTBSY) }
