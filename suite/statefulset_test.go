package suite

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/test/e2e/framework"
	admissionapi "k8s.io/pod-security-admission/api"
	"k8s.io/utils/ptr"

	"github.com/windows-op-readiness/windows-op-readiness/suite/judge"
)

var _ = describe(func() {
	f := framework.NewDefaultFramework("stable")
	f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

	const (
		replicas       = 3
		replacedWithin = 5 * time.Minute
		reachWithin    = 2 * time.Minute
	)

	framework.It("StatefulSet should keep names and routes when its pods are replaced", func(ctx context.Context) {
		windows, linux := target(ctx, f.ClientSet), opposite(ctx, f)
		domain := clusterDNS(ctx, f.ClientSet, &windows.nodes[0]).Domain
		headless := serve(ctx, f, f.Namespace.Name, "stable", "stable", v1.ServiceSpec{ClusterIP: v1.ClusterIPNone})
		service := serve(ctx, f, f.Namespace.Name, "stable-ip", "stable", v1.ServiceSpec{})
		stateful(ctx, f, "stable", headless.Name, replicas, windows.netexec().Spec)
		clients := []*v1.Pod{
			client(ctx, f, windows, "stable-client-target"),
			client(ctx, f, linux, "stable-client-other"),
		}
		names := make([]string, replicas)
		pods := make([]v1.Pod, replicas)
		for i := range names {
			names[i] = fmt.Sprintf("stable-%d", i)
			pods[i] = waitSuccessor(ctx, f, windows, "stable", names[i], "", within(podStart))
		}
		// routed holds slices, names and the Service's address against the pods that there
		// are now.
		routed := func(when string) {
			for _, s := range []*v1.Service{headless, service} {
				hasEndpoints(ctx, f, s.Name, pods, reachWithin, when)
			}
			for _, from := range clients {
				for _, name := range names {
					host := fmt.Sprintf("%s.%s.%s.svc.%s", name, headless.Name, f.Namespace.Name, domain)
					reaches(ctx, f, from, address{host: host, port: netexecPort}, []string{name}, reachWithin, when)
				}
				reachesOnly(ctx, f, from, clusterIP(service), names, reachWithin, when)
			}
		}
		routed("before any was replaced")
		for i, old := range pods {
			framework.ExpectNoError(f.ClientSet.CoreV1().Pods(old.Namespace).Delete(ctx, old.Name, metav1.DeleteOptions{}), "deleting pod %s", old.Name)
			pods[i] = waitSuccessor(ctx, f, windows, "stable", old.Name, old.UID, within(replacedWithin))
			routed(fmt.Sprintf("after pod %s was replaced", old.Name))
			// Kubernetes promises the name and the Service's address, not the pod's own.
			measured("address of the pod that replaced "+old.Name+" is another", pods[i].Status.PodIP != old.Status.PodIP)
		}
		now, err := f.ClientSet.CoreV1().Services(f.Namespace.Name).Get(ctx, service.Name, metav1.GetOptions{})
		framework.ExpectNoError(err, "reading Service %s", service.Name)
		gomega.Expect(now.Spec.ClusterIP).To(gomega.Equal(service.Spec.ClusterIP), "the address of Service %s, after its pods were replaced", service.Name)
	})
})

// stateful makes a StatefulSet of such pods.
func stateful(ctx context.Context, f *framework.Framework, name, service string, replicas int32, pod v1.PodSpec) {
	ginkgo.GinkgoHelper()
	labels := map[string]string{"app": name}
	_, err := f.ClientSet.AppsV1().StatefulSets(f.Namespace.Name).Create(ctx, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.StatefulSetSpec{
			ServiceName: service, Replicas: ptr.To(replicas),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	}, metav1.CreateOptions{})
	framework.ExpectNoError(err, "creating StatefulSet %s", name)
}

// waitSuccessor returns the pod of a StatefulSet with that name, ready and on a node of
// the system, when it is another than the one of that UID.
func waitSuccessor(ctx context.Context, f *framework.Framework, s *system, set, name string, old types.UID, limit time.Duration) v1.Pod {
	ginkgo.GinkgoHelper()
	var found v1.Pod
	gomega.Eventually(ctx, func(ctx context.Context) (string, error) {
		pod, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Sprintf("pod %s is not there%s", name, refusals(ctx, f, set)), nil
		case err != nil:
			return "", err
		case pod.UID == old || pod.DeletionTimestamp != nil:
			return fmt.Sprintf("pod %s is still the one that was deleted: %s", name, stateOf(pod)), nil
		case !judge.Ready(pod):
			return stateOf(pod), nil
		case !s.has(pod.Spec.NodeName):
			return "", gomega.StopTrying(fmt.Sprintf("pod %s is on node %s, which is none of the %s nodes", name, pod.Spec.NodeName, s.os))
		}
		found = *pod
		return "", nil
	}).WithTimeout(limit).Should(gomega.BeEmpty(), "pod %s of StatefulSet %s, which is to be a new one and ready within %v", name, set, limit)
	return found
}

// refusals says why a controller could not make its pods, by its events: "" where it
// could.
func refusals(ctx context.Context, f *framework.Framework, controller string) string {
	events, err := f.ClientSet.CoreV1().Events(f.Namespace.Name).List(ctx, metav1.ListOptions{
		FieldSelector: "reason=FailedCreate,involvedObject.name=" + controller,
	})
	if err != nil || len(events.Items) == 0 {
		return ""
	}
	message := events.Items[len(events.Items)-1].Message
	if strings.Contains(message, "forbidden") {
		return ": the cluster's admission refuses it, without which the test cannot be run: " + message
	}
	return ": " + message
}

// hasEndpoints returns when a Service has just those pods as its endpoints.
func hasEndpoints(ctx context.Context, f *framework.Framework, service string, pods []v1.Pod, limit time.Duration, when string) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func(ctx context.Context) ([]string, error) {
		held, err := f.ClientSet.DiscoveryV1().EndpointSlices(f.Namespace.Name).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
		if err != nil {
			return nil, err
		}
		return judge.Endpoints(held.Items, pods), nil
	}).WithTimeout(within(limit)).Should(gomega.BeEmpty(), "endpoints of Service %s, %s", service, when)
}

// reachesOnly is reaches where nobody else may ever have answered.
func reachesOnly(ctx context.Context, f *framework.Framework, from *v1.Pod, to address, names []string, limit time.Duration, when string) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func(ctx context.Context) ([]string, error) {
		d, err := dial(ctx, f, from, to.host, to.port, dialsEach*len(names))
		if err != nil {
			return nil, err
		}
		if strangers := d.Strangers(names); len(strangers) > 0 {
			return nil, gomega.StopTrying(fmt.Sprintf("others answered: %s", strings.Join(strangers, ", ")))
		}
		return d.Reached(names), nil
	}).WithTimeout(within(limit)).Should(gomega.BeEmpty(), "pods that pod %s on node %s reaches at %s, %s", from.Name, from.Spec.NodeName, to, when)
}
