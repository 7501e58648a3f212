// Package kwoktest gives tests a simulated cluster of their own.
package kwoktest

import (
	"context"
	"os"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kwok"
)

// Up makes a simulated cluster that is removed when the test ends. Without the
// binaries in the cache the test is skipped, and says what is missing.
func Up(t *testing.T, change ...func(*kwok.Options)) *provider.Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes a cluster")
	}
	dir, err := binaries.DefaultDir(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	store := &binaries.Store{Dir: dir, Progress: os.Stderr}
	options := kwok.DefaultOptions()
	options.Name = "test-" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	if len(options.Name) > 40 {
		options.Name = options.Name[:40]
	}
	for _, c := range change {
		c(&options)
	}
	missing, err := store.Missing(t.Context(), options.KubernetesVersion, kwok.Needs()...)
	if err != nil {
		t.Fatal(err)
	}
	if len(missing) > 0 {
		t.Skipf("not in the cache: %v: run 'make binaries'", missing)
	}
	p := &kwok.Provider{Binaries: store, Dir: t.TempDir()}
	t.Cleanup(func() {
		if err := p.Down(context.Background(), options.Name); err != nil {
			t.Error(err)
		}
	})
	cluster, err := p.Up(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

// Client returns a client for the cluster.
func Client(t *testing.T, c *provider.Cluster) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 500, 500
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
