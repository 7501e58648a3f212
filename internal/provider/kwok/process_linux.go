package kwok

import (
	"bytes"
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
		words := bytes.Split(bytes.TrimSuffix(command, []byte{0}), []byte{0})
		all = append(all, process{id, strings.Join(asStrings(words), " ")})
	}
	return all, nil
}

func asStrings(words [][]byte) []string {
	all := make([]string, len(words))
	for i, word := range words {
		all[i] = string(word)
	}
	return all
}
