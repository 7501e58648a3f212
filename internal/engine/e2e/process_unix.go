//go:build unix

package e2e

import "syscall"

func interruptProcess(pid int) error { return syscall.Kill(pid, syscall.SIGINT) }

func killGroup(pid int) error { return syscall.Kill(-pid, syscall.SIGKILL) }
