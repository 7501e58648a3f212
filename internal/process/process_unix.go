//go:build unix

package process

import (
	"errors"
	"os"
	"syscall"
)

func signal(p *os.Process, s syscall.Signal) error { return p.Signal(s) }

func killGroup(p *os.Process) error {
	err := syscall.Kill(-p.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
