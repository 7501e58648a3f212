package realnode

import (
	"fmt"
	"os"
	"path/filepath"
)

// preferPods lets the pods below a cgroup have their CPU time also beside whatever else
// the machine is busy with: on a machine of a node's own little runs but pods.
func preferPods(root string) error {
	// As much as eight processes of the machine, each of which weighs 1024 shares.
	file, weight := filepath.Join(cgroupFS, "cpu"+root, "cpu.shares"), "8192"
	if unified() {
		file, weight = filepath.Join(cgroupFS, root, "cpu.weight"), "800"
	}
	if err := os.WriteFile(file, []byte(weight), 0); err != nil {
		return fmt.Errorf("weighing pods against the machine's other processes: %w", err)
	}
	return nil
}
