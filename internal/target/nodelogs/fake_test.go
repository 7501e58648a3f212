package nodelogs_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
)

// api answers like an API server, with what a test has put there.
type api struct {
	nodes []corev1.Node
	// pods are those of kube-system; said is what containers said, by pod/container,
	// also those of pods that were made, whose name is
	// their node's, but for slashes and dots.
	pods []corev1.Pod
	said map[string]string
	exit map[string]int32
	// kubelets answer log queries, by node.
	kubelets map[string]http.HandlerFunc
	// refuses says which requests for namespaces and pods are forbidden.
	refuses bool

	mu      sync.Mutex
	asked   []string
	made    map[string]*corev1.Pod // by node
	removed []string
}

func (a *api) serve(t *testing.T) cluster.Target {
	t.Helper()
	a.made = map[string]*corev1.Pod{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/nodes", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, Items: a.nodes})
	})
	mux.HandleFunc("GET /api/v1/nodes/{node}/proxy/logs/", func(w http.ResponseWriter, r *http.Request) {
		if k := a.kubelets[r.PathValue("node")]; k != nil {
			k(w, r)
			return
		}
		http.Error(w, "logs endpoint is disabled.", http.StatusMethodNotAllowed)
	})
	mux.HandleFunc("GET /api/v1/namespaces/kube-system/pods", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: a.pods})
	})
	mux.HandleFunc("POST /api/v1/namespaces", func(w http.ResponseWriter, _ *http.Request) {
		if a.refuses {
			answer(w, 403, failure(403, "you may make no namespace"))
			return
		}
		answer(w, 201, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "op-readiness-logs-x", CreationTimestamp: metav1.Now()}})
	})
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}", func(w http.ResponseWriter, _ *http.Request) { answer(w, 404, failure(404, "it is gone")) })
	mux.HandleFunc("GET /api/v1/namespaces", func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, corev1.NamespaceList{}) })
	mux.HandleFunc("DELETE /api/v1/namespaces/{namespace}", func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.removed = append(a.removed, r.PathValue("namespace"))
		answer(w, 200, metav1.Status{Status: metav1.StatusSuccess})
	})
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}/serviceaccounts/default", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, corev1.ServiceAccount{})
	})
	mux.HandleFunc("POST /api/v1/namespaces/{namespace}/pods", a.makePod)
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}/pods/{pod}", func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		answer(w, 200, a.made[r.PathValue("pod")])
	})
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}/pods/{pod}/log", func(w http.ResponseWriter, r *http.Request) {
		what := r.PathValue("pod") + "/" + r.URL.Query().Get("container")
		if r.URL.Query().Get("previous") == "true" {
			what += "/previous"
		}
		fmt.Fprint(w, a.said[what])
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.asked = append(a.asked, r.Method+" "+r.URL.Path)
		a.mu.Unlock()
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["a"] = &clientcmdapi.Cluster{Server: server.URL}
	config.Contexts["a"] = &clientcmdapi.Context{Cluster: "a"}
	config.CurrentContext = "a"
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	return cluster.Target{Kubeconfig: kubeconfig}
}

// makePod takes a pod, all of whose containers have ended at once.
func (a *api) makePod(w http.ResponseWriter, r *http.Request) {
	var pod corev1.Pod
	if err := json.NewDecoder(r.Body).Decode(&pod); err != nil {
		http.Error(w, err.Error(), 400)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	pod.Name, pod.Namespace = strings.NewReplacer("/", "", ".", "").Replace(pod.Spec.NodeName), r.PathValue("namespace")
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{StartedAt: metav1.Now(), ExitCode: a.exit[pod.Name+"/"+c.Name]},
		}})
	}
	a.made[pod.Name] = &pod
	answer(w, 201, pod)
}

func answer(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value)
}

func failure(code int32, message string) metav1.Status {
	return metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: code, Message: message}
}

// node is one with a kubelet.
func node(name, system string) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		NodeInfo: corev1.NodeSystemInfo{OperatingSystem: system, MachineID: "m", SystemUUID: "u", BootID: "b"},
		Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		}},
	}}
}

// says is a kubelet that has these logs, by service.
func says(logs map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		service := r.URL.Query().Get("query")
		text, is := logs[service]
		if !is {
			text = fmt.Sprintf("\nlog not found for %s\n", service)
		}
		fmt.Fprint(w, text)
	}
}

func (a *api) hasAsked(part string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Contains(strings.Join(a.asked, "\n"), part)
}
