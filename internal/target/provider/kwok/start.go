package kwok

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/folder"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/simulated"
	"github.com/windows-op-readiness/windows-op-readiness/internal/whole"
)

// errPortTaken says that somebody else took a port between choosing and using
// it.
var errPortTaken = errors.New("a port was taken by another process meanwhile")

// start starts the control plane and kwok, and waits until the API server is ready and
// every process runs.
func (p *Provider) start(ctx context.Context, c *cluster, plan *provider.Plan, paths map[binaries.Name]string) error {
	choose := p.choosePorts
	if choose == nil {
		choose = freePorts
	}
	ports, err := choose(bindAddress(plan))
	if err != nil {
		return err
	}
	config, err := yaml.Marshal(kwokctlConfig(c, plan, paths, ports))
	if err != nil {
		return err
	}
	config = slices.Concat(config, []byte("---\n"), simulated.Stages(plan.Set[Commands] != ""))
	if err := whole.WriteFile(c.configFile(), config, 0o600); err != nil {
		return err
	}
	ctx, cancel := p.limit(ctx)
	defer cancel()
	watched, stop := c.whileAlive(ctx)
	err = p.kwokctl(watched, c, plan, paths, "create", "cluster")
	stop()
	if err == nil {
		err = c.copyKubeconfig()
	}
	if err == nil {
		err = p.awaitControlPlane(ctx, c, plan, paths)
	}
	if err != nil && ctx.Err() == nil && c.portTaken() {
		err = fmt.Errorf("%w: %w", errPortTaken, err)
	}
	return err
}

// essential are the components without which no other can start.
var essential = []string{"etcd", "kube-apiserver"}

