package preflight_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/test/golden"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	kyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/lease"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/preflight"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/steer"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
)

func connect(t *testing.T, kubeconfig string) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Connect(cluster.Target{Kubeconfig: kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// report is of a cluster as it is now.
func reported(t *testing.T, c *cluster.Cluster) *preflight.Report {
	t.Helper()
	facts, err := preflight.Gather(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	facts.Kubectl, facts.Provider, facts.Catalogues = "/kubectl", "skeleton", specs.Catalogues()
	return preflight.NewReport(c.Server, preflight.Check(facts))
}

// findings are those of a cluster as it is now, by id.
func findings(t *testing.T, c *cluster.Cluster) map[string]preflight.Finding {
	t.Helper()
	byID := map[string]preflight.Finding{}
	for _, f := range reported(t, c).Findings {
		byID[f.ID] = f
	}
	return byID
}

// asKept compares the report with the file of the test's name.
func asKept(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	r := reported(t, c)
	// The address is another one each time.
	r.Server = "https://cluster.example:6443"
	for i := range r.Findings {
		r.Findings[i].Found = strings.ReplaceAll(r.Findings[i].Found, c.Server, r.Server)
	}
	var out bytes.Buffer
	if err := r.Write(&out, report.FormatTable); err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, golden.Name(t), out.String())
}

func expect(t *testing.T, got map[string]preflight.Finding, id string, status preflight.Status, found ...string) {
	t.Helper()
	f := got[id]
	if f.Status != status {
		t.Errorf("%s is %q, want %q: %s", id, f.Status, status, f.Found)
	}
	for _, part := range found {
		if !strings.Contains(f.Found, part) {
			t.Errorf("%s: %q is not in %q", id, part, f.Found)
		}
	}
}

// until asks again until the API server has caught up with what was made.
func until(t *testing.T, holds func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, holds); err != nil {
		t.Fatal(err)
	}
}

func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func namespace(t *testing.T, client kubernetes.Interface, name string, labels map[string]string) {
	t.Helper()
	must(client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{}))(t)
}

// kubeconfigOf makes a service account, and a kubeconfig with its token.
func kubeconfigOf(t *testing.T, client kubernetes.Interface, admin, name string) string {
	t.Helper()
	accounts := client.CoreV1().ServiceAccounts("default")
	must(accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}))(t)
	token := must(accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))(t).Status.Token
	config := must(clientcmd.LoadFromFile(admin))(t)
	for user := range config.AuthInfos {
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token}
	}
	path := filepath.Join(t.TempDir(), name)
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestOnASimulatedCluster asks a real API server. Its steps share a cluster, and
// leave what they make.
func TestOnASimulatedCluster(t *testing.T) {
	t.Parallel()
	up := kwoktest.Up(t)
	client, admin := kwoktest.Client(t, up), connect(t, up.Kubeconfig)

	t.Run("as it is made", func(t *testing.T) {
		got := findings(t, admin)
		expect(t, got, "server-version", preflight.OK, "v1.36")
		expect(t, got, "node-count", preflight.Failing, "2 simulated Linux nodes, which do not count; 2 simulated Windows nodes, which do not count")
		expect(t, got, "windows-nodes", preflight.OK, "2 Windows nodes (2 simulated)")
		expect(t, got, "windows-version", preflight.Unknown, "both Windows nodes are simulated")
		expect(t, got, "dual-stack", preflight.OK, "single-stack (IPv4)")
		expect(t, got, "gmsa", preflight.OK, "windows.k8s.io is not served")
		expect(t, got, "network-policy", preflight.Unknown, "no network was recognised")
		expect(t, got, "cluster-dns", preflight.Failing, "no such Service")
		expect(t, got, "runtime-classes", preflight.OK, "none for")
		expect(t, got, "steering", preflight.OK, "MutatingAdmissionPolicy v1")
		for _, id := range []string{"permission-suite", "permission-evidence", "permission-steering", "permission-cleanup"} {
			expect(t, got, id, preflight.OK)
		}
		expect(t, got, "leftover-namespaces", preflight.OK)
		expect(t, got, "leftover-steering", preflight.OK)
		asKept(t, admin)
	})

	t.Run("a user without permissions", func(t *testing.T) {
		nobody := connect(t, kubeconfigOf(t, client, up.Kubeconfig, "nobody"))
		got := findings(t, nobody)
		for _, id := range []string{
			"node-count", "windows-nodes", "kubelet-skew", "container-runtime", "windows-memory", "network-policy", "dual-stack",
			"host-process", "runtime-classes", "cluster-dns", "steering", "leftover-namespaces", "leftover-steering",
		} {
			expect(t, got, id, preflight.Unknown, "is forbidden", "system:serviceaccount:default:nobody")
		}
		// Every user may see the version and which APIs there are.
		expect(t, got, "server-version", preflight.OK)
		expect(t, got, "gmsa", preflight.OK)
		expect(t, got, "permission-suite", preflight.Failing, "130 permissions are missing", "such as create/delete/get/list/patch/update/watch namespaces", "op-readiness preflight --print-rbac prints the role")
		expect(t, got, "permission-evidence", preflight.Failing, "create/delete/list/watch pods, list/watch namespaces, get/list/watch nodes")
		expect(t, got, "permission-steering", preflight.Failing, "create/delete/get/list mutatingadmissionpolicies.admissionregistration.k8s.io")
		expect(t, got, "permission-cleanup", preflight.Failing, "delete/list namespaces")
		expect(t, got, "permission-lock", preflight.Failing, "create/delete/get/update leases.coordination.k8s.io")
		asKept(t, nobody)
	})

	t.Run("a user who may only look", func(t *testing.T) {
		c := connect(t, kubeconfigOf(t, client, up.Kubeconfig, "viewer"))
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "viewer"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes", "pods", "namespaces"}, Verbs: []string{"get", "list", "watch"}},
		}}
		bind(t, client, role, "viewer")
		untilBound(t, c)
		got := findings(t, c)
		expect(t, got, "permission-evidence", preflight.Failing, "no placement is proven: create/delete pods")
		expect(t, got, "permission-suite", preflight.Failing, "create/delete/patch/update pods,", "op-readiness preflight --print-rbac prints the role")
		expect(t, got, "runtime-classes", preflight.Unknown, "is forbidden")
	})

	t.Run("the role that is printed is enough", func(t *testing.T) {
		c := connect(t, kubeconfigOf(t, client, up.Kubeconfig, "tester"))
		var text bytes.Buffer
		if err := preflight.WriteRole(&text); err != nil {
			t.Fatal(err)
		}
		role := &rbacv1.ClusterRole{}
		if err := json.Unmarshal(must(kyaml.ToJSON(text.Bytes()))(t), role); err != nil {
			t.Fatal(err)
		}
		bind(t, client, role, "tester")
		untilBound(t, c)
		as, tester := findings(t, admin), findings(t, c)
		for id, f := range as {
			if tester[id].Status != f.Status || tester[id].Found != f.Found {
				t.Errorf("%s: an administrator gets %s %q, whoever has the role %s %q", id, f.Status, f.Found, tester[id].Status, tester[id].Found)
			}
		}
	})

	t.Run("left-overs", func(t *testing.T) {
		namespace(t, client, "services-4711", map[string]string{"e2e-run": "killed"})
		namespace(t, client, "mine", nil)
		s := must(steer.New(t.Context(), client, admin.Dynamic(), steer.Member{RunID: "killed", ID: "killed-1"}))(t)
		if err := s.Own(t.Context(), result.RunConditions{Steer: specs.Windows}, "another"); err != nil {
			t.Fatal(err)
		}
		got := findings(t, admin)
		expect(t, got, "leftover-namespaces", preflight.Warning, "services-4711")
		if strings.Contains(got["leftover-namespaces"].Found, "mine") {
			t.Errorf("a namespace of somebody else counts: %s", got["leftover-namespaces"].Found)
		}
		expect(t, got, "leftover-steering", preflight.Warning, "2: mutatingadmissionpolicies/", "mutatingadmissionpolicybindings/")
		if err := s.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		expect(t, findings(t, admin), "leftover-steering", preflight.OK)
		if err := client.CoreV1().Namespaces().Delete(t.Context(), "services-4711", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		until(t, func(context.Context) (bool, error) {
			return findings(t, admin)["leftover-namespaces"].Status == preflight.OK, nil
		})
	})

	t.Run("a network that enforces policies", func(t *testing.T) {
		namespace(t, client, "calico-system", nil)
		labels := map[string]string{"k8s-app": "calico-node"}
		must(client.AppsV1().DaemonSets("calico-system").Create(t.Context(), &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Name: "calico-node"},
			Spec: appsv1.DaemonSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "calico-node", Image: "docker.io/calico/node:v3.30.0"}}},
				},
			},
		}, metav1.CreateOptions{}))(t)
		expect(t, findings(t, admin), "network-policy", preflight.Unknown, "it looks like Calico (calico-system/calico-node)", "the tests show")
	})

	t.Run("gMSA", func(t *testing.T) {
		crd := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{
				"name":        "gmsacredentialspecs.windows.k8s.io",
				"annotations": map[string]any{"api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/tree/master/keps/sig-windows/689-windows-gmsa"},
			},
			"spec": map[string]any{
				"group": "windows.k8s.io", "scope": "Cluster",
				"names":    map[string]any{"kind": "GMSACredentialSpec", "plural": "gmsacredentialspecs"},
				"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}},
			},
		}}
		crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
		must(admin.Dynamic().Resource(crds).Create(t.Context(), crd, metav1.CreateOptions{}))(t)
		until(t, func(context.Context) (bool, error) {
			groups, err := client.Discovery().ServerGroups()
			return err == nil && slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == "windows.k8s.io" }), nil
		})
		got := findings(t, admin)
		expect(t, got, "gmsa", preflight.OK, "gMSA is asked")
		expect(t, got, "gmsa-webhook", preflight.Warning, "none")
		expect(t, got, "gmsa-node", preflight.Warning, "0 nodes")
		must(client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(t.Context(), &admissionv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "gmsa-webhook"},
		}, metav1.CreateOptions{}))(t)
		changeNode(t, client, "windows-2", func(n *corev1.Node) { n.Labels["agentpool"] = "windowsgmsa" })
		got = findings(t, admin)
		expect(t, got, "gmsa-webhook", preflight.OK, "gmsa-webhook")
		expect(t, got, "gmsa-node", preflight.OK, "windows-2")
		asKept(t, admin)
	})

	t.Run("runtime classes", func(t *testing.T) {
		must(client.NodeV1().RuntimeClasses().Create(t.Context(), &nodev1.RuntimeClass{
			ObjectMeta: metav1.ObjectMeta{Name: "hyperv"}, Handler: "runhcs-wcow-hypervisor",
		}, metav1.CreateOptions{}))(t)
		expect(t, findings(t, admin), "runtime-classes", preflight.OK, "hyperv (runhcs-wcow-hypervisor)")
	})

	t.Run("DNS", func(t *testing.T) {
		must(client.CoreV1().Services("kube-system").Create(t.Context(), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "kube-dns"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}}},
		}, metav1.CreateOptions{}))(t)
		expect(t, findings(t, admin), "cluster-dns", preflight.Failing, "no endpoint that is ready")
		no := false
		must(client.DiscoveryV1().EndpointSlices("kube-system").Create(t.Context(), &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: "kube-dns-1", Labels: map[string]string{discoveryv1.LabelServiceName: "kube-dns"}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{
				{Addresses: []string{"10.0.0.2"}},
				{Addresses: []string{"10.0.0.3"}, Conditions: discoveryv1.EndpointConditions{Ready: &no}},
			},
		}, metav1.CreateOptions{}))(t)
		expect(t, findings(t, admin), "cluster-dns", preflight.OK, "1 endpoints are ready")
	})

	t.Run("tainted Windows nodes", func(t *testing.T) {
		for _, name := range []string{"windows-1", "windows-2"} {
			changeNode(t, client, name, func(n *corev1.Node) {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "os", Value: "windows", Effect: corev1.TaintEffectNoSchedule})
			})
		}
		got := findings(t, admin)
		expect(t, got, "windows-nodes", preflight.Failing, "0 Windows nodes")
		expect(t, got, "node-taints", preflight.Warning, "os=windows:NoSchedule on windows-1, windows-2")
		if fix := got["node-taints"].Fix; !strings.Contains(fix, "--non-blocking-taints os") {
			t.Errorf("the fix is %q", fix)
		}
		asKept(t, admin)
	})

	t.Run("a node that lies", func(t *testing.T) {
		changeNode(t, client, "linux-2", func(n *corev1.Node) { n.Labels[corev1.LabelOSStable] = "windows" })
		expect(t, findings(t, admin), "node-os", preflight.Failing, "linux-2 reports linux, and is labelled windows")
		changeNode(t, client, "linux-2", func(n *corev1.Node) { n.Labels[corev1.LabelOSStable] = "linux" })
		expect(t, findings(t, admin), "node-os", preflight.OK)
	})

	t.Run("a node that a run has cordoned", func(t *testing.T) {
		changeNode(t, client, "linux-2", func(n *corev1.Node) {
			n.Annotations[cluster.CordonAnnotation], n.Spec.Unschedulable = "{}", true
		})
		expect(t, findings(t, admin), "leftover-cordon", preflight.Warning, "1: linux-2")
		changeNode(t, client, "linux-2", func(n *corev1.Node) {
			delete(n.Annotations, cluster.CordonAnnotation)
			n.Spec.Unschedulable = false
		})
	})

	t.Run("a run that has the cluster", func(t *testing.T) {
		lock := lease.New(client, lease.Holder{RunID: "nightly-17", Shard: "1/1", Host: "ci"}, lease.Options{})
		if err := lock.Acquire(t.Context(), lease.Group{Phase: specs.Serial}, false); err != nil {
			t.Fatal(err)
		}
		expect(t, findings(t, admin), "cluster-lock", preflight.Warning, "the cluster is locked by run nightly-17, shard 1/1 on ci (serial")
		if err := lock.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		expect(t, findings(t, admin), "cluster-lock", preflight.OK, "nobody")
		leases := client.CoordinationV1().Leases(lease.Namespace)
		must(leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Name: lease.Name, Annotations: map[string]string{"op-readiness/lock": `{"schema": 99}`},
		}}, metav1.CreateOptions{}))(t)
		expect(t, findings(t, admin), "cluster-lock", preflight.Warning, "a newer version of op-readiness wrote it")
		if err := leases.Delete(t.Context(), lease.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("fewer Windows nodes", func(t *testing.T) {
		remove := func(name string) {
			if err := client.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		remove("windows-2")
		t.Run("one", func(t *testing.T) {
			expect(t, findings(t, admin), "node-count", preflight.Failing, "1 simulated Windows nodes")
			asKept(t, admin)
		})
		remove("windows-1")
		t.Run("none", func(t *testing.T) {
			got := findings(t, admin)
			expect(t, got, "node-count", preflight.Failing, "no Windows node")
			expect(t, got, "windows-version", preflight.Unknown, "the cluster has no Windows node")
			if !got["windows-nodes"].Refuses {
				t.Error("a run would start without a Windows node")
			}
			asKept(t, admin)
		})
	})

	t.Run("dual-stack", func(t *testing.T) {
		nodes := client.CoreV1().Nodes()
		for i, name := range []string{"linux-1", "linux-2"} {
			old := must(nodes.Get(t.Context(), name, metav1.GetOptions{}))(t)
			if err := nodes.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			v4, v6 := fmt.Sprintf("10.99.%d.0/24", i), fmt.Sprintf("fd00:99:%d::/64", i)
			must(nodes.Create(t.Context(), &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "dual-" + name, Labels: old.Labels, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}},
				Spec:       corev1.NodeSpec{PodCIDR: v4, PodCIDRs: []string{v4, v6}},
				Status:     old.Status,
			}, metav1.CreateOptions{}))(t)
		}
		until(t, func(context.Context) (bool, error) {
			return findings(t, admin)["node-taints"].Status == preflight.OK, nil
		})
		expect(t, findings(t, admin), "dual-stack", preflight.OK, "dual-stack: every node has pod CIDRs of two families")
		asKept(t, admin)
	})
}

// bind makes the role and gives it to a service account.
func bind(t *testing.T, client kubernetes.Interface, role *rbacv1.ClusterRole, account string) {
	t.Helper()
	must(client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}))(t)
	must(client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: account}},
	}, metav1.CreateOptions{}))(t)
}

// untilBound waits until the API server has noticed a binding that allows nodes
// to be listed.
func untilBound(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	until(t, func(ctx context.Context) (bool, error) {
		_, err := c.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
}

// changeNode changes a node, which others change too.
func changeNode(t *testing.T, client kubernetes.Interface, name string, change func(*corev1.Node)) {
	t.Helper()
	until(t, func(ctx context.Context) (bool, error) {
		n, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		change(n)
		_, err = client.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
		return err == nil, nil
	})
}

// played makes a kubeconfig for an API server that is only played.
func played(t *testing.T, handle http.HandlerFunc) (kubeconfig string, server *httptest.Server) {
	t.Helper()
	server = httptest.NewServer(handle)
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{name: x, cluster: {server: " + server.URL + "}}]\ncontexts: [{name: x, context: {cluster: x, user: x}}]\nusers: [{name: x, user: {}}]\n"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig, server
}

// One answer of an overloaded server, or one cut connection, makes no fact unknown.
func TestAServerThatFailsNowAndThenIsAskedAgain(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	failed := map[string]bool{}
	kubeconfig, _ := played(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		first := !failed[r.URL.Path]
		failed[r.URL.Path] = true
		cut := len(failed)%2 == 0
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/version" && !first:
			fmt.Fprint(w, `{"gitVersion": "v1.36.3"}`)
		case first && cut:
			panic(http.ErrAbortHandler)
		case first:
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 503}`)
		default:
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "not you", "reason": "Forbidden", "code": 403}`)
		}
	})
	facts, err := preflight.Gather(t.Context(), connect(t, kubeconfig))
	if err != nil || facts.Version.Value != "v1.36.3" {
		t.Fatalf("version %+v, %v", facts, err)
	}
	for what, err := range map[string]error{"nodes": facts.Nodes.Err, "DaemonSets": facts.DaemonSets.Err, "namespaces": facts.Namespaces.Err} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, and the server's last word is that this is forbidden", what, err)
		}
	}
}

func TestABrokenServerMakesNothingAbsent(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for as long as an outage may last")
	}
	t.Parallel()
	kubeconfig, _ := played(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			fmt.Fprint(w, `{"gitVersion": "v1.36.3"}`)
			return
		}
		http.Error(w, "etcd is gone", http.StatusInternalServerError)
	})
	for id, f := range findings(t, connect(t, kubeconfig)) {
		if !slices.Contains([]string{"server-version", "kubectl", "provider", "internet"}, id) && (f.Status != preflight.Unknown || !strings.HasPrefix(f.Found, "not known: ")) {
			t.Errorf("%s is %s: %s", id, f.Status, f.Found)
		}
	}
}

func TestAServerThatDoesNotKnowTheUserIsAnError(t *testing.T) {
	kubeconfig, _ := played(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "Unauthorized", "reason": "Unauthorized", "code": 401}`)
	})
	if _, err := preflight.Gather(t.Context(), connect(t, kubeconfig)); err == nil || !strings.Contains(err.Error(), "Unauthorized") && !strings.Contains(err.Error(), "provide credentials") {
		t.Errorf("got %v", err)
	}
}

func TestAServerThatIsNotThereIsAnError(t *testing.T) {
	kubeconfig, server := played(t, nil)
	server.Close()
	if _, err := preflight.Gather(t.Context(), connect(t, kubeconfig)); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("got %v", err)
	}
}
