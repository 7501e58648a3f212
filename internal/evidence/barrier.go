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
)

const (
	// barrierNamespace has a default service account in every cluster.
	barrierNamespace = metav1.NamespaceDefault
	// barrierNode does not exist: a pod for it is never pending in the eyes of
	// tests that wait for the scheduler, and never runs.
	barrierNode    = "op-readiness-barrier"
	barrierLabel   = "op-readiness/barrier"
	barrierTimeout = 20 * time.Second
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
// through the watch.
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
	pods := b.client.CoreV1().Pods(barrierNamespace)
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making a barrier pod: %w", err)
	}
	now := int64(0)
	if err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting barrier pod %s/%s: %w", barrierNamespace, pod.Name, err)
	}
	select {
	case <-arrived:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for a barrier pod to be seen: %w", ctx.Err())
	}
}

// barrierPod satisfies the restricted Pod Security Standard.
func barrierPod() *corev1.Pod {
	yes, no, grace := true, false, int64(0)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:   "op-readiness-barrier-" + strings.ToLower(rand.Text()),
			Labels: map[string]string{barrierLabel: "true"},
		},
		Spec: corev1.PodSpec{
			NodeName:                      barrierNode,
			AutomountServiceAccountToken:  &no,
			TerminationGracePeriodSeconds: &grace,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot:   &yes,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name:  "barrier",
				Image: "registry.k8s.io/pause:3.10",
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no,
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}
