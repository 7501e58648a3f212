// Package kindtest gives tests what they need to make kind clusters.
package kindtest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/log"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kind"
	"github.com/windows-op-readiness/windows-op-readiness/test/kind/engine"
	"github.com/windows-op-readiness/windows-op-readiness/test/kind/nodeimage"
)

// Bed is what makes kind clusters on this machine.
type Bed struct {
	Engine *engine.Engine
	// Image is that of nodes, and KubernetesVersion theirs.
	Image             string
	KubernetesVersion string
	// Binaries has the programs of nodeimage.Needs, of Kubernetes [Version].
	Binaries *binaries.Store
}

// Version is the Kubernetes of the binaries and, where the engine is podman, of the
// nodes.
const Version = binaries.Pinned

var all = flag.Bool("kind.all", false, "run also the tests on kind clusters that take minutes")

// All returns the bed for a test that takes minutes, and skips it unless that is asked
// for.
func All(t *testing.T) *Bed {
	t.Helper()
	if !*all {
		t.Skip("it takes minutes: run 'make test-kind'")
	}
	return New(t)
}

// New returns the bed, and sets the test's environment so that kind finds the engine.
// On a machine that can run no kind cluster, or that has not been prepared, the test
// is skipped and says what is missing.
func New(t *testing.T) *Bed {
	t.Helper()
	b, err := Find(t.Context())
	var unfit *engine.UnfitError
	if errors.As(err, &unfit) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	for _, variable := range b.Engine.Env {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	return b
}

// Find returns the bed. The error is an [*engine.UnfitError] on a machine that can run no
// kind cluster, or that has not been prepared.
func Find(ctx context.Context) (*Bed, error) {
	cache, err := binaries.DefaultDir(os.Getenv)
	if err != nil {
		return nil, err
	}
	found, err := engine.Find(ctx, cache)
	if err != nil {
		return nil, err
	}
	b := &Bed{Engine: found, Binaries: &binaries.Store{Dir: cache, Progress: os.Stderr}}
	missing, err := b.Binaries.Missing(ctx, Version, nodeimage.Needs()...)
	if err == nil && len(missing) > 0 {
		err = &engine.UnfitError{Missing: []string{fmt.Sprintf("%v in the cache: run 'make kind'", missing)}}
	}
	if err == nil {
		err = b.setImage(ctx)
	}
	return b, err
}

// setImage chooses the image of nodes: where Docker answers, the published one that our
// provider takes.
func (b *Bed) setImage(ctx context.Context) error {
	if b.Engine.Name != engine.Podman {
		r := provider.DefaultRequest()
		r.KubernetesVersion, r.Set = "", map[string]string{kind.Engine: b.Engine.Name}
		plan, err := (&kind.Provider{}).Plan(ctx, r)
		if err != nil {
			return err
		}
		b.Image, b.KubernetesVersion = plan.Set[kind.Image], plan.KubernetesVersion
		return nil
	}
	maker := &nodeimage.Maker{Engine: b.Engine, Binaries: b.Binaries, KubernetesVersion: Version, Progress: os.Stderr}
	name, err := maker.Name(ctx)
	if err == nil && !maker.Has(ctx, name) {
		err = &engine.UnfitError{Missing: []string{"the node image " + name + ": run 'make kind'"}}
	}
	b.Image, b.KubernetesVersion = name, Version
	return err
}

// Provider returns kind's own, for this engine.
func (b *Bed) Provider(logger log.Logger) *cluster.Provider {
	which := cluster.ProviderWithPodman()
	if b.Engine.Name == engine.Docker {
		which = cluster.ProviderWithDocker()
	}
	return cluster.NewProvider(which, cluster.ProviderWithLogger(logger))
}

// Config returns the configuration of a cluster with a control plane and this many
// other nodes.
func (b *Bed) Config(workers int) *v1alpha4.Cluster {
	c := &v1alpha4.Cluster{Nodes: []v1alpha4.Node{{Role: v1alpha4.ControlPlaneRole, Image: b.Image}}}
	for range workers {
		c.Nodes = append(c.Nodes, v1alpha4.Node{Role: v1alpha4.WorkerRole, Image: b.Image})
	}
	return c
}
