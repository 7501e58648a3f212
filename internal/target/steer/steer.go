package steer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Policy steers the pods of one shard of a run by an admission policy, batch
// after batch.
type Policy struct {
	*ground
	taints []corev1.Taint
}

// ErrNotServed says that the API server has no MutatingAdmissionPolicy.
var ErrNotServed = errors.New("the API server does not serve MutatingAdmissionPolicy (on by default from Kubernetes 1.36)")

// ErrForeign says that a policy of somebody else has the name of ours.
var ErrForeign = errors.New("has a name that op-readiness needs, and is not its own")

// New finds out how the API server can steer. The error is [ErrNotServed] when
// it cannot, and [ErrForeign] when a policy of somebody else is in the way.
func New(ctx context.Context, client kubernetes.Interface, dyn dynamic.Interface, m Member) (*Policy, error) {
	g, err := newGround(ctx, client, dyn, m)
	if err != nil {
		return nil, err
	}
	if g.version == "" {
		return nil, ErrNotServed
	}
	s := &Policy{ground: g}
	for _, resource := range []string{policies, bindings} {
		if _, err := s.inTheWay(ctx, resource); err != nil && !apierrors.IsForbidden(err) {
			return nil, err
		}
	}
	var nodes *corev1.NodeList
	err = cluster.Persist(ctx, func(ctx context.Context) (err error) {
		nodes, err = client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: corev1.LabelOSStable + "=" + string(specs.Windows)})
		return err
	})
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
			if keepsOff(t) && !slices.Contains(taints, own) {
				taints = append(taints, own)
			}
		}
	}
	return taints
}

// keepsOff reports whether a taint tells people to keep off.
func keepsOff(t corev1.Taint) bool {
	unwell := strings.HasPrefix(t.Key, "node.kubernetes.io/") || strings.HasPrefix(t.Key, "node.cloudprovider.kubernetes.io/")
	return t.Effect != corev1.TaintEffectPreferNoSchedule && !unwell
}

// Tolerates returns the keys of the taints that steered pods tolerate, sorted.
func (s *Policy) Tolerates() []string {
	var keys []string
	for _, t := range s.taints {
		keys = append(keys, t.Key)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// String names the way of steering, for a run's manifest.
func (s *Policy) String() string { return policyKind + " " + s.version }

// Apply puts the conditions of a batch into force, in place of those of the
// batch before, and returns when the API server heeds them. The caller has the
// cluster lock for the batch.
func (s *Policy) Apply(ctx context.Context, conditions result.RunConditions) error {
	if err := s.clear(ctx, conditions, false, func(err error) error { return s.permitted(err) }); err != nil {
		return err
	}
	if conditions == (result.RunConditions{}) && len(s.taints) == 0 {
		return nil
	}
	if class := conditions.RuntimeClass; class != "" {
		err := cluster.Persist(ctx, func(ctx context.Context) error {
			_, err := s.client.NodeV1().RuntimeClasses().Get(ctx, class, metav1.GetOptions{})
			return err
		})
		if err != nil {
			return fmt.Errorf("runtime class %s, which pods are to get: %w", class, err)
		}
	}
	ours := groupToken(s.member.RunID, conditions)
	// With a part of its own each time: one that is on its way out never
	// answers for the next.
	m := mark{
		Run: s.member.RunID, Conditions: conditions.String(), Members: []string{s.member.ID},
		Token: fmt.Sprintf("%s-%d-%s", ours, s.member.Shard, randomPart()),
	}
	if err := s.create(ctx, policies, s.policy(conditions, m)); err != nil {
		return fmt.Errorf("making the steering policy: %w", err)
	}
	if err := s.create(ctx, bindings, s.binding(m)); err != nil {
		return fmt.Errorf("making the steering policy's binding: %w", err)
	}
	return s.awaitAnswer(ctx, func(answer []string) bool {
		return slices.Contains(answer, m.Token) &&
			!slices.ContainsFunc(answer, func(token string) bool { return !strings.HasPrefix(token, ours+"-") })
	})
}

// groupToken is what the tokens of all policies begin with that shards of a run
// make for the same conditions.
func groupToken(runID string, c result.RunConditions) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(runID+"\x00"+c.String())))[:12]
}

// create makes an object of this shard, in place of one that a process with the
// same shard left under the same conditions.
func (s *Policy) create(ctx context.Context, resource string, o *unstructured.Unstructured) error {
	const tries = 3
	for try := 1; ; try++ {
		err := cluster.Persist(ctx, func(ctx context.Context) error {
			_, err := s.resource(resource).Create(ctx, o, metav1.CreateOptions{})
			return err
		})
		if !apierrors.IsAlreadyExists(err) || try == tries {
			return s.permitted(err)
		}
		found, err := s.inTheWay(ctx, resource)
		if err != nil {
			return err
		}
		if found != nil && found.GetAnnotations()[annotation] == o.GetAnnotations()[annotation] {
			return nil // made by this very call, whose answer was lost
		}
		if found != nil {
			if err := s.delete(ctx, resource, found); err != nil {
				return err
			}
		}
	}
}

// inTheWay returns the object that has the name that this shard needs, nil where
// there is none, and [ErrForeign] where it is not ours to remove.
func (s *Policy) inTheWay(ctx context.Context, resource string) (*unstructured.Unstructured, error) {
	var found *unstructured.Unstructured
	err := cluster.Persist(ctx, func(ctx context.Context) (err error) {
		found, err = s.resource(resource).Get(ctx, s.name(), metav1.GetOptions{})
		return err
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("looking for steering policies: %w", err)
	}
	if _, ok := found.GetLabels()[label]; !ok {
		return nil, fmt.Errorf("%s %s %w (no label %s): remove it, or keep it under another name: kubectl delete %s %s",
			found.GetKind(), s.name(), ErrForeign, label, strings.ToLower(found.GetKind()), s.name())
	}
	return found, nil
}

// permitted adds to an error of the API server which rule would have allowed it.
func (s *Policy) permitted(err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return fmt.Errorf("%w: allow create, delete, get and list of %s and %s in the API group %s (op-readiness preflight --print-rbac prints all that a run needs), or leave pods where they fall with --steer=off",
		err, policies, bindings, group)
}

// awaitAnswer asks the API server, without making anything, what it would do
// with a pod that every policy of ours changes, until the tokens of those in
// force are as they should be. Where several API servers share the work, only
// the one that answers is asked.
func (g *ground) awaitAnswer(ctx context.Context, right func(tokens []string) bool) error {
	return g.probing(ctx, func(ctx context.Context, namespace string) error {
		probe := probePod()
		probe.Annotations = map[string]string{probeAnnotation: probeQuestion}
		probe.Spec.NodeSelector = map[string]string{corev1.LabelOSStable: string(specs.Linux)} // not steered itself
		var refused error
		var answer []string
		err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			var got *corev1.Pod
			got, refused = g.client.CoreV1().Pods(namespace).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if refused == nil {
				answer = slices.DeleteFunc(strings.Fields(got.Annotations[probeAnnotation]), func(s string) bool { return s == probeQuestion })
			}
			// It is refused as long as the namespace has no service account.
			return refused == nil && right(answer), nil
		})
		if err == nil {
			return nil
		}
		if refused == nil {
			refused = fmt.Errorf("in force are the policies of %q; one that is not this run's may be a copy of a steering policy: kubectl get %s", answer, policies)
		}
		return fmt.Errorf("waiting for the API server to heed the steering policy: %w", errors.Join(err, refused))
	})
}
