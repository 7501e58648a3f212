package kwok

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/windows-op-readiness/windows-op-readiness/internal/process"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/folder"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/simulated"
	"github.com/windows-op-readiness/windows-op-readiness/internal/whole"
)

// cluster is what there is of one cluster.
type cluster struct{ *folder.Folder }

func (c *cluster) context() string     { return "kwok-" + c.Name }
func (c *cluster) configFile() string  { return c.Path("kwokctl.yaml") }
func (c *cluster) kwokWorkDir() string { return c.Path("kwok") }

// runDir is where kwokctl keeps this cluster, and its processes run.
func (c *cluster) runDir() string { return filepath.Join(c.kwokWorkDir(), "clusters", c.Name) }

// copyKubeconfig writes the cluster's own kubeconfig, with certificates and key inside,
// so that it can be copied elsewhere.
func (c *cluster) copyKubeconfig() error {
	config, err := clientcmd.LoadFromFile(filepath.Join(c.runDir(), "kubeconfig.yaml"))
	if err != nil {
		return fmt.Errorf("reading the kubeconfig that kwokctl made: %w", err)
	}
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return fmt.Errorf("embedding certificates in the kubeconfig: %w", err)
	}
	if config.Contexts[c.context()] == nil {
		return fmt.Errorf("the kubeconfig that kwokctl made has no context %s", c.context())
	}
	data, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	return whole.WriteFile(c.Kubeconfig(), data, 0o600)
}

// describe returns the cluster as users see it.
func (c *cluster) describe(ctx context.Context) provider.Found {
	found := c.Found(ProviderName, c.context())
	found.State, found.Problem = c.inspect(ctx)
	return found
}

// inspectTimeout limits each question to a cluster that may be dead.
const inspectTimeout = 5 * time.Second

// inspect says how the cluster is, and what is wrong unless it is running.
func (c *cluster) inspect(ctx context.Context) (provider.State, string) {
	r, err := c.Read()
	if err != nil {
		return provider.Broken, "half made: " + err.Error()
	}
	running, err := c.running()
	if err != nil {
		return provider.Broken, err.Error()
	}
	if len(running) == 0 {
		return provider.Stopped, "none of its processes run"
	}
	if !r.Ready {
		return provider.Broken, "half made"
	}
	if missing := missingComponents(running); len(missing) > 0 {
		return provider.Broken, strings.Join(missing, ", ") + " not running"
	}
	client, err := c.Client(inspectTimeout)
	if err != nil {
		return provider.Broken, err.Error()
	}
	if err := ready(ctx, client); err != nil {
		return provider.Broken, err.Error()
	}
	if problem := simulated.Problem(ctx, client, nodesOf(&r.Plan)); problem != "" {
		return provider.Broken, problem
	}
	return provider.Running, ""
}

// ready returns nil when the API server says that it is.
func ready(ctx context.Context, client kubernetes.Interface) error {
	_, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("its API server is not ready: %w", err)
	}
	return nil
}

// components are the names of a cluster's processes, as kwokctl calls them.
var components = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller"}

func missingComponents(running map[string][]int) []string {
	return slices.DeleteFunc(slices.Clone(components), func(name string) bool { return len(running[name]) > 0 })
}

// processes returns the processes of this machine.
func processes() ([]process.Info, error) {
	if runtime.GOOS == "windows" {
		return nil, errors.New("simulated clusters need Linux or macOS, as kube-apiserver does: use WSL")
	}
	return process.List()
}

// running returns the process ids of each of the cluster's components, told by
// the program's path, which lies in the cluster's folder. A recorded process
// id would not do: after a reboot it may be somebody else's.
func (c *cluster) running() (map[string][]int, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	running := map[string][]int{}
	programs := filepath.Join(c.runDir(), "bin") + string(filepath.Separator)
	for _, p := range all {
		if program, ok := strings.CutPrefix(p.Command, programs); ok {
			name, _, _ := strings.Cut(program, " ")
			running[name] = append(running[name], p.PID)
		}
	}
	return running, nil
}

// makers returns the ids of kwokctl processes at work on the cluster: they
// outlive an op-readiness that is killed, and would start components anew.
func (c *cluster) makers() ([]int, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	var ids []int
	for _, p := range all {
		program, _, _ := strings.Cut(p.Command, " ")
		if filepath.Base(program) == "kwokctl" && strings.Contains(p.Command, c.configFile()) {
			ids = append(ids, p.PID)
		}
	}
	return ids, nil
}

// destroy ends the cluster's processes and removes its folder.
func (c *cluster) destroy(ctx context.Context) error {
	if err := c.endProcesses(ctx); err != nil {
		return err
	}
	return c.Remove()
}

// endProcesses ends the cluster's processes. Its data is thrown away, so nothing is
// asked to stop in order.
func (c *cluster) endProcesses(ctx context.Context) error {
	for first := true; ; first = false {
		ids, err := c.makers()
		if err != nil {
			return err
		}
		running, err := c.running()
		if err != nil {
			return err
		}
		for _, more := range running {
			ids = append(ids, more...)
		}
		if len(ids) == 0 {
			return nil
		}
		for _, id := range ids {
			if err := process.Kill(id); err != nil {
				return fmt.Errorf("ending process %d: %w", id, err)
			}
		}
		if !first {
			select {
			case <-ctx.Done():
				return fmt.Errorf("waiting for processes %v to end: %w", ids, context.Cause(ctx))
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
}

func (c *cluster) log(component string) string {
	return filepath.Join(c.runDir(), "logs", component+".log")
}
