package kwok

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/windows-op-readiness/windows-op-readiness/internal/process"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
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

// record is what cluster.json says.
type record struct {
	Schema            int    `json:"schema"`
	KubernetesVersion string `json:"kubernetesVersion"`
	LinuxNodes        int    `json:"linuxNodes"`
	WindowsNodes      int    `json:"windowsNodes"`
	WindowsVersion    string `json:"windowsVersion"`
	BindAddress       string `json:"bindAddress"`
	JoinAddress       string `json:"joinAddress,omitempty"`
	Commands          string `json:"commands,omitempty"`
	// Kubeconfigs are the user's files that were given the context.
	Kubeconfigs []publication `json:"kubeconfigs,omitempty"`
	// Ready is set last of all: without it the cluster is half made.
	Ready bool `json:"ready"`
}

const recordSchema = 1

// publication is one of the user's files that was given the context, and its
// current context before.
type publication struct {
	File     string `json:"file"`
	Previous string `json:"previous,omitempty"`
}

func newRecord(o Options) *record {
	return &record{
		Schema: recordSchema, KubernetesVersion: o.KubernetesVersion,
		LinuxNodes: o.LinuxNodes, WindowsNodes: o.WindowsNodes, WindowsVersion: o.WindowsVersion,
		BindAddress: o.BindAddress, JoinAddress: o.JoinAddress, Commands: o.Commands,
	}
}

// difference says how the cluster differs from what o asks for, or "".
func (r *record) difference(o Options) string {
	var all []string
	for _, part := range []struct {
		what      string
		have, ask any
	}{
		{"Kubernetes version", r.KubernetesVersion, o.KubernetesVersion},
		{"Linux nodes", r.LinuxNodes, o.LinuxNodes},
		{"Windows nodes", r.WindowsNodes, o.WindowsNodes},
		{"Windows version", r.WindowsVersion, o.WindowsVersion},
		{"bind address", r.BindAddress, o.BindAddress},
		{"address for real nodes", r.JoinAddress, o.JoinAddress},
		{"folder of commands", r.Commands, o.Commands},
	} {
		if part.have != part.ask {
			all = append(all, fmt.Sprintf("%s %v instead of %v", part.what, part.have, part.ask))
		}
	}
	return strings.Join(all, ", ")
}

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
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(c.recordFile(), append(data, '\n'))
}

// writeFile replaces path by a file of the user's own with data, whole or not
// at all.
func writeFile(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".tmp-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(data)
	if err == nil {
		err = temp.Sync()
	}
	if closing := temp.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return os.Rename(temp.Name(), path)
}

// client returns a client of the cluster; timeout limits each request, 0 not
// at all.
func (c *cluster) client(timeout time.Duration) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's kubeconfig: %w", err)
	}
	config.Timeout = timeout
	config.QPS, config.Burst = 50, 100
	return kubernetes.NewForConfig(config)
}

// describe returns the cluster as users see it.
func (c *cluster) describe(ctx context.Context) provider.Cluster {
	found := provider.Cluster{Name: c.name, Provider: ProviderName, Kubeconfig: c.kubeconfig(), Context: c.context()}
	if r, err := c.readRecord(); err == nil {
		found.KubernetesVersion, found.WindowsVersion = r.KubernetesVersion, r.WindowsVersion
		found.LinuxNodes, found.WindowsNodes = r.LinuxNodes, r.WindowsNodes
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
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: nodeSelector})
	if err != nil {
		return provider.Broken, "listing its nodes: " + err.Error()
	}
	if problem := nodesProblem(nodes.Items, r.LinuxNodes, r.WindowsNodes); problem != "" {
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

// destroy ends the cluster's processes and removes its folder and its context
// from the user's kubeconfigs. Its data is thrown away, so nothing is asked to
// stop in order.
func (c *cluster) destroy(ctx context.Context) error {
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
			break
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
	var faults []error
	if r, err := c.readRecord(); err == nil {
		for _, file := range r.Kubeconfigs {
			faults = append(faults, c.withdrawKubeconfig(file))
		}
	}
	faults = append(faults, os.RemoveAll(c.dir))
	return errors.Join(faults...)
}

// logTail returns the last lines of a component's log, for an error.
func (c *cluster) logTail(component string) string {
	data, err := os.ReadFile(filepath.Join(c.runDir(), "logs", component+".log"))
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
