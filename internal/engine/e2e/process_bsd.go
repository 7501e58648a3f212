//go:build unix && !linux

package e2e

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the command lead a process group. This system cannot tie its
// life to ours.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
