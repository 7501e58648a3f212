package evidence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Watch observes the pods of a cluster, the namespaces that they are in, and what
// becomes of the nodes.
type Watch struct {
	client  kubernetes.Interface
	look    func(ctx context.Context, name string) (result.Node, error)
	stop    context.CancelFunc
	barrier *barrier
	// Nothing is known of the order of events of different watches.
	pods, namespaces, nodes *stream

	mu sync.Mutex
	// seen has what was seen of pods, by namespace and UID: a pod that was
	// deleted and made again under its old name is another.
	seen map[string]map[types.UID]*sight
	// settled are pods that are there and of no interest any more: those that
	// were there before, and those that were collected. The framework draws the
	// names of namespaces from ten thousand numbers, so that a later test may
	// have the name of an earlier one's.
	settled map[types.UID]bool
	known   map[string]result.Node
	// homes are the namespaces that were seen, by name, oldest first.
	homes map[string][]home
	// own are the run ids of this run's processes.
	own   map[string]bool
	keep  time.Duration // see [keep]
	swept time.Time     // when others' pods were let go last
	// changes are those of nodes, in their order, and newest what is known of each
	// node.
	changes []change
	newest  map[string]newest
	// told is closed, and made again, when a namespace or a node was seen.
	told chan struct{}
	// lag is by how much the watches on namespaces and nodes may be behind that on
	// pods.
	lag time.Duration
}

// sight is what was seen of a pod.
type sight struct {
	result.Pod
	made    time.Time
	first   time.Time // when it was seen first
	deleted bool
}

// Start begins to watch. It returns when the watch has begun, so that no pod
// that is made from then on is missed, or with the reason why it cannot.
// known are the nodes that are known already; look finds others.
func Start(ctx context.Context, client kubernetes.Interface, known []result.Node, look func(ctx context.Context, name string) (result.Node, error)) (*Watch, error) {
	ctx, stop := context.WithCancel(ctx)
	w := &Watch{
		client:  client,
		look:    look,
		stop:    stop,
		barrier: newBarrier(client),
		seen:    map[string]map[types.UID]*sight{},
		settled: map[types.UID]bool{},
		known:   map[string]result.Node{},
		homes:   map[string][]home{},
		own:     map[string]bool{},
		keep:    keep,
		swept:   time.Now(),
		newest:  map[string]newest{},
		told:    make(chan struct{}),
		lag:     10 * time.Second,
	}
	for _, n := range known {
		w.known[n.Name] = n
	}
	pods, namespaces, nodes := client.CoreV1().Pods(metav1.NamespaceAll), client.CoreV1().Namespaces(), client.CoreV1().Nodes()
	w.pods = &stream{
		what: "pods", kind: &corev1.Pod{}, watch: pods.Watch,
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) },
	}
	w.namespaces = &stream{
		what: "namespaces", kind: &corev1.Namespace{}, watch: namespaces.Watch,
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return namespaces.List(ctx, o)
		},
	}
	w.nodes = &stream{
		what: "nodes", kind: &corev1.Node{}, watch: nodes.Watch,
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return nodes.List(ctx, o) },
	}
	for _, begin := range []func() error{
		func() error { return w.nodes.start(ctx, stripNode, w.tellsNodes()) },
		func() error { return w.namespaces.start(ctx, stripNamespace, w.tellsNamespaces()) },
		func() error { return w.pods.start(ctx, strip, w.tellsPods()) },
	} {
		if err := begin(); err != nil {
			w.Stop()
			return nil, err
		}
	}
	return w, nil
}

// Stop ends the watch.
func (w *Watch) Stop() {
	w.stop()
	for _, s := range []*stream{w.nodes, w.namespaces, w.pods} {
		if s.done != nil { // it was started
			<-s.done
		}
	}
}

// tellsPods is what takes the events of pods.
func (w *Watch) tellsPods() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if initial {
				w.settle(obj)
				return
			}
			w.take(obj)
		},
		UpdateFunc: func(_, obj any) { w.take(obj) },
		DeleteFunc: w.gone,
	}
}

