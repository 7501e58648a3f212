package realnode

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/windows-op-readiness/windows-op-readiness/internal/tempdir"
	"github.com/windows-op-readiness/windows-op-readiness/test/debian"
	"github.com/windows-op-readiness/windows-op-readiness/test/program"
)

// programs are what a node runs that Kubernetes does not bring, each with the
// Debian package that has it.
var programs = []struct{ name, pkg string }{
	{"containerd", "containerd"},
	{"ctr", "containerd"},
	{"containerd-shim-runc-v2", "containerd"},
	{"runc", "runc"},
	{"nft", "nftables"},
	{"iptables", "iptables"},
	{"conntrack", "conntrack"},
	{"ip", "iproute2"},
	{"nsenter", "util-linux"},
	{"mount", "mount"},
}

// cniPlugins are the plugins of the pods' network, and cniDirs where
// distributions put them.
var (
	cniPlugins = []string{"ptp", "host-local", "loopback", "portmap"}
	cniDirs    = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}
)

const (
	cniPackage     = "containernetworking-plugins"
	busyboxPackage = "busybox-static"
)

// lacking returns the programs that are missing.
func lacking() []debian.Lack {
	var all []debian.Lack
	for _, p := range programs {
		if _, err := exec.LookPath(p.name); err != nil {
			all = append(all, debian.Lack{What: p.name, Package: p.pkg})
		}
	}
	if _, err := cniDir(); err != nil {
		all = append(all, debian.Lack{What: err.Error(), Package: cniPackage})
	}
	if _, err := busybox(); err != nil {
		all = append(all, debian.Lack{What: err.Error(), Package: busyboxPackage})
	}
	return all
}

// cniDir returns the folder that has all CNI plugins.
func cniDir() (string, error) {
	for _, dir := range cniDirs {
		if !slices.ContainsFunc(cniPlugins, func(name string) bool {
			_, err := exec.LookPath(filepath.Join(dir, name))
			return err != nil
		}) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("CNI plugins (%s, in one of %s)", strings.Join(cniPlugins, ", "), strings.Join(cniDirs, ", "))
}

// busybox returns the path of a busybox that runs in an otherwise empty image.
func busybox() (string, error) {
	missing := errors.New("a static busybox")
	path, err := exec.LookPath("busybox")
	if err != nil {
		return "", missing
	}
	binary, err := elf.Open(path)
	if err != nil {
		return "", missing
	}
	defer binary.Close()
	for _, part := range binary.Progs {
		if part.Type == elf.PT_INTERP {
			return "", fmt.Errorf("%w (%s is not)", missing, path)
		}
	}
	return path, nil
}

// Install installs the programs that are missing where this is Debian, by the
// name of their packages and with a word to progress; it never removes a
// package. Where this is not Debian, not root, or lacks what no package brings,
// it does nothing. What is missing afterwards, Check says.
func Install(ctx context.Context, progress io.Writer) error {
	lacks := lacking()
	if len(lacks) == 0 || !debian.Here() || len(Unable()) > 0 {
		return nil
	}
	return debian.Get(ctx, progress, "real node", lacks)
}

// Check returns nil when a real node can run on this machine, else an
// [*UnfitError].
func Check(ctx context.Context) error {
	missing := Unable()
	lacks := lacking()
	if len(lacks) > 0 {
		missing = append(missing, debian.Missing(lacks))
	}
	if len(missing) == 0 {
		if err := checkKernel(ctx); err != nil {
			missing = append(missing, err.Error())
		}
	}
	if len(missing) > 0 {
		return &UnfitError{missing}
	}
	return nil
}

// Unable returns what this machine lacks for nodes in containers that no package
// brings, each with its fix.
func Unable() []string {
	var missing []string
	if os.Geteuid() != 0 {
		missing = append(missing, "root (run as root)")
	} else {
		cmd := exec.Command("/bin/sh", "-c", "mount --make-rprivate /")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
		if _, err := program.Output(cmd); err != nil {
			missing = append(missing, fmt.Sprintf("leave to make namespaces (in a container: --privileged): %v", err))
		}
	}
	if err := checkCgroups(); err != nil {
		missing = append(missing, err.Error())
	}
	return missing
}

// checkKernel makes a box and, inside it, what a node is made of.
func checkKernel(ctx context.Context) error {
	dir, err := tempdir.New()
	if err != nil {
		return err
	}
	defer dir.RemoveAll()
	box, err := newBox(ctx, dir.Path, newBootID())
	if err != nil {
		return fmt.Errorf("leave to mount (in a container: --privileged): %w", err)
	}
	defer box.end()
	for _, probe := range []struct{ what, command string }{
		{"network devices of kind veth in the kernel", "ip link add name probe-a type veth peer name probe-b"},
		{"nftables in the kernel", "nft add table ip probe"},
		{"leave to write cgroups", "mkdir -p " + cgroupProbe()},
	} {
		if _, err := box.run(ctx, "sh", "-c", probe.command); err != nil {
			return fmt.Errorf("%s: %w", probe.what, err)
		}
	}
	// Another process that looks at the same time may have removed it.
	if err := os.Remove(cgroupProbe()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// onOverlay tells whether dir is on an overlay filesystem, as in a container:
// the kernel puts no second overlay on one.
func onOverlay(dir string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(dir, &fs) == nil && fs.Type == unix.OVERLAYFS_SUPER_MAGIC
}
