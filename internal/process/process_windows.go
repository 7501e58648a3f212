package process

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// lead ignores the last signal: Windows tells no process of its parent's end.
func lead(cmd *exec.Cmd, _ syscall.Signal) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// signal sends ctrl-break, which Go programs take for both signals; a group can be
// sent no other.
func signal(p *os.Process, _ syscall.Signal) error {
	return windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(p.Pid))
}

// killGroup kills the process alone.
func killGroup(p *os.Process) error { return p.Kill() }
