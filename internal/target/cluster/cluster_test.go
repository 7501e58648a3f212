package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func TestLocate(t *testing.T) {
	home := t.TempDir()
	file := filepath.Join(home, ".kube", "config")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	list := strings.Join([]string{"/a", "/b"}, string(filepath.ListSeparator))
	for what, c := range map[string]struct {
		flag string
		env  map[string]string
		want string
		says string
	}{
		"the flag before all":       {"/flag", map[string]string{"KUBECONFIG": "/env", "HOME": home}, "/flag", ""},
		"the flag, whatever is set": {"/flag", map[string]string{"KUBECONFIG": list}, "/flag", ""},
		"the environment":           {"", map[string]string{"KUBECONFIG": "/env", "HOME": home}, "/env", ""},
		"the home folder":           {"", map[string]string{"HOME": home}, file, ""},
		"the pod":                   {"", map[string]string{"HOME": "/none", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "", ""},
		"nothing":                   {"", map[string]string{"HOME": "/none"}, "", "no kubeconfig"},
		"two files":                 {"", map[string]string{"KUBECONFIG": list}, "", "names 2 files"},
	} {
		got, err := Locate(c.flag, "x", func(key string) string { return c.env[key] })
		if c.says == "" && (err != nil || got.Kubeconfig != c.want || got.Context != "x") || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %+v, error %v", what, got, err)
		}
	}
}

func TestCheckSkew(t *testing.T) {
	for _, c := range []struct {
		e2e, server   string
		warns, refuse bool
	}{
		{"v1.36.3", "v1.36.0", false, false},
		{"v1.36.3", "v1.36.3-gke.100+5ab", false, false},
		{"v1.36.3", "v1.35.4", true, false},
		{"v1.35.4", "v1.36.3", true, false},
		{"v1.36.3", "v1.34.4", false, true},
		{"v1.34.4", "v1.36.3", false, true},
		{"v1.36.3", "v2.36.3", false, true},
	} {
		warning, err := CheckSkew(c.e2e, c.server)
		if (warning != "") != c.warns || errors.Is(err, errSkew) != c.refuse || !c.refuse && err != nil {
			t.Errorf("%s against %s: warning %q, error %v", c.e2e, c.server, warning, err)
		}
	}
	if _, err := CheckSkew("v1.36.3", "unknown"); err == nil || errors.Is(err, errSkew) {
		t.Errorf("a server without a version: %v", err)
	}
}

func TestServersThatAreNoKubernetes(t *testing.T) {
	for what, c := range map[string]struct {
		status      int
		body, wants string
	}{
		"a web page":            {200, "<html>", "is not a Kubernetes API server"},
		"other JSON":            {200, `{"version": 1}`, `says that its version is ""`},
		"a list":                {200, `[]`, "is not a Kubernetes API server"},
		"a server that forbids": {403, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "reason": "Forbidden", "code": 403}`, "does not report its version: no"},
		"a server in trouble":   {503, "", "does not report its version"},
	} {
		cluster := connectTo(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body))
		})
		if err := cluster.Healthy(t.Context()); err == nil || !strings.Contains(err.Error(), c.wants) || !strings.Contains(err.Error(), cluster.Server) {
			t.Errorf("%s: error %v, want %q", what, err, c.wants)
		}
	}
}

func TestNodeFacts(t *testing.T) {
	got := nodeFacts(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "windows-0",
			Labels:      map[string]string{"kubernetes.io/os": "windows", "node.kubernetes.io/windows-build": "10.0.20348", "node-role.kubernetes.io/control-plane": ""},
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Spec: corev1.NodeSpec{
			Unschedulable: true, PodCIDRs: []string{"10.0.0.0/24"},
			Taints: []corev1.Taint{{Key: "os", Value: "windows", Effect: corev1.TaintEffectNoSchedule}, {Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}},
		},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	})
	if got.OS != "windows" || got.WindowsBuild != "10.0.20348" || !got.Simulated || !got.ControlPlane || !got.Unschedulable || !got.Ready ||
		!slices.Equal(got.Taints, []string{"os=windows:NoSchedule"}) || len(got.PodCIDRs) != 1 {
		t.Errorf("facts %+v", got)
	}
}

// connectTo returns a connection to a server that a handler plays.
func connectTo(t *testing.T, handler http.HandlerFunc) *Cluster {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{name: x, cluster: {server: '" + server.URL + "'}}]\ncontexts: [{name: x, context: {cluster: x}}]\n"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster, err := Connect(Target{Kubeconfig: kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

// namespaces is an API server that knows nothing but namespaces: names, and
// the e2e-run label of each.
type namespaces struct {
	mu     sync.Mutex
	labels map[string]string
	// deleted is told of a request to delete one, and answers with a status.
	deleted func(name string) int
}

func (n *namespaces) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodDelete {
		name := path.Base(r.URL.Path)
		code := n.deleted(name)
		if code == http.StatusOK {
			delete(n.labels, name)
		}
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Code: int32(code), Reason: metav1.StatusReason(map[int]string{409: "Conflict", 404: "NotFound"}[code])})
		return
	}
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	list := corev1.NamespaceList{TypeMeta: metav1.TypeMeta{Kind: "NamespaceList", APIVersion: "v1"}}
	for name, run := range n.labels {
		if set := (labels.Set{"e2e-run": run}); selector.Matches(set) {
			list.Items = append(list.Items, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: set}})
		}
	}
	_ = json.NewEncoder(w).Encode(&list)
}

func TestRemoveNamespacesOfTheGivenRunsOnly(t *testing.T) {
	server := &namespaces{
		labels:  map[string]string{"a": "one", "b": "two", "c": "other", "default": ""},
		deleted: func(string) int { return http.StatusOK },
	}
	cluster := connectTo(t, server.ServeHTTP)
	n, err := cluster.RemoveNamespaces(t.Context(), []string{"one", "two", "three"})
	if n != 2 || err != nil {
		t.Errorf("removed %d, error %v", n, err)
	}
	if len(server.labels) != 2 || server.labels["c"] != "other" {
		t.Errorf("left %v", server.labels)
	}
	if n, err := cluster.RemoveNamespaces(t.Context(), nil); n != 0 || err != nil {
		t.Errorf("of no run: removed %d, error %v", n, err)
	}
	// The ids come from a file and from what a program printed.
	if _, err := cluster.RemoveNamespaces(t.Context(), []string{"one), (!e2e-run"}); err == nil || len(server.labels) != 2 {
		t.Errorf("an id that is not a label value: error %v, left %v", err, server.labels)
	}
}

func TestRemoveNamespacesTellsWhatStays(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	server := &namespaces{labels: map[string]string{"stuck": "one", "vanished": "one"}, deleted: func(name string) int {
		if asked++; asked == 2 {
			time.AfterFunc(10*time.Millisecond, cancel)
		}
		if name == "vanished" {
			return http.StatusNotFound
		}
		return http.StatusConflict // it is being deleted already
	}}
	n, err := connectTo(t, server.ServeHTTP).RemoveNamespaces(ctx, []string{"one"})
	if n != 2 || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "stuck") {
		t.Errorf("removed %d, error %v", n, err)
	}
}
