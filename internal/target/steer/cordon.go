package steer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
)

// Cordon steers the pods of one shard of a run by cordoning nodes, batch after
// batch.
//
// Cordoned are the nodes of the other operating system that would take a pod
// without tolerations: workers, and a control plane that has no taint. A node
// that somebody else cordoned is left as it is, and so is one whose taint keeps
// such pods off anyway. A node that joins the cluster later is not cordoned; the
// audit of placements sees what ran there.
type Cordon struct{ *ground }

// NewCordon returns the way of steering that needs no API beyond nodes.
func NewCordon(ctx context.Context, client kubernetes.Interface, dyn dynamic.Interface, m Member) (*Cordon, error) {
	g, err := newGround(ctx, client, dyn, m)
	if err != nil {
		return nil, err
	}
	return &Cordon{g}, nil
}

// String names the way of steering, for a run's manifest.
func (*Cordon) String() string { return result.SteeringCordon }

// Apply puts the conditions of a batch into force, in place of those of the
// batch before, and returns when the scheduler heeds them. Conditions that
// cordons cannot meet (some pods only, a runtime class) are an error. The caller
// has the cluster lock for the batch.
func (s *Cordon) Apply(ctx context.Context, conditions result.RunConditions) error {
	if conditions.SteerPods != "" || conditions.RuntimeClass != "" {
		return errors.New("cordoning nodes steers all pods alike, and sets no runtime class")
	}
	if err := s.clear(ctx, conditions, true, s.unseen); err != nil {
		return err
	}
	if conditions.Steer == "" {
		return nil
	}
	nodes, err := s.nodes(ctx)
	if err != nil {
		return err
	}
	var cordoned []string
	for i := range nodes {
		done, err := s.change(ctx, &nodes[i], func(n *corev1.Node) (*mark, bool) { return s.marked(n, conditions) })
		if err != nil {
			return fmt.Errorf("cordoning node %s: %w", nodes[i].Name, err)
		}
		if done {
			cordoned = append(cordoned, nodes[i].Name)
		}
	}
	if err := s.awaitTaint(ctx, cordoned, true); err != nil {
		return err
	}
	return s.awaitScheduler(ctx, cordoned)
}

// marked returns the mark with which a node is to be cordoned under the
// conditions; false where it is to be left as it is.
func (s *Cordon) marked(n *corev1.Node, c result.RunConditions) (*mark, bool) {
	if cluster.NodeFacts(n).OS == c.Steer {
		return nil, false
	}
	m := mark{Run: s.member.RunID, Conditions: c.String()}
	if text, ok := n.Annotations[cluster.CordonAnnotation]; ok {
		m = readMark(text) // a peer's, for others were cleared away
	} else if n.Spec.Unschedulable || slices.ContainsFunc(n.Spec.Taints, keepsOff) {
		return nil, false
	}
	m = m.with(s.member.ID)
	return &m, true
}

