package steer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/windows-op-readiness/windows-op-readiness/internal/result"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Steering steers the pods of one run, batch after batch.
type Steering struct {
	client  kubernetes.Interface
	dynamic dynamic.Interface
	version string
	runID   string
	taints  []corev1.Taint
}

// ErrNotServed says that the API server has no MutatingAdmissionPolicy.
var ErrNotServed = errors.New("the API server does not serve MutatingAdmissionPolicy (on by default from Kubernetes 1.36)")

// New finds out how the API server can steer. The error is [ErrNotServed] when
// it cannot.
func New(ctx context.Context, client kubernetes.Interface, dyn dynamic.Interface, runID string) (*Steering, error) {
	s := &Steering{client: client, dynamic: dyn, runID: runID}
	for _, version := range []string{"v1", "v1beta1"} {
		list, err := client.Discovery().ServerResourcesForGroupVersion(group + "/" + version)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("asking for MutatingAdmissionPolicy: %w", err)
		}
		if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == policies }) {
			s.version = version
			break
		}
	}
	if s.version == "" {
		return nil, ErrNotServed
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: corev1.LabelOSStable + "=" + string(specs.Windows)})
	if err != nil {
		return nil, fmt.Errorf("listing the taints of Windows nodes: %w", err)
	}
	s.taints = windowsTaints(nodes.Items)
	return s, nil
}

// windowsTaints are the taints of Windows nodes that tell people to keep off,
// not those by which Kubernetes says that a node is unwell.
func windowsTaints(nodes []corev1.Node) []corev1.Taint {
	var taints []corev1.Taint
	for _, n := range nodes {
		for _, t := range n.Spec.Taints {
			own := corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect}
			if t.Effect != corev1.TaintEffectPreferNoSchedule && !unwell(t.Key) && !slices.Contains(taints, own) {
				taints = append(taints, own)
			}
		}
	}
	return taints
}

func unwell(key string) bool {
	return strings.HasPrefix(key, "node.kubernetes.io/") || strings.HasPrefix(key, "node.cloudprovider.kubernetes.io/")
}

// String names the way of steering, for a run's manifest.
func (s *Steering) String() string { return policyKind + " " + s.version }

// Apply puts the conditions of a batch into force, in place of those of the
// batch before, and returns when the API server heeds them.
func (s *Steering) Apply(ctx context.Context, conditions result.RunConditions) error {
	if err := s.Remove(ctx); err != nil {
		return err
	}
	if conditions == (result.RunConditions{}) && len(s.taints) == 0 {
		return nil
	}
	if class := conditions.RuntimeClass; class != "" {
		if _, err := s.client.NodeV1().RuntimeClasses().Get(ctx, class, metav1.GetOptions{}); err != nil {
			return fmt.Errorf("runtime class %s, which pods are to get: %w", class, err)
		}
	}
	if _, err := s.resource(policies).Create(ctx, policy(s.version, conditions, s.taints, s.runID), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making the steering policy: %w", err)
	}
	if _, err := s.resource(bindings).Create(ctx, binding(s.version, s.runID), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making the steering policy's binding: %w", err)
	}
	return s.awaitEffect(ctx, true)
}

// Remove takes away what this or an earlier run has put into force.
func (s *Steering) Remove(ctx context.Context) error {
	removed := false
	for _, resource := range []string{bindings, policies} {
		list, err := s.resource(resource).List(ctx, metav1.ListOptions{LabelSelector: label})
		if err != nil {
			return fmt.Errorf("looking for steering policies: %w", err)
		}
		for _, item := range list.Items {
			removed = true
			if err := s.resource(resource).Delete(ctx, item.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("removing steering %s %s: %w", resource, item.GetName(), err)
			}
		}
	}
	if !removed {
		return nil
	}
	return s.awaitEffect(ctx, false)
}

func (s *Steering) resource(name string) dynamic.ResourceInterface {
	return s.dynamic.Resource(schema.GroupVersionResource{Group: group, Version: s.version, Resource: name})
}

// How long the API server may take to heed a policy. It compiles policies from
// a watch, within about a second.
const effectTimeout = time.Minute

// awaitEffect asks the API server, without making anything, what it would do
// with a pod that every policy of ours changes. Where several API servers share
// the work, only the one that answers is asked.
func (s *Steering) awaitEffect(ctx context.Context, there bool) error {
	namespace, err := s.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: name + "-",
		Labels:       map[string]string{"e2e-run": name, label: s.runID},
	}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("making a namespace to see whether steering works: %w", err)
	}
	defer func() {
		// Even when the run was interrupted meanwhile.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = s.client.CoreV1().Namespaces().Delete(ctx, namespace.Name, metav1.DeleteOptions{})
	}()
	ctx, cancel := context.WithTimeout(ctx, effectTimeout)
	defer cancel()
	probe := probePod()
	var refused error
	err = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var got *corev1.Pod
		got, refused = s.client.CoreV1().Pods(namespace.Name).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		// It is refused as long as the namespace has no service account.
		return refused == nil && (got.Annotations[probeAnnotation] == probeAnswer) == there, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the API server to heed the steering policy: %w", errors.Join(err, refused))
	}
	return nil
}

// probePod is a pod that is never made.
func probePod() *corev1.Pod {
	yes, no := true, false
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "probe",
			Annotations: map[string]string{probeAnnotation: probeQuestion},
		},
		Spec: corev1.PodSpec{
			NodeSelector:                 map[string]string{corev1.LabelOSStable: string(specs.Linux)}, // not steered itself
			AutomountServiceAccountToken: &no,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot:   &yes,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name:  "probe",
				Image: "registry.k8s.io/pause:3.10",
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no,
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}
