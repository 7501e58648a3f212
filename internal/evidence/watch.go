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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/windows-op-readiness/windows-op-readiness/internal/result"
)

// Watch observes the pods of a cluster.
type Watch struct {
	client  kubernetes.Interface
	nodes   func(ctx context.Context, name string) (result.Node, error)
	stop    context.CancelFunc
	done    chan struct{}
	barrier *barrier

	begun, refused        chan struct{} // closed when the watch began, and when it is not allowed
	beginOnce, refuseOnce sync.Once

	mu sync.Mutex
	// namespaces has what was seen, by namespace and UID: a pod that was
	// deleted and made again under its old name is another.
	namespaces map[string]map[types.UID]*sight
	// settled are pods that are there and of no interest any more: those that
	// were there before, and those that were collected. The framework draws the
	// names of namespaces from ten thousand numbers, so that a later test may
	// have the name of an earlier one's.
	settled    map[types.UID]bool
	known      map[string]result.Node
	gap        gap // the newest one
	listedOnce bool
	newest     time.Time // when a pod was seen last
	failure    error     // what keeps the watch from going on; nil while it does
}

// sight is what was seen of a pod.
type sight struct {
	result.Pod
	deleted bool
}

// startTimeout is how long a watch may take to begin.
const startTimeout = 30 * time.Second

// Start begins to watch. It returns when the watch has begun, so that no pod
// that is made from then on is missed, or with the reason why it cannot.
// known are the nodes that are known already; look finds others.
func Start(ctx context.Context, client kubernetes.Interface, known []result.Node, look func(ctx context.Context, name string) (result.Node, error)) (*Watch, error) {
	ctx, stop := context.WithCancel(ctx)
	w := &Watch{
		client:     client,
		nodes:      look,
		stop:       stop,
		done:       make(chan struct{}),
		barrier:    newBarrier(client),
		begun:      make(chan struct{}),
		refused:    make(chan struct{}),
		namespaces: map[string]map[types.UID]*sight{},
		settled:    map[types.UID]bool{},
		known:      map[string]result.Node{},
	}
	for _, n := range known {
		w.known[n.Name] = n
	}
	informer := cache.NewSharedIndexInformer(w.lists(ctx), &corev1.Pod{}, 0, nil)
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if initial {
				w.settle(obj)
				return
			}
			w.take(obj)
		},
		UpdateFunc: func(_, obj any) { w.take(obj) },
		DeleteFunc: w.gone,
	})
	if err = errors.Join(err, informer.SetTransform(strip), informer.SetWatchErrorHandler(w.broke)); err != nil {
		stop()
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	go func() {
		defer close(w.done)
		informer.Run(ctx.Done())
	}()
	if err := w.begin(ctx, registration.HasSynced); err != nil {
		w.Stop()
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	return w, nil
}

// begin waits until the watch has begun, and the pods that were there before
// are known.
func (w *Watch) begin(ctx context.Context, synced func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("it did not begin within %v", startTimeout))
	defer cancel()
	select {
	case <-w.begun:
	case <-w.refused:
		return fmt.Errorf("the API server does not allow it (%w): it takes the permissions to list and to watch pods in all namespaces; 'op-readiness preflight --print-rbac' prints the role", w.trying())
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), w.trying())
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced) {
		return context.Cause(ctx)
	}
	return nil
}

// trying returns what keeps the watch from going on; nil while it does.
func (w *Watch) trying() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failure
}

// Stop ends the watch.
func (w *Watch) Stop() {
	w.stop()
	<-w.done
}

// strip keeps of a pod only what evidence is made of.
func strip(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	out := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		},
		Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName, RuntimeClassName: pod.Spec.RuntimeClassName},
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
	if seen := w.namespaces[pod.Namespace][pod.UID]; seen != nil {
		seen.deleted = true
	}
}

// take notes what is new of a pod.
func (w *Watch) take(obj any) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.newest = time.Now()
	if w.barrier.arrived(pod) || w.settled[pod.UID] {
		return
	}
	pods := w.namespaces[pod.Namespace]
	if pods == nil {
		pods = map[types.UID]*sight{}
		w.namespaces[pod.Namespace] = pods
	}
	seen := pods[pod.UID]
	if seen == nil {
		seen = &sight{Pod: result.Pod{Namespace: pod.Namespace, Name: pod.Name}}
		pods[pod.UID] = seen
	}
	seen.Observed = w.newest.UTC()
	if pod.Spec.NodeName != "" {
		seen.Node = pod.Spec.NodeName
	}
	if pod.Spec.RuntimeClassName != nil {
		seen.RuntimeClass = *pod.Spec.RuntimeClassName
	}
	for _, c := range pod.Spec.Containers {
		if !slices.Contains(seen.Images, c.Image) {
			seen.Images = append(seen.Images, c.Image)
		}
	}
	if phase := string(pod.Status.Phase); phase != "" && (len(seen.Phases) == 0 || seen.Phases[len(seen.Phases)-1] != phase) {
		seen.Phases = append(seen.Phases, phase)
	}
	for _, c := range pod.Status.Conditions {
		if c.Status == corev1.ConditionFalse {
			seen.SchedulingFailure = result.Cut(c.Message, 500)
		}
	}
}

// Collect returns the pods of the namespaces that a test named in its output
// when it ended, sorted, and forgets them. incomplete says why the pods may
// not be all there were, and "" where they are. since is when the test began,
// or a time before.
func (w *Watch) Collect(ctx context.Context, namespaces []string, since time.Time) (pods []result.Pod, incomplete string) {
	var unobserved []string
	if err := w.barrier.pass(ctx); err != nil {
		err = errors.Join(err, w.trying())
		unobserved = append(unobserved, fmt.Sprintf("the watch on pods did not catch up: %s", strings.ReplaceAll(err.Error(), "\n", ": ")))
	}
	w.mu.Lock()
	if w.gap.to.After(since) {
		unobserved = append(unobserved, w.gap.String())
	}
	for _, ns := range namespaces {
		for uid, seen := range w.namespaces[ns] {
			pods = append(pods, seen.Pod)
			if !seen.deleted {
				w.settled[uid] = true
			}
		}
		delete(w.namespaces, ns)
	}
	w.mu.Unlock()
	slices.SortFunc(pods, func(a, b result.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), a.Observed.Compare(b.Observed))
	})
	for i := range pods {
		if pods[i].Node == "" {
			continue
		}
		node, err := w.node(ctx, pods[i].Node)
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

// CollectRun is [Watch.Collect] for a test that named no namespaces because it
// was killed: it takes those that e2e.test's process of that run id made and
// that are still there. Pods of the tests before it were collected already.
func (w *Watch) CollectRun(ctx context.Context, suiteRunID string, since time.Time) (pods []result.Pod, incomplete string) {
	if suiteRunID == "" {
		return nil, "the run id of its process is not known"
	}
	list, err := w.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: "e2e-run=" + suiteRunID})
	if err != nil {
		return nil, fmt.Sprintf("its namespaces could not be listed: %v", err)
	}
	var namespaces []string
	for i := range list.Items {
		namespaces = append(namespaces, list.Items[i].Name)
	}
	return w.Collect(ctx, namespaces, since)
}

func (w *Watch) node(ctx context.Context, name string) (result.Node, error) {
	w.mu.Lock()
	node, ok := w.known[name]
	w.mu.Unlock()
	if ok {
		return node, nil
	}
	node, err := w.nodes(ctx, name)
	if err == nil {
		w.mu.Lock()
		w.known[name] = node
		w.mu.Unlock()
	}
	return node, err
}
