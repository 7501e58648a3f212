package mutants_test

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-op-readiness/windows-op-readiness/test/realnode"
)

// boot has the first real node start otherwise than it was, when it is rebooted.
func boot(how realnode.Boot) fault {
	return func(b *bed) func() {
		b.nodes[0].NextBoot(how)
		return func() {
			b.nodes[0].NextBoot(realnode.Boot{})
			b.must(b.nodes[0].Reboot(b.Context()))
		}
	}
}

// cordon cordons the first real node when it has been told to reboot.
func cordon(b *bed) func() {
	set := func(ctx context.Context, patch string) {
		_, err := b.client.CoreV1().Nodes().Patch(ctx, b.nodes[0].Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		b.must(err)
	}
	var once sync.Once
	stop := b.onPods("reboot", func(ctx context.Context, pod *v1.Pod) {
		if pod.Name == "reboot-host-0" && pod.Status.Phase == v1.PodRunning {
			once.Do(func() { set(ctx, `{"spec": {"unschedulable": true}}`) })
		}
	})
	return func() {
		stop()
		set(b.Context(), `{"spec": {"unschedulable": null}}`)
	}
}
