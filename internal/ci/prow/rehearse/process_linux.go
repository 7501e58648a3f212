package rehearse

import (
	"os/exec"
	"syscall"
)

// endWithParent aborts the job when this process is killed, as the end of its
// pod would: entrypoint ends it, and sidecar uploads what it wrote.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM }
