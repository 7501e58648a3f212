package kwok

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// processes returns the processes of this machine that have not ended.
func processes() ([]process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var all []process
	for _, entry := range entries {
		id, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// A process that ends meanwhile, or has ended and is a zombie, has no
		// command line.
		command, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if err != nil || len(command) == 0 {
			continue
		}
		all = append(all, process{id, strings.ReplaceAll(string(command), "\x00", " ")})
	}
	return all, nil
}
