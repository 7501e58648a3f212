package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/preflight"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/preflight/probe"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
)

// restricted makes a user who may do nothing, and a kubeconfig for it.
func restricted(t *testing.T, client kubernetes.Interface, admin string) (kubeconfig string) {
	t.Helper()
	accounts := client.CoreV1().ServiceAccounts("default")
	if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "ci"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := accounts.CreateToken(t.Context(), "ci", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(admin)
	if err != nil {
		t.Fatal(err)
	}
	for user := range config.AuthInfos {
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// printedRole is what preflight --print-rbac prints.
func printedRole(t *testing.T) *rbacv1.ClusterRole {
	t.Helper()
	var out bytes.Buffer
	if code := Main(t.Context(), []string{"preflight", "--print-rbac"}, Surroundings{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out}); code != 0 {
		t.Fatalf("exit code %d: %s", code, &out)
	}
	text, err := kyaml.ToJSON(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{}
	if err := json.Unmarshal(text, role); err != nil {
		t.Fatal(err)
	}
	return role
}

// deny takes a permission out of a role.
func deny(t *testing.T, role *rbacv1.ClusterRole, apiGroup, resource, verb string) *rbacv1.ClusterRole {
	t.Helper()
	role = role.DeepCopy()
	for i := range role.Rules {
		r := &role.Rules[i]
		if slices.Equal(r.APIGroups, []string{apiGroup}) && slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, verb) {
			r.Resources = slices.DeleteFunc(slices.Clone(r.Resources), func(s string) bool { return s == resource })
			role.Rules = append(role.Rules, rbacv1.PolicyRule{
				APIGroups: r.APIGroups, Resources: []string{resource},
				Verbs: slices.DeleteFunc(slices.Clone(r.Verbs), func(s string) bool { return s == verb }),
			})
			role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return len(r.Resources) == 0 || len(r.Verbs) == 0 })
			return role
		}
	}
	t.Fatalf("the role does not allow to %s %s", verb, resource)
	return nil
}

func TestARunIsRefusedForEachMissingPermissionAndGoesOnWhenItIsGranted(t *testing.T) {
	t.Parallel()
	up := kwoktest.Up(t)
	client := kwoktest.Client(t, up)
	s := newScene(t, e2etest.Script{Server: kwoktest.NewProxy(t, up).Config().Host})
	s.kubeconfig = restricted(t, client, up.Kubeconfig)
	refused := func(what string, says ...string) {
		t.Helper()
		s.want(what, s.main(s.args()...), verdict.ExitInconclusive, append(says, "--print-rbac", "--preflight=warn")...)
		if _, err := os.Stat(s.dir); err == nil {
			t.Errorf("%s: a refused run leaves results", what)
		}
	}
	refused("nobody", "permission-suite: ", "permission-evidence: ", "permission-steering: ", "permission-cleanup: ", "permission-lock: ", "the run cannot work on this cluster, for node-count, permission-suite")

	full := printedRole(t)
	if _, err := client.RbacV1().ClusterRoles().Create(t.Context(), full, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "ci"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: full.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "ci"}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// is changes the role, and waits until the API server heeds that.
	is := func(role *rbacv1.ClusterRole, apiGroup, resource, verb string, allowed bool) {
		t.Helper()
		if _, err := client.RbacV1().ClusterRoles().Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		resource, subresource, _ := strings.Cut(resource, "/")
		eventually(t, "the API server heeds the role", func() bool {
			review, err := client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User:               "system:serviceaccount:default:ci",
				ResourceAttributes: &authorizationv1.ResourceAttributes{Group: apiGroup, Resource: resource, Subresource: subresource, Verb: verb},
			}}, metav1.CreateOptions{})
			return err == nil && review.Status.Allowed == allowed
		})
	}
	for _, tt := range []struct{ apiGroup, resource, verb, says string }{
		{"", "pods/exec", "create", "permission-suite: 1 permissions are missing for what the standard's tests do: create pods/exec"},
		{"", "pods", "watch", "permission-evidence: 1 permissions are missing for watching pods and namespaces, without which no placement is proven: watch pods"},
		{"admissionregistration.k8s.io", "mutatingadmissionpolicies", "create", "permission-steering: 1 permissions are missing for steering pods to an operating system: create mutatingadmissionpolicies.admissionregistration.k8s.io"},
		{"", "namespaces", "delete", "permission-cleanup: 1 permissions are missing for removing what tests leave behind: delete namespaces"},
		{"coordination.k8s.io", "leases", "update", "permission-lock: 1 permissions are missing for the lock that keeps two runs apart, in namespace default: update leases.coordination.k8s.io"},
	} {
		is(deny(t, full, tt.apiGroup, tt.resource, tt.verb), tt.apiGroup, tt.resource, tt.verb, false)
		refused("without "+tt.verb+" "+tt.resource, tt.says)
		is(full, tt.apiGroup, tt.resource, tt.verb, true)
	}

	// Nothing shows Windows on simulated nodes, hence the exit code.
	s.want("with the role that is printed", s.main(s.args()...), verdict.ExitInconclusive, "preflight: 2 failing", "Results: "+s.dir)
	if run := s.results(); len(run.Attempts) != 6 || run.Manifest.Cluster.Nodes == nil {
		t.Errorf("%d tests, manifest %+v", len(run.Attempts), run.Manifest)
	}
	recorded := readPreflight(t, s.dir)
	if recorded.Schema != preflight.Schema || recorded.Time.IsZero() || recorded.Counts[preflight.Failing] != 2 {
		t.Errorf("recorded is %+v", recorded)
	}
}

