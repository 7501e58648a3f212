package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/preflight"
	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
)

// preflightOf runs op-readiness preflight with a kubeconfig, and a kubectl that
// is only there.
func preflightOf(t *testing.T, kubeconfig string, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	kubectl := filepath.Join(t.TempDir(), "kubectl")
	if err := os.WriteFile(kubectl, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code = Main(t.Context(), append([]string{"preflight", "--kubeconfig", kubeconfig, "--kubectl", kubectl}, args...),
		Surroundings{Environ: environ, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
	return code, out.String(), errs.String()
}

func TestPreflight_of_a_simulated_cluster(t *testing.T) {
	t.Parallel()
	cluster := kwoktest.Up(t)

	code, stdout, stderr := preflightOf(t, cluster.Kubeconfig, nil)
	if code != verdict.ExitInconclusive || stderr != "" {
		t.Errorf("got exit code %d, narration %q", code, stderr)
	}
	for _, want := range []string{"NOT TESTABLE (2 failing", "2 simulated Windows nodes, which do not count", "What to do:", "failing cluster-dns (3 requirements need it):"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not in:\n%s", want, stdout)
		}
	}

	code, stdout, stderr = preflightOf(t, cluster.Kubeconfig, []string{"GITHUB_ACTIONS=true"}, "-o", "json", "--air-gapped", "--without", "gmsa,hpc")
	var got preflight.Report
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatalf("%v in:\n%s", err, stdout)
	}
	if code != got.ExitCode || got.Testable || got.Counts[preflight.Failing] != 2 {
		t.Errorf("exit code %d, report %+v", code, got)
	}
	for _, id := range []string{"internet", "gmsa", "host-process"} {
		if !slices.ContainsFunc(got.Findings, func(f preflight.Finding) bool {
			return f.ID == id && f.How == preflight.Declared && f.Status == preflight.OK
		}) {
			t.Errorf("%s is not declared in %s", id, stdout)
		}
	}
	if !strings.Contains(stderr, "::error title=preflight node-count::") {
		t.Errorf("no annotation in %q", stderr)
	}

	code, stdout, _ = preflightOf(t, cluster.Kubeconfig, nil, "-o", "markdown", "--provider", "local")
	if code != verdict.ExitInconclusive || !strings.HasPrefix(stdout, "## Preflight of ") || !strings.Contains(stdout, "- **warning** provider: ") {
		t.Errorf("exit code %d:\n%s", code, stdout)
	}

	makeLookReal(t, kwoktest.Client(t, cluster))
	code, stdout, _ = preflightOf(t, cluster.Kubeconfig, nil)
	if code != verdict.ExitReady || !strings.Contains(stdout, ": TESTABLE (0 failing, 1 warning") || !strings.Contains(stdout, "nothing kept back for Windows itself on windows-1, windows-2") {
		t.Errorf("a cluster that has what is needed: exit code %d:\n%s", code, stdout)
	}
}

// makeLookReal gives the cluster a DNS service, and takes off its nodes what
// says that they are simulated. Kubernetes notices that nobody plays them any
// more only after its grace period of 40 seconds.
func makeLookReal(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	ctx := t.Context()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "kube-dns"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 53, Protocol: corev1.ProtocolUDP}}},
	}
	if _, err := client.CoreV1().Services("kube-system").Create(ctx, service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	endpoints := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "kube-dns-1", Labels: map[string]string{discoveryv1.LabelServiceName: "kube-dns"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.2"}}},
	}
	if _, err := client.DiscoveryV1().EndpointSlices("kube-system").Create(ctx, endpoints, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"linux-1", "linux-2", "windows-1", "windows-2"} {
		patch := []byte(`{"metadata": {"annotations": {"kwok.x-k8s.io/node": null}, "labels": {"type": null}}}`)
		if _, err := client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		patch = []byte(`{"status": {"nodeInfo": {"machineID": "1", "systemUUID": "1", "bootID": "1"}}}`)
		if _, err := client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPreflight_without_a_cluster(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(kubeconfigOf(server.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	server.Close()
	for _, tt := range []struct {
		name, args string
		code       int
		stdout     string
		stderr     string
	}{
		{"the server does not answer", "--kubeconfig " + kubeconfig, verdict.ExitInconclusive, "", "does not answer"},
		{"no such kubeconfig", "--kubeconfig none", verdict.ExitUsage, "", "there is no kubeconfig at"},
		{"no kubeconfig", "", verdict.ExitUsage, "", "--kubeconfig or $KUBECONFIG"},
		{"no such capability", "--without gmsaa", verdict.ExitUsage, "", "did you mean gmsa?"},
		{"no such provider", "--provider kwok", verdict.ExitUsage, "", "--provider: unknown provider"},
		{"no such format", "-o csv", verdict.ExitUsage, "", "use table, json, markdown"},
		{"no such kubectl", "--kubectl ./none", verdict.ExitUsage, "", "--kubectl: "},
		{"an argument", "cluster", verdict.ExitUsage, "", "cluster"},
		{"the role", "--print-rbac", verdict.ExitReady, "kind: ClusterRole", ""},
		{"the role as JSON", "--print-rbac -o json", verdict.ExitUsage, "", "leave --output out"},
		{"the role and pods", "--print-rbac --probe", verdict.ExitUsage, "", "leave --probe out"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := Main(t.Context(), append([]string{"preflight"}, strings.Fields(tt.args)...), Surroundings{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
			if code != tt.code || !strings.Contains(out.String(), tt.stdout) || !strings.Contains(errs.String(), tt.stderr) || tt.stdout == "" && out.Len() > 0 {
				t.Errorf("got exit code %d, output %q, narration %q", code, out.String(), errs.String())
			}
		})
	}
}
