package nodelogs

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
)

// pods has group collect the logs of the namespace's pods, those of a node one
// after the other.
func (c *collector) pods(ctx context.Context, group *errgroup.Group, runs map[string]bool) {
	var list *corev1.PodList
	err := c.within(ctx, func(ctx context.Context) (err error) {
		list, err = c.client.CoreV1().Pods(system).List(ctx, metav1.ListOptions{})
		return err
	})
	if err != nil {
		c.miss(file("pods", system), reason(ctx, err))
		return
	}
	on := map[string][]*corev1.Pod{}
	for i := range list.Items {
		pod := &list.Items[i]
		switch node := pod.Spec.NodeName; {
		case node == "":
			c.miss(podPath(pod), "it has no node: "+cmp.Or(cluster.Trouble(pod), "it was not scheduled"))
		case !runs[node]:
			c.miss(podPath(pod), fmt.Sprintf("its node %s is simulated or gone: nothing runs there", node))
		default:
			on[node] = append(on[node], pod)
		}
	}
	for _, node := range on {
		group.Go(func() error {
			return c.within(ctx, func(ctx context.Context) error {
				for _, pod := range node {
					c.containers(ctx, pod)
				}
				return nil
			})
		})
	}
}

func podPath(pod *corev1.Pod) string { return file("pods", pod.Namespace, pod.Name) }

// containers collects what a pod's containers said, and what those before them
// said where they were started again.
func (c *collector) containers(ctx context.Context, pod *corev1.Pod) {
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		at := file("pods", pod.Namespace, pod.Name, s.Name)
		if !cluster.Ran(&s) {
			c.miss(at+".log", "it has not run: "+cmp.Or(cluster.Trouble(pod), "it waits"))
			continue
		}
		c.keepOrMiss(ctx, at+".log", c.said(pod, s.Name, false))
		if s.RestartCount > 0 {
			c.keepOrMiss(ctx, at+".previous.log", c.said(pod, s.Name, true))
		}
	}
	if len(pod.Status.InitContainerStatuses)+len(pod.Status.ContainerStatuses) == 0 {
		c.miss(podPath(pod), "none of its containers has run: "+strings.TrimSpace(pod.Status.Reason+" "+pod.Status.Message))
	}
}

func (c *collector) said(pod *corev1.Pod, container string, previous bool) func(context.Context, io.Writer) error {
	return func(ctx context.Context, w io.Writer) error {
		stream, err := c.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container, Previous: previous}).Stream(ctx)
		if err != nil {
			return err
		}
		defer stream.Close()
		_, err = io.Copy(w, stream)
		return err
	}
}
