// Package nodeimage makes the image of kind's nodes without an image registry: of
// Debian's packages, of what kind's module lays over them, and of Kubernetes' own
// binaries. kind takes it as it takes its own, with any configuration that asks for
// no other Kubernetes and no IPv6.
//
// It differs from kind's own image in this:
//
//   - Debian is bookworm, whose systemd and containerd take cgroups v1 as well as v2.
//   - Each image in it is a program that was built here; kube-proxy has iptables and
//     nftables beside it. Those of tests are agnhost, busybox and pause.
//   - The pods' network is set up by a script of each node (files/kind/bin/pod-network)
//     in place of kindnet, and no network policy is kept.
//   - No provisioner makes volumes, and of crictl there is only "images".
//   - It runs where root has no CAP_SYS_RESOURCE.
package nodeimage

import (
	"context"
	"crypto/sha256"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/test/kind/engine"
	"github.com/windows-op-readiness/windows-op-readiness/test/realnode"
)

// Repository is the image's name without its tag.
const Repository = "localhost/op-readiness/kind-node"

// Needs are the binaries of which a node is made.
func Needs() []binaries.Name {
	return []binaries.Name{
		binaries.Kubeadm, binaries.Kubelet, binaries.Kubectl,
		binaries.APIServer, binaries.ControllerManager, binaries.Scheduler, binaries.KubeProxy, binaries.Etcd,
		binaries.Agnhost, binaries.E2ETest,
	}
}

// Maker makes the image.
type Maker struct {
	// Engine is podman: that of this machine keeps the image.
	Engine *engine.Engine
	// Binaries is the cache.
	Binaries *binaries.Store
	// KubernetesVersion is that of the nodes.
	KubernetesVersion string
	// Progress is told what takes time.
	Progress io.Writer
}

// files are what this package lays into an image, and itself.
//
//go:embed archive.go nodeimage.go root.go setup.sh all:files
var files embed.FS

// packages are the Debian packages of a node: those of kind's Dockerfile that tests
// need, the container runtime, and what goes into images.
var packages = []string{
	"systemd", "systemd-sysv", "dbus",
	"conntrack", "iptables", "nftables", "iproute2", "ethtool", "util-linux", "mount", "kmod", "socat", "ebtables",
	"e2fsprogs", "hostname", "jq", "procps",
	"containerd", "runc", "containernetworking-plugins",
	"busybox-static", "curl", "netcat-openbsd",
}

// Name returns the image's name, whose tag is of the hash of all that goes in; the
// versions of Debian's packages are those of the day on which it is made. What it is
// made of must be in the cache.
func (m *Maker) Name(ctx context.Context) (string, error) {
	parts, err := m.parts(ctx)
	if err != nil {
		return "", err
	}
	return m.name(parts)
}

// parts are the files of which an image is made.
type parts struct {
	binaries map[binaries.Name]string
	coredns  string
	kind     module
}

func (m *Maker) parts(ctx context.Context) (parts, error) {
	var p parts
	var err error
	if p.binaries, err = m.Binaries.Get(ctx, m.KubernetesVersion, Needs()...); err != nil {
		return p, err
	}
	if p.coredns, err = realnode.BuildCoreDNS(ctx, m.Binaries.Dir, m.Progress); err != nil {
		return p, err
	}
	p.kind, err = findKind(ctx)
	return p, err
}

func (m *Maker) name(p parts) (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, packages, p.kind.Version, filepath.Base(p.coredns))
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := files.ReadFile(path)
		fmt.Fprintf(sum, "%s %d\n%s", path, len(data), data)
		return err
	})
	if err != nil {
		return "", err
	}
	cached, err := m.Binaries.List(false)
	if err != nil {
		return "", err
	}
	for _, path := range slices.Sorted(maps.Values(p.binaries)) {
		i := slices.IndexFunc(cached, func(e binaries.Entry) bool { return e.Path == path })
		if i < 0 {
			return "", fmt.Errorf("%s has no record in the cache: delete it, and run make test-kind again", path)
		}
		fmt.Fprintln(sum, cached[i].Name, cached[i].SHA256)
	}
	return fmt.Sprintf("%s:%s-%.6x", Repository, m.KubernetesVersion, sum.Sum(nil)), nil
}

// Has tells whether the engine has the image.
func (m *Maker) Has(ctx context.Context, name string) bool {
	_, err := m.Engine.Run(ctx, "image", "exists", name)
	return err == nil
}

// Make makes the image unless the engine has it, and returns its name. Older ones
// go. Two processes do the work once.
func (m *Maker) Make(ctx context.Context) (string, error) {
	parts, err := m.parts(ctx)
	if err != nil {
		return "", err
	}
	name, err := m.name(parts)
	if err != nil {
		return "", err
	}
	lock := flock.New(filepath.Join(m.Engine.Dir, "lock"))
	if _, err := lock.TryLockContext(ctx, 200*time.Millisecond); err != nil {
		return "", fmt.Errorf("waiting for another process that makes the node image: %w", err)
	}
	defer lock.Unlock()
	if m.Has(ctx, name) {
		return name, nil
	}
	if err := m.make(ctx, name, parts); err != nil {
		return "", fmt.Errorf("making the node image: %w", err)
	}
	return name, m.removeOlder(ctx, name)
}

// make makes the image in a folder beside podman's store. The caller has the lock.
func (m *Maker) make(ctx context.Context, name string, p parts) error {
	left, err := filepath.Glob(filepath.Join(m.Engine.Dir, ".image-*"))
	if err != nil {
		return err
	}
	for _, dir := range left { // by a killed process
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	work, err := os.MkdirTemp(m.Engine.Dir, ".image-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	root := rootFolder(filepath.Join(work, "root"))
	m.tell("getting Debian for the node image (usually 2 minutes)")
	if err := root.bootstrap(ctx); err != nil {
		return err
	}
	m.tell("making the node image %s (usually a minute)", name)
	if err := root.layKind(p.kind.Dir); err != nil {
		return err
	}
	if err := root.layOwn(m.KubernetesVersion, p.binaries); err != nil {
		return err
	}
	if err := root.writeImages(ctx, m.KubernetesVersion, p); err != nil {
		return err
	}
	if _, err := m.Engine.Run(ctx, "run", "--rm", "--privileged", "--network=none", "--rootfs", string(root), "/setup.sh"); err != nil {
		return err
	}
	archive := filepath.Join(work, "root.tar")
	if err := root.pack(ctx, archive); err != nil {
		return err
	}
	_, err = m.Engine.Run(ctx, "import",
		"--change", `ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]`,
		"--change", "ENV container=podman", "--change", "STOPSIGNAL SIGRTMIN+3", archive, name)
	return err
}

// removeOlder removes the images of this Kubernetes version that are not name.
func (m *Maker) removeOlder(ctx context.Context, name string) error {
	list, err := m.Engine.Run(ctx, "images", "--format", "{{.Repository}}:{{.Tag}}", Repository)
	if err != nil {
		return err
	}
	for _, older := range strings.Fields(list) {
		if older == name || !strings.HasPrefix(older, Repository+":"+m.KubernetesVersion+"-") {
			continue
		}
		if _, err := m.Engine.Run(ctx, "rmi", older); err != nil {
			m.tell("%s stays, as it is in use", older)
		}
	}
	return nil
}

func (m *Maker) tell(format string, args ...any) {
	if m.Progress != nil {
		fmt.Fprintf(m.Progress, "kind: "+format+"\n", args...)
	}
}
