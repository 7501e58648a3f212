package kwok

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Simulated nodes carry this annotation, which makes kwok play them, and this
// label, by which users and tests can tell.
const (
	nodeAnnotation      = "kwok.x-k8s.io/node"
	nodeAnnotationValue = "fake"
	nodeSelector        = "type=kwok"
)

// WindowsVersions returns the releases that nodes can be of, such as "ltsc2022",
// oldest first.
func WindowsVersions() []string {
	var versions []string
	for _, r := range specs.WindowsReleases() {
		versions = append(versions, "ltsc"+r.Year)
	}
	return versions
}

// windowsRelease is the release of that version, one of [WindowsVersions].
func windowsRelease(version string) (specs.WindowsRelease, bool) {
	for _, r := range specs.WindowsReleases() {
		if "ltsc"+r.Year == version {
			return r, true
		}
	}
	return specs.WindowsRelease{}, false
}

// simulatedNodes returns the nodes of the cluster that o describes.
func simulatedNodes(o Options) []*corev1.Node {
	var nodes []*corev1.Node
	for i := range o.LinuxNodes {
		node := simulatedNode(nodeName(corev1.Linux, i), o.KubernetesVersion)
		node.Labels[corev1.LabelOSStable] = string(corev1.Linux)
		node.Labels[corev1.LabelArchStable] = runtime.GOARCH
		node.Status.NodeInfo.Architecture = runtime.GOARCH
		node.Status.NodeInfo.OperatingSystem = string(corev1.Linux)
		node.Status.NodeInfo.OSImage = "Ubuntu 24.04.3 LTS"
		node.Status.NodeInfo.KernelVersion = "6.8.0-79-generic"
		setAddress(node, fmt.Sprintf("198.18.0.%d", i+1))
		nodes = append(nodes, node)
	}
	for i := range o.WindowsNodes {
		windows, _ := windowsRelease(o.WindowsVersion)
		node := simulatedNode(nodeName(corev1.Windows, i), o.KubernetesVersion)
		node.Labels[corev1.LabelOSStable] = string(corev1.Windows)
		node.Labels[corev1.LabelArchStable] = "amd64" // the only one that Windows nodes have
		node.Labels[corev1.LabelWindowsBuild] = windows.Build
		node.Status.NodeInfo.Architecture = "amd64"
		node.Status.NodeInfo.OperatingSystem = string(corev1.Windows)
		node.Status.NodeInfo.OSImage = fmt.Sprintf("Windows Server %s Datacenter", windows.Year)
		node.Status.NodeInfo.KernelVersion = windows.Build + ".3328"
		setAddress(node, fmt.Sprintf("198.18.1.%d", i+1))
		nodes = append(nodes, node)
	}
	return nodes
}

func nodeName(system corev1.OSName, i int) string { return fmt.Sprintf("%s-%d", system, i+1) }

// simulatedNode returns what Linux and Windows nodes have in common.
func simulatedNode(name, version string) *corev1.Node {
	resources := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("8"),
		corev1.ResourceMemory:           resource.MustParse("16Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("128Gi"),
		corev1.ResourcePods:             resource.MustParse("110"),
	}
	label, value, _ := strings.Cut(nodeSelector, "=")
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{nodeAnnotation: nodeAnnotationValue},
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

// setAddress gives node an address of its own, of the range that RFC 2544
// sets aside for tests, and the name under which kwok's server answers for it.
func setAddress(node *corev1.Node, address string) {
	node.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: address},
		{Type: corev1.NodeHostName, Address: node.Name},
		{Type: corev1.NodeInternalDNS, Address: "localhost"},
	}
}

// addNodes creates the nodes of the cluster that o describes.
func addNodes(ctx context.Context, client kubernetes.Interface, o Options) error {
	for _, node := range simulatedNodes(o) {
		_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating node %s: %w", node.Name, err)
		}
	}
	return nil
}

// awaitNodes waits until every node is ready, schedulable and has its range of
// pod addresses, and pods can be created.
func awaitNodes(ctx context.Context, client kubernetes.Interface, o Options) error {
	for {
		var problem string
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: nodeSelector})
		if err == nil {
			problem = nodesProblem(nodes.Items, o.LinuxNodes, o.WindowsNodes)
		} else {
			problem = "listing nodes: " + err.Error()
		}
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

// nodesProblem says which node is missing or not ready, or "".
func nodesProblem(nodes []corev1.Node, linux, windows int) string {
	found := map[string]*corev1.Node{}
	for i := range nodes {
		found[nodes[i].Name] = &nodes[i]
	}
	for _, count := range []struct {
		system corev1.OSName
		nodes  int
	}{{corev1.Linux, linux}, {corev1.Windows, windows}} {
		for i := range count.nodes {
			name := nodeName(count.system, i)
			node := found[name]
			switch {
			case node == nil:
				return "node " + name + " is missing"
			case !isReady(node):
				return "node " + name + " is not ready"
			case node.Spec.PodCIDR == "":
				return "node " + name + " has no range of pod addresses"
			}
		}
	}
	return ""
}

// isReady tells whether a node is ready and its not-ready taint is gone.
func isReady(node *corev1.Node) bool {
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
