package mutants_test

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-op-readiness/windows-op-readiness/test/realnode"
)

// stopProxies stops kube-proxy on all nodes when the first pod of the StatefulSet is
// deleted.
func stopProxies(b *bed) func() {
	stop := whenReplaced(func(ctx context.Context, b *bed, _ *v1.Pod) {
		for _, n := range b.nodes {
			b.must(n.Stop(ctx, realnode.KubeProxy))
		}
	})(b)
	return func() {
		stop()
		for _, n := range b.nodes {
			b.must(n.Start(b.Context(), realnode.KubeProxy))
		}
	}
}

// drop lets the last real node drop packets that come for it, before kube-proxy's rules see
// them.
func drop(packets string) fault {
	return func(b *bed) func() {
		last := b.nodes[len(b.nodes)-1]
		nft := func(rules string) {
			_, err := last.Run(b.Context(), "nft", rules)
			b.must(err)
		}
		nft(fmt.Sprintf("table ip mutant { chain in { type filter hook prerouting priority -300; ip daddr %s %s drop; }; }", last.Address, packets))
		return func() { nft("delete table ip mutant") }
	}
}

// configured gives all nodes' kubelets, or kube-proxies, another configuration.
func configured(program realnode.Program, config realnode.Config) fault {
	return func(b *bed) func() {
		for _, n := range b.nodes {
			b.must(n.Configure(b.Context(), program, config))
		}
		return func() {
			for _, n := range b.nodes {
				b.must(n.Configure(b.Context(), program, nil))
			}
		}
	}
}

// ignoreQuota has kubelets ignore limits of CPUs.
var ignoreQuota = configured(realnode.Kubelet, realnode.Config{"cpuCFSQuota": false})

// ownPodsOnly has each node serve a NodePort with its own pods alone, and all pods on
// the first node. kube-proxy makes an exception for what comes from pods; only where it
// takes the pods of its node alone for such do the others' count.
var ownPodsOnly = both(both(onlyLocal, onFirstNode),
	configured(realnode.KubeProxy, realnode.Config{"detectLocalMode": "NodeCIDR"}))

// onFirstNode puts all pods on the first real node.
func onFirstNode(b *bed) func() {
	return mutate("nodeport", fmt.Sprintf(`request.operation == "CREATE" ? [JSONPatch{op: "add", path: "/spec/nodeName", value: %q}] : []`, b.nodes[0].Name),
		func(pod *v1.Pod) bool { return pod.Spec.NodeName == b.nodes[0].Name })(b)
}

// onlyLocal has each node serve a NodePort with its own pods alone.
var onlyLocal = mutateAny("nodeport", "", "services", `object.spec.?type.orValue("") == "NodePort" ? [JSONPatch{op: "add", path: "/spec/externalTrafficPolicy", value: "Local"}] : []`,
	func(ctx context.Context, b *bed, namespace string) (bool, error) {
		s, err := b.client.CoreV1().Services(namespace).Create(ctx, &v1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: v1.ServiceSpec{Type: v1.ServiceTypeNodePort, Ports: []v1.ServicePort{{Port: 80}}},
		}, dryCreate)
		return err == nil && s.Spec.ExternalTrafficPolicy == v1.ServiceExternalTrafficPolicyLocal, err
	})
