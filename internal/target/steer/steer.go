package steer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
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

// Policy steers the pods of e2e.test processes, each by an admission policy that selects
// its namespaces alone, by the id that the e2e framework labels them with.
type Policy struct {
	*ground
	taints []corev1.Taint

	mu sync.Mutex
	// asks is where it is seen what is in force; made when it is first needed.
	asks *corev1.Namespace
	// owned are the policies, by the id of the process that they are for.
	owned map[string]string
}

// ErrNotServed says that the API server has no MutatingAdmissionPolicy.
var ErrNotServed = errors.New("the API server does not serve MutatingAdmissionPolicy (on by default from Kubernetes 1.36)")

// ErrLate says that a process had begun a test before its policy was in force.
var ErrLate = errors.New("the process was not held in time")

// New finds out how the API server can steer. The error is [ErrNotServed] when
// it cannot.
func New(ctx context.Context, client kubernetes.Interface, dyn dynamic.Interface, m Member) (*Policy, error) {
	g, err := newGround(ctx, client, dyn, m)
	if err != nil {
		return nil, err
	}
	if g.version == "" {
		return nil, ErrNotServed
	}
	s := &Policy{ground: g, owned: map[string]string{}}
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

// Apply takes away what nobody needs any more, and says whether the conditions can be
// put into force for a process; see [Policy.Own]. The caller has the cluster lock.
func (s *Policy) Apply(ctx context.Context, conditions result.RunConditions) error {
	if err := s.clear(ctx, result.RunConditions{}, false, s.permitted); err != nil {
		return err
	}
	if s.idle(conditions) {
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
	return s.create(ctx, conditions, s.mark(conditions), []any{"nobody"}, metav1.DryRunAll)
}

// idle reports whether no pod would be changed.
func (s *Policy) idle(conditions result.RunConditions) bool {
	return conditions == (result.RunConditions{}) && len(s.taints) == 0
}

func (s *Policy) mark(conditions result.RunConditions) mark {
	return mark{Run: s.member.RunID, Conditions: conditions.String(), Members: []string{s.member.ID}, Token: randomPart()}
}

// Own puts the conditions into force for the pods of one process, by the id with which
// the e2e framework labels its namespaces, and returns when the API server heeds them.
// The caller holds the process meanwhile. Where it has begun a test all the same, the
// error is an [ErrLate]. In the end the caller calls [Policy.Disown], also after an
// error.
func (s *Policy) Own(ctx context.Context, conditions result.RunConditions, suiteRunID string) error {
	if s.idle(conditions) {
		return nil
	}
	m := s.mark(conditions)
	s.mu.Lock()
	s.owned[suiteRunID] = m.name()
	asks, err := s.place(ctx)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if err := s.create(ctx, conditions, m, []any{suiteRunID, asks.Labels[runLabel]}); err != nil {
		return err
	}
	if err := s.awaitToken(ctx, asks.Name, m.Token); err != nil {
		return err
	}
	return s.unspoilt(ctx, suiteRunID)
}

// place returns the namespace where it is seen what is in force; mu must be held.
func (s *Policy) place(ctx context.Context) (*corev1.Namespace, error) {
	if s.asks == nil {
		made, err := s.makeNamespace(ctx)
		if err != nil {
			return nil, err
		}
		s.asks = made
	}
	return s.asks, nil
}

// unspoilt returns an [ErrLate] if there is a namespace of the process already: a test has
// begun, and may have made pods that no policy has seen.
func (s *Policy) unspoilt(ctx context.Context, suiteRunID string) error {
	return cluster.Persist(ctx, func(ctx context.Context) error {
		namespaces, err := s.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: runLabel + "=" + suiteRunID})
		if err != nil {
			return fmt.Errorf("looking for namespaces that the process has made already: %w", err)
		}
		if len(namespaces.Items) > 0 {
			return fmt.Errorf("%w: namespace %s was there before its policy", ErrLate, namespaces.Items[0].Name)
		}
		return nil
	})
}

// Disown removes the policy of a process that has ended.
func (s *Policy) Disown(ctx context.Context, suiteRunID string) error {
	s.mu.Lock()
	name, ok := s.owned[suiteRunID]
	delete(s.owned, suiteRunID)
	s.mu.Unlock()
	if !ok {
		return nil
	}
	var failed error
	for _, resource := range []string{bindings, policies} {
		failed = errors.Join(failed, s.delete(ctx, resource, name, nil))
	}
	return leftBehind(failed)
}

// Remove takes away what this process has put into force, and what processes of its run
// have that are dead.
func (s *Policy) Remove(ctx context.Context) error {
	s.mu.Lock()
	s.asks = nil
	s.mu.Unlock()
	return s.ground.Remove(ctx)
}

// create makes the policy for processes with those ids, and its binding.
func (s *Policy) create(ctx context.Context, conditions result.RunConditions, m mark, suiteRunIDs []any, dryRun ...string) error {
	for _, made := range []struct {
		resource string
		object   *unstructured.Unstructured
	}{{policies, s.policy(conditions, m, suiteRunIDs)}, {bindings, s.binding(m)}} {
		err := cluster.Persist(ctx, func(ctx context.Context) error {
			_, err := s.resource(made.resource).Create(ctx, made.object, metav1.CreateOptions{DryRun: dryRun})
			return err
		})
		// By its name it is ours: then the answer to an earlier try was lost.
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("making the steering policy: %w", s.permitted(err))
		}
	}
	return nil
}

// permitted adds to an error of the API server which rule would have allowed it.
func (s *Policy) permitted(err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return fmt.Errorf("%w: allow create, delete, get and list of %s and %s in the API group %s (op-readiness preflight --print-rbac prints all that a run needs), or leave pods where they fall with --steer=off",
		err, policies, bindings, group)
}

// awaitToken asks the API server, without making anything, what it would do with a pod
// that the policy changes, until it adds the policy's token. Where several API servers
// share the work, only the one that answers is asked.
func (s *Policy) awaitToken(ctx context.Context, namespace, token string) error {
	ctx, cancel := context.WithTimeout(ctx, effectTimeout)
	defer cancel()
	probe := probePod()
	probe.Annotations = map[string]string{probeAnnotation: probeQuestion}
	probe.Spec.NodeSelector = map[string]string{corev1.LabelOSStable: string(specs.Linux)} // not steered itself
	var refused error
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var got *corev1.Pod
		// It is refused as long as the namespace has no service account.
		got, refused = s.client.CoreV1().Pods(namespace).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return refused == nil && slices.Contains(strings.Fields(got.Annotations[probeAnnotation]), token), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the API server to heed the steering policy: %w", errors.Join(err, refused))
	}
	return nil
}
