package evidence_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/evidence"
	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
)

// somebody changes nodes.
type somebody struct {
	t      *testing.T
	client kubernetes.Interface
	name   string
}

func (s *somebody) patch(node, patch string) {
	s.t.Helper()
	if _, err := s.client.CoreV1().Nodes().Patch(s.t.Context(), node, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: s.name}); err != nil {
		s.t.Fatal(err)
	}
}

func TestChangesOfNodesAreTold(t *testing.T) {
	t.Parallel()
	cluster := kwoktest.Up(t)
	client := kwoktest.Client(t, cluster)
	w, err := evidence.Start(t.Context(), client, nil, noLook)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	told := func(since time.Time, says ...string) {
		t.Helper()
		got := w.Changes(t.Context(), suite, nil, since)
		for _, text := range says {
			if !strings.Contains(got, text) {
				t.Errorf("%q does not say %q", got, text)
			}
		}
		// The cluster is new: its controller manager still labels the nodes.
		others := slices.DeleteFunc(strings.Split(got, "; "), func(c string) bool { return c == "" || strings.Contains(c, " beta.kubernetes.io/") })
		if len(others) != len(says) {
			t.Errorf("%d changes are told, want %d: %s", len(others), len(says), got)
		}
	}
	admin := somebody{t, client, "kubectl-of-an-admin"}
	op := somebody{t, client, "op-readiness"}

	admin.patch("linux-1", `{"metadata": {"labels": {"before": "all"}}}`)
	told(time.Time{}, "node linux-1 was labelled before=all at")
	since := time.Now()
	told(since)

	// Taken back, it was there all the same.
	admin.patch("linux-1", `{"spec": {"unschedulable": true}}`)
	admin.patch("linux-1", `{"spec": {"unschedulable": null}}`)
	told(since, "node linux-1 was cordoned at", "node linux-1 was uncordoned at")
	if got := w.Changes(t.Context(), suite, nil, since); !strings.Contains(got, " UTC by kubectl-of-an-admin") {
		t.Errorf("%q does not say by whom", got)
	}

	since = time.Now()
	admin.patch("windows-1", `{"spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}, "metadata": {"labels": {"before": null, "l": "1"}}}`)
	admin.patch("windows-1", `{"metadata": {"labels": {"l": null}}, "spec": {"taints": null}}`)
	told(since, "node windows-1 was tainted k=v:NoSchedule at", "node windows-1 was labelled l=1 at", "node windows-1 lost its label l at", "node windows-1 lost its taint k=v:NoSchedule at")

	// What a run does to steer pods is no news, but that somebody undoes it is.
	since = time.Now()
	op.patch("linux-2", `{"spec": {"unschedulable": true}, "metadata": {"annotations": {"op-readiness/cordoned-by": "{}"}}}`)
	told(since)
	admin.patch("linux-2", `{"spec": {"unschedulable": null}}`)
	told(since, "node linux-2 was uncordoned at")
	op.patch("linux-2", `{"spec": {"unschedulable": true}}`)
	op.patch("linux-2", `{"spec": {"unschedulable": null}, "metadata": {"annotations": {"op-readiness/cordoned-by": null}}}`)
	told(since, "node linux-2 was uncordoned at")

	since = time.Now()
	if err := client.CoreV1().Nodes().Delete(t.Context(), "windows-2", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	told(since, "node windows-2 was deleted at")

	// A node that changes all the time does not fill an event.
	since = time.Now()
	for n := range 30 {
		admin.patch("linux-1", fmt.Sprintf(`{"metadata": {"labels": {"n": "%d"}}}`, n))
	}
	if got := w.Changes(t.Context(), suite, nil, since); !strings.Contains(got, "n=9") || !strings.HasSuffix(got, "and 20 more changes") {
		t.Errorf("%q", got)
	}
}

func TestANamespaceThatIsDeletedDuringATestIsTold(t *testing.T) {
	cluster := kwoktest.Shared(t)
	client := kwoktest.Client(t, cluster)
	w, err := evidence.Start(t.Context(), client, nil, noLook)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	since := time.Now()
	labelledTest(t, client, "deleted-of-another", map[string]string{"e2e-run": "another"})
	shortTest(t, client, "early")
	house := func(name string) {
		t.Helper()
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"e2e-run": suite}}}
		if _, err := client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	house("late")
	// So the framework does: it says so, and then does it.
	destroyed := map[string]time.Time{"late": time.Now()}
	if err := client.CoreV1().Namespaces().Delete(t.Context(), "late", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	destroyed["early"] = time.Now()
	if _, incomplete := w.Collect(t.Context(), suite, []string{"early", "late"}, since); incomplete != "" {
		t.Fatal(incomplete)
	}
	// Whatever has come through the watch after it is older.
	house("last")
	w.Collect(t.Context(), suite, []string{"last"}, since)
	got := w.Changes(t.Context(), suite, destroyed, since)
	if !strings.HasPrefix(got, "namespace early was deleted, before the test had ended at ") || strings.Contains(got, "late") || strings.Contains(got, "another") {
		t.Errorf("%q", got)
	}
	if got := w.Changes(t.Context(), suite, nil, since); !strings.Contains(got, "namespace late was deleted") {
		t.Errorf("killed: %q", got)
	}
	if got := w.Changes(t.Context(), suite, destroyed, time.Now()); got != "" {
		t.Errorf("of an earlier test: %q", got)
	}
}