func readPreflight(t *testing.T, dir string) *preflight.Report {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, result.PreflightFile))
	if err != nil {
		t.Fatal(err)
	}
	var r preflight.Report
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return &r
}

func TestARunWithoutWindowsNodesIsRefused(t *testing.T) {
	t.Parallel()
	up := kwoktest.Up(t)
	client := kwoktest.Client(t, up)
	for _, name := range []string{"windows-1", "windows-2"} {
		if err := client.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	s := newScene(t, e2etest.Script{Server: kwoktest.NewProxy(t, up).Config().Host, Do: map[string][]string{"[sig-x] b": {e2etest.Fail}}})
	s.kubeconfig = up.Kubeconfig
	const says = "windows-nodes: the cluster has no Windows node"
	s.want("a run", s.main(s.args()...), verdict.ExitInconclusive, says, "fix: add 2 Windows nodes", "--preflight=warn")
	s.want("a dry run that looks", s.main(s.args("--dry-run", "--preflight=refuse")...), verdict.ExitInconclusive, says)
	s.want("a dry run", s.main(s.args("--dry-run")...), verdict.ExitReady, "would run exactly 6 tests")
	if _, err := os.Stat(s.dir); err == nil {
		t.Error("a refused run leaves results")
	}
	s.want("a typo", s.main(s.args("--preflight=wran")...), verdict.ExitUsage, "--preflight: unknown way")
	if got := s.main(s.args("--preflight=warn")...); !strings.Contains(got.stderr, says) || !strings.Contains(got.stderr, "Results: ") {
		t.Errorf("a run that is only warned: %+v", got)
	}
	if got := s.main("run", "--resume", s.dir, "--retries", "1", "--preflight=refuse"); got.code != verdict.ExitInconclusive || !strings.Contains(got.stderr, says) || strings.Contains(got.stderr, "Results: ") {
		t.Errorf("a resumed run is not refused: %+v", got)
	}
	s.dir += "-off"
	if got := s.main(s.args("--preflight=off")...); strings.Contains(got.stderr, "preflight") || !strings.Contains(got.stderr, "Results: ") {
		t.Errorf("a run that does not look: %+v", got)
	}
	if _, err := os.Stat(filepath.Join(s.dir, result.PreflightFile)); err == nil {
		t.Error("what was not looked at is recorded")
	}
}

// joinPlayedNodes puts nodes in place of the simulated ones that nobody but
// [playKubelets] plays, and keeps them ready.
func joinPlayedNodes(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	nodes := client.CoreV1().Nodes()
	old, err := nodes.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range old.Items {
		n := &old.Items[i]
		if err := nodes.Delete(t.Context(), n.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		fresh := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name + "-played", Labels: n.Labels}}
		names = append(names, fresh.Name)
		delete(fresh.Labels, "type")
		made, err := nodes.Create(t.Context(), fresh, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the node has its status", func() bool {
			made.Status = n.Status
			made.Status.NodeInfo.BootID = n.Name // as if there was a machine
			_, err := nodes.UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
			if err != nil {
				made, _ = nodes.Get(t.Context(), fresh.Name, metav1.GetOptions{})
			}
			return err == nil
		})
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	beat := func() {
		for _, name := range names {
			patch := fmt.Sprintf(`{"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Played", "lastHeartbeatTime": %q}]}}`, time.Now().UTC().Format(time.RFC3339))
			_, _ = nodes.PatchStatus(ctx, name, []byte(patch))
		}
	}
	go func() {
		defer close(done)
		for tick := time.NewTicker(5 * time.Second); ; {
			beat()
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	}()
	eventually(t, "the nodes are ready", func() bool {
		list, err := nodes.List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == len(names) && !slices.ContainsFunc(list.Items, func(n corev1.Node) bool { return len(n.Spec.Taints) > 0 })
	})
}

// playKubelets plays what kubelets do to pods of probes: it gives them the
// status that the answer is, and removes those that are deleted.
func playKubelets(t *testing.T, client kubernetes.Interface, answer func(*corev1.Pod) corev1.ContainerState) (seen func() []corev1.Pod) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	watch, err := client.CoreV1().Pods(metav1.NamespaceAll).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var pods []corev1.Pod
	seen = func() []corev1.Pod { cancel(); <-done; return pods }
	play := func(pod *corev1.Pod) error {
		api := client.CoreV1().Pods(pod.Namespace)
		switch {
		case !strings.HasPrefix(pod.Namespace, "op-readiness-probe-"):
		case pod.DeletionTimestamp != nil:
			now := int64(0)
			_ = api.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
		case pod.Spec.NodeName != "" && len(pod.Status.ContainerStatuses) == 0:
			pods = append(pods, *pod)
			state := answer(pod)
			pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, "10.0.0.9"
			if state.Terminated != nil {
				pod.Status.Phase = corev1.PodFailed
				if state.Terminated.ExitCode == 0 {
					pod.Status.Phase = corev1.PodSucceeded
				}
			}
			if state.Waiting != nil {
				pod.Status.Phase = corev1.PodPending
			}
			for _, c := range pod.Spec.Containers {
				pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image, State: state})
			}
			_, err := api.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
			return err
		}
		return nil
	}
	go func() {
		defer close(done)
		defer watch.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case event, ok := <-watch.ResultChan():
				if !ok {
					t.Error("the watch on pods has ended")
					return
				}
				if pod, isPod := event.Object.(*corev1.Pod); isPod && event.Type != "DELETED" {
					if err := play(pod); err != nil && ctx.Err() == nil {
						t.Error(err)
					}
				}
			}
		}
	}()
	return seen
}

