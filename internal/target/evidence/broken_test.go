//go:build unix

package evidence_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/evidence"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
)

// line is a watch on a cluster through a proxy that breaks, and a client that
// nothing comes between.
type line struct {
	*evidence.Watch
	t       *testing.T
	cluster *provider.Cluster
	proxy   *kwoktest.Proxy
	direct  kubernetes.Interface
	spoilt  atomic.Int32 // requests
}

func newLine(t *testing.T, c *provider.Cluster) *line {
	t.Helper()
	l := &line{t: t, cluster: c, proxy: kwoktest.NewProxy(t, c), direct: kwoktest.Client(t, c)}
	w, err := evidence.Start(t.Context(), l.through(), []result.Node{{Name: "windows", OS: specs.Windows}}, noLook)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	l.Watch = w
	return l
}

func (l *line) through() kubernetes.Interface {
	client, err := kubernetes.NewForConfig(l.proxy.Config())
	if err != nil {
		l.t.Fatal(err)
	}
	return client
}

// spoil breaks the watch on pods: what it asks for from now on is answered by
// answer, everything else comes through.
func (l *line) spoil(answer http.HandlerFunc) { l.spoilOnly(kwoktest.WatchesAllPods, answer) }

// spoilOnly is spoil for the watch whose requests match.
func (l *line) spoilOnly(match func(*http.Request) bool, answer http.HandlerFunc) {
	l.proxy.Break(func(w http.ResponseWriter, r *http.Request) bool {
		if !match(r) {
			return false
		}
		l.spoilt.Add(1)
		answer(w, r)
		return true
	})
}

func watchesNamespaces(r *http.Request) bool {
	return r.URL.Path == "/api/v1/namespaces" && r.URL.Query().Has("watch")
}

// untilSpoilt waits until the watch has met what spoils it.
func (l *line) untilSpoilt(times int32) {
	l.t.Helper()
	for before := l.spoilt.Load(); l.spoilt.Load() < before+times; time.Sleep(time.Millisecond) {
		if l.t.Context().Err() != nil {
			l.t.Fatal("the watch was not taken up again")
		}
	}
}

// blink is a pod that comes and goes, and is gone when blink returns.
func (l *line) blink(namespace, name string) {
	l.t.Helper()
	shortTest(l.t, l.direct, namespace, pod(name, "windows"))
	l.remove(namespace, name)
}

func (l *line) remove(namespace, name string) {
	l.t.Helper()
	now := int64(0)
	pods := l.direct.CoreV1().Pods(namespace)
	_ = pods.Delete(l.t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	for {
		if _, err := pods.Get(l.t.Context(), name, metav1.GetOptions{}); err != nil {
			return
		}
	}
}

// status answers as the API server does.
func status(code int32, reason metav1.StatusReason) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(code))
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Code: code, Reason: reason, Message: fmt.Sprintf("answered %d by the test", code),
		})
	}
}

// goneEvent is how the API server ends a watch whose events it has not kept.
func goneEvent(w http.ResponseWriter, _ *http.Request) {
	raw, _ := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: http.StatusGone, Reason: metav1.StatusReasonExpired, Message: "too old resource version: 1 (2)",
	})
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(metav1.WatchEvent{Type: string(watch.Error), Object: runtime.RawExtension{Raw: raw}})
}

func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func (l *line) want(what, namespace string, since time.Time, pods int, unobserved string) {
	l.t.Helper()
	var namespaces []string
	if namespace != "" {
		namespaces = []string{namespace}
	}
	got, incomplete := l.Collect(l.t.Context(), suite, namespaces, since)
	if len(got) != pods {
		l.t.Errorf("%s: %d pods, want %d: %+v", what, len(got), pods, got)
	}
	if unobserved == "" && incomplete != "" || !strings.Contains(incomplete, unobserved) {
		l.t.Errorf("%s: incomplete %q, want %q", what, incomplete, unobserved)
	}
	for _, p := range got {
		if p.OS != specs.Windows {
			l.t.Errorf("%s: pod %+v", what, p)
		}
	}
}

