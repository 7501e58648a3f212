package mutants_test

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

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

// dropNodePorts lets a node drop what comes for its NodePorts, before kube-proxy's
// rules see it.
func dropNodePorts(protocol string) fault {
	return func(b *bed) func() {
		last := b.nodes[len(b.nodes)-1]
		nft := func(rules string) {
			_, err := last.Run(b.Context(), "nft", rules)
			b.must(err)
		}
		const chain = "type filter hook prerouting priority -300"
		nft(fmt.Sprintf("table ip mutant { chain in { %s; ip daddr %s %s dport 30000-32767 drop; }; }", chain, last.Address, protocol))
		return func() { nft("delete table ip mutant") }
	}
}