// strip keeps of a pod only what evidence is made of.
func strip(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	out := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, CreationTimestamp: pod.CreationTimestamp,
		},
		Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName, RuntimeClassName: pod.Spec.RuntimeClassName, OS: pod.Spec.OS},
		Status: corev1.PodStatus{
			Phase:      pod.Status.Phase,
			Conditions: slices.DeleteFunc(slices.Clone(pod.Status.Conditions), func(c corev1.PodCondition) bool { return c.Type != corev1.PodScheduled }),
		},
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		out.Spec.Containers = append(out.Spec.Containers, corev1.Container{Name: c.Name, Image: c.Image})
	}
	for _, c := range pod.Spec.EphemeralContainers {
		out.Spec.Containers = append(out.Spec.Containers, corev1.Container{Name: c.Name, Image: c.Image})
	}
	// Of what kind a container is does not matter for whether it ran.
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses) {
		out.Status.ContainerStatuses = append(out.Status.ContainerStatuses, corev1.ContainerStatus{State: c.State, LastTerminationState: c.LastTerminationState})
	}
	return out, nil
}

// settle notes a pod that is nobody's.
func (w *Watch) settle(obj any) {
	pod, ok := obj.(*corev1.Pod)
	if !ok || w.barrier.arrived(pod) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled[pod.UID] = true
}

// gone notes that a pod was deleted. Where its last state is only what was
// seen before a gap, nothing new is known of it.
func (w *Watch) gone(obj any) {
	last, unseen := obj.(cache.DeletedFinalStateUnknown)
	if unseen {
		obj = last.Obj
	} else {
		w.take(obj)
	}
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.settled, pod.UID)
	if seen := w.seen[pod.Namespace][pod.UID]; seen != nil {
		seen.deleted = true
	}
}

// take notes what is new of a pod.
func (w *Watch) take(obj any) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	now := w.pods.saw()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sweep(now)
	if w.barrier.arrived(pod) || w.settled[pod.UID] {
		return
	}
	pods := w.seen[pod.Namespace]
	if pods == nil {
		pods = map[types.UID]*sight{}
		w.seen[pod.Namespace] = pods
	}
	seen := pods[pod.UID]
	if seen == nil {
		seen = &sight{Pod: result.Pod{Namespace: pod.Namespace, Name: pod.Name}, made: pod.CreationTimestamp.Time, first: now}
		pods[pod.UID] = seen
	}
	seen.Observed = now.UTC()
	if pod.Spec.NodeName != "" {
		seen.Node = pod.Spec.NodeName
	}
	if pod.Spec.RuntimeClassName != nil {
		seen.RuntimeClass = *pod.Spec.RuntimeClassName
	}
	if pod.Spec.OS != nil {
		seen.PodOS = specs.OS(result.Cut(string(pod.Spec.OS.Name), 20))
	}
	for _, c := range pod.Spec.Containers {
		if !slices.Contains(seen.Images, c.Image) {
			seen.Images = append(seen.Images, c.Image)
		}
	}
	if phase := string(pod.Status.Phase); phase != "" && (len(seen.Phases) == 0 || seen.Phases[len(seen.Phases)-1] != phase) {
		seen.Phases = append(seen.Phases, phase)
	}
	for i := range pod.Status.ContainerStatuses {
		seen.Started = seen.Started || cluster.Ran(&pod.Status.ContainerStatuses[i])
	}
	for _, c := range pod.Status.Conditions {
		if c.Status == corev1.ConditionFalse {
			seen.SchedulingFailure = result.Cut(c.Message, 500)
		}
	}
}

// noRun is why nothing counts of a process that did not tell its run id: no
// namespace can be told to be its own.
const noRun = "the run id of its process is not known, so no namespace is known to be its own"

