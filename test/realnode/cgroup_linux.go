package realnode

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	cgroupFS = "/sys/fs/cgroup"
	// cgroupRoot begins the names of the nodes' cgroups, by their paths in each
	// hierarchy.
	cgroupRoot = "/op-readiness-node"
)

// nodeCgroup is the cgroup of all pods of the node with that index. No node's
// begins with another's: the kubelet would see the other's pods.
func nodeCgroup(index int) string { return fmt.Sprintf("%s-%d", cgroupRoot, index+1) }

// controllers are the cgroup controllers without which no kubelet starts.
var controllers = []string{"cpu", "cpuset", "memory", "pids"}

// unified tells whether this machine has cgroups v2 alone.
func unified() bool {
	var fs unix.Statfs_t
	return unix.Statfs(cgroupFS, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC
}

// hierarchies returns the folders in which cgroups are made.
func hierarchies() []string {
	if unified() {
		return []string{cgroupFS}
	}
	var all []string
	entries, _ := os.ReadDir(cgroupFS)
	for _, entry := range entries {
		// Some controllers go by two names, one a link.
		if entry.IsDir() {
			all = append(all, filepath.Join(cgroupFS, entry.Name()))
		}
	}
	return all
}

// cgroupProbe is a cgroup that is made to see whether that is allowed.
func cgroupProbe() string {
	dir := cgroupFS
	if !unified() {
		dir = filepath.Join(cgroupFS, "memory")
	}
	return dir + cgroupRoot + "-probe"
}

// checkCgroups says which part of the cgroups is missing.
func checkCgroups() error {
	if !unified() {
		var missing []string
		for _, name := range controllers {
			if _, err := os.Stat(filepath.Join(cgroupFS, name)); err != nil {
				missing = append(missing, name)
			}
		}
		if len(missing) > 0 {
			return fmt.Errorf("cgroup controllers in %s: %s", cgroupFS, strings.Join(missing, ", "))
		}
		return nil
	}
	// Only the root of all cgroups has no such file. Below it, processes and
	// further cgroups exclude each other.
	if _, err := os.Stat(filepath.Join(cgroupFS, "cgroup.type")); err == nil {
		return errors.New("the machine's own cgroups (this is a container with a part of them)")
	}
	have, err := os.ReadFile(filepath.Join(cgroupFS, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("cgroup controllers: %w", err)
	}
	missing := slices.DeleteFunc(slices.Clone(controllers), func(name string) bool {
		return slices.Contains(strings.Fields(string(have)), name)
	})
	if len(missing) > 0 {
		return fmt.Errorf("cgroup controllers in the kernel: %s", strings.Join(missing, ", "))
	}
	return nil
}

// makeCgroups makes the cgroup below which a kubelet puts pods.
func makeCgroups(root string) error {
	for _, dir := range hierarchies() {
		if err := os.MkdirAll(dir+root, 0o755); err != nil {
			return fmt.Errorf("making cgroups: %w", err)
		}
	}
	if !unified() {
		return nil
	}
	for _, name := range controllers {
		file := filepath.Join(cgroupFS, "cgroup.subtree_control")
		if err := os.WriteFile(file, []byte("+"+name), 0); err != nil {
			return fmt.Errorf("handing the cgroup controller %s down: %w", name, err)
		}
	}
	return nil
}

// removeCgroups removes a node's cgroups, innermost first. Processes that are
// being killed keep theirs for a moment.
func removeCgroups(root string) error {
	for attempt := 0; ; attempt++ {
		var last error
		for _, hierarchy := range hierarchies() {
			var dirs []string
			err := filepath.WalkDir(hierarchy+root, func(path string, entry fs.DirEntry, err error) error {
				if err == nil && entry.IsDir() {
					dirs = append(dirs, path)
				}
				return nil
			})
			last = errors.Join(last, err)
			for _, dir := range slices.Backward(dirs) {
				if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
					last = fmt.Errorf("removing the cgroup %s: %w", dir, err)
				}
			}
		}
		if last == nil || attempt == 100 {
			return last
		}
		time.Sleep(50 * time.Millisecond)
	}
}
