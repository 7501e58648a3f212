package nodeimage

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/test/images"
	"github.com/windows-op-readiness/windows-op-readiness/test/program"
)

// sandboxImage is what kind's containerd takes for each pod.
const sandboxImage = "registry.k8s.io/pause:3.10"

// writeImages writes the archive with the images of a node into the root, where
// setup.sh finds it.
func (r rootFolder) writeImages(ctx context.Context, version string, p parts) error {
	all, err := r.controlPlane(ctx, version, p)
	if err != nil {
		return err
	}
	tests, err := r.tests(ctx, p)
	if err != nil {
		return err
	}
	if err := os.Mkdir(r.path("archives"), 0o755); err != nil {
		return err
	}
	return images.Write(r.path("archives/images.tar"), append(all, tests...))
}

// controlPlane returns the images that kubeadm's manifests name.
func (r rootFolder) controlPlane(ctx context.Context, version string, p parts) ([]images.Image, error) {
	list, err := program.Output(exec.CommandContext(ctx, p.binaries[binaries.Kubeadm], "config", "images", "list", "--kubernetes-version", version))
	if err != nil {
		return nil, err
	}
	var all []images.Image
	for _, name := range strings.Fields(list) {
		repository, _, _ := strings.Cut(name, ":")
		image := images.Image{Name: name}
		base := filepath.Base(repository)
		from := p.binaries[binaries.Name(base)]
		var beside []images.File
		switch base {
		case "pause":
			continue
		case "coredns":
			from, image.Entrypoint = p.coredns, []string{"/usr/local/bin/coredns"}
		case "kube-proxy":
			if beside, err = r.firewall(ctx); err != nil {
				return nil, err
			}
		}
		if from == "" {
			return nil, fmt.Errorf("kubeadm wants the image %s, and nothing is known to be in it", name)
		}
		layer, err := images.Layer(append([]images.File{{Name: "usr/local/bin/" + base, From: from, Mode: 0o755}}, beside...))
		if err != nil {
			return nil, err
		}
		image.Layers = []v1.Layer{layer}
		all = append(all, image)
	}
	return all, nil
}

// tests returns the images of e2e.test's pods, and the sandbox.
func (r rootFolder) tests(ctx context.Context, p parts) ([]images.Image, error) {
	list, err := program.Output(exec.CommandContext(ctx, p.binaries[binaries.E2ETest], "--list-images"))
	if err != nil {
		return nil, err
	}
	names, err := images.Pick(list)
	if err != nil {
		return nil, err
	}
	busybox := r.path("bin/busybox")
	commands, err := program.Output(exec.CommandContext(ctx, busybox, "--list"))
	if err != nil {
		return nil, err
	}
	all, err := images.ForTests(names, p.binaries[binaries.Agnhost], busybox, strings.Fields(commands))
	if err != nil {
		return nil, err
	}
	// As in Kubernetes' own agnhost image: busybox has no curl, and another nc.
	tools, err := r.withLibraries(ctx, []string{"/usr/bin/curl", "/usr/bin/nc.openbsd"})
	if err != nil {
		return nil, err
	}
	layer, err := images.Layer(append(tools, images.File{Name: "usr/bin/nc", Link: "nc.openbsd"}))
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Name == names.Agnhost {
			all[i].Layers = append(all[i].Layers, layer)
		}
	}
	if names.Pause != sandboxImage {
		sandbox := all[slices.IndexFunc(all, func(i images.Image) bool { return i.Name == names.Pause })]
		sandbox.Name = sandboxImage
		all = append(all, sandbox)
	}
	return all, nil
}

// firewall returns the programs with which kube-proxy sets up Services.
func (r rootFolder) firewall(ctx context.Context) ([]images.File, error) {
	modules, err := filepath.Glob(r.path("usr/lib/*/xtables/*.so"))
	if err != nil {
		return nil, err
	}
	programs := []string{"/usr/sbin/xtables-nft-multi", "/usr/sbin/nft", "/usr/sbin/conntrack"}
	for _, path := range modules {
		programs = append(programs, strings.TrimPrefix(path, string(r)))
	}
	found, err := r.withLibraries(ctx, programs)
	if err != nil {
		return nil, err
	}
	for _, command := range []string{"iptables", "ip6tables"} {
		for _, suffix := range []string{"", "-save", "-restore"} {
			found = append(found, images.File{Name: "usr/sbin/" + command + suffix, Link: "xtables-nft-multi"})
		}
	}
	return found, nil
}

// withLibraries returns programs of the root, and the libraries that they load.
func (r rootFolder) withLibraries(ctx context.Context, programs []string) ([]images.File, error) {
	said, err := program.Output(exec.CommandContext(ctx, "chroot", append([]string{string(r), "ldd"}, programs...)...))
	if err != nil {
		return nil, err
	}
	all := slices.Clone(programs)
	for _, field := range strings.Fields(said) {
		if filepath.IsAbs(field) && !strings.HasSuffix(field, ":") {
			all = append(all, field)
		}
	}
	slices.Sort(all)
	var found []images.File
	for _, path := range slices.Compact(all) {
		found = append(found, images.File{Name: path[1:], From: r.path(path), Mode: 0o755})
	}
	return found, nil
}
