package nodelogs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/windows-op-readiness/windows-op-readiness/internal/redact"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/scratch"
)

// Options say what is collected, and how.
type Options struct {
	// Target is the cluster.
	Target cluster.Target
	// Dir is the folder; it is made where there is none, and may hold nothing of an
	// earlier call.
	Dir string
	// PerNode is how long the logs of a node may take, and again those of its pods;
	// 0 stands for [DefaultPerNode].
	PerNode time.Duration
	// Image is agnhost, as nodes pull it; "" stands for one that a node has already,
	// or else [DefaultImage].
	Image string
	// Note is told what goes on; may be nil. It is called from several goroutines,
	// one at a time.
	Note func(string)
}

// DefaultPerNode is the limit of a node where none is given.
const DefaultPerNode = 2 * time.Minute

// DefaultImage is the agnhost of Kubernetes v1.36.3.
const DefaultImage = "registry.k8s.io/e2e-test-images/agnhost:2.63.0"

// Missing is something that could not be had, or only in part.
type Missing struct {
	// What is a path in the folder.
	What string `json:"what"`
	// Reason is one line for people.
	Reason string `json:"reason"`
}

// atOnce is how many nodes are asked beside each other.
const atOnce = 4

// system is the namespace of Kubernetes' own pods and objects.
const system = metav1.NamespaceSystem

type collector struct {
	Options
	client  kubernetes.Interface
	dynamic dynamic.Interface
	folder  *folder
	space   func() (*scratch.Space, error)

	mu      sync.Mutex
	missing []Missing
}

// Collect writes logs into the folder, and returns in order what is missing there;
// missing.txt tells the same. The error says why nothing could be collected or
// written, or that ctx ended; what there is until then is written all the same.
func Collect(ctx context.Context, o Options) ([]Missing, error) {
	o.PerNode = cmp.Or(o.PerNode, DefaultPerNode)
	c, err := cluster.ConnectForStreams(o.Target)
	if err != nil {
		return nil, err
	}
	f, err := openFolder(o.Dir)
	if err != nil {
		return nil, err
	}
	defer f.close()
	l := &collector{Options: o, client: c.Client(), dynamic: c.Dynamic(), folder: f}
	err = errors.Join(l.collect(ctx, c), ctx.Err())
	slices.SortFunc(l.missing, func(a, b Missing) int {
		return cmp.Or(strings.Compare(a.What, b.What), strings.Compare(a.Reason, b.Reason))
	})
	return l.missing, errors.Join(err, f.writeMissing(l.missing))
}

func (c *collector) collect(ctx context.Context, from *cluster.Cluster) error {
	var nodes []corev1.Node
	err := c.within(ctx, func(ctx context.Context) (err error) {
		nodes, err = from.Nodes(ctx)
		return err
	})
	if err != nil {
		c.miss("nodes", reason(ctx, err))
		return err
	}
	slices.SortFunc(nodes, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	runs := map[string]bool{}
	for i := range nodes {
		if !cluster.NodeFacts(&nodes[i]).Simulated {
			runs[nodes[i].Name] = true
		}
	}
	// The last nodes wait for those before them.
	remove := c.makeSpace(ctx, c.PerNode*time.Duration((len(runs)+atOnce-1)/atOnce))
	defer remove()
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i := range nodes {
		group.Go(func() error {
			c.node(ctx, &nodes[i])
			return nil
		})
	}
	c.pods(ctx, &group, runs)
	group.Go(func() error {
		c.objects(ctx)
		return nil
	})
	return group.Wait()
}

// makeSpace has the namespace for pods made with the first of them, to be in use for
// a time, and returns what removes it.
func (c *collector) makeSpace(ctx context.Context, limit time.Duration) (remove func()) {
	var made *scratch.Space
	c.space = sync.OnceValues(func() (space *scratch.Space, err error) {
		made, err = scratch.Make(ctx, c.client, scratch.Options{Purpose: "logs", Limit: limit, Note: c.note})
		return made, err
	})
	return func() {
		if made != nil {
			made.Remove(ctx)
		}
	}
}

func (c *collector) within(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.PerNode, fmt.Errorf("time is up, after %s", c.PerNode))
	defer cancel()
	return do(ctx)
}

func (c *collector) note(text string) {
	if c.Note == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Note(text)
}

func (c *collector) miss(what, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.missing = append(c.missing, Missing{what, redact.String(cluster.Said(why))})
}

// reason says why something failed: above all that time is up, or that the whole
// was interrupted, however a library puts it.
func reason(ctx context.Context, err error) string {
	late := lateError("")
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return err.Error()
	case errors.Is(cause, context.Canceled):
		return "interrupted"
	case errors.As(err, &late):
		return cause.Error() + ": " + late.Error()
	default:
		return cause.Error()
	}
}
