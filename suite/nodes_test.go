package suite

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/onsi/ginkgo/v2"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/test/e2e/framework"
)

// system is one of the two operating systems, and where its pods may go.
type system struct {
	os v1.OSName
	// nodes are ready, and take pods with the tolerations.
	nodes       []v1.Node
	tolerations []v1.Toleration
}

// target finds the nodes of the system under test. Without any the test fails.
func target(ctx context.Context, client clientset.Interface) *system {
	s := findSystem(ctx, client, v1.OSName(options.targetOS))
	if len(s.nodes) == 0 {
		framework.Failf("no %s node is ready and takes pods: the test has nothing to show", s.os)
	}
	return s
}

func findSystem(ctx context.Context, client clientset.Interface, os v1.OSName) *system {
	s := &system{os: os}
	all, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: v1.LabelOSStable + "=" + string(os)})
	framework.ExpectNoError(err, "listing the %s nodes", os)
	for i := range all.Items {
		if node := &all.Items[i]; takesPods(node) {
			s.nodes = append(s.nodes, *node)
			s.tolerate(node.Spec.Taints)
		}
	}
	return s
}

// takesPods reports whether pods can run on a node once they tolerate what keeps
// people off nodes of its system. A control plane, and a node with a condition of
// which Kubernetes made a taint, are left alone.
func takesPods(node *v1.Node) bool {
	if node.Spec.Unschedulable || !isReady(node) {
		return false
	}
	for _, taint := range node.Spec.Taints {
		if keepsAway(taint) && (strings.HasPrefix(taint.Key, "node.kubernetes.io/") || strings.HasPrefix(taint.Key, "node-role.kubernetes.io/")) {
			return false
		}
	}
	return true
}

func isReady(node *v1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == v1.NodeReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}

func keepsAway(t v1.Taint) bool {
	return t.Effect == v1.TaintEffectNoSchedule || t.Effect == v1.TaintEffectNoExecute
}

func (s *system) tolerate(taints []v1.Taint) {
	for _, taint := range taints {
		if keepsAway(taint) {
			s.tolerations = append(s.tolerations, v1.Toleration{Key: taint.Key, Operator: v1.TolerationOpEqual, Value: taint.Value, Effect: taint.Effect})
		}
	}
}

// untainted returns those of nodes that take ordinary pods, at most ten of each
// system, and each once.
func untainted(nodes []v1.Node) []v1.Node {
	const most = 10
	var some []v1.Node
	seen, count := map[string]bool{}, map[string]int{}
	for i := range nodes {
		n, os := &nodes[i], nodes[i].Labels[v1.LabelOSStable]
		if seen[n.Name] || count[os] == most || slices.ContainsFunc(n.Spec.Taints, keepsAway) {
			continue
		}
		seen[n.Name] = true
		count[os]++
		some = append(some, *n)
	}
	return some
}

// internalIP returns the address of a node in the cluster.
func internalIP(node *v1.Node) string {
	for _, a := range node.Status.Addresses {
		if a.Type == v1.NodeInternalIP {
			return a.Address
		}
	}
	return ""
}

// bearTaints lets nobody wait for nodes to lose a taint that the pods of tests
// tolerate.
func bearTaints(ctx context.Context, client clientset.Interface) {
	for _, os := range []v1.OSName{v1.Windows, v1.Linux} {
		for _, t := range findSystem(ctx, client, os).tolerations {
			framework.TestContext.NonblockingTaints += "," + t.Key
		}
	}
}

// has reports whether a node is one of the system's.
func (s *system) has(name string) bool {
	for i := range s.nodes {
		if s.nodes[i].Name == name {
			return true
		}
	}
	return false
}

// roomiest returns the node with the most free places for pods, and how many
// these are.
func (s *system) roomiest(ctx context.Context, client clientset.Interface) (*v1.Node, int) {
	pods, err := client.CoreV1().Pods(v1.NamespaceAll).List(ctx, metav1.ListOptions{})
	framework.ExpectNoError(err, "listing all pods")
	taken := map[string]int{}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Status.Phase != v1.PodSucceeded && p.Status.Phase != v1.PodFailed {
			taken[p.Spec.NodeName]++
		}
	}
	var best *v1.Node
	most := -1
	for i := range s.nodes {
		node := &s.nodes[i]
		if free := int(node.Status.Allocatable.Pods().Value()) - taken[node.Name]; free > most {
			best, most = node, free
		}
	}
	return best, most
}

// watchUnready notes, until the test ends, which of the nodes are at any moment not
// ready, or gone. The function returns them.
func watchUnready(ctx context.Context, client clientset.Interface, nodes []v1.Node) func() []string {
	ginkgo.GinkgoHelper()
	var mu sync.Mutex
	seen := map[string]bool{}
	watched := map[string]bool{}
	for i := range nodes {
		watched[nodes[i].Name] = true
	}
	note := func(name, what string) {
		mu.Lock()
		defer mu.Unlock()
		if watched[name] {
			seen[name+" "+what] = true
		}
	}
	informer := informers.NewSharedInformerFactory(client, 0).Core().V1().Nodes().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) {
			if node, ok := o.(*v1.Node); ok && !isReady(node) {
				note(node.Name, "was not ready")
			}
		},
		UpdateFunc: func(_, o any) {
			if node, ok := o.(*v1.Node); ok && !isReady(node) {
				note(node.Name, "was not ready")
			}
		},
		DeleteFunc: func(o any) {
			if node, ok := o.(*v1.Node); ok {
				note(node.Name, "was deleted")
			}
		},
	})
	framework.ExpectNoError(err, "watching nodes")
	ctx, cancel := context.WithCancel(ctx)
	ginkgo.DeferCleanup(cancel)
	go informer.Run(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		framework.Failf("the nodes cannot be watched")
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Sorted(maps.Keys(seen))
	}
}
