package mutants_test

import (
	"context"

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

// drop lets the last real node drop packets that come in, before kube-proxy's rules see
// them.
func drop(packets string) fault {
	return func(b *bed) func() {
		nft := func(rules string) {
			_, err := b.nodes[len(b.nodes)-1].Run(b.Context(), "nft", rules)
			b.must(err)
		}
		nft("table ip mutant { chain in { type filter hook prerouting priority -300; " + packets + " drop; }; }")
		return func() { nft("delete table ip mutant") }
	}
}
