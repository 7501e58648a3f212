// Package kwoktest gives tests a simulated cluster of their own.
package kwoktest

import (
	"context"
	"errors"
	"fmt"
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
func Up(t *testing.T, change ...func(*provider.Request)) *provider.Cluster {
	t.Helper()
	options := provider.DefaultRequest()
	options.Name = "test-" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	if len(options.Name) > 40 {
		options.Name = options.Name[:40]
	}
	for _, c := range change {
		c(&options)
	}
	cluster, down := up(t, t.TempDir, options)
	t.Cleanup(func() {
		if err := down(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

// shared is the cluster of [Shared], and what removes it; nil before there is one.
var (
	shared       *provider.Cluster
	removeShared func() error
)

// Shared is [Up] for tests that leave the cluster's nodes and API server alone, have
// names of their own for all that they make, and do not run beside each other: they
// have one, which [Main] removes.
func Shared(t *testing.T) *provider.Cluster {
	t.Helper()
	if shared != nil {
		return shared
	}
	var dir string
	options := provider.DefaultRequest()
	options.Name = "test-shared"
	cluster, down := up(t, func() string {
		var err error
		if dir, err = os.MkdirTemp("", "kwoktest-"); err != nil {
			t.Fatal(err)
		}
		return dir
	}, options)
	shared, removeShared = cluster, func() error { return errors.Join(down(), os.RemoveAll(dir)) }
	return shared
}

// Main runs the tests of a package that has a [Shared] cluster, and returns the exit
// code.
func Main(m *testing.M) int {
	code := m.Run()
	if removeShared != nil {
		if err := removeShared(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return max(code, 1)
		}
	}
	return code
}

// up makes a cluster in a folder, and returns what removes it.
func up(t *testing.T, folder func() string, options provider.Request) (cluster *provider.Cluster, down func() error) {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes a cluster")
	}
	dir, err := binaries.DefaultDir(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	store := &binaries.Store{Dir: dir, Progress: os.Stderr}
	missing, err := store.Missing(t.Context(), options.KubernetesVersion, kwok.Needs()...)
	if err != nil {
		t.Fatal(err)
	}
	if len(missing) > 0 {
		t.Skipf("not in the cache: %v: run 'make binaries'", missing)
	}
	p := &kwok.Provider{Binaries: store, Dir: folder()}
	down = func() error { return Remove(context.Background(), p, options.Name) }
	if cluster, err = Make(t.Context(), p, options); err != nil {
		t.Fatal(errors.Join(err, down()))
	}
	return cluster, down
}

// Make makes a cluster that no ledger knows.
func Make(ctx context.Context, p provider.Provider, r provider.Request) (*provider.Cluster, error) {
	plan, err := p.Plan(ctx, r)
	if err != nil {
		return nil, err
	}
	return p.Up(ctx, plan, noJournal{})
}

// Remove removes a cluster of Make.
func Remove(ctx context.Context, p provider.Provider, name string) error {
	return p.Down(ctx, &provider.Entry{Plan: provider.Plan{Request: provider.Request{Name: name}}})
}

type noJournal struct{}

func (noJournal) Step(_ string, act func() error) error { return act() }
func (noJournal) Child(int, int64) error                { return nil }

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
