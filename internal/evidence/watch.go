package evidence

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
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

	mu         sync.Mutex
	namespaces map[string]map[string]*result.Pod // by namespace and name
	known      map[string]result.Node
	gaps       []gap
}

// gap is a time in which events may have been lost.
type gap struct {
	at  time.Time
	why string
}

// Start begins to watch. It returns when the watch has begun, so that no pod
// that is made from then on is missed, or with the first error. known are the nodes that are known
// already; look finds others.
func Start(ctx context.Context, client kubernetes.Interface, known []result.Node, look func(ctx context.Context, name string) (result.Node, error)) (*Watch, error) {
	ctx, stop := context.WithCancel(ctx)
	w := &Watch{
		client:     client,
		nodes:      look,
		stop:       stop,
		done:       make(chan struct{}),
		namespaces: map[string]map[string]*result.Pod{},
		known:      map[string]result.Node{},
	}
	for _, n := range known {
		w.known[n.Name] = n
	}
	w.barrier = newBarrier(client)
	informer := informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer()
	if err := errors.Join(informer.SetTransform(strip), informer.SetWatchErrorHandler(w.broke)); err != nil {
		stop()
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if !initial {
				w.take(obj)
			}
		},
		UpdateFunc: func(_, obj any) { w.take(obj) },
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			w.take(obj)
		},
	})
	if err != nil {
		stop()
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	go func() {
		defer close(w.done)
		informer.Run(ctx.Done())
	}()
	begun, refused := registration.HasSynced, func() bool { return w.lastGap() != nil }
	cache.WaitForCacheSync(ctx.Done(), func() bool { return begun() || refused() })
	if !begun() {
		stop()
		<-w.done
		return nil, fmt.Errorf("watching pods: %w", errors.Join(ctx.Err(), w.lastGap()))
	}
	return w, nil
}

// Stop ends the watch.
func (w *Watch) Stop() {
	w.stop()
	<-w.done
}

// broke is told that the watch must begin anew with a list: what happened in
// between may be lost.
func (w *Watch) broke(_ *cache.Reflector, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gaps = append(w.gaps, gap{time.Now(), err.Error()})
}

func (w *Watch) lastGap() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.gaps) == 0 {
		return nil
	}
	return errors.New(w.gaps[len(w.gaps)-1].why)
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

// take notes what is new of a pod.
func (w *Watch) take(obj any) {
	pod, ok := obj.(*corev1.Pod)
	if !ok || w.barrier.arrived(pod) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	pods := w.namespaces[pod.Namespace]
	if pods == nil {
		pods = map[string]*result.Pod{}
		w.namespaces[pod.Namespace] = pods
	}
	// A pod that was deleted and made again under its old name is another.
	key := pod.Name + "/" + string(pod.UID)
	seen := pods[key]
	if seen == nil {
		seen = &result.Pod{Namespace: pod.Namespace, Name: pod.Name}
		pods[key] = seen
	}
	seen.Observed = time.Now().UTC()
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
// not be all there were, and "" where they are; since is when the test began.
func (w *Watch) Collect(ctx context.Context, namespaces []string, since time.Time) (pods []result.Pod, incomplete string) {
	if err := w.barrier.pass(ctx); err != nil {
		incomplete = fmt.Sprintf("the watch on pods did not catch up: %v", err)
	}
	w.mu.Lock()
	for _, g := range w.gaps {
		if g.at.After(since) {
			incomplete = "the watch on pods was broken while it ran: " + g.why
		}
	}
	for _, ns := range namespaces {
		for _, key := range slices.Sorted(maps.Keys(w.namespaces[ns])) {
			pods = append(pods, *w.namespaces[ns][key])
		}
		delete(w.namespaces, ns)
	}
	w.mu.Unlock()
	for i := range pods {
		if pods[i].Node == "" {
			continue
		}
		node, err := w.node(ctx, pods[i].Node)
		if err != nil {
			incomplete = fmt.Sprintf("node %s could not be looked up: %v", pods[i].Node, err)
			continue
		}
		pods[i].OS, pods[i].WindowsBuild, pods[i].Simulated = node.OS, node.WindowsBuild, node.Simulated
	}
	return pods, incomplete
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