func TestABrokenWatch(t *testing.T) {
	l := newLine(t, kwoktest.Shared(t))

	// Cut off, refused, answered with errors: the watch is taken up at the
	// event where it was, and pods that came and went meanwhile are seen.
	for i, answer := range []http.HandlerFunc{
		hangUp,
		status(http.StatusInternalServerError, metav1.StatusReasonInternalError),
		status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable),
		status(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests),
	} {
		since, ns := time.Now(), fmt.Sprintf("cut-%d", i)
		l.spoil(answer)
		l.untilSpoilt(1)
		l.blink(ns, "blink")
		l.proxy.Fix()
		l.want(ns, ns, since, 1, "")
	}
	since := time.Now()
	for range 5 {
		l.proxy.Break(nil)
	}
	l.blink("flapping", "blink")
	l.want("connections cut one after the other", "flapping", since, 1, "")

	// The API server has not kept the events: what came and went meanwhile is
	// lost, and said to be. What was seen before stays.
	for i, answer := range []http.HandlerFunc{status(http.StatusGone, metav1.StatusReasonExpired), goneEvent} {
		since, before, during, after := time.Now(), fmt.Sprintf("before-%d", i), fmt.Sprintf("during-%d", i), fmt.Sprintf("after-%d", i)
		shortTest(t, l.direct, before, pod("stays", "windows"))
		l.want("nothing is broken yet", "", since, 0, "")
		l.spoil(hangUp)
		l.untilSpoilt(1)
		l.remove(before, "stays")
		l.blink(during, "blink")
		l.spoil(answer)
		l.untilSpoilt(1)
		l.proxy.Fix()
		l.want("pods that came and went in a gap", during, since, 0, "were not seen")
		l.want("pods that were there before a gap", before, since, 1, "were not seen")
		since = time.Now()
		l.blink(after, "blink")
		l.want("a test that began after the gap", after, since, 1, "")
	}

	// A test that ends while nothing comes through says so.
	since = time.Now()
	l.spoil(hangUp)
	l.blink("lost", "blink")
	ctx, cancel := context.WithCancel(t.Context())
	go func() { l.untilSpoilt(2); cancel() }()
	if pods, incomplete := l.Collect(ctx, suite, []string{"lost"}, since); len(pods) != 0 || !strings.Contains(incomplete, "did not catch up") {
		t.Errorf("pods %+v, incomplete %q", pods, incomplete)
	}
	l.proxy.Fix()
}

// The watch on namespaces is another one, which may lag behind that on pods, and
// break by itself.
func TestABrokenWatchOnNamespaces(t *testing.T) {
	l := newLine(t, kwoktest.Shared(t))
	late := func() time.Time {
		since := time.Now()
		l.spoilOnly(watchesNamespaces, hangUp)
		l.untilSpoilt(1)
		return since
	}

	// It lags: the pods are there, and whose they are is known later.
	since := late()
	l.blink("namespaces-late", "blink")
	collected := make(chan struct{})
	go func() {
		defer close(collected)
		l.want("a namespace that is known late", "namespaces-late", since, 1, "")
	}()
	l.untilSpoilt(2)
	select {
	case <-collected:
		t.Fatal("pods were taken of a namespace of which nothing was known")
	default:
	}
	l.proxy.Fix()
	<-collected

	// So it is with a test that was killed.
	since = late()
	l.blink("namespaces-killed", "blink")
	go func() { l.untilSpoilt(2); l.proxy.Fix() }()
	if pods, incomplete := l.CollectRun(t.Context(), suite, since); len(pods) != 1 || incomplete != "" {
		t.Errorf("killed: pods %+v, incomplete %q", pods, incomplete)
	}

	// It does not come back in time.
	since = late()
	l.blink("namespaces-lost", "blink")
	l.SetLag(time.Second)
	l.want("a namespace that is not known", "namespaces-lost", since, 0, "not taken: namespaces-lost")
	if pods, incomplete := l.CollectRun(t.Context(), suite, since); len(pods) != 0 || !strings.Contains(incomplete, "the watch on namespaces did not catch up") {
		t.Errorf("killed while it is broken: pods %+v, incomplete %q", pods, incomplete)
	}

	// The API server has not kept the events: whose those are that came and went
	// meanwhile nobody will know.
	l.proxy.Fix()
	l.SetLag(30 * time.Second)
	l.want("the one before, when the watch is back", "namespaces-lost", time.Now(), 1, "")
	l.SetLag(time.Second)
	since = late()
	l.blink("gap", "blink")
	for {
		if _, err := l.direct.CoreV1().Namespaces().Get(t.Context(), "gap", metav1.GetOptions{}); err != nil {
			break
		}
	}
	l.spoilOnly(watchesNamespaces, status(http.StatusGone, metav1.StatusReasonExpired))
	l.untilSpoilt(1)
	l.proxy.Fix()
	l.blink("back", "blink")
	l.SetLag(30 * time.Second)
	l.want("a test that went on after the gap", "back", since, 1, "namespaces that came and went between")
	l.SetLag(time.Second)
	l.want("a namespace that came and went in a gap", "gap", since, 0, "not taken: gap")
	since = time.Now()
	l.blink("after", "blink")
	l.SetLag(30 * time.Second)
	l.want("a test that began after the gap", "after", since, 1, "")
}

