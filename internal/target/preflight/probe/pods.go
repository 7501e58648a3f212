package probe

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/scratch"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

const purpose = "probe"

// Label marks the namespaces that this package makes; its value is the id of who
// made them.
var Label = scratch.Label(purpose)

const (
	roleLabel  = "op-readiness/probe-role"
	serverPort = 8080
	// connectTimeout is how long a pod waits for an answer.
	connectTimeout = 10 * time.Second
)

// pod returns a pod for the target that ends by itself after limit, and keeps to
// the restricted level of pod security.
func (t *Target) pod(name string, limit time.Duration, containers ...corev1.Container) *corev1.Pod {
	yes, no := true, false
	seconds, grace := int64(limit.Seconds()), int64(1)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-" + t.name()},
		Spec: corev1.PodSpec{
			OS:                            &corev1.PodOS{Name: corev1.OSName(t.OS)},
			NodeSelector:                  map[string]string{corev1.LabelOSStable: string(t.OS)},
			Tolerations:                   t.tolerations,
			RestartPolicy:                 corev1.RestartPolicyNever,
			ActiveDeadlineSeconds:         &seconds,
			TerminationGracePeriodSeconds: &grace,
			AutomountServiceAccountToken:  &no,
			EnableServiceLinks:            &no,
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				// By name: labels do not tell real nodes from simulated ones.
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: t.terms()},
			}},
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes},
			Containers:      containers,
		},
	}
	if t.OS == specs.Windows {
		user := "ContainerUser"
		p.Spec.SecurityContext.WindowsOptions = &corev1.WindowsSecurityContextOptions{RunAsUserName: &user}
		return p
	}
	nobody := int64(65534)
	p.Spec.SecurityContext.RunAsUser = &nobody
	p.Spec.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	for i := range p.Spec.Containers {
		p.Spec.Containers[i].SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no,
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
	}
	return p
}

// terms are alternatives, for a field can be compared with one value only.
func (t *Target) terms() []corev1.NodeSelectorTerm {
	var terms []corev1.NodeSelectorTerm
	for _, name := range t.nodes {
		terms = append(terms, corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}},
		}})
	}
	return terms
}

func container(name, image string, args ...string) corev1.Container {
	return corev1.Container{
		Name: name, Image: image, Args: args,
		ImagePullPolicy: corev1.PullIfNotPresent,
		// What a container says is read from its pod, for which no permission to
		// read logs is needed.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

func connect(image, address string, timeout time.Duration) corev1.Container {
	return container("connect", image, "connect", "--timeout="+timeout.String(), address)
}

// images is a pod that has done its work when every container has started.
func (t *Target) images(limit time.Duration, i Images) *corev1.Pod {
	return t.pod(string(TestImages), limit, container("agnhost", i.Agnhost, "pause"), container("pause", i.Pause))
}

func (t *Target) hostProcess(limit time.Duration, image string) *corev1.Pod {
	c := container("host-process", image)
	c.Command = []string{"cmd.exe", "/c", "ver"}
	p := t.pod(string(HostProcess), limit, c)
	yes, user := true, `NT AUTHORITY\SYSTEM`
	p.Spec.HostNetwork = true
	p.Spec.SecurityContext = &corev1.PodSecurityContext{
		WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: &yes, RunAsUserName: &user},
	}
	return p
}

func (t *Target) runtimeClass(limit time.Duration, image, class string) *corev1.Pod {
	p := t.pod(class, limit, container("agnhost", image, "--version"))
	p.Spec.RuntimeClassName = &class
	return p
}

// server is a pod that others connect to, and that a policy can be about.
func (t *Target) server(limit time.Duration, image string) *corev1.Pod {
	p := t.pod("server", limit, container("server", image, "netexec", fmt.Sprintf("--http-port=%d", serverPort), "--udp-port=-1"))
	p.Labels = map[string]string{roleLabel: "server-" + t.name()}
	return p
}

// deny is a policy that keeps all traffic from the target's server.
func (t *Target) deny() *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "deny-" + t.name()},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{roleLabel: "server-" + t.name()}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		},
	}
}
