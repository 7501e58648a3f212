package suite

import (
	"context"
	"fmt"
	"time"

	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	admissionapi "k8s.io/pod-security-admission/api"

	"github.com/windows-op-readiness/windows-op-readiness/suite/judge"
)

var _ = describe(func() {
	f := framework.NewDefaultFramework("distinct")
	f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

	const (
		wanted = 10
		fewest = 5
		steady = 30 * time.Second
	)

	framework.It("Pods of one node should have distinct addresses", func(ctx context.Context) {
		windows := target(ctx, f.ClientSet)
		node, free := windows.roomiest(ctx, f.ClientSet)
		if free < fewest {
			framework.Failf("no %s node has room for %d pods: node %s has the most, for %d", windows.os, fewest, node.Name, free)
		}
		var pods []*v1.Pod
		for i := range min(wanted, free) {
			pods = append(pods, create(ctx, f, on(named(windows.pause(), fmt.Sprintf("distinct-%d", i)), node)))
		}
		waitRunning(ctx, f, pods...)
		problems := func(ctx context.Context) ([]string, error) {
			list, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, err
			}
			return judge.Addresses(node, list.Items, len(pods)), nil
		}
		gomega.Eventually(ctx, problems).WithTimeout(within(time.Minute)).Should(gomega.BeEmpty(), "addresses of the pods of node %s", node.Name)
		gomega.Consistently(ctx, problems).WithTimeout(long(steady)).Should(gomega.BeEmpty(), "addresses of the pods of node %s, after they were right", node.Name)
	})
})
