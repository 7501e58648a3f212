package kwok

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
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
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/simulated"
	"github.com/windows-op-readiness/windows-op-readiness/internal/whole"
)

// cluster is one cluster's folder.
type cluster struct {
	name string
	dir  string
}

func (c *cluster) context() string     { return "kwok-" + c.name }
func (c *cluster) recordFile() string  { return filepath.Join(c.dir, "cluster.json") }
func (c *cluster) kubeconfig() string  { return filepath.Join(c.dir, "kubeconfig") }
func (c *cluster) configFile() string  { return filepath.Join(c.dir, "kwokctl.yaml") }
func (c *cluster) kwokWorkDir() string { return filepath.Join(c.dir, "kwok") }

// runDir is where kwokctl keeps this cluster, and its processes run.
func (c *cluster) runDir() string { return filepath.Join(c.kwokWorkDir(), "clusters", c.name) }

// record is what cluster.json says: the plan, with owner, run and expiry. It is there
// before anything else of the cluster, and goes after all else.
type record struct {
	Schema int           `json:"schema"`
	Plan   provider.Plan `json:"plan"`
	// Ready is set last of all: without it the cluster is half made.
	Ready bool `json:"ready"`
}

const recordSchema = 2

func (c *cluster) readRecord() (*record, error) {
	data, err := os.ReadFile(c.recordFile())
	if err != nil {
		return nil, err
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", c.recordFile(), err)
	}
	if r.Schema != recordSchema {
		return nil, fmt.Errorf("%s: schema %d is of another op-readiness", c.recordFile(), r.Schema)
	}
	return &r, nil
}

func (c *cluster) writeRecord(r *record) error {
	r.Schema = recordSchema
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return whole.WriteFile(c.recordFile(), append(data, '\n'), 0o600)
}

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
	return whole.WriteFile(c.kubeconfig(), data, 0o600)
}

// client returns a client of the cluster; timeout limits each request, 0 not
// at all.
func (c *cluster) client(timeout time.Duration) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's kubeconfig: %w", err)
	}
	config.Timeout = timeout
	config.QPS, config.Burst = 500, 1000
	return kubernetes.NewForConfig(config)
}

// describe returns the cluster as users see it.
func (c *cluster) describe(ctx context.Context) provider.Found {
	found := provider.Found{Cluster: provider.Cluster{Name: c.name, Provider: ProviderName, Kubeconfig: c.kubeconfig(), Context: c.context()}}
	if r, err := c.readRecord(); err == nil {
		p := &r.Plan
		found.KubernetesVersion, found.WindowsVersion = p.KubernetesVersion, p.WindowsVersion
		found.LinuxNodes, found.WindowsNodes = p.LinuxNodes, p.WindowsNodes
		found.Owner, found.Run, found.Expires = p.Owner, p.Run, p.Expires
	}
	found.State, found.Problem = c.inspect(ctx)
	return found
}

// inspectTimeout limits each question to a cluster that may be dead.
const inspectTimeout = 5 * time.Second

// inspect says how the cluster is, and what is wrong unless it is running.
func (c *cluster) inspect(ctx context.Context) (provider.State, string) {
	r, err := c.readRecord()
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
	client, err := c.client(inspectTimeout)
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

// makeFolder makes the folder with the record in it, both at once.
func (c *cluster) makeFolder(p *provider.Plan) error {
	temp := &cluster{name: c.name, dir: c.newFolder()}
	err := os.RemoveAll(temp.dir)
	if err == nil {
		err = os.Mkdir(temp.dir, 0o700)
	}
	if err == nil {
		err = temp.writeRecord(&record{Plan: *p})
	}
	if err == nil {
		err = os.Rename(temp.dir, c.dir)
	}
	if err != nil {
		return fmt.Errorf("making the cluster's folder: %w", err)
	}
	return nil
}

// newFolder is where the folder is made; its name can name no cluster.
func (c *cluster) newFolder() string { return filepath.Join(filepath.Dir(c.dir), ".new-"+c.name) }

// ours tells whether the folder is that of a cluster.
func (c *cluster) ours() bool {
	_, err := os.Stat(c.recordFile())
	return err == nil
}

// destroy ends the cluster's processes and removes its folder.
func (c *cluster) destroy(ctx context.Context) error {
	if err := c.endProcesses(ctx); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(c.newFolder()), c.removeFolder())
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

// removeFolder removes the record after all else: while anything is there, it says whose.
func (c *cluster) removeFolder() error {
	entries, err := os.ReadDir(c.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if path := filepath.Join(c.dir, entry.Name()); path != c.recordFile() {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	return os.RemoveAll(c.dir)
}

// log returns the end of a component's log.
func (c *cluster) log(component string) ([]byte, error) {
	const most = 10 << 20
	f, err := os.Open(filepath.Join(c.runDir(), "logs", component+".log"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > most {
		if _, err := f.Seek(-most, io.SeekEnd); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(f)
}

// logTail returns the last lines of a component's log, for an error.
func (c *cluster) logTail(component string) string {
	data, err := c.log(component)
	if errors.Is(err, fs.ErrNotExist) {
		return "it has no log"
	}
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(lines) > 10 {
		lines = lines[len(lines)-10:]
	}
	return strings.Join(lines, "\n\t")
}