func ends(code int32, says string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: says, StartedAt: metav1.Now(), FinishedAt: metav1.Now()}}
}

// containerCases need containers that run: the first one the internet, where
// there is one, the second one HostProcess containers. Their tests make no pods,
// so nothing is proven.
const containerCases = `category: Core.Network
cases:
  - id: case-internet
    requirement: Pods reach the internet.
    proof: full
    tests: [{focus: '\[sig-x\] a( \[|$)', expect: 1}]
    needs: {condition: [internet], means: [dns]}
    conditions: {placement: [{pods: ^never-, os: windows}]}
    phase: parallel
    duration: 1m
    timeout: 10m
  - id: case-host-process
    requirement: HostProcess containers run.
    proof: full
    tests: [{focus: '\[sig-x\] b( \[|$)', expect: 1}]
    needs: {condition: [hpc]}
    conditions: {placement: [{pods: ^never-, os: windows}]}
    phase: parallel
    duration: 1m
    timeout: 10m
`

func TestWhatIsBrokenIsNotTakenForAbsent(t *testing.T) {
	t.Parallel()
	up := kwoktest.Up(t)
	client := kwoktest.Client(t, up)
	joinPlayedNodes(t, client)
	seen := playKubelets(t, client, func(pod *corev1.Pod) corev1.ContainerState {
		switch kind, _, _ := strings.Cut(pod.Name, "-"); kind {
		case "test": // images
			return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
		case "dns":
			return ends(1, "DNS: lookup kubernetes.default.svc.cluster.local.: no such host\n")
		case "internet":
			return ends(1, "TIMEOUT\n")
		}
		return ends(0, "")
	})
	s := newScene(t, e2etest.Script{Server: kwoktest.NewProxy(t, up).Config().Host})
	s.kubeconfig = up.Kubeconfig
	s.write(filepath.Join(s.specs, "core-network.yaml"), containerCases)
	got := s.main(s.args()...)
	for _, says := range []string{
		"failing  internet: Linux (linux-", "Windows Server 2022 (windows-", "failed: TIMEOUT (exit code 1)",
		"failing  dns-answers: ", "failed: DNS: lookup kubernetes.default.svc.cluster.local.: no such host (exit code 1)",
	} {
		if !strings.Contains(got.stderr, says) {
			t.Errorf("%q is not in %s", says, got.stderr)
		}
	}
	run := s.results()
	for _, c := range verdict.Judge(run).Cases {
		if c.Outcome == verdict.NotApplicable {
			t.Errorf("%+v", c)
		}
	}
	if len(run.Attempts) != 2 {
		t.Errorf("%d tests ran: %s", len(run.Attempts), got.stderr)
	}
	recorded := readPreflight(t, s.dir)
	states := map[string]int{}
	for _, r := range recorded.Probes {
		states[fmt.Sprintf("%s on %s: %s", r.Kind, r.OS, r.State)]++
	}
	for _, want := range []string{
		"test-images on linux: ok", "test-images on windows: ok", "dns on linux: failed", "dns on windows: failed",
		"internet on linux: failed", "internet on windows: failed", "host-process on windows: ok",
	} {
		if states[want] != 1 {
			t.Errorf("%q is not once in %v", want, states)
		}
	}
	namespaces, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{LabelSelector: probe.Label})
	if err != nil || len(namespaces.Items) > 0 {
		t.Errorf("left: %v, %v", namespaces.Items, err)
	}
	for _, pod := range seen() {
		if pod.Spec.OS == nil || string(pod.Spec.OS.Name) != pod.Spec.NodeSelector[corev1.LabelOSStable] || pod.Spec.ActiveDeadlineSeconds == nil ||
			pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken || !strings.HasPrefix(pod.Spec.NodeName, string(pod.Spec.OS.Name)) {
			t.Errorf("pod %s: %+v", pod.Name, pod.Spec)
		}
	}

	// A declaration is another thing: it is shown as such, and nothing is sent out.
	s.dir += "-declared"
	s.want("an air gap that is declared", s.main(s.args("--air-gapped", "--probe=false")...), verdict.ExitInconclusive, "without internet, as declared", "Results: ")
	for _, f := range readPreflight(t, s.dir).Findings {
		if f.ID == "internet" && (f.Status != preflight.OK || f.How != preflight.Declared) {
			t.Errorf("%+v", f)
		}
	}
	for _, c := range verdict.Judge(s.results()).Cases {
		if c.Case.ID == "case-internet" && (c.Outcome != verdict.NotApplicable || !strings.HasPrefix(c.Reason, "declared: ")) {
			t.Errorf("%+v", c)
		}
	}
}

