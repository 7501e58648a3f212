package suite

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/test/e2e/framework"
	admissionapi "k8s.io/pod-security-admission/api"
	"k8s.io/utils/ptr"

	"github.com/windows-op-readiness/windows-op-readiness/suite/judge"
)

var _ = describe(func() {
	f := framework.NewDefaultFramework("churn")
	f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

	const (
		times          = 50
		withinEach     = 2 * time.Minute
		disturbers     = 5
		disturbEvery   = 3 * time.Second
		disturbAtLeast = 100
		settleWithin   = 5 * time.Minute
	)

	framework.It("A Deployment pod should be rescheduled 50 times under continuous deletions", framework.WithSerial(), framework.WithSlow(), func(ctx context.Context) {
		windows := target(ctx, f.ClientSet)
		unready := watchUnready(ctx, f.ClientSet, windows.nodes)
		deploy(ctx, f, windows, "churn", 1)
		deploy(ctx, f, windows, "noise", disturbers)
		settled(ctx, f, windows, within(podStart))

		noise := disturb(ctx, f, "noise", long(disturbEvery))
		var took []time.Duration
		before := waitReplaced(ctx, f, windows, "", 0, withinEach)
		for n := 1; n <= times; n++ {
			began := time.Now()
			err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).Delete(ctx, before.Name, metav1.DeleteOptions{})
			framework.ExpectNoError(err, "deleting pod %s", before.Name)
			before = waitReplaced(ctx, f, windows, before.UID, n, withinEach)
			took = append(took, time.Since(began))
		}
		gomega.Eventually(ctx, noise.said).WithTimeout(within(3*disturbAtLeast*disturbEvery)).Should(
			gomega.WithTransform(func(s said) int { return s.deleted }, gomega.BeNumerically(">=", disturbAtLeast)),
			func() string { return noise.String(disturbAtLeast) })
		noise.stop()
		settled(ctx, f, windows, within(settleWithin))
		if nodes := unready(); len(nodes) > 0 {
			framework.Failf("nodes did not stay ready: %v", nodes)
		}
		slices.Sort(took)
		measured("rescheduling, median", took[len(took)/2].Round(time.Millisecond))
		measured("rescheduling, longest", took[len(took)-1].Round(time.Millisecond))
		measured("deletions beside it", noise.said().deleted)
	})
})

var _ = describe(func() {
	f := framework.NewDefaultFramework("ten")
	f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

	const (
		replicas    = 10
		fewer       = 5
		reachWithin = 2 * time.Minute
		goneWithin  = time.Minute
		spreadDials = 200
	)

	// routes has a Service with ten endpoints, then five, then ten again, and dials it
	// from both systems.
	routes := func(ctx context.Context, kind v1.ServiceType, addresses func(s *v1.Service, from *v1.Pod) []address) {
		windows, linux := target(ctx, f.ClientSet), opposite(ctx, f)
		deployOf(ctx, f, "ten", replicas, windows.netexec().Spec, nil)
		service := serve(ctx, f, f.Namespace.Name, "ten", "ten", v1.ServiceSpec{Type: kind})
		clients := []*v1.Pod{
			client(ctx, f, windows, "client-target"),
			client(ctx, f, linux, "client-other"),
		}
		for _, step := range []struct {
			replicas int32
			limit    time.Duration
			when     string
		}{
			{replicas, reachWithin, "of a Deployment of ten"},
			{fewer, goneWithin, "after the Deployment was scaled to five"},
			{replicas, reachWithin, "after the Deployment was scaled to ten again"},
		} {
			scale(ctx, f, "ten", step.replicas)
			names := waitReady(ctx, f, "ten", int(step.replicas))
			for _, from := range clients {
				for _, to := range addresses(service, from) {
					reaches(ctx, f, from, to, names, step.limit, step.when)
				}
			}
		}
		for _, from := range clients {
			for _, to := range addresses(service, from) {
				d, err := dial(ctx, f, from, to.host, to.port, spreadDials)
				framework.ExpectNoError(err)
				gomega.Expect(d.Spread()).To(gomega.BeEmpty(), "answers that pod %s gets at %s", from.Name, to)
			}
		}
	}

	framework.It("A ClusterIP should route to ten Windows pods", func(ctx context.Context) {
		routes(ctx, v1.ServiceTypeClusterIP, func(s *v1.Service, _ *v1.Pod) []address {
			return []address{clusterIP(s)}
		})
	})

	framework.It("A NodePort should route to ten Windows pods on every node", func(ctx context.Context) {
		nodes := nodesWithPorts(target(ctx, f.ClientSet), opposite(ctx, f))
		routes(ctx, v1.ServiceTypeNodePort, func(s *v1.Service, from *v1.Pod) []address {
			return nodes.of(ctx, f, s, from)
		})
	})
})

// deploy makes a Deployment of pause pods of the system.
func deploy(ctx context.Context, f *framework.Framework, s *system, name string, replicas int32) {
	ginkgo.GinkgoHelper()
	deployOf(ctx, f, name, replicas, s.pause().Spec, nil)
}

