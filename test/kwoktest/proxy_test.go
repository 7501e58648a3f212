package kwoktest_test

import (
	"net/http"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
)

func TestTheProxyBreaksWhatMatchesAndNothingElse(t *testing.T) {
	made := kwoktest.Up(t)
	proxy, direct := kwoktest.NewProxy(t, made), kwoktest.Client(t, made)
	client, err := kubernetes.NewForConfig(proxy.Config())
	if err != nil {
		t.Fatal(err)
	}
	namespaces := client.CoreV1().Namespaces()
	create := func(name string) error {
		_, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err
	}
	there := func(name string) bool {
		_, err := direct.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
		return err == nil
	}
	creates := kwoktest.On(http.MethodPost, "/namespaces")

	proxy.BreakOnly(creates, kwoktest.Refuse(http.StatusServiceUnavailable))
	if err := create("refused"); !apierrors.IsServiceUnavailable(err) || there("refused") {
		t.Error(err)
	}
	if _, err := namespaces.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("what does not match is broken, too: %v", err)
	}
	proxy.BreakOnly(creates, kwoktest.Cut)
	if err := create("cut"); err == nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown || there("cut") {
		t.Error(err)
	}
	proxy.BreakOnly(creates, proxy.Lose)
	if err := create("lost"); err == nil || !there("lost") {
		t.Error(err)
	}
	proxy.BreakOnly(creates, proxy.First(1, kwoktest.Refuse(http.StatusTooManyRequests)))
	if err := create("later"); !apierrors.IsTooManyRequests(err) {
		t.Error(err)
	}
	if err := create("later"); err != nil {
		t.Error(err)
	}

	kept := make(chan struct{})
	proxy.BreakOnly(creates, func(w http.ResponseWriter, r *http.Request) {
		close(kept)
		proxy.StandStill(w, r)
	})
	var woken sync.WaitGroup
	woken.Go(func() {
		if err := create("kept"); err != nil {
			t.Error(err)
		}
	})
	<-kept
	if there("kept") {
		t.Error("a server that stands still has answered")
	}
	proxy.Fix()
	woken.Wait()
}