func TestWindowsNodesThatGetNoImageRefuseARun(t *testing.T) {
	t.Parallel()
	up := kwoktest.Up(t)
	client := kwoktest.Client(t, up)
	joinPlayedNodes(t, client)
	playKubelets(t, client, func(pod *corev1.Pod) corev1.ContainerState {
		if pod.Spec.OS.Name == corev1.Windows {
			return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError", Message: "the image's Windows is newer than the node's"}}
		}
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
	})
	s := newScene(t, e2etest.Script{Server: kwoktest.NewProxy(t, up).Config().Host})
	s.kubeconfig = up.Kubeconfig
	s.write(filepath.Join(s.specs, "core-network.yaml"), containerCases)
	// The probes of Linux have no answer here.
	s.want("a run", s.main(s.args("--probe-timeout", "5s")...), verdict.ExitInconclusive,
		"failing  test-images: Linux (linux-", "failed: StartError: the image's Windows is newer than the node's", "the run cannot work on this cluster, for test-images")
	if _, err := os.Stat(s.dir); err == nil {
		t.Error("a refused run leaves results")
	}
	if _, err := client.CoordinationV1().Leases("default").Get(t.Context(), "op-readiness", metav1.GetOptions{}); err == nil {
		t.Error("a refused run keeps the cluster lock")
	}
	s.want("a run with credentials, which probes have not", s.main(s.args("--probe-timeout", "5s", "--e2e-docker-config-file", s.kubeconfig)...), verdict.ExitInconclusive,
		"failing  test-images: ", "Results: ")
}