// deployOf makes a Deployment of such pods, with those labels and one of its own.
func deployOf(ctx context.Context, f *framework.Framework, name string, replicas int32, pod v1.PodSpec, more map[string]string) {
	ginkgo.GinkgoHelper()
	labels := map[string]string{"app": name}
	maps.Copy(labels, more)
	_, err := f.ClientSet.AppsV1().Deployments(f.Namespace.Name).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(replicas),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	}, metav1.CreateOptions{})
	framework.ExpectNoError(err, "creating Deployment %s", name)
}

// scale changes how many pods a Deployment has.
func scale(ctx context.Context, f *framework.Framework, name string, replicas int32) {
	ginkgo.GinkgoHelper()
	patch := fmt.Sprintf(`{"spec": {"replicas": %d}}`, replicas)
	_, err := f.ClientSet.AppsV1().Deployments(f.Namespace.Name).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	framework.ExpectNoError(err, "scaling Deployment %s", name)
}

// waitReady returns the names of the Deployment's pods when there are so many, all
// ready.
func waitReady(ctx context.Context, f *framework.Framework, app string, n int) []string {
	ginkgo.GinkgoHelper()
	var names []string
	gomega.Eventually(ctx, func(ctx context.Context) (int, error) {
		var err error
		names, err = ready(ctx, f, app)
		return len(names), err
	}).WithTimeout(podStart).Should(gomega.Equal(n), "ready pods of Deployment %s", app)
	return names
}

// settled returns when the Deployments of the namespace have just the pods that
// they are to have, ready and on nodes of the system.
func settled(ctx context.Context, f *framework.Framework, s *system, limit time.Duration) {
	ginkgo.GinkgoHelper()
	client, namespace := f.ClientSet, f.Namespace.Name
	gomega.Eventually(ctx, func(ctx context.Context) ([]string, error) {
		deployments, err := client.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		sets, err := client.AppsV1().ReplicaSets(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		return judge.Settled(deployments.Items, sets.Items, pods.Items, s.has), nil
	}).WithTimeout(limit).Should(gomega.BeEmpty(), "what is not as the Deployments ask")
}

// waitReplaced returns the ready pod of Deployment churn that is not the one of
// that UID.
func waitReplaced(ctx context.Context, f *framework.Framework, s *system, old types.UID, n int, limit time.Duration) v1.Pod {
	ginkgo.GinkgoHelper()
	var found v1.Pod
	gomega.Eventually(ctx, func(ctx context.Context) (string, error) {
		pods, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).List(ctx, metav1.ListOptions{LabelSelector: "app=churn"})
		if err != nil {
			return "", err
		}
		states := "no other pod is there"
		for _, pod := range pods.Items {
			if pod.UID == old || pod.DeletionTimestamp != nil {
				continue
			}
			if judge.Ready(&pod) && s.has(pod.Spec.NodeName) {
				found = pod
				return "", nil
			}
			states = stateOf(&pod)
		}
		return states, nil
	}).WithTimeout(within(limit)).WithPolling(min(framework.Poll, long(framework.Poll))).Should(gomega.BeEmpty(),
		"replacement %d of the pod, which is to be ready within %v", n, within(limit))
	return found
}

// disturbance deletes pods of a Deployment, one after the other.
type disturbance struct {
	cancel context.CancelFunc
	done   chan struct{}

	mu  sync.Mutex
	sum said
}

// said is what came of deletions.
type said struct {
	deleted int
	refused error // the last refusal
}

func disturb(ctx context.Context, f *framework.Framework, app string, every time.Duration) *disturbance {
	ctx, cancel := context.WithCancel(ctx)
	d := &disturbance{cancel: cancel, done: make(chan struct{})}
	ginkgo.DeferCleanup(d.stop)
	go func() {
		defer close(d.done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				d.deleteOne(ctx, f, app)
			}
		}
	}()
	return d
}

func (d *disturbance) deleteOne(ctx context.Context, f *framework.Framework, app string) {
	client := f.ClientSet.CoreV1().Pods(f.Namespace.Name)
	pods, err := client.List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	if err == nil {
		pods.Items = slices.DeleteFunc(pods.Items, func(p v1.Pod) bool { return p.DeletionTimestamp != nil })
		if len(pods.Items) == 0 {
			return
		}
		err = client.Delete(ctx, pods.Items[rand.IntN(len(pods.Items))].Name, metav1.DeleteOptions{})
	}
	if ctx.Err() != nil || apierrors.IsNotFound(err) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.sum.refused = err
		return
	}
	d.sum.deleted++
}

func (d *disturbance) said() said {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sum
}

func (d *disturbance) stop() {
	d.cancel()
	<-d.done
}

// String says how many deletions took effect of those that there were to be.
func (d *disturbance) String(wanted int) string {
	now := d.said()
	text := fmt.Sprintf("%d deletions beside it took effect, and at least %d are to", now.deleted, wanted)
	if now.refused != nil {
		text += ": " + now.refused.Error()
	}
	return text
}
