package steer_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/steer"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
)

func start(t *testing.T) (kubernetes.Interface, dynamic.Interface) {
	t.Helper()
	return startAs(t, "")
}

// startAs is start with a user who makes policies; "" is one who may.
func startAs(t *testing.T, user string) (kubernetes.Interface, dynamic.Interface) {
	t.Helper()
	cluster := kwoktest.Up(t)
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Impersonate.UserName = user
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	client := kwoktest.Client(t, cluster)
	for _, name := range []string{"windows-1", "windows-2"} {
		node, err := client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: "os", Value: "windows", Effect: corev1.TaintEffectNoSchedule})
		if _, err := client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, labels := range map[string]map[string]string{"foreign": {"e2e-run": "z"}, "other": nil} {
		if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return client, dyn
}

// namespaces are those that processes make, by their ids.
var namespaces = map[string]string{"x": "suite", "y": "beside"}

// own steers a process, which then makes its namespace.
func own(t *testing.T, client kubernetes.Interface, s *steer.Policy, conditions result.RunConditions, id string) {
	t.Helper()
	must(t, s.Own(t.Context(), conditions, id))
	_, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaces[id], Labels: map[string]string{"e2e-run": id}}}, metav1.CreateOptions{})
	must(t, err)
}

// member is a process of a run, alone in it.
func member(runID string, shard int) steer.Member {
	return steer.Member{RunID: runID, ID: fmt.Sprintf("%s-%d", runID, shard)}
}

// admitted returns the pod as the API server would take it.
func admitted(t *testing.T, client kubernetes.Interface, namespace string, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	if pod.Name == "" {
		pod.Name = "pod"
	}
	if len(pod.Spec.Containers) == 0 {
		pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "agnhost"}}
	}
	for {
		got, err := client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return got
		}
		if !strings.Contains(err.Error(), "serviceaccount") {
			t.Fatal(err)
		}
	}
}

func tolerates(p *corev1.Pod) bool {
	for _, tol := range p.Spec.Tolerations {
		if tol.Key == "os" && tol.Value == "windows" {
			return true
		}
	}
	return false
}

const osLabel = corev1.LabelOSStable

func TestPodsGoWhereTheBatchWantsThem(t *testing.T) {
	client, dyn := start(t)
	s, err := steer.New(t.Context(), client, dyn, member("run-1", 1))
	if err != nil {
		t.Fatal(err)
	}
	conditions := result.RunConditions{Steer: specs.Windows, RuntimeClass: "runhcs-wcow-process"}
	if err := s.Apply(t.Context(), conditions); err == nil || !strings.Contains(err.Error(), conditions.RuntimeClass) {
		t.Errorf("a runtime class that does not exist: %v", err)
	}
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: conditions.RuntimeClass}, Handler: conditions.RuntimeClass}
	if _, err := client.NodeV1().RuntimeClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	must(t, s.Apply(t.Context(), conditions))
	if left := names(t, dyn, policies); len(left) > 0 {
		t.Errorf("asking whether it can be done made %q", left)
	}
	own(t, client, s, conditions, "x")
	yes, user := true, int64(1000)
	windowsPod := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: map[string]string{osLabel: "windows"}}}
	for name, test := range map[string]struct {
		pod       *corev1.Pod
		namespace string
		selector  string // the operating system that the pod selects in the end
		tolerates bool
	}{
		"a pod that says nothing is steered": {pod: &corev1.Pod{}, selector: "windows", tolerates: true},
		"one with what the framework sets for Windows is steered": {
			pod: &corev1.Pod{Spec: corev1.PodSpec{
				SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
				Containers:      []corev1.Container{{Name: "c", Image: "agnhost", SecurityContext: &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}},
			}},
			selector: "windows", tolerates: true,
		},
		"one that selects Windows gets the toleration": {pod: windowsPod, selector: "windows", tolerates: true},
		"one with spec.os windows gets the toleration": {pod: &corev1.Pod{Spec: corev1.PodSpec{OS: &corev1.PodOS{Name: corev1.Windows}}}, tolerates: true},
		"one that selects Linux stays":                 {pod: &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: map[string]string{osLabel: "linux"}}}, selector: "linux"},
		"one that selects a node stays":                {pod: &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: map[string]string{corev1.LabelHostname: "linux-1"}}}},
		"one with a node name stays":                   {pod: &corev1.Pod{Spec: corev1.PodSpec{NodeName: "linux-1"}}},
		"one with node affinity stays": {pod: &corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"linux-1"}}}}}},
		}}}}},
		"one that only keeps apart from others is steered": {
			pod: &corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}},
			}}}},
			selector: "windows", tolerates: true,
		},
		"a HostProcess pod stays":               {pod: &corev1.Pod{Spec: corev1.PodSpec{HostNetwork: true, SecurityContext: &corev1.PodSecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: &yes}}}}},
		"one with a Linux user stays":           {pod: &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{RunAsUser: &user}}}},
		"a privileged one stays":                {pod: &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "agnhost", SecurityContext: &corev1.SecurityContext{Privileged: &yes}}}}}},
		"one in the host's PID namespace stays": {pod: &corev1.Pod{Spec: corev1.PodSpec{HostPID: true}}},
		"one that nobody tests stays":           {pod: &corev1.Pod{}, namespace: "other"},
		"one of somebody else's suite stays":    {pod: &corev1.Pod{}, namespace: "foreign"},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := test.namespace
			if namespace == "" {
				namespace = "suite"
			}
			got := admitted(t, client, namespace, test.pod)
			if os := got.Spec.NodeSelector[osLabel]; os != test.selector {
				t.Errorf("the pod selects %q, want %q", os, test.selector)
			}
			if tolerates(got) != test.tolerates {
				t.Errorf("the pod tolerates the Windows taint: %t, want %t", tolerates(got), test.tolerates)
			}
			if class := got.Spec.RuntimeClassName; (class != nil && *class == "runhcs-wcow-process") != test.tolerates {
				t.Errorf("the runtime class is %v", class)
			}
		})
	}
}

