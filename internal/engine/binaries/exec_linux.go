package binaries

import "syscall"

// dieWithParent makes a child process die when this process is killed, so that
// a go command left alone does not write into the cache later on.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
