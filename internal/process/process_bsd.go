//go:build unix && !linux

package process

import (
	"os/exec"
	"syscall"
)

// lead ignores the last signal: this system tells no process of its parent's end.
func lead(cmd *exec.Cmd, _ syscall.Signal) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
