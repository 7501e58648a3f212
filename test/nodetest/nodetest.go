// Package nodetest gives tests a cluster with real Linux nodes.
package nodetest

import (
	"errors"
	"os"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/test/realnode"
)

// Up makes a cluster with a real Linux node, or as many as the options say, that
// is removed when the test ends; after a failure, the ends of its logs are the
// test's. On a machine that can
// have none, or without the binaries in the cache, the test is skipped and
// says what is missing.
func Up(t *testing.T, change ...func(*realnode.Options)) *realnode.Bed {
	t.Helper()
	options := Options(t)
	for _, c := range change {
		c(&options)
	}
	bed, err := realnode.Up(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, node := range bed.Nodes {
				for _, program := range []realnode.Program{realnode.Containerd, realnode.Kubelet, realnode.KubeProxy} {
					t.Logf("%s of %s said at the end:\n%s", program, node.Name, node.Log(program))
				}
			}
		}
		if err := bed.Down(); err != nil {
			t.Error(err)
		}
	})
	return bed
}

// Options returns what Up starts from. It skips the test as Up does.
func Options(t *testing.T) realnode.Options {
	t.Helper()
	var unfit *realnode.UnfitError
	if err := realnode.Check(t.Context()); errors.As(err, &unfit) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	dir, err := binaries.DefaultDir(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	store := &binaries.Store{Dir: dir, Progress: os.Stderr}
	options := realnode.DefaultOptions()
	missing, err := store.Missing(t.Context(), options.Cluster.KubernetesVersion, realnode.Needs()...)
	if err != nil {
		t.Fatal(err)
	}
	if options.CoreDNS, err = realnode.CoreDNSPath(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(options.CoreDNS); err != nil {
		missing = append(missing, binaries.Name(realnode.CoreDNS))
	}
	if len(missing) > 0 {
		t.Skipf("not in the cache: %v: run 'make test-node'", missing)
	}
	options.Binaries, options.Progress = store, os.Stderr
	return options
}