// whileAlive returns a context that ends when an essential component that was
// started has ended: kwokctl itself would wait for it for two minutes. The
// caller calls stop when it no longer matters.
func (c *cluster) whileAlive(ctx context.Context) (watched context.Context, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	go func() {
		for watched.Err() == nil {
			for _, name := range essential {
				// The order matters: one that starts in between is alive.
				if _, err := os.Stat(c.pidFile(name)); err == nil && c.gone(name) {
					cancel(c.ended(name))
				}
			}
			select {
			case <-watched.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return watched, func() { cancel(nil) }
}

// gone reports whether a component does not run, by two looks: a process that
// becomes another program has no command line for a moment.
func (c *cluster) gone(component string) bool {
	for look := range 2 {
		if look > 0 {
			time.Sleep(20 * time.Millisecond)
		}
		if running, err := c.running(); err != nil || len(running[component]) > 0 {
			return false
		}
	}
	return true
}

func (c *cluster) pidFile(component string) string {
	return filepath.Join(c.runDir(), "pids", component+".pid")
}

// ended says that a component has ended, with the end of its log.
func (c *cluster) ended(component string) error {
	return fmt.Errorf("%s ended; its log ends with\n\t%s", component, folder.Ending(c.log(component)))
}

func bindAddress(p *provider.Plan) string { return cmp.Or(p.Set[BindAddress], loopback) }

// podRange is what the nodes' ranges of pod addresses are of; each has 256.
func podRange(p *provider.Plan) string {
	if p.LinuxNodes+p.WindowsNodes > 200 {
		return "10.128.0.0/10"
	}
	return "10.244.0.0/16"
}

// kwokctlConfig returns the KwokctlConfiguration of a cluster.
func kwokctlConfig(c *cluster, plan *provider.Plan, paths map[binaries.Name]string, ports ports) map[string]any {
	patch := func(component string, pairs ...string) map[string]any {
		var args []map[string]any
		for i := 0; i < len(pairs); i += 2 {
			// An override changes an argument that is there, and adds none.
			override := pairs[i] == "bind-address" || pairs[i] == "manage-all-nodes"
			args = append(args, map[string]any{"key": pairs[i], "value": pairs[i+1], "override": override})
		}
		return map[string]any{"name": component, "extraArgs": args}
	}
	// The Service kubernetes has the first address of its range.
	server := []string{
		"bind-address", bindAddress(plan),
		// Simulated nodes name kwok's own server as their InternalDNS, so
		// that logs and exec are refused at once; a real node has none and
		// is reached by its address.
		"kubelet-preferred-address-types", "InternalDNS,InternalIP",
		"service-cluster-ip-range", "10.96.0.0/16",
	}
	certificateNames := []string{"10.96.0.1"}
	if join := plan.Set[JoinAddress]; join != "" {
		pki := filepath.Join(c.runDir(), "pki")
		server = append(server,
			"advertise-address", join,
			// What a kubelet that asks for it is shown.
			"kubelet-client-certificate", filepath.Join(pki, "admin.crt"),
			"kubelet-client-key", filepath.Join(pki, "admin.key"))
		certificateNames = append(certificateNames, join)
	}
	var objects []string // kinds of objects that kwok listens to
	if plan.Set[Commands] != "" {
		objects = []string{"Logs", "Exec"}
	}
	return map[string]any{
		"apiVersion": "config.kwok.x-k8s.io/v1alpha1",
		"kind":       "KwokctlConfiguration",
		"options": map[string]any{
			"enableCRDs":                  objects,
			"runtime":                     "binary",
			"bindAddress":                 loopback, // etcd asks nobody who they are
			"etcdBinary":                  paths[binaries.Etcd],
			"kubeApiserverBinary":         paths[binaries.APIServer],
			"kubeControllerManagerBinary": paths[binaries.ControllerManager],
			"kubeSchedulerBinary":         paths[binaries.Scheduler],
			"kubectlBinary":               paths[binaries.Kubectl],
			"kwokControllerBinary":        paths[binaries.Kwok],
			"etcdPort":                    ports.etcd,
			"etcdPeerPort":                ports.etcdPeer,
			"kubeApiserverPort":           ports.apiServer,
			"kubeControllerManagerPort":   ports.controllerManager,
			"kubeSchedulerPort":           ports.scheduler,
			"kwokControllerPort":          ports.kwok,
			"kubeApiserverCertSANs":       certificateNames,
		},
		"componentsPatches": []map[string]any{
			// Its data lives no longer than the cluster.
			patch("etcd", "unsafe-no-fsync", "true"),
			patch("kube-apiserver", server...),
			patch("kube-controller-manager",
				"allocate-node-cidrs", "true",
				"cluster-cidr", podRange(plan),
				// With its default, 20 requests in a second, a thousand nodes take minutes.
				"kube-api-qps", "500",
				"kube-api-burst", "1000"),
			// A real node must be left alone.
			patch("kwok-controller",
				"manage-all-nodes", "false",
				"manage-nodes-with-annotation-selector", simulated.Annotation),
		},
	}
}

// kwokctl runs kwokctl for the cluster. When ctx ends it is killed; what it
// has started by then stays.
func (p *Provider) kwokctl(ctx context.Context, c *cluster, plan *provider.Plan, paths map[binaries.Name]string, args ...string) error {
	args = append(args, "--name", c.Name, "--config", c.configFile())
	if args[0] == "create" {
		args = append(args, "--kubeconfig", "") // leave the user's own alone
	}
	cmd := exec.CommandContext(ctx, paths[binaries.Kwokctl], args...)
	cmd.Dir = c.Dir
	cmd.Env = c.environ(p.environ(), filepath.Dir(paths[binaries.Kubectl]), plan.Set[Commands])
	cmd.WaitDelay = time.Second
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("running %s: %w\n\t%s", strings.Join(cmd.Args, " "), err,
			strings.ReplaceAll(strings.TrimSpace(output.String()), "\n", "\n\t"))
	}
	return nil
}

// environ returns the environment of kwokctl: base without what would steer
// kwokctl otherwise, its working folder, and first in the PATH the folder of
// commands, where there is one, and that of the kubectl that it is to use.
func (c *cluster) environ(base []string, kubectlDir, commands string) []string {
	var environ []string
	first := kubectlDir
	if commands != "" {
		first = commands + string(filepath.ListSeparator) + kubectlDir
	}
	path := first
	for _, entry := range base {
		key, value, _ := strings.Cut(entry, "=")
		switch {
		case key == "PATH":
			path = first + string(filepath.ListSeparator) + value
		case strings.HasPrefix(key, "KWOK_"), key == "KUBECONFIG":
		default:
			environ = append(environ, entry)
		}
	}
	return append(environ, "PATH="+path, "KWOK_WORKDIR="+c.kwokWorkDir())
}

// awaitControlPlane waits until the API server is ready and every component
// runs. Components give up when the API server takes long to come, as on a
// busy machine: these are started again.
func (p *Provider) awaitControlPlane(ctx context.Context, c *cluster, plan *provider.Plan, paths map[binaries.Name]string) error {
	client, err := c.Client(inspectTimeout)
	if err != nil {
		return err
	}
	const restarts = 5
	for restarted := 0; ; {
		running, err := c.running()
		if err != nil {
			return err
		}
		for _, name := range essential {
			if len(running[name]) == 0 && c.gone(name) {
				return c.ended(name)
			}
		}
		last := ready(ctx, client)
		missing := missingComponents(running)
		if last == nil && len(missing) == 0 {
			return nil
		}
		if last == nil {
			if restarted == restarts {
				return fmt.Errorf("again and again %w", c.ended(missing[0]))
			}
			restarted++
			if err := p.restart(ctx, c, plan, paths, missing); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			if last == nil {
				last = fmt.Errorf("%s not running", strings.Join(missing, ", "))
			}
			return fmt.Errorf("waiting for the control plane: %w: %w", context.Cause(ctx), last)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// restart starts the components that have ended.
func (p *Provider) restart(ctx context.Context, c *cluster, plan *provider.Plan, paths map[binaries.Name]string, ended []string) error {
	for _, name := range ended {
		// kwokctl trusts these files even when another process has the id.
		if err := os.Remove(c.pidFile(name)); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return p.kwokctl(ctx, c, plan, paths, "start", "cluster")
}

// portTaken tells whether a component has ended because of a port in use.
func (c *cluster) portTaken() bool {
	for _, name := range components {
		if strings.Contains(folder.Ending(c.log(name)), "address already in use") {
			return true
		}
	}
	return false
}
