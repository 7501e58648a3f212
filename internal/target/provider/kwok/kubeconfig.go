package kwok

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// copyKubeconfig writes the cluster's own kubeconfig, with certificates and
// key inside, so that it can be copied elsewhere.
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
	return saveKubeconfig(c.kubeconfig(), config)
}

func saveKubeconfig(path string, config *clientcmdapi.Config) error {
	data, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	return writeFile(path, data)
}

// checkKubeconfig returns an error when the user's file cannot take a context.
func checkKubeconfig(path string) error {
	if path == "" {
		return nil
	}
	if !filepath.IsAbs(path) {
		return fmt.Errorf("kubeconfig: %q is not an absolute path", path)
	}
	_, err := loadKubeconfig(path)
	return err
}

// loadKubeconfig returns the user's file, or an empty configuration when there
// is none.
func loadKubeconfig(path string) (*clientcmdapi.Config, error) {
	config, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return clientcmdapi.NewConfig(), nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not a kubeconfig that a context can be added to: %w", path, err)
	}
	return config, nil
}

// publishKubeconfig adds the cluster's context to the user's file at path and
// makes it the current one. File and former context are remembered, for Down.
func (c *cluster) publishKubeconfig(path string) error {
	if path == "" {
		return nil
	}
	own, err := clientcmd.LoadFromFile(c.kubeconfig())
	if err != nil {
		return err
	}
	r, err := c.readRecord()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	name := c.context()
	return editKubeconfig(path, func(theirs *clientcmdapi.Config) error {
		known := slices.ContainsFunc(r.Kubeconfigs, func(p publication) bool { return p.File == path })
		if !known {
			// Remembered first: what Down finds absent there does no harm.
			r.Kubeconfigs = append(r.Kubeconfigs, publication{path, theirs.CurrentContext})
			if err := c.writeRecord(r); err != nil {
				return err
			}
		}
		theirs.Clusters[name] = own.Clusters[name]
		theirs.AuthInfos[name] = own.AuthInfos[name]
		theirs.Contexts[name] = own.Contexts[name]
		theirs.CurrentContext = name
		return nil
	})
}

// withdrawKubeconfig undoes publishKubeconfig, and removes the file when
// nothing else is in it. A context of that name that leads elsewhere by now is
// the user's.
func (c *cluster) withdrawKubeconfig(given publication) error {
	own, err := clientcmd.LoadFromFile(c.kubeconfig())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	name := c.context()
	return editKubeconfig(given.File, func(theirs *clientcmdapi.Config) error {
		if theirs.Clusters[name] == nil || own.Clusters[name] == nil || theirs.Clusters[name].Server != own.Clusters[name].Server {
			return nil
		}
		delete(theirs.Clusters, name)
		delete(theirs.AuthInfos, name)
		delete(theirs.Contexts, name)
		if theirs.CurrentContext == name {
			theirs.CurrentContext = ""
			if theirs.Contexts[given.Previous] != nil {
				theirs.CurrentContext = given.Previous
			}
		}
		return nil
	})
}

// editKubeconfig changes the user's file at path under the lock that kubectl
// honours. A file that is left without anything is removed.
func editKubeconfig(path string, edit func(*clientcmdapi.Config) error) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // replace the file, not the link
	}
	lock := path + ".lock"
	file, err := os.OpenFile(lock, os.O_CREATE|os.O_EXCL, 0)
	for tries := 0; errors.Is(err, fs.ErrExist) && tries < 20; tries++ {
		time.Sleep(100 * time.Millisecond) // it is held no longer than one edit takes
		file, err = os.OpenFile(lock, os.O_CREATE|os.O_EXCL, 0)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // its folder is gone, and so is the file
	}
	if err != nil {
		return fmt.Errorf("%s is locked by kubectl or another program: when none is running, delete %s: %w", path, lock, err)
	}
	file.Close()
	defer os.Remove(lock)

	config, err := loadKubeconfig(path)
	if err != nil {
		return err
	}
	if err := edit(config); err != nil {
		return err
	}
	if len(config.Clusters)+len(config.AuthInfos)+len(config.Contexts) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return saveKubeconfig(path, config)
}