func named(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// Processes of different conditions work beside each other, and each has its own.
func TestEachProcessIsSteeredByItself(t *testing.T) {
	client, dyn := start(t)
	s, err := steer.New(t.Context(), client, dyn, member("run-1", 1))
	must(t, err)
	var group errgroup.Group
	group.Go(func() error {
		return s.Own(t.Context(), result.RunConditions{Steer: specs.Windows, SteerPods: `^test-container-pod$`}, "x")
	})
	group.Go(func() error {
		return s.Own(t.Context(), result.RunConditions{Steer: specs.Linux, SteerPods: `^test-container-pod$`}, "y")
	})
	must(t, group.Wait())
	for id, name := range namespaces {
		_, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"e2e-run": id}}}, metav1.CreateOptions{})
		must(t, err)
	}
	for namespace, want := range map[string]string{"suite": "windows", "beside": "linux", "foreign": ""} {
		got := admitted(t, client, namespace, named("test-container-pod"))
		if os := got.Spec.NodeSelector[osLabel]; os != want || tolerates(got) != (want == "windows") {
			t.Errorf("in namespace %s the client is steered to %q, want %q: %+v", namespace, os, want, got.Spec)
		}
		if got := admitted(t, client, namespace, named("netserver-0")); got.Spec.NodeSelector != nil {
			t.Errorf("in namespace %s a server is steered", namespace)
		}
	}
	must(t, s.Disown(t.Context(), "x"))
	must(t, s.Disown(t.Context(), "x"))
	for admitted(t, client, "suite", named("test-container-pod")).Spec.NodeSelector != nil {
		// until the API server heeds that the policy is gone
	}
	if got := admitted(t, client, "beside", named("test-container-pod")); got.Spec.NodeSelector[osLabel] != "linux" {
		t.Error("the end of one process took the other's steering away")
	}
	must(t, s.Remove(t.Context()))
	if left := names(t, dyn, policies); len(left) > 0 {
		t.Errorf("there is %q in the end", left)
	}
	if left := names(t, dyn, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}); slices.ContainsFunc(left, func(name string) bool {
		ns, err := client.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
		return strings.HasPrefix(name, "op-readiness") && err == nil && ns.DeletionTimestamp == nil
	}) {
		t.Errorf("there are the namespaces %q in the end", left)
	}
}

// Where nothing is to be changed, there is no policy.
func TestAProcessThatWantsNothingHasNoPolicy(t *testing.T) {
	client, dyn := start(t)
	for _, name := range []string{"windows-1", "windows-2"} {
		_, err := client.CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec": {"taints": null}}`), metav1.PatchOptions{})
		must(t, err)
	}
	s, err := steer.New(t.Context(), client, dyn, member("run-1", 1))
	must(t, err)
	must(t, s.Apply(t.Context(), asIs))
	must(t, s.Own(t.Context(), asIs, "x"))
	if made := names(t, dyn, policies); len(made) > 0 {
		t.Errorf("there is %q", made)
	}
}

// A process that was held too late may have made pods that no policy has seen.
func TestATestFromBeforeItsPolicyIsFound(t *testing.T) {
	client, dyn := start(t)
	s, err := steer.New(t.Context(), client, dyn, member("run-1", 1))
	must(t, err)
	if err := s.Own(t.Context(), toWindows, "z"); !errors.Is(err, steer.ErrLate) || !strings.Contains(err.Error(), "namespace foreign") {
		t.Errorf("the error is %v", err)
	}
	must(t, s.Own(t.Context(), toWindows, "y"))
}

func TestTheNextRunRemovesWhatAKilledOneLeft(t *testing.T) {
	client, dyn := start(t)
	killed, err := steer.New(t.Context(), client, dyn, member("killed", 1))
	must(t, err)
	must(t, killed.Own(t.Context(), toWindows, "x"))
	next, err := steer.New(t.Context(), client, dyn, member("next", 1))
	must(t, err)
	must(t, next.Remove(t.Context()))
	if left := names(t, dyn, policies); len(left) != 1 {
		t.Error("what may be of a living run was removed without the lock")
	}
	must(t, next.Apply(t.Context(), toLinux))
	if left := names(t, dyn, policies); len(left) > 0 {
		t.Errorf("the killed run's %q is still there", left)
	}
}

// Who may not make policies is told so, and by which rule, before a process is started.
func TestWithoutTheRightNothingIsSteered(t *testing.T) {
	client, dyn := startAs(t, "nobody")
	s, err := steer.New(t.Context(), client, dyn, member("run-1", 1))
	must(t, err)
	if err := s.Apply(t.Context(), toWindows); err == nil || !strings.Contains(err.Error(), "allow create, delete, get and list of mutatingadmissionpolicies and mutatingadmissionpolicybindings") {
		t.Errorf("the error is %v", err)
	}
}
