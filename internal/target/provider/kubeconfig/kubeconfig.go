// Package kubeconfig gives a cluster's context to the user's own kubeconfig, and takes it
// back. What else is in the file stays, and the lock that kubectl honours is taken.
package kubeconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/whole"
)

// Check returns an error when the user's file cannot take a context.
func Check(path string) error {
	if path == "" {
		return nil
	}
	if !filepath.IsAbs(path) {
		return fmt.Errorf("kubeconfig: %q is not an absolute path", path)
	}
	_, err := load(path)
	return err
}

// load returns the user's file, or an empty configuration when there
// is none.
func load(path string) (*clientcmdapi.Config, error) {
	config, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return clientcmdapi.NewConfig(), nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not a kubeconfig that a context can be added to: %w", path, err)
	}
	return config, nil
}

// Publish adds the context name of the kubeconfig own to the user's file at path, and
// makes it the current one. Before it changes the file, note is told of it, with the
// current context before.
func Publish(own, name, path string, note func(provider.Publication) error) error {
	from, err := clientcmd.LoadFromFile(own)
	if err != nil {
		return fmt.Errorf("reading the cluster's kubeconfig: %w", err)
	}
	context := from.Contexts[name]
	if context == nil || from.Clusters[context.Cluster] == nil {
		return fmt.Errorf("%s has no context %s that leads to a cluster", own, name)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return edit(path, func(theirs *clientcmdapi.Config) error {
		given := provider.Publication{File: path, Server: from.Clusters[context.Cluster].Server, Previous: theirs.CurrentContext}
		if err := note(given); err != nil {
			return err
		}
		theirs.Clusters[name] = from.Clusters[context.Cluster]
		theirs.AuthInfos[name] = from.AuthInfos[context.AuthInfo]
		theirs.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
		theirs.CurrentContext = name
		return nil
	})
}

// Withdraw undoes Publish of the context name, and removes the file when nothing else
// is in it. A context of that name that leads elsewhere by now is the user's.
func Withdraw(name string, given provider.Publication) error {
	return edit(given.File, func(theirs *clientcmdapi.Config) error {
		if theirs.Clusters[name] == nil || theirs.Clusters[name].Server != given.Server {
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

// edit changes the user's file at path under the lock that kubectl
// honours. A file that is left without anything is removed.
func edit(path string, change func(*clientcmdapi.Config) error) error {
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

	config, err := load(path)
	if err != nil {
		return err
	}
	if err := change(config); err != nil {
		return err
	}
	if len(config.Clusters)+len(config.AuthInfos)+len(config.Contexts) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	data, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	return whole.WriteFile(path, data, 0o600)
}
