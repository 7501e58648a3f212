package e2e

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the command lead a process group, and die when the thread
// that starts it ends.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
