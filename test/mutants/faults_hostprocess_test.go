package mutants_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ownNetwork takes pods out of the network of their node.
var ownNetwork = mutate("hpc", `[
	JSONPatch{op: "add", path: "/spec/hostNetwork", value: false},
	JSONPatch{op: "add", path: "/metadata/annotations", value: {"mutant": "yes"}}]`,
	func(pod *v1.Pod) bool { return pod.Annotations["mutant"] != "" })

// hostPID has pods of those names see the processes of their node, or not.
func hostPID(names string, sees bool) fault {
	return mutate("privileged", fmt.Sprintf(`object.metadata.?name.orValue("").matches("^(%s|probe)$") ? [
	JSONPatch{op: "add", path: "/spec/hostPID", value: %v},
	JSONPatch{op: "add", path: "/metadata/annotations", value: {"mutant": "yes"}}] : []`, names, sees),
		func(pod *v1.Pod) bool { return pod.Annotations["mutant"] != "" })
}

// everywhere has netexec listen by UDP at all addresses, whichever it is to.
var everywhere = mutate("hpc", `has(object.spec.containers[0].args) && size(object.spec.containers[0].args) == 4 ?
	[JSONPatch{op: "replace", path: "/spec/containers/0/args/3", value: "--udp-listen-addresses=0.0.0.0"}] : []`,
	func(pod *v1.Pod) bool {
		return slices.Contains(pod.Spec.Containers[0].Args, "--udp-listen-addresses=0.0.0.0")
	})

// takeOver has another pod answer at the address and port of a HostProcess pod, as soon
// as that is deleted.
func takeOver(b *bed) func() {
	var once sync.Once
	var client, port string
	return b.onPods("hpc", func(ctx context.Context, pod *v1.Pod) {
		switch pod.Name {
		case "hpc-client":
			client = pod.Status.PodIP
		case "hpc-server":
			_, port, _ = strings.Cut(pod.Spec.Containers[0].Args[1], "=")
			if pod.DeletionTimestamp == nil {
				return
			}
			once.Do(func() {
				at, err := strconv.Atoi(port)
				b.must(err)
				_, err = b.client.CoreV1().Services(pod.Namespace).Create(ctx, &v1.Service{
					ObjectMeta: metav1.ObjectMeta{Name: "mutant"},
					Spec:       v1.ServiceSpec{Ports: []v1.ServicePort{{Port: int32(at)}}, ExternalIPs: []string{pod.Status.HostIP}},
				}, metav1.CreateOptions{})
				b.must(err)
				_, err = b.client.DiscoveryV1().EndpointSlices(pod.Namespace).Create(ctx, sliceOf("mutant", client), metav1.CreateOptions{})
				b.must(err)
			})
		}
	})
}

// Faults of the user that containers run as.
var (
	noPodUser = mutate("run-as", `[
		JSONPatch{op: "add", path: "/spec/securityContext", value: {}},
		JSONPatch{op: "add", path: "/metadata/annotations", value: {"mutant": "yes"}}]`,
		func(pod *v1.Pod) bool { return pod.Annotations["mutant"] != "" })
	noContainerUser = mutate("run-as", `[
		JSONPatch{op: "add", path: "/spec/containers/0/securityContext", value: {}},
		JSONPatch{op: "add", path: "/metadata/annotations", value: {"mutant": "yes"}}]`,
		func(pod *v1.Pod) bool { return pod.Annotations["mutant"] != "" })
)

// Faults of what pods say of their operating system.
var (
	noPodOS = mutate("pod-os", `[
		JSONPatch{op: "add", path: "/spec/os", value: {"name": "linux"}},
		JSONPatch{op: "remove", path: "/spec/os"},
		JSONPatch{op: "add", path: "/metadata/annotations", value: {"mutant": "yes"}}]`,
		func(pod *v1.Pod) bool { return pod.Annotations["mutant"] != "" })
	noLinuxFields = mutate("pod-os", `object.spec.?os.?name.orValue("") == "windows" && has(object.spec.securityContext) && has(object.spec.securityContext.runAsUser) ?
		[JSONPatch{op: "remove", path: "/spec/securityContext"}] :
		[JSONPatch{op: "add", path: "/metadata/annotations", value: {"mutant": "yes"}}]`,
		func(pod *v1.Pod) bool { return pod.Annotations["mutant"] != "" })
)