// Collect returns the pods of the namespaces that a test named in its output
// when it ended, sorted, and forgets them; of those namespaces only that carry
// the run id of its process. incomplete says why the pods may not be all there
// were, and "" where they are. since is when the test began, or a time before.
func (w *Watch) Collect(ctx context.Context, suiteRunID string, namespaces []string, since time.Time) (pods []result.Pod, incomplete string) {
	if suiteRunID == "" {
		return nil, noRun
	}
	unobserved, patience := w.pass(ctx)
	unobserved = append(unobserved, w.claim(ctx, patience, namespaces, suiteRunID)...)
	return w.collect(ctx, namespaces, suiteRunID, since, unobserved)
}

// CollectRun is [Watch.Collect] for a test that named no namespaces because it
// was killed: it takes those that e2e.test's process of that run id made. Pods
// of the tests before it were collected already.
func (w *Watch) CollectRun(ctx context.Context, suiteRunID string, since time.Time) (pods []result.Pod, incomplete string) {
	if suiteRunID == "" {
		return nil, noRun
	}
	unobserved, patience := w.pass(ctx)
	namespaces, late := w.homesOf(ctx, patience, suiteRunID)
	return w.collect(ctx, namespaces, suiteRunID, since, append(unobserved, late...))
}

// pass waits until the watch on pods has caught up, and says why it did not.
// patience is for how long it is worth to wait for namespaces then: where the
// evidence is incomplete anyway, not at all.
func (w *Watch) pass(ctx context.Context) (unobserved []string, patience time.Duration) {
	if err := w.barrier.pass(ctx); err != nil {
		return []string{behind(w.pods, err)}, 0
	}
	return nil, w.lag
}

// behind says that a watch did not catch up, and why.
func behind(s *stream, err error) string {
	err = errors.Join(err, s.trying())
	return fmt.Sprintf("the watch on %s did not catch up: %s", s.what, strings.ReplaceAll(err.Error(), "\n", ": "))
}

// collect takes the pods of a run in namespaces of these names. unobserved is why
// they may not be all.
func (w *Watch) collect(ctx context.Context, namespaces []string, suiteRunID string, since time.Time, unobserved []string) (pods []result.Pod, incomplete string) {
	for _, s := range []*stream{w.pods, w.namespaces} {
		if missed := s.missed(since); missed != "" {
			unobserved = append(unobserved, missed)
		}
	}
	w.mu.Lock()
	for _, ns := range namespaces {
		left := 0
		for uid, seen := range w.seen[ns] {
			ours, others := w.whose(ns, seen.made, func(run string) bool { return run == suiteRunID })
			if !ours || others {
				if ours {
					left++
				}
				continue
			}
			pods = append(pods, seen.Pod)
			if !seen.deleted {
				w.settled[uid] = true
			}
			delete(w.seen[ns], uid)
		}
		if left > 0 {
			unobserved = append(unobserved, fmt.Sprintf("%s, perhaps of another namespace %s, not taken", text.Count(left, "pod"), ns))
		}
		if len(w.seen[ns]) == 0 {
			delete(w.seen, ns)
		}
	}
	w.mu.Unlock()
	slices.SortFunc(pods, func(a, b result.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), a.Observed.Compare(b.Observed))
	})
	for i := range pods {
		if pods[i].Node == "" {
			continue
		}
		node, err := w.factsOf(ctx, pods[i].Node)
		if err != nil {
			unobserved = append(unobserved, fmt.Sprintf("node %s could not be looked up: %v", pods[i].Node, err))
			continue
		}
		if node.Contradiction != "" {
			unobserved = append(unobserved, fmt.Sprintf("node %s contradicts itself: it %s", node.Name, node.Contradiction))
		}
		pods[i].OS, pods[i].WindowsBuild, pods[i].Simulated = node.OS, node.WindowsBuild, node.Simulated
	}
	return pods, strings.Join(slices.Compact(unobserved), "; ")
}

func (w *Watch) factsOf(ctx context.Context, name string) (result.Node, error) {
	w.mu.Lock()
	node, ok := w.known[name]
	w.mu.Unlock()
	if ok {
		return node, nil
	}
	node, err := w.look(ctx, name)
	if err == nil {
		w.mu.Lock()
		w.known[name] = node
		w.mu.Unlock()
	}
	return node, err
}