// The names of the framework's namespaces come from ten thousand numbers, so a
// later test may be given the name of an earlier one's.
func TestANamespaceOfTheSameNameIsAnother(t *testing.T) {
	l := newLine(t, kwoktest.Shared(t))
	shortTest(t, l.direct, "same", pod("first", "windows"))
	l.want("the first", "same", time.Now(), 1, "")
	l.remove("same", "first")
	for {
		if _, err := l.direct.CoreV1().Namespaces().Get(t.Context(), "same", metav1.GetOptions{}); err != nil {
			break
		}
	}
	shortTest(t, l.direct, "same", pod("second", "windows"))
	got, incomplete := l.Collect(t.Context(), suite, []string{"same"}, time.Now())
	if len(got) != 1 || got[0].Name != "second" || incomplete != "" {
		t.Errorf("pods %+v, incomplete %q", got, incomplete)
	}
}

// An API server that is killed and comes again has kept nothing: a pod that
// came and went before the watch was back is seen, or said to be unobserved.
func TestAnAPIServerThatIsKilledAndComesAgain(t *testing.T) {
	t.Parallel()
	l := newLine(t, kwoktest.Up(t))
	since := time.Now()
	shortTest(t, l.direct, "before", pod("stays", "windows"))
	l.want("nothing is broken yet", "", since, 0, "")
	l.spoil(hangUp)
	l.untilSpoilt(1)
	restart(t, l)
	l.blink("during", "blink")
	l.proxy.Fix()
	pods, incomplete := l.Collect(t.Context(), suite, []string{"during"}, since)
	t.Logf("%d pods, incomplete %q", len(pods), incomplete)
	if len(pods) != 1 && incomplete == "" {
		t.Errorf("pods %+v, incomplete %q", pods, incomplete)
	}
	since = time.Now()
	l.blink("after", "blink")
	l.want("a test that began afterwards", "after", since, 1, "")
}

// restart kills the cluster's API server, and starts it again.
func restart(t *testing.T, l *line) {
	t.Helper()
	pids, err := filepath.Glob(filepath.Join(filepath.Dir(l.cluster.Kubeconfig), "kwok", "clusters", "*", "pids", "kube-apiserver.pid"))
	if err != nil || len(pids) != 1 {
		t.Fatalf("process ids in %q: %v", pids, err)
	}
	pid, err := os.ReadFile(pids[0])
	if err != nil {
		t.Fatal(err)
	}
	id := strings.TrimSpace(string(pid))
	command, err := os.ReadFile("/proc/" + id + "/cmdline")
	if err != nil {
		t.Skipf("the API server's command line cannot be read: %v", err)
	}
	dir, err := os.Readlink("/proc/" + id + "/cwd")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("kill", "-9", id).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	args := strings.Split(strings.TrimSuffix(string(command), "\x00"), "\x00")
	// Its port is free when the old one is gone, and not before.
	for deadline := time.Now().Add(2 * time.Minute); ; {
		again := exec.Command(args[0], args[1:]...)
		var said bytes.Buffer
		again.Dir, again.Stderr = dir, &said
		if err := again.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- again.Wait() }() // it is removed with the cluster
		for running := true; running; {
			if _, err := l.direct.CoreV1().RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context()); err == nil {
				return
			}
			select {
			case err := <-ended:
				running = false
				if time.Now().After(deadline) {
					t.Fatalf("the API server does not start again: %v: %s", err, said.String())
				}
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
}

func TestAWatchThatIsNotAllowedDoesNotBegin(t *testing.T) {
	c := kwoktest.Shared(t)
	for what, verb := range map[string]string{"pods": "list", " pods": "watch", "namespaces": "list", " namespaces": "watch", "nodes": "list", " nodes": "watch"} {
		what = strings.TrimSpace(what)
		l := &line{t: t, cluster: c, proxy: kwoktest.NewProxy(t, c)}
		l.proxy.Break(func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/api/v1/"+what || r.URL.Query().Has("watch") != (verb == "watch") {
				return false
			}
			status(http.StatusForbidden, metav1.StatusReasonForbidden)(w, r)
			return true
		})
		w, err := evidence.Start(t.Context(), l.through(), nil, noLook)
		if err == nil {
			w.Stop()
			t.Fatalf("%s: the watch began", verb)
		}
		for _, text := range []string{"watching " + what, "to list and to watch " + what, "preflight"} {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v does not say %q", verb, err, text)
			}
		}
	}
}

// A hiccup at the start is no reason to go without evidence.
func TestAWatchBeginsAlsoWhenTheFirstTryFails(t *testing.T) {
	c := kwoktest.Shared(t)
	l := &line{t: t, cluster: c, proxy: kwoktest.NewProxy(t, c)}
	var tries atomic.Int32
	l.proxy.Break(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v1/pods" || tries.Add(1) > 1 {
			return false
		}
		status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)(w, r)
		return true
	})
	w, err := evidence.Start(t.Context(), l.through(), nil, noLook)
	if err != nil {
		t.Fatal(err)
	}
	w.Stop()
}
