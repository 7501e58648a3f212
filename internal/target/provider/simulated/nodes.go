// Package simulated makes nodes that kwok (https://kwok.sigs.k8s.io) plays. Pods on them
// become Running and Ready and get addresses, but no container runs. Only nodes that
// carry [Annotation] are played, so that real ones can be beside them.
package simulated

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Simulated nodes carry this annotation, as key=value, which makes kwok play them, and
// this label, by which users and tests can tell.
const (
	Annotation = "kwok.x-k8s.io/node=fake"
	selector   = "type=kwok"
)

// MaxNodes is how many nodes of a system there may be.
const MaxNodes = 1000

// WindowsVersions returns the releases that nodes can be of, such as "ltsc2022",
// oldest first.
func WindowsVersions() []string {
	var versions []string
	for _, r := range specs.WindowsReleases() {
		versions = append(versions, "ltsc"+r.Year)
	}
	return versions
}

// CheckWindows returns an error unless version is one of [WindowsVersions].
func CheckWindows(version string) error {
	if !slices.Contains(WindowsVersions(), version) {
		return fmt.Errorf("version %q of Windows: use %s", version, strings.Join(WindowsVersions(), ", "))
	}
	return nil
}

// release is the one that is called version.
func release(version string) specs.WindowsRelease {
	for _, r := range specs.WindowsReleases() {
		if "ltsc"+r.Year == version {
			return r
		}
	}
	return specs.WindowsRelease{}
}

// Nodes returns as many Linux nodes as given, and the Windows nodes of r, all of r's
// version of Kubernetes.
func Nodes(linux int, r provider.Request) []*corev1.Node {
	var nodes []*corev1.Node
	for i := range linux {
		node := newNode(fmt.Sprintf("linux-%d", i+1), r.KubernetesVersion)
		node.Labels[corev1.LabelOSStable] = string(corev1.Linux)
		node.Labels[corev1.LabelArchStable] = runtime.GOARCH
		node.Status.NodeInfo.Architecture = runtime.GOARCH
		node.Status.NodeInfo.OperatingSystem = string(corev1.Linux)
		node.Status.NodeInfo.OSImage = "Ubuntu 24.04.3 LTS"
		node.Status.NodeInfo.KernelVersion = "6.8.0-79-generic"
		setAddress(node, 0, i)
		nodes = append(nodes, node)
	}
	windows := release(r.WindowsVersion)
	for i := range r.WindowsNodes {
		node := newNode(fmt.Sprintf("windows-%d", i+1), r.KubernetesVersion)
		node.Labels[corev1.LabelOSStable] = string(corev1.Windows)
		node.Labels[corev1.LabelArchStable] = "amd64" // the only one that Windows nodes have
		node.Labels[corev1.LabelWindowsBuild] = windows.Build
		node.Status.NodeInfo.Architecture = "amd64"
		node.Status.NodeInfo.OperatingSystem = string(corev1.Windows)
		node.Status.NodeInfo.OSImage = fmt.Sprintf("Windows Server %s Datacenter", windows.Year)
		node.Status.NodeInfo.KernelVersion = windows.Build + ".3328"
		setAddress(node, 1, i)
		nodes = append(nodes, node)
	}
	return nodes
}

// newNode returns what Linux and Windows nodes have in common.
func newNode(name, version string) *corev1.Node {
	resources := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("8"),
		corev1.ResourceMemory:           resource.MustParse("16Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("128Gi"),
		corev1.ResourcePods:             resource.MustParse("110"),
	}
	label, value, _ := strings.Cut(selector, "=")
	annotation, fake, _ := strings.Cut(Annotation, "=")
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{annotation: fake},
			Labels:      map[string]string{corev1.LabelHostname: name, label: value},
		},
		Status: corev1.NodeStatus{
			Capacity:    resources,
			Allocatable: resources.DeepCopy(),
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion:          version,
				KubeProxyVersion:        version,
				ContainerRuntimeVersion: "containerd://2.1.4",
			},
		},
	}
}

// setAddress gives the i-th node of a system an address of its own, of the range that
// RFC 2544 sets aside for tests, and the name under which kwok's server answers for
// it.
func setAddress(node *corev1.Node, system, i int) {
	const perNetwork = 250
	address := fmt.Sprintf("198.18.%d.%d", system+10*(i/perNetwork), i%perNetwork+1)
	node.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: address},
		{Type: corev1.NodeHostName, Address: node.Name},
		{Type: corev1.NodeInternalDNS, Address: "localhost"},
	}
}

// Render returns nodes as YAML documents.
func Render(nodes []*corev1.Node) ([]byte, error) {
	var b bytes.Buffer
	for _, node := range nodes {
		whole := node.DeepCopy()
		whole.APIVersion, whole.Kind = "v1", "Node"
		data, err := yaml.Marshal(whole)
		if err != nil {
			return nil, err
		}
		b.WriteString("---\n")
		b.Write(data)
	}
	return b.Bytes(), nil
}

// Add creates nodes; those that are there stay as they are.
func Add(ctx context.Context, client kubernetes.Interface, nodes []*corev1.Node) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(20)
	for _, node := range nodes {
		group.Go(func() error {
			_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
			if err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("creating node %s: %w", node.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// Await waits until every one of nodes is ready, schedulable and has its range of pod
// addresses, and pods can be created.
func Await(ctx context.Context, client kubernetes.Interface, nodes []*corev1.Node) error {
	for {
		problem := Problem(ctx, client, nodes)
		if problem == "" {
			_, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
			if err == nil {
				return nil
			}
			problem = "the default service account: " + err.Error()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for nodes: %w (%s)", context.Cause(ctx), problem)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Problem says which of nodes is missing or not ready, or "".
func Problem(ctx context.Context, client kubernetes.Interface, nodes []*corev1.Node) string {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return "listing nodes: " + err.Error()
	}
	found := map[string]*corev1.Node{}
	for i := range list.Items {
		found[list.Items[i].Name] = &list.Items[i]
	}
	for _, wanted := range nodes {
		node := found[wanted.Name]
		switch {
		case node == nil:
			return "node " + wanted.Name + " is missing"
		case !Ready(node):
			return "node " + wanted.Name + " is not ready"
		case node.Spec.PodCIDR == "":
			return "node " + wanted.Name + " has no range of pod addresses"
		}
	}
	return ""
}

// Ready tells whether a node is ready and its not-ready taint is gone.
func Ready(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable {
			return false
		}
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
