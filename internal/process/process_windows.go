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

// Both are what debuggers use, and stand in no manual of Microsoft's
// (https://ntdoc.m417z.com/ntsuspendprocess).
var (
	ntdll            = windows.NewLazySystemDLL("ntdll.dll")
	ntSuspendProcess = ntdll.NewProc("NtSuspendProcess")
	ntResumeProcess  = ntdll.NewProc("NtResumeProcess")
)

func pause(p *os.Process) error { return callOn(p, ntSuspendProcess) }

func resume(p *os.Process) error { return callOn(p, ntResumeProcess) }

func callOn(p *os.Process, proc *windows.LazyProc) error {
	if err := proc.Find(); err != nil {
		return err
	}
	handle, err := windows.OpenProcess(windows.PROCESS_SUSPEND_RESUME, false, uint32(p.Pid))
	if err != nil {
		return err
	}
	defer windows.CloseHandle(handle)
	if status, _, _ := proc.Call(uintptr(handle)); status != 0 {
		return windows.NTStatus(status)
	}
	return nil
}

// killGroup kills the process alone.
func killGroup(p *os.Process) error { return p.Kill() }
