//go:build linux || darwin

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/evidence"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// The stream: in each namespace pods are made, put on a node, run, end, and are
// deleted, the namespaces by turns, as tests beside each other make them. Every
// namespace has pods of the same names.
const (
	namespaces = 200
	pods       = 10
	// steps of a pod: made, scheduled, running, succeeded, deleted.
	steps  = 5
	events = namespaces * pods * steps
)

func namespaceName(n int) string { return fmt.Sprintf("pods-%d", n) }

// onWindows says where a pod runs: one in three is on Linux.
func onWindows(n, p int) bool { return (n+p)%3 != 0 }

func nodeName(n, p int) string {
	if onWindows(n, p) {
		return fmt.Sprintf("windows-%d", p%2)
	}
	return fmt.Sprintf("linux-%d", p%2)
}

func imageOf(n, p int) string {
	return fmt.Sprintf("registry.k8s.io/e2e-test-images/agnhost:2.%d", n*pods+p)
}

// podAt is a pod of a namespace after a step, with all that real ones carry, and
// how a watch tells of it.
func podAt(n, p, step int) (string, *corev1.Pod) {
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespaceName(n), Name: fmt.Sprintf("pod-%d", p), UID: types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", n*pods+p)),
			Labels:        map[string]string{"app": "x", "time": strings.Repeat("1", 40)},
			Annotations:   map[string]string{"note": strings.Repeat("what a pod carries along ", 20)},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "e2e.test", Operation: "Update", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{"f:labels":{".":{},"f:app":{},"f:time":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{}}}}}`)}}},
		},
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: imageOf(n, p), Env: []corev1.EnvVar{{Name: "LONG", Value: strings.Repeat("v", 300)}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	if step >= 1 {
		pod.Spec.NodeName = nodeName(n, p)
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
	}
	if step >= 2 {
		pod.Status.Phase = corev1.PodRunning
	}
	if step >= 3 {
		pod.Status.Phase = corev1.PodSucceeded
	}
	if step >= 2 {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}}
	}
	switch step {
	case 0:
		return "ADDED", pod
	case steps - 1:
		return "DELETED", pod
	}
	return "MODIFIED", pod
}

// server is an API server as far as the watch on pods sees of one.
type server struct {
	begin chan struct{} // closed when the stream may begin

	mu      sync.Mutex
	version int
	watch   chan []byte // further events, for barriers
	ended   chan struct{}
	err     atomic.Pointer[error]
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/api/v1/namespaces":
		list := corev1.NamespaceList{TypeMeta: metav1.TypeMeta{Kind: "NamespaceList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		for n := range namespaces {
			list.Items = append(list.Items, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceName(n), UID: types.UID(namespaceName(n)), Labels: map[string]string{"e2e-run": suite}}})
		}
		still(w, r, &list)
	case r.Method == http.MethodGet && r.URL.Path == "/api/v1/nodes":
		still(w, r, &corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}})
	case r.Method == http.MethodGet && r.URL.Query().Get("watch") != "":
		s.stream(w, r)
	case r.Method == http.MethodGet && r.URL.Path == "/api/v1/pods":
		fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
	case r.Method == http.MethodPost: // a barrier
		var pod corev1.Pod
		if err := json.NewDecoder(r.Body).Decode(&pod); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		pod.TypeMeta, pod.Namespace = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, metav1.NamespaceDefault
		s.watch <- s.event("ADDED", &pod)
		_ = json.NewEncoder(w).Encode(&pod)
	case r.Method == http.MethodDelete:
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	default:
		http.NotFound(w, r)
	}
}

// suite is the run id of the process whose tests made all namespaces.
const suite = "bench"

// still lists what was all there before, and watches that nothing becomes of it.
func still(w http.ResponseWriter, r *http.Request, list any) {
	if r.URL.Query().Get("watch") != "" {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	}
	_ = json.NewEncoder(w).Encode(list)
}

// event numbers an event and encodes it.
func (s *server) event(kind string, pod *corev1.Pod) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	pod.ResourceVersion = fmt.Sprint(s.version + 1)
	raw, err := json.Marshal(map[string]any{"type": kind, "object": pod})
	if err != nil {
		s.err.Store(&err)
	}
	return append(raw, '\n')
}

// stream sends all events in waves: the pods of ten namespaces beside each
// other, step by step.
func (s *server) stream(w http.ResponseWriter, r *http.Request) {
	flush := w.(http.Flusher).Flush
	flush()
	<-s.begin
	const beside = 10
	for first := 0; first < namespaces; first += beside {
		for step := range steps {
			for p := range pods {
				for n := first; n < first+beside; n++ {
					kind, pod := podAt(n, p, step)
					_, _ = w.Write(s.event(kind, pod))
				}
			}
		}
		flush()
	}
	close(s.ended)
	for {
		select {
		case <-r.Context().Done():
			return
		case e := <-s.watch:
			_, _ = w.Write(e)
			flush()
		}
	}
}

// measureStream sends the stream, and holds what was attributed against what
// was sent.
func measureStream(ctx context.Context) ([]row, error) {
	tell("%d events of pods in %d namespaces", events, namespaces)
	s := &server{begin: make(chan struct{}), watch: make(chan []byte), ended: make(chan struct{}), version: 1}
	api := httptest.NewServer(s)
	defer func() {
		api.CloseClientConnections()
		api.Close()
	}()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: api.URL, QPS: 1000, Burst: 1000})
	if err != nil {
		return nil, err
	}
	var known []result.Node
	for i := range 2 {
		known = append(known, result.Node{Name: fmt.Sprintf("windows-%d", i), OS: specs.Windows, WindowsBuild: "10.0.20348"}, result.Node{Name: fmt.Sprintf("linux-%d", i), OS: specs.Linux})
	}
	w, err := evidence.Start(ctx, client, known, func(_ context.Context, name string) (result.Node, error) {
		return result.Node{}, fmt.Errorf("node %s is not known", name)
	})
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	w.Own(suite)
	peak, stop := watchMemory()
	began := time.Now()
	close(s.begin)
	select {
	case <-s.ended:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	wrong := 0
	for n := range namespaces {
		got, incomplete := w.Collect(ctx, suite, []string{namespaceName(n)}, began)
		if incomplete != "" {
			return nil, fmt.Errorf("namespace %d: %s", n, incomplete)
		}
		wrong += mistakes(n, got)
	}
	took := time.Since(began)
	stop()
	if err := s.err.Load(); err != nil {
		return nil, *err
	}
	return []row{
		{what: fmt.Sprintf("%d events, %d namespaces: pods attributed wrongly, of %d", events, namespaces, namespaces*pods), measured: fmt.Sprint(wrong), target: "0", ok: wrong == 0},
		{what: "the same: memory of the process", measured: fmt.Sprintf("%.1f MB", float64(peak.Load())/(1<<20)), target: fmt.Sprintf("< %d MB", wantMemory>>20), ok: peak.Load() < wantMemory},
		{what: "the same: events a second, server included", measured: fmt.Sprintf("%.0f", events/took.Seconds())},
	}, nil
}

// mistakes counts the pods of a namespace that are missing, too many, or not as
// they were sent.
func mistakes(n int, got []result.Pod) int {
	wrong := max(pods-len(got), len(got)-pods)
	for _, p := range got {
		var i int
		if _, err := fmt.Sscanf(p.Name, "pod-%d", &i); err != nil {
			wrong++
			continue
		}
		os := specs.Linux
		if onWindows(n, i) {
			os = specs.Windows
		}
		if p.Namespace != namespaceName(n) || p.Node != nodeName(n, i) || p.OS != os || strings.Join(p.Images, " ") != imageOf(n, i) || strings.Join(p.Phases, " ") != "Pending Running Succeeded" || !p.Started {
			wrong++
		}
	}
	return wrong
}

// watchMemory takes down the most memory that the Go runtime had from the
// operating system, less what it gave back: heap, stacks and its own.
func watchMemory() (peak *atomic.Int64, stop func()) {
	peak = &atomic.Int64{}
	done, stopped := make(chan struct{}), make(chan struct{})
	look := func() {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak.Store(max(peak.Load(), int64(m.Sys-m.HeapReleased)))
	}
	go func() {
		defer close(stopped)
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			look()
			select {
			case <-done:
				tick.Stop()
				look()
				return
			case <-tick.C:
			}
		}
	}()
	return peak, func() { close(done); <-stopped }
}