func (g *ground) nodes(ctx context.Context) ([]corev1.Node, error) {
	var list *corev1.NodeList
	err := cluster.Persist(ctx, func(ctx context.Context) (err error) {
		list, err = g.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", permittedNodes(err))
	}
	return list.Items, nil
}

// uncordon restores the nodes of whose mark nothing is needed any more, and
// returns them. An error does not keep it from the nodes that follow.
func (g *ground) uncordon(ctx context.Context, needed func(mark) *mark) (restored []string, failed error) {
	nodes, err := g.nodes(ctx)
	if err != nil {
		return nil, err
	}
	for i := range nodes {
		gone := false
		_, err := g.change(ctx, &nodes[i], func(n *corev1.Node) (*mark, bool) {
			text, ok := n.Annotations[cluster.CordonAnnotation]
			left := needed(readMark(text))
			if ok { // else it is done: the answer to this very change may have been lost
				gone = left == nil
			}
			return left, ok
		})
		switch {
		case err != nil:
			failed = errors.Join(failed, fmt.Errorf("restoring node %s, which a run has cordoned: %w; the next run tries again, or: kubectl uncordon %[1]s && kubectl annotate node %[1]s %[3]s-", nodes[i].Name, err, cluster.CordonAnnotation))
		case gone:
			restored = append(restored, nodes[i].Name)
		}
	}
	return restored, failed
}

// change writes what decide wants of a node, whoever else writes meanwhile: the
// node cordoned with a mark, or schedulable without. It reports whether decide
// wanted anything. A node that is gone needs nothing.
func (g *ground) change(ctx context.Context, n *corev1.Node, decide func(*corev1.Node) (want *mark, ok bool)) (bool, error) {
	for {
		want, ok := decide(n)
		if !ok {
			return false, nil
		}
		value, unschedulable := any(nil), any(nil) // null removes a field
		if want != nil {
			value, unschedulable = want.String(), true
		}
		if want != nil && n.Annotations[cluster.CordonAnnotation] == value && n.Spec.Unschedulable {
			return true, nil
		}
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"resourceVersion": n.ResourceVersion, "annotations": map[string]any{cluster.CordonAnnotation: value}},
			"spec":     map[string]any{"unschedulable": unschedulable},
		})
		if err != nil {
			return false, err
		}
		nodes, name := g.client.CoreV1().Nodes(), n.Name
		err = cluster.Persist(ctx, func(ctx context.Context) error {
			_, err := nodes.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		})
		if apierrors.IsConflict(err) {
			err = cluster.Persist(ctx, func(ctx context.Context) (err error) {
				n, err = nodes.Get(ctx, name, metav1.GetOptions{})
				return err
			})
			if err == nil {
				continue
			}
		}
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, permittedNodes(err)
	}
}

// permittedNodes adds to an error of the API server which rule would have
// allowed it.
func permittedNodes(err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return fmt.Errorf("%w: allow get, list and patch of nodes (op-readiness preflight --print-rbac prints all that a run needs)", err)
}

// awaitTaint returns when the nodes have, or have not, the taint that follows
// being cordoned: by it the suite knows them, and picks nodes for its pods.
func (g *ground) awaitTaint(ctx context.Context, names []string, there bool) error {
	if len(names) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, effectTimeout)
	defer cancel()
	var wrong []string
	err := wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		nodes, err := g.nodes(ctx)
		if err != nil {
			return false, err
		}
		wrong = nil
		for _, n := range nodes {
			tainted := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable })
			if slices.Contains(names, n.Name) && tainted != there && n.Spec.Unschedulable == there {
				wrong = append(wrong, n.Name)
			}
		}
		return len(wrong) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the taint %s of nodes %s to follow their being cordoned or not: %w", corev1.TaintNodeUnschedulable, strings.Join(wrong, ", "), err)
	}
	return nil
}

// awaitScheduler returns when the scheduler finds no place for a pod that may only
// go to the nodes.
func (s *Cordon) awaitScheduler(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	probe := probePod()
	var terms []corev1.NodeSelectorTerm
	for _, name := range names {
		terms = append(terms, corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}},
		}})
	}
	probe.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
	}}
	namespace, err := s.makeNamespace(ctx)
	if err != nil {
		return err
	}
	defer s.leave(ctx, namespace.Name)
	ctx, cancel := context.WithTimeout(ctx, effectTimeout)
	defer cancel()
	pods := s.client.CoreV1().Pods(namespace.Name)
	last := errors.New("it has not looked at the pod")
	for try := 0; ; try++ {
		probe.Name = fmt.Sprintf("probe-%d", try)
		heeded := false
		err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			got, err := pods.Get(ctx, probe.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				// It is refused as long as the namespace has no service account.
				got, err = pods.Create(ctx, probe, metav1.CreateOptions{})
			}
			last = cmp.Or(err, last)
			if got == nil {
				got = &corev1.Pod{}
			}
			for _, c := range got.Status.Conditions {
				heeded = heeded || c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
			}
			if got.Spec.NodeName != "" {
				last = fmt.Errorf("it put a pod on node %s", got.Spec.NodeName)
			}
			return heeded || got.Spec.NodeName != "", nil
		})
		if err != nil {
			return fmt.Errorf("waiting for the scheduler to heed that nodes are cordoned: %w", errors.Join(err, last))
		}
		if heeded {
			return nil
		}
	}
}

// leave removes a namespace, also when ctx has ended; then without using up the time of
// what comes next.
func (s *Cordon) leave(ctx context.Context, namespace string) {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
	}
	_ = s.deleteNamespace(ctx, namespace) // the next run does it, else
}
