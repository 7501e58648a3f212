// Package folder keeps what a provider has of a cluster on this machine: one folder for
// each, with a record that is there before anything else of the cluster and goes after
// all else, its kubeconfig, and its logs.
package folder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/whole"
)

// Folder is that of one cluster; it need not exist.
type Folder struct {
	Name string
	// Dir is spelled without symbolic links, so that it is the same in the arguments of
	// every process.
	Dir string
}

// Record is what a folder says of its cluster.
type Record struct {
	Schema int `json:"schema"`
	// Plan has owner, run and expiry.
	Plan provider.Plan `json:"plan"`
	// Where is what the cluster is in, such as the store of a container engine, and is
	// empty where that cannot differ.
	Where string `json:"where,omitempty"`
	// NoNetwork says that nodes are not ready until somebody gives pods a network.
	NoNetwork bool `json:"noNetwork,omitempty"`
	// Ready is set last of all: without it the cluster is half made.
	Ready bool `json:"ready"`
}

const schema = 2

// In returns the folder of the cluster of that name, below parent, an absolute path,
// which it makes.
func In(parent, name string) (*Folder, error) {
	if err := provider.ValidateName(name); err != nil {
		return nil, err
	}
	parent, err := of(parent)
	return &Folder{Name: name, Dir: filepath.Join(parent, name)}, err
}

// All returns the folders of the clusters below parent, which it makes.
func All(parent string) ([]*Folder, error) {
	parent, err := of(parent)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(parent)
	var all []*Folder
	for _, entry := range entries {
		f := &Folder{Name: entry.Name(), Dir: filepath.Join(parent, entry.Name())}
		if provider.ValidateName(f.Name) == nil && f.Exists() {
			all = append(all, f)
		}
	}
	return all, err
}

func of(parent string) (string, error) {
	if !filepath.IsAbs(parent) {
		return "", fmt.Errorf("the folder of clusters must be an absolute path, not %q", parent)
	}
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", fmt.Errorf("making the folder of clusters: %w", err)
	}
	return filepath.EvalSymlinks(parent)
}

// Path is that of a file or folder in f.
func (f *Folder) Path(name ...string) string {
	return filepath.Join(append([]string{f.Dir}, name...)...)
}

// Kubeconfig is where the cluster's own kubeconfig is.
func (f *Folder) Kubeconfig() string { return f.Path("kubeconfig") }

func (f *Folder) recordFile() string { return f.Path("cluster.json") }

// fresh is the folder while it is made; its name can name no cluster.
func (f *Folder) fresh() *Folder {
	return &Folder{Name: f.Name, Dir: filepath.Join(filepath.Dir(f.Dir), ".new-"+f.Name)}
}

// Exists tells whether the folder is that of a cluster.
func (f *Folder) Exists() bool {
	_, err := os.Stat(f.recordFile())
	return err == nil
}

// Foreign names what has the folder's place and is not that of a cluster; "" is nothing.
func (f *Folder) Foreign() (string, error) {
	if f.Exists() {
		return "", nil
	}
	entries, err := os.ReadDir(f.Dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return "", nil // an empty folder is the last that Remove removes
	}
	return "folder " + f.Dir, err
}

// Make makes the folder with the record in it, both at once.
func (f *Folder) Make(r *Record) error {
	fresh := f.fresh()
	err := os.RemoveAll(fresh.Dir)
	if err == nil {
		err = os.Mkdir(fresh.Dir, 0o700)
	}
	if err == nil {
		err = fresh.Write(r)
	}
	if err == nil {
		err = os.Rename(fresh.Dir, f.Dir)
	}
	if err != nil {
		return fmt.Errorf("making the cluster's folder: %w", err)
	}
	return nil
}

// Read returns the record.
func (f *Folder) Read() (*Record, error) {
	data, err := os.ReadFile(f.recordFile())
	if err != nil {
		return nil, err
	}
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", f.recordFile(), err)
	}
	if r.Schema != schema || r.Plan.Name != f.Name {
		return nil, fmt.Errorf("%s: it is of another op-readiness, or of another cluster", f.recordFile())
	}
	return &r, nil
}

// Write writes the record.
func (f *Folder) Write(r *Record) error {
	r.Schema = schema
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return whole.WriteFile(f.recordFile(), append(data, '\n'), 0o600)
}

// Remove removes the folder, the record after all else: while anything is there, it says
// whose.
func (f *Folder) Remove() error {
	if err := os.RemoveAll(f.fresh().Dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(f.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if path := f.Path(entry.Name()); path != f.recordFile() {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	return os.RemoveAll(f.Dir)
}

// Client returns a client of the cluster; timeout limits each request, 0 not at all.
func (f *Folder) Client(timeout time.Duration) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", f.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's kubeconfig: %w", err)
	}
	config.Timeout = timeout
	config.QPS, config.Burst = 500, 1000
	return kubernetes.NewForConfig(config)
}

// Found is the cluster of a provider as the record tells of it, without its state.
func (f *Folder) Found(by, context string) provider.Found {
	found := provider.Found{Cluster: provider.Cluster{Name: f.Name, Provider: by, Kubeconfig: f.Kubeconfig(), Context: context}}
	if r, err := f.Read(); err == nil {
		p := &r.Plan
		found.KubernetesVersion, found.WindowsVersion = p.KubernetesVersion, p.WindowsVersion
		found.LinuxNodes, found.WindowsNodes = p.LinuxNodes, p.WindowsNodes
		found.Owner, found.Run, found.Expires = p.Owner, p.Run, p.Expires
	}
	return found
}
