package node_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/prepull"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/scratch"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
	"github.com/windows-op-readiness/windows-op-readiness/test/realnode"
)

// pullImages lets the nodes of a bed pull images: one that is there, one that is
// nowhere, and none on simulated nodes.
func pullImages(t *testing.T, bed *realnode.Bed, client kubernetes.Interface) {
	const nowhere = "registry.invalid/busybox:9.9"
	options := prepull.Options{
		ID: "test", Images: []string{bed.Images.Agnhost, nowhere}, Nodes: nodesOf(t, bed),
		Limit: 3 * time.Minute, Patience: 3 * time.Second, Note: func(text string) { t.Log(text) },
	}
	pulls, err := prepull.Pull(t.Context(), client, options)
	if err != nil || len(pulls) != 4 {
		t.Fatalf("got %+v, %v", pulls, err)
	}
	for i, want := range []result.Pull{
		{Image: bed.Images.Agnhost, OS: specs.Linux, Nodes: 1},
		{Image: nowhere, OS: specs.Linux, Nodes: 1, Problem: "1 node without it: " + realnode.NodeName + ": "},
		{Image: bed.Images.Agnhost, OS: specs.Windows, Skipped: "2 simulated nodes, which pull nothing"},
		{Image: nowhere, OS: specs.Windows, Skipped: "2 simulated nodes, which pull nothing"},
	} {
		got := pulls[i]
		if got.Image != want.Image || got.OS != want.OS || got.Nodes != want.Nodes || got.Skipped != want.Skipped ||
			(want.Problem == "") != (got.Problem == "") || !strings.HasPrefix(got.Problem, want.Problem) || (got.Seconds > 0) != (want.Nodes > 0) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if why := pulls[1].Problem; !strings.Contains(why, "ImagePull") {
		t.Errorf("the problem does not tell why: %s", why)
	}
	noSpace(t, client)

	ctx, cancel := context.WithCancel(t.Context())
	options.Note = func(text string) {
		if strings.Contains(text, nowhere) {
			cancel()
		}
	}
	if _, err := prepull.Pull(ctx, client, options); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted, it returns %v", err)
	}
	noSpace(t, client)
}

// noSpace sees that no namespace for pulling is in use.
func noSpace(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	list, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{LabelSelector: scratch.Label("prepull")})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].Status.Phase != corev1.NamespaceTerminating {
			t.Errorf("left: %s", list.Items[i].Name)
		}
	}
}

func nodesOf(t *testing.T, bed *realnode.Bed) (nodes []result.Node) {
	t.Helper()
	c, err := cluster.Connect(cluster.Target{Kubeconfig: bed.Cluster.Kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	all, err := c.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		nodes = append(nodes, cluster.NodeFacts(&all[i]))
	}
	return nodes
}
