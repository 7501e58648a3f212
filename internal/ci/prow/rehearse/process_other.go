//go:build !unix

package rehearse

import (
	"os"
	"os/exec"
)

// There is no rehearsal on such a system: it has no SIGTERM.

func ownGroup(*exec.Cmd) {}

func terminateProcess(p *os.Process) error { return p.Kill() }

func killGroup(p *os.Process) error { return p.Kill() }

func hold(dir string) (*os.File, error) { return os.Open(dir) }
