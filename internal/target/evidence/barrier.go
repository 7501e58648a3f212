package evidence

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
)

const (
	// barrierNamespace has a default service account in every cluster.
	barrierNamespace = metav1.NamespaceDefault
	// barrierNode does not exist: a pod for it is never pending in the eyes of
	// tests that wait for the scheduler, and never runs.
	barrierNode    = "op-readiness-barrier"
	barrierLabel   = "op-readiness/barrier"
	barrierTimeout = 20 * time.Second
	barrierRetry   = 250 * time.Millisecond
)

// barrier makes pods that go through the watch, to know what has come before.
type barrier struct {
	client kubernetes.Interface

	mu      sync.Mutex
	waiting map[string]chan struct{} // by pod name
}

func newBarrier(client kubernetes.Interface) *barrier {
	return &barrier{client: client, waiting: map[string]chan struct{}{}}
}

// arrived reports whether the pod is a barrier, and lets go who waits for it.
func (b *barrier) arrived(pod *corev1.Pod) bool {
	if pod.Namespace != barrierNamespace || pod.Spec.NodeName != barrierNode {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if waiting, ok := b.waiting[pod.Name]; ok {
		close(waiting)
		delete(b.waiting, pod.Name)
	}
	return true
}

// pass returns when everything that happened to pods before the call has come
// through the watch. The pod goes when it was seen: a watch that begins anew
// meanwhile sees it in its list.
func (b *barrier) pass(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, barrierTimeout)
	defer cancel()
	pod := barrierPod()
	arrived := make(chan struct{})
	b.mu.Lock()
	b.waiting[pod.Name] = arrived
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		delete(b.waiting, pod.Name)
		b.mu.Unlock()
	}()
	made, err := b.make(ctx, pod)
	if err != nil {
		return fmt.Errorf("making a barrier pod: %w", err)
	}
	defer b.remove(made)
	select {
	case <-arrived:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for barrier pod %s/%s to be seen: %w", barrierNamespace, pod.Name, ctx.Err())
	}
}

// make makes the pod; it tries again while the API server has troubles that
// pass.
func (b *barrier) make(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	for {
		made, err := b.client.CoreV1().Pods(barrierNamespace).Create(ctx, pod, metav1.CreateOptions{})
		switch {
		case err == nil:
			return made, nil
		case apierrors.IsAlreadyExists(err): // it was made, and the answer was lost
			return pod, nil
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsInvalid(err), apierrors.IsNotFound(err), apierrors.IsBadRequest(err):
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(barrierRetry):
		}
	}
}

// remove deletes the pod, also when nobody waits for it any more. One that
// stays is removed by the cluster: its node does not exist.
func (b *barrier) remove(pod *corev1.Pod) {
	ctx, cancel := context.WithTimeout(context.Background(), barrierTimeout/4)
	defer cancel()
	now := int64(0)
	_ = b.client.CoreV1().Pods(barrierNamespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
}

// barrierPod satisfies the restricted Pod Security Standard.
func barrierPod() *corev1.Pod {
	pod := cluster.RestrictedPod("op-readiness-barrier-"+strings.ToLower(rand.Text()), "barrier")
	grace := int64(0)
	pod.Labels = map[string]string{barrierLabel: "true"}
	pod.Spec.NodeName, pod.Spec.TerminationGracePeriodSeconds = barrierNode, &grace
	return pod
}
