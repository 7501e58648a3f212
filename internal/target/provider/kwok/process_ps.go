//go:build unix && !linux

package kwok

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// processes returns the processes of this machine that have not ended.
func processes() ([]process, error) {
	out, err := exec.Command("ps", "-axww", "-o", "pid=,stat=,command=").Output()
	if err != nil {
		return nil, fmt.Errorf("listing processes with ps: %w", err)
	}
	var all []process
	for _, line := range strings.Split(string(out), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 3 || strings.HasPrefix(fields[1], "Z") {
			continue
		}
		if id, err := strconv.Atoi(fields[0]); err == nil {
			all = append(all, process{id, strings.Join(fields[2:], " ")})
		}
	}
	return all, nil
}
