package evidence_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/windows-op-readiness/windows-op-readiness/internal/evidence"
	"github.com/windows-op-readiness/windows-op-readiness/internal/provider/kwok/kwoktest"
	"github.com/windows-op-readiness/windows-op-readiness/internal/result"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

func noLook(context.Context, string) (result.Node, error) {
	return result.Node{}, errors.New("no such node")
}

// pod is a pod that goes straight to a node.
func pod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeName:   node,
			Containers: []corev1.Container{{Name: "c", Image: "registry.k8s.io/e2e-test-images/agnhost:2.63.0"}},
		},
	}
}

// shortTest does what the e2e framework does for a test that is over at once:
// a namespace, pods, and the namespace is deleted.
func shortTest(t *testing.T, client kubernetes.Interface, namespace string, pods ...*corev1.Pod) {
	t.Helper()
	ctx := t.Context()
	if _, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"e2e-run": "x"}}}, metav1.CreateOptions{}); err != nil {
		t.Error(err)
		return
	}
	for _, p := range pods {
		// The default service account may not be there yet.
		for {
			_, err := client.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{})
			if err == nil {
				break
			}
			if !strings.Contains(err.Error(), "serviceaccount") {
				t.Error(err)
				return
			}
		}
	}
	if err := client.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

func TestPodsAreTiedToTheTestThatNamesTheirNamespace(t *testing.T) {
	cluster := kwoktest.Up(t)
	client := kwoktest.Client(t, cluster)
	known := []result.Node{
		{Name: "windows", OS: specs.Windows, WindowsBuild: "10.0.20348"},
		{Name: "linux", OS: specs.Linux},
	}
	w, err := evidence.Start(t.Context(), client, known, noLook)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()

	// Many short tests beside each other; each has its own pods afterwards.
	const tests = 12
	var wait sync.WaitGroup
	for i := range tests {
		wait.Go(func() {
			since := time.Now()
			ns := fmt.Sprintf("short-%d", i)
			shortTest(t, client, ns, pod(fmt.Sprintf("client-%d", i), "windows"), pod(fmt.Sprintf("server-%d", i), "linux"))
			pods, incomplete := w.Collect(t.Context(), []string{ns}, since)
			if incomplete != "" {
				t.Errorf("test %d: incomplete: %s", i, incomplete)
			}
			if len(pods) != 2 {
				t.Errorf("test %d: %d pods, want 2: %+v", i, len(pods), pods)
				return
			}
			client, server := pods[0], pods[1]
			if client.Name != fmt.Sprintf("client-%d", i) || client.OS != specs.Windows || client.WindowsBuild != "10.0.20348" {
				t.Errorf("test %d: the client is %+v", i, client)
			}
			if server.Name != fmt.Sprintf("server-%d", i) || server.OS != specs.Linux {
				t.Errorf("test %d: the server is %+v", i, server)
			}
			if len(client.Images) != 1 || !strings.Contains(client.Images[0], "agnhost") {
				t.Errorf("test %d: images %v", i, client.Images)
			}
		})
	}
	wait.Wait()
	if left, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) > 0 {
		t.Errorf("pods left in the namespace default: %v, %v", left.Items, err)
	}
}

func TestAPodThatCannotBeScheduledSaysWhy(t *testing.T) {
	cluster := kwoktest.Up(t)
	client := kwoktest.Client(t, cluster)
	w, err := evidence.Start(t.Context(), client, nil, noLook)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	nowhere := pod("nowhere", "")
	nowhere.Spec.NodeSelector = map[string]string{"kubernetes.io/os": "plan9"}
	ctx := t.Context()
	if _, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "pending", Labels: map[string]string{"e2e-run": "hung"}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	watch, err := client.CoreV1().Pods("pending").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	for {
		if _, err := client.CoreV1().Pods("pending").Create(ctx, nowhere, metav1.CreateOptions{}); err == nil {
			break
		}
	}
	for event := range watch.ResultChan() {
		p := event.Object.(*corev1.Pod)
		if len(p.Status.Conditions) > 0 && p.Status.Conditions[0].Reason == corev1.PodReasonUnschedulable {
			break
		}
	}
	// So a test ends that waits for it in vain: killed, and naming no namespaces.
	pods, incomplete := w.CollectRun(ctx, "hung", time.Now())
	if incomplete != "" || len(pods) != 1 {
		t.Fatalf("pods %+v, incomplete %q", pods, incomplete)
	}
	if pods[0].Node != "" || pods[0].OS != "" || !strings.Contains(pods[0].SchedulingFailure, "0/4 nodes are available") {
		t.Errorf("the pod is %+v", pods[0])
	}
}

func TestANodeThatIsNotKnownIsLookedUpOrLeavesTheEvidenceIncomplete(t *testing.T) {
	cluster := kwoktest.Up(t)
	client := kwoktest.Client(t, cluster)
	look := func(_ context.Context, name string) (result.Node, error) {
		if name == "late" {
			return result.Node{Name: name, OS: specs.Windows}, nil
		}
		return result.Node{}, errors.New("gone")
	}
	w, err := evidence.Start(t.Context(), client, nil, look)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	shortTest(t, client, "one", pod("p", "late"))
	if pods, incomplete := w.Collect(t.Context(), []string{"one"}, time.Now()); incomplete != "" || len(pods) != 1 || pods[0].OS != specs.Windows {
		t.Errorf("pods %+v, incomplete %q", pods, incomplete)
	}
	shortTest(t, client, "two", pod("p", "lost"))
	if pods, incomplete := w.Collect(t.Context(), []string{"two"}, time.Now()); !strings.Contains(incomplete, "lost") || len(pods) != 1 || pods[0].OS != "" {
		t.Errorf("pods %+v, incomplete %q", pods, incomplete)
	}
}

func TestWithoutABarrierTheEvidenceIsIncomplete(t *testing.T) {
	cluster := kwoktest.Up(t)
	client := kwoktest.Client(t, cluster)
	w, err := evidence.Start(t.Context(), client, nil, noLook)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, incomplete := w.Collect(ctx, []string{"any"}, time.Now()); incomplete == "" {
		t.Error("evidence without a barrier is called complete")
	}
}
