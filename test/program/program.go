// Package program runs the programs that test beds are made with.
package program

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
)

// maxOutput is how much of a command's output an error carries, in bytes.
const maxOutput = 8192

// Output runs cmd and returns what it prints; the error carries the command and the
// end of its output.
func Output(cmd *exec.Cmd) (string, error) {
	var stdout, all bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&stdout, &all), &all
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("running %s: %w\n\t%s", strings.Join(cmd.Args, " "), err,
			strings.ReplaceAll(text.CutFront(strings.TrimSpace(all.String()), maxOutput), "\n", "\n\t"))
	}
	return stdout.String(), nil
}
