package probe_test

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
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/preflight/probe"
	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
	"github.com/windows-op-readiness/windows-op-readiness/test/nodetest"
	"github.com/windows-op-readiness/windows-op-readiness/test/realnode"
)

// targets are those of a cluster as it is now.
func targets(t *testing.T, kubeconfig string) []probe.Target {
	t.Helper()
	c, err := cluster.Connect(cluster.Target{Kubeconfig: kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := c.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var facts []result.Node
	for i := range nodes {
		facts = append(facts, cluster.NodeFacts(&nodes[i]))
	}
	return probe.Targets(facts)
}

// probed expects a result of each kind, in this order.
func probed(t *testing.T, got []probe.Result, want ...probe.Result) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i, w := range want {
		if g := got[i]; g.Kind != w.Kind || g.State != w.State || !strings.Contains(g.Found, w.Found) || w.Node != "" && g.Node != w.Node {
			t.Errorf("got %+v, want %+v", g, w)
		}
	}
}

func probeNamespaces(t *testing.T, client kubernetes.Interface) []string {
	t.Helper()
	list, err := client.CoreV1().Namespaces().List(context.WithoutCancel(t.Context()), metav1.ListOptions{LabelSelector: probe.Label})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		if list.Items[i].Status.Phase != corev1.NamespaceTerminating {
			names = append(names, list.Items[i].Name)
		}
	}
	return names
}

// TestOnARealNode lets containers really run: on a node without cluster DNS,
// without a way to the internet, and with a network that enforces no policies.
func TestOnARealNode(t *testing.T) {
	if testing.Short() {
		t.Skip("makes a node")
	}
	node := nodetest.Up(t, func(o *realnode.Options) { o.CoreDNS = "" })
	client := kwoktest.Client(t, node.Cluster)
	options := probe.Options{
		ID: "test", Targets: targets(t, node.Cluster.Kubeconfig), Images: probe.Images{Agnhost: node.Images.Agnhost, Pause: node.Images.Pause},
		Name: "kubernetes.default.svc.cluster.local.:443", Outside: probe.Outside, NetworkPolicy: true, HostProcess: true,
		Limit: 3 * time.Minute, Patience: 5 * time.Second, PolicyTimeout: 3 * time.Second,
		Note: func(text string) { t.Log(text) },
	}
	if len(options.Targets) != 1 {
		t.Fatalf("simulated nodes are targets: %+v", options.Targets)
	}

	t.Run("what is broken is found", func(t *testing.T) {
		got, err := probe.Run(t.Context(), client, options)
		if err != nil {
			t.Fatal(err)
		}
		probed(t, got,
			probe.Result{Kind: probe.TestImages, State: probe.OK, Node: realnode.NodeName, Found: node.Images.Agnhost + " was there"},
			probe.Result{Kind: probe.DNS, State: probe.Failed, Node: realnode.NodeName, Found: "DNS: "},
			probe.Result{Kind: probe.Internet, State: probe.Failed, Node: realnode.NodeName, Found: "(exit code 1)"},
			probe.Result{Kind: probe.NetworkPolicy, State: probe.Failed, Node: realnode.NodeName, Found: "does not keep a pod from another"},
		)
		if left := probeNamespaces(t, client); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})

	t.Run("what works is found", func(t *testing.T) {
		o := options
		service, err := client.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		o.NetworkPolicy, o.Outside, o.Name = false, "", service.Spec.ClusterIP+":443"
		got, err := probe.Run(t.Context(), client, o)
		if err != nil {
			t.Fatal(err)
		}
		probed(t, got, probe.Result{Kind: probe.TestImages, State: probe.OK}, probe.Result{Kind: probe.DNS, State: probe.OK, Node: realnode.NodeName})
	})

	t.Run("an image that cannot be pulled", func(t *testing.T) {
		o := options
		o.Images.Agnhost = "registry.invalid/agnhost:1"
		got, err := probe.Run(t.Context(), client, o)
		if err != nil {
			t.Fatal(err)
		}
		const none = "no pod with the test images started"
		probed(t, got,
			probe.Result{Kind: probe.TestImages, State: probe.Failed, Node: realnode.NodeName, Found: "registry.invalid/agnhost:1"},
			probe.Result{Kind: probe.DNS, State: probe.Unknown, Found: none},
			probe.Result{Kind: probe.Internet, State: probe.Unknown, Found: none},
			probe.Result{Kind: probe.NetworkPolicy, State: probe.Unknown, Found: none},
		)
	})

	t.Run("an interrupt leaves nothing", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		o := options
		o.Note = func(text string) {
			if strings.HasPrefix(text, "probe: a pod on Linux") {
				cancel() // while pods are being made
			}
		}
		if got, err := probe.Run(ctx, client, o); !errors.Is(err, context.Canceled) || got != nil {
			t.Errorf("got %v, %v", got, err)
		}
		if left := probeNamespaces(t, client); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}
