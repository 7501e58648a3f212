package mutants_test

import (
	"context"
	"fmt"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// sticky has Services send each client to one pod.
func sticky(base string) fault {
	return mutateAny(base, "", "services", `[JSONPatch{op: "add", path: "/spec/sessionAffinity", value: "ClientIP"}]`,
		func(ctx context.Context, b *bed, namespace string) (bool, error) {
			s, err := b.client.CoreV1().Services(namespace).Create(ctx, &v1.Service{
				ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: v1.ServiceSpec{Ports: []v1.ServicePort{{Port: 80}}},
			}, dryCreate)
			return err == nil && s.Spec.SessionAffinity == v1.ServiceAffinityClientIP, err
		})
}

// keepSlices undoes changes of the endpoints of Services once they have three.
var keepSlices = mutateAny("stable", "discovery.k8s.io", "endpointslices",
	`request.operation == "UPDATE" && type(oldObject.?endpoints.orValue([])) == list && size(oldObject.endpoints) == 3 && oldObject.endpoints.all(e, e.?conditions.?ready.orValue(false))
		? [JSONPatch{op: "add", path: "/endpoints", value: oldObject.endpoints}] : []`,
	func(ctx context.Context, b *bed, namespace string) (bool, error) {
		slices := b.client.DiscoveryV1().EndpointSlices(namespace)
		full := sliceOf("probe", "192.0.2.1", "192.0.2.2", "192.0.2.3")
		full.GenerateName, full.Name = "", "probe"
		if _, err := slices.Create(ctx, full, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return false, err
		}
		now, err := slices.Get(ctx, "probe", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		now.Endpoints = []discoveryv1.Endpoint{}
		now, err = slices.Update(ctx, now, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && len(now.Endpoints) == 3, err
	})

// gateSuccessors keeps pods of the StatefulSet from being scheduled that are made after
// one was deleted.
func gateSuccessors(b *bed) func() {
	const closed = `{"metadata": {"labels": {"mutant": "closed"}}}`
	shut := func(ctx context.Context, namespace string) {
		_, err := b.client.CoreV1().Namespaces().Patch(ctx, namespace, types.MergePatchType, []byte(closed), metav1.PatchOptions{})
		b.must(err)
	}
	shut(b.Context(), b.probe("stable"))
	undo := mutateAny("stable", "", "pods",
		`request.operation == "CREATE" && object.metadata.?labels.?app.orValue("") == "stable" && namespaceObject.metadata.?labels.?mutant.orValue("") == "closed"
			? [JSONPatch{op: "add", path: "/spec/schedulingGates", value: [{"name": "example.com/closed"}]}] : []`,
		func(ctx context.Context, b *bed, namespace string) (bool, error) {
			pod := probePod()
			pod.Labels["app"] = "stable"
			pod, err := b.client.CoreV1().Pods(namespace).Create(ctx, pod, dryCreate)
			return err == nil && len(pod.Spec.SchedulingGates) > 0, err
		})(b)
	stop := whenReplaced(func(ctx context.Context, _ *bed, pod *v1.Pod) { shut(ctx, pod.Namespace) })(b)
	return func() {
		stop()
		undo()
	}
}

// whenReplaced does something once when the first pod of the StatefulSet is deleted.
func whenReplaced(do func(ctx context.Context, b *bed, pod *v1.Pod)) func(b *bed) (stop func()) {
	return func(b *bed) func() {
		var once sync.Once
		return b.onPods("stable", func(ctx context.Context, pod *v1.Pod) {
			if pod.Labels["app"] == "stable" && pod.DeletionTimestamp != nil {
				once.Do(func() { do(ctx, b, pod) })
			}
		})
	}
}

// ofPods changes pods of those names, a regular expression, of tests of the framework's
// base name, with the operations of a patch.
func ofPods(base, names, patch string, in func(*v1.Pod) bool) fault {
	when := fmt.Sprintf(`request.operation == "CREATE" && object.metadata.?name.orValue("").matches(%q)`, "^("+names+"|probe)$")
	return mutate(base, fmt.Sprintf("%s ? [%s] : []", when, patch), in)
}

var (
	noRecord = ofPods("custom-dns", "custom-dns-record", `JSONPatch{op: "add", path: "/spec/hostAliases", value: []}`,
		func(pod *v1.Pod) bool { return len(pod.Spec.HostAliases) == 0 })
	noSearch = ofPods("custom-dns", "custom-dns-search", `JSONPatch{op: "add", path: "/spec/dnsConfig/searches", value: []}`,
		func(pod *v1.Pod) bool { return len(pod.Spec.DNSConfig.Searches) == 0 })
	otherDNS = ofPods("custom-dns", "custom-dns-control", `JSONPatch{op: "replace", path: "/spec/dnsPolicy", value: "None"},
		JSONPatch{op: "add", path: "/spec/dnsConfig", value: {"nameservers": ["192.0.2.53"]}}`,
		func(pod *v1.Pod) bool { return pod.Spec.DNSPolicy == v1.DNSNone })

	noLimit = ofPods("limited", "limited-.*", `JSONPatch{op: "replace", path: "/spec/containers/0/resources", value: {"requests": object.spec.containers[0].resources.?requests.orValue({})}}`,
		func(pod *v1.Pod) bool { return len(pod.Spec.Containers[0].Resources.Limits) == 0 })
	noLoad = ofPods("limited", "limited-cpu-.*", `JSONPatch{op: "add", path: "/spec/containers/0/command", value: ["sleep", "3600"]}`,
		func(pod *v1.Pod) bool { return len(pod.Spec.Containers[0].Command) > 1 })
	unwell = ofPods("limited", "limited-sibling", `JSONPatch{op: "add", path: "/spec/containers/0/livenessProbe", value: {"tcpSocket": dyn({"port": 1}), "periodSeconds": dyn(1), "failureThreshold": dyn(1)}}`,
		func(pod *v1.Pod) bool { return pod.Spec.Containers[0].LivenessProbe != nil })
)

// nameEverywhere makes the Service of the second namespace known by its name in the
// first one, too.
func nameEverywhere(b *bed) func() {
	var mu sync.Mutex
	server := ""
	var once sync.Once
	return b.onPods("custom-dns", func(ctx context.Context, pod *v1.Pod) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case pod.Name == "custom-dns-server":
			server = pod.Status.PodIP
		case pod.Name == "custom-dns-control" && server != "":
			once.Do(func() { b.copyService(ctx, "web-", pod.Namespace, server) })
		}
	})
}

// copyService makes a Service like the one whose name begins so in another namespace,
// with one endpoint.
func (b *bed) copyService(ctx context.Context, prefix, namespace, endpoint string) {
	all, err := b.client.CoreV1().Services(v1.NamespaceAll).List(ctx, metav1.ListOptions{})
	b.must(err)
	for i := range all.Items {
		s := &all.Items[i]
		if !strings.HasPrefix(s.Name, prefix) || s.DeletionTimestamp != nil {
			continue
		}
		_, err := b.client.CoreV1().Services(namespace).Create(ctx, &v1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: s.Name}, Spec: v1.ServiceSpec{Ports: s.Spec.Ports},
		}, metav1.CreateOptions{})
		b.must(err)
		_, err = b.client.DiscoveryV1().EndpointSlices(namespace).Create(ctx, sliceOf(s.Name, endpoint), metav1.CreateOptions{})
		b.must(err)
	}
}
