// Package engine finds the container engine with which tests make kind clusters, or
// sets one up: podman, as root on Debian bookworm, with a configuration and a store
// of its own. Where Docker answers, nothing is installed and nothing set up.
//
// What is podman's own lies in the folder kind of the cache and in [runDir]. While
// clusters run, podman has a bridge, and rules in the machine's firewall, which let
// their nodes out; they end with the clusters.
//
// The configuration follows
// https://github.com/containers/common/blob/main/docs/containers.conf.5.md and
// https://github.com/containers/storage/blob/main/docs/containers-storage.conf.5.md.
package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/test/debian"
	"github.com/windows-op-readiness/windows-op-readiness/test/program"
	"github.com/windows-op-readiness/windows-op-readiness/test/realnode"
)

// Names of engines, as kind has them.
const (
	Docker = "docker"
	Podman = "podman"
)

// Engine is a container engine that answers.
type Engine struct {
	// Name is Docker or Podman.
	Name string
	// Env are the variables, as NAME=value, with which podman and kind find what
	// is set up here; for Docker there are none.
	Env []string
	// Dir is where podman keeps what is its own. It has room for images.
	Dir string
}

// UnfitError says why this machine has no engine.
type UnfitError struct {
	// Missing are the parts that it lacks, each with its fix where there is one.
	Missing []string
}

func (e *UnfitError) Error() string {
	return "no kind cluster can run on this machine: " + strings.Join(e.Missing, "; ")
}

// programs are what podman, and the making of a node image, take.
var programs = []struct{ name, pkg string }{
	{"podman", "podman"},
	{"runc", "runc"}, // podman's own choice, crun, refuses cgroups v1 beside v2
	{"iptables", "iptables"},
	{"/usr/lib/podman/netavark", "netavark"},
	{"/usr/lib/podman/aardvark-dns", "aardvark-dns"}, // by which nodes find the control plane
	{"debootstrap", "debootstrap"},
}

// Install installs the programs that are missing where this is Debian bookworm, and
// this process may run containers. What is missing afterwards, Find says.
func Install(ctx context.Context, progress io.Writer) error {
	if dockerAnswers(ctx) == nil || len(unable()) > 0 {
		return nil
	}
	return debian.Get(ctx, progress, "kind", lacking())
}

// Find returns the engine that answers; below the folder cache podman keeps what is
// its own. The error is an [*UnfitError] where there is none.
func Find(ctx context.Context, cache string) (*Engine, error) {
	docker := dockerAnswers(ctx)
	if docker == nil {
		return &Engine{Name: Docker}, nil
	}
	missing := unable()
	if lacks := lacking(); len(lacks) > 0 {
		missing = append(missing, debian.Missing(lacks))
	}
	if len(missing) > 0 {
		return nil, &UnfitError{append(missing, "Docker: "+docker.Error())}
	}
	e := &Engine{Name: Podman, Dir: filepath.Join(cache, "kind")}
	if err := e.configure(); err != nil {
		return nil, fmt.Errorf("setting up podman: %w", err)
	}
	if _, err := e.Run(ctx, "info", "--format", "{{.Version.Version}}"); err != nil {
		return nil, &UnfitError{[]string{"a podman that answers: " + err.Error(), "Docker: " + docker.Error()}}
	}
	return e, nil
}

// dockerAnswers returns nil when there is a Docker with its daemon: the client alone
// runs nothing.
func dockerAnswers(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Second, errors.New("no answer within 10s"))
	defer cancel()
	said, err := program.Output(exec.CommandContext(ctx, Docker, "info", "--format", "{{.ServerVersion}}"))
	if err == nil && strings.TrimSpace(said) == "" {
		return errors.New("its daemon does not answer")
	}
	return err
}

// unable returns what this machine lacks that no package brings.
func unable() []string {
	missing := realnode.Unable()
	if !debian.Here() || debian.Codename() != "bookworm" {
		missing = append(missing, "Debian bookworm (elsewhere, use Docker)")
	}
	return missing
}

func lacking() []debian.Lack {
	var all []debian.Lack
	for _, p := range programs {
		if _, err := exec.LookPath(p.name); err != nil {
			all = append(all, debian.Lack{What: p.name, Package: p.pkg})
		}
	}
	return all
}

// runDir is what podman knows of running containers.
const runDir = "/run/op-readiness-kind"

// configure writes podman's configuration and makes its folders.
func (e *Engine) configure() error {
	networks := filepath.Join(e.Dir, "networks")
	// kind gives its nodes the kernel's modules, where there are any.
	for _, dir := range []string{networks, "/lib/modules"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	containers, storage := filepath.Join(e.Dir, "containers.conf"), filepath.Join(e.Dir, "storage.conf")
	// The limits are below those of root without CAP_SYS_RESOURCE, who may not
	// raise any. Locks in files are apart from those of the machine's own podman.
	if err := write(containers, `[containers]
default_ulimits = ["nofile=20000:20000", "nproc=20000:20000"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
runtime = "runc"
tmp_dir = %q
[network]
network_backend = "netavark"
network_config_dir = %q
`, runDir+"/podman", networks); err != nil {
		return err
	}
	e.Env = []string{"CONTAINERS_CONF=" + containers, "CONTAINERS_STORAGE_CONF=" + storage}
	return write(storage, `[storage]
driver = "overlay"
graphroot = %q
runroot = %q
`, filepath.Join(e.Dir, "storage"), runDir+"/storage")
}

// write writes a file as a whole: another process may be reading it.
func write(path, format string, args ...any) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	if _, err := fmt.Fprintf(temp, format, args...); err != nil {
		return errors.Join(err, temp.Close())
	}
	if err := temp.Close(); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

// Command returns a command of the engine.
func (e *Engine) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, e.Name, args...)
	cmd.Env = append(os.Environ(), e.Env...)
	return cmd
}

// Run runs a command of the engine, and returns what it prints.
func (e *Engine) Run(ctx context.Context, args ...string) (string, error) {
	return program.Output(e.Command(ctx, args...))
}
