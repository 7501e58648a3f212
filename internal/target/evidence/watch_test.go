package evidence_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/evidence"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
)

// suite is the run id of the process whose tests are observed.
const suite = "5b1c"

func TestMain(m *testing.M) { os.Exit(kwoktest.Main(m)) }

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
	labelledTest(t, client, namespace, map[string]string{"e2e-run": suite}, pods...)
}

// labelledTest is a shortTest whose namespace has the labels.
func labelledTest(t *testing.T, client kubernetes.Interface, namespace string, labels map[string]string, pods ...*corev1.Pod) {
	t.Helper()
	ctx := t.Context()
	if _, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: labels}}, metav1.CreateOptions{}); err != nil {
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
	cluster := kwoktest.Shared(t)
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
			saysIt := pod(fmt.Sprintf("client-%d", i), "windows")
			saysIt.Spec.OS = &corev1.PodOS{Name: corev1.Windows}
			shortTest(t, client, ns, saysIt, pod(fmt.Sprintf("server-%d", i), "linux"))
			pods, incomplete := w.Collect(t.Context(), suite, []string{ns}, since)
			if incomplete != "" {
				t.Errorf("test %d: incomplete: %s", i, incomplete)
			}
			if len(pods) != 2 {
				t.Errorf("test %d: %d pods, want 2: %+v", i, len(pods), pods)
				return
			}
			client, server := pods[0], pods[1]
			if client.Name != fmt.Sprintf("client-%d", i) || client.OS != specs.Windows || client.WindowsBuild != "10.0.20348" || client.PodOS != specs.Windows {
				t.Errorf("test %d: the client is %+v", i, client)
			}
			if server.Name != fmt.Sprintf("server-%d", i) || server.OS != specs.Linux || server.PodOS != "" {
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
	cluster := kwoktest.Shared(t)
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

// A test prints what it likes: only what its own process made is its evidence.
func TestOnlyNamespacesOfTheProcessCount(t *testing.T) {
	cluster := kwoktest.Shared(t)
	client := kwoktest.Client(t, cluster)
	w, err := evidence.Start(t.Context(), client, []result.Node{{Name: "windows", OS: specs.Windows}}, noLook)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	w.SetLag(100 * time.Millisecond)
	collect := func(run string, pods int, says string, namespaces ...string) {
		t.Helper()
		got, incomplete := w.Collect(t.Context(), run, namespaces, time.Now())
		if len(got) != pods || !strings.Contains(incomplete, says) || says == "" && incomplete != "" {
			t.Errorf("%v of %q: pods %+v, incomplete %q; want %d, %q", namespaces, run, got, incomplete, pods, says)
		}
	}
	labelledTest(t, client, "of-nobody", nil, pod("p", "windows"))
	labelledTest(t, client, "of-another", map[string]string{"e2e-run": "another"}, pod("p", "windows"))
	shortTest(t, client, "own", pod("p", "windows"))
	collect("", 0, "the run id of its process is not known", "own")
	collect(suite, 0, "not taken: of-nobody", "of-nobody")
	collect(suite, 0, "not taken: of-another", "of-another")
	collect(suite, 0, "not taken: of-nowhere", "of-nowhere")
	collect(suite, 1, "not taken: kube-system, of-another", "own", "kube-system", "of-another")
	collect("another", 1, "", "of-another")
	collect("another", 0, "", "of-another")
	if pods, incomplete := w.CollectRun(t.Context(), "", time.Now()); len(pods) != 0 || !strings.Contains(incomplete, "not known") {
		t.Errorf("a killed test of a process without an id: pods %+v, incomplete %q", pods, incomplete)
	}
	// What a killed test made counts also when it is gone already.
	labelledTest(t, client, "killed", map[string]string{"e2e-run": "dead"}, pod("p", "windows"))
	now := int64(0)
	if err := client.CoreV1().Pods("killed").Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	for {
		if _, err := client.CoreV1().Namespaces().Get(t.Context(), "killed", metav1.GetOptions{}); err != nil {
			break
		}
	}
	if pods, incomplete := w.CollectRun(t.Context(), "dead", time.Now()); len(pods) != 1 || incomplete != "" {
		t.Errorf("a killed test: pods %+v, incomplete %q", pods, incomplete)
	}
}

// What others have on the cluster is not kept, and what is the run's own is.
func TestOthersPodsAreNotKept(t *testing.T) {
	cluster := kwoktest.Shared(t)
	client := kwoktest.Client(t, cluster)
	w, err := evidence.Start(t.Context(), client, []result.Node{{Name: "windows", OS: specs.Windows}}, noLook)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	w.Own(suite)
	const many = 100
	var pods []*corev1.Pod
	for n := range many {
		pods = append(pods, pod(fmt.Sprintf("p-%d", n), "windows"))
	}
	since := time.Now()
	shortTest(t, client, "kept", pod("p", "windows"))
	labelledTest(t, client, "kept-of-nobody", nil, pods...)
	labelledTest(t, client, "kept-of-another", map[string]string{"e2e-run": "another"}, pods...)
	// When it has passed, all pods have been seen, and all namespaces are known.
	if _, incomplete := w.Collect(t.Context(), suite, nil, since); incomplete != "" {
		t.Fatal(incomplete)
	}
	if n := w.Kept(); n != 2*many+1 {
		t.Fatalf("%d pods are kept at first", n)
	}
	w.SetKeep(0)
	shortTest(t, client, "next", pod("p", "windows"))
	if got, incomplete := w.Collect(t.Context(), suite, []string{"kept", "next"}, since); len(got) != 2 || incomplete != "" {
		t.Errorf("pods %+v, incomplete %q", got, incomplete)
	}
	if n := w.Kept(); n != 0 {
		t.Errorf("%d pods are kept", n)
	}
}

func TestANodeThatIsNotKnownIsLookedUpOrLeavesTheEvidenceIncomplete(t *testing.T) {
	cluster := kwoktest.Shared(t)
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
	if pods, incomplete := w.Collect(t.Context(), suite, []string{"one"}, time.Now()); incomplete != "" || len(pods) != 1 || pods[0].OS != specs.Windows {
		t.Errorf("pods %+v, incomplete %q", pods, incomplete)
	}
	shortTest(t, client, "two", pod("p", "lost"))
	if pods, incomplete := w.Collect(t.Context(), suite, []string{"two"}, time.Now()); !strings.Contains(incomplete, "lost") || len(pods) != 1 || pods[0].OS != "" {
		t.Errorf("pods %+v, incomplete %q", pods, incomplete)
	}
}

func TestWithoutABarrierTheEvidenceIsIncomplete(t *testing.T) {
	cluster := kwoktest.Shared(t)
	client := kwoktest.Client(t, cluster)
	w, err := evidence.Start(t.Context(), client, nil, noLook)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, incomplete := w.Collect(ctx, suite, []string{"any"}, time.Now()); incomplete == "" {
		t.Error("evidence without a barrier is called complete")
	}
}
